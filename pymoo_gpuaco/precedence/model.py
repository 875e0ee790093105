"""Model of a problem with precedence constraints: the shortest path of m nodes, from node 0 to node m - 1.

A node is a city or a chain of fixed edges. A chain that may be passed in both directions is two nodes, its ends, with
an edge far below 0 between them. A closed tour ends at a copy of its first city. A path without a given first or last
city begins or ends at an additional node at distance 0 from all others.

Costs are whole units. The cost of an edge of infinite length is above the length of any path. Edges longer than the
shortest path so far cost as much as that path, so that a few very long edges do not make the unit coarse.
"""

from __future__ import annotations

import functools
import heapq
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.candidates.listed import ListedInstance
from pymoo_gpuaco.memetic.units import MOST_PATH_UNITS, path_units
from pymoo_gpuaco.precedence.nodes import PathNodes, path_nodes
from pymoo_gpuaco.problems.constraints import Order, order_of
from pymoo_gpuaco.problems.symmetric import ranked
from pymoo_gpuaco.runtime.compiled import Int32_1d, Int32_2d, struct

__all__ = ["Chains", "PathModel", "Round", "make_model"]

# Ratio of the longest to the median distance above which annealing begins with the largest excess of an edge and ends
# with small ones; the ratio is 2 to 4 for random places and for uniform distances. Median of at most this sample.
_WIDE, _SAMPLE = 20.0, 100_000
# Units are refined if they become at least this much finer.
_LEAST_REFINEMENT = 4.0
_CANDIDATES = 16  # edges from which trials draw, out of each node and into each node
SHORT_STRETCH = 50  # maximum nodes of a stretch in three of four trials; the others have no limit

#: -log(u) at the centres of 4,096 equal parts of (0, 1): thresholds of the Metropolis rule for longer paths
THRESHOLDS = -np.log((np.arange(4096) + 0.5) / 4096.0)


class Round(NamedTuple):
    """Arguments of one call of a device."""

    key: int  # in [0, 2**64)
    trials: int  # per chain
    temperatures: NDArray[np.float64]  # (ceil(trials / 256),) in units


class Excess(NamedTuple):
    """Excess of the edges of a path over the shortest ones; three equal numbers unless the model is ``wide``."""

    low: float  # lower quartile
    usual: float  # upper quartile
    high: float  # maximum


class Chains(NamedTuple):
    """Annealed paths: c chains of m nodes."""

    paths: NDArray[np.int32]  # (c, m)
    best: NDArray[np.int32]  # (c, m) shortest path of each chain
    lengths: NDArray[np.int64]  # (c, 2) of ``paths`` and ``best``, in units

    @property
    def shortest(self) -> int:
        """Length of the shortest path, in units."""
        return int(self.lengths[:, 1].min())


@struct
class PathArrays(NamedTuple):
    """Arrays of a `PathModel`."""

    cost: Int32_2d
    cost_to: Int32_2d
    after_begin: Int32_1d
    after: Int32_1d
    before_begin: Int32_1d
    before: Int32_1d
    nexts: Int32_2d
    n_nexts: Int32_1d
    previous: Int32_2d
    n_previous: Int32_1d


