"""Memetic search on any device: annealed window search and recombination of tours; no pymoo."""
