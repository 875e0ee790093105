"""Parts of an engine: kernel sources and arrays; device limits, and kernel arguments for random keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np


@dataclass(frozen=True)
class Source:
    """A file of kernels and its definitions in one engine.

    ``kernels``: those that the engine launches; their parameters are read from the file, see ``signatures``.
    """

    file: str
    definitions: Mapping[str, object]
    kernels: Sequence[str]


class Part(Protocol):
    """A part of an engine: arrays on the device and the kernels that use them."""

    def sources(self) -> Sequence[Source]:
        """Return the files to compile."""
        return ()

    def needed(self) -> dict[str, int]:
        """Return the bytes of every array by name; names are unique in an engine."""
        return {}

    def prepare(self) -> None:
        """Fill the arrays; all arrays are allocated, and the preceding parts are prepared."""
        return


def together(*needed: Mapping[str, int]) -> dict[str, int]:
    """Return the arrays of several parts. Raises ValueError for duplicate names."""
    everything: dict[str, int] = {}
    for arrays in needed:
        twice = sorted(everything.keys() & arrays.keys())
        if twice:
            raise ValueError(f"two parts have an array of the same name: {', '.join(twice)}")
        everything.update(arrays)
    return everything


def by_file(sources: Sequence[Source]) -> dict[str, Mapping[str, object]]:
    """Return the definitions of each file.

    Raises ValueError if two parts compile the same file or have kernels of the same name.
    """
    wanted: dict[str, Mapping[str, object]] = {}
    kernels: set[str] = set()
    for source in sources:
        if source.file in wanted:
            raise ValueError(f"two parts compile the same file: {source.file}")
        twice = sorted(kernels.intersection(source.kernels))
        if twice:
            raise ValueError(f"two files have a kernel of the same name: {', '.join(twice)}")
        wanted[source.file] = source.definitions
        kernels.update(source.kernels)
    return wanted


@dataclass(frozen=True)
class DeviceLimits:
    """Limits of a device, for plans."""

    multiprocessors: int
    warps: int  # resident on a multiprocessor at most
    shared_bytes: int  # most dynamic shared memory of a block


def round_up(value: int, unit: int) -> int:
    """Round ``value`` up to a multiple of ``unit``."""
    return -(-value // unit) * unit


def words(key: int) -> tuple[np.uint32, np.uint32]:
    """Return the low and high word of a key."""
    return np.uint32(int(key) & 0xFFFFFFFF), np.uint32(int(key) >> 32)


# Increments of the key's words by round.
_ROUNDS = [(0x9E3779B9 * r & 0xFFFFFFFF, 0xBB67AE85 * r & 0xFFFFFFFF) for r in range(10)]


def round_keys(key: int) -> list[int]:
    """Return ``RoundKeys`` of philox.cuh: the low and high word of each of ten rounds."""
    low, high = int(key) & 0xFFFFFFFF, int(key) >> 32
    return [word for a, b in _ROUNDS for word in ((low + a) & 0xFFFFFFFF, (high + b) & 0xFFFFFFFF)]
