"""What the tours of a focused colony begin with, and what they become at the end of a cycle."""

from __future__ import annotations

import numpy as np
import pytest

from pymoo_gpuaco.candidates import greedy_tour, start
from pymoo_gpuaco.candidates.graph import make_graph
from pymoo_gpuaco.candidates.lists import listed_instance
from pymoo_gpuaco.exchange.eax import Evolved
from pymoo_gpuaco.host.stop import Stop
from pymoo_gpuaco.search import evolution as again
from pymoo_gpuaco.search import population as module
from pymoo_gpuaco.search.parameters import FEWEST_TO_EVOLVE
from pymoo_gpuaco.search.population import Population, first_tours
from tests.engine_cases import cloud, focused


def made(n: int = 120, seed: int = 1) -> tuple[Population, np.ndarray]:
    """A population whose best is a greedy tour, and as many first tours as evolve together."""
    problem = cloud(n, seed)
    instance = listed_instance(problem, 8)
    population = Population(instance, make_graph(instance))
    greedy = greedy_tour(instance)
    population.merge(greedy)
    return population, first_tours(instance, greedy, FEWEST_TO_EVOLVE, 5)


def test_the_best_tour_is_no_part_of_the_arrays_that_are_searched():
    population, tours = made()
    kept = tours[1].copy()
    population.keep(tours[1], 1.0)
    tours[1] = tours[0]
    assert np.array_equal(population.best, kept)
    population.keep(tours[0], 1.0)  # as long is no shorter
    assert np.array_equal(population.best, kept)


@pytest.mark.parametrize(
    ("last", "fewer", "name"), [(False, 0, "assemble"), (True, 0, "evolve"), (True, 1, "assemble")]
)
def test_many_tours_evolve_at_the_end_of_the_last_cycle_and_else_are_assembled(
    last, fewer, name, monkeypatch
):
    population, tours = made()
    called = []
    for each in ("assemble", "evolve"):
        work = getattr(module, each)
        monkeypatch.setattr(
            module, each, lambda *a, each=each, work=work, **kw: (called.append(each), work(*a, **kw))[1]
        )
    given = tours[fewer:]
    before, best = [population.measure(tour) for tour in given], population.length
    taken = population.recombine(given, 3, Stop(), last)
    assert set(called) == {name}
    after = [population.measure(tour) for tour in taken]
    assert np.array_equal(np.sort(taken), np.tile(np.arange(120), (len(given), 1)))
    assert all(later <= earlier for earlier, later in zip(before, after, strict=True))
    assert population.length == population.measure(population.best) <= min(best, *after)
    assert min(after) < min(before)  # greedy tours have a lot to give each other


@pytest.mark.parametrize(
    ("stages", "ends"),
    [(module.FIRST_STAGE, 150.0), (module.SECOND_STAGE, 200.0), (module.BOTH_STAGES, 200.0)],
)
def test_the_first_stage_alone_has_half_of_the_time_that_is_left(stages, ends, monkeypatch):
    population, tours = made()
    given = []

    def evolve(graph, tours, near, key, *, until, stages, **options):
        given.append((until, stages))
        return Evolved(tours, 1, 1, 1, 1, (1.0, 0.0))

    monkeypatch.setattr(module, "evolve", evolve)
    monkeypatch.setattr(module.time, "monotonic", lambda: 100.0)
    stop = Stop()
    stop.until = 200.0
    population.recombine(tours, 3, stop, last=True, stages=stages)
    assert given == [(ends, stages)]


class Rounds:
    """Stands in for evolution: in round i every tour becomes the i-th of ``found``; a round takes so many seconds."""

    def __init__(self, monkeypatch, found: list[np.ndarray], seconds: list[float]):
        self.given, self.keys, self.now = [], [], 100.0

        def evolve(graph, tours, near, key, *, until, **options):
            i = len(self.given)
            self.given.append(tours)
            self.keys.append(key)
            self.now += seconds[i]
            return Evolved(np.tile(found[i], (len(tours), 1)), 1, 1, 1, 1, (1.0, 0.0))

        monkeypatch.setattr(module, "evolve", evolve)
        monkeypatch.setattr(module.time, "monotonic", lambda: self.now)


def by_length(population: Population, count: int) -> list[np.ndarray]:
    """Tours of which each is shorter than the one before, and than the population's best."""
    other = focused(cloud(120, 1), n_ants=4)
    for key in range(20):
        other.search(key)
    best = other.best_tours()[0][0]
    found = {population.measure(best): best}
    for i in range(0, 110, 5):
        worse = np.concatenate([best[:i], best[i : i + 4][::-1], best[i + 4 :]])
        found[population.measure(worse)] = worse
    lengths = sorted((length for length in found if length < population.length), reverse=True)
    assert len(lengths) >= count
    return [found[length] for length in lengths[-count:]]


def test_tours_evolve_again_with_the_shortest_in_the_place_of_the_longest_until_nothing_is_found(monkeypatch):
    population, tours = made()
    first, second = by_length(population, 2)
    rounds = Rounds(monkeypatch, [first, second, second], [1.0] * 3)
    taken = population.recombine(tours, 3, Stop(), last=True)
    own = np.concatenate([tours, made()[0].best[None]])
    longest = np.argsort([population.measure(tour) for tour in own], kind="stable")[::-1]
    assert np.array_equal(rounds.given[0], own)
    own[longest[0]] = first
    assert np.array_equal(rounds.given[1], own)
    own[longest[1]] = second
    assert np.array_equal(rounds.given[2], own)
    assert len(rounds.given) == len(set(rounds.keys)) == 3  # the third found nothing shorter
    assert np.array_equal(population.best, second)
    assert np.array_equal(taken, np.tile(second, (len(tours), 1)))


