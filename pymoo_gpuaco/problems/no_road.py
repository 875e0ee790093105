"""Whole numbers beyond 2**53, which a double may not hold, and among them those that stand for "no road"."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["ALL_EXACT", "Largest", "refuse_rounded"]

ALL_EXACT = 2.0**53
"""Doubles hold every whole number up to this one."""

# A number for missing edges is so many times as large as all distances. It occurs more than once, or is one of the
# numbers that people write for "no road": powers of ten and two from here on, and those less one.
_STANDS_OUT, _LEAST_ROUND = 1000.0, 999_999_999.0


class Largest(NamedTuple):
    """The largest finite entry of a matrix, how often it occurs, and the next largest."""

    value: float
    times: int
    second: float

    def is_for_missing(self, symmetric: bool) -> bool:
        """Whether it looks like a number for missing edges."""
        if not self.value >= _STANDS_OUT * self.second:
            return False
        repeats = self.second > 0.0 and self.times > (2 if symmetric else 1)
        return repeats or (self.value >= _LEAST_ROUND and _is_round(self.value))


def _is_round(number: float | int) -> bool:
    """Whether a number, or the next whole one, is a power of ten or two."""
    if isinstance(number, int):
        return any(near.bit_count() == 1 or str(near).strip("0") == "1" for near in (number, number + 1))
    return any(
        math.frexp(near)[0] == 0.5 or near == float(f"1e{round(math.log10(near))}")
        for near in (number, number + 1.0)
    )


def refuse_rounded(what: str, numbers: NDArray[np.float64], cells: Sequence[Any] | NDArray[Any]) -> None:
    """Raise ValueError where one of ``numbers`` (m,) is not the whole number that its cell holds, an int or its text.

    The largest number may be rounded if it looks like one for missing edges. Cells of other kinds are passed over.
    """
    finite = np.isfinite(numbers)
    large = np.flatnonzero(finite & (np.abs(numbers) >= ALL_EXACT))
    rounded = [at for at in large.tolist() if _is_rounded(numbers[at], cells[at])]
    if not rounded:
        return
    largest, written = float(numbers[finite].max()), int(cells[rounded[0]])
    second = float(numbers[finite & (numbers < largest)].max(initial=0.0))
    stands_out = largest >= _STANDS_OUT * second
    repeats = second > 0.0 and int((numbers == largest).sum()) > 2
    for at in rounded:
        same = numbers[at] == largest and int(cells[at]) == written
        if not (same and stands_out and (repeats or _is_round(written))):
            raise ValueError(
                f"{what} must hold whole numbers that doubles hold exactly, as all up to 2**53, got {cells[at]}: "
                "subtract what all have in common, or take a larger unit"
            )


def _is_rounded(number: float, cell: Any) -> bool:
    if isinstance(cell, str):
        try:
            cell = int(cell)
        except ValueError:  # written as a decimal
            return False
    return isinstance(cell, (int, np.integer)) and int(cell) != int(number)
