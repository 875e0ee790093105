"""Matrices that are symmetric up to potentials: c(i, j) - c(j, i) = p(j) - p(i) for all cities i and j.

Uphill and downhill, against the wind and with it: around a round trip the potentials p add up to nothing, so that every
tour is as long in (C + C^T) / 2, which is symmetric, as it is in C, whichever way it goes. A path gains or loses what
its ends differ by, and a fixed edge with a direction is another one turned around, so both stay as they are.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.problems.instance import Instance
from pymoo_gpuaco.problems.matrix import NOISE, blocks, largest_distance, largest_finite

__all__ = ["either_way", "symmetric_matrix"]

_HALF = 0.5  # halves of whole numbers are exact while rounding is no more


def either_way(instance: Instance) -> Instance:
    """Return the symmetric instance in which every round trip is as long; itself where there is none or no need.

    Of whole distances the halved sums may be no whole numbers, see `Instance.halves`; they are exact all the same.
    """
    demands = instance.demands
    if instance.symmetric or (demands is not None and (len(demands.fixed) > 0 or not demands.closed)):
        return instance
    matrix = symmetric_matrix(instance.matrix, 0.0 if instance.integral else NOISE)
    if matrix is None:
        return instance
    whole = instance.integral and all(
        bool(np.all(matrix[rows] == np.floor(matrix[rows]))) for rows in blocks(len(matrix))
    )
    return replace(
        instance,
        matrix=matrix,
        symmetric=True,
        integral=whole,
        halves=instance.integral and not whole,
        demands=None if demands is None else demands._replace(directed=False),
    )


def symmetric_matrix(matrix: NDArray[np.float64], noise: float = 0.0) -> NDArray[np.float64] | None:
    """Return (C + C^T) / 2 of a matrix C (n, n) that is symmetric up to potentials, or None where it is not.

    noise : by how much of the largest entry differences may miss those of potentials. Infinite entries must be so in
        both directions. Besides the matrix returned, memory for some rows is needed. None also where the largest entry
        is so much longer than others that rounding hides whether it is symmetric.
    """
    potential = _potentials(matrix)
    if potential is None:
        return None
    longest = largest_finite(matrix)
    rounding = 4.0 * np.finfo(float).eps * (longest + float(np.abs(potential).max()))
    allowed = noise * largest_distance(matrix, longest) if noise > 0.0 else 0.0
    if rounding > (allowed if noise > 0.0 else _HALF):
        return None
    for rows in blocks(len(matrix)):
        with np.errstate(invalid="ignore"):  # inf - inf: an edge that is forbidden both ways
            off = matrix[rows] - matrix[:, rows].T
            off -= potential
            off += potential[rows, None]
        if not np.all((np.abs(off) <= allowed) | np.isnan(off)):
            return None
    symmetric = np.empty_like(matrix)
    for rows in blocks(len(matrix)):
        symmetric[rows] = 0.5 * matrix[rows] + 0.5 * matrix[:, rows].T
    return symmetric


def _potentials(matrix: NDArray[np.float64]) -> NDArray[np.float64] | None:
    """Return the only potentials (n,) that may do, that of city 0 being 0; None where not all cities are joined."""
    n = len(matrix)
    potential = np.full(n, np.nan)
    potential[0] = 0.0
    reached = [0]
    for city in reached:  # which grows: without forbidden edges the first city reaches all
        to, back = matrix[city], matrix[:, city]
        new = np.flatnonzero(np.isnan(potential) & np.isfinite(to) & np.isfinite(back))
        potential[new] = potential[city] + (to[new] - back[new])
        reached += new.tolist()
        if len(reached) == n:
            return potential
    return None
