"""Cycles of annealing on the CPU: how they begin and end, and what is done with the tours between two of them."""

import numpy as np
import pytest

from pymoo_gpuaco.backends.cpu import warm_up
from pymoo_gpuaco.memetic import assembly
from pymoo_gpuaco.memetic import population as module
from pymoo_gpuaco.memetic.parameters import MemeticParameters
from pymoo_gpuaco.runtime.keys import fold_in
from tests.engine_cases import cloud
from tests.test_cpu_focused import memetic, of


@pytest.mark.parametrize(
    ("given", "temperatures"), [(None, [0.55, 1.1, 1.1]), (2.0, [2.0] * 3), (0.0, [0.0] * 3)]
)
def test_short_cycles_are_cooler_unless_the_temperature_is_given(given, temperatures):
    plan = of(cloud(60), MemeticParameters(initial_temperature=given)).device.plan
    assert [plan.first_temperature(kicks) for kicks in (2.5, 10.0, 1000.0)] == pytest.approx(temperatures)


@pytest.mark.parametrize("population_size", [2, 4, 7])
def test_a_hot_generation_merges_its_shortest_tours_and_the_last_one_assembles_all(
    population_size, monkeypatch
):
    problem = cloud(200)
    engine = of(
        problem,
        MemeticParameters(first_cycle=2.5, trials=128 * population_size, population_size=population_size),
    )
    merged: list[float] = []
    merge = module.Population.merge

    def noted(population, tour):
        merged.append(problem.tour_length(tour))
        merge(population, tour)

    monkeypatch.setattr(module.Population, "merge", noted)
    assembled = []

    def assemble(graph, tours, key, stop, scale, least_gain):
        taken = assembly.assemble(graph, tours, key, stop, scale=scale, least_gain=least_gain)
        assembled.append((tours.copy(), key, taken, least_gain))
        return taken

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
        given, its_key, taken, least_gain = assembled[-1]
        assert its_key == fold_in(key, 1)  # that of the generation's only round
        assert (
            len(given) == len(np.unique(given, axis=0)) >= population_size
        )  # the best is one tour more, or one of them
        assert least_gain == (1 / 16 if len(ends) == 1 else 0.0)
        assert np.array_equal(problem.tour_lengths(taken[:population_size]), lengths)
        assert np.all(problem.tour_lengths(taken) <= problem.tour_lengths(given))
        (best,), (length,) = engine.best_tours()
        assert length == problem.tour_length(best) <= problem.tour_lengths(taken).min()
    assert len(ends) > 1


def test_a_cycle_takes_over_with_the_best_before_it(monkeypatch):
    engine = of(cloud(200), MemeticParameters(first_cycle=2.5, trials=512, population_size=4))
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
    engine = of(cloud(200), MemeticParameters(first_cycle=2.5, trials=512, population_size=4))
    ends = []
    monkeypatch.setattr(engine, "_recombine", lambda _: ends.append(engine._schedule.rounds))
    for key in range(40):
        engine.expect(min(key / 20, 1.0))  # twenty generations, and as many after the end
        engine.search(key)
    # the first cycle ends after 2.5 kicks a city, 500 of 128 a round: it takes all of a short run, up to 0.97
    assert ends == [20]
    assert engine._schedule.finished


def test_progress_goes_on_by_the_round(monkeypatch):
    # a generation is one round here: what one has brought the run is what the next will
    engine = of(cloud(100), MemeticParameters(first_cycle=1000.0, trials=128, population_size=2))
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
    engine = memetic(cloud(100))
    keys = []
    anneal = engine.device.anneal
    monkeypatch.setattr(engine.device, "anneal", lambda key, heat: (keys.append(key), anneal(key, heat))[1])
    for key in (0, 2**64 - 1):
        engine.search(key)
    assert keys == [fold_in(0, 1), fold_in(2**64 - 1, 1)]


@pytest.mark.parametrize(("tours", "apart"), [(2, 1), (3, 1), (4, 4), (6, 6)])
def test_four_tours_or_more_begin_as_different_ones(tours, apart, monkeypatch):
    engine = memetic(cloud(150), n=tours)
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
    warm_up._warm_up_memetic.cache_clear()
    warm_up.warm_up_memetic(n, by_quadrant=True)
    assert assembled
    assert merged
    warm_up.warm_up_host.cache_clear()
    warm_up._warm_up_memetic.cache_clear()
