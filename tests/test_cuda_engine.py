"""The CUDA colony against the CPU engine, exact probabilities and its own repetition. Needs a CUDA device."""

from __future__ import annotations

import gc
import os
import threading
from dataclasses import replace

import numpy as np
import pytest

from pymoo_gpuaco.backends.cpu.engine import CpuColony
from pymoo_gpuaco.backends.cuda import layout
from pymoo_gpuaco.colony.parameters import ColonyParameters, LocalSearch
from pymoo_gpuaco.colony.trails import TrailUpdate
from pymoo_gpuaco.problems import TSP
from pymoo_gpuaco.problems.instance import Instance, as_instance

pytestmark = pytest.mark.gpu

SELECTIONS = ("rwm", "wrs")
TABUS = ("list", "compact", "bitmask")
ALL_CITY_RULES = ("rwm", "wrs", "auto")
PAPER_RULES = ("roulette", "compressed", "stochastic_trial", "hybrid", "acceptance_tournament")


def colony(instance, **parameters):
    from pymoo_gpuaco.backends.cuda.engine import CudaColony

    return CudaColony(instance, ColonyParameters(**parameters))


def random_instance(n: int, k: int = 32, seed: int = 1, metric: str = "EXACT") -> Instance:
    rng = np.random.default_rng(seed)
    return as_instance(TSP(rng.uniform(0, 1000, (n, 2)), metric=metric), k)


def set_trails(engine, tau, rest: float = 0.0) -> None:
    """``rest`` is the trail that most edges share, as the engine would know it."""
    state = engine.export_state()
    state["tau"] = np.asarray(tau, np.float32)
    state["rest"] = np.full(1, rest, np.float32)
    engine.import_state(state)


def symmetric_noise(n: int, seed: int = 5, low: float = 0.05) -> np.ndarray:
    tau = np.random.default_rng(seed).uniform(low, 1.0, (n, n)) ** 2
    return np.float32(np.maximum(tau, tau.T))


def distance_matrix(instance: Instance) -> np.ndarray:
    return np.linalg.norm(instance.coords[:, None] - instance.coords[None], axis=2)


def is_permutation(tours: np.ndarray) -> bool:
    return bool((np.sort(tours, axis=1) == np.arange(tours.shape[1])).all())


def all_tours(engine) -> np.ndarray:
    return engine.tours(np.arange(engine.n_ants))


def check_steps(tours, weights, candidates, greedy, q0=0.0) -> None:
    """Every step of every tour against the probabilities it must have had.

    ``weights`` (n, n) of all edges; ``candidates`` (n, k) limits the choice, None: all cities. Where no candidate is
    open, the open city with the largest ``greedy`` weight must follow. With probability ``q0`` the candidate of largest
    weight is taken (ACS). The score of one (step, city) is its
    count less the sum of its probabilities, over the standard deviation of that sum; the squares of them all follow
    a chi-square distribution closely enough for a bound that right code fails less than once in a million runs.
    """
    m, n = tours.shape
    allowed = np.ones((n, n), bool)
    if candidates is not None:
        allowed[:] = False
        np.put_along_axis(allowed, candidates, True, axis=1)
    np.fill_diagonal(allowed, False)
    open_cities = np.ones((m, n), bool)
    everyone = np.arange(m)
    open_cities[everyone, tours[:, 0]] = False
    statistic, freedom = 0.0, 0
    for step in range(1, n):
        here, chosen = tours[:, step - 1], tours[:, step]
        p = weights[here] * open_cities * allowed[here]
        total = p.sum(axis=1)
        stuck = total == 0
        if stuck.any():
            best = np.where(open_cities[stuck], greedy[here[stuck]], -1.0).argmax(axis=1)
            np.testing.assert_array_equal(chosen[stuck], best)
        p[~stuck] /= total[~stuck, None]
        largest = p.argmax(axis=1)
        p *= 1.0 - q0
        p[everyone[~stuck], largest[~stuck]] += q0
        assert (p[~stuck, chosen[~stuck]] > 0).all()
        observed = np.bincount(chosen[~stuck], minlength=n)
        variance = (p * (1 - p)).sum(axis=0)
        cells = variance > 5
        statistic += (((observed - p.sum(axis=0)) ** 2)[cells] / variance[cells]).sum()
        freedom += int(cells.sum())
        open_cities[everyone, chosen] = False
    assert freedom > 0
    assert abs(statistic - freedom) < 6 * np.sqrt(2 * freedom)


