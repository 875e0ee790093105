"""The focused colony on the CPU: what it hands out, what it takes in, and that its state is all there is."""

import itertools
import time

import numpy as np
import pytest

from pymoo_gpuaco import exchange
from pymoo_gpuaco.backends import SearchEngine, make_search
from pymoo_gpuaco.backends.cpu import warm_up
from pymoo_gpuaco.backends.cpu.focused import CpuWindows
from pymoo_gpuaco.candidates.lists import listed_instance
from pymoo_gpuaco.colony.parameters import ColonyParameters
from pymoo_gpuaco.colony.trails import TrailUpdate
from pymoo_gpuaco.host.keys import fold_in
from pymoo_gpuaco.problems import TSP
from pymoo_gpuaco.search import parameters as parameters_module
from pymoo_gpuaco.search import population as module
from pymoo_gpuaco.search.focused import FocusedSearch
from pymoo_gpuaco.search.parameters import FocusedParameters
from tests.engine_cases import INSTANCES, asymmetric, cloud
from tests.test_assembly import random_tours

WAYS = {"whole tours": {"trials": 64}, "windows": {"trials": 256, "whole_up_to": 8, "window": 64}}


def focused(problem, way="whole tours", **colony):
    return of(problem, FocusedParameters(**WAYS[way]), **colony)


def of(problem, parameters=None, **colony):
    engine = FocusedSearch(CpuWindows(listed_instance(problem, 8), ColonyParameters(**colony), parameters))
    engine.reset_trails(1.0)
    return engine


def found(engine, key):
    """The best tour after one more generation, and its length."""
    engine.search(key)
    (tour,), (length,) = engine.best_tours()
    return tour, length


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", [name for name, problem in INSTANCES.items() if problem.symmetric])
def test_tours_are_permutations_and_lengths_exact(name, way):
    problem = INSTANCES[name]
    engine = focused(problem, way)
    assert isinstance(engine, SearchEngine)
    last = np.inf
    for key in range(6):
        tour, length = found(engine, key)
        assert np.array_equal(np.sort(tour), np.arange(problem.n_cities))
        assert length == pytest.approx(problem.tour_lengths(tour[None])[0], rel=1e-12)
        assert length <= last
        assert engine.n_searched >= 1
        last = length


def test_a_ring_of_cities_on_a_circle_is_solved():
    angle = 2 * np.pi * np.arange(200) / 200
    order = np.random.default_rng(0).permutation(200)
    problem = TSP(10_000 * np.column_stack([np.cos(angle), np.sin(angle)])[order], metric="EUC_2D")
    engine = focused(problem)
    best = problem.tour_lengths(np.argsort(order)[None])[0]
    assert any(found(engine, key)[1] == best for key in range(30))


def test_seven_cities_against_all_tours():
    problem = cloud(7, 11)
    tours = np.array([(0, *rest) for rest in itertools.permutations(range(1, 7))])
    assert found(focused(problem), 0)[1] == problem.tour_lengths(tours).min()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("threads", ["1", "4"])
def test_the_key_decides_everything_and_threads_nothing(way, threads, monkeypatch):
    problem = cloud(300, 9)
    one = focused(problem, way, n_ants=3)
    monkeypatch.setenv("PYMOO_GPUACO_THREADS", threads)
    two = focused(problem, way, n_ants=3)
    for key in range(12):
        assert np.array_equal(found(one, key)[0], found(two, key)[0])
        assert np.array_equal(one.lengths, two.lengths)
        assert np.array_equal(one.export_state()["tours"], two.export_state()["tours"])


@pytest.mark.parametrize(("threads", "tours"), [("1", 2), ("2", 2), ("5", 5), ("64", 64)])
def test_there_are_as_many_whole_tours_as_threads(threads, tours, monkeypatch):
    monkeypatch.setenv("PYMOO_GPUACO_THREADS", threads)
    engine = of(cloud(60, 1))
    assert engine.n_ants == tours
    engine.search(1)
    assert engine.n_searched == len(engine.export_state()["tours"]) == len(engine.lengths) == tours
    # many tours share what two have, so that a generation stays short where threads are fewer than tours
    assert engine.n_trials == (tours * 1024 if tours < 8 else 2048)
    assert of(cloud(60, 1), n_ants=3).n_ants == 3


