"""A call's 64-bit key as kernels take it, see philox.cuh."""

from __future__ import annotations

import numpy as np


def words(key: int) -> tuple[np.uint32, np.uint32]:
    """The key's low and high word."""
    return np.uint32(int(key) & 0xFFFFFFFF), np.uint32(int(key) >> 32)


# What the key grows by from round to round.
_ROUNDS = [(0x9E3779B9 * r & 0xFFFFFFFF, 0xBB67AE85 * r & 0xFFFFFFFF) for r in range(10)]


def round_keys(key: int) -> list[int]:
    """The kernels' ``RoundKeys``: the low and the high word of each of ten rounds."""
    low, high = int(key) & 0xFFFFFFFF, int(key) >> 32
    return [word for a, b in _ROUNDS for word in ((low + a) & 0xFFFFFFFF, (high + b) & 0xFFFFFFFF)]
