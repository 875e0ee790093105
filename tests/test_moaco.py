"""GPUMOACO as a pymoo algorithm: the front that it hands out, and when it ends."""

from __future__ import annotations

import numpy as np
from pymoo.optimize import minimize

from pymoo_gpuaco import GPUMOACO, TSP, MultiObjectiveTSP


def problem_of(n: int, k: int = 2, seed: int = 0, metric: str = "EUC_2D") -> MultiObjectiveTSP:
    places = np.random.default_rng(seed).integers(0, 1000, (k, n, 2))
    return MultiObjectiveTSP([TSP(part, metric) for part in places])


def dominated(lengths: np.ndarray) -> np.ndarray:
    """Which rows another one is nowhere longer than, and somewhere shorter."""
    no_longer = (lengths[None] <= lengths[:, None]).all(axis=2)
    shorter = (lengths[None] < lengths[:, None]).any(axis=2)
    return (no_longer & shorter).any(axis=1)


def test_the_result_is_a_front_of_tours_and_their_lengths_in_order():
    problem = problem_of(30)
    result = minimize(problem, GPUMOACO(), ("n_gen", 12), seed=1)
    assert len(result.F) > 50
    assert (np.sort(result.X, axis=1) == np.arange(30)).all()
    assert (problem.tour_lengths(result.X) == result.F).all()
    assert not dominated(result.F).any()
    assert (np.diff(result.F[:, 0]) > 0).all()


def test_the_same_seed_gives_the_same_front():
    fronts = [minimize(problem_of(30), GPUMOACO(), ("n_gen", 12), seed=1) for _ in range(2)]
    assert np.array_equal(fronts[0].F, fronts[1].F)
    assert np.array_equal(fronts[0].X, fronts[1].X)
