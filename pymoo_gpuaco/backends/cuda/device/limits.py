"""What a plan needs to know of a device. Pure numbers, no device."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class DeviceLimits:
    """Limits of one device."""

    multiprocessors: int
    warps: int  # most that a multiprocessor holds
    shared_bytes: int  # most dynamic shared memory that a block may ask for


def round_up(value: int, unit: int) -> int:
    """Return the least multiple of ``unit`` that is not below ``value``."""
    return -(-value // unit) * unit
