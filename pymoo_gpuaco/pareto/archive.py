"""Archive: the tours of the front and, with two objectives, tours that few of its members dominate.

Tours of equal lengths by every objective are one member of a front, so a hash set of lengths identifies tours. Lengths
are compared at a resolution per objective, 1 for whole costs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from pymoo_gpuaco.pareto.front_2d import contributions, dominators, nondominated
from pymoo_gpuaco.pareto.nd_tree import NDTree, make_tree, offer, undominated
from pymoo_gpuaco.runtime.compiled import Bool_1d, Float64_1d, Float64_2d, UInt64_1d, compiled, inlined
from pymoo_gpuaco.runtime.state import State, stored_integers, stored_numbers, stored_tours
from pymoo_gpuaco.runtime.threads import thread_share

_FREE = np.uint64(0)
_ONE = np.uint64(1)
_MIX1, _MIX2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_STEP = np.uint64(0x9E3779B97F4A7C15)
_27, _30, _31 = np.uint64(27), np.uint64(30), np.uint64(31)
_WHOLE = 2.0**62  # lengths in units are reduced modulo this to fit 64 bits


@inlined
def key_of(lengths, unit):  # type: ignore[no-untyped-def]
    """Return the key of lengths (k,): a hash by steps of splitmix64 (Steele, Lea and Flood 2014), never 0."""
    h = _STEP
    for q in range(lengths.shape[0]):
        units = np.floor(lengths[q] / unit[q] + 0.5)
        if units >= _WHOLE:
            units %= _WHOLE
        h ^= np.uint64(np.int64(units))
        h += _STEP
        h = (h ^ (h >> _30)) * _MIX1
        h = (h ^ (h >> _27)) * _MIX2
        h ^= h >> _31
    return h if h != _FREE else _ONE


@inlined
def slot_of(slots, key):  # type: ignore[no-untyped-def]
    """Return the slot of a key in ``slots`` (a power of two), or the free slot for it."""
    mask = np.uint64(slots.shape[0] - 1)
    at = key & mask
    while slots[at] != _FREE and slots[at] != key:
        at = (at + _ONE) & mask
    return at


@compiled
def add_keys(slots: UInt64_1d, lengths: Float64_2d, unit: Float64_1d, new: Bool_1d) -> int:
    """Add the keys of lengths (m, k); set ``new`` (m,) to 1 at the first occurrence of each new key."""
    added = 0
    for i in range(lengths.shape[0]):
        key = key_of(lengths[i], unit)
        at = slot_of(slots, key)
        new[i] = slots[at] == _FREE
        if new[i]:
            slots[at] = key
            added += 1
    return added


@compiled
def _move_keys(old: UInt64_1d, slots: UInt64_1d) -> None:
    for i in range(old.shape[0]):
        if old[i] != _FREE:
            slots[slot_of(slots, old[i])] = old[i]


class Seen:
    """Growing hash set of lengths (k,); ``unit`` (k,) is the resolution."""

    def __init__(self, unit: NDArray[np.float64], slots: NDArray[np.uint64] | None = None) -> None:
        self.unit = unit
        self.slots = np.zeros(1 << 12, np.uint64) if slots is None else slots
        self._count = int(np.count_nonzero(self.slots))

    def add(self, lengths: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Add lengths (m, k); return a mask (m,) of the new ones; of equal ones only the first is new."""
        while 2 * (self._count + len(lengths)) > len(self.slots):
            larger = np.zeros(2 * len(self.slots), np.uint64)
            _move_keys(self.slots, larger)
            self.slots = larger
        new = np.zeros(len(lengths), np.bool_)
        self._count += add_keys(self.slots, np.ascontiguousarray(lengths), self.unit, new)
        return new


