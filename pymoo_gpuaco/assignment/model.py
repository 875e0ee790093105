"""A quadratic assignment problem as the matrices of the tabu search, in a number type that cannot overflow.

    cost(p) = scale * (sum_ij flow[i, j] distance[p[i], p[j]] + sum_i linear[i, p[i]])

is written with one symmetric pair of matrices F, D if flow or distance is symmetric, else with two: the second pair is
skew. C[i, l] = linear[i, l] + sum_k F[i, k] D[l, p[k]] is the cost of item i at location l, all else as it is. If p
swaps items u and v, C changes by x y^T with x = F[u] - F[v], y = D[p[v]] - D[p[u]]; the change that another swap (r, s)
would make changes by -(x[r] - x[s]) (y[p[r]] - y[p[s]]).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

# Limits of `has_structure`. QAPLIB: tai-a and rou have 0.16 to 0.19 and few zeros. One matrix of any other instance has
# less than 0.08, or more than half zeros.
_DENSE, _LONGER, _TRIPLES = 0.8, 0.13, 20_000


class AssignmentModel(NamedTuple):
    """Matrices of n items and n locations; arrays of one type, int32 or float64.

    flows, distances : (pairs, n, n), zero diagonals.
    linear : (n, n) cost of item i at location l.
    kinds : (n,) int32; items of the same kind are interchangeable, and never swapped with each other.
    scale : factor from costs of the problem to these.
    whole : True if all numbers are whole and every sum is exact.
    noise : changes of at most this size are rounding errors; 0 with ``whole``.
    structured : False if both matrices look like random numbers, see `has_structure`.
    """

    flows: NDArray
    distances: NDArray
    linear: NDArray
    kinds: NDArray[np.int32]
    scale: float
    whole: bool
    noise: float
    structured: bool

    @property
    def n(self) -> int:
        """Number of locations, and of items with those that fill up."""
        return len(self.kinds)

    @property
    def dtype(self) -> np.dtype:
        """Type of the numbers."""
        return self.linear.dtype

    def costs(self, placements: NDArray) -> NDArray[np.float64]:
        """Return the costs (m,) of placements (m, n), in units of the model, computed in double precision."""
        items, found = np.arange(self.n), []
        for p in placements:
            twice = sum(
                float((f * d[np.ix_(p, p)]).sum(dtype=np.float64))
                for f, d in zip(self.flows.astype(float), self.distances.astype(float), strict=True)
            )
            found.append(twice / 2.0 + float(self.linear[items, p].sum(dtype=np.float64)))
        return np.array(found)


def make_model(flow: NDArray, distance: NDArray, linear: NDArray) -> AssignmentModel:
    """Return the model of finite float64 matrices (n, n); see `AssignmentModel`."""
    flow, distance = flow.copy(), distance.copy()
    linear = linear + np.outer(np.diag(flow), np.diag(distance))  # diagonals cost what a location alone does
    np.fill_diagonal(flow, 0.0)
    np.fill_diagonal(distance, 0.0)
    scale = 1.0
    if np.array_equal(distance, distance.T):
        pairs = [(flow + flow.T, distance)]
    elif np.array_equal(flow, flow.T):
        pairs = [(flow, distance + distance.T)]
    else:
        scale = 2.0
        pairs = [(flow + flow.T, distance + distance.T), (flow - flow.T, distance - distance.T)]
    flows, distances = (np.stack(matrices) for matrices in zip(*pairs, strict=True))
    linear = linear * scale
    largest = _largest(flows, distances, linear)
    every = (flows, distances, linear)
    whole = all(np.array_equal(part, np.rint(part)) for part in every) and 4.0 * largest * len(flow) < 2.0**53
    kind = np.int32 if whole and 4.0 * largest < 2.0**31 - 1 else np.float64
    noise = 0.0 if whole else 1e-11 * largest
    structured = has_structure(flow) or has_structure(distance)
    flows, distances, linear = (np.ascontiguousarray(part + 0.0, kind) for part in every)
    return AssignmentModel(flows, distances, linear, _kinds(flows, linear), scale, whole, noise, structured)


def has_structure(matrix: NDArray) -> bool:
    """Return True unless a matrix (n, n) looks like random numbers.

    It is sparse, or like distances: of independent uniform numbers, one is larger than the sum of two others in one
    case of six, distances never are.
    """
    n = len(matrix)
    if np.count_nonzero(matrix) < _DENSE * n * (n - 1):
        return True
    i, j, k = np.random.default_rng(0).integers(n, size=(3, _TRIPLES))
    apart = (i != j) & (j != k) & (i != k)
    longer = matrix[i, j] > matrix[i, k] + matrix[k, j]
    return bool(np.count_nonzero(longer & apart) <= _LONGER * np.count_nonzero(apart))


def _largest(flows: NDArray, distances: NDArray, linear: NDArray) -> float:
    """Return an upper bound of |C|: in each sum the largest flows meet the largest distances."""
    most = float(np.abs(linear).max())
    for f, d in zip(flows, distances, strict=True):
        rows, columns = np.sort(np.abs(f), axis=1), np.sort(np.abs(d), axis=1)
        most += float((rows @ columns.T).max())
    return most


def _kinds(flows: NDArray, linear: NDArray) -> NDArray[np.int32]:
    """Return a number for each item; items of equal numbers have the same flows and linear costs.

    It is checked against the first item of each kind alone: to be interchangeable is transitive.
    """
    n = len(linear)
    kinds, alike = np.arange(n, dtype=np.int32), dict[bytes, list[int]]()
    for i in range(n):
        first = alike.setdefault(linear[i].tobytes() + np.sort(flows[:, i]).tobytes(), [])
        for k in first:
            swapped = np.arange(n)
            swapped[[i, k]] = k, i
            if np.array_equal(flows[:, i], flows[:, k, swapped]):
                kinds[i] = k
                break
        else:
            first.append(i)
    return kinds
