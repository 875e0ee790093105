"""Model of a problem with precedence constraints: the shortest path of m nodes, from node 0 to node m - 1.

Lengths are whole units. A closed tour ends at a copy of its first city. A path without a given first or last city
begins or ends at an additional node at distance 0 from all others. The cost of an edge of infinite length is above the
length of any path, and that of a fixed edge far below 0.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.candidates.listed import ListedInstance
from pymoo_gpuaco.problems.constraints import TourConstraints, order_of
from pymoo_gpuaco.problems.symmetric import ranked

__all__ = ["Chains", "PathModel", "Round", "make_model"]

_MOST_UNITS = 2**27  # maximum length of a path: its changes fit 32 bits
_CANDIDATES = 16  # edges from which trials draw, out of each node and into each node
SHORT_STRETCH = 50  # maximum nodes of a stretch in three of four trials; the others have no limit

#: -log(u) at the centres of 4,096 equal parts of (0, 1): thresholds of the Metropolis rule for longer paths
THRESHOLDS = -np.log((np.arange(4096) + 0.5) / 4096.0)


class Round(NamedTuple):
    """Arguments of one call of a device."""

    key: int  # in [0, 2**64)
    trials: int  # per chain
    temperatures: NDArray[np.float64]  # (ceil(trials / 256),) in units


class Chains(NamedTuple):
    """Annealed paths: c chains of m nodes."""

    paths: NDArray[np.int32]  # (c, m)
    best: NDArray[np.int32]  # (c, m) shortest path of each chain
    lengths: NDArray[np.int64]  # (c, 2) of ``paths`` and ``best``, in units

    @property
    def shortest(self) -> int:
        """Length of the shortest path, in units."""
        return int(self.lengths[:, 1].min())


@dataclass(frozen=True)
class PathModel:
    """Nodes, costs and precedence of a problem; compiled code reads ``arrays``."""

    instance: ListedInstance
    city_of: NDArray[np.int64]  # (m,) city of each node, -1 for an additional node
    node_of: NDArray[np.int64]  # (n,) node of each city; for the first city of a closed tour, node 0
    unit: float  # units per unit of distance
    cost: NDArray[np.int32]  # (m, m) in units; row: from, column: to
    cost_to: NDArray[np.int32]  # (m, m) transpose of ``cost``
    # (begin, items): items[begin[v] : begin[v + 1]] are the direct successors of node v
    after: tuple[NDArray[np.int32], NDArray[np.int32]]
    before: tuple[NDArray[np.int32], NDArray[np.int32]]  # the same for direct predecessors
    # (m, k) nearest nodes that may follow each node, and their numbers (m,)
    nexts: tuple[NDArray[np.int32], NDArray[np.int32]]
    previous: tuple[NDArray[np.int32], NDArray[np.int32]]  # the same for nodes that may precede

    @property
    def m(self) -> int:
        """Number of nodes."""
        return len(self.city_of)

    @property
    def arrays(self) -> tuple[NDArray[np.int32], ...]:
        """All arrays, in the order of the parameters of compiled code."""
        return (self.cost, self.cost_to, *self.after, *self.before, *self.nexts, *self.previous)

    def lengths(self, paths: NDArray[np.int32]) -> NDArray[np.int64]:
        """Return the lengths (c,) of paths (c, m) in units."""
        return self.cost[paths[:, :-1], paths[:, 1:]].sum(axis=1, dtype=np.int64)

    def chains(self, paths: NDArray[np.int32]) -> Chains:
        """Return chains that start with paths (c, m)."""
        lengths = self.lengths(paths)
        return Chains(paths, paths.copy(), np.stack([lengths, lengths], axis=1))

    def tour(self, path: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return a path (m,) as a tour (n,) of the problem."""
        cities = self.city_of[path[: self.instance.n + int(self.city_of[0] < 0)]]
        return cities[cities >= 0].astype(np.int32)

    def path(self, tour: NDArray[np.integer]) -> NDArray[np.int32]:
        """Return the path (m,) that visits the cities of a tour (n,) in order, each as soon as precedence allows."""
        if self.city_of[0] == self.city_of[-1] >= 0:
            tour = np.roll(tour, -int(np.argmax(tour == self.city_of[0])))
        rank = np.empty(self.m, np.int64)
        rank[self.node_of[tour]] = np.arange(len(tour))
        free, missing = self._free()
        heap = [(int(rank[node]), int(node)) for node in np.flatnonzero(free)]
        heapq.heapify(heap)
        path = [0]
        while heap:
            path.append(heapq.heappop(heap)[1])
            for other in self._visit(path[-1], free, missing):
                heapq.heappush(heap, (int(rank[other]), other))
        return np.array([*path, self.m - 1], np.int32)

    def excess(self, path: NDArray[np.int32]) -> float:
        """Return the upper quartile, in units, of the excess of path edges over the shortest edge out of their node."""
        here = path[:-1]
        more = self.cost[here, path[1:]] - self.cost[here, self.nexts[0][here, 0]].astype(np.int64)
        return max(1.0, float(np.quantile(more, 0.75)))

    def greedy_path(self) -> NDArray[np.int32]:
        """Return the path (m,) that always visits the nearest node that precedence allows."""
        free, missing = self._free()
        path = [0]
        while len(path) < self.m - 1:
            nodes = np.flatnonzero(free)
            path.append(int(nodes[self.cost[path[-1], nodes].argmin()]))
            self._visit(path[-1], free, missing)
        return np.array([*path, self.m - 1], np.int32)

    def _free(self) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
        missing = np.diff(self.before[0]).astype(np.int64)
        free = missing == 0
        free[[0, -1]] = False
        return free, missing

    def _visit(self, node: int, free: NDArray[np.bool_], missing: NDArray[np.int64]) -> list[int]:
        """Mark a node as visited; return the nodes whose predecessors are now all visited."""
        free[node] = False
        begin, items = self.after
        others = items[begin[node] : begin[node + 1]]
        missing[others] -= 1
        now = others[missing[others] == 0]
        free[now] = True
        return [int(other) for other in now]


