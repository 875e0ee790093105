"""What a short edge is worth to an ant: eta^beta of Eq. (1), paper 001."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def eta_power(
    distances: NDArray[np.float64], near: NDArray[np.float64] | float, shortest: float, beta: float
) -> NDArray[np.float64]:
    """eta^beta of distances (n, ..), with eta = near / distance.

    ``near`` (n, 1) or one for all is a factor of its row, which changes no choice there. Where it is about as long as
    the distances, nothing over- or underflows, whatever their unit and beta in [0, 20]; 1 / distance would of cities
    1e-16 apart. ``shortest`` > 0: what a shorter distance counts as, see ``ListedInstance.least_distance``.
    """
    # over: only on a diagonal, which no ant reads; under: what is so much farther than the nearest is never drawn
    with np.errstate(over="ignore", under="ignore"):
        return np.asarray((near / np.maximum(distances, shortest)) ** beta)


def relative_eta_power(distances: NDArray[np.float64], shortest: float, beta: float) -> NDArray[np.float64]:
    """eta^beta of candidates' distances (n, k), in any order, over the largest of their row."""
    near = np.maximum(distances.min(axis=1, keepdims=True), shortest)
    return eta_power(distances, near, shortest, beta)
