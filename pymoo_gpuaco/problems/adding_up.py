"""The one order in which the edges of a tour are added up, so that a cycle has one length to the last bit."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

ADDED_AT_ONCE = 512
"""Edges of a tour whose lengths are added up before they join the sum, which keeps small what is rounded off."""


def add_up(edges: NDArray[np.float64], tours: NDArray[Any]) -> NDArray[np.float64]:
    """Return the (m,) sums of edges (m, n), from each city of tours (m, n) to the next, or (m, n - 1) of paths.

    From city 0 towards its smaller neighbour, wherever the row begins and whichever way it goes.
    """
    m, n = tours.shape
    zero = (tours == 0).argmax(axis=1)
    row = np.arange(m)
    backwards = tours[row, zero - 1] < tours[row, (zero + 1) % n]
    steps = np.where(backwards[:, None], -1 - np.arange(n), np.arange(n))
    around = np.zeros((m, n))
    around[:, : edges.shape[1]] = edges
    width = min(n, ADDED_AT_ONCE)
    ordered = np.zeros((m, -(-n // width), width))
    ordered.reshape(m, -1)[:, :n] = np.take_along_axis(around, (zero[:, None] + steps) % n, axis=1)
    # cumulated, as numpy's sums add in an order of their own
    blocks = np.cumsum(ordered, axis=2)[:, :, -1]
    sums: NDArray[np.float64] = np.cumsum(blocks, axis=1)[:, -1]
    return sums
