"""Quadratic assignment on the CPU: robust tabu search of one ant a thread, and the trails of its colonies.

E. Taillard, "Robust taboo search for the quadratic assignment problem", Parallel Computing 17 (1991). The changes of
all swaps are kept, see `assignment.model`: a swap updates C and all changes by products, and those of the two items are
read from C. No step takes more than O(n^2), and all inner loops run along rows.
"""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.assignment.model import AssignmentModel
from pymoo_gpuaco.assignment.parameters import (
    HIGHEST_TRAIL,
    RATE_BITS,
    TENURE,
    AssignmentParameters,
    lowest_trail,
)
from pymoo_gpuaco.assignment.search import Colonies, Step
from pymoo_gpuaco.runtime import threads
from pymoo_gpuaco.runtime.compiled import (
    Float64_1d,
    Float64_2d,
    Float64_3d,
    Int32_1d,
    Int32_2d,
    Int32_3d,
    UInt8_1d,
    UInt64,
    compiled,
    compiled_callee,
    inlined,
    struct,
)
from pymoo_gpuaco.runtime.philox import (
    STREAM_COIN,
    STREAM_CONSTRUCTION,
    STREAM_KICKS,
    STREAM_TABU,
    philox4x32,
)
from pymoo_gpuaco.runtime.stop import Stop

_32 = np.uint64(32)
_MASK = np.uint64(0xFFFFFFFF)
_NEVER = 2**31 - 1  # of a swap that changes nothing: the iteration until which it is tabu


@struct
class IntegerWork(NamedTuple):
    """Matrices and memory of a thread, whole numbers; see `work_of`."""

    flows: Int32_3d
    distances: Int32_3d
    linear: Int32_2d
    kinds: Int32_1d
    costs: Int32_2d
    changes: Int32_2d
    lines: Int32_3d
    limits: Int32_1d
    until: Int32_2d
    stamps: Int32_2d
    own: Int32_2d


@struct
class RealWork(NamedTuple):
    """Matrices and memory of a thread, double precision."""

    flows: Float64_3d
    distances: Float64_3d
    linear: Float64_2d
    kinds: Int32_1d
    costs: Float64_2d
    changes: Float64_2d
    lines: Float64_3d
    limits: Float64_1d
    until: Int32_2d
    stamps: Int32_2d
    own: Int32_2d


def work_of(model: AssignmentModel) -> Any:
    """Return the matrices of a model with memory for one thread.

    costs : C (n, n). changes : (n, n) of the swaps (r, s), r > s. lines : for each pair of matrices x by item, y by
    location, y by item; [0, 3] the least allowed changes. limits : no change; the change below which a tabu swap is
    allowed.
    until : (n, n) iterations until which swaps are tabu. stamps : (n, n) the same for item and location.
    own : (4, n) placement, order of the items, taken locations; iteration.
    """
    n, whole = model.n, model.dtype == np.int32
    kind: Any = IntegerWork if whole else RealWork
    numbers = [np.zeros(shape, model.dtype) for shape in ((n, n), (n, n), (len(model.flows), 4, n))]
    limits = np.array([np.iinfo(np.int32).max if whole else np.inf, 0], model.dtype)
    others = [np.zeros(shape, np.int32) for shape in ((n, n), (n, n), (4, n))]
    return kind(model.flows, model.distances, model.linear, model.kinds, *numbers, limits, *others)


