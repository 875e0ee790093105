"""Operators for pymoo's own algorithms: tours to start from, and local search as a repair."""

from pymoo_gpuaco.operators.repair import LocalSearchRepair
from pymoo_gpuaco.operators.sampling import AntColonySampling, NearestNeighbourSampling

__all__ = ["AntColonySampling", "LocalSearchRepair", "NearestNeighbourSampling"]
