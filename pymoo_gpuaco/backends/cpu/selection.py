"""Selection rules of the papers for the next city, and the tabu of an ant.

All rules except the tournament draw city j with probability w_j / sum of w over the unvisited cities (Eq. (1),
Skinderowicz 2020; Eq. (2), Uchida et al. 2012); they differ in time. ``weights`` is a row of tau^alpha eta^beta; the
first ``left`` entries of ``unvisited`` are the unvisited cities.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from pymoo_gpuaco.colony.selection import CODES
from pymoo_gpuaco.runtime.compiled import (
    Float64_1d,
    Float64_2d,
    Int32_1d,
    Int32_2d,
    Int64_1d,
    UInt8_1d,
    UInt8_2d,
    compiled_callee,
    inlined,
    struct,
)
from pymoo_gpuaco.runtime.philox import next_below, next_uniform
from pymoo_gpuaco.runtime.threads import thread_array

# Codes of rules in compiled code; every other rule is a roulette.
_RWM, _WRS, _COMPRESSED = CODES["rwm"], CODES["wrs"], CODES["compressed"]
_TRIAL, _HYBRID = CODES["stochastic_trial"], CODES["hybrid"]
_ACCEPTANCE_TOURNAMENT = CODES["acceptance_tournament"]


@struct
class Tabu(NamedTuple):
    """Tabu of an ant over n cities: a byte per city, and a list of unvisited cities (Fig. 6, Uchida et al. 2012)."""

    visited: UInt8_1d  # (n,)
    unvisited: Int32_1d  # (n,), the first ``left[0]`` entries are the unvisited cities, in any order
    position: Int32_1d  # (n,), unvisited[position[c]] == c while c is unvisited
    left: Int64_1d  # (1,), number of unvisited cities


def make_tabu(n: int) -> Tabu:
    """Allocate the tabu of one ant over n cities; call ``clear`` before use."""
    return Tabu(
        np.zeros(n, np.uint8), np.empty(n, np.int32), np.empty(n, np.int32), thread_array(1, np.int64)
    )


@struct
class Tabus(NamedTuple):
    """A `Tabu` of each of m ants."""

    visited: UInt8_2d  # (m, n)
    unvisited: Int32_2d  # (m, n)
    position: Int32_2d  # (m, n)
    left: Int64_1d  # (m,)


def make_tabus(m: int, n: int) -> Tabus:
    """Allocate the tabus of m ants over n cities; clear each before use."""
    every = m, n
    return Tabus(
        np.zeros(every, np.uint8), np.empty(every, np.int32), np.empty(every, np.int32), np.zeros(m, np.int64)
    )


@compiled_callee
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
    """Mark a city as visited in constant time: the last unvisited city replaces it in the list."""
    c = np.uint32(city)
    tabu.visited[c] = 1
    left = tabu.left[0] - 1
    tabu.left[0] = left
    last = tabu.unvisited[np.uint32(left)]
    place = tabu.position[c]
    tabu.unvisited[np.uint32(place)] = last
    tabu.position[np.uint32(last)] = place


@struct
class Choice(NamedTuple):
    """Arrays for selection among all cities, computed once per iteration."""

    weights: Float64_2d  # (n, n) float64 tau^alpha eta^beta, 0 on the diagonal
    prefix: Float64_2d  # (n, n) float64 running sums of each row, for stochastic trials, or (0, 0)
    row_max: Float64_1d  # (n,) float64 row maxima, for stochastic acceptance


@inlined
def roulette_among_candidates(candidates, weights, visited, cities, chances, rng):  # type: ignore[no-untyped-def]
    """Draw by roulette wheel from a candidate list (k,) with weights (k,); -1 if all are visited.

    ``cities`` and ``chances`` (k,) are workspaces for unvisited candidates, copied without unpredictable branches.
    """
    left = np.uint32(0)
    for r in range(candidates.shape[0]):
        city = candidates[r]
        cities[left] = city
        chances[left] = weights[r]
        left = np.uint32(left + np.uint32(1 - visited[np.uint32(city)]))
    total = 0.0
    for q in range(left):
        total += chances[q]
    if total <= 0.0:
        return np.int64(-1)
    spin = next_uniform(rng) * total
    chosen = np.int64(-1)
    for q in range(left):
        # if rounding leaves a rest of ``spin``, the last unvisited city is chosen
        if chances[q] > 0.0:
            chosen = np.int64(cities[q])
            spin -= chances[q]
            if spin <= 0.0:
                break
    return chosen


@compiled_callee
def race_among_candidates(candidates, weights, visited, rng):  # type: ignore[no-untyped-def]
    """Draw by weighted reservoir sampling (section 4.2.2, Skinderowicz 2020): the least -log(u) / w wins."""
    best, chosen = np.inf, np.int64(-1)
    for r in range(candidates.shape[0]):
        if not visited[candidates[r]] and weights[r] > 0.0:
            key = -math.log(next_uniform(rng)) / weights[r]
            if key < best:
                best, chosen = key, np.int64(candidates[r])
    return chosen


@compiled_callee
def roulette_over_row(weights, visited, rng):  # type: ignore[no-untyped-def]
    """Draw by SelectionWithoutCompression (section IV.B.1, Uchida et al. 2012): visited cities have weight 0."""
    total = 0.0
    for j in range(weights.shape[0]):
        if not visited[j]:
            total += weights[j]
    spin = next_uniform(rng) * total
    chosen = np.int64(-1)
    for j in range(weights.shape[0]):
        if not visited[j] and weights[j] > 0.0:
            chosen = np.int64(j)
            spin -= weights[j]
            if spin <= 0.0:
                break
    return chosen


@compiled_callee
def roulette_over_unvisited(weights, unvisited, left, rng):  # type: ignore[no-untyped-def]
    """Draw by SelectionWithCompression (section IV.B.2, Uchida et al. 2012): only unvisited cities are read."""
    total = 0.0
    for p in range(left):
        total += weights[unvisited[p]]
    spin = next_uniform(rng) * total
    chosen = np.int64(-1)
    for p in range(left):
        w = weights[unvisited[p]]
        if w > 0.0:
            chosen = np.int64(unvisited[p])
            spin -= w
            if spin <= 0.0:
                break
    return chosen


@compiled_callee
def race_over_unvisited(weights, unvisited, left, rng):  # type: ignore[no-untyped-def]
    """Draw by weighted reservoir sampling over all unvisited cities (Fig. 7, Skinderowicz 2020)."""
    best, chosen = np.inf, np.int64(-1)
    for p in range(left):
        w = weights[unvisited[p]]
        if w > 0.0:
            key = -math.log(next_uniform(rng)) / w
            if key < best:
                best, chosen = key, np.int64(unvisited[p])
    return chosen


@compiled_callee
def stochastic_trial(prefix, visited, trials, rng):  # type: ignore[no-untyped-def]
    """Draw from the sums over all cities (section IV.B.3, Uchida et al. 2012); -1 after ``trials`` visited cities.

    ``prefix[j]`` = w_0 + .. + w_j of the row. Rejecting visited cities leaves the rule's distribution unchanged.
    """
    n = prefix.shape[0]
    for _ in range(trials):
        spin = next_uniform(rng) * prefix[n - 1]
        low, high = 0, n - 1
        while low < high:
            middle = (low + high) // 2
            if prefix[middle] < spin:
                low = middle + 1
            else:
                high = middle
        if not visited[low]:
            return np.int64(low)
    return np.int64(-1)


@compiled_callee
def stochastic_acceptance(weights, row_max, visited, trials, rng):  # type: ignore[no-untyped-def]
    """Accept random cities with probability w / row maximum (section IV.B, Murooka et al.); -1 after ``trials``."""
    n = weights.shape[0]
    for _ in range(trials):
        j = next_below(rng, n)
        if not visited[j] and next_uniform(rng) * row_max < weights[j]:
            return np.int64(j)
    return np.int64(-1)


@compiled_callee
def tournament(weights, unvisited, left, size, drawn, rng):  # type: ignore[no-untyped-def]
    """Draw by roulette among ``size`` random unvisited cities, with repetition (section IV.B, Murooka et al.).

    This is not Eq. (2): cities that are not drawn cannot be chosen, so far cities are chosen more often. ``drawn``
    (size,) int32 is scratch memory.
    """
    total = 0.0
    for s in range(size):
        drawn[s] = unvisited[next_below(rng, left)]
        total += weights[drawn[s]]
    spin = next_uniform(rng) * total
    for s in range(size):
        spin -= weights[drawn[s]]
        if spin <= 0.0:
            return np.int64(drawn[s])
    return np.int64(drawn[size - 1])


@inlined
def next_among_candidates(candidates, weights, visited, rule, cities, chances, rng):  # type: ignore[no-untyped-def]
    """Draw from a candidate list by the rule; -1 if all are visited. See ``roulette_among_candidates``."""
    if rule.selection == _WRS:
        return race_among_candidates(candidates, weights, visited, rng)
    return roulette_among_candidates(candidates, weights, visited, cities, chances, rng)


@compiled_callee
def next_among_all(choice, i, tabu, rule, drawn, rng):  # type: ignore[no-untyped-def]
    """Draw from all unvisited cities by the rule; -1 if every weight is zero."""
    weights = choice.weights[i]
    left = tabu.left[0]
    if rule.selection == _WRS:
        return race_over_unvisited(weights, tabu.unvisited, left, rng)
    if rule.selection == _RWM or rule.selection == _COMPRESSED:
        return roulette_over_unvisited(weights, tabu.unvisited, left, rng)
    if rule.selection == _ACCEPTANCE_TOURNAMENT:
        if left <= rule.switch_left:
            return tournament(weights, tabu.unvisited, left, rule.tournament_size, drawn, rng)
        j = stochastic_acceptance(weights, choice.row_max[i], tabu.visited, rule.trials, rng)
        # Murooka et al. repeats until a city is accepted; the roulette has the same distribution and terminates
        return j if j >= 0 else roulette_over_unvisited(weights, tabu.unvisited, left, rng)
    if rule.selection == _HYBRID and left <= rule.switch_left:
        return roulette_over_unvisited(weights, tabu.unvisited, left, rng)
    if rule.selection == _TRIAL or rule.selection == _HYBRID:
        j = stochastic_trial(choice.prefix[i], tabu.visited, rule.trials, rng)
        if j >= 0:
            return j
    return roulette_over_row(weights, tabu.visited, rng)
