"""Chains of fixed edges, and the directions in which precedence lets a tour pass them."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


def chains_of(
    edges: list[tuple[int, int]], n: int, directed: bool
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return chains of edges and single cities: ``nodes[first[i] : first[i + 1]]`` are the cities of chain i, in order.

    Chains are sorted by their lowest ends. If edges have no direction, the chain with the last edge takes the direction
    of that edge. A cycle through all cities is cut at its first edge.
    """
    if not edges:
        return np.arange(n + 1), np.arange(n)
    if len(edges) == n:
        edges = edges[1:]
    beside: dict[int, list[int]] = {}
    for i, j in edges:
        beside.setdefault(i, []).append(j)
        beside.setdefault(j, []).append(i)
    forward = set(edges if directed else edges[-1:])
    chains, seen = [], set()
    for city in range(n):
        if city in seen or len(beside.get(city, ())) == 2:
            continue
        chain = [city]
        while further := [c for c in beside.get(chain[-1], ()) if c not in chain[-2:]]:
            chain.append(further[0])
        seen.update(chain)
        backward = any((j, i) in forward for i, j in pairwise(chain))
        chains.append(chain[::-1] if backward else chain)
    sizes = [len(chain) for chain in chains]
    return np.cumsum([0, *sizes]), np.array([city for chain in chains for city in chain])


class OrderedChains(NamedTuple):
    """Chains of fixed edges in the order in which a tour passes their cities; single cities are chains, too."""

    begin: list[int]  # a tour begins with these; of a path without a given start, none
    finish: list[int]  # a tour ends with these, a round trip with its home city
    one_way: list[list[int]]  # passed from the first city to the last
    either_way: list[list[int]]  # of two or more cities
    # beside the home city of a round trip, which is left out, and away from it; where both begin, either may be first
    sides: list[list[int]]


def ordered_chains(
    edges: NDArray[np.int64],
    precedence: NDArray[np.int64],
    n: int,
    directed: bool,
    home: int | None,
    start: int | None,
    end: int | None,
) -> OrderedChains:
    """Return the chains of fixed ``edges`` of n cities; ``home``: first city of a round trip, None for a path.

    Raises ValueError naming a pair of ``precedence`` that contradicts a chain.
    """
    first, nodes = chains_of([(int(i), int(j)) for i, j in edges], n, directed)
    chains = [nodes[a:b].tolist() for a, b in pairwise(first)]
    begin: list[int] = []
    finish: list[int] = []
    made = OrderedChains(begin, finish, [], [], [])
    for chain in chains:
        forward = True if directed or len(chain) == 1 else _direction(chain, precedence, home)
        if home is not None and home in chain:
            at = chain.index(home)
            before, after = chain[:at], chain[at + 1 :]
            if forward is None:
                made.sides.extend(side for side in (before[::-1], after) if side)
                before = after = []
            elif not forward:
                before, after = after[::-1], before[::-1]
            begin += [home, *after]
            finish += [*before, home]
        elif start in chain:
            begin += chain if chain[0] == start else chain[::-1]
        elif end in chain:
            finish += chain if chain[-1] == end else chain[::-1]
        elif forward is None:
            made.either_way.append(chain)
        else:
            made.one_way.append(chain if forward else chain[::-1])
    _check(made, precedence)
    return made


def _direction(chain: list[int], precedence: NDArray[np.int64], home: int | None) -> bool | None:
    """Return True if the first pair that decides it requires a tour to pass a chain forwards; None if no pair does.

    A round trip begins and ends in the chain of its home city: all other cities are between the two parts.
    """
    size, centre = len(chain), chain.index(home) if home in chain else 0
    place = {city: (k - centre) % (2 * size) for k, city in enumerate(chain)}
    for i, j in precedence.tolist():
        if home in chain and home not in (i, j) and (i in place or j in place):
            return place.get(i, size) < place.get(j, size)
        if home not in chain and i in place and j in place:
            return place[i] < place[j]
    return None


def _check(chains: OrderedChains, precedence: NDArray[np.int64]) -> None:
    """Raise ValueError if a pair contradicts the order within a chain, or a chain at an end of the tour."""
    inner = [*chains.one_way, *chains.either_way, *chains.sides]
    place: dict[int, tuple[int, int]] = {}
    for number, chain in enumerate([chains.begin, *inner, chains.finish]):
        for k, city in enumerate(chain):
            place.setdefault(city, (number, k))
    for i, j in precedence.tolist():
        (of_i, k), (of_j, m) = place[i], place[j]
        if k > m if of_i == of_j else of_j == 0 or of_i == len(inner) + 1:
            raise ValueError(f"precedence: ({i}, {j}) contradicts fixed_edges: leave out one of them")