@pytest.mark.parametrize(
    ("n", "threads", "cities"),
    [
        (200_000, 1, 50_000),
        (200_000, 4, 50_000),
        (200_000, 8, 25_000),
        (200_000, 64, 20_000),
        (80_001, 1, 40_001),  # half of all
        (80_000, 4, 20_000),
        (30_000, 8, 15_000),
    ],
)
def test_windows_are_as_many_as_threads_where_they_stay_large(n, threads, cities):
    assert FocusedParameters().cities_a_window(n, threads) == cities
    assert FocusedParameters(window=128).cities_a_window(n, threads) == 128


@pytest.mark.parametrize("way", WAYS)
def test_an_imported_state_continues_bit_by_bit(way):
    problem = cloud(300, 10)
    one, two = focused(problem, way), focused(problem, way)
    for key in range(9):
        one.update_trails(TrailUpdate(0.1, ((found(one, key)[0], 0.5),), tau_min=0.1, tau_max=1.0))
    two.import_state(one.export_state())
    for key in range(9, 25):
        assert np.array_equal(found(one, key)[0], found(two, key)[0])
        assert np.array_equal(one.lengths, two.lengths)
    one, two = one.export_state(), two.export_state()
    assert one.keys() == two.keys()
    assert all(np.array_equal(one[name], two[name]) for name in one)


def test_a_state_that_is_none_is_refused_before_anything_changes():
    engine = focused(cloud(50, 1))
    state = engine.export_state()
    bad = {**state, "best": np.zeros_like(state["best"]) + 1}
    with pytest.raises(ValueError, match="best"):
        engine.import_state(bad)
    with pytest.raises(ValueError, match="counts"):
        engine.import_state({**state, "counts": state["counts"][:0]})
    assert np.array_equal(engine.export_state()["best"], state["best"])


@pytest.mark.parametrize("way", WAYS)
def test_a_tour_from_outside_is_merged(way):
    problem = cloud(200, 12)
    far = focused(problem, way)
    for key in range(40):
        far.search(key)
    best = far.best_tours()[0]
    near = focused(problem, way)
    before = found(near, 0)[1]
    near.accept(best, problem.tour_lengths(best))
    after = found(near, 1)[1]
    assert after <= problem.tour_lengths(best)[0] < before
    near.accept(np.empty((0, 200), np.int32), np.empty(0))
    with pytest.raises(ValueError, match="permutation"):
        near.accept(np.zeros((1, 200), int), np.ones(1))


@pytest.mark.parametrize("way", WAYS)
def test_improving_given_tours_leaves_the_engine_alone(way):
    problem = cloud(200, 13)
    engine = focused(problem, way)
    engine.search(0)
    state = engine.export_state()
    tours = np.array([np.random.default_rng(i).permutation(200) for i in range(3)])
    improved, lengths = engine.improve(tours, 5)
    assert np.array_equal(lengths, problem.tour_lengths(improved))
    assert np.all(lengths < 0.3 * problem.tour_lengths(tours))
    assert np.array_equal(np.sort(improved), np.tile(np.arange(200), (3, 1)))
    alone, _ = engine.improve(tours[:1], 5)
    assert np.array_equal(alone[0], improved[0])
    after = engine.export_state()
    assert all(np.array_equal(state[name], after[name]) for name in state)


