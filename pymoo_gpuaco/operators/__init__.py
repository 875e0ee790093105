"""Operators for pymoo's own algorithms: tours to start from, merging as crossover, local search as a repair."""

from pymoo_gpuaco.operators.crossover import MergeCrossover
from pymoo_gpuaco.operators.repair import LocalSearchRepair
from pymoo_gpuaco.operators.sampling import AntColonySampling, NearestNeighbourSampling

__all__ = ["AntColonySampling", "LocalSearchRepair", "MergeCrossover", "NearestNeighbourSampling"]
