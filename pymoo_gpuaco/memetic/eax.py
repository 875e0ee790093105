"""Edge assembly crossover (EAX): a genetic algorithm that shortens a population of tours and preserves its diversity.

Y. Nagata and S. Kobayashi, "A powerful genetic algorithm using edge assembly crossover for the traveling salesman
problem", INFORMS Journal on Computing 25 (2013). In every generation each tour A is paired with the next tour B of a
random ring. Up to 30 children are made: each is A with the edges of B of one AB-cycle with a gain. The child with the
largest gain per loss of the population's entropy replaces A. When few tours gain any more, children take blocks of
AB-cycles. Blocks combine changes that no single AB-cycle makes, until nearly all tours are as short as the
best.

The cost of a child depends on its changes, see `child`. Only the difference of A and B, and the new tour, take longer
for longer tours. In long tours a child is chosen in each of several regions, see `ab_cycles`.
"""

from __future__ import annotations

import math
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.memetic.ab_cycles import count_regions
from pymoo_gpuaco.memetic.child import units
from pymoo_gpuaco.memetic.entropy import count_edges, larger
from pymoo_gpuaco.memetic.numbering import renumber_along_first
from pymoo_gpuaco.memetic.offspring import (
    COUNTED,
    ENDED,
    GENERATIONS,
    OffspringWorkspace,
    PopulationArrays,
    count_chosen,
    make_chosen,
    make_differences,
    make_generation_batch,
    make_generations,
    make_stage,
    make_workspace,
)
from pymoo_gpuaco.problems.metrics import Graph
from pymoo_gpuaco.runtime.clock import CLOCK
from pymoo_gpuaco.runtime.compiled import Int32_2d, Int64_1d, compiled
from pymoo_gpuaco.runtime.philox import STREAM_EVOLUTION, fold_in, generator, new_streams
from pymoo_gpuaco.runtime.stop import Stop
from pymoo_gpuaco.runtime.threads import thread_count

# The first stage ends after half of the time at the latest: the second one shortens tours that the first cannot.
SHARE_OF_FIRST_STAGE = 0.5
# Generations in one call of all threads, which need the GIL to begin and to end it; in a run with a time limit, only as
# many as end within these seconds.
MOST_AT_ONCE, SECONDS_AT_ONCE = 16, 0.05
# Limit of the changed edges of a child, which sets the buffer of each pair, and its increase for each further region.
MOST_CHANGED, CHANGED_PER_REGION = 4096, 512
# Pairs per thread from which one thread makes a child at once. Fewer pairs of long tours are divided by region, since a
# generation lasts as long as its slowest pair.
_PAIRS_PER_THREAD = 3


class Evolved(NamedTuple):
    """Result of an evolution."""

    tours: NDArray[np.int32]  # (m, n), in the order of the given tours
    generations: int
    second_from: int  # first generation of the second stage; without one, the number of generations
    children: int  # number of children tried
    replaced: int  # number of replaced parents
    rest: Evolving | None = None  # continues an evolution that has not ended


def evolve(
    graph: Graph,
    tours: NDArray[np.int32],
    near: NDArray[np.int32],
    key: int,
    *,
    scale: float = 1.0,
    migrants: NDArray[np.int32] | None = None,
    children: int = 30,
    generations: int | None = None,
    stop: Stop | None = None,
    pause_after: float | None = None,
    blocks: bool = False,
) -> Evolved:
    """Evolve copies of tours (m, n) until no child replaces a tour any more.

    Children take single AB-cycles in the first stage, blocks of them in the second. No tour gets longer in whole units.

    graph : distances, see `EvolvingTours`.
    tours : eight to a thousand different good tours, see `EvolvingTours`.
    near : (n, k) candidates of each city, see `EvolvingTours`.
    key : in [0, 2**64); determines the result for any number of threads, unless ``stop`` ends the search.
    scale : whole units per unit of distance, see `EvolvingTours`.
    migrants : further tours (e, n), parents B only; they do not change and are not returned.
    children : maximum children per pair, generation and region, >= 1; AB-cycles without a gain do not count.
    generations : maximum number, >= 0; None: no limit.
    stop : ends the search early; the second stage gets at least half of the time. None: no limit.
    pause_after : seconds after which the search pauses, see ``Evolved.rest``; None: it does not pause.
    blocks : True: begin with the second stage.
    """
    parents = len(tours)
    if migrants is not None and len(migrants):
        tours = np.concatenate([tours, migrants])
    stop = Stop() if stop is None else stop
    stop.reset()
    population = EvolvingTours(graph, tours, near, scale, parents, stop)
    return Evolving(population, key, children, stop, blocks).proceed(pause_after, generations)


