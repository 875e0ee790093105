"""Tours are recombined by numbers along one of them: nothing but time depends on that."""

from __future__ import annotations

import numpy as np
import pytest

from pymoo_gpuaco.candidates.listed import make_graph
from pymoo_gpuaco.candidates.lists import with_lists
from pymoo_gpuaco.memetic import assembly
from pymoo_gpuaco.memetic import eax as population
from pymoo_gpuaco.memetic.assembly import assemble
from pymoo_gpuaco.memetic.eax import evolve
from pymoo_gpuaco.memetic.numbering import RenumberedTours, renumber_along_first
from pymoo_gpuaco.problems import TSP, OpenPath
from pymoo_gpuaco.problems.pymoo_problems import as_instance
from pymoo_gpuaco.problems.symmetric import symmetric_form
from tests.tour_cases import random_tours

_CITIES = np.random.default_rng(5).random((60, 2)) * 1000.0
PROBLEMS = {
    "cities": TSP(_CITIES),
    "rounded": TSP(_CITIES, metric="EUC_2D"),
    "a path": OpenPath(_CITIES, start=7),
    "fixed edges": TSP(_CITIES, fixed_edges=[(3, 50), (20, 9), (9, 41)]),
}


def graph_and_tours(problem):
    """Of what is searched, which may be the problem's symmetric form, and tours (6, n) that keep what must stay."""
    instance = as_instance(problem)
    form = symmetric_form(instance)
    tours = random_tours(instance.n, 6, 3)
    if form is not None:
        instance, tours = form.instance, np.array([form.to_instance(tour) for tour in tours])
    return make_graph(with_lists(instance, 7)), tours


def as_they_were(graph, near, tours):
    return RenumberedTours(graph._replace(neighbours=near), tours.astype(np.int32), np.empty(0, np.int32))


@pytest.mark.parametrize("name", PROBLEMS)
def test_what_is_found_does_not_depend_on_the_numbers(monkeypatch, name):
    graph, tours = graph_and_tours(PROBLEMS[name])
    found = []
    for number in (renumber_along_first, as_they_were):
        monkeypatch.setattr(population, "renumber_along_first", number)
        monkeypatch.setattr(assembly, "renumber_along_first", number)
        evolved = evolve(graph, tours, graph.neighbours, 1, scale=1000.0)
        found.append((evolved.tours, assemble(graph, tours, 1, scale=1000.0)))
    assert np.array_equal(found[0][0], found[1][0])
    assert np.array_equal(found[0][1], found[1][1])
    assert not np.array_equal(found[0][0], tours)
    assert not np.array_equal(found[0][1], tours)
