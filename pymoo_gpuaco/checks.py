"""Validation of arguments: every message names the parameter, the value and the allowed range."""

from __future__ import annotations

import difflib
import inspect
import math
import numbers
import os
import re
from collections.abc import Callable, Iterable, Mapping
from types import FunctionType
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

Own = TypeVar("Own", bound="KnownKeywords")


class KnownKeywords:
    """A class whose constructor raises TypeError for unknown arguments, with a hint for misspelt ones."""

    #: names of arguments in other packages, and their names here
    _aliases: ClassVar[Mapping[str, str]] = {}

    def __new__(cls: type[Own], *_: Any, **given: Any) -> Own:
        """Check the keywords, unless the constructor takes arbitrary ones."""
        every = inspect.signature(cls.__init__).parameters.values() if given else ()
        if given and all(one.kind is not inspect.Parameter.VAR_KEYWORD for one in every):
            cls._refuse_unknown(given, parameters(cls.__init__))
        return super().__new__(cls)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Raise TypeError for a method with the name of a dataclass field: it would replace the default."""
        super().__init_subclass__(**kwargs)
        for base in cls.__mro__[1:]:
            for name in vars(base).get("__dataclass_fields__", ()):
                if isinstance(vars(cls).get(name), (FunctionType, property, classmethod, staticmethod)):
                    raise TypeError(
                        f"{cls.__name__}.{name} is a method with the name of the parameter {name!r} of "
                        f"{base.__name__}: give the method another name"
                    )

    @classmethod
    def _refuse_unknown(cls, given: Iterable[str], known: Iterable[str]) -> None:
        refuse_unknown(cls.__name__, given, known, cls._aliases)


_NOT_SERVED = re.compile(r"vehicle|capacit|time.?window|depot|pickup|fleet|^demands?$", re.IGNORECASE)


def not_served(name: str) -> str:
    """Return a hint for an argument of vehicle routing solvers, or ""."""
    if not _NOT_SERVED.search(name.strip("-_")):
        return ""
    return " PyVRP and OR-tools serve vehicles, capacities, depots and time windows; this package finds one tour."


def did_you_mean(text: str, known: Iterable[str] | Mapping[str, str], cutoff: float = 0.6) -> str:
    """Return a hint to the nearest word, or to its value in a mapping, ignoring case; "" if none is near."""
    meant = known if isinstance(known, Mapping) else {word: word for word in known}
    words = {word.casefold(): word for word in meant}
    close = difflib.get_close_matches(text.casefold(), words, 1, cutoff)
    return f"; did you mean {meant[words[close[0]]]}?" if close else ""


def refuse_unknown(what: str, given: Iterable[str], known: Iterable[str], aliases: Mapping[str, str]) -> None:
    """Raise TypeError for the first keyword ``given`` to ``what`` that is not ``known``, with the nearest known one."""
    taken = sorted(set(known))
    for name in given:
        if name not in taken:
            meant = {word: word for word in taken}
            meant |= {word: own for word, own in aliases.items() if own in taken}
            other_solvers = not_served(name)
            hint = f".{other_solvers}" if other_solvers else did_you_mean(name, meant, 0.75) or "."
            raise TypeError(f"{what} has no argument {name!r}{hint} It takes {', '.join(taken)}")


def parameters(function: Callable[..., Any]) -> list[str]:
    """Return the names of the keyword arguments of a function or a constructor."""
    positional, named = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
    every = inspect.signature(function).parameters.values()
    return [one.name for one in every if one.kind in (positional, named) and one.name != "self"]


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
    """Return None for None, else the result of ``integer``."""
    return None if value is None else integer(name, value, low, high)


def optional_real(name: str, value: Any, low: float, high: float) -> float | None:
    """Return None for None, else the result of ``real``."""
    return None if value is None else real(name, value, low, high)


def unmasked(name: str, values: ArrayLike) -> NDArray[Any]:
    """Return the values as an array.

    Raises TypeError for objects that are no arrays, such as a dict; ValueError for rows of different lengths and for
    masked values.
    """
    if np.ma.is_masked(values):
        raise ValueError(f"{name} must have a value everywhere: {np.ma.count_masked(values)} are masked")
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise ValueError(f"{name} must have rows of equal length") from error
    if array.dtype == object and array.ndim == 0:
        raise TypeError(f"{name} must be an array of numbers, got {type(values).__name__}")
    return array


def choice(name: str, value: Any, allowed: Iterable[str], other: str = "") -> str:
    """Return one of the allowed strings; ``other`` names what else the argument may be."""
    options = tuple(allowed)
    if not isinstance(value, str) or value not in options:
        also = f" or {other}" if other else ""
        raise ValueError(f"{name} must be one of {', '.join(map(repr, options))}{also}, got {value!r}")
    return value


def may_reverse(what: str, symmetric: bool, instead: str) -> None:
    """Raise ValueError for ``what``, which reverses paths, on an asymmetric instance; ``instead`` is an alternative."""
    if not symmetric:
        raise ValueError(
            f"{what} reverses paths and requires a symmetric instance; {instead} works on asymmetric ones"
        )


def flag(name: str, value: Any) -> bool:
    """Return a bool; raise TypeError for other types."""
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be True or False, got {value!r}")
    return value


def tours_given(name: str, tours: Any) -> NDArray[Any]:
    """Return one or several tours as an array.

    Raises TypeError for the name of a file, and for a result with a tour as attribute.
    """
    if isinstance(tours, (str, os.PathLike)):
        raise TypeError(f"{name} must be cities in order, got {tours!r}; read_tour reads a file")
    for attribute in ("tour", "X"):  # Solution; pymoo's Result and Individual
        if hasattr(tours, attribute):
            raise TypeError(
                f"{name} must be cities in order, got {type(tours).__name__}: give its .{attribute}"
            )
    return np.asarray(tours)


def permutations(name: str, tours: ArrayLike, n: int, first_row: int = 0) -> NDArray[np.int64]:
    """Return tours (m, n) as int64, each a permutation of 0 .. n-1; messages number rows from ``first_row`` on.

    Floats with whole values are allowed. Raises ValueError with the first invalid row.
    """
    given = np.asarray(tours)
    if given.ndim != 2 or given.shape[1] != n:
        raise ValueError(f"{name} must have {n} cities a row, got shape {given.shape}")
    if given.dtype.kind == "f":
        with np.errstate(invalid="ignore"):  # NaN and infinities are reported below
            whole = given.astype(np.int64)
        bad = np.flatnonzero((whole != given).any(axis=1))
    elif given.dtype.kind in "iu":
        whole = given.astype(np.int64, copy=False)
        bad = np.zeros(0, dtype=np.int64)
    else:
        raise ValueError(f"{name} must hold city numbers, got dtype {given.dtype}")
    if not bad.size:
        inside = (whole.min(axis=1, initial=0) >= 0) & (whole.max(axis=1, initial=0) < n)
        bad = np.flatnonzero(~inside)
    if not bad.size:
        seen = np.zeros(given.shape, dtype=bool)
        for row, cities in zip(seen, whole, strict=True):
            row[cities] = True
        bad = np.flatnonzero(~seen.all(axis=1))
    if bad.size:
        raise ValueError(f"{name}: row {first_row + bad[0]} is not a permutation of 0..{n - 1}")
    return whole


def tours(name: str, given: Any, n: int) -> NDArray[np.int64]:
    """Return one or several tours as (m, n) int64, each a permutation of 0 .. n-1; ValueError names an invalid row."""
    return permutations(name, np.atleast_2d(tours_given(name, given)), n)


def finite(name: str, values: ArrayLike, low: float = -math.inf, *, infinity: bool = False) -> NDArray[Any]:
    """Return an array of finite numbers >= ``low``; ``infinity`` also allows +inf.

    Raises ValueError with the first number out of range.
    """
    array = np.asarray(values)
    if array.dtype.kind not in "iuf":
        raise ValueError(f"{name} must hold numbers, got dtype {array.dtype}")
    good = (array >= low) & (array > -math.inf)  # NaN is neither
    if not infinity:
        good &= array < math.inf
    if not good.all():
        place = tuple(int(i) for i in np.argwhere(~good)[0])
        start = "(-inf" if low == -math.inf else f"[{low:g}"
        raise ValueError(
            f"{name} must be in {start}, inf{']' if infinity else ')'}, got {array[place]} at {place}"
        )
    return array


def integers_in(name: str, values: ArrayLike, low: int, high: int) -> NDArray[Any]:
    """Return an array of integers between ``low`` and ``high``, both included. Raises ValueError like ``finite``."""
    array = np.asarray(values)
    bad = (array < low) | (array > high)
    if array.dtype.kind not in "iu" or bad.any():
        what = f"{array[tuple(np.argwhere(bad)[0])]}" if bad.any() else f"dtype {array.dtype}"
        raise ValueError(f"{name} must hold integers in [{low}, {high}], got {what}")
    return array


def edge_trails(edges: ArrayLike, values: ArrayLike, n: int) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Return edges (e, 2) of n cities and their trails (e,), >= 0 and finite. Raises ValueError like ``finite``."""
    pairs = integers_in("edges", np.asarray(edges).reshape(-1, 2), 0, n - 1).astype(np.int32)
    trails = finite("values", values, 0.0).astype(np.float32)
    if trails.shape != (len(pairs),):
        raise ValueError(f"values must have one trail per edge, ({len(pairs)},), got shape {trails.shape}")
    return pairs, trails


def tours_by_length(tours: ArrayLike, lengths: ArrayLike, n: int) -> NDArray[np.int32]:
    """Return validated tours (m, n) in the order of ``lengths`` (m,), ties in the given order."""
    rows = permutations("tours", tours, n).astype(np.int32)
    values = finite("lengths", lengths)
    if values.shape != (len(rows),):
        raise ValueError(f"lengths must have shape ({len(rows)},), got {values.shape}")
    return rows[values.argsort(kind="stable")]
