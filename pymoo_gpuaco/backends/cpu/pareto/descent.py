"""Descent under a weighted sum: local search by chains, then kicks, which are undone if they lengthen the tour."""

from __future__ import annotations

from pymoo_gpuaco.backends.cpu.directed_search import make_kick
from pymoo_gpuaco.backends.cpu.pareto.chains import (
    Walker,
    begin_chain,
    closes,
    next_chain,
    rejoin,
    set_tour,
    set_weights,
    weighted,
)
from pymoo_gpuaco.backends.cpu.workspace import pop, push
from pymoo_gpuaco.pareto.instance import Costs
from pymoo_gpuaco.runtime.compiled import Float64_1d, Int32_1d, UInt8_1d, UInt64_1d, compiled, compiled_callee

# Maximum number of cities of each of the three stretches of a kick: 10, above 100 cities 1000 / n, but at least 2.
# Kicks of long stretches change more, which helps with few cities; those of short ones are faster to repair.
_LONGEST, _SHORTEST, _CITIES_OF_SHORTER = 10, 2, 1000
_EXCHANGES = 3  # maximum exchanges of a chain
_DIRECTED_EXCHANGES = 5
_BREADTH = 10  # candidates per city that are searched, the nearest under the weights
_DIRECTED_BREADTH = 6
# Share of the length of a tour: smaller changes are not gains.
_ROUNDING = 1e-9


@compiled_callee
def _save_or_restore(w, restore):  # type: ignore[no-untyped-def]
    """Update the snapshot from the current tour, or ``restore`` the tour from the snapshot."""
    for p in range(w.tour.shape[0]):
        if restore:
            w.tour[p] = w.accepted[p]
            w.position[w.accepted[p]] = p
        else:
            w.accepted[p] = w.tour[p]


@compiled_callee
def _repair(costs, w, tiny, stop):  # type: ignore[no-untyped-def]
    """Apply chains with a gain until the queue is empty; return the change in length.

    Once ``stop[0]`` is 1, cities are only removed from the queue.
    """
    change = 0.0
    while w.ring[1] > 0:
        city = pop(w)
        exchanges = 1
        while exchanges > 0 and not stop[0]:
            exchanges, gained = improve(costs, w, city, tiny)
            change += gained
    return change


@compiled_callee
def improve(costs, w, city, tiny):  # type: ignore[no-untyped-def]
    """Apply the first chain from a city that shortens the tour; return its exchanges and change, or 0, 0."""
    most = _DIRECTED_EXCHANGES if costs.directed else _EXCHANGES
    breadth = min(_DIRECTED_BREADTH if costs.directed else _BREADTH, w.near.shape[1])
    for forward in (True, False):
        if forward and costs.directed:
            continue
        opened = begin_chain(costs, w, city, forward)
        while True:
            exchanges, opened, change = next_chain(costs, w, opened, most, 0.0, breadth)
            if exchanges == 0:
                break
            if change < -tiny and closes(w, exchanges):
                rejoin(w, exchanges)
                for m in range(2 * exchanges):
                    push(w, w.chain[m])
                return exchanges, change
    return 0, 0.0


_kick = make_kick(weighted)


@compiled
def descend(
    costs: Costs,
    w: Walker,
    weights: Float64_1d,
    tour: Int32_1d,
    kicks: int,
    stream: UInt64_1d,
    stop: UInt8_1d,
) -> None:
    """Improve a tour (n,) under weights (k,) by ``kicks`` kicks and repairs.

    Once ``stop[0]`` is 1, the search ends soon with a valid tour.
    """
    n = tour.shape[0]
    longest = min(_LONGEST, max(_SHORTEST, _CITIES_OF_SHORTER // n), (n - 2) // 3)
    set_weights(costs, weights, w, True)
    set_tour(tour, w)
    length = 0.0
    for p in range(n):
        length += weighted(costs, w, w.tour[p], w.tour[p + 1 if p + 1 < n else 0])
        push(w, w.tour[p])
    tiny = _ROUNDING * length
    _repair(costs, w, tiny, stop)
    _save_or_restore(w, False)
    for _ in range(kicks):
        if stop[0]:
            break
        change = _kick(costs, w, longest, stream)
        change += _repair(costs, w, tiny, stop)
        _save_or_restore(w, change >= tiny)
    for p in range(n):
        tour[p] = w.accepted[p]
