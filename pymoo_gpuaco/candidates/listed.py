"""An instance with its candidate lists: the few edges of each city that ants and local search consider."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.problems.instance import Instance


@dataclass(frozen=True, eq=False)
class ListedInstance(Instance):
    """An `Instance` with k candidates for each of its n cities; `lists.with_lists` makes it.

    Attributes
    ----------
    neighbours : (n, k) int32, the nearest cities of each city under the metric, or others of `listed`, itself never
        among them.
    neighbour_distances : (n, k) float64, d(city, neighbour), ascending along a row; where each city is two, rows are in
        the order of what their lengths are beyond the usual.
    listed : what kind of cities `neighbours` are, see `lists.with_lists`: "nearest", "quadrant" or "alpha".
    nearest : (n, k) int32, the nearest cities beside those by quadrant, where they were asked for; else None.
    penalties : (n,) node penalties with which an ascent begins; None: all 0.
    assigned : length that no assignment of successors falls below, where the lists came with one; else None.

    Each row of `neighbours` is sorted by (distance, city id); of the nearest its distances are the k smallest. Where
    more cities than fit are at the k-th distance, a matrix lists those of lowest id. With coordinates the
    choice is made, by lowest id, among the k + 9 cities nearest by unrounded distance (the city itself
    included); which of still more coincident or equidistant cities come into that set is the k-d tree's
    choice, the same each time.
    """

    neighbours: NDArray[np.int32]
    neighbour_distances: NDArray[np.float64]
    listed: str
    nearest: NDArray[np.int32] | None = field(default=None, kw_only=True)
    penalties: NDArray[np.float64] | None = field(default=None, kw_only=True)
    assigned: float | None = field(default=None, kw_only=True)

    @property
    def k(self) -> int:
        """Neighbours listed for each city, 1 <= k <= n - 1."""
        return self.neighbours.shape[1]

    @cached_property
    def least_distance(self) -> float:
        """Distance that replaces 0 in eta = 1 / d: half the shortest positive one to a neighbour, or 1."""
        positive = self.neighbour_distances[self.neighbour_distances > 0]
        return float(positive.min()) / 2.0 if positive.size else 1.0
