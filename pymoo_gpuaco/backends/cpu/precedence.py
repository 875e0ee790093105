"""Annealing of paths with precedence on the CPU: adjacent stretches are swapped without reversal.

The exchange is the one of the SOP-3-exchange (Gambardella and Dorigo, "An Ant Colony System hybridized with a new local
search for the sequential ordering problem", INFORMS Journal on Computing 12, 2000). A trial draws an edge from the
candidates, which determines one stretch; a scan finds the best other stretch that precedence allows.
"""

from __future__ import annotations

import numpy as np

from pymoo_gpuaco.precedence.model import (
    SHORT_STRETCH,
    THRESHOLDS,
    Chains,
    PathArrays,
    PathModel,
    Round,
)
from pymoo_gpuaco.runtime import threads
from pymoo_gpuaco.runtime.compiled import (
    Float64_1d,
    Int32_1d,
    Int64_1d,
    UInt8_1d,
    UInt64,
    compiled,
    compiled_callee,
    inlined,
)
from pymoo_gpuaco.runtime.philox import STREAM_PRECEDENCE, philox4x32
from pymoo_gpuaco.runtime.stop import Stop

CHAINS = 16  # default; fewer chains end worse after equally many trials
_32 = np.uint64(32)
_NONE = 1 << 60  # no exchange; more than any change of a length


class CpuChains:
    """``PrecedenceDevice`` on all cores: threads divide the chains, 16 by default."""

    kind = "cpu"
    trials = 1 << 13

    def __init__(self, model: PathModel, n_chains: int | None) -> None:
        self.n_chains = n_chains or CHAINS
        self.use(model)

    def use(self, model: PathModel) -> None:
        """Use the costs of a model of the same nodes from now on."""
        self.model = model

    def anneal(self, chains: Chains, around: Round, stop: Stop) -> None:
        """Anneal the paths in place, see ``PrecedenceDevice``."""
        paths, best, lengths = chains
        n, model = paths.shape[1], self.model

        def work(thread: int, first: int, last: int) -> None:
            position, onward, spare = np.empty(n, np.int32), np.empty(n, np.int32), np.empty(n, np.int32)
            for c in range(first, last):
                anneal_path(
                    model.arrays, paths[c], best[c], lengths[c], position, onward, spare,
                    around.temperatures, around.trials, around.key, c, stop.flag
                )  # fmt: skip

        stop.parallel_for(work, len(paths), threads.thread_count())


@compiled
def anneal_path(
    arrays: PathArrays,
    path: Int32_1d,
    best: Int32_1d,
    lengths: Int64_1d,
    position: Int32_1d,
    onward: Int32_1d,
    spare: Int32_1d,
    temperatures: Float64_1d,
    trials: int,
    key: UInt64,
    chain: int,
    stop: UInt8_1d,
) -> None:
    """Run trials on a path (n,) and store the best path. ``onward``: cost of the edge from each position."""
    cost, cost_to, after_begin, after, before_begin, before, nexts, n_nexts, previous, n_previous = arrays
    n = np.int64(len(path))
    for t in range(n):
        position[path[t]] = t
        onward[t] = cost[path[t], path[t + 1]] if t + 1 < n else 0
    k0, k1 = key & np.uint64(0xFFFFFFFF), key >> _32
    length, shortest = lengths[0], lengths[1]
    for t in range(trials):
        if t & 255 == 0 and stop[0] != 0:
            break
        w0, w1, w2, w3 = philox4x32(
            np.uint64(t), np.uint64(STREAM_PRECEDENCE), np.uint64(chain), np.uint64(0), k0, k1
        )
        threshold = np.int64(temperatures[t >> 8] * THRESHOLDS[np.int64(w2 >> np.uint64(20))])
        longest = n if w3 & np.uint64(12) == np.uint64(0) else np.int64(SHORT_STRETCH)
        drawn = np.int64((w0 * np.uint64(n - 1)) >> _32)
        near = (w1 * w1) >> _32  # near candidates are drawn more often
        if w3 & np.uint64(1):
            a = drawn
            b = np.int64(nexts[a, np.int64((near * np.uint64(n_nexts[a])) >> _32)])
        else:
            b = drawn + 1
            a = np.int64(previous[b, np.int64((near * np.uint64(n_previous[b])) >> _32)])
        i, h = np.int64(position[a]), np.int64(position[b])
        if h == i + 1:
            continue
        if h < i:
            if i - h > longest or h == 0 or i == n - 1:
                continue
            change, cut = _best_split(cost, cost_to, after_begin, after, path, position, onward, h, i)
            first, middle, last = h, cut, i + 1
        else:
            if h - 1 - i > longest:
                continue
            if w3 & np.uint64(2):
                change, last = _best_neighbour(
                    cost, cost_to, after_begin, after, path, position, onward, i, h, longest, True
                )
                first, middle = i + 1, h
            else:
                change, first = _best_neighbour(
                    cost, cost_to, before_begin, before, path, position, onward, i, h, longest, False
                )
                middle, last = i + 1, h
        if change == _NONE or change > threshold - cost[a, b]:
            continue
        length += change + cost[a, b]
        _exchange(cost, path, position, onward, spare, first, middle, last)
        if length < shortest:
            shortest = length
            for q in range(n):
                best[q] = path[q]
    lengths[0], lengths[1] = length, shortest