def make_model(instance: ListedInstance, k: int | None = None) -> PathModel:
    """Return the model of a problem with precedence; k candidates (None: 16)."""
    constraints = instance.constraints
    assert constraints is not None
    n = instance.n
    first, last = constraints.first, constraints.home if constraints.closed else constraints.end
    inner = np.array([city for city in range(n) if city not in (first, last)], np.int64)
    city_of = np.concatenate([[-1 if first is None else first], inner, [-1 if last is None else last]])
    m = len(city_of)
    leaves, enters = np.full((2, n), -1)  # nodes of each city: two for the first city of a closed tour
    real = np.flatnonzero(city_of >= 0)
    leaves[city_of[real[::-1]]], enters[city_of[real]] = real[::-1], real
    cost, unit = _costs(instance, constraints, city_of, leaves, enters)
    pairs = leaves[constraints.precedence]
    pairs = pairs[((pairs > 0) & (pairs < m - 1)).all(axis=1)]
    order = order_of(pairs, m)
    possible = _possible(order.before, order.direct)
    nexts, previous = _nearest(cost, possible, k), _nearest(cost.T, possible.T, k)
    return PathModel(
        instance,
        city_of,
        leaves,
        unit,
        cost,
        np.ascontiguousarray(cost.T),
        _lists(order.direct),
        _lists(order.direct.T),
        nexts,
        previous,
    )


def _costs(
    instance: ListedInstance,
    constraints: TourConstraints,
    city_of: NDArray[np.int64],
    leaves: NDArray[np.int64],
    enters: NDArray[np.int64],
) -> tuple[NDArray[np.int32], float]:
    """Return costs (m, m) in whole units, and the units per unit of distance.

    A tour leaves city i from node leaves[i] and reaches it at node enters[i].
    """
    comparable = ranked(instance)
    given = np.zeros((len(city_of), len(city_of)))
    real = np.flatnonzero(city_of >= 0)
    cities = city_of[real]
    given[np.ix_(real, real)] = comparable.distance(cities[:, None], cities)
    np.fill_diagonal(given, 0.0)
    given[-1], given[:, 0], given[0, -1] = 0.0, 0.0, np.inf  # no path uses these
    allowed = np.isfinite(given)
    longest = float(np.where(allowed, given, 0.0).max(axis=1).sum())  # no path is longer
    exact = comparable.integral and longest <= _MOST_UNITS
    unit = 1.0 if exact or longest == 0.0 else _MOST_UNITS / longest
    far = int(longest * unit) + len(city_of)
    cost = np.where(allowed, np.rint(np.where(allowed, given, 0.0) * unit), far).astype(np.int64)
    for i, j in constraints.fixed:
        cost[leaves[i], enters[j]] -= far
        if not constraints.directed:
            cost[leaves[j], enters[i]] -= far
    return cost.astype(np.int32), unit


def _possible(before: NDArray[np.bool_], direct: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return a mask (m, m) of possible edges: between nodes without precedence, or to a direct successor."""
    possible = ~before & ~before.T | direct
    np.fill_diagonal(possible, False)
    possible[:, 0] = possible[-1] = possible[0, -1] = False
    possible[0, 1:-1] = ~before[:, 1:-1].any(axis=0)
    possible[1:-1, -1] = ~before[1:-1].any(axis=1)
    return possible


def _nearest(
    cost: NDArray[np.int32], possible: NDArray[np.bool_], k: int | None
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    k = min(_CANDIDATES if k is None else k, len(cost) - 1)
    key = np.where(possible, cost.astype(np.int64), _MOST_UNITS * 4)
    lists = np.argsort(key, axis=1, kind="stable")[:, :k].astype(np.int32)
    return np.ascontiguousarray(lists), np.minimum(possible.sum(axis=1), k).astype(np.int32)


def _lists(related: NDArray[np.bool_]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    begin = np.concatenate([[0], related.sum(axis=1).cumsum()])
    return begin.astype(np.int32), np.nonzero(related)[1].astype(np.int32)
