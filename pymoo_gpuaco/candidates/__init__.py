"""Candidate edges, first tours and lower bounds, computed on the host for both backends."""

from pymoo_gpuaco.candidates.alpha import alpha_lists
from pymoo_gpuaco.candidates.ascent import Ascent, ascend
from pymoo_gpuaco.candidates.listed import Candidates
from pymoo_gpuaco.candidates.lists import lists
from pymoo_gpuaco.candidates.quadrant import quadrant_lists
from pymoo_gpuaco.candidates.start import greedy_tour, varied_tours

__all__ = [
    "Ascent",
    "Candidates",
    "alpha_lists",
    "ascend",
    "greedy_tour",
    "lists",
    "quadrant_lists",
    "varied_tours",
]
