"""Edges sorted by length, with a stable radix sort on all threads.

A key is the length of an edge in single precision, whose bits sort like it, followed by the 32 bits of its number.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.runtime.compiled import compiled, inlined
from pymoo_gpuaco.runtime.threads import spread, thread_count

_FEW = 1 << 18  # up to this many keys NumPy's sort is fast, without compilation
_BITS = 11  # of a digit: three digits are a length, and the counts fit a cache
_SHIFTS = (32, 43, 54)


def keys_of(lengths: NDArray[np.floating]) -> NDArray[np.uint64]:
    """Return the keys of edges 0 .. m-1 of lengths (m,) >= 0; an infinitely long one has none."""
    keys: NDArray[np.uint64] = lengths.astype(np.float32, copy=False).view(np.uint32).astype(np.uint64)
    keys <<= np.uint64(32)
    keys |= np.arange(len(keys), dtype=np.uint64)
    return keys[lengths < np.inf]


@inlined
def key_of(length, edge):  # type: ignore[no-untyped-def]
    """Return the key of one edge."""
    return (np.uint64(np.float32(length).view(np.uint32)) << np.uint64(32)) | np.uint64(edge)


@inlined
def insert(ids, lengths, s, j, length):  # type: ignore[no-untyped-def]
    """Insert city j into the first s candidates of a city, which are sorted by (length, id)."""
    t = s
    while t > 0 and (lengths[t - 1] > length or (lengths[t - 1] == length and ids[t - 1] > j)):
        lengths[t], ids[t] = lengths[t - 1], ids[t - 1]
        t -= 1
    lengths[t], ids[t] = length, j


def sort_keys(keys: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the (m,) keys, ascending; they must be given by ascending edge. The given array is overwritten."""
    m = len(keys)
    if m <= _FEW:
        keys.sort()
        return keys
    into = np.empty_like(keys)
    for shift in _SHIFTS:
        counts = _counted(keys, shift)
        if counts.sum(axis=0).max() < m:  # not all have the same digit
            _copy_by_digit(keys, shift, counts, into)
            keys, into = into, keys
    return keys


def _counted(keys: NDArray[np.uint64], shift: int) -> NDArray[np.int64]:
    """Return counts (parts, digits) of the digit at bit ``shift`` in each thread's part of the keys."""
    counts = np.zeros((thread_count(), 1 << _BITS), np.int64)

    def work(part: int, first: int, last: int) -> None:
        _count_digits(keys, shift, first, last, counts[part])

    spread(work, len(keys), len(counts))
    return counts


def _copy_by_digit(
    keys: NDArray[np.uint64], shift: int, counts: NDArray[np.int64], into: NDArray[np.uint64]
) -> None:
    """Copy the keys ``into`` another array, sorted by their digit, stable."""
    ends = np.cumsum(counts.T.ravel()).reshape(counts.T.shape).T
    places = np.ascontiguousarray(ends - counts)

    def work(part: int, first: int, last: int) -> None:
        _scatter(keys, shift, first, last, places[part], into)

    spread(work, len(keys), len(counts))


@compiled
def _count_digits(keys, shift, first, last, counts):  # type: ignore[no-untyped-def]
    """Count each value of the digit at bit ``shift`` of keys first .. last-1."""
    for at in range(first, last):
        counts[(keys[at] >> np.uint64(shift)) & np.uint64((1 << _BITS) - 1)] += 1


@compiled
def _scatter(keys, shift, first, last, places, into):  # type: ignore[no-untyped-def]
    """Copy keys first .. last-1 to the next place of their digit."""
    for at in range(first, last):
        digit = (keys[at] >> np.uint64(shift)) & np.uint64((1 << _BITS) - 1)
        into[places[digit]] = keys[at]
        places[digit] += 1
