"""Under which weights members of a front are looked at and kicked: its slope where they lie."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.pareto.archive import Archive
from pymoo_gpuaco.pareto.stairs import slack_at, weights_at
from pymoo_gpuaco.pareto.weights import scaled

_STEPS = 5  # steps of the front to either side that a chain may reach the gaps of
_SHARE = 0.02  # of the front's extent: how deep its gaps are at least, of more than two objectives


def slopes(
    archive: Archive, directions: NDArray[np.float64] | None, points: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Weights (m, k) of the front's slope at points (m, k), and slack (m,) for chains to reach its gaps.

    directions : (d, k) of more than two objectives: those under which a point is nearest to the best are its weights.
    """
    front = archive.points
    if points.shape[1] == 2:
        weights = weights_at(front, points)
        return weights, slack_at(front, points, weights, _STEPS) + _least(points)
    assert directions is not None
    all_weights = scaled(archive, directions)
    values = front @ all_weights.T
    least = values.min(axis=0)
    over = points @ all_weights.T - least
    chosen = over.argmin(axis=1)
    weights = all_weights[chosen]
    most = (values - least).min(axis=1).max()  # what any member has more than the best under its weights
    slack = np.maximum(most, _SHARE * weights @ np.ptp(front, axis=0))
    return weights, slack + _least(points)


def _least(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Slack above 0 (m,) for points (m, k)."""
    return np.asarray(1e-9 * points.max(axis=1, initial=0.0) + 1e-300)
