"""Small, quick runs of every algorithm, shared by the tests of pymoo's contract."""

import os
from functools import partialmethod

import numpy as np
import pytest
from pymoo.core.problem import ElementwiseProblem

from pymoo_gpuaco import ALL_ALGORITHMS, GPUFACO, GPUMMAS, TSP, GPU2OptIHC, GPUMemetic
from pymoo_gpuaco.algorithms.colony import AntColony
from pymoo_gpuaco.backends.cpu.climbers import CpuClimbers

# The whole contract holds for the other engine too: set the variable to "cuda" on a machine with a device.
BACKEND = os.environ.get("PYMOO_GPUACO_TEST_BACKEND", "cpu")
COLONIES = {name: cls for name, cls in ALL_ALGORITHMS.items() if issubclass(cls, AntColony)}
SIZES = {GPU2OptIHC: "n_climbers", GPUMemetic: "population_size"}  # of the other algorithms
M = 6  # ants, climbers or tours

every_algorithm = pytest.mark.parametrize("cls", ALL_ALGORITHMS.values(), ids=list(ALL_ALGORITHMS))
BASES = (GPUMMAS, GPU2OptIHC, GPUMemetic)
#: one algorithm a base class, for what the base classes do
every_base = pytest.mark.parametrize("cls", BASES, ids=lambda cls: cls.__name__)
BUILDERS = {name: cls for name, cls in ALL_ALGORITHMS.items() if cls is not GPUMemetic}
#: algorithms that build M tours a generation
every_builder = pytest.mark.parametrize("cls", BUILDERS.values(), ids=list(BUILDERS))
DIRECTED = {name: cls for name, cls in COLONIES.items() if cls is not GPUFACO}  # where direction counts, too
every_colony = pytest.mark.parametrize("cls", COLONIES.values(), ids=list(COLONIES))
every_directed = pytest.mark.parametrize("cls", DIRECTED.values(), ids=list(DIRECTED))


def shorten_climbs(monkeypatch):
    """End a generation of the climbers after a few thousand pairs instead of 10^8."""
    monkeypatch.setattr(CpuClimbers, "climb", partialmethod(CpuClimbers.climb, pairs=4000))


def small(cls, **arguments):
    """An algorithm of M ants, climbers or tours."""
    return cls(**{SIZES.get(cls, "n_ants"): M, "backend": BACKEND, **arguments})


def cities(n=14, seed=5):
    """n random cities in a square of side 100, rounded distances."""
    return TSP(np.random.default_rng(seed).random((n, 2)) * 100, "EUC_2D")


def generations(res):
    """Generations that a run has made."""
    return res.algorithm.n_gen - 1


def solved(n=8):
    """A problem whose optimum every colony finds at once: cities on a circle of about 5 a step."""
    angle = 2 * np.pi * np.arange(n) / n
    return TSP(1000 * np.column_stack([np.cos(angle), np.sin(angle)]), "EXACT")


def length(problem, tour):
    """Length of a closed tour, summed edge by edge."""
    return sum(problem.D[a, b] for a, b in zip(tour, np.roll(tour, -1), strict=True))


def is_canonical(tour, symmetric=True):
    """Return True for a permutation that begins at 0, with its smaller neighbour second where direction is free."""
    tour = np.asarray(tour)
    permutation = tour.dtype == np.int64 and np.array_equal(np.sort(tour), np.arange(len(tour)))
    return bool(permutation and tour[0] == 0 and (not symmetric or tour[1] <= tour[-1]))


def snapshot(algorithm):
    """Everything by which two runs in the same place agree: optimum, population, counts, generator, engine."""
    state = {
        "opt X": algorithm.opt.get("X"),
        "opt F": algorithm.opt.get("F"),
        "pop X": algorithm.pop.get("X"),
        "pop F": algorithm.pop.get("F"),
        "n_eval": np.array(algorithm.evaluator.n_eval),
        "n_gen": np.array(algorithm.n_gen),
        "random": np.array(str(algorithm.random_state.bit_generator.state)),
    }
    return state | {f"engine {key}": value for key, value in algorithm.engine.export_state().items()}


def assert_same(first, second):
    """Assert that two snapshots are equal bit by bit."""
    assert first.keys() == second.keys()
    for key in first:
        assert np.array_equal(first[key], second[key]), key


def run_to_end(algorithm):
    """The documented loop."""
    while algorithm.has_next():
        algorithm.next()
    return algorithm


class Tour(ElementwiseProblem):
    """A user's own problem: one tour at a time, with a toll that the distances do not know."""

    def __init__(self, D, toll=0.0, **kwargs):
        n = len(D)
        super().__init__(n_var=n, n_obj=1, xl=0, xu=n - 1, vtype=int, **kwargs)
        self.D = D
        self.toll = toll

    def _evaluate(self, x, out, *args, **kwargs):
        out["F"] = sum(self.D[a, b] for a, b in zip(x, np.roll(x, -1), strict=True)) + self.toll
