"""Transformation of every kind of tour into what the search handles: a symmetric round trip with fixed edges.

* Asymmetric: each city becomes two, one where tours enter it and one where they leave it, joined by a fixed edge
  (R. Jonker and T. Volgenant, "Transforming asymmetric into symmetric traveling salesman problems", Operations Research
  Letters 2, 1983).
* A path: a dummy city at distance 0 from all others joins its ends. A fixed edge ties a given end to the dummy, or two
  given ends to each other.
* Fixed edges: cities inside a chain of them are left out, so that a city has at most one fixed edge.
* Forbidden edges are far longer than all others, see `reach`.
* Distances of very different magnitude, such as `sys.maxsize` for a missing road: in doubles, 1e18 + 100 loses the 100.
  The search gets smaller numbers that order tours in the same way. No number grows, so a lower bound on the length of
  all tours remains valid.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.problems.chains import chains_of
from pymoo_gpuaco.problems.constraints import UNCONSTRAINED, TourConstraints
from pymoo_gpuaco.problems.instance import Form, Instance
from pymoo_gpuaco.problems.matrix import blocks, largest_finite, levels_of
from pymoo_gpuaco.problems.metrics import Metric

Own = TypeVar("Own", bound=Instance)

_MOST_ORDERED = 50  # maximum cities for which a forbidden edge is longer than any tour of allowed edges
_FORBIDDEN_FACTOR = 8.0
# If edges above a gap have several lengths, the shortest becomes _GAP_FACTOR times as long as the longest edge below:
# tours that need such edges are ordered to 1e-6 of their length. Whole numbers up to _EXACT do not change.
_GAP_FACTOR, _EXACT = 2.0**24, 2.0**50


class SymmetricForm(NamedTuple):
    """A symmetric instance of s cities that represents a problem of n, with conversions of tours in both directions.

    A unit is a chain of fixed edges, a single city or the dummy; every tour passes it without interruption. In the
    instance it is one city, or two: its head and its tail.
    """

    instance: Instance
    first: NDArray[np.int64]  # (u + 1,) the cities of unit i are nodes[first[i] : first[i + 1]]
    nodes: NDArray[np.int64]  # cities of the problem, and n for the dummy, in the order from head to tail
    unit_of: NDArray[np.int64]  # (n,) or (n + 1,) unit of a city of the problem
    head: NDArray[np.int64]  # (u,) city of the instance
    tail: NDArray[np.int64]  # (u,)
    constraints: TourConstraints
    n: int
    constant: float  # length of a tour of the problem minus that in the instance

    def to_problem(self, tour: NDArray[np.integer]) -> NDArray[np.int32]:
        """Convert a tour (s,) of the instance to the problem (n,); it begins at the start of a path."""
        unit_of, is_head = np.empty(self.instance.n, np.int64), np.zeros(self.instance.n, bool)
        unit_of[self.head] = unit_of[self.tail] = np.arange(len(self.head))
        is_head[self.head] = True
        units = unit_of[tour]
        if len(self.head) > 1 and units[0] == units[-1]:
            tour, units = np.roll(tour, 1), np.roll(units, 1)
        is_first = np.append(True, units[1:] != units[:-1])
        sequence, forward = units[is_first], is_head[tour[is_first]]
        given = self.constraints.end if self.constraints.start is None else self.constraints.start
        backward = given is not None and not forward[sequence == self.unit_of[given]][0]
        if self.constraints.directed:  # every tour passes all units from head to tail
            backward = not forward[0]
        if backward:
            sequence, forward = sequence[::-1], ~forward[::-1]
        sizes = np.diff(self.first)[sequence]
        begin = np.where(forward, self.first[sequence], self.first[sequence + 1] - 1)
        step = np.arange(int(sizes.sum())) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        cities = self.nodes[np.repeat(begin, sizes) + step * np.repeat(np.where(forward, 1, -1), sizes)]
        return self._from_start(cities).astype(np.int32)

    def _from_start(self, cities: NDArray[np.int64]) -> NDArray[np.int64]:
        """Rotate a round trip to the start of the path and remove the dummy."""
        if self.constraints.start is not None:
            cities = np.roll(cities, -int(np.argmax(cities == self.constraints.start)))
        elif not self.constraints.closed:
            last = self.n if len(self.unit_of) > self.n else self.constraints.end
            cities = np.roll(cities, -int(np.argmax(cities == last)) - 1)
        return cities[cities < self.n]

    def to_instance(self, tour: NDArray[np.integer]) -> NDArray[np.int32]:
        """Convert a tour (n,) of the problem to the instance (s,).

        If it breaks constraints, each unit takes the position of the first of its cities.
        """
        order = np.append(tour, self.n) if len(self.unit_of) > self.n else np.asarray(tour)
        units = self.unit_of[order]
        seams = np.flatnonzero(units != np.roll(units, 1))
        if len(seams):
            order, units = np.roll(order, -seams[0]), np.roll(units, -seams[0])
        position = np.empty(len(order), np.int64)
        position[order] = np.arange(len(order))
        begins = np.full(len(self.head), len(order))
        np.minimum.at(begins, units, np.arange(len(order)))
        sequence = np.argsort(begins)
        first, last = self.nodes[self.first[:-1]], self.nodes[self.first[1:] - 1]
        forward = (position[first] <= position[last]) | self.constraints.directed
        ends = np.stack(
            [np.where(forward, self.head, self.tail), np.where(forward, self.tail, self.head)], axis=1
        )
        two = (self.head != self.tail)[sequence]
        present = np.stack([np.ones(len(sequence), bool), two], axis=1)
        return ends[sequence][present].astype(np.int32)


def form_to_search(instance: Instance) -> SymmetricForm | None:
    """Return the form for a search, with `ranked` distances, or None if that is the instance itself."""
    distances = ranked(instance)
    return symmetric_form(distances, plain=distances is not instance)


def symmetric_form(instance: Instance, plain: bool = False) -> SymmetricForm | None:
    """Return the form of an instance, or None if it is a symmetric round trip without constraints.

    plain : whether to return a form of these too.
    """
    if instance.symmetric and instance.constraints is None and not plain:
        return None
    n = instance.n
    constraints = (instance.constraints or UNCONSTRAINED)._replace(directed=not instance.symmetric)
    edges = [(int(i), int(j)) for i, j in constraints.fixed]
    start, end, has_dummy = constraints.start, constraints.end, False
    if not constraints.closed:
        if start is not None and end is not None:
            edges.append((end, start))
        elif instance.symmetric or (start is None and end is None):
            has_dummy = True
            edges += [(n, start)] if start is not None else [(end, n)] if end is not None else []
    first, nodes = chains_of(edges, n + has_dummy, constraints.directed)
    unit_of = np.empty(n + has_dummy, np.int64)
    unit_of[nodes] = np.repeat(np.arange(len(first) - 1), np.diff(first))
    ends = nodes[first[:-1]], nodes[first[1:] - 1]
    if constraints.directed:
        made = _doubled(instance, constraints, *ends)
        head = 2 * np.arange(len(first) - 1)
        tail = head + 1
    else:
        made, head, tail = _with_partners(instance, has_dummy, *ends)
    inner = np.ones(len(nodes), bool)
    inner[first[1:] - 1] = False
    i, j = nodes[:-1][inner[:-1]], nodes[1:][inner[:-1]]
    real = (i < n) & (j < n) & ~((i == end) & (j == start))
    constant = float(instance.distance(i[real], j[real]).sum()) if real.any() else 0.0
    joined = head != tail
    constant -= float(made.distance(head[joined], tail[joined]).sum())
    return SymmetricForm(made, first, nodes, unit_of, head, tail, constraints, n, constant)


def _with_partners(
    instance: Instance, has_dummy: bool, first: NDArray[np.int64], last: NDArray[np.int64]
) -> tuple[Instance, NDArray[np.int64], NDArray[np.int64]]:
    """Return a symmetric instance of the ends of units, and the numbers of heads and tails in it."""
    n = instance.n
    ends = np.unique(np.concatenate([first, last]))
    number = np.full(n + 1, -1)
    number[ends] = np.arange(len(ends))
    head, tail = number[first], number[last]
    partner = np.full(len(ends), -1, np.int32)
    joined = head != tail
    partner[head[joined]], partner[tail[joined]] = tail[joined], head[joined]
    cities = ends[ends < n]
    whole = len(cities) == n
    if instance.metric == Metric.EXPLICIT:
        matrix, far = instance.matrix, 0.0
        if np.isinf(matrix).any():
            far = reach(n) * (largest_finite(matrix) or 1.0)
            matrix = np.minimum(matrix, far)
        if not whole:
            matrix = np.ascontiguousarray(matrix[np.ix_(cities, cities)])
        if has_dummy:
            matrix, has_dummy = np.pad(matrix, (0, 1)), False
        made = replace(instance, matrix=matrix)
    else:
        far, coords = 0.0, instance.coords if whole else np.ascontiguousarray(instance.coords[cities])
        if has_dummy:
            coords = np.vstack([coords, [[np.nan, np.nan, 0.0]]])
        made = replace(instance, coords=coords)
    form = Form(partner, False, has_dummy, far)
    return replace(made, constraints=None, form=form), head, tail


def _doubled(
    instance: Instance, constraints: TourConstraints, first: NDArray[np.int64], last: NDArray[np.int64]
) -> Instance:
    """Return a symmetric instance with two cities per unit; its matrix has one row per unit."""
    n, units, matrix = instance.n, len(first), instance.matrix
    plain = units == n and constraints.closed
    if not plain:  # rows: last cities of units, where tours leave them; columns: first cities
        padded = np.pad(matrix, (0, 1))
        if not constraints.closed and constraints.start is not None and constraints.end is None:
            padded[:, constraints.start] = 0.0
        if not constraints.closed and constraints.end is not None and constraints.start is None:
            padded[constraints.end] = 0.0
        matrix = np.ascontiguousarray(padded[np.ix_(last, first)])
        np.fill_diagonal(matrix, 0.0)
    partner = np.arange(2 * units, dtype=np.int32) ^ 1
    far = reach(n) * (largest_finite(matrix) or 1.0)
    return replace(
        instance,
        matrix=matrix,
        symmetric=True,
        constraints=None,
        form=Form(partner, True, False, far),
    )


def reach(n: int) -> float:
    """Return the length of a forbidden edge between n cities, in units of the longest allowed edge.

    Up to 50 cities it is longer than any tour of allowed edges. Above, annealing would derive its temperature from such
    a length; there it is only so long that no exchange of a few edges gains by a forbidden one.
    """
    return 2.0 * n if n <= _MOST_ORDERED else _FORBIDDEN_FACTOR


def ranked(instance: Own) -> Own:
    """Return an instance whose tours have the same order by length, without needless gaps between distances.

    An entry of the matrix that is longer than a tour of all shorter ones becomes `reach` times the longest of them.
    If such entries have several lengths, they keep their ratio up to 50 cities, and do not change above. Without such
    entries, and for coordinates, the instance itself is returned.
    """
    if instance.metric != Metric.EXPLICIT:
        return instance
    matrix, n = instance.matrix, instance.n
    top, changed = 0.0, []
    for low, high in levels_of(matrix):
        factor = 1.0
        if top > 0.0 and low == high:
            factor = min(1.0, reach(n) * top / low)
        elif top > 0.0 and n <= _MOST_ORDERED and not (instance.integral and high <= _EXACT):
            factor = min(1.0, _GAP_FACTOR * top / low)
        if factor < 1.0:
            changed.append((low, high, factor))
        top = high * factor
    if not changed:
        return instance
    matrix = matrix.copy()
    for rows in blocks(n):
        block = matrix[rows]
        for low, high, factor in reversed(changed):
            level = (block >= low) & (block <= high)
            made = block[level] * factor
            block[level] = np.rint(made) if instance.integral else made
    return replace(instance, matrix=matrix)


def ranked_objectives(objectives: Sequence[Instance]) -> Sequence[Instance]:
    """Return objectives with `ranked` distances, so that the same tours dominate each other.

    Returns the objectives themselves if nothing changes, and above 50 cities, where ranked distances only order
    exchanges.
    """
    if objectives[0].n > _MOST_ORDERED:
        return objectives
    others = [ranked(instance) for instance in objectives]
    if all(other is instance for other, instance in zip(others, objectives, strict=True)):
        return objectives
    return others
