"""Which lengths have been met: a set of keys in one array, open to compiled code.

Two tours whose lengths are equal by every objective are one member of a front, so lengths stand for tours here. They
are told apart down to a unit of each objective: 1 where costs are whole numbers.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.runtime.compiled import compiled, inlined

_FREE = np.uint64(0)
_ONE = np.uint64(1)
_MIX1, _MIX2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_STEP = np.uint64(0x9E3779B97F4A7C15)
_27, _30, _31 = np.uint64(27), np.uint64(30), np.uint64(31)
_WHOLE = 2.0**62  # from which on a length in units is taken modulo this: what 64 bits hold


@inlined
def key_of(lengths, unit):  # type: ignore[no-untyped-def]
    """Key of lengths (k,): a hash by steps of splitmix64 (Steele, Lea and Flood 2014), never 0."""
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
    """Where a key is in ``slots`` (a power of two), or where it would go."""
    mask = np.uint64(slots.shape[0] - 1)
    at = key & mask
    while slots[at] != _FREE and slots[at] != key:
        at = (at + _ONE) & mask
    return at


@compiled
def add_keys(slots, lengths, unit, new):  # type: ignore[no-untyped-def]
    """Add the keys of lengths (m, k); ``new`` (m,) becomes 1 where a key was not there, once for each key."""
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
    """A growing set of lengths (k,); ``unit`` (k,) is what two of them must differ by."""

    def __init__(self, unit: NDArray[np.float64], slots: NDArray[np.uint64] | None = None) -> None:
        self.unit = unit
        self.slots = np.zeros(1 << 12, np.uint64) if slots is None else slots
        self._count = int(np.count_nonzero(self.slots))

    def add(self, lengths: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Add lengths (m, k); return which of them are new (m,), the first of equal ones."""
        while 2 * (self._count + len(lengths)) > len(self.slots):
            larger = np.zeros(2 * len(self.slots), np.uint64)
            _move_keys(self.slots, larger)
            self.slots = larger
        new = np.zeros(len(lengths), np.bool_)
        self._count += add_keys(self.slots, lengths, self.unit, new)
        return new
