"""Focused ACO on both engines: walks, what they draw, the local search of what changed, and iterations."""

import numpy as np
import pytest
from scipy import stats

from pymoo_gpuaco.backends import FocusedColony, make_faco
from pymoo_gpuaco.colony.faco import FacoParameters
from pymoo_gpuaco.colony.parameters import LocalSearch
from pymoo_gpuaco.problems import TSP
from tests.engine_cases import BACKENDS, INSTANCES, asymmetric, cloud
from tests.instances import listed_instance

pytestmark = pytest.mark.parametrize("backend", BACKENDS)
SYMMETRIC = [name for name, problem in INSTANCES.items() if problem.symmetric]
SEARCHES = {"none": None, "2opt": LocalSearch("2opt", kicks=0.0), "2opt+oropt": LocalSearch(kicks=0.0)}


def colony(problem: TSP, backend: str, k: int = 16, **parameters) -> FocusedColony:
    """A colony that has begun."""
    chosen = FacoParameters(**{"n_ants": 6, "candidate_list_size": k, **parameters})
    engine = make_faco(listed_instance(problem, k), chosen, backend)
    engine.begin()
    return engine


def edges(tour):
    return {frozenset((int(a), int(b))) for a, b in zip(tour, np.roll(tour, -1), strict=True)}


@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize("name", SYMMETRIC)
def test_tours_are_permutations_and_lengths_exact(name, search, backend):
    problem = INSTANCES[name]
    engine = colony(problem, backend, local_search=SEARCHES[search], min_new_edges=3)
    assert isinstance(engine, FocusedColony)
    for key in range(2):
        lengths = engine.construct(key)
        tours = engine.tours(range(6))
        assert np.array_equal(np.sort(tours, axis=1), np.tile(np.arange(problem.n_cities), (6, 1)))
        assert lengths == pytest.approx(problem.tour_lengths(tours), rel=1e-9, abs=1e-9)
        engine.iterate(key, 3)
        tour, length = engine.best
        assert length == pytest.approx(problem.tour_length(tour), rel=1e-12)
        assert engine.lengths() == pytest.approx(
            problem.tour_lengths(engine.tours(range(6))), rel=1e-9, abs=1e-9
        )


def test_the_key_decides_everything_and_a_state_continues_bit_by_bit(backend):
    problem = cloud(120, 9)
    one, two = (colony(problem, backend, local_search=LocalSearch(kicks=0.0)) for _ in range(2))
    one.iterate(3, 4)
    two.import_state(one.export_state())
    for key in (4, 2**63 + 5):
        one.iterate(key, 3)
        two.iterate(key, 3)
        assert np.array_equal(one.lengths(), two.lengths())
    for name, array in one.export_state().items():
        assert np.array_equal(array, two.export_state()[name]), name
    two.iterate(7, 3)
    one.iterate(8, 3)
    assert not np.array_equal(one.lengths(), two.lengths())


@pytest.mark.parametrize("n_ants", [1, 7])
def test_an_ant_does_not_depend_on_how_many_walk_with_it(n_ants, backend):
    problem = cloud(90, 9)
    few, many = (colony(problem, backend, n_ants=m, local_search=LocalSearch(kicks=0.0)) for m in (n_ants, 9))
    few.construct(5)
    many.construct(5)
    assert np.array_equal(few.tours(range(n_ants)), many.tours(range(n_ants)))


def test_walks_begin_anywhere_and_draw_by_trails_and_distances(backend):
    # of the first step all candidates are open
    problem, m = cloud(40, 8), 4000
    engine = colony(problem, backend, k=4, n_ants=m, min_new_edges=1, beta=2.0)
    lists = engine.instance.neighbours
    tau = np.ones(lists.shape, np.float32)
    tau[:, 1] = 5.0
    engine.import_state({**engine.export_state(), "tau": tau})
    weights = tau / np.maximum(engine.instance.neighbour_distances, engine.instance.least_distance) ** 2
    chances = weights / weights.sum(axis=1, keepdims=True)
    counts = np.zeros((40, 4))
    engine.construct(1)
    for tour in engine.tours(range(m)):
        first, second = int(tour[0]), int(tour[1])
        place = np.flatnonzero(lists[first] == second)
        # a walk is the start of the tour, as nothing has searched it
        assert len(place) == 1
        counts[first, place[0]] += 1
    expected = chances * counts.sum(axis=1, keepdims=True)
    assert stats.chisquare(counts.sum(axis=1)).pvalue > 1e-4
    big = expected >= 5
    statistic = ((counts - expected)[big] ** 2 / expected[big]).sum()
    assert stats.chi2.sf(statistic, int(big.sum())) > 1e-4


@pytest.mark.parametrize("wanted", [1, 4, 12])
def test_ants_take_the_new_edges_they_are_given_and_few_more(wanted, backend):
    engine = colony(cloud(400, 3), backend, n_ants=30, min_new_edges=wanted)
    source = edges(engine.best[0])
    engine.construct(2)
    new = [len(edges(tour) - source) for tour in engine.tours(range(30))]
    assert min(new) >= wanted
    # behind those come the edges that join what is left of the source
    assert np.mean(new) <= 4 * wanted + 4


def test_trails_stay_within_the_limits_and_the_source_deposits(backend):
    problem = cloud(60, 5)
    engine = colony(problem, backend, rho=0.5, p_best=0.1, k=10)
    unit = engine.best[1]
    engine.iterate(1, 40)
    state = engine.export_state()
    # p = 0.1^(1/10), tau_max = unit / (rho L), tau_min = tau_max (1 - p) / ((10 - 1) p)
    p = 0.1**0.1
    high = unit / (0.5 * engine.best[1])
    low = high * (1.0 - p) / (9.0 * p)
    assert state["tau"].min() == pytest.approx(low, rel=1e-6)
    assert state["tau"].max() <= high * (1.0 + 1e-6)
    source = edges(state["tours"][0])
    strong = {
        frozenset((i, int(j)))
        for i, row in enumerate(engine.instance.neighbours)
        for s, j in enumerate(row)
        if state["tau"][i, s] > 0.3 * high  # one deposit is 0.5 C* / C of it
    }
    listed = {frozenset((i, int(j))) for i, row in enumerate(engine.instance.neighbours) for j in row}
    assert source & listed <= strong


def test_the_best_of_an_iteration_is_the_next_source(backend):
    engine = colony(cloud(80, 2), backend, best_as_source=0.0)
    engine.iterate(5, 1)
    lengths = engine.lengths()
    best = engine.tours([int(lengths.argmin())])[0]
    assert edges(engine.export_state()["tours"][0]) == edges(best)
    always = colony(cloud(80, 2), backend, best_as_source=1.0)
    always.iterate(5, 3)
    assert np.array_equal(always.export_state()["tours"][0], always.best[0])


def test_directed_instances_are_refused(backend):
    with pytest.raises(ValueError, match="GPUFACO"):
        colony(asymmetric(12), backend)


def test_a_construction_without_time_hands_out_the_source(backend):
    if backend == "cuda":
        pytest.skip("a construction of ants is one launch")
    engine = colony(cloud(80, 2), backend)
    engine.stop_at(0.0)
    lengths = engine.construct(1)
    assert engine.n_built < engine.n_ants
    assert lengths.min() <= engine.best[1]
    assert all(len(set(tour)) == 80 for tour in engine.tours(range(6)).tolist())
