"""Several objectives on any device: costs, weights, the archive, and in which order its members are explored."""
