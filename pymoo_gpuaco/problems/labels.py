"""Labels of cities: which row and which column of a matrix are the same, and which city a name or an id means."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any

from pymoo_gpuaco import checks
from pymoo_gpuaco.problems.cells import is_blank, number_of

__all__ = [
    "by_its_labels",
    "columns_by_rows",
    "counts_from",
    "find_city",
    "ids_of",
    "index_of",
    "is_frame",
    "matching",
]

_SHOWN = 3  # labels of those that differ


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
