"""First tours of a memetic search, and their recombination at the end of a cycle."""

from __future__ import annotations

import numpy as np
import pytest

from pymoo_gpuaco.candidates import start
from pymoo_gpuaco.candidates.listed import make_graph
from pymoo_gpuaco.candidates.start import greedy_tour
from pymoo_gpuaco.memetic import population as module
from pymoo_gpuaco.memetic.parameters import FEWEST_TO_EVOLVE
from pymoo_gpuaco.memetic.population import Population, first_tours
from pymoo_gpuaco.runtime.stop import Stop
from tests.engine_cases import cloud, memetic
from tests.instances import listed_instance


def made(n: int = 120, seed: int = 1) -> tuple[Population, np.ndarray]:
    """A population whose best is a greedy tour, and as many first tours as evolve together."""
    problem = cloud(n, seed)
    instance = listed_instance(problem, 8)
    population = Population(instance, make_graph(instance))
    greedy = greedy_tour(instance)
    population.merge(greedy)
    return population, first_tours(instance, greedy, FEWEST_TO_EVOLVE, 5)


def assert_all_are_shorter(population, best, given, taken):
    """Tours, of 120 cities, that others have given something, and the best of them."""
    before, after = ([population.measure(tour) for tour in tours] for tours in (given, taken))
    assert np.array_equal(np.sort(taken), np.tile(np.arange(120), (len(given), 1)))
    assert all(later <= earlier for earlier, later in zip(before, after, strict=True))
    assert population.length == population.measure(population.best) <= min(best, *after)
    assert min(after) < min(before)  # greedy tours have a lot to give each other


def test_tours_are_assembled(monkeypatch):
    monkeypatch.setattr(module, "evolve", lambda *_, **__: pytest.fail("no evolution expected"))
    population, tours = made()
    best = population.length
    assert_all_are_shorter(population, best, tours, population.recombine(tours, 3, Stop()))


@pytest.mark.parametrize(("cities", "expected"), [(600, 5), (480, 4), (479, 0)])
def test_of_many_cities_few_tours_are_assembled_before_others_are_annealed(cities, expected, monkeypatch):
    monkeypatch.setattr(module, "CITIES_OF_ASSEMBLED", cities)  # 120 cities a tour
    population, tours = made()
    counted, work = [], module.assemble
    monkeypatch.setattr(module, "assemble", lambda *a, **kw: (counted.append(len(a[1])), work(*a, **kw))[1])
    taken = population.recombine(tours, 3, Stop())
    assert taken.shape == tours.shape
    assert counted == ([expected] if expected else [])  # the best is one of them
    if expected == 0:  # two tours are always assembled
        population.recombine(tours[:2], 3, Stop())
        assert counted == [2]
    if expected:  # the others go on from what these have become
        assert all(np.array_equal(taken[i], taken[i % expected]) for i in range(len(tours)))
    else:
        assert np.array_equal(taken, tours)


def assert_migrants_help(recombined):
    """Of ``recombined(population, tours, migrants)``: of greedy tours, and annealed ones as migrants."""
    annealed = memetic(cloud(120, 1), n=4)
    for key in range(10):
        annealed.search(key)
    migrants, lengths = annealed.best_tours(4)
    alone, _ = made()
    population, tours = made()
    assert recombined(population, tours, migrants).shape == tours.shape
    recombined(alone, tours, None)
    assert lengths.min() < alone.length
    assert population.length == population.measure(population.best) < alone.length


def test_better_parts_of_migrants_are_taken():
    assert_migrants_help(lambda population, tours, migrants: population.recombine(tours, 3, Stop(), migrants))


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


@pytest.mark.parametrize(
    ("m", "most", "different"),
    [(1, 40, 1), (3, 40, 1), (4, 40, 4), (16, 40, 16), (40, 40, 40), (41, 40, 40), (4, 1, 1), (5, 0, 1)],
)
def test_four_tours_or_more_begin_as_different_ones(m, most, different, monkeypatch):
    monkeypatch.setattr(module, "CITIES_OF_VARIED", 200 * most + 199)
    instance = listed_instance(cloud(200, 2), 8)
    greedy = greedy_tour(instance)
    tours = first_tours(instance, greedy, m, 7)
    assert tours.shape == (m, 200)
    assert np.array_equal(tours[0], greedy)
    assert len(np.unique(tours, axis=0)) == different
