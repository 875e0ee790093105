"""Random-restart 2-opt hill climbing on all cores (O'Neil and Burtscher 2015): each scan gives the best move."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pymoo_gpuaco import checks
from pymoo_gpuaco.backends.cpu.moves import shortens
from pymoo_gpuaco.candidates.listed import ListedInstance, make_graph
from pymoo_gpuaco.colony.parameters import ClimberParameters
from pymoo_gpuaco.problems.metrics import EUC, Graph, between, distance
from pymoo_gpuaco.problems.summation import tour_length
from pymoo_gpuaco.runtime.compiled import (
    Float64_1d,
    Float64_2d,
    Int32_2d,
    Int64_1d,
    Int64_2d,
    UInt8_1d,
    UInt64,
    UInt64_1d,
    compiled,
    compiled_callee,
    struct,
)
from pymoo_gpuaco.runtime.philox import STATE, STREAM_RESTART, begin_stream, next_below
from pymoo_gpuaco.runtime.state import State, stored_integers, stored_numbers, stored_tours
from pymoo_gpuaco.runtime.stop import Stop, StoppableEngine
from pymoo_gpuaco.runtime.threads import thread_array, thread_count

CLIMBERS = 32
# Pairs evaluated by all climbers together in one call; takes well under a second on one core.
PAIRS_PER_CALL = 100_000_000
_LAST_RESTART = 2**62
START_AGAIN = -1
# Cost of a scan and of a restart, in pairs per city; otherwise a call on few cities would make millions of restarts.
SCAN_COST, RESTART_COST = 8, 32


@struct
class Climbers(NamedTuple):
    """State of m climbers, see `make_climbers`."""

    tours: Int32_2d
    lengths: Float64_1d
    restart: Int64_1d
    row: Int64_1d
    gain: Float64_1d
    move: Int64_2d


@struct
class ScanWorkspace(NamedTuple):
    """Arrays of one thread, see `make_scan_workspace`."""

    coords: Float64_2d
    edge: Float64_1d
    row: Float64_1d
    next_row: Float64_1d
    rng: UInt64_1d


def make_scan_workspace(n: int, axes: int) -> ScanWorkspace:
    """Allocate the arrays of one thread for scans of n cities."""
    return ScanWorkspace(
        coords=np.empty((axes, n)),  # in tour order
        edge=np.empty(n),  # lengths of tour edges
        row=np.empty(n),  # distances from one position of the tour to later ones
        next_row=np.empty(n),
        rng=thread_array(STATE, np.uint64),
    )


def make_climbers(m: int, n: int) -> Climbers:
    """Allocate the state of m climbers on n cities; a climber starts its first climb in its first call.

    A scan of all pairs can stop after any row and continue later.
    """
    return Climbers(
        tours=np.zeros((m, n), np.int32),
        lengths=np.zeros(m),  # exact
        restart=np.arange(m, dtype=np.int64) - m,  # climber c runs climbs c, c + m, c + 2 m ..
        row=np.full(m, START_AGAIN, np.int64),  # next row of the current scan, or START_AGAIN
        gain=np.zeros(m),  # best delta of the scan so far, 0 if none
        move=np.zeros((m, 2), np.int64),  # its positions i < j; the move reverses positions i+1 .. j
    )


@compiled_callee
def random_tour(key, restart, rng, tour):  # type: ignore[no-untyped-def]
    """Write a random permutation (Fisher-Yates) with the random numbers of (key, restart)."""
    n = tour.shape[0]
    for c in range(n):
        tour[c] = c
    begin_stream(rng, key, restart, STREAM_RESTART)
    for last in range(n - 1, 0, -1):
        other = next_below(rng, last + 1)
        tour[last], tour[other] = tour[other], tour[last]


@compiled_callee
def _distances_from(graph, i, tour, coords, first, row):  # type: ignore[no-untyped-def]
    """Compute row[j] = d(tour[i], tour[j]) for j >= first; ``coords`` (3, n): coordinates in tour order."""
    n = tour.shape[0]
    if graph.matrix.shape[0] > 0:
        for j in range(first, n):
            row[j] = graph.matrix[tour[i], tour[j]]
        return
    x, y, z = coords[0, i], coords[1, i], coords[2, i]
    xs, ys, zs = coords[0], coords[1], coords[2]
    if graph.metric == EUC:
        # the same loop; the compiler vectorises it for a constant metric
        for j in range(first, n):
            row[j] = between(EUC, x, y, z, xs[j], ys[j], zs[j])
        return
    for j in range(first, n):
        row[j] = between(graph.metric, x, y, z, xs[j], ys[j], zs[j])


@compiled_callee
def _scan(graph, c, climber, coords, edge, row, next_row, budget, stop):  # type: ignore[no-untyped-def]
    """Evaluate rows of moves until the scan ends, the budget is spent or ``stop[0]`` is 1; return the remaining budget.

    Removing the edges after positions i and j changes the length by
    d(i, j) + d(i+1, j+1) - d(i, i+1) - d(j, j+1): the second term is the first term of row i+1, so each move
    needs one new distance. Ties: the least i, then the least j.
    """
    tour = c.tours[climber]
    n = tour.shape[0]
    for p in range(n):
        for axis in range(coords.shape[0]):
            coords[axis, p] = graph.coords[tour[p], axis]
    for p in range(n):
        edge[p] = distance(graph, tour[p], tour[p + 1 if p + 1 < n else 0])
    i = c.row[climber]
    _distances_from(graph, i, tour, coords, i + 1, row)
    while i < n - 2 and budget > 0 and stop[0] == 0:
        _distances_from(graph, i + 1, tour, coords, i + 2, next_row)
        last = np.inf  # the move with the edge from the last position back to the first
        if i > 0:
            last = row[n - 1] + distance(graph, tour[i + 1], tour[0]) - edge[n - 1]
        # the least change without the edge after i, which all moves of the row remove; 0 with it is no gain
        least, at = edge[i], np.int64(-1)
        for j in range(i + 2, n - 1):
            delta = row[j] + (next_row[j + 1] - edge[j])
            if delta < least and shortens(delta - edge[i], edge[i] + edge[j]):
                least, at = delta, np.int64(j)
        if last < least and shortens(last - edge[i], edge[i] + edge[n - 1]):
            least, at = last, np.int64(n - 1)
        least -= edge[i]
        if least < c.gain[climber]:
            c.gain[climber] = least
            c.move[climber, 0] = i
            c.move[climber, 1] = at
        row, next_row = next_row, row
        budget -= n - 1 - i
        i += 1
    c.row[climber] = i
    return budget - SCAN_COST * n


@compiled_callee
def _reverse(tour, i, j):  # type: ignore[no-untyped-def]
    """Reverse the cities at the positions i+1 .. j."""
    i += 1
    while i < j:
        tour[i], tour[j] = tour[j], tour[i]
        i += 1
        j -= 1


@compiled
def climb(
    graph: Graph,
    c: Climbers,
    w: ScanWorkspace,
    key: UInt64,
    first: int,
    last: int,
    budget: int,
    best_tours: Int32_2d,
    best_lengths: Float64_1d,
    stop: UInt8_1d,
) -> int:
    """Run climbers first .. last-1 for about ``budget`` evaluated pairs each; return the number of finished climbs.

    ``best_tours`` (m, n) and ``best_lengths`` (m,) receive the shortest tour of each climber in this call. Once
    ``stop[0]`` is 1 climbers pause; the first one still returns its current tour.
    """
    m, n = c.tours.shape
    finished = 0
    for climber in range(first, last):
        if stop[0] != 0 and climber > first:
            break
        tour = c.tours[climber]
        best_lengths[climber] = np.inf
        left = budget
        while True:
            if c.row[climber] == START_AGAIN:
                c.restart[climber] += m
                random_tour(key, c.restart[climber], w.rng, tour)
                c.lengths[climber] = tour_length(graph, tour)
                c.row[climber] = 0
                c.gain[climber] = 0.0
                left -= RESTART_COST * n
            if c.lengths[climber] < best_lengths[climber]:
                best_lengths[climber] = c.lengths[climber]
                for p in range(n):
                    best_tours[climber, p] = tour[p]
            if left <= 0 or stop[0] != 0:
                break
            left = _scan(graph, c, climber, w.coords, w.edge, w.row, w.next_row, left, stop)
            if c.row[climber] < n - 2:
                continue
            if c.gain[climber] == 0.0:
                finished += 1
                c.row[climber] = START_AGAIN
                continue
            _reverse(tour, c.move[climber, 0], c.move[climber, 1])
            c.lengths[climber] = tour_length(graph, tour)
            c.row[climber] = 0
            c.gain[climber] = 0.0
    return finished


class CpuClimbers(StoppableEngine):
    """``ClimberEngine`` on all cores; ``n_climbers=None`` gives 32.

    Raises
    ------
    ValueError : for an asymmetric instance, because moves reverse paths.
    """

    kind: str = "cpu"

    def __init__(self, instance: ListedInstance, parameters: ClimberParameters) -> None:
        parameters.check_for(instance.symmetric)
        self.instance = instance
        self.n_climbers = parameters.n_climbers or CLIMBERS
        self._graph = make_graph(instance)
        self._climbers = make_climbers(self.n_climbers, instance.n)
        self._best_tours = np.zeros((self.n_climbers, instance.n), np.int32)
        self._best_lengths = np.full(self.n_climbers, np.inf)
        self._threads = min(thread_count(), self.n_climbers)
        axes = 3 if self._graph.coords.shape[0] > 0 else 0
        self._workspaces = [make_scan_workspace(instance.n, axes) for _ in range(self._threads)]
        self.stop = Stop()

    def climb(self, key: int, pairs: int = PAIRS_PER_CALL) -> int:
        """Evaluate about ``pairs`` pairs with all climbers together; return the number of finished climbs."""
        finished = [0] * self._threads
        budget = max(1, pairs // self.n_climbers)

        def work(thread: int, first: int, last: int) -> None:
            finished[thread] = climb(
                self._graph,
                self._climbers,
                self._workspaces[thread],
                key,
                first,
                last,
                budget,
                self._best_tours,
                self._best_lengths,
                self.stop.flag,
            )

        self.stop.reset()
        self.stop.parallel_for(work, self.n_climbers, self._threads)
        return sum(finished)

    def start_from(self, tours: ArrayLike) -> None:
        """Start the first climbers at the given tours (rows of n) instead of random ones."""
        c = self._climbers
        given = checks.permutations("tours", tours, self.instance.n)
        for climber, tour in enumerate(given[: self.n_climbers]):
            c.tours[climber] = tour
            c.lengths[climber] = tour_length(self._graph, c.tours[climber])
            c.restart[climber] = climber
            c.row[climber] = 0
            c.gain[climber] = 0.0

    def best(self) -> tuple[NDArray[np.int32], float]:
        """Return the shortest tour of the last call of ``climb`` and its exact length."""
        climber = int(self._best_lengths.argmin())
        return self._best_tours[climber].copy(), float(self._best_lengths[climber])

    def export_state(self) -> State:
        """Return copies of the state of all climbers."""
        state = {name: array.copy() for name, array in self._climbers._asdict().items()}
        return {**state, "best_tours": self._best_tours.copy(), "best_lengths": self._best_lengths.copy()}

    def import_state(self, state: State) -> None:
        """Continue the climbs of an exported state."""
        c, m, n = self._climbers, self.n_climbers, self.instance.n
        row = stored_integers(state, "row", (m,), START_AGAIN, max(0, n - 3), np.int64)
        given = {
            "tours": stored_tours(state, "tours", m, n, none=row == START_AGAIN),
            "lengths": stored_numbers(state, "lengths", (m,)),
            "restart": stored_integers(state, "restart", (m,), -m, _LAST_RESTART, np.int64),
            "row": row,
            "gain": stored_numbers(state, "gain", (m,), low=-np.inf),
            "move": stored_integers(state, "move", (m, 2), 0, n - 1, np.int64),
        }
        best_lengths = stored_numbers(state, "best_lengths", (m,), infinity=True)
        best_tours = stored_tours(state, "best_tours", m, n, none=np.isinf(best_lengths))
        for name, array in given.items():
            getattr(c, name)[...] = array
        self._best_tours[...], self._best_lengths[...] = best_tours, best_lengths
