"""The argument ``candidates``: which edges a colony, its local search and window search try."""

from __future__ import annotations

import numpy as np
import pytest
from pymoo.optimize import minimize

from pymoo_gpuaco import ALL_ALGORITHMS, GPUACS, TSP, GPUMemetic
from pymoo_gpuaco.candidates.lists import lists
from tests.algorithm_cases import COLONIES, Tour
from tests.engine_cases import BACKENDS, asymmetric, cloud
from tests.instances import listed_instance

KINDS = ["nearest", "quadrant", "alpha"]


def clusters(n=60):
    """Cities in three heaps: the nearest of each are all in its own."""
    rng = np.random.default_rng(3)
    return TSP(
        rng.integers(0, 40, (n, 2)) + np.repeat([[0, 0], [900, 0], [0, 900]], n // 3, axis=0), "EUC_2D"
    )


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Generations of few rounds: an emulated device takes seconds for each."""
    from pymoo_gpuaco.backends.cuda import search_device
    from pymoo_gpuaco.backends.cuda import windows as plan

    monkeypatch.setattr(search_device, "ROUNDS", 4)
    monkeypatch.setattr(plan, "MOST_TOURS", 2)


@pytest.mark.parametrize("name", COLONIES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("backend", BACKENDS)
def test_every_colony_runs_on_every_kind_of_lists(backend, kind, name):
    problem = clusters()
    algorithm = ALL_ALGORITHMS[name](3, candidates=kind, candidate_list_size=6, backend=backend)
    res = minimize(problem, algorithm, ("n_gen", 2), seed=1)
    assert res.F[0] == problem.tour_length(res.X)
    expected = lists(listed_instance(problem, 6, "quadrant"), kind, 6)
    assert np.array_equal(res.algorithm.instance.neighbours, expected.ids)
    assert np.array_equal(res.algorithm.instance.neighbour_distances, expected.distances)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("backend", BACKENDS)
def test_windows_try_the_candidates_that_are_asked_for(backend, kind):
    problem = clusters()

    def run(candidates):
        algorithm = GPUMemetic(population_size=4, candidates=candidates, backend=backend)
        return minimize(problem, algorithm, ("n_gen", 2), seed=1).algorithm

    one, two = run(kind), run(kind)
    assert one.opt[0].F[0] == problem.tour_length(one.opt[0].X)
    states = [algorithm.engine.export_state() for algorithm in (one, two)]
    assert all(np.array_equal(states[0][name], states[1][name]) for name in states[0])
    expected = {frozenset(e) for e in edges_of(lists(listed_instance(problem, 8), kind, 8).ids)}
    assert seen_by_windows(one.engine, kind) <= expected


def edges_of(ids):
    return {(i, int(j)) for i, row in enumerate(ids) for j in row}


def seen_by_windows(engine, kind):
    """Candidate edges of windows."""
    if engine.kind == "cpu":
        if kind == "alpha":  # fewer trees than ``lists`` makes, so other penalties
            assert engine.device.search.units.pi.any()
            return set()
        assert not engine.device.search.units.pi.any()
        return {frozenset(e) for e in edges_of(engine.device.search.units.candidates)}
    return {frozenset(e) for e in edges_of(engine.device.windows.lists.near)}


def test_auto_of_the_memetic_search_chooses_among_cities_in_every_direction():
    problem = clusters()
    algorithm = GPUMemetic(backend="cpu").setup(problem, seed=1)
    expected = listed_instance(problem, 8, "quadrant").neighbours
    assert np.array_equal(algorithm.instance.neighbours, expected)


def test_alpha_needs_distances_without_direction():
    for problem in (asymmetric(20), Tour(np.random.default_rng(0).random((9, 9)) + 1)):
        with pytest.raises(ValueError, match=r"candidates='alpha'.*symmetric.*'nearest'"):
            minimize(problem, GPUACS(candidates="alpha", local_search=False, backend="cpu"), ("n_gen", 1))


def test_alpha_has_a_size_that_it_can_be_afforded_for(monkeypatch):
    monkeypatch.setattr("pymoo_gpuaco.candidates.lists.MOST_FOR_ALPHA", 30)
    listed_instance(cloud(30), 5, "alpha")
    for algorithm in (
        GPUACS(candidates="alpha", backend="cpu"),
        GPUMemetic(candidates="alpha", backend="cpu"),
    ):
        with pytest.raises(ValueError, match=r"candidates='alpha'.*at most 30 cities, got 31.*'quadrant'"):
            minimize(cloud(31), algorithm, ("n_gen", 1))
