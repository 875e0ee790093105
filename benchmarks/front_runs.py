"""Multi-objective methods as loops of steps, whose points can be read between steps."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from math import comb
from typing import Any, NamedTuple

import numpy as np
from moocore import hv_approx, hypervolume, is_nondominated
from numpy.typing import NDArray
from pymoo.algorithms.moo.moead import MOEAD
from pymoo.algorithms.moo.nsga2 import NSGA2
from pymoo.algorithms.moo.nsga3 import NSGA3
from pymoo.core.termination import NoTermination
from pymoo.operators.crossover.ox import OrderCrossover
from pymoo.operators.mutation.inversion import InversionMutation
from pymoo.operators.sampling.rnd import PermutationRandomSampling
from pymoo.util.ref_dirs import get_reference_directions

from pymoo_gpuaco import TSP, MultiObjectiveTSP
from pymoo_gpuaco.algorithms.ppls import usual_directions
from pymoo_gpuaco.backends import make_front
from pymoo_gpuaco.pareto.instance import front_instance
from pymoo_gpuaco.pareto.parameters import FrontParameters
from pymoo_gpuaco.runtime.philox import fold_in

CANDIDATES = 10  # the default of GPU2PPLS
POPULATION = 200
WORST = 1.01  # the reference point of the hypervolume is this multiple of the worst lengths of a front

_EXACT = 3  # maximum objectives with exact hypervolumes
# directions of approximate hypervolumes: for 50,000 points of five objectives, four times as many change it by .05 %
_SAMPLES = 1 << 14

Points = NDArray[np.float64]
# a step that ends soon after a given time, and a function that returns the points
Run = tuple[Callable[[float], None], Callable[[], Points]]


class Quality(NamedTuple):
    """Measures of points (p, k) relative to a non-dominated reference front (r, k)."""

    points: int
    found: float  # percent of the reference's points that are found or dominated
    hypervolume: float  # percent of the reference's hypervolume

    @classmethod
    def of(cls, points: Points, reference: Points) -> Quality:
        """Compute the measures."""
        points = united([points])
        reached = ~is_nondominated(np.concatenate([points, reference]))[len(points) :]
        worst = WORST * reference.max(axis=0)
        share = _volume(points, worst) / _volume(reference, worst)
        return cls(len(points), 100.0 * float(reached.mean()), 100.0 * share)


def united(fronts: Sequence[Points]) -> Points:
    """Return the unique non-dominated points (p, k) of several fronts."""
    points = np.concatenate(fronts)
    return np.unique(points[is_nondominated(points)], axis=0)


def _volume(points: Points, worst: Points) -> float:
    """Return the hypervolume; approximate from four objectives on, because the exact one would take hours."""
    if points.shape[1] <= _EXACT:
        return float(hypervolume(points, ref=worst))
    inside = points[(points < worst).all(axis=1)]
    return float(hv_approx(inside, ref=worst, nsamples=_SAMPLES)) if len(inside) else 0.0


def _engine(problem: MultiObjectiveTSP, seed: int, backend: str = "cpu", two_phases: bool = False) -> Run:
    directions = usual_directions(problem.n_obj)
    parameters = FrontParameters(directions=directions)
    # compile the kernels, and load the library, before the run
    few = front_instance([_few_cities(part).instance for part in problem.parts], problem.names, CANDIDATES)
    small = make_front(few, FrontParameters(directions=directions), backend)
    for key in range(16):
        small.search(key)
    instance = front_instance([part.instance for part in problem.parts], problem.names, CANDIDATES)
    engine: Any = make_front(instance, parameters, backend)
    if two_phases:  # sums, then the first stage of exploration alone
        engine._stages = engine._stages[:1]
        engine._has_operators = engine._has_few_cities = False
        engine._kick_members = lambda key: engine._add(np.empty((0, engine.instance.n), np.int32))
    generation = [0]

    def step(until: float) -> None:
        engine.stop_at(until)
        engine.search(fold_in(seed, generation[0]))
        generation[0] += 1

    return step, lambda: engine.archive.points


def _few_cities(part: TSP) -> TSP:
    """Return a problem of a few of the cities, whose run compiles the same kernels."""
    if part.coords is not None:
        return TSP(part.coords[:12, :2], "EUC_2D")
    assert part.matrix is not None
    return TSP(matrix=part.matrix[:12, :12])


def _pymoo(problem: MultiObjectiveTSP, seed: int, algorithm: Any) -> Run:
    algorithm.setup(problem, termination=NoTermination(), seed=seed)

    def step(until: float) -> None:
        algorithm.next()

    return (
        step,
        lambda: np.empty((0, problem.n_obj)) if algorithm.opt is None else np.asarray(algorithm.opt.get("F")),
    )


def _operators() -> dict[str, Any]:
    return {
        "sampling": PermutationRandomSampling(),
        "crossover": OrderCrossover(),
        "mutation": InversionMutation(),
    }


def _directions(k: int) -> Points:
    """Return Das and Dennis's directions, at most ``POPULATION``."""
    parts = 1
    while comb(parts + k, k - 1) <= POPULATION:
        parts += 1
    return np.asarray(get_reference_directions("das-dennis", k, n_partitions=parts))


METHODS: dict[str, Callable[[MultiObjectiveTSP, int], Run]] = {
    "GPU2PPLS": lambda problem, seed: _engine(problem, seed),
    "GPU2PPLS, CUDA": lambda problem, seed: _engine(problem, seed, "cuda"),
    "two phases": lambda problem, seed: _engine(problem, seed, two_phases=True),
    "NSGA-II": lambda problem, seed: _pymoo(problem, seed, NSGA2(POPULATION, **_operators())),
    "MOEA/D": lambda problem, seed: _pymoo(
        problem,
        seed,
        MOEAD(_directions(problem.n_obj), **_operators()),
    ),
    "NSGA-III": lambda problem, seed: _pymoo(
        problem, seed, NSGA3(_directions(problem.n_obj), POPULATION, **_operators())
    ),
}


def record(run: Run, moments: Sequence[float]) -> list[Points]:
    """Return the points of one run at the given seconds after its start, which are ascending."""
    step, points = run
    begun, found = time.monotonic(), []
    for moment in moments:
        while time.monotonic() < begun + moment:
            step(begun + moment)
        found.append(points().copy())
    return found