def test_trail_update_by_hand():
    # four cities in a row, all of them candidates: 1.0 -> 0.5 by evaporation, tour edges + 0.25, within 0.7
    engine = focused(TSP([[0, 0], [1, 0], [2, 0], [3, 0]], "EUC_2D"))
    engine.update_trails(TrailUpdate(0.5, ((np.array([0, 1, 2, 3]), 0.25),), tau_min=0.1, tau_max=0.7))
    tau, candidates = engine.export_state()["tau"], engine.device.candidates
    on_tour = {frozenset(e) for e in ((0, 1), (1, 2), (2, 3), (3, 0))}
    for i in range(4):
        for j, trail in zip(candidates[i], tau[i], strict=True):
            assert trail == pytest.approx(0.7 if frozenset((i, int(j))) in on_tour else 0.5)
    assert engine.branching_factor(0.5) == pytest.approx(2.0)


def test_trails_decide_where_ants_go():
    problem = cloud(100, 14)
    plain, led = focused(problem), focused(problem)
    led.update_trails(TrailUpdate(0.9, ((np.random.default_rng(0).permutation(100), 50.0),)))
    for key in range(3):
        plain.search(key)
        led.search(key)
    assert not np.array_equal(plain.export_state()["tours"], led.export_state()["tours"])


def test_direction_that_counts_is_for_windows_of_a_symmetric_form():
    parameters = ColonyParameters(construction="focused")
    with pytest.raises(ValueError, match="the instance must be symmetric"):
        CpuWindows(listed_instance(asymmetric(20), 8), parameters)
    engine = make_search(listed_instance(asymmetric(20), 8), parameters, "cpu")
    assert isinstance(engine.inner.device, CpuWindows)


def test_short_cycles_are_cooler():
    plan = of(cloud(60), FocusedParameters(heat=2.0)).device.plan
    assert [plan.first_heat(kicks) for kicks in (2.5, 10.0, 1000.0)] == [1.0, 2.0, 2.0]


def test_large_instances_have_more_candidates():
    assert [FocusedParameters().candidates(n) for n in (1000, 25_000, 25_001)] == [5, 5, 7]
    assert FocusedParameters(n_candidates=9).candidates(1000) == 9


def test_short_cycles_move_short_stretches():
    focused = FocusedParameters()
    assert [focused.longest_stretch(kicks) for kicks in (0.1, 10.0, 15.0, 20.0, 1e6)] == [
        50,
        50,
        75,
        100,
        100,
    ]


@pytest.mark.parametrize(
    ("seconds", "n", "threads", "tours"),
    [
        (1.0, 2200, 2, 10),  # 11,000 cities a second and thread
        (5.0, 2200, 1, 25),
        (1.0, 3667, 1, None),  # 2.9997 tours: as many as usual
        (1.0, 3666, 1, 8),  # 3.0005: as few as evolve
        (12.8, 2200, 1, 64),
        (51.2, 2200, 1, 128),  # four times the time, twice the tours
        (60.0, 200, 8, 1000),  # of 1,300
        (0.0, 8, 1, None),
        (27.2, 25_001, 1, None),  # windows of one tour are usual, and 11.97 tours are too few
        (27.3, 25_001, 1, 12),
        (120.0, 100_000, 1, 13),
        (1e5, 100_001, 2, None),
    ],
)
def test_as_many_tours_as_pay_in_the_time_of_a_run(seconds, n, threads, tours):
    assert FocusedParameters().tours_in(seconds, n, threads) == tours
    assert FocusedParameters(n_tours=9).tours_in(seconds, n, threads) is None
    if n > 25_000:
        assert FocusedParameters(whole_up_to=25_000).tours_in(seconds, n, threads) is None


