"""Candidate lists against definitions written out in plain Python."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pymoo_gpuaco.candidates.lists import lists
from pymoo_gpuaco.candidates.quadrant import quadrant_lists
from pymoo_gpuaco.problems import METRIC_NAMES, TSP
from pymoo_gpuaco.problems.metrics import METRICS, distances
from tests.instances import listed_instance

IN_THE_PLANE = [
    name for name, (_, dim) in METRIC_NAMES.items() if dim == 2 and name not in ("GEO", "HAVERSINE")
]
HALF_AXES = [
    lambda x, y: x > 0 <= y,
    lambda x, y: x <= 0 < y,
    lambda x, y: x < 0 >= y,
    lambda x, y: x >= 0 > y,
]


def quadrant_reference(metric, coords, k, per_quadrant):
    """The rows that the docstring of `quadrant_lists` asks for, city by city."""
    coords = [(x + 0.0, y + 0.0) for x, y, _ in coords.tolist()]
    cities_at = {}
    for city, place in enumerate(coords):
        cities_at.setdefault(place, []).append(city)

    def away(place, other):
        dx, dy = other[0] - place[0], other[1] - place[1]
        far = {"MAN_2D": abs(dx) + abs(dy), "MAX_2D": max(abs(dx), abs(dy))}
        return far.get(metric, dx * dx + dy * dy), cities_at[other][0]

    rows = []
    for city, place in enumerate(coords):
        others = sorted((o for o in cities_at if o != place), key=lambda o: away(place, o))
        sides = [[o for o in others if inside(o[0] - place[0], o[1] - place[1])] for inside in HALF_AXES]
        picked = [side[s] for s in range(per_quadrant) for side in sides if s < len(side)]
        picked += [o for o in others if o not in picked]
        picked = picked[:k]
        here = cities_at[place]
        slot = here.index(city)
        row = here[max(slot - 1, 0) : slot] + here[slot + 1 : slot + 2]
        row += [cities_at[o][0] for o in picked]
        row += [c for c in here if abs(here.index(c) - slot) > 1]
        row += [c for o in picked for c in cities_at[o][1:]]
        rows.append(row[:k])
    return np.array(rows)


@st.composite
def cities_in_the_plane(draw):
    """Scattered cities, lattices, crowds, cities on a line, all at one place."""
    name = draw(st.sampled_from(IN_THE_PLANE))
    n = draw(st.integers(3, 90))
    width, height = draw(st.sampled_from([(0, 0), (1, 1), (3, 3), (30, 30), (1000, 1000), (50, 0), (0, 7)]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    coords = np.zeros((n, 3))
    coords[:, 0] = rng.integers(-width, width + 1, n)
    coords[:, 1] = rng.integers(-height, height + 1, n) * draw(st.sampled_from([1.0, 0.5]))
    return name, coords


@given(cities_in_the_plane(), st.integers(1, 16), st.booleans())
@settings(deadline=None, max_examples=150)
def test_quadrant_lists_are_what_they_say(cities, k, quadrants):
    name, coords = cities
    metric, n = METRICS[name].code, len(coords)
    k = min(k, n - 1)
    per_quadrant = min(2, k // 4) if quadrants else 0
    ids, length = quadrant_lists(metric, coords, k, None if quadrants else 0)
    assert ids.dtype == np.int32
    np.testing.assert_array_equal(length, distances(metric, coords, np.arange(n)[:, None], ids))
    expected = quadrant_reference(name, coords, k, per_quadrant)
    far = distances(metric, coords, np.arange(n)[:, None], expected)
    order = np.lexsort((expected, far), axis=-1)
    np.testing.assert_array_equal(ids, np.take_along_axis(expected, order, axis=1))


def test_lists_do_not_depend_on_the_number_of_threads(monkeypatch):
    coords = np.zeros((3000, 3))
    coords[:, :2] = np.random.default_rng(1).integers(0, 60, size=(3000, 2))
    results = []
    for threads in ("1", "3", "8"):
        monkeypatch.setenv("PYMOO_GPUACO_THREADS", threads)
        results.append(quadrant_lists(1, coords, 10))
    for ids, length in results[1:]:
        np.testing.assert_array_equal(ids, results[0][0])
        np.testing.assert_array_equal(length, results[0][1])


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e15])
def test_an_outlier_and_any_scale_are_no_burden(scale):
    rng = np.random.default_rng(2)
    coords = np.zeros((2000, 3))
    coords[:, :2] = rng.random((2000, 2)) * 1e-9 * scale
    coords[7, :2] = scale
    ids, _ = quadrant_lists(7, coords, 6, per_quadrant=0)
    gap = coords[:100, None, :2] - coords[None, :, :2]
    far = (gap**2).sum(axis=2)
    far[np.arange(100), np.arange(100)] = math.inf
    np.testing.assert_array_equal(np.sort(ids[:100]), np.sort(np.argsort(far, axis=1)[:, :6]))


@pytest.mark.parametrize("symmetric", [True, False])
def test_without_a_plane_the_nearest_are_listed(symmetric):
    matrix = np.random.default_rng(5).integers(1, 99, size=(20, 20))
    instance = listed_instance(TSP(matrix=matrix + matrix.T if symmetric else matrix), 4)
    space = listed_instance(TSP(np.random.default_rng(6).integers(0, 90, (20, 3)), "EUC_3D"), 4)
    globe = listed_instance(TSP(np.random.default_rng(7).integers(0, 60, (20, 2)), "GEO"), 4)
    for one in (instance, space, globe):
        for kind in ("auto", "quadrant"):
            np.testing.assert_array_equal(lists(one, kind, 4).ids, one.neighbours)
            assert lists(one, kind, 7).ids.shape == (20, 7)


def test_the_nearest_are_the_nearest_whatever_an_instance_lists():
    for problem in (TSP(np.random.default_rng(3).random((60, 2)), "EXACT"), TSP(matrix=_heaps())):
        nearest = listed_instance(problem, 9)
        for kind in ("quadrant", "alpha"):
            found = lists(listed_instance(problem, 9, kind), "nearest", 5)
            assert np.array_equal(found.ids, nearest.neighbours[:, :5])
            assert np.array_equal(found.distances, nearest.neighbour_distances[:, :5])


def _heaps():
    """Distances of cities in three heaps, in which lists by alpha-nearness are not the nearest cities."""
    places = np.random.default_rng(4).random((60, 2)) + 9.0 * np.repeat(np.eye(3, 2), 20, axis=0)
    return np.linalg.norm(places[:, None] - places[None], axis=2)