def test_where_time_is_limited_tours_evolve_once_and_again_with_what_kicks_have_made_of_the_best(monkeypatch):
    population, tours = made()
    first, kicked = by_length(population, 2)
    rounds = Rounds(monkeypatch, [first, kicked, kicked], [1.0] * 3)
    stop = Stop()
    stop.until = rounds.now + 100.0
    taken = population.recombine(tours, 3, stop, last=True)
    assert len(rounds.given) == 1
    assert np.array_equal(taken, np.tile(first, (len(tours), 1)))
    population.keep(kicked, population.measure(kicked))
    population.evolve_again(4, stop)
    given = rounds.given[0].copy()
    given[np.argsort([population.measure(tour) for tour in given], kind="stable")[-1]] = kicked
    assert np.array_equal(rounds.given[1], given)
    population.evolve_again(4, stop)
    assert np.array_equal(rounds.given[2], given)  # no tour stands there twice
    assert len(set(rounds.keys)) == 3


def test_without_a_limit_there_are_so_many_rounds_at_most(monkeypatch):
    population, tours = made()
    rounds = Rounds(monkeypatch, by_length(population, 3), [1.0] * 3)
    monkeypatch.setattr(module, "MOST_ROUNDS", 3)
    population.recombine(tours, 3, Stop(), last=True)
    assert len(rounds.given) == 3


def test_no_more_than_half_of_the_tours_give_way_to_those_of_rounds_before():
    tours, lengths = np.arange(5)[:, None] + np.zeros((5, 4), np.int32), np.array([3.0, 5.0, 1.0, 4.0, 2.0])
    turn = again.Rounds.of(tours, lengths)
    for winner in (10, 11, 12):
        turn = turn.next(np.full(4, winner, np.int32))
    assert turn.given()[:, 0].tolist() == [0, 11, 2, 12, 4]
    assert turn.number == 3
    assert tours[:, 0].tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(("cities", "expected"), [(600, 5), (480, 4), (479, 0)])
def test_of_many_cities_few_tours_are_assembled_before_others_are_annealed(cities, expected, monkeypatch):
    monkeypatch.setattr(module, "CITIES_OF_ASSEMBLED", cities)  # 120 cities a tour
    population, tours = made()
    counted, work = [], module.assemble
    monkeypatch.setattr(module, "assemble", lambda *a, **kw: (counted.append(len(a[1])), work(*a, **kw))[1])
    taken = population.recombine(tours, 3, Stop())
    assert taken.shape == tours.shape
    assert counted == ([expected + 1] if expected else [])  # with the best
    if expected == 0:  # two have nobody else to go on from
        population.recombine(tours[:2], 3, Stop())
        assert counted == [3]
    if expected:  # the others go on from what these have become
        assert all(np.array_equal(taken[i], taken[i % expected]) for i in range(len(tours)))
    else:
        assert np.array_equal(taken, tours)


@pytest.mark.parametrize("m", [FEWEST_TO_EVOLVE, 3], ids=["evolve", "take over"])
def test_what_mates_do_better_comes_in(m):
    """Greedy tours, and annealed ones as mates."""
    annealed = focused(cloud(120, 1), n_ants=4)
    for key in range(10):
        annealed.search(key)
    mates, lengths = annealed.best_tours(4)
    alone, _ = made()
    population, tours = made()
    taken = population.recombine(tours[:m], 3, Stop(), last=True, mates=mates)
    assert taken.shape == (m, 120)
    alone.recombine(tours[:m], 3, Stop(), last=True)
    assert lengths.min() < alone.length
    assert population.length == population.measure(population.best) < alone.length


def test_of_long_tours_few_mates_are_taken_over_from(monkeypatch):
    population, tours = made()
    monkeypatch.setattr(module, "CITIES_OF_ASSEMBLED", 4 * 120)
    given, work = [], module.assemble
    monkeypatch.setattr(module, "assemble", lambda *a, **kw: (given.append(a[1]), work(*a, **kw))[1])
    taken = population.recombine(tours[:2], 3, Stop(), last=True, mates=tours[2:])
    assert taken.shape == (2, 120)
    # both, the best and two of six mates
    assert len(given[0]) == 5
    assert np.array_equal(given[0][3:], tours[2:4])


@pytest.mark.parametrize("begun", [1, 3])
def test_no_more_first_tours_are_begun_once_time_is_over(begun, monkeypatch):
    """Sixteen of 12,000 cities take tenths of a second."""
    instance, stop = listed_instance(cloud(200, 2), 8), Stop()
    greedy, looks = greedy_tour(instance), []
    monkeypatch.setattr(Stop, "passed", lambda self: looks.append(1) or len(looks) > begun)
    monkeypatch.setattr(start, "thread_count", lambda: 1)
    tours = first_tours(instance, greedy, 16, 7, stop)
    monkeypatch.undo()
    assert tours.shape == (16, 200)
    assert len(np.unique(tours, axis=0)) == 1 + begun
    assert np.array_equal(tours[: 1 + begun], first_tours(instance, greedy, 16, 7, Stop())[: 1 + begun])


@pytest.mark.parametrize(("m", "different"), [(1, 1), (3, 1), (4, 4), (16, 16), (20, 16)])
def test_four_tours_or_more_begin_as_different_ones(m, different):
    instance = listed_instance(cloud(200, 2), 8)
    greedy = greedy_tour(instance)
    tours = first_tours(instance, greedy, m, 7)
    assert tours.shape == (m, 200)
    assert np.array_equal(tours[0], greedy)
    assert len(np.unique(tours, axis=0)) == different