class FrontShare(NamedTuple):
    """One part of a front, of ``of`` parts of about the same size.

    The hash of the lengths of a tour determines its part, the same on every machine.
    """

    number: int  # in [0, of)
    of: int  # >= 1

    def has(self, rows: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Return a mask (m,) of the rows (m, ..) of numbers in this part."""
        if self.of == 1:
            return np.ones(len(rows), bool)
        mixed = np.zeros(len(rows), np.uint64)
        for column in np.ascontiguousarray(rows.T).view(np.uint64):
            mixed = (mixed ^ column) * _MIX1
            mixed ^= mixed >> _31
        return np.asarray(mixed % np.uint64(self.of) == self.number)


WHOLE = FrontShare(0, 1)


#: with two objectives, maximum number of members of the front that dominate a tour of the archive
MOST_RANK = 8
_REMOVED = MOST_RANK + 1
_FIRST_CAPACITY = 1024
_FEW_CITIES = 300  # with more, dominated tours would fill the memory before they are explored
_SPARE = 8  # the front may exceed its size by 1 / _SPARE before members are removed
_SHARE = 20  # 1 / _SHARE of the members are removed at once: each removal changes contributions nearby
_SHARE_OF_MANY = 2  # with more objectives also 1 / _SHARE_OF_MANY of those to remove, if that is more


class Archive:
    """Tours of n cities and their k lengths; the front has the nondominated tours, one for equal lengths.

    Attributes
    ----------
    count : rows of the arrays below in use, m, including removed tours.
    tours : (.., n) 16-bit integers if the cities fit, else 32-bit.
    lengths : (.., k)
    rank : (.., ) number of members of the front that dominate a tour; 0 for members, ``MOST_RANK`` + 1 for removed
        tours.
    explored : (.., ) number of stages that have explored a tour.
    serial : (.., ) numbers of the tours in the order of their addition; rows are renumbered when tours are removed.
    front : (f,) rows of its members, sorted by the first objective, then the second and so on.
    added : members that have joined the front so far.
    dropped : members removed so far because of ``size``.
    """

    def __init__(self, n: int, k: int, unit: NDArray[np.float64], size: int) -> None:
        self.n, self.k, self.size = n, k, size
        self.seen = Seen(unit)
        self._most_rank = MOST_RANK if n <= _FEW_CITIES else 0
        self.count = self.added = self.dropped = 0
        kind: Any = np.uint16 if n <= 1 << 16 else np.int32
        self.tours: NDArray[Any] = np.empty((_FIRST_CAPACITY, n), kind)
        self.lengths = np.empty((_FIRST_CAPACITY, k))
        self.rank = np.zeros(_FIRST_CAPACITY, np.int16)
        self.explored = np.zeros(_FIRST_CAPACITY, np.int16)
        self.serial = np.zeros(_FIRST_CAPACITY, np.int64)
        self._next_serial = self._marked = 0
        self.front = np.empty(0, np.intp)
        self._tree: NDTree | None = None

    @property
    def points(self) -> NDArray[np.float64]:
        """Lengths (f, k) of the front."""
        return self.lengths[self.front]

    @property
    def tree(self) -> NDTree:
        """The front of more than two objectives for compiled code; with two, a tree without points."""
        if self._tree is None and self.k == 2:
            self._tree = make_tree(0, 64, 2)
        elif self._tree is None:
            self._update_front(self.count)
        assert self._tree is not None
        return self._tree

    def best(self) -> NDArray[np.intp]:
        """Return rows (k,) of the shortest tour by each objective; the next objectives break ties."""
        points, best = self.points, []
        for q in range(self.k):
            least = np.flatnonzero(points[:, q] == points[:, q].min())
            order = np.roll(np.arange(self.k), -q)[::-1]
            best.append(self.front[least[np.lexsort(points[least][:, order].T)[0]]])
        return np.array(best)

    def members(self) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Return the front for the user, sorted: at most ``size`` tours (f, n) and their lengths (f, k)."""
        over = len(self.front) - self.size
        rows = self.front if over <= 0 else self.front[~np.isin(self.front, self._least(over))]
        return self.tours[rows].astype(np.int32), self.lengths[rows]

    def present(self) -> NDArray[np.bool_]:
        """Return a mask of the rows in use (m,) whose tours are not removed."""
        return self.rank[: self.count] != _REMOVED

    # ---- additions and removals

    def mark(self) -> None:
        """Begin a generation, see ``joined``."""
        self._marked = self._next_serial

    @property
    def joined(self) -> NDArray[np.intp]:
        """Rows of the members of the front that have been added since ``mark``."""
        return self._since(self._marked)

    def _since(self, serial: int) -> NDArray[np.intp]:
        return self.front[self.serial[self.front] >= serial]

    def worth(
        self, lengths: NDArray[np.float64], ended: Callable[[], bool] = lambda: False
    ) -> NDArray[np.bool_]:
        """Return a mask of the lengths (e, k) that would remain in the archive if all were added.

        With more than two objectives, lengths not yet tried when ``ended`` returns True are left out.
        """
        if not len(lengths):
            return np.ones(0, bool)
        if self.k > 2:
            return undominated(lengths, ended)
        points = np.concatenate([self.points, lengths])
        members = nondominated(points)
        worth = dominators(points[members], lengths) <= self._most_rank
        new = members[members >= len(self.front)] - len(self.front)
        worth[new] = True  # the rank of a member counts only itself
        return worth

    def add(self, tours: NDArray[Any], lengths: NDArray[np.float64]) -> NDArray[np.intp]:
        """Add tours (e, n) and their lengths (e, k); return the rows of those that are members of the front.

        Lengths seen before are skipped; of equal lengths the first is added.
        """
        new = self.seen.add(lengths)
        first, end, serial = self.count, self.count + int(new.sum()), self._next_serial
        self._reserve(end)
        self.tours[first:end], self.lengths[first:end] = tours[new], lengths[new]
        self.explored[first:end], self.rank[first:end] = 0, _REMOVED
        self.count, self._next_serial = end, serial + end - first
        self.serial[first:end] = np.arange(serial, self._next_serial)
        self._update_front(first)
        self.added += len(self._since(serial))
        if len(self.front) > self.size + self.size // _SPARE:
            self._shrink()
        if 2 * int(self.present().sum()) < self.count:
            self._compact()
        return self._since(serial)

    def _update_front(self, first: int) -> None:
        """Update the front and the ranks after adding the rows from ``first`` on."""
        lengths = self.lengths[: self.count]
        if self.k == 2:
            # tours that left the front remain dominated, so earlier rows outside it are left out
            rows = np.concatenate([self.front if first else self.front[:0], np.arange(first, self.count)])
            self.front = rows[nondominated(lengths[rows])]
            # a new member dominates all tours that have left the front, so the ranks of other tours are unchanged
            changed = np.ones(self.count, bool)
            changed[:first] = dominators(lengths[self.front[self.front >= first]], lengths[:first]) > 0
            rank = dominators(lengths[self.front], lengths[changed])
            self.rank[: self.count][changed] = np.where(rank <= self._most_rank, rank, _REMOVED)
            self.rank[self.front] = 0
            return
        present = self.rank[: self.count] == 0
        offered = np.ones(self.count, bool)
        offered[:first] = present[:first]
        if self._tree is None or len(self._tree.follows) < self.count:
            self._tree, first = make_tree(len(self.rank), len(self.rank), self.k), 0
        self._tree = offer(self._tree, self.lengths, first, self.count, offered, present)
        self.rank[: self.count] = np.where(present, 0, _REMOVED)
        rows = np.flatnonzero(present)
        self.front = rows[np.lexsort(lengths[rows, ::-1].T)]

    def _reserve(self, rows: int) -> None:
        while rows > len(self.rank):
            for name in ("tours", "lengths", "rank", "explored", "serial"):
                old = getattr(self, name)
                new = np.empty((2 * len(old), *old.shape[1:]), old.dtype)
                new[: self.count] = old[: self.count]
                setattr(self, name, new)

    def _least(self, count: int) -> NDArray[np.intp]:
        """Return rows of the ``count`` least contributing members of the front, never the best by an objective."""
        left = self.front
        return left[least_contributing(self.lengths[left], np.isin(left, self.best()), count)]

    def _shrink(self) -> None:
        """Remove members of the front until ``size`` are left."""
        least = self._least(len(self.front) - self.size)
        self.dropped += len(least)
        self.rank[least] = _REMOVED
        rank = self.rank[: self.count]
        rank[rank > 0] = _REMOVED  # else some of these would become members again
        self._compact()

    def _compact(self) -> None:
        """Delete the rows of removed tours."""
        present = self.present()
        rows = np.flatnonzero(present)
        for array in (self.tours, self.lengths, self.rank, self.explored, self.serial):
            array[: len(rows)] = array[rows]
        self.count = len(rows)
        if self.k == 2:
            self._update_front(0)
        else:  # only the front is left; its tree is built on demand
            self.front, self._tree = (np.cumsum(present) - 1)[self.front[present[self.front]]], None


def least_contributing(points: NDArray[np.float64], stay: NDArray[np.bool_], count: int) -> NDArray[np.intp]:
    """Return the indices of the ``count`` least contributing members of a front (f, k), without those to ``stay`` (f,).

    With two objectives (sorted by the first) the smallest hypervolume contributions are removed first. With more, the
    members with the nearest other member are removed, at distances relative to the extent of the front. Contributions
    are updated after each step.
    """
    left, going, two = np.arange(len(points)), [np.empty(0, np.intp)], points.shape[1] == 2
    extent = np.ptp(points, axis=0)
    scaled = points / np.where(extent > 0.0, extent, 1.0)
    while count > 0:
        # the size is at least 2 k, so no member of infinite worth is removed: at most half, and the k best
        worth = contributions(points[left]) if two else _distances(scaled[left], stay[left])
        worth[stay[left]] = np.inf
        share = max(1, len(left) // _SHARE, 0 if two else count // _SHARE_OF_MANY)
        some = np.argsort(worth, kind="stable")[: min(count, share)]
        going.append(left[some])
        left = np.delete(left, some)
        count -= len(some)
    return np.concatenate(going)


def _distances(points: NDArray[np.float64], stay: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return distances (f,) to the nearest other point; infinite for one of two points nearest to each other.

    It is not the one to ``stay`` (f,).
    """
    far, found = cKDTree(points).query(points, k=2, workers=thread_share())
    own = np.arange(len(points))
    other = np.where(found[:, 1] == own, found[:, 0], found[:, 1])  # equal points come in any order
    return np.where((other[other] == own) & (other < own) & ~stay[other], np.inf, far[:, 1])


def archive_state(archive: Archive) -> State:
    """Return copies of all arrays of an archive, from which any device can continue."""
    m = archive.count
    return {
        "archive_tours": archive.tours[:m].copy(),
        "archive_lengths": archive.lengths[:m].copy(),
        "archive_explored": archive.explored[:m].copy(),
        "archive_present": archive.present().astype(np.uint8),
        "archive_seen": archive.seen.slots.copy(),
        "archive_numbers": np.array([archive.added, archive.dropped]),
    }


def restored_archive(state: State, archive: Archive, most_explored: int) -> Archive:
    """Fill the empty ``archive`` from an exported state. Raises ValueError for arrays of another problem."""
    m = stored_rows(state, "archive_tours")
    tours = stored_tours(state, "archive_tours", m, archive.n)
    lengths = stored_numbers(state, "archive_lengths", (m, archive.k))
    explored = stored_integers(state, "archive_explored", (m,), 0, most_explored, np.int16)
    present = stored_integers(state, "archive_present", (m,), 0, 1, np.uint8).astype(bool)
    slots = np.array(state.get("archive_seen", np.empty(0)))
    if slots.dtype != np.uint64 or slots.ndim != 1 or len(slots) < 2 or len(slots) & (len(slots) - 1):
        raise ValueError(
            f"state['archive_seen'] must be a power of two of uint64, got {slots.dtype} {slots.shape}"
        )
    if np.count_nonzero(slots) * 2 > len(slots):
        raise ValueError("state['archive_seen'] must be at least half empty")
    numbers = stored_integers(state, "archive_numbers", (2,), 0, 2**62, np.int64)
    archive._reserve(m)
    archive.tours[:m], archive.lengths[:m], archive.explored[:m] = tours, lengths, explored
    archive.serial[:m], archive._next_serial = np.arange(m), m
    archive.mark()
    archive.rank[:m] = np.where(present, 0, _REMOVED)
    archive.seen, archive.count = Seen(archive.seen.unit, slots), m
    archive._update_front(0)
    archive.added, archive.dropped = map(int, numbers)
    return archive


def stored_rows(state: State, name: str) -> int:
    """Return the number of rows of a stored matrix."""
    shape = np.shape(state.get(name, np.empty(0)))
    if len(shape) != 2:
        raise ValueError(f"state['{name}'] must have rows, got shape {shape}")
    return shape[0]
