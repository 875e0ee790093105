"""What focused ants do, on any device: they anneal good tours, which take over from each other what is better."""
