"""The archive: the tours of the front and, of two objectives, those that few of its members dominate."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.pareto.nd_tree import NDTree, make_tree, undominated, update
from pymoo_gpuaco.pareto.seen import Seen
from pymoo_gpuaco.pareto.stairs import rank_rows, ranks, stairs_of
from pymoo_gpuaco.pareto.thinning import least_missed

#: of two objectives, a tour stays in the archive while no more members of the front dominate it
MOST_RANK = 8
_GONE = MOST_RANK + 1
_FIRST_ROOM = 1024
_FEW_CITIES = 300  # of more, tours that members dominate would fill the memory before anybody looked at them
_SPARE = 8  # the front may outgrow its size by this part of it before members go


class Archive:
    """Tours of n cities and their k lengths; the front is what no other dominates, each of its lengths once.

    Attributes
    ----------
    count : rows of the arrays below that are in use, m; some are of tours that have gone.
    tours : (.., n) whole numbers of 16 bits where cities fit, else of 32.
    lengths : (.., k)
    rank : (.., ) how many members of the front dominate each; 0 for its members, ``MOST_RANK`` + 1 for what has gone.
    looked : (.., ) how far the search has looked at each.
    front : (f,) rows of its members, in order of the first objective, then of the second and so on.
    added : members that have joined the front so far.
    dropped : members that ``size`` has left no room for so far.
    numbered : how many times rows have got other numbers.
    """

    def __init__(self, n: int, k: int, unit: NDArray[np.float64], size: int) -> None:
        self.n, self.k, self.size = n, k, size
        self.seen = Seen(unit)
        self._most_rank = MOST_RANK if n <= _FEW_CITIES else 0
        self.count = self.added = self.dropped = 0
        self.numbered = 0
        kind: Any = np.uint16 if n <= 1 << 16 else np.int32
        self.tours: NDArray[Any] = np.empty((_FIRST_ROOM, n), kind)
        self.lengths = np.empty((_FIRST_ROOM, k))
        self.rank = np.zeros(_FIRST_ROOM, np.int16)
        self.looked = np.zeros(_FIRST_ROOM, np.int16)
        self.front = np.empty(0, np.intp)
        self._tree: NDTree | None = None

    @property
    def points(self) -> NDArray[np.float64]:
        """Lengths (f, k) of the front."""
        return self.lengths[self.front]

    @property
    def tree(self) -> NDTree:
        """The front of more than two objectives, as compiled code asks it; of two, one without points."""
        if self._tree is None and self.k == 2:
            self._tree = make_tree(0, 64, 2)
        elif self._tree is None:
            self._update_front(self.count)
        assert self._tree is not None
        return self._tree

    def best(self) -> NDArray[np.intp]:
        """Rows (k,) of the shortest tour by each objective; of equal ones the one shortest by the next objectives."""
        points, best = self.points, []
        for q in range(self.k):
            least = np.flatnonzero(points[:, q] == points[:, q].min())
            order = np.roll(np.arange(self.k), -q)[::-1]
            best.append(self.front[least[np.lexsort(points[least][:, order].T)[0]]])
        return np.array(best)

    def members(self) -> NDArray[np.intp]:
        """Rows of the front as it is handed out: at most ``size``."""
        over = len(self.front) - self.size
        return self.front if over <= 0 else np.setdiff1d(self.front, self._least(over), assume_unique=True)

    def kept(self) -> NDArray[np.bool_]:
        """Which of the rows in use (m,) are of tours that have not gone."""
        return self.rank[: self.count] != _GONE

    def rows_of(self, points: NDArray[np.float64]) -> NDArray[np.intp]:
        """Rows of the front that have one of the lengths (e, k)."""
        return self.front[_are_among(self.points, points)]

    def on_front(self, lengths: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Which of lengths (e, k) a tour of the front has."""
        return _are_among(lengths, self.points)

    # ---- what comes and goes

    def worth(
        self, lengths: NDArray[np.float64], ended: Callable[[], bool] = lambda: False
    ) -> NDArray[np.bool_]:
        """Which of lengths (e, k) may stay, if all are taken in; nobody looks at the others.

        Of many by more than two objectives only the first are, where ``ended`` says that there is no time for more.
        """
        if not len(lengths):
            return np.ones(0, bool)
        if self.k > 2:
            return undominated(lengths, ended)
        points = np.concatenate([self.points, lengths])
        stairs = stairs_of(points)
        worth = ranks(points[stairs], lengths) <= self._most_rank
        new = stairs[stairs >= len(self.front)] - len(self.front)
        worth[new] = True  # a member counts itself, and no other
        return np.asarray(worth)

    def add(self, tours: NDArray[Any], lengths: NDArray[np.float64]) -> NDArray[np.intp]:
        """Take in tours (e, n) and their lengths (e, k); return the rows of those that are members of the front.

        Lengths that have been met before are passed over, and the first of equal ones is taken.
        """
        new = self.seen.add(lengths)
        first, end = self.count, self.count + int(new.sum())
        self._make_room(end)
        self.tours[first:end], self.lengths[first:end] = tours[new], lengths[new]
        self.looked[first:end], self.rank[first:end] = 0, _GONE
        self.count = end
        self._update_front(first)
        rows = self.front[self.front >= first]
        joined, numbered = self.lengths[rows], self.numbered
        self.added += len(rows)
        if len(self.front) > self.size + self.size // _SPARE:
            self._shrink()
        if 2 * int(self.kept().sum()) < self.count:
            self._compact()
        return rows if self.numbered == numbered else self.rows_of(joined)

    def _update_front(self, first: int) -> None:
        """Find the front and the ranks, after rows from ``first`` on have come."""
        lengths = self.lengths[: self.count]
        if self.k == 2:
            # what has left the front, others dominate for ever
            rows = np.concatenate([self.front if first else self.front[:0], np.arange(first, self.count)])
            self.front = rows[stairs_of(lengths[rows])]
            joined = lengths[self.front[self.front >= first]]
            rank = self.rank[: self.count]
            rank_rows(lengths[self.front], joined, lengths, first, self._most_rank, _GONE, rank)
            rank[self.front] = 0
            return
        kept = self.rank[: self.count] == 0
        offered = np.ones(self.count, bool)
        offered[:first] = kept[:first]
        tree = self._tree
        if tree is None or len(tree.follows) < self.count:
            tree, first = self._plant(len(self.rank)), 0
        while (at := update(tree, self.lengths, first, self.count, offered, kept)) < self.count:
            offered[:at] = kept[:at]
            tree, first = self._plant(2 * len(tree.held)), 0  # it had no room for more nodes
        self.rank[: self.count] = np.where(kept, 0, _GONE)
        rows = np.flatnonzero(kept)
        self.front = rows[np.lexsort(lengths[rows, ::-1].T)]

    def _plant(self, nodes: int) -> NDTree:
        """Begin with an empty tree, to which all rows are to be offered that may be of the front."""
        self._tree = make_tree(len(self.rank), nodes, self.k)
        return self._tree

    def _make_room(self, rows: int) -> None:
        while rows > len(self.rank):
            for name in ("tours", "lengths", "rank", "looked"):
                old = getattr(self, name)
                new = np.empty((2 * len(old), *old.shape[1:]), old.dtype)
                new[: self.count] = old[: self.count]
                setattr(self, name, new)

    def _least(self, many: int) -> NDArray[np.intp]:
        """Rows of so many members of the front without which it loses least; the best by each objective stay."""
        left = self.front
        return left[least_missed(self.lengths[left], np.isin(left, self.best()), many)]

    def _shrink(self) -> None:
        """Let members of the front go until ``size`` are left."""
        least = self._least(len(self.front) - self.size)
        self.dropped += len(least)
        self.rank[least] = _GONE
        rank = self.rank[: self.count]
        rank[rank > 0] = _GONE  # some of these would take the places of those that go
        self._compact()

    def restore(
        self,
        tours: NDArray[Any],
        lengths: NDArray[np.float64],
        looked: NDArray[np.int16],
        kept: NDArray[np.bool_],
        seen: Seen,
    ) -> None:
        """Take over the rows (m, ..) of another archive, of which ``kept`` have not gone."""
        self.seen, self.count, m = seen, 0, len(tours)
        self._make_room(m)
        self.tours[:m], self.lengths[:m], self.looked[:m] = tours, lengths, looked
        self.rank[:m] = np.where(kept, 0, _GONE)
        self.count, self._tree = m, None
        self._update_front(0)

    def _compact(self) -> None:
        """Forget what has gone."""
        kept = self.kept()
        rows = np.flatnonzero(kept)
        for array in (self.tours, self.lengths, self.rank, self.looked):
            array[: len(rows)] = array[rows]
        self.count = len(rows)
        self.numbered += 1
        if self.k == 2:
            self._update_front(0)
        else:  # what is left is the front, and its tree is planted when somebody asks for it
            self.front, self._tree = (np.cumsum(kept) - 1)[self.front[kept[self.front]]], None


def _are_among(points: NDArray[np.float64], others: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which rows of points (e, k) are among other points (f, k), to the last bit."""
    if not (len(points) and len(others)):
        return np.zeros(len(points), bool)
    known = {row.tobytes() for row in others}
    return np.array([row.tobytes() in known for row in points])
