"""What one cell of a table says: a number, a gap between distances, or neither."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

__all__ = ["are_distances", "distance_of", "number_of"]

_GAPS = ("", "inf", "infinity", "nan")


def number_of(cell: Any) -> float | None:
    """Return a cell as a finite number, or None where it is none; True and "1_000" are none."""
    if isinstance(cell, (bool, np.bool_)) or (isinstance(cell, str) and "_" in cell):
        return None
    try:
        value = float(cell)
    except (TypeError, ValueError):
        return None
    return value if np.isfinite(value) else None


def distance_of(cell: Any) -> float | None:
    """Return a cell of a matrix as a number, inf where it says so or is empty, or None where it is neither."""
    value = number_of(cell)
    if value is not None:
        return value
    gap = (
        cell.strip().lower() in _GAPS if isinstance(cell, str) else isinstance(cell, float) and not cell < 0.0
    )
    return np.inf if gap or cell is None else None


def are_distances(column: Sequence[Any]) -> bool:
    """Whether some cells of a column are numbers, and all others gaps."""
    return any(number_of(cell) is not None for cell in column) and all(
        distance_of(cell) is not None for cell in column
    )