@pytest.mark.parametrize(("rate", "tours"), [(7.1, 14), (6.1, 12), (5.9, 1)])
def test_long_tours_are_whole_where_a_run_has_time_for_several(rate, tours, monkeypatch):
    """600 s for 300 cities, of which windows are usual from 101 on."""
    monkeypatch.setenv("PYMOO_GPUACO_THREADS", "1")
    monkeypatch.setattr(parameters_module, "WHOLE_UP_TO", 100)
    monkeypatch.setattr(parameters_module, "CITIES_A_SECOND", rate)
    problem, until = cloud(300, 4), time.monotonic() + 600.0
    engines = [of(problem, FocusedParameters(window=64, trials=256)) for _ in range(3)]
    one, two, given = *engines[:2], of(problem, n_ants=5)
    for engine in (*engines, given):
        assert engine.device.n_tours == 1
        assert not engine.device.search.whole
        engine.stop_at(until)
    given.search(1)
    assert (given.device.n_tours, given.n_ants) == (1, 5)
    for key in range(4):
        found(one, key)
    assert (len(one.lengths), one.device.search.whole) == (tours, tours > 1)
    assert one.n_ants == (tours if tours > 1 else 8)
    assert one.device.plan.end == (0.7 if tours > 1 else 0.97)
    two.import_state(one.export_state())
    for key in range(4, 8):
        assert np.array_equal(found(one, key)[0], found(two, key)[0])
    assert np.array_equal(one.export_state()["tours"], two.export_state()["tours"])
    best, evolved = one.best_tours()[1][0], []
    evolve = module.evolve
    monkeypatch.setattr(module, "evolve", lambda *a, **k: evolved.append(len(a[1])) or evolve(*a, **k))
    one.expect(0.0)
    for key in range(8, 40):  # the last cycle, and at its end tours evolve
        found(one, key)
        one.expect((key - 7) / 32)
    tour, length = (row[0] for row in one.best_tours())
    assert length == problem.tour_length(tour) <= best
    assert evolved == ([tours + 1] if tours > 1 else [])  # the best of the run beside them
    tours = random_tours(300, 2)
    better, _ = one.improve(tours, 3)
    assert np.all(problem.tour_lengths(better) < 0.5 * problem.tour_lengths(tours))
    engines[2].import_state(two.export_state())
    engines[2].device.hold(1)
    assert not engines[2].device.search.whole


def test_as_many_tours_as_told_or_as_there_are_threads():
    assert [FocusedParameters().tours(threads) for threads in (1, 2, 9, 2000)] == [2, 2, 9, 1000]
    assert [FocusedParameters(n_tours=m).tours(4) for m in (1, 1000)] == [1, 1000]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n_candidates", 3),
        ("whole_up_to", 7),
        ("n_tours", 0),
        ("n_tours", 1001),
        ("window", 63),
        ("trials", 0),
        ("heat", -0.1),
        ("first_cycle", 0.0),
        ("ascent", 1001),
    ],
)
def test_bad_parameters_are_named(name, value):
    with pytest.raises(ValueError, match=name):
        FocusedParameters(**{name: value})


@pytest.mark.parametrize("ants", [2, 4, 7])
def test_a_hot_generation_merges_its_shortest_tours_and_the_last_one_assembles_all(ants, monkeypatch):
    problem = cloud(200)
    engine = of(problem, FocusedParameters(first_cycle=20.0), n_ants=ants)
    merged: list[float] = []
    merge = module.Population.merge

    def noted(population, tour):
        merged.append(problem.tour_length(tour))
        merge(population, tour)

    monkeypatch.setattr(module.Population, "merge", noted)
    assembled = []

    def assemble(graph, tours, key, stop, scale):
        assembled.append((tours.copy(), key, exchange.assemble(graph, tours, key, stop, scale=scale)))
        return assembled[-1][2]

    monkeypatch.setattr(module, "assemble", assemble)
    ends = []
    for key in range(12):
        merged.clear()
        before = len(assembled)
        engine.search(key)
        at_end = engine._schedule.done == 0  # the next cycle has been begun
        assert len(assembled) - before == at_end
        # the best is merged with the four shortest, which come by length; the tours that were assembled are as good
        lengths = engine.lengths
        if not at_end:
            assert merged == sorted(lengths)[:4]
            continue
        ends.append(key)
        given, its_key, taken = assembled[-1]
        assert its_key == fold_in(key, 1)  # that of the generation's only round
        assert len(given) == ants + 1  # the best is one tour more
        assert np.array_equal(problem.tour_lengths(taken[:-1]), lengths)
        assert np.all(problem.tour_lengths(taken) <= problem.tour_lengths(given))
        (best,), (length,) = engine.best_tours()
        assert length == problem.tour_length(best) <= problem.tour_lengths(taken).min()
    assert ends