@pytest.mark.parametrize("selection", SELECTIONS)
@pytest.mark.parametrize("tabu", TABUS)
@pytest.mark.parametrize(("n", "k", "m"), [(37, 8, 20000), (70, 40, 4000), (33, 32, 8000), (40, 5, 20000)])
@pytest.mark.parametrize(("alpha", "beta"), [(1.0, 2.0), (1.5, 3.0)])
def test_candidate_choices_have_the_exact_distribution(selection, tabu, n, k, m, alpha, beta):
    instance = random_instance(n, k)
    engine = colony(
        instance, n_ants=m, candidate_list_size=k, selection=selection, tabu=tabu, alpha=alpha, beta=beta
    )
    tau = symmetric_noise(n)
    set_trails(engine, tau)
    engine.construct(12345)
    tours = all_tours(engine)
    assert is_permutation(tours)
    d = distance_matrix(instance)
    np.fill_diagonal(d, 1.0)
    weights = tau.astype(float) ** alpha * d**-beta
    check_steps(tours, weights, instance.neighbours, weights)


@pytest.fixture
def rows_of_the_heaviest(monkeypatch):
    """Small instances as larger ones: a row does not hold all cities."""
    monkeypatch.setattr(layout, "WHOLE", 0)


@pytest.mark.parametrize(
    ("selection", "tabu"),
    [(s, t) for s in ALL_CITY_RULES for t in ("auto", *TABUS)] + [(s, "auto") for s in PAPER_RULES],
)
@pytest.mark.parametrize(("n", "m"), [(45, 8000), (150, 1500)])
@pytest.mark.parametrize(("alpha", "beta"), [(1.0, 2.0), (0.5, 1.0)])
@pytest.mark.usefixtures("rows_of_the_heaviest")
def test_choices_among_all_cities_have_the_exact_distribution(selection, tabu, n, m, alpha, beta):
    instance = random_instance(n, 8)
    engine = colony(
        instance,
        n_ants=m,
        candidate_list_size=None,
        selection=selection,
        tabu=tabu,
        alpha=alpha,
        beta=beta,
        switch=1.0 if selection == "acceptance_tournament" else None,  # no tournament, which is not exact
    )
    tau = symmetric_noise(n)
    set_trails(engine, tau)
    engine.construct(99)
    tours = all_tours(engine)
    assert is_permutation(tours)
    d = distance_matrix(instance)
    np.fill_diagonal(d, 1.0)
    weights = tau.astype(float) ** alpha * d**-beta
    check_steps(tours, weights, None, weights)


@pytest.mark.parametrize(
    ("n", "m"), [(31, 8000), (32, 8000), (33, 8000), (64, 4000), (65, 4000), (150, 1500), (240, 800)]
)
@pytest.mark.parametrize(("alpha", "beta"), [(1.0, 2.0), (0.5, 1.0)])
def test_choices_from_whole_rows_have_the_exact_distribution(n, m, alpha, beta):
    instance = random_instance(n, 8)
    engine = colony(instance, n_ants=m, candidate_list_size=None, alpha=alpha, beta=beta)
    assert engine._layout.whole
    tau = symmetric_noise(n)
    set_trails(engine, tau)
    engine.construct(99)
    tours = all_tours(engine)
    assert is_permutation(tours)
    d = distance_matrix(instance)
    np.fill_diagonal(d, 1.0)
    weights = tau.astype(float) ** alpha * d**-beta
    check_steps(tours, weights, None, weights)


def test_where_whole_rows_lie_changes_no_tour(monkeypatch):
    usual = layout.plan
    instance = random_instance(150, 8)
    found = []
    for resident in (True, False):
        if not resident:
            monkeypatch.setattr(
                layout, "plan", lambda i, p, d: usual(i, p, replace(d, shared_bytes=48 << 10))
            )
        engine = colony(instance, n_ants=300, candidate_list_size=None)
        assert engine._layout.whole
        assert engine._layout.resident == resident
        set_trails(engine, symmetric_noise(150))
        engine.construct(3)
        found.append(all_tours(engine))
    np.testing.assert_array_equal(found[0], found[1])


