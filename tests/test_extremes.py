"""Parameters and weights at the ends of their ranges: finite trails, valid tours, choices that mean something."""

import warnings

import numpy as np
import pytest
from pymoo.optimize import minimize

from pymoo_gpuaco import GPUACS, GPUAS, GPUMMAS, TSP, GPUMemetic
from pymoo_gpuaco.colony.selection import RULES, offered_by
from pymoo_gpuaco.colony.trails import HIGHEST_TRAIL, per_length, trail_limits
from pymoo_gpuaco.problems import available_instances, load_tsp
from tests.engine_cases import BACKENDS, colony
from tests.fuzz import SEED, TIMES

COLONIES = (GPUAS, GPUMMAS, GPUACS)


def solved(problem, algorithm, generations=3):
    """A short run; its length, after the trails were found in order."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        res = minimize(problem, algorithm, ("n_gen", generations), seed=1)
    tau = res.algorithm.engine.export_state()["tau"]
    assert np.isfinite(tau).all()
    assert (tau >= 0).all()
    assert tau.max() <= HIGHEST_TRAIL * 1.001
    assert problem.tour_length(res.X) == res.F[0]
    return float(res.F[0])


def test_limits_and_amounts_stay_in_range():
    for length in (0.0, 5e-324, 1e-60, 1.0, 1e300):
        for rho in (5e-324, 1e-39, 1.0):
            low, high = trail_limits(length, 10, 32.0, rho, 0.05)
            assert 0.0 <= low <= high <= HIGHEST_TRAIL
    assert per_length(1e30, 1e-300) == HIGHEST_TRAIL
    assert per_length(-1e30, 1e-300) == -HIGHEST_TRAIL
    assert per_length(2.0, 4.0) == 0.5


@pytest.mark.parametrize("beta", [12.0, 20.0])
@pytest.mark.parametrize("lists", [None, 8])
@pytest.mark.parametrize("exponent", [-16, -12, 12, 14])
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_great_beta_means_the_same_at_every_scale(beta, lists, exponent, backend):
    points = np.random.default_rng(2).random((80, 2))
    lengths = []
    for factor in (1.0, 10.0**exponent):
        problem = TSP(points * factor, metric="EXACT")
        engine = colony(problem, backend, n_ants=30, beta=beta, alpha=0.0, candidate_list_size=lists)
        lengths.append(engine.construct(1).mean() / factor)
    assert lengths[1] == pytest.approx(lengths[0], rel=0.03)


def test_far_groups_are_walked_through_one_after_the_other():
    # from a group the way to the other is 1e14 times as long as within it: eta^20 of it underflows
    rng = np.random.default_rng(3)
    points = rng.random((40, 2))
    points[20:, 0] += 1e14
    problem = TSP(points, metric="EXACT")
    for lists in (None, 5):
        lengths = colony(problem, n_ants=10, beta=20.0, candidate_list_size=lists).construct(1)
        assert (lengths < 2.5e14).all()  # there and back, once


def test_coordinates_too_close_for_double_precision_are_refused():
    points = np.random.default_rng(0).random((5, 2))
    with pytest.raises(ValueError, match="coords must differ by 1e-140 at least"):
        TSP(points * 1e-150, metric="EXACT")
    assert TSP(points * 0.0, metric="EXACT").tour_length(np.arange(5)) == 0.0
    small = TSP(points * 1e-130, metric="EXACT")
    assert small.tour_length(np.arange(5)) > 0.0
    assert "gr17" in available_instances()
    assert load_tsp("gr17").n_cities == 17


@pytest.mark.parametrize("scale", [1e-300, 1e-150, 1e28])
def test_the_default_search_finds_the_same_tour_at_any_scale(scale, recwarn):
    matrix = np.random.default_rng(1).random((20, 20)) + 0.1
    one, other = (
        minimize(TSP(matrix=costs), GPUMemetic(backend="cpu"), ("n_gen", 2), seed=1)
        for costs in (matrix, matrix * scale)
    )
    assert not recwarn.list
    assert other.F[0] == pytest.approx(scale * one.F[0], rel=1e-12)


def drawn(rng):
    """Arguments of a colony, each often at an end of its range."""
    search = (False, "2opt+oropt", True)[rng.integers(3)]
    lists = rng.choice([None, 1, 4, 32])
    arguments = {
        "n_ants": int(rng.choice([1, 2, 7])),
        "alpha": float(rng.choice([0.0, 1e-9, 1.0, 2.5, 20.0])),
        "beta": float(rng.choice([0.0, 1e-9, 2.0, 3.3, 12.0, 20.0])),
        "rho": float(rng.choice([5e-324, 1e-30, 0.1, 0.5, 1.0])),
        "local_search": search,
        "candidate_list_size": None if lists is None else int(lists),
        "backend": "cpu",
    }
    cls = COLONIES[rng.integers(3)]
    if cls is GPUACS:
        arguments["candidate_list_size"] = arguments["candidate_list_size"] or 3
        arguments["variant"] = str(rng.choice(["sync", "relaxed", "selective"]))
        arguments["q0"] = float(rng.choice([0.0, 0.5, 1.0]))
        arguments["xi"] = float(rng.choice([0.0, 1e-30, 0.1, 1.0]))
        arguments["local_update_period"] = int(rng.choice([1, 3, 1000]))
    elif cls is GPUMMAS:
        arguments["p_best"] = float(rng.choice([1e-300, 0.05, 1.0 - 1e-16]))
        arguments["restart_after"] = int(rng.choice([1, 2, 250]))
        arguments["selection"] = str(rng.choice(offered_by("GPUMMAS")))
    else:
        arguments["selection"] = str(rng.choice(offered_by("GPUAS")))
        if arguments["selection"] != "auto" and RULES[arguments["selection"]].over_lists is None:
            arguments["candidate_list_size"] = None
    return cls, arguments


def instance_drawn(rng):
    """A small instance: any metric, any scale, doubled cities, lattices, mixtures of lengths."""
    n = int(rng.choice([3, 4, 5, 8, 25]))
    scale = 10.0 ** float(rng.uniform(-12, 12))
    form = rng.integers(6)
    if form == 0:
        return TSP(rng.random((n, 2)) * scale, metric="EXACT")
    if form == 1:
        return TSP(rng.integers(0, 3, (n, 2)) * scale, metric="EXACT")
    if form == 2:
        metric = str(rng.choice(["EUC_2D", "CEIL_2D", "ATT", "MAN_2D", "MAX_2D"]))
        return TSP(rng.random((n, 2)) * min(scale * 1e6, 1e15), metric=metric)
    if form == 3:
        return TSP(rng.uniform(-89, 89, (n, 2)), metric=str(rng.choice(["GEO", "HAVERSINE"])))
    matrix = (
        rng.choice([0.0, 1e-30, 1.0, 4.0, 1e16, 1e30], (n, n)) if form == 4 else rng.random((n, n)) * scale
    )
    if rng.random() < 0.5:
        matrix = np.triu(matrix, 1) + np.triu(matrix, 1).T
    return TSP(matrix=np.minimum(matrix, 1e30))


def test_drawn_settings_on_drawn_instances():
    rng = np.random.default_rng(SEED)
    for _ in range(300 * TIMES):
        problem = instance_drawn(rng)
        cls, arguments = drawn(rng)
        solved(problem, cls(**arguments), int(rng.choice([1, 2, 4])))