class CpuAssignment:
    """``AssignmentDevice`` on all cores: threads divide the ants. By default every core has an ant."""

    kind = "cpu"

    def __init__(self, model: AssignmentModel, parameters: AssignmentParameters) -> None:
        self.model, self.parameters = model, parameters
        self._threads = threads.thread_count()
        self.n_colonies = parameters.n_colonies or max(1, -(-self._threads // parameters.n_ants))
        self._work = [work_of(model) for _ in range(min(self._threads, self.n_colonies * parameters.n_ants))]
        self._colonies = Colonies.new(self.n_colonies, model.n)
        self._placements = np.empty((self.n_colonies * parameters.n_ants, model.n), np.int32)

    def colonies(self) -> Colonies:
        """Return a copy of the state of the colonies."""
        return copy.deepcopy(self._colonies)

    def use(self, colonies: Colonies) -> None:
        """Continue from a copy of the state of colonies."""
        self._colonies = copy.deepcopy(colonies)

    def iterate(self, step: Step, stop: Stop) -> NDArray[np.float64]:
        """Run every ant and update the trails, see ``AssignmentDevice``."""
        ants, state = self.parameters.n_ants, self._colonies
        best, costs = self._placements, np.full(ants * self.n_colonies, np.inf)
        search = search_whole if self.model.dtype == np.int32 else search_real

        def work(thread: int, numbers: Any) -> None:
            for ant in numbers:
                c = ant // ants
                swaps = step.swaps if np.isfinite(state.costs[c]) else 0
                search(
                    self._work[thread], state.trails[c], state.best[c], best[ant], costs[ant : ant + 1],
                    step.iterations, swaps, step.greedy, self.model.noise, step.key, ant, stop.flag
                )  # fmt: skip

        stop.parallel_dynamic(work, len(costs), len(self._work))
        self._learn(step, costs)
        return costs

    def placement(self, ant: int) -> NDArray[np.int32]:
        """Return the placement (n,) of an ant of the last iteration."""
        return self._placements[ant].copy()

    def _learn(self, step: Step, costs: NDArray[np.float64]) -> None:
        """Evaporate, deposit on the trails of the colony's or the iteration's best placement, or restart."""
        n, state, ours = self.model.n, self._colonies, self.parameters
        items, ants = np.arange(n), ours.n_ants
        for c in range(self.n_colonies):
            of = costs[c * ants : (c + 1) * ants]
            first = int(of.argmin())
            found = self._placements[c * ants + first]
            if np.isinf(of[first]):  # stopped before any ant
                continue
            if of[first] < state.costs[c] - self.model.noise:
                state.best[c], state.costs[c], state.stale[c] = found, of[first], 0
            else:
                state.stale[c] += 1
            trails = state.trails[c]
            if state.stale[c] > ours.restart_after:
                trails[:], state.costs[c], state.stale[c] = HIGHEST_TRAIL, np.inf, 0
                continue
            trails -= ((trails.astype(np.int64) * ours.evaporation) >> RATE_BITS).astype(np.int32)
            np.maximum(trails, lowest_trail(n), out=trails)
            deposited = state.best[c] if coin(step.key, c) else found
            trails[items, deposited] = np.minimum(HIGHEST_TRAIL, trails[items, deposited] + ours.deposit)


@compiled_callee
def _words(key, block, stream, ant):  # type: ignore[no-untyped-def]
    return philox4x32(
        np.uint64(block), np.uint64(stream), np.uint64(ant), np.uint64(0), key & _MASK, key >> _32
    )


@compiled
def coin(key: UInt64, colony: int) -> bool:
    """Return a random bit of a colony."""
    return _words(key, 0, STREAM_COIN, colony)[0] & np.uint64(1) == np.uint64(1)


@compiled
def search_whole(
    work: IntegerWork,
    trails: Int32_2d,
    start: Int32_1d,
    best: Int32_1d,
    cost: Float64_1d,
    iterations: int,
    swaps: int,
    greedy: UInt64,
    noise: float,
    key: UInt64,
    ant: int,
    stop: UInt8_1d,
) -> None:
    """Build the placement of an ant, improve it by tabu search, and store the best one (n,) and its cost (1,).

    With ``swaps`` > 0 it is ``start`` after random swaps; otherwise it is drawn from trails (n, n).
    """
    _search(work, trails, start, best, cost, iterations, swaps, greedy, noise, key, ant, stop)


@compiled
def search_real(
    work: RealWork,
    trails: Int32_2d,
    start: Int32_1d,
    best: Int32_1d,
    cost: Float64_1d,
    iterations: int,
    swaps: int,
    greedy: UInt64,
    noise: float,
    key: UInt64,
    ant: int,
    stop: UInt8_1d,
) -> None:
    """See `search_whole`."""
    _search(work, trails, start, best, cost, iterations, swaps, greedy, noise, key, ant, stop)


@compiled_callee
def _draw(trails, own, greedy, key, ant):  # type: ignore[no-untyped-def]
    """Place items in random order at free locations: the one of the highest trail, or drawn in proportion to trails."""
    n = trails.shape[0]
    p, order, taken = own[0], own[1], own[2]
    for i in range(n):
        order[i] = i
        taken[i] = 0
    for i in range(n - 1, 0, -1):
        words = _words(key, i, STREAM_CONSTRUCTION, ant)
        j = np.int64((words[2] * np.uint64(i + 1)) >> _32)
        order[i], order[j] = order[j], order[i]
    for k in range(n):
        w0, w1, _, _ = _words(key, k, STREAM_CONSTRUCTION, ant)
        i = np.int64(order[k])
        most = np.int64(0)  # of the trails that count
        if w0 < greedy:
            for location in range(n):
                if taken[location] == 0 and trails[i, location] > most:
                    most = np.int64(trails[i, location])
        total = np.int64(0)
        for location in range(n):
            if taken[location] == 0 and trails[i, location] >= most:
                total += 1 if most > 0 else np.int64(trails[i, location])
        left = np.int64((w1 * np.uint64(total)) >> _32)
        for location in range(n):
            if taken[location] == 0 and trails[i, location] >= most:
                left -= 1 if most > 0 else np.int64(trails[i, location])
                if left < 0:
                    p[i] = location
                    taken[location] = 1
                    break


@inlined
def _change(costs, flows, distances, p, r, s):  # type: ignore[no-untyped-def]
    """Return the change of the cost if items r and s swap their locations: the second pair of matrices adds nothing."""
    return (
        costs[r, p[s]] + costs[s, p[r]] - costs[r, p[r]] - costs[s, p[s]]
        + 2 * flows[0, r, s] * distances[0, p[r], p[s]]
    )  # fmt: skip


@compiled_callee
def _begin(flows, distances, linear, kinds, costs, changes, lines, limits, until, stamps, own, cost):  # type: ignore[no-untyped-def]
    """Compute C, the cost of the placement and all changes."""
    n, p = linear.shape[0], own[0]
    for i in range(n):
        for location in range(n):
            costs[i, location] = linear[i, location]
        for q in range(flows.shape[0]):
            for k in range(n):
                flow, place = flows[q, k, i], p[k]
                if flow != 0:
                    for location in range(n):
                        costs[i, location] += flow * distances[q, place, location]
    total = 0.0
    for i in range(n):
        total += np.float64(costs[i, p[i]]) + np.float64(linear[i, p[i]])
    cost[0] = 0.5 * total
    for q in range(lines.shape[0]):
        for line in range(lines.shape[1]):
            for place in range(lines.shape[2]):
                lines[q, line, place] = 0
    for r in range(n):
        for s in range(n):
            stamps[r, s] = 0
            until[r, s] = _NEVER if kinds[r] == kinds[s] else 0
            changes[r, s] = _change(costs, flows, distances, p, r, s)


@compiled_callee
def _update(changes, until, lines, limits, own, pairs):  # type: ignore[no-untyped-def]
    """Update all changes by the last swap; store for every item the least allowed one with a later item.

    Loops from 0 on, over one row, with every number of an array of its type: others are not vectorised.
    """
    least, big, wanted, it = lines[0, 3], limits[0], limits[1], own[3, 0]
    n = len(least)
    for s in range(n):
        least[s] = big
    for q in range(pairs):
        x, y = lines[q, 0], lines[q, 2]
        for r in range(1, n):
            row, xr, yr = changes[r], x[r], y[r]
            for s in range(r):
                row[s] -= (xr - x[s]) * (yr - y[s])
    for r in range(1, n):
        row, tabu = changes[r], until[r]
        for s in range(r):
            value = row[s]
            value = value if (tabu[s] < it) | (value < wanted) else big
            lowest = least[s]
            least[s] = value if value < lowest else lowest


@compiled_callee
def _search(work, trails, start, best, cost, iterations, swaps, greedy, noise, key, ant, stop):  # type: ignore[no-untyped-def]
    flows, distances, linear, kinds, costs, changes, lines, limits, until, stamps, own = work
    n, pairs, p, clock = linear.shape[0], flows.shape[0], own[0], own[3]
    if swaps > 0:
        for i in range(n):
            p[i] = start[i]
        for k in range(swaps):
            w0, w1, w2, w3 = _words(key, k, STREAM_KICKS, ant)
            i, j = np.int64((w0 * np.uint64(n)) >> _32), np.int64((w1 * np.uint64(n)) >> _32)
            p[i], p[j] = p[j], p[i]
    else:
        _draw(trails, own, greedy, key, ant)
    _begin(flows, distances, linear, kinds, costs, changes, lines, limits, until, stamps, own, cost)
    now, lowest = cost[0], cost[0]
    for i in range(n):
        best[i] = p[i]
    limits[1] = -noise
    least = lines[0, 3]
    for it in range(1, iterations + 1):
        if it & 63 == 0 and stop[0] != 0:
            break
        clock[0] = it
        _update(changes, until, lines, limits, own, pairs)
        u, v, top = np.int64(-1), np.int64(0), limits[0]
        for s in range(n - 1):
            if least[s] < top:
                top, u = least[s], np.int64(s)
        w0, w1, w2, w3 = _words(key, it, STREAM_TABU, ant)
        if u < 0:  # every swap is tabu
            u = np.int64((w2 * np.uint64(n)) >> _32)
            v = (u + 1 + np.int64((w3 * np.uint64(n - 1)) >> _32)) % n
            u, v = min(u, v), max(u, v)
        else:
            v = u + 1
            while changes[v, u] != top or (until[v, u] >= it and not top < limits[1]):
                v += 1
        now += np.float64(changes[v, u])
        z, w = np.int64(p[u]), np.int64(p[v])
        p[u], p[v] = w, z
        if now < lowest - noise:
            lowest = now
            for i in range(n):
                best[i] = p[i]
        limits[1] = max(lowest - now - noise, -np.float64(limits[0]))
        longest = np.uint64(TENURE * n)
        w2 = (((w0 * w0) >> _32) * w0) >> _32  # cubes of uniform numbers
        w3 = (((w1 * w1) >> _32) * w1) >> _32
        stamps[u, z] = it + 1 + np.int64((w2 * longest) >> _32)
        stamps[v, w] = it + 1 + np.int64((w3 * longest) >> _32)
        for q in range(pairs):
            x, at, y = lines[q, 0], lines[q, 1], lines[q, 2]
            for i in range(n):
                x[i] = flows[q, u, i] - flows[q, v, i]
                at[i] = distances[q, w, i] - distances[q, z, i]
            for i in range(n):
                y[i] = at[p[i]]
                if x[i] != 0:
                    for location in range(n):
                        costs[i, location] += x[i] * at[location]
        for k in range(2):
            r = u if k == 0 else v
            for t in range(n):
                if t != r:
                    a, b = max(r, t), min(r, t)
                    changes[a, b] = _change(costs, flows, distances, p, r, t)
                    for q in range(pairs):  # `_update` subtracts this product at the next iteration
                        x, y = lines[q, 0], lines[q, 2]
                        changes[a, b] += (x[r] - x[t]) * (y[r] - y[t])
                    if kinds[r] != kinds[t]:
                        until[a, b] = min(stamps[r, p[t]], stamps[t, p[r]])
    cost[0] = lowest
