"""An instance with its candidate lists: the few edges of each city that ants and local search consider."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.problems.instance import Instance
from pymoo_gpuaco.problems.metrics import Graph, Metric

# GEO costs three cosines and an arc cosine; up to this many cities a table of 8 n^2 bytes is cheaper.
GEO_TABLE_LIMIT = 4000


class Candidates(NamedTuple):
    """k candidates of each of n cities, without the city itself; each row is sorted by (distance, id) unless stated."""

    ids: NDArray[np.int32]  # (n, k)
    distances: NDArray[np.float64]  # (n, k)

    def in_order(self, k: int | None = None) -> Candidates:
        """Return the first k candidates, None: all, by (distance, id)."""
        order = np.lexsort(self, axis=-1)[:, :k]
        by_length = np.take_along_axis(self.distances, order, axis=1)
        return Candidates(np.take_along_axis(self.ids, order, axis=1), by_length)


@dataclass(frozen=True, eq=False)
class ListedInstance(Instance):
    """An `Instance` with k candidates for each of its n cities; `lists.with_lists` makes it.

    Attributes
    ----------
    neighbours : (n, k) int32, the nearest cities of each city under the metric, or those of another kind, see `listed`;
        never the city itself.
    neighbour_distances : (n, k) float64, d(city, neighbour), ascending along a row; in a doubled instance rows are
        sorted by the excess of their lengths over the usual cost.
    listed : kind of `neighbours`, see `lists.with_lists`: "nearest", "quadrant" or "alpha".
    penalties : (n,) initial node penalties of an ascent; None: all 0.
    bound : lower bound of all tours by the shortest assignment of an asymmetric matrix; 0 if it was not computed.

    Each row of `neighbours` is sorted by (distance, city id). For kind "nearest" its distances are the k smallest.
    Ties: a matrix lists the lowest ids, a plane the shortest unrounded distances; in space and on the globe they are
    the lowest ids of the k + 9 cities that a k-d tree finds.
    """

    neighbours: NDArray[np.int32]
    neighbour_distances: NDArray[np.float64]
    listed: str
    penalties: NDArray[np.float64] | None = field(default=None, kw_only=True)
    bound: float = field(default=0.0, kw_only=True)

    @property
    def graph(self) -> Graph:
        """The arrays of the instance and its candidates for compiled functions."""
        return super().graph._replace(
            neighbours=np.ascontiguousarray(self.neighbours, np.int32),
            neighbour_distances=np.ascontiguousarray(self.neighbour_distances, np.float64),
        )

    @property
    def k(self) -> int:
        """Neighbours listed for each city, 1 <= k <= n - 1."""
        return self.neighbours.shape[1]

    @property
    def nearest(self) -> NDArray[np.float64]:
        """Distance (n,) to the first candidate of each city."""
        return self.neighbour_distances[:, 0]

    @property
    def farthest(self) -> NDArray[np.float64]:
        """Distance (n,) to the last candidate of each city."""
        return self.neighbour_distances[:, -1]

    @cached_property
    def least_distance(self) -> float:
        """Distance that replaces 0 in eta = 1 / d: half the shortest positive distance to a neighbour, or 1."""
        positive = self.neighbour_distances[self.neighbour_distances > 0]
        return float(positive.min()) / 2.0 if positive.size else 1.0


def make_graph(instance: ListedInstance) -> Graph:
    """Return the graph of an instance, of few cities with a table of GEO distances, which are slow to compute."""
    if instance.metric != Metric.GEO or instance.n > GEO_TABLE_LIMIT:
        return instance.graph
    matrix = np.empty((instance.n, instance.n))
    instance.write_distances(matrix)
    return instance.graph._replace(metric=int(Metric.EXPLICIT), coords=np.empty((0, 3)), matrix=matrix)
