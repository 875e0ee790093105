"""The third step of the table pipeline: what a cell is, and one decision on decimal and thousands marks for a table."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

__all__ = [
    "Marks",
    "as_shown",
    "decide_marks",
    "is_blank",
    "is_either",
    "is_gap",
    "is_list",
    "is_number",
    "is_time",
    "number_of",
    "value_of",
    "whole_text",
]

_SIGN, _EXPONENT = r"[+\-\u2212]?", r"(?:[eE][+\-\u2212]?\d+)?"
_SPACES = " '\u2019\u00a0\u2009\u202f"  # group thousands and nothing else
_PLAIN = re.compile(rf"{_SIGN}\d+{_EXPONENT}")
_FRACTION = re.compile(rf"{_SIGN}(?:\d+(\.)\d*|\d*([.,])\d+){_EXPONENT}")
_GROUPED = re.compile(rf"{_SIGN}[1-9]\d{{0,2}}([.,{_SPACES}])\d{{3}}(?:\1\d{{3}})*(?:(?!\1)([.,])\d*)?")
_TIME = re.compile(r"\d{1,3}:[0-5]\d(?::[0-5]\d(?:[.,]\d+)?)?")
_LIST = re.compile(
    r"[+-]?[\d.]+(?:\s*[,;|:\s]\s*[+-]?[\d.]+)+"
)  # numbers that a separator should have parted
_GAPS = ("", "inf", "infinity", "nan")
_WORDS = {".": "point", ",": "comma", " ": "blank", "'": "apostrophe"}


class Marks(NamedTuple):
    """How the numbers of one table are written."""

    decimal: str = "."
    thousands: str = ""  # the signs that group digits

    def __str__(self) -> str:
        """The marks in words; nothing of decimal points alone."""
        groups = [f"thousands {_WORDS.get(mark, 'blank')}" for mark in self.thousands]
        return ", ".join([f"decimal {_WORDS[self.decimal]}"] * (self.decimal != ".") + groups)


def is_number(cell: Any) -> bool:
    """Tell whether a cell is a finite number under some marks; True and "1_000" are none."""
    if isinstance(cell, str):
        return any(form.fullmatch(cell) for form in (_PLAIN, _FRACTION, _GROUPED))
    return number_of(cell) is not None


def is_gap(cell: Any) -> bool:
    """Tell whether a cell is empty, nan or inf, which stand for a distance that there is not."""
    if isinstance(cell, str):
        return cell.strip().lower() in _GAPS
    return cell is None or (
        isinstance(cell, (float, np.floating)) and not np.isfinite(cell) and not cell < 0.0
    )


def is_blank(cell: Any) -> bool:
    """Tell whether a cell has nothing in it, or nan, which is how DataFrames write that."""
    return cell is None or cell != cell or (isinstance(cell, str) and cell.strip().lower() in ("", "nan"))


def is_time(cell: Any) -> bool:
    """Tell whether a cell is a time of a clock, h:mm or h:mm:ss, or an object that is one."""
    if isinstance(cell, str):
        return _TIME.fullmatch(cell) is not None
    return isinstance(cell, (datetime.time, datetime.date, datetime.timedelta, np.timedelta64, np.datetime64))


def is_list(cell: Any) -> bool:
    """Tell whether a cell is several numbers, by which it was parted at the wrong sign."""
    return isinstance(cell, str) and not is_number(cell) and _LIST.fullmatch(cell) is not None


def number_of(cell: Any) -> float | None:
    """Return a cell with a decimal point as a finite number, or None where it is none."""
    if isinstance(cell, (bool, np.bool_)) or (isinstance(cell, str) and "_" in cell) or is_time(cell):
        return None
    try:
        value = float(cell)
    except (TypeError, ValueError, OverflowError):
        return None
    return value if np.isfinite(value) else None


def value_of(cell: Any, marks: Marks) -> float | None:
    """Return a cell as a finite number under the marks of its table, or None where it is none."""
    if isinstance(cell, str):
        grouped = _GROUPED.fullmatch(cell)
        if grouped and grouped[1] in marks.thousands:
            cell = cell.replace(grouped[1], "")
        if _PLAIN.fullmatch(cell) is None:
            fraction = _FRACTION.fullmatch(cell)
            if fraction is None or (fraction[1] or fraction[2]) != marks.decimal:
                return None
            cell = cell.replace(marks.decimal, ".")
        cell = cell.replace("\u2212", "-")
    return number_of(cell)


def whole_text(cell: Any, marks: Marks) -> Any:
    """Return a cell without marks that group thousands, so that Python reads whole numbers of it."""
    return cell.translate({ord(mark): "" for mark in marks.thousands}) if isinstance(cell, str) else cell


def decide_marks(
    cells: Iterable[Any],
    decimal: str | None,
    thousands: str | None,
    used: Sequence[Any],
    beside: Sequence[Any] = (),
) -> Marks:
    """Decide what points and commas mean in all cells of a table.

    A comma or point that cannot group thousands is decimal, and one that comes twice in a number, or before another
    mark, groups them. Points that may be either are decimal, unless numbers without a point stand beside them.

    cells : all that may be numbers, of which ``used`` become coordinates or distances, and ``beside`` stand in columns
        with points or commas.
    decimal, thousands : the user's choice, or None.

    Raises ValueError where the cells contradict each other, and where both readings are possible.
    """
    decimals = {} if decimal is None else {decimal: f"decimal={decimal}"}
    groups = {} if thousands is None else {thousands: f"thousands={thousands}"}
    either: dict[str, str] = {}
    for cell in cells:
        if not isinstance(cell, str) or cell.isdigit():
            continue
        grouped, fraction = _GROUPED.fullmatch(cell), _FRACTION.fullmatch(cell)
        if grouped and fraction:
            either.setdefault(grouped[1], cell)
        elif grouped:
            groups.setdefault(grouped[1], cell)
            if grouped[2]:
                decimals.setdefault(grouped[2], cell)
        elif fraction:
            decimals.setdefault(fraction[1] or fraction[2], cell)
    known: str | None = None
    for mark, other in ((".", ","), (",", ".")):
        if mark in decimals and (mark in groups or other in decimals):
            meaning = "thousands" if mark in groups else "decimal"
            raise ValueError(
                f"{decimals[mark]!r} has a decimal {_WORDS[mark]} and {groups.get(mark, decimals.get(other))!r} a "
                f"{meaning} {_WORDS[mark if mark in groups else other]}; write all numbers one way"
            )
        if mark in decimals or other in groups:
            known = mark
    if known is None and either:
        known, example = next(iter(either.items()))
        unmarked = any(_PLAIN.fullmatch(c) if isinstance(c, str) else is_number(c) for c in (*used, *beside))
        if (known == "," or len(either) == 2 or unmarked) and any(map(is_either, used)):
            other = "," if known == "." else "."
            raise ValueError(
                f"{example!r} may be {float(example.replace(known, '.')):.15g} or {example.replace(known, '')}: "
                f"decimal={known!r} (--decimal {known}) or decimal={other!r} (--decimal {other}) decides"
            )
    known = known or "."
    return Marks(known, "".join(sorted({*groups, *either} - {known})))


def is_either(cell: Any) -> bool:
    """Tell whether a cell is a number with a point or comma that may be decimal or group thousands."""
    return isinstance(cell, str) and bool(_GROUPED.fullmatch(cell) and _FRACTION.fullmatch(cell))


def as_shown(cell: Any) -> str:
    """Return a cell for a message, and what to do where it is a time."""
    shown = repr(cell if isinstance(cell, str) else str(cell))[:60]
    return f"{shown}, which is a time: give numbers, such as minutes" if is_time(cell) else shown