@dataclass(frozen=True)
class PathModel:
    """Nodes, costs and precedence of a problem; compiled code reads ``arrays``."""

    instance: ListedInstance
    comparable: ListedInstance  # with `ranked` distances, those of the costs
    nodes: PathNodes
    order: Order  # precedence of the nodes
    unit: float  # units per unit of distance
    exact: bool  # whether no cost is rounded
    far: int  # cost of an edge of infinite length; a link costs as much less than nothing
    maxima: NDArray[np.float64]  # (m,) longest allowed edge from each node, in units of distance
    inner: float  # length of the edges within nodes
    wide: bool  # whether distances are of very different magnitude
    cost: NDArray[np.int32]  # (m, m) in units; row: from, column: to
    cost_to: NDArray[np.int32]  # (m, m) transpose of ``cost``
    least: NDArray[np.int64]  # (m,) least cost of an edge from each node that is not fixed
    # (begin, items): items[begin[v] : begin[v + 1]] are the direct successors of node v
    after: tuple[NDArray[np.int32], NDArray[np.int32]]
    before: tuple[NDArray[np.int32], NDArray[np.int32]]  # the same for direct predecessors
    # (m, k) nearest nodes that may follow each node, and their numbers (m,)
    nexts: tuple[NDArray[np.int32], NDArray[np.int32]]
    previous: tuple[NDArray[np.int32], NDArray[np.int32]]  # the same for nodes that may precede

    @property
    def m(self) -> int:
        """Number of nodes."""
        return self.nodes.m

    @functools.cached_property
    def arrays(self) -> PathArrays:
        """All arrays that compiled code reads."""
        return PathArrays(self.cost, self.cost_to, *self.after, *self.before, *self.nexts, *self.previous)

    def lengths(self, paths: NDArray[np.int32]) -> NDArray[np.int64]:
        """Return the lengths (c,) of paths (c, m) in units."""
        return self.cost[paths[:, :-1], paths[:, 1:]].sum(axis=1, dtype=np.int64)

    def chains(self, paths: NDArray[np.int32]) -> Chains:
        """Return chains that start with paths (c, m)."""
        return self.measured(paths, paths.copy())

    def measured(self, paths: NDArray[np.int32], best: NDArray[np.int32]) -> Chains:
        """Return chains of paths (c, m) and their best paths (c, m)."""
        return Chains(paths, best, np.stack([self.lengths(paths), self.lengths(best)], axis=1))

    def distances(self, lengths: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return lengths (c,) of paths with all links, in units, as lengths of tours."""
        return (lengths + self.nodes.n_links * self.far) / self.unit + self.inner

    def distance(self, path: NDArray[np.int32]) -> float:
        """Return the length of the edges between nodes, not rounded; infinity if a constraint is violated."""
        linked = self.cost[path[:-1], path[1:]] < 0
        lengths = _distances(self.comparable, self.nodes, path[:-1], path[1:])
        lengths[linked] = 0.0
        return float(lengths.sum()) if int(linked.sum()) == self.nodes.n_links else np.inf

    def refined(self, longest: float) -> PathModel:
        """Return the model with finer units, in which longer edges cost ``longest``; itself if it gains little."""
        if self.exact or not np.isfinite(longest):
            return self
        unit, exact = path_units(self.comparable.integral, float(np.minimum(self.maxima, longest).sum()))
        if unit < _LEAST_REFINEMENT * self.unit and not exact:
            return self
        return _model(self.comparable, self.instance, self.nodes, self.order, self.nexts[0].shape[1], longest)

    def tour(self, path: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return a path (m,) as a tour (n,) of the problem."""
        return self.nodes.tour(path)

    def path(self, tour: NDArray[np.integer]) -> NDArray[np.int32]:
        """Return the path (m,) that visits the cities of a tour (n,) in order, each as soon as precedence allows."""
        rank = self.nodes.ranks(tour)
        free, missing = self._free()
        heap = [(float(rank[node]), int(node)) for node in np.flatnonzero(free)]
        heapq.heapify(heap)
        path = [0]
        while heap:
            path.append(heapq.heappop(heap)[1])
            for other in self._visit(path[-1], free, missing):
                heapq.heappush(heap, (float(rank[other]), other))
        return np.array([*path, self.m - 1], np.int32)

    def excess(self, path: NDArray[np.int32]) -> Excess:
        """Return the excess of path edges over the shortest edge out of their node; forbidden edges do not count."""
        cost = self.cost[path[:-1], path[1:]]
        counted = cost >= 0  # links do not
        cost, least = cost[counted], self.least[path[:-1]][counted]
        more = np.maximum(cost - least, 0)
        low, usual = np.maximum(1.0, np.quantile(more, (0.25, 0.75)))
        high = max(1.0, float(more[cost < self.far].max(initial=0)))
        if not self.wide:
            return Excess(float(usual), float(usual), float(usual))
        return Excess(float(low), float(usual), high)

    def greedy_path(self) -> NDArray[np.int32]:
        """Return the path (m,) that always visits the nearest node that precedence allows."""
        free, missing = self._free()
        path = [0]
        while free.any():
            nodes = np.flatnonzero(free)
            path.append(int(nodes[self.cost[path[-1], nodes].argmin()]))
            self._visit(path[-1], free, missing)
            free[self.nodes.sides] = False  # the other one comes last
        others = [side for side in self.nodes.sides if side not in path]
        return np.array([*path, *others, self.m - 1], np.int32)

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
    nodes = path_nodes(constraints, instance.n)
    order = order_of(nodes.pairs(constraints.precedence), nodes.m)
    return _model(ranked(instance), instance, nodes, order, _CANDIDATES if k is None else k, np.inf)


def _model(
    comparable: ListedInstance,
    instance: ListedInstance,
    nodes: PathNodes,
    order: Order,
    k: int,
    longest: float,
) -> PathModel:
    """Return the model in which edges longer than ``longest`` cost as much; ``comparable``: see `ranked`."""
    m = nodes.m
    every = np.arange(m)
    given = _distances(comparable, nodes, every[:, None], every)
    np.fill_diagonal(given, 0.0)
    given[-1], given[:, 0] = 0.0, 0.0  # no path uses these
    if m > 2:
        given[0, -1] = np.inf
    allowed = np.isfinite(given)
    maxima = np.where(allowed, given, 0.0).max(axis=1)
    total = float(np.minimum(maxima, longest).sum())  # no path is longer
    unit, exact = path_units(comparable.integral, total)
    far = int(total * unit) + m
    lengths = np.minimum(np.where(allowed, given, 0.0), longest)
    cost = np.where(allowed, np.rint(lengths * unit), far).astype(np.int64)
    possible = _possible(order.before, order.direct)
    plain = np.where(possible, cost, 4 * MOST_PATH_UNITS)
    i, j = nodes.links.T
    plain[i, j] = plain[j, i] = 4 * MOST_PATH_UNITS
    ends = nodes.twin[i] == j  # of a chain, either way
    cost[i, j] = -far
    cost[j[ends], i[ends]] = -far
    ordered = cost.astype(np.int32)
    a, b = nodes.inner.T
    return PathModel(
        instance,
        comparable,
        nodes,
        order,
        unit,
        exact,
        far,
        maxima,
        float(instance.distance(a, b).sum()) if len(a) else 0.0,
        bool(maxima.max() > _WIDE * _median(given[allowed & (given > 0.0)])),
        ordered,
        np.ascontiguousarray(ordered.T),
        plain.min(axis=1),
        _lists(order.direct),
        _lists(order.direct.T),
        _nearest(ordered, possible, k),
        _nearest(ordered.T, possible.T, k),
    )


def _distances(
    instance: ListedInstance, nodes: PathNodes, i: NDArray[np.integer], j: NDArray[np.integer]
) -> NDArray[np.float64]:
    """Return the distances from nodes i to nodes j."""
    leave, enter = nodes.leave[i], nodes.enter[j]
    lengths = instance.distance(np.maximum(leave, 0), np.maximum(enter, 0))
    return np.where((leave < 0) | (enter < 0), 0.0, lengths)


def _median(lengths: NDArray[np.float64]) -> float:
    """Return the median of a sample of lengths (m,), or 0."""
    return float(np.median(lengths[:: 1 + len(lengths) // _SAMPLE])) if len(lengths) else 0.0


def _possible(before: NDArray[np.bool_], direct: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return a mask (m, m) of possible edges: between nodes without precedence, or to a direct successor."""
    possible = ~before & ~before.T | direct
    np.fill_diagonal(possible, False)
    possible[:, 0] = possible[-1] = possible[0, -1] = False
    if len(before) == 2:
        possible[0, 1] = True
    possible[0, 1:-1] = ~before[:, 1:-1].any(axis=0)
    possible[1:-1, -1] = ~before[1:-1].any(axis=1)
    return possible


def _nearest(
    cost: NDArray[np.int32], possible: NDArray[np.bool_], k: int
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    k = min(k, len(cost) - 1)
    key = np.where(possible, cost.astype(np.int64), MOST_PATH_UNITS * 4)
    lists = np.argsort(key, axis=1, kind="stable")[:, :k].astype(np.int32)
    return np.ascontiguousarray(lists), np.minimum(possible.sum(axis=1), k).astype(np.int32)


def _lists(related: NDArray[np.bool_]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    begin = np.concatenate([[0], related.sum(axis=1).cumsum()])
    return begin.astype(np.int32), np.nonzero(related)[1].astype(np.int32)
