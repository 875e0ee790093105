"""Climbers of every kind of device: where climbs end, how they go on, and what they refuse."""

from itertools import permutations

import numpy as np
import pytest

from pymoo_gpuaco.backends import ClimberEngine
from pymoo_gpuaco.colony.parameters import LocalSearch
from tests.engine_cases import BACKENDS, INSTANCES, asymmetric, climbers, cloud, colony

pytestmark = pytest.mark.parametrize("backend", BACKENDS)


def improving_pair(problem, tour):
    """Return True if some 2-opt move shortens the tour by more than rounding noise."""
    d = problem.D[np.ix_(tour, tour)]
    n = len(tour)
    following = np.roll(np.arange(n), -1)
    edge = d[np.arange(n), following]
    delta = d + d[np.ix_(following, following)] - edge[:, None] - edge[None, :]
    apart = np.ones((n, n), bool)
    for shift in (-1, 0, 1):
        apart[np.arange(n), (np.arange(n) + shift) % n] = False
    return bool((delta[apart] < -1e-6).any()) if apart.any() else False


@pytest.mark.parametrize("name", [n for n, p in INSTANCES.items() if p.symmetric])
def test_climbs_end_where_no_pair_improves(name, backend):
    problem = INSTANCES[name]
    engine = climbers(problem, backend)
    assert isinstance(engine, ClimberEngine)
    assert engine.climb(3, pairs=(128 if backend == "cuda" else 1) * 4_000_000) > 0
    tour, length = engine.best()
    assert sorted(tour.tolist()) == list(range(problem.n_cities))
    assert length == pytest.approx(problem.tour_length(tour), rel=1e-12)
    assert not improving_pair(problem, tour)


def test_climbers_find_the_best_of_all_tours_of_seven_cities(backend):
    problem = cloud(7, 5)
    engine = climbers(problem, backend)
    engine.climb(1)
    all_tours = np.array([(0, *p) for p in permutations(range(1, 7))])
    assert engine.best()[1] == problem.tour_lengths(all_tours).min()


def test_a_climb_goes_on_where_the_call_before_stopped(backend):
    # five scans of every climber are too few for 1000 cities: lengths fall from call to call
    problem, few = cloud(1000, 1), 5 * 8 * 1000**2 // 2
    one, two = (climbers(problem, backend, n_climbers=8) for _ in range(2))
    one.climb(9, pairs=few)
    first = one.export_state()["lengths"]
    two.climb(9, pairs=few)
    two.climb(9, pairs=few)
    one_again = climbers(problem, backend, n_climbers=8)
    one_again.import_state(one.export_state())
    one_again.climb(9, pairs=few)
    assert np.all(two.export_state()["lengths"] < first)
    assert np.array_equal(one_again.export_state()["lengths"], two.export_state()["lengths"])
    assert np.array_equal(one_again.best()[0], two.best()[0])


def test_given_tours_are_where_the_first_climbs_begin(backend):
    problem = cloud(400, 2)
    good = colony(problem, "cpu", n_ants=1, local_search=LocalSearch())
    good.construct(1)
    engine = climbers(problem, backend)
    engine.start_from(good.tours([0]))
    engine.climb(1)
    assert engine.best()[1] <= problem.tour_length(good.tours([0])[0])


def test_climbers_refuse_an_asymmetric_instance(backend):
    with pytest.raises(ValueError, match="symmetric"):
        climbers(asymmetric(10), backend)
