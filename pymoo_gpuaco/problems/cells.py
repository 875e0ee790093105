"""Cells of a table: numbers with decimal and thousands marks, times, blanks, titles and matching labels."""

from __future__ import annotations

import datetime
import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco import checks

_SHOWN = 3  # differing labels that a message shows
_SIGN, _EXPONENT = r"[+\-\u2212]?", r"(?:[eE][+\-\u2212]?\d+)?"
_SPACES = " '\u2019\u00a0\u2009\u202f"  # characters that only group thousands
_PLAIN = re.compile(rf"{_SIGN}\d+{_EXPONENT}")
_FRACTION = re.compile(rf"{_SIGN}(?:\d+(?=\.)|\d*(?=[.,]\d))([.,])\d*{_EXPONENT}")
_GROUPED = re.compile(rf"{_SIGN}[1-9]\d{{0,2}}([.,{_SPACES}])\d{{3}}(?:\1\d{{3}})*(?:(?!\1)([.,])\d*)?")
_TIME = re.compile(r"\d{1,3}:[0-5]\d(?::[0-5]\d(?:[.,]\d+)?)?")
# several numbers in one cell: another separator was meant
_LIST = re.compile(r"[+-]?[\d.]+(?:\s*[,;|:\s]\s*[+-]?[\d.]+)+")
_WORDS = {".": "point", ",": "comma", " ": "blank", "'": "apostrophe"}
# titles of axes without accents, in English, German, French, Spanish, Italian, Dutch, Portuguese and Polish
_LAT = "lat|latitude|latitud|latitudine|breitengrad|geogr[a-z]*_breite|breedtegraad|szerokosc(_geograficzna)?"
_LON = (
    "lon|lng|long|longitude|longitud|longitudine|lae?ngengrad|geogr[a-z]*_lae?nge|lengtegraad|"
    "dlugosc(_geograficzna)?"
)
_AXES = (
    ("lat", re.compile(_LAT), re.compile(rf".*_({_LAT})|.*latitude")),
    ("lon", re.compile(_LON), re.compile(rf".*_({_LON})|.*longitude")),
    *(
        (
            axis,
            re.compile(f"{axis}(_?coord)?"),
            re.compile(f"{other}|(coord|pos|point|mid|cent(er|re))_?{axis}"),
        )
        for axis, other in (("x", "easting|rechtswert"), ("y", "northing|hochwert"), ("z", "z"))
    ),
)
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")  # as in decimalLatitude
# degrees, minutes and seconds; minutes and seconds may be missing
_DEGREES = re.compile(
    r"(?P<first>[NSEW])?\s*(?P<sign>[+\-\u2212])?(?P<d>\d{1,3}(?:[.,]\d+)?)\s*(?P<mark>[°º]|\s)?"
    r"\s*(?:(?P<m>\d{1,2}(?:[.,]\d+)?)\s*(?:['′’]|\s|$|(?=[NSEW])))?"
    r"\s*(?:(?P<s>\d{1,2}(?:[.,]\d+)?)\s*(?:\"|″|”|''|′′)?)?\s*(?P<last>[NSEW])?",
    re.IGNORECASE,
)
_UNIT = re.compile(r"\s*[(\[].*[)\]]$")
_NOT_ZERO = re.compile(r"[^eE]*[1-9]")


class Marks(NamedTuple):
    """Decimal mark and thousands separators of one table."""

    decimal: str = "."
    thousands: str = ""  # the characters that group digits

    def __str__(self) -> str:
        """Describe the marks; return an empty string for plain decimal points."""
        groups = [f"thousands {_WORDS.get(mark, 'blank')}" for mark in self.thousands]
        return ", ".join([f"decimal {_WORDS[self.decimal]}"] * (self.decimal != ".") + groups)


def is_number(cell: Any) -> bool:
    """Return True if a cell is a finite number under some marks; True and "1_000" are not numbers."""
    if isinstance(cell, str):
        return any(form.fullmatch(cell) for form in (_PLAIN, _FRACTION, _GROUPED))
    return number_of(cell) is not None


def is_gap(cell: Any) -> bool:
    """Return True if a cell is empty, nan or inf, which mean a missing distance."""
    return is_blank(cell) or str(cell).strip().lower() in ("inf", "infinity")


def is_blank(cell: Any) -> bool:
    """Return True if a cell is empty, or nan or NA as in DataFrames."""
    if isinstance(cell, str):
        return cell.strip().lower() in ("", "nan")
    differs = cell is None or cell != cell
    return differs is cell or bool(differs)  # pandas.NA != pandas.NA is pandas.NA


