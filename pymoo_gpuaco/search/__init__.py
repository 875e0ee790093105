"""What focused ants do, on any device: they anneal good tours and recombine them."""
