"""Checks of what a user gives: every message names the parameter, the value and what is allowed."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable
from typing import Any


def real(
    name: str,
    value: Any,
    low: float = -math.inf,
    high: float = math.inf,
    *,
    open_low: bool = False,
    open_high: bool = False,
) -> float:
    """Return a finite float between low and high; open ends exclude their bound."""
    interval = f"{'(' if open_low or low == -math.inf else '['}{low:g}, {high:g}"
    interval += ")" if open_high or high == math.inf else "]"
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} must be a number in {interval}, got {value!r}")
    try:
        number = float(value)
    except OverflowError:  # an int beyond the largest float
        number = math.inf
    below = number <= low if open_low else number < low
    above = number >= high if open_high else number > high
    if not math.isfinite(number) or below or above:
        raise ValueError(f"{name} must be in {interval}, got {value!r}")
    return number


def integer(name: str, value: Any, low: int, high: int | None = None) -> int:
    """Return an int between low and high, both included."""
    allowed = f"an integer >= {low}" if high is None else f"an integer in [{low}, {high}]"
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise TypeError(f"{name} must be {allowed}, got {value!r}")
    number = int(value)
    if number < low or (high is not None and number > high):
        raise ValueError(f"{name} must be {allowed}, got {number}")
    return number


def optional_integer(name: str, value: Any, low: int, high: int | None = None) -> int | None:
    """Like ``integer``, with None kept."""
    return None if value is None else integer(name, value, low, high)


def choice(name: str, value: Any, allowed: Iterable[str]) -> str:
    """Return one of the allowed strings."""
    options = tuple(allowed)
    if not isinstance(value, str) or value not in options:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, options))}, got {value!r}")
    return value


def flag(name: str, value: Any) -> bool:
    """Return True or False, and nothing that merely looks like it."""
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be True or False, got {value!r}")
    return value
