"""Genetic edge assembly: a population of tours gets shorter together and stays as varied as it can.

Y. Nagata and S. Kobayashi, "A powerful genetic algorithm using edge assembly crossover for the traveling salesman
problem", INFORMS Journal on Computing 25 (2013). In every generation each tour A meets another, B, in a random ring. Of
up to 30 children, each A with the edges of B of an AB-cycle in which these are shorter, that one takes A's place that
gains most for the entropy that the population's edges lose. When the best tour has stayed the same for long, children
take blocks of AB-cycles. Blocks join what no single AB-cycle does, until nearly all tours are as short as the best.

A child costs what it changes, see `child`; only finding where A and B differ, and replacing A, takes longer for longer
tours. In long ones a child is chosen for each of some regions, and what was chosen goes into A together, see `regions`.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco import checks
from pymoo_gpuaco.candidates.graph import Graph
from pymoo_gpuaco.memetic.evolving_tours import EvolvingTours
from pymoo_gpuaco.runtime.keys import fold_in
from pymoo_gpuaco.runtime.stop import Stop

# A stage ends when the best tour has stayed the same for so many children a tour, and for a tenth of its generations.
# The first also ends when half of the time is gone: tours of d18512 ended as short with half of its generations, and
# four times as far from the optimum without blocks.
PATIENCE = 1500
# It ends as well when no tour has been replaced in so many generations: annealed tours find all that they have for each
# other in some forty, and nothing in those that follow.
IDLE = 5


class Evolved(NamedTuple):
    """What became of a population."""

    tours: NDArray[np.int32]  # (m, n), in their order
    generations: int
    second_from: int  # generation with which the second stage began, or as many as there were
    children: int  # that were looked at
    replaced: int  # parents, each by a child
    entropy: tuple[float, float]  # of the edges of all tours before and after, in nats


def evolve(
    graph: Graph,
    tours: NDArray[np.int32],
    near: NDArray[np.int32],
    key: int,
    *,
    scale: float = 1.0,
    mates: NDArray[np.int32] | None = None,
    stages: Sequence[bool] = (False, True),
    children: int = 30,
    generations: int | None = None,
    stop: Stop | None = None,
) -> Evolved:
    """Let tours (m, n) have children with each other until they find nothing more; none is written to.

    No tour gets longer, in whole units.

    graph : distances, see `EvolvingTours`.
    tours : eight to a thousand that are good already, and differ; see `EvolvingTours`.
    near : (n, k) candidates of each city, see `EvolvingTours`.
    key : in [0, 2**64); decides everything, whatever the number of threads, unless ``stop`` ends it.
    scale : whole units a unit of distance, see `EvolvingTours`.
    mates : tours (e, n) that these have children with as well, and that stay as they are; they are not returned.
    stages : for each stage whether children take blocks of AB-cycles; at most two.
    children : most that a pair has in a generation and region, >= 1; what promises no gain is none.
    generations : most of them, >= 0; None for no limit.
    stop : ends it early; of two stages the second has half of the time left. None for no limit.

    Raises ValueError where a row is no permutation of 0 .. n-1, or a number is out of its range.
    """
    children = checks.integer("children", children, 1)
    most = checks.optional_integer("generations", generations, 0)
    parents = len(tours)
    if mates is not None and len(mates):
        tours = np.concatenate([tours, mates])
    stop = Stop() if stop is None else stop
    stop.lower()
    population = EvolvingTours(graph, tours, near, scale, parents, stop)
    before = population.entropy
    done = waited = idle = 0
    stage_starts = [0]  # generations with which stages began
    halfway = math.inf
    if stop.until is not None and len(stages) > 1:
        halfway = 0.5 * (time.monotonic() + stop.until)
    best = population.lengths[:parents].min()
    while len(tours) > 1 and len(stage_starts) <= len(stages) and (most is None or done < most):
        if stop.passed():
            break
        gain = population.generation(fold_in(key, done), children, stages[len(stage_starts) - 1])
        done += 1
        waited += 1
        idle = 0 if gain else idle + 1
        if population.lengths[:parents].min() < best:
            best, waited = population.lengths[:parents].min(), 0
        late = len(stage_starts) == 1 and time.monotonic() >= halfway
        if late or idle == IDLE or (waited * children >= PATIENCE and 10 * waited >= done - stage_starts[-1]):
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
