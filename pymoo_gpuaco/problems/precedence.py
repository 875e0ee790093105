"""Precedence among cities: which must come before which, and all that follows from it."""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["MOST_ORDERED", "Order", "check_acyclic", "order_of"]

MOST_ORDERED = 5_000
"""Most cities of a problem with precedence: their transitive closure is a matrix of bytes."""


class Order(NamedTuple):
    """The partial order of n nodes."""

    before: NDArray[np.bool_]  # (n, n) transitive closure: i must come before j
    direct: NDArray[np.bool_]  # (n, n) transitive reduction: pairs that follow from no others


def check_acyclic(what: str, pairs: NDArray[np.int64], n: int) -> list[int]:
    """Return the n cities in an order that keeps all pairs (p, 2). Raises ValueError naming a cycle where none does."""
    before: dict[int, list[int]] = {city: [] for city in range(n)}
    for i, j in pairs.tolist():
        before[j].append(i)
    try:
        return list(TopologicalSorter(before).static_order())
    except CycleError as error:
        cycle = error.args[1]
        shown = [*cycle[:6], "..", cycle[-1]] if len(cycle) > 8 else cycle
        raise ValueError(
            f"{what} has the cycle {' -> '.join(map(str, shown))}: leave out one of its pairs"
        ) from None


def order_of(pairs: NDArray[np.int64], n: int) -> Order:
    """Return the closure and the reduction of acyclic pairs (p, 2) of n nodes."""
    rank = np.empty(n, np.int64)
    order = check_acyclic("precedence", pairs, n)
    rank[order] = np.arange(n)
    before, direct = np.zeros((n, n), bool), np.zeros((n, n), bool)
    by_first = pairs[np.lexsort((rank[pairs[:, 1]], pairs[:, 0]))]
    begin = np.searchsorted(by_first[:, 0], np.arange(n + 1))
    for city in reversed(order):
        row = before[city]
        for other in by_first[begin[city] : begin[city + 1], 1]:  # the earliest first
            if not row[other]:
                direct[city, other] = True
                row |= before[other]
                row[other] = True
    return Order(before, direct)
