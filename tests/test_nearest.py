"""The nearest cities along rows and columns of a matrix, and of coincident cities."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pymoo.optimize import minimize

from pymoo_gpuaco import TSP, GPUMemetic
from pymoo_gpuaco.candidates import start
from pymoo_gpuaco.candidates.nearest import chained_nearest, nearest_both_ways, nearest_by_matrix
from pymoo_gpuaco.candidates.points import at_one_point, with_equal_rows
from pymoo_gpuaco.memetic.parameters import MemeticParameters
from pymoo_gpuaco.problems.metrics import METRICS, distances
from tests.instances import listed_instance


def in_order(lengths: np.ndarray, never: int, k: int) -> list[int]:
    """The k least of some lengths but for one, equal ones by number."""
    others = [place for place in range(len(lengths)) if place != never]
    return sorted(others, key=lambda place: (lengths[place], place))[:k]


@st.composite
def matrices(draw):
    """Few different lengths or many, some infinite."""
    n = draw(st.integers(3, 25))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    matrix = rng.integers(0, draw(st.sampled_from([1, 3, 1000])), (n, n)).astype(float)
    matrix[rng.random((n, n)) < draw(st.sampled_from([0.0, 0.2, 0.9]))] = np.inf
    return matrix, rng


@given(matrices(), st.integers(1, 24), st.booleans())
@settings(max_examples=60, deadline=None)
def test_the_nearest_both_ways_are_those_of_rows_and_of_columns(given_, k, usual):
    matrix, rng = given_
    m = rng.integers(2, len(matrix) + 1)
    rows, columns = (rng.permutation(len(matrix))[:m].astype(np.int32) for _ in range(2))
    own, k = rng.permutation(m).astype(np.int32), min(k, m - 1)
    to_leave, to_enter = rng.random((2, m)) * 100.0 * usual
    onward, back = nearest_both_ways(matrix, rows, columns, own, k, to_leave, to_enter)
    for a in range(m):
        wanted = matrix[rows[a], columns] - to_enter
        assert onward.ids[a].tolist() == in_order(wanted, own[a], k)
        assert onward.distances[a].tolist() == wanted[onward.ids[a]].tolist()
    for b in range(m):
        wanted = matrix[rows, columns[b]] - to_leave
        assert back.ids[b].tolist() == in_order(wanted, int(np.flatnonzero(own == b)[0]), k)
        assert back.distances[b].tolist() == wanted[back.ids[b]].tolist()


@pytest.mark.parametrize("threads", ["1", "3"])
@pytest.mark.parametrize("n", [9, 230])
def test_rows_of_a_matrix_are_searched_by_any_number_of_threads(n, threads, monkeypatch):
    monkeypatch.setenv("PYMOO_GPUACO_THREADS", threads)
    matrix = np.random.default_rng(n).integers(1, 9, (n, n)).astype(float)
    found = nearest_by_matrix(matrix, 8)
    assert found.ids.tolist() == [in_order(matrix[city], city, 8) for city in range(n)]
    np.testing.assert_array_equal(found.distances, np.take_along_axis(matrix, found.ids.astype(int), axis=1))


def test_no_city_lists_itself_where_few_edges_are_allowed():
    """Of infinite lengths the lowest numbers are listed; the city's own is no length at all."""
    matrix = np.full((12, 12), np.inf)
    city = np.arange(12)
    for step in (1, 2):
        matrix[city, (city + step) % 12] = matrix[(city + step) % 12, city] = step
    directed = np.triu(matrix) + 2.0 * np.tril(matrix, -1)
    for costs in (matrix, directed):
        instance = listed_instance(TSP(matrix=costs), 7)
        assert instance.k == 7
        assert (instance.neighbours != city[:, None]).all()


@st.composite
def cities_in_space(draw):
    """Cities at few places, or at many; no two pairs of places are equally far apart."""
    n, places = draw(st.integers(3, 40)), draw(st.integers(1, 40))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    return np.ascontiguousarray(rng.random((places, 3))[rng.integers(0, places, n)])


def chained(coords: np.ndarray, k: int) -> list[set[int]]:
    """Return each city's list: those before and after it at its place, the nearest places by first cities, and, of
    too few places, their other cities: of its own one first, then of the nearest."""
    at: dict[tuple, list[int]] = {}
    for city, place in enumerate(map(tuple, coords.tolist())):
        at.setdefault(place, []).append(city)
    rows = []
    for city, place in enumerate(map(tuple, coords.tolist())):
        own = at[place]
        here = own.index(city)
        others = sorted((p for p in at if p != place), key=lambda p: np.linalg.norm(np.subtract(p, place)))
        wanted = [*own[max(here - 1, 0) : here], *own[here + 1 : here + 2], *(at[p][0] for p in others)]
        wanted += [c for c in own if c not in (city, *wanted)] + [c for p in others for c in at[p][1:]]
        rows.append(set(wanted[:k]))
    return rows


