"""Hash set of the lengths seen so far, for compiled code, and the division of a front among several searches.

Two tours of equal lengths by every objective are one member of a front, so lengths identify tours here, to a resolution
per objective: 1 for whole costs.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.runtime.compiled import compiled, inlined

_FREE = np.uint64(0)
_ONE = np.uint64(1)
_MIX1, _MIX2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_STEP = np.uint64(0x9E3779B97F4A7C15)
_27, _30, _31 = np.uint64(27), np.uint64(30), np.uint64(31)
_WHOLE = 2.0**62  # lengths in units are taken modulo this, to fit 64 bits


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
def add_keys(slots, lengths, unit, new):  # type: ignore[no-untyped-def]
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
def _move_keys(old, slots):  # type: ignore[no-untyped-def]
    for i in range(old.shape[0]):
        if old[i] != _FREE:
            slots[slot_of(slots, old[i])] = old[i]


class Seen:
    """A growing set of lengths (k,); ``unit`` (k,) is the resolution."""

    def __init__(self, unit: NDArray[np.float64], slots: NDArray[np.uint64] | None = None) -> None:
        self.unit = unit
        self.slots = np.zeros(1 << 12, np.uint64) if slots is None else slots
        self._count = int(np.count_nonzero(self.slots))

    def add(self, lengths: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Add lengths (m, k); return a mask (m,) of the new ones, of equal ones the first."""
        while 2 * (self._count + len(lengths)) > len(self.slots):
            larger = np.zeros(2 * len(self.slots), np.uint64)
            _move_keys(self.slots, larger)
            self.slots = larger
        new = np.zeros(len(lengths), np.bool_)
        self._count += add_keys(self.slots, lengths, self.unit, new)
        return new


class Part(NamedTuple):
    """One part of a front, of ``of`` parts of about the same size.

    The hash of the lengths of a tour determines its part, equally on every machine.
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


WHOLE = Part(0, 1)
