"""Tabu of an ant: a byte a city, and the compact list of unvisited cities (Fig. 6, paper 000)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pymoo_gpuaco.runtime.compiled import compiled, inlined


class Tabu(NamedTuple):
    """Tabu of one ant over n cities; ``unvisited[:left[0]]`` are the unvisited ones in no particular order."""

    visited: np.ndarray  # (n,) uint8
    unvisited: np.ndarray  # (n,) int32
    position: np.ndarray  # (n,) int32, unvisited[position[c]] == c while c is unvisited
    left: np.ndarray  # (1,) int64


def make_tabu(n: int) -> Tabu:
    """Allocate a tabu; call ``clear`` before use."""
    return Tabu(np.zeros(n, np.uint8), np.empty(n, np.int32), np.empty(n, np.int32), np.zeros(1, np.int64))


@compiled
def clear(tabu):  # type: ignore[no-untyped-def]
    """Make every city unvisited."""
    n = tabu.visited.shape[0]
    for c in range(n):
        tabu.visited[c] = 0
        tabu.unvisited[c] = c
        tabu.position[c] = c
    tabu.left[0] = n


@inlined
def visit(tabu, city):  # type: ignore[no-untyped-def]
    """Mark a city as visited in constant time: the last unvisited one replaces it in the list."""
    c = np.uint32(city)
    tabu.visited[c] = 1
    left = tabu.left[0] - 1
    tabu.left[0] = left
    last = tabu.unvisited[np.uint32(left)]
    place = tabu.position[c]
    tabu.unvisited[np.uint32(place)] = last
    tabu.position[np.uint32(last)] = place