@inlined
def _best_neighbour(cost, cost_to, begin, related, path, position, onward, i, h, longest, ahead):  # type: ignore[no-untyped-def]
    """Swap positions i+1 .. h-1 with a stretch beside them: ``ahead``, one that begins at h, else one that ends at i.

    Return the least change without the new edge (i, h), and the end of that stretch, or its begin. ``related``: direct
    successors of each node if ``ahead``, else predecessors.
    """
    limit = min(np.int64(len(path)) - 1, h + longest) if ahead else max(np.int64(0), i - longest)
    for q in range(i + 1, h):
        city = path[q]
        for z in range(begin[city], begin[city + 1]):
            bound = np.int64(position[related[z]])
            if h <= bound < limit if ahead else limit < bound <= i:
                limit = bound
    head, tail = path[i + 1], path[h - 1]
    least, other_end = np.int64(_NONE), np.int64(0)
    for step in range(limit - h if ahead else i - limit):
        k = h + step if ahead else i - 1 - step  # position before the removed edge
        change = np.int64(cost_to[head, path[k]]) + cost[tail, path[k + 1]] - onward[k]
        if change < least:
            least, other_end = change, k + 1
    return (least if least == _NONE else least - onward[i] - onward[h - 1]), other_end


@inlined
def _best_split(cost, cost_to, after_begin, after, path, position, onward, h, i):  # type: ignore[no-untyped-def]
    """Move positions h .. cut-1 behind cut .. i: return the least change without the new edge (i, h), and cut."""
    ahead, behind = path[h - 1], path[i + 1]
    least, cut, reach = np.int64(_NONE), np.int64(0), h
    for k in range(h, i):
        city = path[k]
        for z in range(after_begin[city], after_begin[city + 1]):
            bound = np.int64(position[after[z]])
            if reach < bound <= i:
                reach = bound
        if reach == i:
            break
        if reach <= k:
            change = np.int64(cost[ahead, path[k + 1]]) + cost_to[behind, city] - onward[k]
            if change < least:
                least, cut = change, k + 1
    return (least if least == _NONE else least - onward[h - 1] - onward[i]), cut


@compiled_callee
def _exchange(cost, path, position, onward, spare, first, middle, last):  # type: ignore[no-untyped-def]
    """Swap path[first:middle] and path[middle:last]."""
    for q in range(first, last):
        spare[q] = path[q]
    for q in range(first, last):
        path[q + last - middle if q < middle else q - middle + first] = spare[q]
    onward[first - 1] = cost[path[first - 1], path[first]]
    for q in range(first, last):
        position[path[q]] = q
        onward[q] = cost[path[q], path[q + 1]]