@given(cities_in_space(), st.integers(1, 12))
@settings(max_examples=80, deadline=None)
def test_lists_chain_cities_at_one_place_and_go_on_to_the_nearest_others(coords, k):
    k = min(k, len(coords) - 1)
    metric = METRICS["EXACT"].code
    ids, lengths = chained_nearest(metric, coords, k)
    assert [set(row) for row in ids.tolist()] == chained(coords, k)
    every = distances(metric, coords, np.arange(len(coords))[:, None], np.arange(len(coords)))
    np.testing.assert_array_equal(lengths, np.take_along_axis(every, ids.astype(int), axis=1))
    assert (
        (np.diff(lengths, axis=1) > 0) | ((np.diff(lengths, axis=1) == 0) & (np.diff(ids, axis=1) > 0))
    ).all()
    by_matrix = listed_instance(TSP(matrix=every), k)
    np.testing.assert_array_equal(by_matrix.neighbours, ids)
    np.testing.assert_array_equal(by_matrix.neighbour_distances, lengths)


def test_only_equal_rows_and_columns_are_one_place():
    ones = np.ones((5, 5))
    ones[[0, 2, 2, 0], [2, 0, 2, 0]] = 0.0, 0.0, 7.0, -0.0  # whatever the distance to itself is given as
    ones[0, 4] = ones[2, 4] = ones[4, 0] = ones[4, 2] = 3.0
    copies = with_equal_rows(ones, np.arange(5))
    assert copies.first.tolist() == [0, 2, 3, 4, 5]
    assert copies.member.tolist() == [0, 2, 1, 3, 4]
    assert copies.cities.tolist() == [0, 1, 3, 4]
    assert not with_equal_rows(ones, np.array([1, 2, 3, 4])).any
    ones[4, 2] = 2.0  # as far from both, but not to both
    assert not with_equal_rows(ones, np.arange(5)).any
    near = np.array([[0, 1, 0, 1], [1, 0, 1, 1], [0, 1, 0, 1], [1, 1, 1, 0]], float)
    near[1, 0] = near[3, 0] = 0.5
    assert not with_equal_rows(near, np.arange(4)).any  # two cities at distance 0 may be no copies
    assert not at_one_point(np.random.default_rng(1).random((9, 3))).any
    assert at_one_point(np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [-0.0, 1.0, -0.0]])).member.tolist() == [
        0,
        2,
        1,
    ]


def places(kind: str, copies: int) -> TSP:
    """Return that number of cities at each of 40 places."""
    rng = np.random.default_rng(2)
    if kind == "globe":
        return TSP(np.repeat(48.0 + rng.random((40, 2)), copies, axis=0), metric="HAVERSINE")
    if kind in ("plane", "space"):
        return TSP(np.repeat(rng.random((40, 2 if kind == "plane" else 3)), copies, axis=0))
    place = np.arange(40 * copies) // copies
    points = rng.random((40, 2))
    matrix = np.linalg.norm(points[:, None] - points, axis=2)
    if kind == "by direction":
        matrix *= 1.0 + 0.3 * rng.random((40, 40))
        np.fill_diagonal(matrix, 0.0)
    return TSP(matrix=matrix[place][:, place])


@pytest.mark.parametrize("kind", ["plane", "globe", "space", "matrix", "by direction"])
def test_copies_make_no_tour_longer(kind, monkeypatch):
    """Where lists hold nothing but the eleven others at a place, tours are 7 to 30 % too long."""
    lists = "nearest" if kind == "plane" else "auto"
    # a place by direction is 24 cities of the symmetric form, and kicks move stretches of 50: it takes recombination
    monkeypatch.setattr(MemeticParameters, "trials_per_tour", lambda _, n, m, limited: 2048 // m)
    tours, n_gen = (8, 30) if kind == "by direction" else (2, 8)
    algorithm = GPUMemetic(population_size=tours, candidates=lists, backend="cpu")
    once, often = (
        minimize(places(kind, copies), algorithm, ("n_gen", n_gen), seed=1).F[0] for copies in (1, 12)
    )
    assert often == pytest.approx(once, rel=1e-9)


@pytest.mark.parametrize("kind", ["one point", "one distance"])
def test_equally_far_ends_are_joined_in_a_few_rounds(kind, monkeypatch):
    """Where all listed the same few others, a round joined four of 800 paths."""
    if kind == "one point":
        problem, edges = TSP(np.full((800, 2), 48.0), metric="HAVERSINE"), "_edges_between_ends"
    else:
        problem, edges = TSP(matrix=1.0 - np.eye(800)), "_edges_by_matrix"
    find, rounds = getattr(start, edges), []
    monkeypatch.setattr(start, edges, lambda *given_: rounds.append(0) or find(*given_))
    tour = start.greedy_tour(listed_instance(problem, 8))
    assert sorted(tour) == list(range(800))
    assert len(rounds) <= 3
