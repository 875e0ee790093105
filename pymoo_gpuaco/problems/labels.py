"""Labels around a square of distances: which row and which column are the same city."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from pymoo_gpuaco.problems.cells import number_of

__all__ = ["columns_by_rows", "matching"]

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
    named = [side for side in sides if not _only_counts(side)]
    if not named or _only_counts(titles):
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
    for own, other in ((rows, columns), (_numbers(rows), _numbers(columns))):
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


def _only_counts(labels: Sequence[Any]) -> bool:
    """Whether labels are 0, 1, 2 .. or 1, 2, 3 .., as programs write them where nobody gave any."""
    numbers = _numbers(_texts(labels))
    return any(numbers == [i + first for i in range(len(labels))] for first in (0, 1))


def _texts(labels: Sequence[Any]) -> list[str]:
    return [str(label).strip() for label in labels]


def _numbers(texts: Sequence[str]) -> list[float | None]:
    return [number_of(text) for text in texts]


def _without(labels: Sequence[str], others: Sequence[str]) -> str:
    """Tell a few labels that the others lack."""
    known = set(others)
    lacking = [repr(label) for label in dict.fromkeys(labels) if label not in known]
    return (", ".join(lacking[:_SHOWN]) or "none") + (", .." if len(lacking) > _SHOWN else "")