def is_time(cell: Any) -> bool:
    """Return True if a cell is a clock time, as text (h:mm or h:mm:ss) or as an object."""
    if isinstance(cell, str):
        return _TIME.fullmatch(cell) is not None
    return isinstance(cell, (datetime.time, datetime.date, datetime.timedelta, np.timedelta64, np.datetime64))


def is_list(cell: Any) -> bool:
    """Return True if a cell holds several numbers, so that another separator was meant."""
    return isinstance(cell, str) and not is_number(cell) and _LIST.fullmatch(cell) is not None


def number_of(cell: Any) -> float | None:
    """Return a cell with a decimal point as a finite number, or None if it is not one."""
    if isinstance(cell, (bool, np.bool_)) or (isinstance(cell, str) and "_" in cell) or is_time(cell):
        return None
    try:
        value = float(cell)
    except (TypeError, ValueError, OverflowError):
        return None
    return value if np.isfinite(value) and not vanishes(value, cell) else None


def vanishes(value: float, cell: Any) -> bool:
    """Return True if a cell is not 0 but its value as a double is, as of 1e-400."""
    return value == 0.0 and bool(_NOT_ZERO.match(cell) if isinstance(cell, str) else cell != 0)


def without_marks(cell: Any, marks: Marks) -> Any:
    """Return a number under the marks of its table as Python writes it, None for another text, and other cells."""
    if not isinstance(cell, str):
        return cell
    grouped = _GROUPED.fullmatch(cell)
    if grouped and grouped[1] in marks.thousands:
        cell = cell.replace(grouped[1], "")
    if _PLAIN.fullmatch(cell) is None:
        fraction = _FRACTION.fullmatch(cell)
        if fraction is None or fraction[1] != marks.decimal:
            return None
        cell = cell.replace(marks.decimal, ".")
    return cell.replace("\u2212", "-")


def decide_marks(
    columns: Sequence[Sequence[Any]],
    numeric: Collection[int],
    used: Collection[int],
    decimal: str | None,
    thousands: str | None,
) -> Marks:
    """Decide whether points and commas in the columns of a table are decimal marks or group thousands.

    A comma or point that cannot group thousands is decimal. One that occurs twice in a number, or before another mark,
    groups thousands. Ambiguous points are decimal, unless the same columns have numbers without a point.

    numeric : columns of numbers. used : columns that become coordinates or distances.
    decimal, thousands : the user's choice, or None.

    Raises ValueError if cells contradict each other, or if both readings are possible.
    """
    decimals = {} if decimal is None else {decimal: f"decimal={decimal}"}
    groups = {} if thousands is None else {thousands: f"thousands={thousands}"}
    either: dict[str, str] = {}
    ambiguous: set[int] = set()  # columns
    for c in {*numeric, *used}:
        for cell in (cell for cell in columns[c] if isinstance(cell, str)):
            grouped, fraction = _GROUPED.fullmatch(cell), _FRACTION.fullmatch(cell)
            if grouped and fraction:
                either.setdefault(grouped[1], cell)
                ambiguous.add(c)
            elif grouped:
                groups.setdefault(grouped[1], cell)
                if grouped[2]:
                    decimals.setdefault(grouped[2], cell)
            elif fraction:
                decimals.setdefault(fraction[1], cell)
    known: str | None = None
    for mark, other in ((".", ","), (",", ".")):
        if mark in decimals and (mark in groups or other in decimals):
            clash = f"{groups[mark]!r} a thousands" if mark in groups else f"{decimals[other]!r} a decimal"
            raise ValueError(
                f"{decimals[mark]!r} has a decimal {_WORDS[mark]} and {clash} "
                f"{_WORDS[mark if mark in groups else other]}; write all numbers one way"
            )
        if mark in decimals or other in groups:
            known = mark
    if known is None and either:
        known, example = next(iter(either.items()))
        beside = [cell for c in ambiguous.union(used) for cell in columns[c]]
        unmarked = any(
            _PLAIN.fullmatch(cell) if isinstance(cell, str) else is_number(cell) for cell in beside
        )
        if (known == "," or len(either) == 2 or unmarked) and not ambiguous.isdisjoint(used):
            other = "," if known == "." else "."
            raise ValueError(
                f"{example!r} may be {float(example.replace(known, '.')):.15g} or {example.replace(known, '')}: "
                f"decimal={known!r} (--decimal {known}) or decimal={other!r} (--decimal {other}) decides"
            )
    known = known or "."
    return Marks(known, "".join(sorted({*groups, *either} - {known})))


