"""Instances and engines that the shared engine tests run over."""

from __future__ import annotations

import numpy as np
import pytest

from pymoo_gpuaco.backends import SearchEngine, make_climbers, make_colony, make_search
from pymoo_gpuaco.colony.parameters import ClimberParameters, ColonyParameters, LocalSearch
from pymoo_gpuaco.colony.selection import RULES, offered_by
from pymoo_gpuaco.memetic.parameters import MemeticParameters
from pymoo_gpuaco.problems import TSP
from pymoo_gpuaco.problems.instance import Instance
from tests.instances import listed_instance

BACKENDS = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]


def cloud(n: int, seed: int = 0, metric: str = "EUC_2D") -> TSP:
    """n cities at whole coordinates below 1000."""
    return TSP(np.random.default_rng(seed).integers(0, 1000, (n, 2)), metric=metric)


def asymmetric(n: int, seed: int = 0) -> TSP:
    """A random matrix without symmetry."""
    matrix = np.random.default_rng(seed).integers(1, 1000, (n, n)).astype(float)
    return TSP(matrix=matrix)


INSTANCES = {
    "3 cities": cloud(3),
    "4 cities": cloud(4),
    "33 cities": cloud(33),
    "70 cities, ceiling": cloud(70, 1, "CEIL_2D"),
    "64 cities, not rounded": cloud(64, 2, "EXACT"),
    "40 cities, ATT": cloud(40, 3, "ATT"),
    "40 cities, Manhattan": cloud(40, 4, "MAN_2D"),
    "40 cities, maximum": cloud(40, 5, "MAX_2D"),
    "30 cities, GEO": TSP(np.random.default_rng(6).uniform(-80, 80, (30, 2)), metric="GEO"),
    "30 cities, HAVERSINE": TSP(np.random.default_rng(6).uniform(-80, 80, (30, 2)), metric="HAVERSINE"),
    "20 cities at 4 places": TSP(np.repeat([[0, 0], [0, 9], [9, 0], [9, 9]], 5, axis=0), "EUC_2D"),
    "12 cities at one place": TSP(np.zeros((12, 2)), "EUC_2D"),
    "12 cities, all distances 5": TSP(matrix=5.0 * (1 - np.eye(12))),
    "25 cities, asymmetric": asymmetric(25),
}


def colony(problem: TSP, backend: str = "cpu", **parameters: object):
    """An engine with trails reset to 1."""
    chosen = ColonyParameters(**{"n_ants": 6, **parameters})  # type: ignore[arg-type]
    instance = instance_for(problem, chosen)
    if backend == "cuda":
        from pymoo_gpuaco.backends.cuda.engine import lacks

        missing = lacks(instance, chosen)
        if missing is not None:
            pytest.skip(missing)
    engine = make_colony(instance, chosen, backend)
    engine.reset_trails(1.0)
    return engine


def memetic(problem: TSP, backend: str = "cpu", n: int | None = 4, k: int = 8) -> SearchEngine:
    """A memetic search of n tours on the CPU, or n windows on CUDA."""
    chosen = MemeticParameters(population_size=n) if backend == "cpu" else MemeticParameters(n_windows=n)
    return make_search(listed_instance(problem, k), chosen, backend)


def instance_for(problem: TSP, parameters: ColonyParameters) -> Instance:
    return listed_instance(problem, parameters.candidate_list_size or 32)


def climbers(problem: TSP, backend: str = "cpu", n_climbers: int = 4, **parameters: str):
    chosen = ClimberParameters(n_climbers=n_climbers, **parameters)
    return make_climbers(listed_instance(problem, 1), chosen, backend)


def assert_refuses_spoilt(engine, name: str, spoil: float, **others: np.ndarray) -> None:
    """An engine refuses its own state with an array spoilt at both ends, and stays as it was; ``others`` differ too."""
    state = engine.export_state()
    spoilt = state[name].astype(np.int64 if state[name].dtype.kind == "i" else np.float64)
    spoilt.flat[0], spoilt.flat[-1] = spoil, spoil
    with pytest.raises(ValueError, match=name):
        engine.import_state({**state, **others, name: spoilt})
    assert all(np.array_equal(state[key], array) for key, array in engine.export_state().items())


#: the rules of Ant System
ANT_SYSTEM = offered_by("GPUAS")[1:]
#: those that draw in proportion to weights, at least until their switch
EXACT_AT_FIRST = tuple(name for name in ANT_SYSTEM if RULES[name].exact_at_first)
#: every way of building tours that both algorithms and users can ask for
COLONIES = {
    "rwm": {"selection": "rwm"},
    "wrs": {"selection": "wrs"},
    "rwm, all cities": {"selection": "rwm", "candidate_list_size": None},
    "wrs, all cities": {"selection": "wrs", "candidate_list_size": None},
    "all cities": {"candidate_list_size": None},
    "candidate memory": {"memory": "candidate", "candidate_list_size": 8},
    "2opt": {"local_search": LocalSearch("2opt", kicks=0.0)},
    "2opt+oropt": {"local_search": LocalSearch("2opt+oropt", kicks=0.0)},
    "kicks": {"local_search": LocalSearch(kicks=1.0)},
    "windows": {"local_search": LocalSearch("windows", kicks=0.5)},
    **{name: {"selection": name, "candidate_list_size": None} for name in ANT_SYSTEM},
    "acs sync": {"selection": "pseudo_random_proportional", "q0": 0.9, "xi": 0.1},
    "acs relaxed": {"selection": "pseudo_random_proportional", "q0": 0.5, "xi": 0.1, "together": False},
    "acs selective": {
        "selection": "pseudo_random_proportional",
        "q0": 0.9,
        "xi": 0.1,
        "together": False,
        "memory": "selective",
        "trails_per_node": 2,
    },
}
