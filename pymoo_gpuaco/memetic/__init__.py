"""Memetic search on any device: annealing by window search, and recombination of tours; it never imports pymoo."""
