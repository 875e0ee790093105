"""Searches for a front, each a loop of steps whose points can be asked for at any moment."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from moocore import hypervolume
from numpy.typing import NDArray
from pymoo.algorithms.moo.moead import MOEAD
from pymoo.algorithms.moo.nsga2 import NSGA2
from pymoo.core.termination import NoTermination
from pymoo.operators.crossover.ox import OrderCrossover
from pymoo.operators.mutation.inversion import InversionMutation
from pymoo.operators.sampling.rnd import PermutationRandomSampling
from pymoo.util.ref_dirs import get_reference_directions

from pymoo_gpuaco import TSP, MultiObjectiveTSP
from pymoo_gpuaco.backends import make_front
from pymoo_gpuaco.fronts.instance import front_instance
from pymoo_gpuaco.fronts.parameters import FrontParameters
from pymoo_gpuaco.fronts.stairs import stairs_of
from pymoo_gpuaco.host.keys import fold_in

CANDIDATES = 10  # as GPUMOACO's default
POPULATION = 200
WORST = 1.01  # the reference point of a hypervolume is so many times a front's worst lengths

Points = NDArray[np.float64]
# a step that ends soon after a moment, and the points
Run = tuple[Callable[[float], None], Callable[[], Points]]


class Quality(NamedTuple):
    """What points (p, 2) are beside a reference front."""

    points: int
    found: float  # per cent of the reference's points that are found or dominated
    hypervolume: float  # per cent of the reference's

    @classmethod
    def of(cls, points: Points, reference: Points) -> Quality:
        """Compare them."""
        points = points[stairs_of(points)]
        at = np.searchsorted(points[:, 0], reference[:, 0], "right") - 1
        reached = (at >= 0) & (points[np.maximum(at, 0), 1] <= reference[:, 1])
        worst = WORST * reference.max(axis=0)
        share = float(hypervolume(points, ref=worst)) / float(hypervolume(reference, ref=worst))
        return cls(len(points), 100.0 * float(reached.mean()), 100.0 * share)


def _engine(problem: MultiObjectiveTSP, seed: int, dives: bool, backend: str = "cpu") -> Run:
    # compiling, which a machine does once, is no part of a run
    few = MultiObjectiveTSP([TSP(part.coords[:12, :2], "EUC_2D") for part in problem.parts])
    for kind in ("cpu", backend):
        warmed = make_front(front_instance(few, CANDIDATES), FrontParameters(), kind)
        for key in range(3):
            warmed.search(key)
    engine: Any = make_front(front_instance(problem, CANDIDATES), FrontParameters(dives=dives), backend)
    generation = [0]

    def step(until: float) -> None:
        engine.stop_at(until)
        engine.search(fold_in(seed, generation[0]))
        generation[0] += 1

    return step, lambda: engine.archive.points


def _pymoo(problem: MultiObjectiveTSP, seed: int, algorithm: Any) -> Run:
    algorithm.setup(problem, termination=NoTermination(), seed=seed)

    def step(until: float) -> None:
        algorithm.next()

    return step, lambda: np.empty((0, 2)) if algorithm.opt is None else np.asarray(algorithm.opt.get("F"))


def _operators() -> dict[str, Any]:
    return {
        "sampling": PermutationRandomSampling(),
        "crossover": OrderCrossover(),
        "mutation": InversionMutation(),
    }


METHODS: dict[str, Callable[[MultiObjectiveTSP, int], Run]] = {
    "GPUMOACO": lambda problem, seed: _engine(problem, seed, dives=True),
    "GPUMOACO, CUDA": lambda problem, seed: _engine(problem, seed, dives=True, backend="cuda"),
    "two phases": lambda problem, seed: _engine(problem, seed, dives=False),
    "NSGA-II": lambda problem, seed: _pymoo(problem, seed, NSGA2(POPULATION, **_operators())),
    "MOEA/D": lambda problem, seed: _pymoo(
        problem,
        seed,
        MOEAD(get_reference_directions("das-dennis", 2, n_partitions=POPULATION - 1), **_operators()),
    ),
}


def record(run: Run, moments: Sequence[float]) -> list[Points]:
    """Points of one run at so many seconds after its begin, in ascending order."""
    step, points = run
    begun, found = time.monotonic(), []
    for moment in moments:
        while time.monotonic() < begun + moment:
            step(begun + moment)
        found.append(points().copy())
    return found
