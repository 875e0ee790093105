"""Tours of the CUDA colony for any size, metric and launch shape. Needs a CUDA device."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pymoo_gpuaco.backends.cuda.walks import rules
from pymoo_gpuaco.colony.parameters import LocalSearch
from pymoo_gpuaco.colony.selection import offered_by
from pymoo_gpuaco.colony.trails import TrailUpdate
from pymoo_gpuaco.problems import TSP
from tests.acs_cases import VARIANTS
from tests.cuda_cases import all_tours, check_choices, colony, is_permutation, random_instance
from tests.instances import listed_instance

pytestmark = pytest.mark.gpu

TABUS = ("list", "compact", "bitmask")
PAPER_RULES = offered_by("GPUAS")[1:]


WAYS = {
    "candidates": {"candidate_list_size": 10},
    "all cities": {"candidate_list_size": None},
    **{name: {**VARIANTS[name], "candidate_list_size": 10, "trails_per_node": 3} for name in VARIANTS},
    **{f"{name}, 40": {**VARIANTS[name], "candidate_list_size": 40, "alpha": 2.0} for name in VARIANTS},
}


@pytest.mark.parametrize("n", [3, 4, 5, 7, 8, 31, 32, 33, 64, 100, 257])
@pytest.mark.parametrize("m", [1, 3, 33, 300])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("search", [None, LocalSearch(kicks=0.5)])
def test_any_size_gives_valid_tours_and_exact_lengths(n, m, way, search):
    instance = random_instance(n, WAYS[way]["candidate_list_size"] or 10, metric="EUC_2D")
    engine = colony(instance, n_ants=m, local_search=search, q0=0.8, xi=0.3, **WAYS[way])
    engine.reset_trails(0.5)
    for key in (0, 2**64 - 1):
        lengths = engine.construct(key)
        tours = all_tours(engine)
        assert is_permutation(tours)
        np.testing.assert_array_equal(lengths, [instance.tour_length(t) for t in tours])
        best = tours[int(lengths.argmin())]
        engine.update_trails(TrailUpdate(0.1, ((best, 2.0),), on_tours_only=True))


def test_tabus_change_no_tour():
    instance = random_instance(150, 16)
    found = []
    for tabu in TABUS:
        engine = colony(instance, n_ants=100, candidate_list_size=16, selection="wrs", tabu=tabu)
        engine.reset_trails(1.0)
        engine.construct(3)
        found.append(all_tours(engine))
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


@pytest.mark.parametrize("k", [16, None])
@pytest.mark.parametrize("n", [120, 300, 1400])
def test_more_ants_change_no_tour(n, k):
    """Whatever the launch shape: ant 5 of 40 and of 5000 walk the same way.

    Rows of up to 300 cities lie in shared memory, of 1400 not; there 40 ants have a block each, and 5000 share blocks.
    """
    instance = random_instance(n, 16)
    found, shapes = [], []
    for m in (40, 5000):
        engine = colony(instance, n_ants=m, candidate_list_size=k)
        engine.reset_trails(1.0)
        engine.construct(3)
        found.append(engine.tours(np.arange(40)))
        shapes.append(engine.walk.shape.ants_per_block)
    np.testing.assert_array_equal(found[0], found[1])
    assert shapes[0] != shapes[1]


@pytest.mark.parametrize("n", [5, 40, 1030])
@pytest.mark.parametrize("m", [1, 7, 257, 2000])
def test_the_shortest_tour_is_the_first_of_them(n, m):
    """The device finds it among all lengths; five cities have few different tours, so several of them are shortest."""
    engine = colony(random_instance(n, 4, metric="EUC_2D"), n_ants=m, candidate_list_size=4)
    engine.reset_trails(1.0)
    for key in range(3):
        lengths = engine.construct(key)
        best = int(lengths.argmin())
        shortest = engine.tours([best])  # as read from the device
        np.testing.assert_array_equal(shortest[0], all_tours(engine)[best])
        assert engine.instance.tour_length(shortest[0]) == lengths.min()


@pytest.mark.parametrize("metric", ["EUC_3D", "MAN_3D", "MAX_3D"])
def test_three_dimensions(metric):
    coords = np.random.default_rng(2).uniform(0, 500, (90, 3))
    instance = listed_instance(TSP(coords, metric=metric), 10)
    engine = colony(instance, n_ants=20, candidate_list_size=10, local_search=LocalSearch())
    engine.reset_trails(1.0)
    lengths = engine.construct(5)
    np.testing.assert_array_equal(lengths, [instance.tour_length(t) for t in all_tours(engine)])


@pytest.mark.parametrize("all_cities", [False, True])
def test_asymmetric_matrix(all_cities):
    matrix = np.random.default_rng(4).integers(1, 100, (60, 60)).astype(float)
    instance = listed_instance(TSP(matrix=matrix), 10)
    assert not instance.symmetric
    engine = colony(instance, n_ants=2000, candidate_list_size=None if all_cities else 10, selection="wrs")
    tau = np.random.default_rng(5).uniform(0.1, 1.0, (60, 60)).astype(np.float32)
    check_choices(engine, tau, None if all_cities else instance.neighbours)
    few = np.arange(50)
    np.testing.assert_array_equal(engine.lengths()[few], [instance.tour_length(t) for t in engine.tours(few)])


@pytest.mark.parametrize("selection", PAPER_RULES)
def test_lists_that_do_not_fit_shared_memory_change_no_tour(selection, monkeypatch):
    usual = rules.rule_shape
    instance = random_instance(150, 8)
    found = []
    for shared in (None, 32):
        if shared is not None:
            monkeypatch.setattr(
                rules, "rule_shape", lambda n, m, p, limits: usual(n, m, p, replace(limits, shared_bytes=32))
            )
        engine = colony(instance, n_ants=300, candidate_list_size=None, selection=selection)
        small = selection in ("roulette", "stochastic_trial")
        assert engine.walk.shape.in_shared == (shared is None) or small
        engine.reset_trails(1.0)
        engine.construct(3)
        found.append(all_tours(engine))
    np.testing.assert_array_equal(found[0], found[1])


@pytest.mark.slow
def test_a_large_instance():
    instance = random_instance(70_000, 8, metric="EUC_2D")
    engine = colony(
        instance, n_ants=40, candidate_list_size=8, tabu="list", local_search=LocalSearch(kicks=0.001)
    )
    engine.reset_trails(1.0)
    lengths = engine.construct(1)
    tours = all_tours(engine)
    assert is_permutation(tours)
    np.testing.assert_array_equal(lengths[:3], [instance.tour_length(t) for t in tours[:3]])