@pytest.mark.parametrize("n", [20, 70])
def test_cities_whose_trails_are_all_lost_follow_in_the_order_of_their_numbers(n):
    engine = colony(random_instance(n, 8), n_ants=50, candidate_list_size=None)
    tau = np.zeros((n, n))
    tau[:, n // 2 :] = 1.0  # the others are left when all of these are visited
    set_trails(engine, tau)
    engine.construct(3)
    tours = all_tours(engine)
    assert is_permutation(tours)
    for tour in tours:
        lost = tour[1:][tour[1:] < n // 2]
        np.testing.assert_array_equal(tour[-len(lost) :], lost)
        assert (np.diff(lost) > 0).all()


def test_candidate_memory_falls_back_to_the_nearest_city():
    instance = random_instance(200, 6)
    engine = colony(instance, n_ants=500, candidate_list_size=6, memory="candidate")
    tau = np.random.default_rng(3).uniform(0.1, 1.0, (200, 6)).astype(np.float32)
    set_trails(engine, tau)
    engine.construct(1)
    d = distance_matrix(instance)
    np.fill_diagonal(d, 1.0)
    weights = np.zeros((200, 200))
    np.put_along_axis(weights, instance.neighbours, tau * instance.neighbour_distances**-2.0, axis=1)
    check_steps(all_tours(engine), weights, instance.neighbours, 1.0 / d)


@pytest.mark.parametrize("n", [3, 4, 5, 7, 8, 31, 32, 33, 64, 100, 257])
@pytest.mark.parametrize("m", [1, 3, 33, 300])
@pytest.mark.parametrize("all_cities", [False, True])
@pytest.mark.parametrize("search", [None, LocalSearch(kicks=0.5)])
def test_any_size_gives_valid_tours_and_exact_lengths(n, m, all_cities, search):
    instance = random_instance(n, 10, metric="EUC_2D")
    engine = colony(instance, n_ants=m, candidate_list_size=None if all_cities else 10, local_search=search)
    engine.reset_trails(0.5)
    for key in (0, 2**64 - 1):
        lengths = engine.construct(key)
        tours = all_tours(engine)
        assert is_permutation(tours)
        np.testing.assert_array_equal(lengths, [instance.tour_length(t) for t in tours])


@pytest.mark.parametrize("selection", SELECTIONS)
@pytest.mark.parametrize("tabu", TABUS)
@pytest.mark.parametrize("all_cities", [False, True])
def test_the_same_key_gives_the_same_tours(selection, tabu, all_cities):
    instance = random_instance(300, 16)
    parameters = {
        "n_ants": 200,
        "candidate_list_size": None if all_cities else 16,
        "selection": selection,
        "tabu": tabu,
        "local_search": LocalSearch(kicks=0.2),
    }
    runs = []
    for _ in range(2):
        engine = colony(instance, **parameters)
        engine.reset_trails(1.0)
        first, again = engine.construct(7), None
        tours = all_tours(engine)
        engine.update_trails(TrailUpdate(0.1, ((tours[0], 0.5),), colony_amount=3.0, tau_max=2.0))
        again = engine.construct(8)
        runs.append((first, again, tours, all_tours(engine), engine.export_state()["tau"]))
    for one, other in zip(*runs, strict=True):
        np.testing.assert_array_equal(one, other)
    assert (runs[0][2] != runs[0][3]).any()


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
        shapes.append((engine._layout.resident, engine._layout.ants_a_block))
    np.testing.assert_array_equal(found[0], found[1])
    assert shapes[0] != shapes[1]


@pytest.mark.parametrize("n", [5, 40, 1030])
@pytest.mark.parametrize("m", [1, 7, 257, 2000])
def test_the_shortest_tour_is_the_first_of_them(n, m):
    """The device finds it among all lengths; five cities have few different tours, so many of them are shortest."""
    engine = colony(random_instance(n, 4, metric="EUC_2D"), n_ants=m, candidate_list_size=4)
    engine.reset_trails(1.0)
    for key in range(3):
        lengths = engine.construct(key)
        best = int(lengths.argmin())
        shortest = engine.tours([best])  # as the device has told it
        np.testing.assert_array_equal(shortest[0], all_tours(engine)[best])
        assert engine.instance.tour_length(shortest[0]) == lengths.min()
        assert engine._tours.told.shortest == best


METRICS = ("EUC_2D", "CEIL_2D", "ATT", "GEO", "MAN_2D", "MAX_2D", "EXACT")


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("search", [None, LocalSearch(kicks=0.1)])
def test_every_metric_measures_exactly(metric, search):
    rng = np.random.default_rng(2)
    coords = rng.uniform(-80, 80, (120, 2)) if metric == "GEO" else rng.uniform(0, 5000, (120, 2)).round(1)
    instance = as_instance(TSP(coords, metric=metric), 12)
    engine = colony(instance, n_ants=64, candidate_list_size=12, local_search=search)
    engine.reset_trails(1.0)
    lengths = engine.construct(5)
    np.testing.assert_allclose(lengths, [instance.tour_length(t) for t in all_tours(engine)], rtol=1e-13)
    tour, length = engine.greedy_tour(17)
    expected, _ = CpuColony(instance, ColonyParameters(n_ants=1, candidate_list_size=12)).greedy_tour(17)
    np.testing.assert_array_equal(tour, expected)
    assert length == pytest.approx(instance.tour_length(tour), rel=1e-13)


@pytest.mark.parametrize("metric", ["EUC_3D", "MAN_3D", "MAX_3D"])
def test_three_dimensions(metric):
    coords = np.random.default_rng(2).uniform(0, 500, (90, 3))
    instance = as_instance(TSP(coords, metric=metric), 10)
    engine = colony(instance, n_ants=20, candidate_list_size=10, local_search=LocalSearch())
    engine.reset_trails(1.0)
    lengths = engine.construct(5)
    np.testing.assert_array_equal(lengths, [instance.tour_length(t) for t in all_tours(engine)])


@pytest.mark.parametrize("all_cities", [False, True])
def test_asymmetric_matrix(all_cities):
    matrix = np.random.default_rng(4).integers(1, 100, (60, 60)).astype(float)
    instance = as_instance(TSP(matrix=matrix), 10)
    assert not instance.symmetric
    engine = colony(instance, n_ants=2000, candidate_list_size=None if all_cities else 10, selection="wrs")
    tau = np.random.default_rng(5).uniform(0.1, 1.0, (60, 60)).astype(np.float32)
    set_trails(engine, tau)
    lengths = engine.construct(5)
    tours = all_tours(engine)
    np.testing.assert_array_equal(lengths[:50], [instance.tour_length(t) for t in tours[:50]])
    d = np.where(np.eye(60, dtype=bool), 1.0, matrix)
    weights = tau * d**-2.0
    check_steps(tours, weights, None if all_cities else instance.neighbours, weights)
    with pytest.raises(ValueError, match="symmetric"):
        colony(instance, local_search=LocalSearch(), candidate_list_size=10)


@pytest.mark.parametrize("coords", [np.zeros((50, 2)), np.repeat(np.arange(25.0), 2)[:, None] * [1, 0]])
@pytest.mark.parametrize("all_cities", [False, True])
def test_cities_at_one_place(coords, all_cities):
    instance = as_instance(TSP(coords, metric="EXACT"), 8)
    engine = colony(
        instance, n_ants=10, candidate_list_size=None if all_cities else 8, local_search=LocalSearch()
    )
    engine.reset_trails(1.0)
    lengths = engine.construct(5)
    assert is_permutation(all_tours(engine))
    np.testing.assert_allclose(lengths, [instance.tour_length(t) for t in all_tours(engine)])


def test_all_distances_equal():
    instance = as_instance(TSP(matrix=np.ones((40, 40)) - np.eye(40)), 39)
    engine = colony(instance, n_ants=100, candidate_list_size=39, local_search=LocalSearch())
    engine.reset_trails(1.0)
    assert (engine.construct(1) == 40.0).all()


@pytest.mark.parametrize("memory", ["dense", "candidate"])
@pytest.mark.parametrize("symmetric", [True, False])
def test_trail_update_equals_the_cpu(memory, symmetric):
    n, k, m = 90, 12, 30
    if symmetric:
        instance = random_instance(n, k)
    else:
        instance = as_instance(TSP(matrix=np.random.default_rng(4).uniform(1, 100, (n, n))), k)
    parameters = ColonyParameters(n_ants=m, candidate_list_size=k, memory=memory)
    ours, reference = (
        colony(instance, n_ants=m, candidate_list_size=k, memory=memory),
        CpuColony(instance, parameters),
    )
    ours.reset_trails(0.7)
    ours.construct(1)
    reference.import_state(ours.export_state())
    rng = np.random.default_rng(0)
    for step in range(6):
        update = TrailUpdate(
            rho=0.15,
            deposits=tuple(
                (rng.permutation(n).astype(np.int32), rng.uniform(0, 0.2)) for _ in range(step % 3)
            ),
            colony_amount=float(step % 2) * 300.0,
            tau_min=0.05,
            tau_max=1.1,
        )
        ours.update_trails(update)
        reference.update_trails(update)
        for name in ("tau", "rest"):
            np.testing.assert_allclose(ours.export_state()[name], reference.export_state()[name], rtol=2e-6)
        assert ours.branching_factor(0.05) == pytest.approx(reference.branching_factor(0.05), abs=0.05)
    blend = TrailUpdate(rho=0.1, deposits=((rng.permutation(n).astype(np.int32), 0.9),), on_tours_only=True)
    ours.update_trails(blend)
    reference.update_trails(blend)
    np.testing.assert_allclose(ours.export_state()["tau"], reference.export_state()["tau"], rtol=2e-6)


@pytest.mark.parametrize("memory", ["dense", "candidate"])
def test_a_tour_deposits_alike_wherever_it_lies(memory):
    """The last construction's shortest is on the device already, as is the tour that was copied there last."""
    n, k = 70, 8
    parameters = {"n_ants": 12, "candidate_list_size": k, "memory": memory, "local_search": LocalSearch()}
    instance = random_instance(n, k)
    ours, reference = colony(instance, **parameters), CpuColony(instance, ColonyParameters(**parameters))
    ours.reset_trails(0.7)
    reference.reset_trails(0.7)

    def deposit(tour):
        update = TrailUpdate(rho=0.2, deposits=((tour, 0.3),), tau_min=0.05, tau_max=0.9)
        ours.update_trails(update)
        reference.update_trails(update)
        np.testing.assert_allclose(ours.export_state()["tau"], reference.export_state()["tau"], rtol=2e-6)

    old = np.arange(n, dtype=np.int32)
    for key in range(4):
        shortest = ours.tours([ours.construct(key).argmin()])[0]
        deposit(shortest)
        deposit(shortest[::-1])
        deposit(old)
        deposit(old.astype(np.int64))
        if key == 1:
            deposit(ours.greedy_tour(3)[0])
            deposit(old)
        if key == 2:
            ours.improve(np.tile(old, (12, 1)), 1)
            deposit(shortest)
        old = shortest


def raised_trails(instance, common: float, count: int) -> np.ndarray:
    """Trails that are `common`, but for candidates and `count` others a city, which are stronger."""
    n = instance.n
    rng = np.random.default_rng(7)
    tau = np.full((n, n), common, np.float32)
    candidates = rng.uniform(common, 1.0, instance.neighbours.shape)
    np.put_along_axis(tau, instance.neighbours, candidates.astype(np.float32), axis=1)
    for i in range(n):
        others = np.setdiff1d(np.arange(n), [i, *instance.neighbours[i]])
        chosen = rng.choice(others, min(count, len(others)), replace=False)
        tau[i, chosen] = 2.0 ** -rng.uniform(0, 6, len(chosen))
    return tau


@pytest.mark.parametrize("raised", [0, 3, 20, 60])
@pytest.mark.parametrize("k", [6, 32, 40])
@pytest.mark.parametrize(("alpha", "beta"), [(1.0, 2.0), (0.7, 3.0)])
@pytest.mark.parametrize("all_cities", [True, False])
@pytest.mark.usefixtures("rows_of_the_heaviest")
def test_strong_edges_outside_the_lists_keep_the_distribution(raised, k, alpha, beta, all_cities):
    instance = random_instance(110, k)
    engine = colony(
        instance,
        n_ants=6000,
        candidate_list_size=None if all_cities else k,
        selection="auto" if all_cities else "wrs",
        alpha=alpha,
        beta=beta,
    )
    common = 0.01
    tau = raised_trails(instance, common, raised)
    set_trails(engine, tau, common)
    engine.construct(2024)
    tours = all_tours(engine)
    assert is_permutation(tours)
    d = distance_matrix(instance)
    np.fill_diagonal(d, 1.0)
    weights = tau.astype(float) ** alpha * d**-beta
    check_steps(tours, weights, None if all_cities else instance.neighbours, weights)


@pytest.mark.usefixtures("rows_of_the_heaviest")
def test_the_distribution_is_exact_after_many_deposits():
    """Trails that the engine itself has brought about: limits, few raised edges, and most at the lower limit."""
    instance = random_instance(130, 32)
    engine = colony(instance, n_ants=8000, candidate_list_size=None, selection="auto")
    engine.reset_trails(1.0)
    rng = np.random.default_rng(3)
    for key in range(12):
        engine.construct(key)
        tour = engine.tours([rng.integers(8000)])[0]
        engine.update_trails(TrailUpdate(0.3, ((tour, 0.3),), tau_min=0.05, tau_max=1.0))
    tau = engine.export_state()["tau"]
    outside = np.ones_like(tau, bool)
    np.put_along_axis(outside, instance.neighbours, False, axis=1)
    np.fill_diagonal(outside, False)
    assert 0.5 < (tau[outside] == np.float32(0.05)).mean() < 1.0
    engine.construct(99)
    d = distance_matrix(instance)
    np.fill_diagonal(d, 1.0)
    weights = tau.astype(float) * d**-2.0
    check_steps(all_tours(engine), weights, None, weights)


@pytest.mark.parametrize("colony_amount", [0.0, 50.0])
def test_raised_edges_are_the_strongest_and_the_bound_is_that_of_all_others(colony_amount):
    n = 150
    instance = random_instance(n, 6)
    engine = colony(instance, n_ants=200, candidate_list_size=6)
    engine.reset_trails(0.4)
    engine.construct(0)
    rng = np.random.default_rng(0)
    for step in range(5):
        tour = rng.permutation(n).astype(np.int32)
        update = TrailUpdate(0.3, ((tour, 0.3),), colony_amount=colony_amount, tau_min=0.01, tau_max=1.0)
        engine.update_trails(update)
        state = engine.export_state()
        tau, common = state["tau"].copy(), float(state["rest"][0])
        engine.construct(step + 1)
        bound, raised = np.empty(n, np.float32), np.empty((n, 32), np.uint16)
        with engine._device.working():
            engine._device.read(bound, "outside_bound")
            engine._device.read(raised, "raised")
        np.fill_diagonal(tau, 0.0)
        np.put_along_axis(tau, instance.neighbours, 0.0, axis=1)
        for i in range(n):
            listed = raised[i][raised[i] != i].astype(int)
            others = np.setdiff1d(np.arange(n), listed)
            assert len(np.unique(listed)) == len(listed)
            assert bound[i] == tau[i, others].max()
            assert (tau[i, listed] > bound[i]).all()
            above = (tau[i] > common).sum()
            assert len(listed) == above if above <= 32 else len(listed) > 0 or colony_amount > 0


def test_many_ants_deposit_in_several_passes():
    instance = random_instance(20, 6)
    engine = colony(instance, n_ants=9000, candidate_list_size=None)
    engine.reset_trails(1.0)
    lengths = engine.construct(3)
    tours = all_tours(engine)
    engine.update_trails(TrailUpdate(0.5, colony_amount=2.0, tau_min=0.6))
    expected = np.full((20, 20), 0.6)  # 0.5 is lifted to tau_min before anybody deposits
    for here, there in ((tours, np.roll(tours, -1, axis=1)), (np.roll(tours, -1, axis=1), tours)):
        np.add.at(expected, (here, there), 2.0 / lengths[:, None])
    np.testing.assert_allclose(engine.export_state()["tau"], expected, rtol=2e-6)


@pytest.mark.slow
def test_a_deposit_on_rows_that_do_not_fit_shared_memory():
    n = 10_500
    instance = random_instance(n, 8)
    engine = colony(instance, n_ants=12, candidate_list_size=8, memory="dense")
    engine.reset_trails(1.0)
    lengths = engine.construct(3)
    tours = all_tours(engine)
    engine.update_trails(TrailUpdate(0.5, colony_amount=1e5))
    expected = np.full((n, n), 0.5)
    for here, there in ((tours, np.roll(tours, -1, axis=1)), (np.roll(tours, -1, axis=1), tours)):
        np.add.at(expected, (here, there), 1e5 / lengths[:, None])
    np.testing.assert_allclose(engine.export_state()["tau"], expected, rtol=2e-6)


@pytest.mark.parametrize("selection", PAPER_RULES)
def test_lists_that_do_not_fit_shared_memory_change_no_tour(selection, monkeypatch):
    from pymoo_gpuaco.backends.cuda.walks import rules

    usual = rules.rule_layout
    instance = random_instance(150, 8)
    found = []
    for shared in (None, 32):
        if shared is not None:
            monkeypatch.setattr(
                rules,
                "rule_layout",
                lambda plan, p, limits: usual(plan, p, replace(limits, shared_bytes=32)),
            )
        engine = colony(instance, n_ants=300, candidate_list_size=None, selection=selection)
        assert engine._construction._layout.in_shared == (shared is None) or selection in (
            "roulette",
            "stochastic_trial",
        )
        engine.reset_trails(1.0)
        engine.construct(3)
        found.append(all_tours(engine))
    np.testing.assert_array_equal(found[0], found[1])


@pytest.mark.parametrize("memory", ["dense", "candidate"])
def test_state_goes_to_the_cpu_and_back(memory):
    instance = random_instance(60, 10)
    parameters = {"n_ants": 20, "candidate_list_size": 10, "memory": memory, "local_search": LocalSearch()}
    ours, reference = colony(instance, **parameters), CpuColony(instance, ColonyParameters(**parameters))
    ours.reset_trails(0.3)
    ours.construct(1)
    ours.update_trails(TrailUpdate(0.2, ((ours.tours([0])[0], 0.1),)))
    state = ours.export_state()
    reference.import_state(state)
    for name, array in reference.export_state().items():
        np.testing.assert_array_equal(array, state[name], err_msg=name)
    reference.construct(2)
    again = colony(instance, **parameters)
    again.import_state(reference.export_state())
    for name, array in again.export_state().items():
        np.testing.assert_array_equal(array, reference.export_state()[name], err_msg=name)


def test_a_resumed_run_equals_the_uninterrupted_one():
    instance = random_instance(100, 10)
    parameters = {"n_ants": 40, "candidate_list_size": 10, "local_search": LocalSearch()}
    one, other = colony(instance, **parameters), colony(instance, **parameters)
    one.reset_trails(1.0)
    for key in range(3):
        lengths = one.construct(key)
        one.update_trails(TrailUpdate(0.2, ((one.tours([lengths.argmin()])[0], 0.3),), tau_min=0.01))
    other.import_state(one.export_state())
    np.testing.assert_array_equal(one.construct(9), other.construct(9))
    np.testing.assert_array_equal(all_tours(one), all_tours(other))


@pytest.mark.parametrize("moves", ["2opt", "2opt+oropt"])
def test_local_search_ends_where_the_cpu_finds_nothing_more(moves):
    n = 400
    instance = random_instance(n, 10, metric="EUC_2D")
    parameters = {
        "n_ants": 16,
        "candidate_list_size": 10,
        "local_search": LocalSearch(moves=moves, kicks=0.0),
    }
    ours = colony(instance, **parameters)
    rng = np.random.default_rng(0)
    start = np.array([rng.permutation(n) for _ in range(16)], np.int32)
    tours, lengths = ours.improve(start, 1)
    assert is_permutation(tours)
    np.testing.assert_array_equal(lengths, [instance.tour_length(t) for t in tours])
    reference = CpuColony(instance, ColonyParameters(**parameters))
    _, further = reference.improve(tours, 1)
    # the order of moves differs, and so do the few cities whose don't-look bit hides a move
    assert further.mean() > 0.995 * lengths.mean()
    _, from_start = reference.improve(start, 1)
    assert lengths.mean() == pytest.approx(from_start.mean(), rel=0.03)


def test_kicks_shorten_tours_and_never_lengthen_them():
    n = 300
    instance = random_instance(n, 10, metric="EUC_2D")
    rng = np.random.default_rng(0)
    start = np.array([rng.permutation(n) for _ in range(16)], np.int32)
    without = colony(
        instance, n_ants=16, candidate_list_size=10, local_search=LocalSearch(kicks=0.0)
    ).improve(start, 1)
    kicked = colony(instance, n_ants=16, candidate_list_size=10, local_search=LocalSearch(kicks=2.0)).improve(
        start, 1
    )
    assert is_permutation(kicked[0])
    assert (kicked[1] <= without[1]).all()
    assert kicked[1].mean() < 0.985 * without[1].mean()


def test_refusals_say_what_to_do():
    instance = random_instance(30, 8)
    for parameters in (
        {"memory": "selective"},
        {"selection": "pseudo_random_proportional", "candidate_list_size": None},
    ):
        with pytest.raises(ValueError, match="backend='cpu'"):
            colony(instance, **parameters)
    engine = colony(instance, n_ants=4)
    with pytest.raises(ValueError, match="must have shape"):
        engine.improve(np.zeros((3, 30), np.int32), 1)
    from pymoo_gpuaco.backends.cuda.engine import CudaColony

    with pytest.raises(ValueError, match="device must be"):
        CudaColony(instance, ColonyParameters(), device=99)


def test_too_large_a_colony_is_refused_before_anything_is_taken(monkeypatch):
    instance = random_instance(30, 8)
    with pytest.raises(MemoryError, match=r"GB are free; .*candidate"):
        colony_too_large(monkeypatch, instance)


def colony_too_large(monkeypatch, instance):
    from pymoo_gpuaco.backends.cuda.device import device, memory

    def crowded(needed, free, advice):
        memory_check(needed, memory.RESERVE, advice)

    memory_check = memory.check
    monkeypatch.setattr(device, "check", crowded)
    colony(instance, n_ants=4)


@pytest.mark.parametrize("memory", ["dense", "candidate"])
def test_work_begun_early_gives_the_same_and_shows_nowhere_else(memory):
    instance = random_instance(120, 12)
    parameters = {"n_ants": 30, "candidate_list_size": 12, "memory": memory, "local_search": LocalSearch()}
    early, late = colony(instance, **parameters), colony(instance, **parameters)
    assert early.works_ahead
    for engine in (early, late):
        engine.reset_trails(0.5)
        engine.construct(1)
    early.begin(2)
    before, there = late.export_state(), early.export_state()
    for name in before:
        np.testing.assert_array_equal(there[name], before[name])
    np.testing.assert_array_equal(early.construct(2), late.construct(2))
    np.testing.assert_array_equal(all_tours(early), all_tours(late))
    # work for another key or on other trails is dropped
    early.begin(9)
    np.testing.assert_array_equal(early.construct(3), late.construct(3))
    early.begin(4)
    update = TrailUpdate(0.5, ((all_tours(late)[0], 3.0),))
    for engine in (early, late):
        engine.update_trails(update)
    np.testing.assert_array_equal(early.construct(4), late.construct(4))


@pytest.mark.parametrize("memory", ["dense", "candidate"])
def test_held_trails_come_back(memory):
    instance = random_instance(50, 10)
    parameters = {"n_ants": 8, "candidate_list_size": 10, "memory": memory}
    engine, other = colony(instance, **parameters), colony(instance, **parameters)
    for each in (engine, other):
        each.reset_trails(0.5)
        each.construct(1)
    engine.hold_trails()
    engine.update_trails(TrailUpdate(0.5, ((all_tours(engine)[0], 3.0),), tau_min=0.3))
    engine.reset_trails(7.0)
    engine.begin(2)
    engine.restore_trails()
    for name, array in other.export_state().items():
        np.testing.assert_array_equal(engine.export_state()[name], array)
    np.testing.assert_array_equal(engine.construct(2), other.construct(2))


def test_nothing_leaks_and_engines_die_in_any_thread():
    import pycuda.driver as driver

    from pymoo_gpuaco.backends.cuda.device import context

    instance = random_instance(1500, 16)
    retained = context.retain(0)

    def free_bytes() -> int:
        with context.active(retained):
            return driver.mem_get_info()[0]

    def work() -> None:
        engine = colony(instance, n_ants=500, candidate_list_size=16, local_search=LocalSearch(kicks=0.0))
        engine.reset_trails(1.0)
        engine.construct(1)

    work()
    gc.collect()
    before = free_bytes()
    for _ in range(3):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        gc.collect()
    box = [colony(instance, n_ants=500, candidate_list_size=16)]
    thread = threading.Thread(target=box.clear)
    thread.start()
    thread.join()
    gc.collect()
    assert before - free_bytes() < 8 << 20


@pytest.mark.slow
def test_a_thousand_engines_leave_nothing_behind():
    import pycuda.driver as driver

    from pymoo_gpuaco.backends.cuda.device import context

    instance = random_instance(20, 8)
    retained = context.retain(0)

    def free_bytes_after(runs: int) -> int:
        for _ in range(runs):
            engine = colony(instance, n_ants=4, candidate_list_size=8, local_search=LocalSearch(kicks=0.0))
            engine.reset_trails(1.0)
            engine.construct(1)
        del engine
        gc.collect()
        with context.active(retained):
            return driver.mem_get_info()[0]

    before = free_bytes_after(10)
    assert before - free_bytes_after(1000) < 8 << 20


def test_torch_keeps_working_in_the_same_process():
    torch = pytest.importorskip("torch")
    before = torch.arange(1000, device="cuda", dtype=torch.float32)
    engine = colony(random_instance(60, 8), n_ants=10)
    engine.reset_trails(1.0)
    first = engine.construct(1)
    assert float((before * 2).sum()) == 999_000.0
    graph = torch.ones(64, 64, device="cuda") @ torch.ones(64, 64, device="cuda")
    np.testing.assert_array_equal(engine.construct(1), first)
    del engine
    gc.collect()
    assert float(graph.sum()) == 64.0**3
    assert float((before + 1).max()) == 1000.0


def test_engines_work_side_by_side_in_threads():
    instance = random_instance(200, 16)
    expected = {}
    for key in range(4):
        engine = colony(instance, n_ants=50, candidate_list_size=16)
        engine.reset_trails(1.0)
        expected[key] = engine.construct(key)
    found = {}

    def work(key: int) -> None:
        engine = colony(instance, n_ants=50, candidate_list_size=16)
        for _ in range(5):
            engine.reset_trails(1.0)
            found[key] = engine.construct(key)

    threads = [threading.Thread(target=work, args=(key,)) for key in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for key, lengths in expected.items():
        np.testing.assert_array_equal(found[key], lengths)


def test_a_forked_child_is_told():
    engine = colony(random_instance(30, 8), n_ants=4)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        words = b""
        try:
            engine.construct(1)
        except RuntimeError as error:
            words = str(error).encode()
        finally:
            os.write(write, words)
            os._exit(0)
    os.waitpid(child, 0)
    os.close(write)
    assert b"spawn" in os.read(read, 4096)
    os.close(read)


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