def test_a_cycle_takes_over_with_the_best_before_it(monkeypatch):
    engine = of(cloud(200), FocusedParameters(first_cycle=20.0), n_ants=4)
    given = []
    # nothing is merged
    monkeypatch.setattr(module, "assemble", lambda _, tours, *__, **___: given.append(tours.copy()) or tours)
    key = 0
    while not given:
        before = engine.best_tours()[1][0]
        engine.search(key)
        key += 1
    lengths = cloud(200).tour_lengths(given[0])
    # that of the generations before, unless a tour of the last round is shorter
    assert lengths[-1] == min(before, lengths[:-1].min())
    assert np.array_equal(engine.export_state()["tours"], given[0][:-1])
    assert engine.best_tours()[1][0] == lengths[-1]


def test_the_last_cycle_ends_once(monkeypatch):
    engine = of(cloud(200), FocusedParameters(first_cycle=20.0), n_ants=4)
    ends = []
    monkeypatch.setattr(engine, "_recombine", lambda _: ends.append(engine._schedule.rounds))
    for key in range(40):
        engine.expect(min(key / 20, 1.0))  # twenty generations, and as many after the end
        engine.search(key)
    # the first cycle ends after 20 kicks a city, 4,000 of 1,024 a round: it takes all of a short run, up to 0.97
    assert ends == [20]
    assert engine._schedule.finished


def test_progress_goes_on_by_the_round(monkeypatch):
    # a generation is one round here: what one has brought the run is what the next will
    engine = of(cloud(100), FocusedParameters(first_cycle=1000.0), n_ants=2)
    seen = []
    anneal = engine.device.anneal
    monkeypatch.setattr(
        engine.device, "anneal", lambda *given: (seen.append(engine._schedule.progress), anneal(*given))[1]
    )
    for key, progress in enumerate((0.0, 0.25, 0.375)):
        engine.expect(progress)
        engine.search(key)
    # after the temperature of a round is known: 0; 0.25 and a step of 0.25; 0.375 and a step of 0.125
    assert seen == [0.0, 0.5, 0.5]


def test_every_round_has_a_key_of_its_own(monkeypatch):
    engine = focused(cloud(100))
    keys = []
    anneal = engine.device.anneal
    monkeypatch.setattr(engine.device, "anneal", lambda key, heat: (keys.append(key), anneal(key, heat))[1])
    for key in (0, 2**64 - 1):
        engine.search(key)
    assert keys == [fold_in(0, 1), fold_in(2**64 - 1, 1)]


@pytest.mark.parametrize(("ants", "apart"), [(2, 1), (3, 1), (4, 4), (6, 6)])
def test_four_tours_or_more_begin_as_different_ones(ants, apart, monkeypatch):
    engine = focused(cloud(150), n_ants=ants)
    begun = []
    search = engine.device.search.search_tours

    def searched(tours, *arguments):
        begun.append(tours.copy())
        search(tours, *arguments)

    monkeypatch.setattr(engine.device.search, "search_tours", searched)
    start = engine.first_tour()[0]
    for key in range(2):
        engine.search(key)
    assert len(np.unique(begun[0], axis=0)) == apart
    assert np.array_equal(begun[0][0], start)


@pytest.mark.parametrize("n", [100, 30_000])
def test_what_is_called_at_the_end_of_a_cycle_is_compiled_before_a_run(n, monkeypatch):
    assembled, merged = [], []
    monkeypatch.setattr(module, "assemble", lambda graph, tours, *_, **__: assembled.append(tours) or tours)
    monkeypatch.setattr(module, "merge", lambda tour, other, _: (merged.append(other) or tour, 0.0))
    warm_up.warm_up_host.cache_clear()
    warm_up._warm_up_focused.cache_clear()
    warm_up.warm_up_focused(n, by_quadrant=True)
    assert assembled
    assert merged
    warm_up.warm_up_host.cache_clear()
    warm_up._warm_up_focused.cache_clear()
