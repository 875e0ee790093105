"""The first steps of the table pipeline: bytes to text, text to rows of cells, what a cell is, and which labels are the
same.
"""

from __future__ import annotations

import codecs
import csv
import datetime
import gzip
import io
import re
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches
from typing import Any, NamedTuple

import numpy as np

from pymoo_gpuaco import checks

BLANKS = " "
"""The separator that stands for any run of blanks and tabs."""
SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars", ",": "commas", ":": "colons", BLANKS: "blanks"}
"""Separators of columns in the order in which they are tried, and what they are called."""

# Unpacked bytes of a table that is packed: so many always, beyond them as many times its size.
_ALWAYS, _MOST_UNPACKED = 1 << 26, 200
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_SHOWN = 3  # labels of those that differ
_HEAD = 1024  # bytes that tell the encoding of a text without a mark
_RUN = re.compile(r"[^ \t\f\v]+")  # not what str.split takes for blanks: a no-break space groups thousands
_SEPARATOR_LINE = re.compile(r'\s*"?sep=(.)"?\s*', re.IGNORECASE | re.DOTALL)


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


def unpacked(data: bytes) -> bytes:
    """Return the contents of gzip data, other data as they are. Raises ValueError for broken and for excessive ones."""
    if not data.startswith(b"\x1f\x8b"):
        return data
    most = _ALWAYS + _MOST_UNPACKED * len(data)
    try:
        with gzip.open(io.BytesIO(data)) as file:
            contents = file.read(most + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise ValueError(f"broken gzip data ({error})") from error
    if len(contents) > most:
        raise ValueError(
            f"packed data of this size may hold {most / 1e6:.0f} MB at most, and these hold more"
        )
    return contents


def decoded(data: bytes) -> str:
    """Return bytes as text: UTF-8, UTF-16 with a mark or without, else Windows-1252, which holds all of Latin-1.

    Raises ValueError for binary data.
    """
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return data.decode(encoding)
    head = data[:_HEAD]
    if b"\0" in head:  # text of western letters has a zero in every second byte, and only there
        for start, encoding in ((0, "utf-16-be"), (1, "utf-16-le")):
            if set(head[start::2]) == {0} and 0 not in head[1 - start :: 2]:
                return data.decode(encoding)
    if b"\0" in data:
        raise ValueError("it is a binary file; of a spreadsheet save the table as CSV")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data.decode("cp1252", errors="replace")


def lines_of(text: str) -> Iterator[str]:
    """Yield the lines, ended as files end them: str.splitlines also ends them at a form feed or U+0085."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    start = 0
    while start <= len(text):
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        yield text[start:end]
        start = end + 1


def separator_line(text: str) -> str | None:
    """Return the separator that a spreadsheet names in a first line of its own, as in "sep=;", or None."""
    named = _SEPARATOR_LINE.fullmatch(text.partition("\n")[0])
    return named[1] if named else None


def first_line(text: str) -> str:
    """Return the first line of a table. Raises ValueError where there is none."""
    for number, line in enumerate(lines_of(text)):
        if not _is_left_out(line) and not (number == 0 and separator_line(text)):
            return line
    raise ValueError("it lists no city")


def split(text: str, separator: str) -> tuple[list[int], list[list[str]]]:
    """Return line numbers, from 1 on, and cells of the rows, without blanks around them.

    Empty lines and lines that begin with # are left out; cells may be in double quotation marks, which keep all that
    is in them. Raises ValueError for a quotation mark that is not closed.
    """
    lines = list(lines_of(text))
    numbers, rows = [], []
    at = 1 if separator_line(text) else 0
    while at < len(lines):
        line, number = lines[at], at + 1
        at += 1
        if _is_left_out(line):
            continue
        if '"' in line:
            row, at = _quoted(lines, number - 1, separator)
        else:
            cells = _RUN.findall(line) if separator == BLANKS else line.split(separator)
            row = [cell.strip() for cell in cells]
        if any(row):
            numbers.append(number)
            rows.append(row)
    return numbers, rows


def short(text: str) -> str:
    """Return a piece of a file fit for a message: hostile files have lines of megabytes."""
    return text if len(text) <= 40 else text[:37] + "..."


def _is_left_out(line: str) -> bool:
    beginning = line.lstrip()
    return not beginning or beginning.startswith("#")


def _quoted(lines: list[str], first: int, separator: str) -> tuple[list[str], int]:
    """Return the cells of a row with quotation marks, and the line after it."""
    rest = (lines[k] + "\n" for k in range(first, len(lines)))
    if separator == BLANKS:
        rest = (" ".join(_RUN.findall(line)) for line in rest)
    reader = csv.reader(rest, delimiter=separator, skipinitialspace=True)
    try:
        row = [cell.strip() for cell in next(reader)]
    except csv.Error as error:
        raise ValueError(f"line {first + 1}: {error}") from error
    after = first + reader.line_num
    raw = lines[first:after]
    # a cell of several lines that are rows themselves, or that never ends
    rows = [line for line in raw[:-1] if line.count(separator) + 1 >= len(row) > 1]
    rows = [line for line in rows if line.rpartition(separator)[2].strip()[-1:].isdigit()]
    unclosed = after == len(lines) and len(raw) > 1 and sum(line.count('"') for line in raw) % 2
    if unclosed or rows:
        raise ValueError(f"line {first + 1}: a quotation mark is not closed: {short(lines[first])!r}")
    return row, after


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


def columns_by_rows(sides: Sequence[Sequence[Any]], titles: Sequence[Any]) -> list[int]:
    """Return for each row (n,) of a square table the column of the same city.

    sides : what labels the rows, (n,) each: an index, columns of names. One that has the titles' labels decides.
    titles : (n,) labels of the columns.

    Without such a side the columns stay in their order where one of both only counts. Raises ValueError naming some of
    the labels that differ where none does.
    """
    for labels in sides:
        order = matching(labels, titles)
        if order is not None:
            return order
    named = [side for side in sides if counts_from(side) is None]
    if not named or counts_from(titles) is not None:
        return list(range(len(titles)))
    rows, columns = _texts(named[0]), _texts(titles)
    raise ValueError(
        f"rows and columns of a matrix must have the same labels; of rows alone are {_without(rows, columns)}, of "
        f"columns alone {_without(columns, rows)}. Where they are the same cities in the same order, leave out the "
        "labels of one side"
    )


def matching(labels: Sequence[Any], titles: Sequence[Any]) -> list[int] | None:
    """Return for each label (n,) the place of the title that is the same, None where they are not the same set.

    The same are labels of the same text and, where all are numbers, of the same value. Raises ValueError for the same
    labels in another order of which one comes twice.
    """
    if len(labels) != len(titles):
        return None
    rows, columns = _texts(labels), _texts(titles)
    for own, other in ((rows, columns), (list(map(number_of, rows)), list(map(number_of, columns)))):
        if own == other and None not in own:
            return list(range(len(own)))
        if set(own) == set(other) and None not in own:
            label, times = Counter(own).most_common(1)[0]
            if times > 1:
                raise ValueError(
                    f"rows and columns of a matrix have their labels in different orders, and {label!r} comes twice"
                )
            place = {label: at for at, label in enumerate(other)}
            return [place[label] for label in own]
    return None


def counts_from(labels: Sequence[Any]) -> int | None:
    """Return 0 or 1 where labels only count from there, as programs write them where nobody gave any; else None."""
    texts = _texts(labels[:1])
    first = number_of(texts[0]) if texts else None
    if first not in (0.0, 1.0):
        return None
    counted = all(number_of(text) == first + i for i, text in enumerate(_texts(labels)))
    return int(first) if counted else None


def ids_of(labels: Sequence[Any]) -> list[Any] | None:
    """Return labels as ids, whole numbers as such, or None where they do not tell the cities apart."""
    texts = _texts(labels)
    if not texts or any(map(is_blank, labels)) or len(set(texts)) < len(texts):
        return None
    if all(text.lstrip("-").isdecimal() and str(int(text)) == text for text in texts):
        return [int(text) for text in texts]
    return list(labels)


def is_frame(source: Any) -> bool:
    """Tell whether it is a table as pandas and polars have them."""
    return hasattr(source, "columns") and hasattr(source, "to_numpy")


def by_its_labels(matrix: Any) -> Any:
    """Return a matrix as it is, the values of a DataFrame with the columns in the order of the rows, by their labels.

    Raises ValueError where rows and columns of a square frame have different labels.
    """
    if not is_frame(matrix):
        return matrix
    titles, index = list(matrix.columns), index_of(matrix)
    values = matrix.to_numpy()
    if len(titles) != len(index):
        return values
    order = columns_by_rows([index], titles)
    return values if order == sorted(order) else values[:, order]


def index_of(frame: Any) -> list[Any]:
    """Return the labels of a frame's rows, which those of pandas have."""
    return list(getattr(frame, "index", ()))


def find_city(given: Any, n: int, names: Any, ids: Any, what: str) -> int:
    """Return the position of a city, in [0, n - 1], which is an integer, or the text of its name or id.

    Without ids the text of a number counts from 1, as outputs do. Raises ValueError, naming the parameter ``what``,
    for none and for several.
    """
    if not isinstance(given, str):
        equal = [
            city
            for city, name in enumerate(() if names is None else names)
            if (type(name), name) == (tuple, given)
        ]
        if equal:  # nodes of a graph may be tuples
            return equal[0]
        try:
            return checks.integer(what, given, 0, n - 1)
        except ValueError as error:
            if ids is None or str(given) not in _texts(ids):
                raise
            raise ValueError(f"{error}; {given} is an id: write it as text, {str(given)!r}") from error
    text, numbers = str(given).strip(), _texts(range(1, n + 1) if ids is None else ids)
    labels = [] if names is None else _texts(names)
    named = [city for city, label in enumerate(labels) if label == text]
    numbered = [numbers.index(text)] if text in numbers else []
    if ids is not None and named and numbered and named != numbered:
        raise ValueError(
            f"{what} {text!r} is the name of one city and the id of another: give a position, in Python"
        )
    if len(named) > 1:
        raise ValueError(
            f"{what} {text!r}: {len(named)} cities have this name; give a number, the first being {numbers[0]}"
        )
    for found in (named, numbered):
        if found:
            return found[0]
    known = [*labels, *(numbers if ids is not None else ())]
    close = [label for label in known if label.casefold() == text.casefold()] or get_close_matches(
        text, known, 1
    )
    hint = f"; did you mean {close[0]!r}?" if close else ""
    own = "" if ids is None else " that the file has"
    named_too = "a name of a city or " if labels else ""
    raise ValueError(
        f"{what} must be {named_too}a number from {numbers[0]} to {numbers[-1]}{own}, got {text!r}{hint}"
    )


def _texts(labels: Sequence[Any]) -> list[str]:
    return [str(label).strip() for label in labels]


def _without(labels: Sequence[str], others: Sequence[str]) -> str:
    """Tell a few labels that the others lack."""
    known = set(others)
    lacking = [repr(label) for label in dict.fromkeys(labels) if label not in known]
    return (", ".join(lacking[:_SHOWN]) or "none") + (", .." if len(lacking) > _SHOWN else "")
