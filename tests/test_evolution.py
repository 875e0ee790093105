"""Evolution of the tours of a run when all annealing is over: in rounds, with what those before have found."""

from __future__ import annotations

import numpy as np

from pymoo_gpuaco.memetic import population as population_of
from pymoo_gpuaco.memetic.eax import Evolved
from pymoo_gpuaco.memetic.evolution import Evolution
from pymoo_gpuaco.memetic.population import Population
from pymoo_gpuaco.memetic.schedule import TimeBudget
from pymoo_gpuaco.runtime.clock import CLOCK
from pymoo_gpuaco.runtime.stop import Stop
from tests.engine_cases import cloud, memetic
from tests.test_population import assert_all_are_shorter, made


def evolving(until: float | None = None) -> Evolution:
    """Rounds of a run that ends at this moment."""
    stop = Stop()
    stop.until = until
    return Evolution(TimeBudget(stop))


def test_tours_that_evolve_give_each_other_what_they_do_better():
    population, tours = made()
    best = population.length
    assert_all_are_shorter(population, best, tours, evolving().first(population, tours, 3))


class Rounds:
    """Stands in for evolution: in round i every tour becomes the i-th of ``found``; a round takes given seconds."""

    def __init__(self, monkeypatch, found: list[np.ndarray], seconds: list[float]):
        self.given, self.keys, self.now = [], [], 100.0

        def evolve(graph, tours, near, key, **options):
            i = len(self.given)
            self.given.append(tours)
            self.keys.append(key)
            self.now += seconds[i]
            return Evolved(np.tile(found[i], (len(tours), 1)), 1, 1, 1, 1)

        monkeypatch.setattr(population_of, "evolve", evolve)
        monkeypatch.setattr(CLOCK, "monotonic", lambda: self.now)


def by_length(population: Population, count: int) -> list[np.ndarray]:
    """Tours of which each is shorter than the one before, and than the population's best."""
    other = memetic(cloud(120, 1), n=4)
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
    taken = evolving().first(population, tours, 3)
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
    turns = evolving(rounds.now + 100.0)
    taken = turns.first(population, tours, 3)
    assert len(rounds.given) == 1
    assert np.array_equal(taken, np.tile(first, (len(tours), 1)))
    population.keep(kicked, population.measure(kicked))
    turns.again(population, 4)
    given = rounds.given[0].copy()
    given[np.argsort([population.measure(tour) for tour in given], kind="stable")[-1]] = kicked
    assert np.array_equal(rounds.given[1], given)
    turns.again(population, 4)
    assert np.array_equal(rounds.given[2], given)  # no tour stands there twice
    assert len(set(rounds.keys)) == 3
