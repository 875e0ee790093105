"""Heuristic values of edges: eta^beta of Eq. (1), paper 001."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def eta_power(
    distances: NDArray[np.float64], near: NDArray[np.float64] | float, shortest: float, beta: float
) -> NDArray[np.float64]:
    """Return eta^beta of distances (n, ..), with eta = near / distance.

    ``near``, (n, 1) or a number, scales each row, which changes no choice. If it is about as long as the distances, no
    value over- or underflows for any unit of distance and beta in [0, 20]. ``shortest`` > 0 replaces shorter distances,
    see ``ListedInstance.least_distance``.
    """
    # overflow: only on the diagonal, which no ant reads; underflow: cities too far away to be drawn
    with np.errstate(over="ignore", under="ignore"):
        return np.asarray((near / np.maximum(distances, shortest)) ** beta)


def relative_eta_power(distances: NDArray[np.float64], shortest: float, beta: float) -> NDArray[np.float64]:
    """Return eta^beta of candidate distances (n, k), in any order, relative to the largest value of each row."""
    near = np.maximum(distances.min(axis=1, keepdims=True), shortest)
    return eta_power(distances, near, shortest, beta)
