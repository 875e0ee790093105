"""Distances of very different magnitude, such as `sys.maxsize` where there is no road, as a search gets them.

A double has 53 bits. Beside 1e18 it loses the digits of a distance of 100: a sum that holds both says nothing about the
rest of a tour. A search gets smaller numbers instead, which order tours in the same way. No number grows, so a lower
bound on the length of all tours is one for the distances as well.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

import numpy as np

from pymoo_gpuaco.problems.instance import Instance, as_instance
from pymoo_gpuaco.problems.matrix import blocks, levels_of
from pymoo_gpuaco.problems.metrics import Metric
from pymoo_gpuaco.problems.multi_objective import MultiObjectiveTSP
from pymoo_gpuaco.problems.tsp import TSP

__all__ = ["ranked", "ranked_objectives", "reach"]

Own = TypeVar("Own", bound=Instance)

_ORDERED = 50  # cities up to which no tour of allowed edges counts as longer than one with another edge
_FAR = 8.0
# Where edges beyond a gap are of several lengths, the shortest becomes so many times as long as what lies below: tours
# that need such edges are ordered to 1e-6 of their length. Whole numbers up to 2^50 stay, as their sums are exact.
_APART, _EXACT = 2.0**24, 2.0**50


def reach(n: int) -> float:
    """Return how many times as long as the longest edge one counts that tours of n cities must not use.

    Up to 50 cities that is longer than any tour of other edges. Above, where annealing would take its temperature from
    it, no exchange of some edges can gain by such an edge.
    """
    return 2.0 * n if n <= _ORDERED else _FAR


def ranked(instance: Own) -> Own:
    """Return an instance whose tours have the same order by length, without needless gaps between distances.

    An entry of the matrix that is longer than a tour of all shorter ones becomes `reach` times the longest of them.
    Where such entries are of several lengths, they keep their ratio up to 50 cities, and stay what they are above.
    Itself where there is none, and of coordinates.
    """
    if instance.metric != Metric.EXPLICIT:
        return instance
    matrix, n = instance.matrix, instance.n
    top, changed = 0.0, []
    for low, high in levels_of(matrix):
        factor = 1.0
        if top > 0.0 and low == high:
            factor = min(1.0, reach(n) * top / low)
        elif top > 0.0 and n <= _ORDERED and not (instance.integral and high <= _EXACT):
            factor = min(1.0, _APART * top / low)
        if factor < 1.0:
            changed.append((low, high, factor))
        top = high * factor
    if not changed:
        return instance
    matrix = matrix.copy()
    for rows in blocks(n):
        block = matrix[rows]
        for low, high, factor in reversed(changed):
            level = (block >= low) & (block <= high)
            made = block[level] * factor
            block[level] = np.rint(made) if instance.integral else made
    return replace(instance, matrix=matrix)


def ranked_objectives(problem: MultiObjectiveTSP) -> MultiObjectiveTSP:
    """Return a problem with `ranked` distances in each objective, so that the same tours dominate each other.

    Itself where nothing changes, and above 50 cities, where ranks only keep exchanges of edges in order.
    """
    if problem.n_cities > _ORDERED:
        return problem
    instances = [as_instance(part) for part in problem.parts]
    others = [ranked(instance) for instance in instances]
    if all(other is instance for other, instance in zip(others, instances, strict=True)):
        return problem
    parts = [
        part if other is instance else TSP(matrix=other.matrix)
        for part, other, instance in zip(problem.parts, others, instances, strict=True)
    ]
    return MultiObjectiveTSP(parts, problem.names)
