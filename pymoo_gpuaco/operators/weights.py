"""Weights of operators for tours of several objectives, (m, k) for m tours, each row of sum 1.

They apply to lengths divided by the typical length of each objective.

Source: local search of each member under a weighted sum in the direction of its objectives: H. Ishibuchi, T. Yoshida
and T. Murata, "Balance between genetic search and local search in memetic algorithms for multiobjective permutation
flowshop scheduling", IEEE Transactions on Evolutionary Computation 7 (2003).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.problems.multi_objective import MultiObjectiveTSP

LEVELS = 8
"""Number of parts of [0, 1]; tours whose weights round to the same parts share one weighted sum."""
_TOURS = 16  # random tours for the typical length of each objective


def typical_lengths(problem: MultiObjectiveTSP) -> NDArray[np.float64]:
    """Return the mean lengths (k,) of some random tours; 1 if all distances are 0."""
    random = np.random.default_rng(1)
    lengths = problem.tour_lengths([random.permutation(problem.n_cities) for _ in range(_TOURS)]).mean(axis=0)
    return np.where(lengths > 0.0, lengths, 1.0)


def own_weights(lengths: NDArray[np.float64], random_state: Any) -> NDArray[np.float64]:
    """Return weights of tours with lengths (m, k): larger for objectives by which a tour is among the shortest.

    The weights of a single tour, as in steady-state algorithms, are random.
    """
    m, k = lengths.shape
    if m == 1 and random_state is not None:
        return drawn_weights(1, k, random_state)
    span = np.ptp(lengths, axis=0)
    best = (lengths.max(axis=0) - lengths) / np.where(span > 0.0, span, 1.0)
    total = best.sum(axis=1, keepdims=True)
    # like pymoo's pseudo weights, with equal weights for a population of equal members
    return np.where(total > 0.0, best / np.where(total > 0.0, total, 1.0), 1.0 / k)


def drawn_weights(count: int, k: int, random_state: Any) -> NDArray[np.float64]:
    """Return uniformly distributed random weights."""
    weights: NDArray[np.float64] = random_state.dirichlet(np.ones(k), count)
    return weights


def groups_of(weights: NDArray[np.float64]) -> list[NDArray[np.int64]]:
    """Return groups of rows with similar weights; each row is in one group."""
    groups: dict[tuple[float, ...], list[int]] = {}
    for row, levels in enumerate(np.rint(weights * LEVELS).tolist()):
        groups.setdefault(tuple(levels), []).append(row)
    return [np.array(rows) for _, rows in sorted(groups.items())]
