"""Several objectives on any device: what edges cost, weights, the archive, and the order in which members are looked at."""
