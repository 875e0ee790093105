"""Nodes of the paths of a search with precedence: cities, and chains of fixed edges.

A chain is one node if precedence or its edges give its direction. If not, it is two nodes, its ends, which a *link*
joins. Chains on both sides of the home city of a round trip are linked to the first and the last node, either way.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.problems.constraints import TourConstraints


@dataclass(frozen=True)
class PathNodes:
    """The m nodes of paths of n cities, from node 0 to node m - 1; -1 stands for no city."""

    enter: NDArray[np.int64]  # (m,) city at which a path reaches each node
    leave: NDArray[np.int64]  # (m,) city from which it leaves
    node_of: NDArray[np.int64]  # (n,) node of each city; of an undirected chain its first end
    twin: NDArray[np.int64]  # (m,) other end of an undirected chain, otherwise the node itself
    links: NDArray[np.int64]  # (e, 2) nodes that must be neighbours
    sides: NDArray[np.int64]  # nodes linked to both the first and the last node
    inner: NDArray[np.int64]  # (e, 2) fixed edges that every path with all links has
    home: int  # first city of a round trip, -1 for a path
    cities: NDArray[np.int32]  # cities of all nodes, each node in two ways
    # (2, m) cities of node v are cities[first[way, v]:][:size[way, v]]; way 1 is for a node behind ``behind`` or
    # before ``before``
    first: NDArray[np.int64]
    size: NDArray[np.int64]
    behind: NDArray[np.int64]  # (m,) a node, or -1
    before: NDArray[np.int64]

    @property
    def m(self) -> int:
        """Number of nodes."""
        return len(self.enter)

    @property
    def n_links(self) -> int:
        """Number of links of a path that has all."""
        return len(self.links) - len(self.sides)

    def tour(self, path: NDArray[np.integer]) -> NDArray[np.int32]:
        """Return a path (m,) as a tour (n,)."""
        own = np.asarray(path, np.int64)
        way = np.zeros(len(own), np.int64)
        way[1:] |= own[:-1] == self.behind[own[1:]]
        way[:-1] |= own[1:] == self.before[own[:-1]]
        first, size = self.first[way, own], self.size[way, own]
        step = np.arange(int(size.sum())) - np.repeat(np.cumsum(size) - size, size)
        return self.cities[np.repeat(first, size) + step]

    def ranks(self, tour: NDArray[np.integer]) -> NDArray[np.float64]:
        """Return numbers (m,) in the order in which a tour (n,) visits the nodes, with linked nodes side by side."""
        n = len(tour)
        if self.home >= 0:
            tour = np.roll(tour, -int(np.argmax(tour == self.home)))
        position = np.empty(n, np.int64)
        position[tour] = np.arange(n)
        rank = np.full(self.m, float(n))
        np.minimum.at(rank, self.node_of, position.astype(float))
        two = np.flatnonzero(self.twin > np.arange(self.m))
        other = self.twin[two]
        later = np.where(position[self.enter[two]] < position[self.enter[other]], other, two)
        rank[other] = rank[two]
        rank[later] += 0.5
        if len(self.sides):
            by_rank = self.sides[np.argsort(rank[self.sides])]
            behind_home = len(by_rank) == 2 or rank[by_rank[0]] <= n / 2
            rank[by_rank] = n
            rank[by_rank[:1]] = -1.0 if behind_home else n
        return rank

    def pairs(self, precedence: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the precedence (p, 2) of cities as that of nodes between the first and the last."""
        i, j = self.node_of[precedence].T
        apart = (i != j) & (np.minimum(i, j) > 0) & (np.maximum(i, j) < self.m - 1)
        i, j = i[apart], j[apart]
        all_pairs = [(a, b) for a in (i, self.twin[i]) for b in (j, self.twin[j])]
        return np.unique(np.hstack(all_pairs).T, axis=0) if len(i) else np.empty((0, 2), np.int64)


def path_nodes(constraints: TourConstraints, n: int) -> PathNodes:
    """Return the nodes of n cities with fixed edges and precedence."""
    chains = constraints.chains(n)
    ways: list[tuple[list[int], list[int]]] = []  # cities of each node
    ends: list[tuple[int, int]] = []
    links: list[tuple[int, int]] = []
    twin: list[int] = []
    behind: list[int] = []
    before: list[int] = []

    def add(
        enter: int, leave: int, usual: list[int], other: list[int], after: int = -1, ahead: int = -1
    ) -> int:
        ends.append((enter, leave))
        ways.append((usual, other))
        twin.append(len(twin))
        behind.append(after)
        before.append(ahead)
        return len(ends) - 1

    begin, finish = chains.begin, chains.finish
    add(-1, begin[-1] if begin else -1, begin, begin)
    for chain in chains.one_way:
        add(chain[0], chain[-1], chain, chain)
    for chain in chains.either_way:
        one = len(ends)
        add(chain[0], chain[0], chain[:-1], chain[:1], after=one + 1)
        add(chain[-1], chain[-1], chain[-1:], chain[:0:-1], ahead=one)
        twin[one], twin[one + 1] = one + 1, one
        links.append((one, one + 1))
    sides = [add(side[-1], side[-1], side[::-1], side, after=0) for side in chains.sides]
    visited = finish[:-1] if constraints.closed else finish
    last = add(finish[0] if finish else -1, -1, visited, visited)
    links += [edge for side in sides for edge in ((0, side), (side, last))]

    node_of = np.empty(n, np.int64)
    for node in reversed(range(len(ends))):  # the first end of two
        node_of[ways[node][0]] = node
    for node, other in enumerate(twin):
        if node < other:
            node_of[ways[other][1]] = node
    lists = [
        *chains.one_way,
        *chains.either_way,
        *([begin[0], *side] for side in chains.sides),
        begin,
        finish,
    ]
    inner = [edge for cities in lists for edge in pairwise(cities)]
    size = np.array([[len(way[number]) for way in ways] for number in range(2)], np.int64)
    enter, leave = np.array(ends, np.int64).T
    return PathNodes(
        enter,
        leave,
        node_of,
        np.array(twin, np.int64),
        np.array(links, np.int64).reshape(-1, 2),
        np.array(sides, np.int64),
        np.array(inner, np.int64).reshape(-1, 2),
        constraints.home if constraints.closed else -1,
        np.array([city for number in range(2) for way in ways for city in way[number]], np.int32),
        (np.cumsum(size.ravel()) - size.ravel()).reshape(2, -1),
        size,
        np.array(behind, np.int64),
        np.array(before, np.int64),
    )
