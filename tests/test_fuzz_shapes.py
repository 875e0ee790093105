"""Cities of few coordinates and other hard shapes: right lists, near-linear work, right tours."""

from __future__ import annotations

import numpy as np
import pytest
from pymoo.optimize import minimize

from pymoo_gpuaco import TSP, GPUMemetic
from pymoo_gpuaco.candidates import quadrant
from pymoo_gpuaco.candidates.quadrant import quadrant_lists
from pymoo_gpuaco.problems.metrics import Metric, distances
from tests.fuzz import SEED, TIMES
from tests.shapes import IN_THE_PLANE, SHAPES
from tests.test_candidates import quadrant_reference

every_shape = pytest.mark.parametrize("shape", SHAPES)
in_the_plane = pytest.mark.parametrize("shape", IN_THE_PLANE)
METRICS = {"EUC_2D": Metric.EUC, "MAN_2D": Metric.MAN, "MAX_2D": Metric.MAX}


def cities(shape: str, n: int, rng: np.random.Generator | None = None) -> np.ndarray:
    """Coordinates (n, 3) of a shape, in another order if there is ``rng``."""
    coords = np.zeros((n, 3))
    places = SHAPES[shape](n)
    coords[:, : places.shape[1]] = places if rng is None else rng.permutation(places)
    return coords


@in_the_plane
@pytest.mark.parametrize("metric", METRICS)
def test_lists_by_quadrant_are_those_of_the_definition(shape, metric):
    rng = np.random.default_rng(SEED)
    for _ in range(TIMES):
        n, k = int(rng.integers(5, 80)), int(rng.integers(1, 13))
        coords, k = cities(shape, n, rng), min(k, n - 1)
        ids, length = quadrant_lists(METRICS[metric], coords, k)
        expected = quadrant_reference(metric, coords, k, min(2, k // 4))
        far = distances(METRICS[metric], coords, np.arange(n)[:, None], expected)
        order = np.lexsort((expected, far), axis=-1)
        np.testing.assert_array_equal(ids, np.take_along_axis(expected, order, axis=1))
        np.testing.assert_array_equal(length, np.take_along_axis(far, order, axis=1))


def boxes_visited(monkeypatch: pytest.MonkeyPatch, metric: int, coords: np.ndarray, k: int) -> float:
    """Count the boxes of the search tree that are visited for each city."""
    visited, list_points = [], quadrant._list_points

    def counted(*arguments):
        visited.append(list_points(*arguments))

    with monkeypatch.context() as patch:
        patch.setattr(quadrant, "_list_points", counted)
        quadrant_lists(metric, coords, k)
    return sum(visited) / len(coords)


@in_the_plane
@pytest.mark.parametrize("metric", METRICS)
def test_the_work_for_a_city_does_not_grow_with_their_number(shape, metric, monkeypatch):
    """A tree of 40,000 points has 8,192 leaves or more; a city that visits all of them spends its budget of 256 boxes.

    With far lines each city looks for neighbours on several of them, so it visits more boxes.
    """
    most = 330 if shape in ("two slanted lines", "ten lines", "few rows far apart") else 80
    for k in (5, 10):
        assert boxes_visited(monkeypatch, METRICS[metric], cities(shape, 40_000), k) < most


def test_a_spent_budget_of_boxes_leaves_the_nearest_and_the_cities_connected():
    """By sums of axes each city of a slanted line is as far from all of the other line."""
    coords = cities("two slanted lines", 3000)
    ids, _ = quadrant_lists(Metric.MAN, coords, 10)
    city = np.arange(3000)[:, None]
    assert (np.abs(ids - city) == 1).any(axis=1).all()
    assert (ids // 1500 != city // 1500).any(axis=1).all()


@every_shape
def test_a_run_gives_a_tour_of_exactly_its_length(shape):
    rng = np.random.default_rng(SEED)
    for _ in range(TIMES):
        n = int(rng.integers(8, 400))
        places = rng.permutation(SHAPES[shape](n))
        problem = TSP(places, "EXACT" if places.shape[1] == 2 else "EUC_3D")
        result = minimize(problem, GPUMemetic(backend="cpu"), ("n_gen", 2), seed=SEED)
        assert np.array_equal(np.sort(result.X), np.arange(n))
        assert result.F[0] == problem.tour_length(result.X)
