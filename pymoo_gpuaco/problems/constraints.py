"""Constraints of a tour: edges it must or must not use, the ends of a path, and precedence among cities."""

from __future__ import annotations

from collections.abc import Callable
from graphlib import CycleError, TopologicalSorter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pymoo_gpuaco.problems.chains import OrderedChains, ordered_chains

NO_EDGES = np.empty((0, 2), np.int64)

MOST_ORDERED = 5_000
"""Maximum cities of a problem with precedence: the transitive closure is an (n, n) matrix of bytes."""


class TourConstraints(NamedTuple):
    """The constraints of one problem of n cities."""

    # (e, 2) edges that must be used; where directed, from the first city to the second
    fixed: NDArray[np.int64]
    directed: bool  # whether edges have a direction
    closed: bool  # False: a path, whose last city is not joined to the first
    start: int | None  # first city of a path
    end: int | None  # last city of a path
    precedence: NDArray[np.int64] = NO_EDGES  # (p, 2) the first city comes before the second
    home: int = 0  # city from which the precedence of a round trip counts

    def check(self, n: int) -> None:
        """Raise ValueError if no tour can satisfy the constraints, naming the conflict."""
        from scipy.cluster.hierarchy import DisjointSet

        edges = [tuple(edge) for edge in self.fixed.tolist()]
        both_ends = self.start is not None and self.end is not None
        if both_ends:
            # the edge that would close the path counts as an edge of both ends
            edges.append((self.end, self.start))
        # of directed edges one leaves a city and one enters it, which are counted from n on
        allowed, entering = (1, n) if self.directed else (2, 0)
        used = np.zeros(entering + n, int)
        joined = DisjointSet({city for edge in edges for city in edge})
        for number, (i, j) in enumerate(edges):
            for city, end in ((i, i), (j, entering + j)):
                used[end] += 1
                if used[end] > allowed:
                    raise ValueError(
                        f"fixed_edges: ({i}, {j}) is one too many at city {city}, where a tour has two"
                    )
            closes = not joined.merge(i, j)
            if closes and not ((self.closed or both_ends) and number == n - 1):
                raise ValueError(f"fixed_edges: ({i}, {j}) closes a cycle that does not visit all {n} cities")
        one_end_alone = (self.start is None) != (self.end is None)
        for name, city, offset in (("start", self.start, entering), ("end", self.end, 0)):
            if city is not None and one_end_alone and used[offset + city] >= allowed:
                raise ValueError(f"fixed_edges: city {city} has too many of them to be the path's {name}")
        self._check_precedence(n)

    def _check_precedence(self, n: int) -> None:
        """Raise ValueError for precedence that no tour can satisfy."""
        if not len(self.precedence):
            return
        if n > MOST_ORDERED:
            raise ValueError(f"precedence allows at most {MOST_ORDERED} cities, got {n}")
        for name, city, column in (("start", self.first, 1), ("end", self.end, 0)):
            for i, j in self.precedence[self.precedence[:, column] == city][:1].tolist():
                raise ValueError(f"precedence: ({i}, {j}) contradicts {name}={city}")
        check_acyclic("precedence", self.precedence, n)
        if self.directed and len(self.fixed):
            inside = self.fixed[self.fixed[:, 1] != self.home] if self.closed else self.fixed
            check_acyclic("precedence with fixed_edges", np.concatenate([self.precedence, inside]), n)
        if len(self.fixed):
            chains = self.chains(n)
            first_of = np.arange(n)
            for chain in (chains.begin, *chains.one_way, *chains.either_way, chains.finish[:-1]):
                first_of[chain] = chain[:1]
            pairs = first_of[self.precedence]
            between = pairs[pairs[:, 0] != pairs[:, 1]]
            check_acyclic("precedence between chains of fixed_edges, named by one city,", between, n)

    def chains(self, n: int) -> OrderedChains:
        """Return the chains of fixed edges of n cities under ``precedence``; ValueError names a pair against them."""
        home = self.home if self.closed else None
        return ordered_chains(self.fixed, self.precedence, n, self.directed, home, self.start, self.end)

    @property
    def first(self) -> int | None:
        """First city of every tour, or None."""
        return self.home if self.closed else self.start

    def in_words(self, n_forbidden: int, named: Callable[[int], Any]) -> list[str]:
        """Describe the constraints: "3 fixed edges", "12 forbidden edges", "from 0 to 7"; ``named`` names an end."""
        edges = ((len(self.fixed), "fixed"), (n_forbidden, "forbidden"))
        parts = [f"{count} {kind} edge{'s' if count > 1 else ''}" for count, kind in edges if count]
        if len(self.precedence):
            parts.append(f"{len(self.precedence)} precedence pair{'s' * (len(self.precedence) > 1)}")
        both = (("from", self.start), ("to", self.end))
        ends = [f"{word} {named(city)}" for word, city in both if city is not None]
        return parts + [" ".join(ends)] * bool(ends)

    def violations(self, tour: NDArray[np.int64], lengths: NDArray[np.float64]) -> int:
        """Count the violations of a tour (n,); ``lengths`` are those of its edges, of a path without the closing one.

        Violations are missing fixed edges, edges of infinite length, wrong ends, and pairs of ``precedence`` in the
        wrong order.
        """
        n, count = len(tour), int(np.isinf(lengths).sum())
        position = np.empty(n, np.int64)
        position[tour] = np.arange(n)
        visit = (position - position[self.home]) % n if self.closed else position
        before, after = self.precedence.T
        count += int((visit[before] > visit[after]).sum())
        i, j = self.fixed.T
        step = position[j] - position[i] if self.directed else np.abs(position[j] - position[i])
        closing = (1 - n) if self.directed else n - 1  # the step of the edge from the last city to the first
        count += int(((step != 1) & ~(self.closed & (step == closing))).sum())
        return count + (self.start not in (None, tour[0])) + (self.end not in (None, tour[-1]))