class Evolving:
    """An evolution in two stages, which may pause between two generations.

    Parameters
    ----------
    blocks : True in the second stage.
    """

    def __init__(
        self, population: EvolvingTours, key: int, children: int, stop: Stop, blocks: bool = False
    ) -> None:
        self.population, self.blocks = population, blocks
        self._key, self._children, self._stop = key, children, stop
        self._done, self._second_from = 0, 0
        self._seconds = SECONDS_AT_ONCE  # of the latest generation
        now = CLOCK.monotonic()
        self._halfway = math.inf if stop.until is None else now + SHARE_OF_FIRST_STAGE * (stop.until - now)
        self._begin_stage()

    @property
    def tours(self) -> NDArray[np.int32]:
        """A copy of the parents (m, n)."""
        return self.population.tours[: self.population.parents]

    def proceed(self, pause_after: float | None = None, generations: int | None = None) -> Evolved:
        """Evolve until both stages end, or for some seconds; see `evolve`."""
        population, stop = self.population, self._stop
        pause_at = math.inf if pause_after is None else CLOCK.monotonic() + pause_after
        most = math.inf if generations is None else self._done + generations
        children, replaced, before = population.children, population.replaced, self._done
        while not self._ended and self._done < most and not stop.passed():
            in_time = MOST_AT_ONCE if stop.until is None else int(SECONDS_AT_ONCE / max(self._seconds, 1e-9))
            at_once = int(min(max(in_time, 1), MOST_AT_ONCE, most - self._done))
            began = CLOCK.monotonic()
            keys = [fold_in(self._key, self._done + i) for i in range(at_once)]
            made = population.generations(keys, self._children, self.blocks, self._stage)
            self._done, self._seconds = self._done + made, (CLOCK.monotonic() - began) / made
            if not self.blocks and (self._stage[ENDED] or CLOCK.monotonic() >= self._halfway):
                self.blocks, self._second_from = True, self._done
                self._begin_stage()
            if CLOCK.monotonic() >= pause_at:
                break
        return Evolved(
            self.tours,
            self._done - before,
            self._second_from if self.blocks else self._done,
            population.children - children,
            population.replaced - replaced,
            None if self._ended else self,
        )

    @property
    def _ended(self) -> bool:
        return len(self.population.lengths) < 2 or (self.blocks and bool(self._stage[ENDED]))

    def _begin_stage(self) -> None:
        population = self.population
        self._stage = make_stage(int(population.lengths[: population.parents].min()))


