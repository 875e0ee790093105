"""Pheromone trails on the device: dense, of candidate edges, or in rings; evaporation and deposit."""