def degrees_of(cell: Any) -> tuple[float, str] | None:
    """Return decimal degrees and the axis, "lat", "lon" or "", of a text such as 48°08'14"N or 48 08 14 N, or None.

    The text must have a degree sign, or a hemisphere and more than one whole number: S1 is a name.
    """
    found = _DEGREES.fullmatch(cell.strip()) if isinstance(cell, str) else None
    if found is None or (found["first"] and found["last"]):
        return None
    hemisphere, is_signed = (found["first"] or found["last"] or "").upper(), found["sign"] is not None
    if is_signed and hemisphere:
        return None
    parts = [part for part in (found["d"], found["m"], found["s"]) if part is not None]
    if found["mark"] not in ("°", "º") and not (hemisphere and (len(parts) > 1 or not parts[0].isdigit())):
        return None
    numbers = [float(part.replace(",", ".")) for part in parts]
    if any(not value.is_integer() for value in numbers[:-1]) or any(value >= 60.0 for value in numbers[1:]):
        return None
    value = sum(number / 60.0**k for k, number in enumerate(numbers))
    sign = -1.0 if hemisphere in ("S", "W") or found["sign"] in ("-", "\u2212") else 1.0
    return sign * value, {"N": "lat", "S": "lat", "E": "lon", "W": "lon"}.get(hemisphere, "")


def as_shown(cell: Any) -> str:
    """Return a cell for a message, with advice if it is a time."""
    shown = repr(cell if isinstance(cell, str) else str(cell))[:60]
    return f"{shown}, which is a time: give numbers, such as minutes" if is_time(cell) else shown


def columns_by_rows(sides: Sequence[Sequence[Any]], titles: Sequence[Any]) -> list[int]:
    """Return for each row (n,) of a square table the column of the same city.

    sides : labels of the rows, (n,) each: an index or columns of names. The first with the titles' labels decides.
    titles : (n,) labels of the columns.

    Without such a side, columns keep their order if the labels of rows or columns are only consecutive numbers.
    Otherwise raises ValueError, naming some of the differing labels.
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
        f"rows and columns of a matrix must have the same labels: only rows have {_without(rows, columns)}, only "
        f"columns {_without(columns, rows)}; if their order is the same, leave out one side"
    )


def matching(labels: Sequence[Any], titles: Sequence[Any]) -> list[int] | None:
    """Return for each label (n,) the position of the equal title, or None if the two sets differ.

    Labels are equal if their texts are or, when all are numbers, their values. Raises ValueError if the order differs
    and a label occurs twice.
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
    """Return 0 or 1 if labels are consecutive numbers from there, as default labels are; else None."""
    texts = _texts(labels[:1])
    first = number_of(texts[0]) if texts else None
    if first not in (0.0, 1.0):
        return None
    counted = all(number_of(text) == first + i for i, text in enumerate(_texts(labels)))
    return int(first) if counted else None


def ids_of(labels: Sequence[Any]) -> list[Any] | None:
    """Return labels as ids, whole numbers as int, or None if some are blank or equal."""
    texts = _texts(labels)
    if not texts or any(map(is_blank, labels)) or len(set(texts)) < len(texts):
        return None
    if all(text.lstrip("-").isdecimal() and str(int(text)) == text for text in texts):
        return [int(text) for text in texts]
    return list(labels)


def is_frame(source: Any) -> bool:
    """Return True if an object is a DataFrame of pandas or polars, or an array of xarray with labels."""
    return _is_labelled(source) or (hasattr(source, "columns") and hasattr(source, "to_numpy"))


def _is_labelled(source: Any) -> bool:
    """Return True for an array (n, m) of xarray with labels of rows or columns."""
    dims = getattr(source, "dims", None)
    return isinstance(dims, tuple) and len(dims) == 2 and any(dim in source.coords for dim in dims)


def frame_parts(frame: Any) -> tuple[list[Any], list[Any], NDArray[Any]]:
    """Return titles of columns, index (empty in polars) and cells of a DataFrame or a labelled array.

    The cells are objects if columns have different types: floats would change the ids and large numbers of others.
    """
    frame = frame.to_pandas() if _is_labelled(frame) else frame
    values = frame.to_numpy()
    if values.dtype.kind == "f" and len(set(map(str, frame.dtypes))) > 1:
        values = np.array(frame.rows(), object) if hasattr(frame, "rows") else frame.to_numpy(dtype=object)
    return list(frame.columns), list(getattr(frame, "index", ())), values


def by_its_labels(matrix: Any) -> Any:
    """Return a matrix unchanged; if it has labels, return the values with columns in the order of the row labels.

    Raises ValueError if rows and columns of a square frame have different labels.
    """
    if not is_frame(matrix):
        return matrix
    titles, index, values = frame_parts(matrix)
    if len(titles) != len(index):
        return values
    order = columns_by_rows([index], titles)
    return values if order == sorted(order) else values[:, order]


