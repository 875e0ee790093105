"""Evolution that pauses, is saved and continues; and tours of earlier runs that evolve before any annealing."""

from __future__ import annotations

import numpy as np
import pytest

from pymoo_gpuaco import GPUMemetic, checkpoint
from pymoo_gpuaco.candidates.varied import varied_tours
from pymoo_gpuaco.memetic import evolution as module
from pymoo_gpuaco.memetic.eax import evolve
from pymoo_gpuaco.memetic.evolution import Evolution
from pymoo_gpuaco.memetic.population import Population
from pymoo_gpuaco.memetic.schedule import TimeBudget
from pymoo_gpuaco.runtime.clock import CLOCK
from pymoo_gpuaco.runtime.stop import Stop
from tests.eax_cases import good_tours, graph_of
from tests.engine_cases import BACKENDS, cloud, memetic
from tests.instances import listed_instance
from tests.test_population import assert_all_are_shorter, made


@pytest.mark.parametrize("steps", [1, 7])
def test_an_evolution_in_parts_equals_an_uninterrupted_one(steps):
    problem = cloud(100, 8)
    graph, tours = graph_of(problem), good_tours(problem, 12)
    whole = evolve(graph, tours, graph.neighbours, 5)
    parts = [evolve(graph, tours, graph.neighbours, 5, generations=steps)]
    while parts[-1].rest is not None:
        parts.append(parts[-1].rest.proceed(generations=steps))
    assert len(parts) > 2
    assert whole.rest is None
    assert np.array_equal(parts[-1].tours, whole.tours)
    assert parts[-1].second_from == whole.second_from
    for count in ("generations", "children", "replaced"):
        assert sum(getattr(part, count) for part in parts) == getattr(whole, count)


@pytest.fixture
def paused(monkeypatch):
    """A round of evolution with a deadline, paused; its population and the tours it began with."""
    monkeypatch.setattr(module, "PAUSE", 0.0)
    population, tours = made()
    before, stop = population.length, Stop()
    stop.until = CLOCK.monotonic() + 1000.0
    rounds = Evolution(TimeBudget(stop))
    rounds.first(population, tours, 3)
    assert rounds.is_paused
    assert rounds.is_running
    rounds._due_at = 0.0
    assert not rounds.due()  # the next round waits for the end of this one
    return rounds, population, tours, before


def to_its_end(rounds, population):
    for key in range(10_000):
        if not rounds.is_paused:
            return
        assert not np.isinf(population.length)
        rounds.proceed(population, key)
    pytest.fail("the round does not end")


def test_a_round_pauses_and_continues(paused):
    rounds, population, tours, before = paused
    to_its_end(rounds, population)
    taken = np.tile(population.best, (len(tours), 1))
    assert_all_are_shorter(population, before, tours, taken)


@pytest.mark.parametrize("ended", [False, True])
def test_a_stored_round_continues(paused, ended):
    rounds, population, _, before = paused
    if ended:
        to_its_end(rounds, population)
        rounds.again(population, 4)
    stored, fresh = rounds.stored(), Evolution(rounds._budget)
    fresh.reset(stored, population)
    assert (fresh.is_paused, fresh.is_running) == (rounds.is_paused, rounds.is_running) == (True, True)
    for one, other in zip(fresh.annealed(5), rounds.annealed(5), strict=True):
        assert np.array_equal(one, other)
    again = fresh.stored()
    assert (again.number, again.blocks) == (stored.number, stored.blocks) == (int(ended), stored.blocks)
    for name in ("annealed", "winners", "paused"):
        assert np.array_equal(getattr(again, name), getattr(stored, name))
    assert len(stored.winners) == int(ended)
    to_its_end(fresh, population)
    assert population.length < before


def test_a_search_that_is_saved_during_a_round_continues_it(monkeypatch):
    monkeypatch.setattr(module, "PAUSE", 0.0)
    monkeypatch.setattr(module, "KICKED", 1e9)  # no other round
    problem = cloud(120, 1)
    first, second = memetic(problem, n=8), memetic(problem, n=8)
    first.search(1)
    first._schedule.finished = True
    first.stop_at(CLOCK.monotonic() + 1000.0)
    first._recombine(2)
    assert first._evolution.is_paused
    second.import_state(first.export_state())
    second.stop_at(CLOCK.monotonic() + 1000.0)
    best = second.best_tours()[1][0]
    for key in range(10_000):
        second.search(key)
        assert second.n_built >= 1
        if not second._evolution.is_paused:
            break
    assert second.best_tours()[1][0] <= best == first.best_tours()[1][0]
    assert second._evolution.is_running
    assert max(second.lengths) < max(
        first._evolution.annealed(9)[1]
    )  # kicks continue from copies of the best tour


@pytest.mark.parametrize("spoilt", [[2, 0, 0], [0, 0, 2], [1, 0, 0], [0, -1, 0]])
def test_a_spoilt_state_of_an_evolution_is_refused(spoilt):
    engine = memetic(cloud(14))
    engine.search(1)
    state = engine.export_state()
    with pytest.raises(ValueError, match=r"state\['evolution'\]"):
        engine.import_state({**state, "evolution": np.array(spoilt, np.int64)})


