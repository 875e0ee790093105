"""Edge assembly crossover (EAX): a genetic algorithm that shortens a population of tours and preserves its variety.

Y. Nagata and S. Kobayashi, "A powerful genetic algorithm using edge assembly crossover for the traveling salesman
problem", INFORMS Journal on Computing 25 (2013). In every generation each tour A is paired with another, B, in a random
ring. Up to 30 children are made, each A with the edges of B of an AB-cycle in which they are shorter. The child with
the largest gain per loss of the population's entropy replaces A. When the best tour has not changed for long, children
take blocks of AB-cycles. Blocks combine changes that no single AB-cycle makes, until nearly all tours are as short as
the best.

The cost of a child depends on its changes, see `child`. Only the difference of A and B, and replacing A, take longer
for longer tours. In long tours a child is chosen in each of several regions, see `ab_cycles`.
"""

from __future__ import annotations

import math
import time
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco import checks
from pymoo_gpuaco.candidates.graph import Graph
from pymoo_gpuaco.memetic.evolving_tours import EvolvingTours
from pymoo_gpuaco.runtime.keys import fold_in
from pymoo_gpuaco.runtime.stop import Stop

# A stage ends when the best tour has not changed for this many children per tour, and for a tenth of the generations of
# the stage. The first stage also ends after half of the time: tours of d18512 ended as short with half of its
# generations, and four times as far from the optimum without blocks.
PATIENCE = 1500
# A stage also ends after this many generations without a replaced tour: annealed tours find their gains in about forty
# generations.
IDLE = 5


class Evolved(NamedTuple):
    """Result of an evolution."""

    tours: NDArray[np.int32]  # (m, n), in the order of the given tours
    generations: int
    second_from: int  # first generation of the second stage, or the number of generations
    children: int  # number of children tried
    replaced: int  # number of replaced parents
    entropy: tuple[float, float]  # of the edges of all tours before and after, in nats


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
) -> Evolved:
    """Evolve copies of tours (m, n) until they find nothing more.

    In the first stage children take single AB-cycles, in the second stage blocks of them. No tour gets longer, in whole
    units.

    graph : distances, see `EvolvingTours`.
    tours : eight to a thousand different good tours, see `EvolvingTours`.
    near : (n, k) candidates of each city, see `EvolvingTours`.
    key : in [0, 2**64); determines the result for any number of threads, unless ``stop`` ends the search.
    scale : whole units per unit of distance, see `EvolvingTours`.
    migrants : further tours (e, n) as parents B; they do not change and are not returned.
    children : maximum children of a pair in a generation and region, >= 1; AB-cycles without a gain do not count.
    generations : maximum number, >= 0; None: no limit.
    stop : ends the search early; the second stage gets at least half of the time. None: no limit.

    Raises ValueError if a row is not a permutation of 0 .. n-1, or a number is out of range.
    """
    children = checks.integer("children", children, 1)
    most = checks.optional_integer("generations", generations, 0)
    parents = len(tours)
    if migrants is not None and len(migrants):
        tours = np.concatenate([tours, migrants])
    stop = Stop() if stop is None else stop
    stop.lower()
    population = EvolvingTours(graph, tours, near, scale, parents, stop)
    before = population.entropy
    done = waited = idle = 0
    stage_starts = [0]  # first generations of the stages
    halfway = math.inf if stop.until is None else 0.5 * (time.monotonic() + stop.until)
    best = population.lengths[:parents].min()
    while len(tours) > 1 and len(stage_starts) <= 2 and (most is None or done < most):
        if stop.passed():
            break
        gain = population.generation(fold_in(key, done), children, blocks=len(stage_starts) == 2)
        done += 1
        waited += 1
        idle = 0 if gain else idle + 1
        if population.lengths[:parents].min() < best:
            best, waited = population.lengths[:parents].min(), 0
        half_done = len(stage_starts) == 1 and time.monotonic() >= halfway
        patient = waited * children < PATIENCE or 10 * waited < done - stage_starts[-1]
        if half_done or idle == IDLE or not patient:
            stage_starts.append(done)
            waited = idle = 0
    return Evolved(
        population.tours[:parents],
        done,
        stage_starts[1] if len(stage_starts) > 1 else done,
        population.children,
        population.replaced,
        (before, population.entropy),
    )
