"""Local search on given tours, on all cores."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pymoo_gpuaco import checks
from pymoo_gpuaco.backends.cpu import workspace
from pymoo_gpuaco.backends.cpu.directed_search import improve_tour as improve_directed_tour
from pymoo_gpuaco.backends.cpu.local_search import improve_tour
from pymoo_gpuaco.backends.cpu.windows.search import WindowSearch
from pymoo_gpuaco.backends.cpu.windows.window import make_units
from pymoo_gpuaco.candidates.listed import ListedInstance, make_graph
from pymoo_gpuaco.colony.parameters import NEIGHBOURS_WITH_DIRECTION, LocalSearch
from pymoo_gpuaco.memetic.parameters import MemeticParameters
from pymoo_gpuaco.problems.metrics import Graph
from pymoo_gpuaco.problems.summation import tour_length
from pymoo_gpuaco.runtime.compiled import Float64_1d, Int32_2d, UInt64, compiled
from pymoo_gpuaco.runtime.philox import STREAM_KICKS, begin_stream
from pymoo_gpuaco.runtime.stop import Stop, StoppableEngine
from pymoo_gpuaco.runtime.threads import thread_count

MANY_CITIES = 3000


def usual_kicks(n: int, symmetric: bool) -> float:
    """Return the default number of kicks per city.

    It is higher on many cities, where trails take long to distinguish good edges from bad ones, and for asymmetric
    tours, where the search has fewer moves and depends more on its start.
    """
    return 0.1 if n < MANY_CITIES and symmetric else 1.0


class CpuImprover(StoppableEngine):
    """``Improver`` on all cores; with ``search=None`` it only measures lengths.

    ``stop`` ends the searches; ``candidates`` is used by window search, see ``ColonyParameters``.

    Raises
    ------
    ValueError : for a search that reverses paths, if the instance is asymmetric.
    """

    kind: str = "cpu"

    def __init__(
        self,
        instance: ListedInstance,
        search: LocalSearch | None,
        graph: Graph | None = None,
        stop: Stop | None = None,
        candidates: str = "auto",
    ) -> None:
        if search is not None:
            search.check_for(instance.symmetric)
        n = instance.n
        self.instance = instance
        self._search = search
        self._graph = make_graph(instance) if graph is None else graph
        if not instance.symmetric:
            graph, few = self._graph, NEIGHBOURS_WITH_DIRECTION
            self._graph = graph._replace(
                neighbours=np.ascontiguousarray(graph.neighbours[:, :few]),
                neighbour_distances=np.ascontiguousarray(graph.neighbour_distances[:, :few]),
            )
        self.stop = Stop() if stop is None else stop
        self._no_reference = np.full((n, 2), -1, np.int32)
        self._workspaces: list[workspace.Workspace] = []
        self._trials = 0 if search is None else search.trials_in_windows(n)
        self._in_windows: list[WindowSearch] = []
        if search is not None and search.in_windows:
            self._units = make_units(instance, self._graph, MemeticParameters(candidates=candidates))[0]

    def improve(self, tours: ArrayLike, key: int) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Improve any number of tours (m, n); return copies and their exact lengths (m,)."""
        rows = checks.permutations("tours", tours, self.instance.n).astype(np.int32)
        lengths = np.empty(len(rows))
        threads = min(thread_count(), len(rows))
        self.prepare(threads)

        def part(thread: int, first: int, last: int) -> None:
            self.work(thread, first, last, key, rows, lengths, self._no_reference)

        if len(rows):
            self.stop.reset()
            self.stop.parallel_for(part, len(rows), threads)
        return rows, lengths

    def prepare(self, threads: int) -> None:
        """Allocate a workspace for each thread that calls ``work``."""
        while self._search is not None and len(self._workspaces) < threads:
            self._workspaces.append(workspace.make_workspace(self.instance.n, stop=self.stop.flag))
            if self._search.in_windows:
                self._in_windows.append(
                    WindowSearch(self.instance, self._units, MemeticParameters(), self.stop, threads=1)
                )

    def work(
        self,
        thread: int,
        first: int,
        last: int,
        key: int,
        tours: NDArray[np.int32],
        lengths: NDArray[np.float64],
        reference: NDArray[np.int32],
    ) -> None:
        """Improve rows first .. last-1 of ``tours`` (m, n) in place, and write their ``lengths`` (m,).

        ``reference`` (n, 2) holds the tour neighbours of a locally optimal tour, or -1; the search starts from cities
        with other neighbours. Tours that begin with -1 are unfinished and are skipped.
        """
        search, n, symmetric = self._search, self.instance.n, self.instance.symmetric
        if search is None:
            for ant in range(first, last):
                if tours[ant, 0] >= 0:
                    lengths[ant] = tour_length(self._graph, tours[ant])
        else:
            kicks = search.number_of_kicks(n, usual_kicks(n, symmetric))
            longest = min(search.longest_kick(), (n - 2) // (2 if symmetric else 3))
            graph, w = self._graph, self._workspaces[thread]
            ended = improve_tours(
                graph,
                w,
                not symmetric,
                search.number,
                reference,
                kicks,
                longest,
                key,
                first,
                last,
                tours,
                lengths,
            )
            if not ended:
                raise RuntimeError(workspace.NO_END)
            for ant in range(first, last) if search.in_windows else ():
                if tours[ant, 0] >= 0 and not self.stop.is_set():
                    windows = self._in_windows[thread]
                    windows.improve(tours[ant], self._trials, key, ant)
                    lengths[ant] = tour_length(self._graph, tours[ant])


@compiled
def improve_tours(
    graph: Graph,
    w: workspace.Workspace,
    directed: bool,
    moves: int,
    reference: Int32_2d,
    kicks: int,
    longest: int,
    key: UInt64,
    first: int,
    last: int,
    tours: Int32_2d,
    lengths: Float64_1d,
) -> bool:
    """Improve the tours of ants first .. last-1 of (m, n) in place and write their exact lengths (m,).

    Unfinished tours, which begin with -1, are skipped. Returns False after ``MOST_MOVES`` moves per city.
    """
    for ant in range(first, last):
        if tours[ant, 0] >= 0:
            begin_stream(w.rng, key, ant, STREAM_KICKS)
            if directed:
                improve_directed_tour(graph, w, moves, reference, kicks, longest, w.rng, tours[ant])
            else:
                improve_tour(graph, w, moves, reference, kicks, longest, w.rng, tours[ant])
            if w.moves_left[0] == 0:
                return False
            lengths[ant] = tour_length(graph, w.tour)
    return True