@pytest.fixture(scope="module")
def improved():
    """A problem and twelve different tours, shorter than the first tour of a run."""
    problem = cloud(800, 3)
    tours, lengths = memetic(problem, n=8).improve(varied_tours(listed_instance(problem, 8), 12, 3), 3)
    assert len(np.unique(lengths)) > 8
    return problem, tours, lengths


@pytest.mark.parametrize("backend", BACKENDS)
class TestGivenTours:
    def test_good_ones_evolve_first(self, backend, improved):
        problem, given, lengths = improved
        engine = memetic(problem, backend, n=8)
        engine.accept(given, lengths)
        state = engine.export_state()
        engine.search(1)
        assert engine.n_built > 100  # offspring
        assert engine.best_tours()[1][0] < lengths.min()
        assert not len(engine.export_state()["given"])
        other = memetic(problem, backend, n=8)
        other.import_state(state)  # a run that was saved before its first generation
        paused = other.export_state()["given"]
        assert np.array_equal(np.sort(problem.tour_lengths(paused)), np.sort(lengths))

    def test_long_ones_and_few_ones_do_not(self, backend, improved):
        problem, given, _ = improved
        longer = varied_tours(listed_instance(problem, 8), 12, 3)
        for tours in (given[:7], longer):
            engine = memetic(problem, backend, n=8)
            engine.accept(tours, problem.tour_lengths(tours))
            assert not len(engine.export_state()["given"])
            assert engine.best_tours()[1][0] <= problem.tour_lengths(tours).min()


def test_tours_of_a_sampling_evolve(monkeypatch, improved):
    problem, given, lengths = improved
    evolved, work = [], Population.evolve
    monkeypatch.setattr(
        Population, "evolve", lambda self, tours, *rest: (evolved.append(tours), work(self, tours, *rest))[1]
    )
    algorithm = GPUMemetic(8, sampling=given, backend="cpu").setup(problem, termination=("n_gen", 3), seed=1)
    for _ in range(2):
        algorithm.next()
    assert np.array_equal(np.sort(problem.tour_lengths(evolved[0])), np.sort(lengths))
    assert algorithm.opt[0].F[0] < lengths.min()


@pytest.mark.parametrize("cut", ["interrupt", "deadline"])
def test_a_round_that_was_cut_continues(paused, cut):
    rounds, population, tours, before = paused
    stop = rounds._budget.stop
    if cut == "interrupt":
        stop.interrupt()
    else:
        stop.until = CLOCK.monotonic() - 1.0
    rounds.proceed(population, 5)
    assert rounds._rest is None  # its arrays are large
    assert rounds.is_paused
    blocks = rounds.stored().blocks
    if cut == "interrupt":
        stop.interrupted = False  # as after an interrupt has been raised; the flag stays up
        assert stop.flag[0] == 1
    stop.until = CLOCK.monotonic() + 1000.0
    made_before = population.n_offspring
    rounds.proceed(population, 6)
    assert population.n_offspring > made_before
    assert not blocks  # a cut generation replaces few parents, which ends no stage
    to_its_end(rounds, population)
    assert_all_are_shorter(population, before, tours, np.tile(population.best, (len(tours), 1)))


@pytest.mark.parametrize(("annealed", "winners"), [(1, 0), (3, 2)])
def test_a_state_with_too_few_annealed_tours_is_refused(annealed, winners):
    engine = memetic(cloud(14))
    engine.search(1)
    state = engine.export_state()
    tours = np.array([np.random.default_rng(i).permutation(14) for i in range(3)], np.int32)
    spoilt = {
        "evolution": np.array([1, 0, 0], np.int64),
        "annealed": tours[:annealed],
        "winners": tours[:winners],
    }
    with pytest.raises(ValueError, match=r"state\['evolution'\]"):
        engine.import_state({**state, **spoilt})


def test_a_run_that_is_saved_before_given_tours_evolve_equals_the_uninterrupted_one(improved, tmp_path):
    problem, given, _ = improved

    def begun():
        run = GPUMemetic(8, sampling=given, backend="cpu").setup(problem, termination=("n_gen", 3), seed=1)
        run.next()
        return run

    whole, saved = begun(), begun()
    checkpoint.save(saved, tmp_path / "run")
    loaded = checkpoint.load(tmp_path / "run")
    for run in (whole, loaded):
        while run.has_next():
            run.next()
    assert loaded.evaluator.n_eval == whole.evaluator.n_eval
    assert np.array_equal(loaded.opt[0].X, whole.opt[0].X)


def test_at_most_a_thousand_given_tours_evolve():
    problem = cloud(60, 2)
    engine = memetic(problem, n=8)
    best = memetic(problem, n=8)
    best.search(1)
    tour, length = best.best_tours()
    engine._tours.first = np.random.default_rng(1).permutation(60).astype(np.int32)
    engine.accept(np.repeat(tour, 1010, axis=0), np.repeat(length, 1010))
    assert len(engine.export_state()["given"]) == 1000
