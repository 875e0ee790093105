"""Precedence among cities: which must come before which, and all that follows from it."""

from __future__ import annotations

from collections import deque
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
    successors: list[list[int]] = [[] for _ in range(n)]
    missing = [0] * n
    for i, j in pairs.tolist():
        successors[i].append(j)
        missing[j] += 1
    free, order = deque(city for city in range(n) if missing[city] == 0), []
    while free:
        city = free.popleft()
        order.append(city)
        for other in successors[city]:
            missing[other] -= 1
            if missing[other] == 0:
                free.append(other)
    if len(order) < n:
        cycle = _cycle({int(j): int(i) for i, j in pairs if missing[i] > 0 and missing[j] > 0})
        shown = [*cycle[:6], "..", cycle[-1]] if len(cycle) > 8 else cycle
        raise ValueError(f"{what} has the cycle {' -> '.join(map(str, shown))}: leave out one of its pairs")
    return order


def _cycle(before: dict[int, int]) -> list[int]:
    """Return a cycle, its first city again at the end, of cities that each have another one ``before`` them."""
    walk = [next(iter(before))]
    while walk.count(walk[-1]) == 1:
        walk.append(before[walk[-1]])
    return [*walk[: walk.index(walk[-1]) : -1], walk[-1]]


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