class EvolvingTours:
    """Population of m tours of n cities, their lengths in whole units, and the frequencies of their edges.

    Parameters
    ----------
    graph : symmetric distances; n >= 3.
    tours : (m, n), each a permutation of 0 .. n-1; they are copied.
    near : (n, k) candidates of each city, by which subtours are joined; the nearest 7 are as good as 10.
    scale : whole units per unit of distance, > 0: 1 for whole distances; else about 2**20 per mean edge.
    parents : number of parents A, the first tours, in [1, m]; None: all. The others are migrants: they do not change,
        and their edges count like those of the parents.
    stop : ends a generation early; None: no limit.
    """

    def __init__(
        self,
        graph: Graph,
        tours: NDArray[np.int32],
        near: NDArray[np.int32],
        scale: float = 1.0,
        parents: int | None = None,
        stop: Stop | None = None,
    ) -> None:
        m, n = tours.shape
        self.scale = float(scale)
        self.parents = m if parents is None else parents
        near = np.ascontiguousarray(near, np.int32)
        renumbered = renumber_along_first(graph, near, tours)
        self._table = count_edges(renumbered.tours)
        both = np.empty((2 * m, n), np.int32)
        both[:m] = renumbered.tours
        self._renumbered = renumbered._replace(tours=both)
        self._rows = np.arange(m)  # rows of the current tours; the other half of the rows is for children
        self._positions = np.empty((2 * m, n), np.int32)
        self.lengths = np.empty(m, np.int64)  # in whole units
        _measure(renumbered.graph, self.scale, renumbered.tours, self._positions, self.lengths)
        most = min(n, MOST_CHANGED + CHANGED_PER_REGION * (count_regions(n) - 1))
        self._regions, threads = count_regions(n), thread_count()
        divided = self._regions > 1 and m < _PAIRS_PER_THREAD * threads
        # made by each thread at first use, so that page faults also run in parallel
        self._workspaces: list[OffspringWorkspace | None] = [None] * min(threads, m * self._regions)
        self._make_workspace = partial(make_workspace, n, most)
        # one per thread, or one of all pairs, see `make_generations`
        self._differences = (
            [make_differences(n, m)] if divided else [make_differences(n, 1) for _ in self._workspaces]
        )
        self._chosen = make_chosen(m, most)
        self.children = 0  # number of children tried so far
        self.replaced = 0  # number of replaced parents
        self._stop = Stop() if stop is None else stop

    @property
    def tours(self) -> NDArray[np.int32]:
        """A copy of the current tours (m, n)."""
        current = self._renumbered.tours[self._rows]
        return self._renumbered._replace(tours=current).original_tours()

    def generations(self, keys: list[int], children: int, blocks: bool, stage: NDArray[np.int64]) -> int:
        """Make generations of a stage, one per key, or fewer if the stage or the stop ends them; return their number.

        The best of up to ``children`` children per region of A and B replaces A. Every B is a tour from before the
        generation, and edges are counted after all choices, so any number of threads may choose in parallel. Several
        tours may lose the same rare edge in one generation, which is harmless: 50 tours of fnl4461 ended as short as
        with a count after every 32 pairs (the means of 47 keys are .0064 and .0067 %). A child takes one AB-cycle, or a
        block of AB-cycles if ``blocks``.

        Each key in [0, 2**64) determines the result of its generation unless the stop ends it.
        """
        m, regions, before = len(self.lengths), self._regions, int(stage[GENERATIONS])
        n_streams = m if regions == 1 else m + m * regions
        rings = np.array([generator(key, m).permutation(m) for key in keys])
        streams = np.array([new_streams(key, n_streams, STREAM_EVOLUTION) for key in keys])
        population, differences = self._arrays(), self._differences
        batch = make_generation_batch(rings, streams, stage)

        def work(thread: int, *_: int) -> None:
            w = self._workspaces[thread] = self._workspaces[thread] or self._make_workspace()
            make_generations(population, differences[thread % len(differences)], w, batch, children, blocks)

        self._stop.parallel_for(work, len(self._workspaces), len(self._workspaces))
        while stage[COUNTED] < m:
            self._table = larger(self._table)
            stage[COUNTED] = count_chosen(self._table, self._chosen, int(stage[COUNTED]))
        self.children += int(batch.totals[0])
        self.replaced += int(batch.totals[1])
        return int(stage[GENERATIONS]) - before

    def _arrays(self) -> PopulationArrays:
        """Return the arrays of the population for compiled code."""
        return PopulationArrays(
            graph=self._renumbered.graph,
            scale=self.scale,
            near=self._renumbered.graph.neighbours,  # (n, k) candidates of each city
            tours=self._renumbered.tours,  # (2m, n) tours of this generation, and rows for their children
            positions=self._positions,  # (2m, n) position of each city in ``tours``
            rows=self._rows,  # (m,) row of each tour; its child is written to row + m, modulo 2m
            lengths=self.lengths,
            parents=self.parents,  # the first tours are parents A and B; the others are migrants, only B
            table=self._table,
            chosen=self._chosen,
            stop=self._stop.flag,
        )


@compiled
def _measure(graph: Graph, scale: float, tours: Int32_2d, positions: Int32_2d, lengths: Int64_1d) -> None:
    """Write the positions of the cities (m, n) and the lengths of the tours (m,) in whole units."""
    m, n = tours.shape
    for t in range(m):
        lengths[t] = 0
        before = tours[t, n - 1]
        for p in range(n):
            city = tours[t, p]
            positions[t, city] = p
            lengths[t] += units(graph, scale, before, city)
            before = city