UNCONSTRAINED = TourConstraints(NO_EDGES, False, True, None, None)
"""Constraints of a symmetric round trip without any."""


class Symmetry(NamedTuple):
    """Tours that count as equal: those of the same edges, length and violations."""

    first: int | None  # city to which round trips are rotated; None: no rotation
    reversible: bool  # whether a tour and its reverse are equal


def symmetry_of(symmetric: bool, constraints: TourConstraints | None) -> Symmetry:
    """Return the tours that count as equal, by the symmetry of the distances and the constraints."""
    kept = constraints or UNCONSTRAINED
    ordered = len(kept.precedence) > 0
    ends_differ = not kept.closed and (kept.start is not None or kept.end is not None)
    first = (kept.home if ordered else 0) if kept.closed else None
    return Symmetry(first, symmetric and not ordered and not ends_differ)


def violations_in_words(count: int) -> str:
    """Return the message that the best tour breaks ``count`` constraints."""
    broken = "1 constraint is" if count == 1 else f"{count} constraints are"
    return f"no tour with all fixed edges and without forbidden ones was found: {broken} broken"


def check_edges(name: str, edges: ArrayLike | None, n: int, ids: Any = ()) -> NDArray[np.int64]:
    """Return edges as (e, 2) cities. Raises TypeError or ValueError naming the parameter; ``ids`` are for a hint."""
    if edges is None:
        return NO_EDGES
    array: NDArray[Any] = np.asarray(edges)
    if array.size == 0:
        return NO_EDGES
    if array.dtype.kind not in "iu":
        raise TypeError(f"{name} must be pairs of city numbers, got dtype {array.dtype}")
    if array.ndim != 2 or array.shape[1] != 2:
        raise ValueError(f"{name} must be pairs of cities, of shape (e, 2), got shape {array.shape}")
    wrong = np.flatnonzero(((array < 0) | (array >= n)).any(axis=1) | (array[:, 0] == array[:, 1]))
    if len(wrong):
        i, j = array[wrong[0]].tolist()
        is_id = any(str(own) in map(str, (i, j)) for own in ids) and max(i, j) >= n
        hint = "; integers are positions: write ids as text" if is_id else ""
        raise ValueError(f"{name} must be pairs of different cities in [0, {n - 1}], got ({i}, {j}){hint}")
    return array.astype(np.int64)


def each_once(edges: NDArray[np.int64], directed: bool) -> NDArray[np.int64]:
    """Return edges (e, 2) without duplicates, in their order; unless ``directed``, (j, i) equals (i, j)."""
    i, j = (edges if directed else np.sort(edges, axis=1)).T
    number = i * (1 + edges.max(initial=0)) + j
    return edges[np.sort(np.unique(number, return_index=True)[1])]


class Order(NamedTuple):
    """The partial order of n nodes."""

    before: NDArray[np.bool_]  # (n, n) transitive closure: i must come before j
    direct: NDArray[np.bool_]  # (n, n) transitive reduction: pairs that follow from no others


def check_acyclic(what: str, pairs: NDArray[np.int64], n: int) -> list[int]:
    """Return the n cities in an order that satisfies all pairs (p, 2). Raises ValueError naming a cycle, if any."""
    before: dict[int, list[int]] = {city: [] for city in range(n)}
    for i, j in pairs.tolist():
        before[j].append(i)
    try:
        return list(TopologicalSorter(before).static_order())
    except CycleError as error:
        cycle = error.args[1]
        shown = [*cycle[:6], "..", cycle[-1]] if len(cycle) > 8 else cycle
        raise ValueError(
            f"{what} has the cycle {' -> '.join(map(str, shown))}: leave out one of its pairs"
        ) from None


def order_of(pairs: NDArray[np.int64], n: int) -> Order:
    """Return the closure and the reduction of acyclic pairs (p, 2) of n nodes."""
    rank = np.empty(n, np.int64)
    order = check_acyclic("precedence", pairs, n)
    rank[order] = np.arange(n)
    before, direct = np.zeros((n, n), bool), np.zeros((n, n), bool)
    by_first = pairs[np.lexsort((rank[pairs[:, 1]], pairs[:, 0]))]
    begin = np.searchsorted(by_first[:, 0], np.arange(n + 1))
    for city in reversed(order):
        row = before[city]
        for other in by_first[begin[city] : begin[city + 1], 1]:  # the earliest first
            if not row[other]:
                direct[city, other] = True
                row |= before[other]
                row[other] = True
    return Order(before, direct)
