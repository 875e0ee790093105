"""Keys of random numbers: a separate key for every launch, round and tour of a call."""

from __future__ import annotations

import numpy as np

# 2**64 / golden ratio, odd: keys of neighbouring numbers differ in high and low bits
_STEP = 0x9E3779B97F4A7C15
_TOUR = 1 << 32


def fold_in(key: int, number: int, tour: int = 0) -> int:
    """Return the key in [0, 2**64) of launch or round ``number`` and a tour, in a call with ``key``.

    Number 0 of tour 0 has the call's own key. All others differ, for ``number`` and ``tour`` in [0, 2**32).
    """
    return (key + _STEP * (number + _TOUR * tour)) % 2**64


def generator(key: int, number: int) -> np.random.Generator:
    """Return a NumPy generator for part ``number`` of a call on the host; both arguments are in [0, 2**64)."""
    # an array, because NumPy converts a list with large keys to floats
    return np.random.Generator(np.random.Philox(key=np.array([key, number], np.uint64)))
