"""Operators for pymoo's own algorithms: sampling, crossover, mutation, and local search as a repair."""

from pymoo_gpuaco.operators.crossover import AssemblyCrossover, MergeCrossover
from pymoo_gpuaco.operators.mutation import DoubleBridgeMutation, InsertionMutation, SwapMutation
from pymoo_gpuaco.operators.repair import LocalSearchRepair
from pymoo_gpuaco.operators.sampling import AntColonySampling, NearestNeighbourSampling

__all__ = [
    "AntColonySampling",
    "AssemblyCrossover",
    "DoubleBridgeMutation",
    "InsertionMutation",
    "LocalSearchRepair",
    "MergeCrossover",
    "NearestNeighbourSampling",
    "SwapMutation",
]
