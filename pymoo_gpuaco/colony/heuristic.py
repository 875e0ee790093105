"""Heuristic values of edges: eta^beta of Eq. (1), paper 001."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def eta_power(
    distances: NDArray[np.float64], near: NDArray[np.float64] | float, shortest: float, beta: float
) -> NDArray[np.float64]:
    """Return eta^beta of distances (n, ..), with eta = near / distance.

    ``near``, (n, 1) or a number, is a factor of its row and changes no choice there. If it is about as long as the
    distances, no value over- or underflows for any unit and beta in [0, 20], as 1 / distance would. ``shortest`` > 0
    replaces shorter distances, see ``ListedInstance.least_distance``.
    """
    # over: only on the diagonal, which no ant reads; under: cities so much farther than the nearest are never drawn
    with np.errstate(over="ignore", under="ignore"):
        return np.asarray((near / np.maximum(distances, shortest)) ** beta)


def relative_eta_power(distances: NDArray[np.float64], shortest: float, beta: float) -> NDArray[np.float64]:
    """Return eta^beta of candidate distances (n, k), in any order, relative to the largest value of each row."""
    near = np.maximum(distances.min(axis=1, keepdims=True), shortest)
    return eta_power(distances, near, shortest, beta)