def check_names(names: Sequence[Any], n: int, what: str = "names") -> NDArray[np.object_]:
    """Return (n,) names as an array."""
    if isinstance(names, str) or not hasattr(names, "__len__"):
        raise TypeError(f"{what} must be a sequence of {n} {what}, got {names!r}"[:120])
    if len(names) != n:
        raise ValueError(f"{what} must be {n}, one per city, got {len(names)}")
    array = np.empty(n, dtype=object)
    for city, name in enumerate(names):  # one by one: names may be tuples
        array[city] = name
    return array


def check_ids(ids: Sequence[Any], n: int) -> NDArray[np.object_]:
    """Return (n,) ids as an array; raise ValueError if two are equal."""
    array = check_names(ids, n, "ids")
    texts = [str(own) for own in array]
    if len(set(texts)) < n:
        twice = next(text for at, text in enumerate(texts) if text in texts[:at])
        raise ValueError(f"ids must differ, one per city, got {twice!r} twice")
    return array


def find_city(given: Any, n: int, names: Any, ids: Any, what: str) -> int:
    """Return the position in [0, n - 1] of a city, given by its position (integer) or its name or id (text).

    Without ids, numbers as text count from 1, as in outputs. Raises ValueError, naming the parameter ``what``, if no
    city or several match.
    """
    if not isinstance(given, str):
        if isinstance(given, tuple) and names is not None and given in list(names):  # a node of a graph
            return list(names).index(given)
        try:
            return checks.integer(what, given, 0, n - 1)
        except ValueError as error:
            if ids is None or str(given) not in _texts(ids):
                raise
            raise ValueError(f"{error}; {given} is an id: write it as text, {str(given)!r}") from error
    text, labels = given.strip(), [] if names is None else _texts(names)
    numbers = _texts(range(1, n + 1) if ids is None else ids)
    named = [city for city, label in enumerate(labels) if label == text]
    numbered = [numbers.index(text)] if text in numbers else []
    if ids is not None and named and numbered and named != numbered:
        raise ValueError(
            f"{what} {text!r} is the name of one city and the id of another: give a position, in Python"
        )
    if len(named) > 1:
        places = [numbers[city] if what.startswith("--") else str(city) for city in named[:_SHOWN]]
        kind = "number" if what.startswith("--") else "position"
        raise ValueError(
            f"{what} {text!r}: {len(named)} cities have this name; give the {kind} {' or '.join(places)}"
        )
    if named or numbered:
        return (named or numbered)[0]
    known = labels if ids is None else [*labels, *numbers]
    hint = checks.did_you_mean(text, {label: repr(label) for label in known})
    own = "" if ids is None else " that the file has"
    named_too = "a name of a city or " if labels else ""
    raise ValueError(
        f"{what} must be {named_too}a number from {numbers[0]} to {numbers[-1]}{own}, got {text!r}{hint}"
    )


def _texts(labels: Sequence[Any]) -> list[str]:
    return [str(label).strip() for label in labels]


def _without(labels: Sequence[str], others: Sequence[str]) -> str:
    """Return a few labels that the others lack."""
    known = set(others)
    lacking = [repr(label) for label in dict.fromkeys(labels) if label not in known]
    return (", ".join(lacking[:_SHOWN]) or "none") + (", .." if len(lacking) > _SHOWN else "")


def plain_title(title: Any) -> str:
    """Return a title in lower case without its unit and without accents."""
    plain = re.sub(r"[\s.-]+", "_", _UNIT.sub("", str(title).strip().lower())).strip("_").replace("ł", "l")
    return "".join(sign for sign in unicodedata.normalize("NFKD", plain) if not unicodedata.combining(sign))


def axis_of(title: Any) -> str | None:
    """Return the axis that a title names, or None."""
    return next(iter(columns_of_axes([title])), None)


def columns_of_axes(titles: Iterable[Any]) -> dict[str, list[int]]:
    """Return the columns of each axis: those with its plain title, else those with a longer one such as stop_lat."""
    found: dict[str, list[int]] = {}
    plain = [plain_title(_CAMEL.sub("_", str(title))) for title in titles]
    for axis, *forms in _AXES:
        ways = ([c for c, title in enumerate(plain) if form.fullmatch(title)] for form in forms)
        columns = next(filter(None, ways), None)
        if columns:
            found[axis] = columns
    return found


def names_axes(titles: Iterable[Any]) -> bool:
    """Return True if titles name both axes of a plane or of the globe."""
    axes = set(map(axis_of, titles))
    return {"x", "y"} <= axes or {"lat", "lon"} <= axes
