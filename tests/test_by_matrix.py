"""The nearest cities along the rows of a matrix and along its columns."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pymoo_gpuaco import TSP
from pymoo_gpuaco.candidates import start
from pymoo_gpuaco.candidates.by_matrix import nearest_both_ways, nearest_by_matrix
from pymoo_gpuaco.candidates.lists import listed_instance, with_lists
from pymoo_gpuaco.problems.instance import as_instance
from pymoo_gpuaco.problems.symmetric import symmetric_form


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


@given(matrices(), st.integers(1, 24))
@settings(max_examples=60, deadline=None)
def test_the_nearest_of_each_row_are_listed_in_order(given_, k):
    matrix, _ = given_
    k = min(k, len(matrix) - 1)
    places, lengths = nearest_by_matrix(matrix, k)
    for city, row in enumerate(matrix):
        assert places[city].tolist() == in_order(row, city, k)
        assert lengths[city].tolist() == row[places[city]].tolist()


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
        assert onward.places[a].tolist() == in_order(wanted, own[a], k)
        assert onward.lengths[a].tolist() == wanted[onward.places[a]].tolist()
    for b in range(m):
        wanted = matrix[rows, columns[b]] - to_leave
        assert back.places[b].tolist() == in_order(wanted, int(np.flatnonzero(own == b)[0]), k)
        assert back.lengths[b].tolist() == wanted[back.places[b]].tolist()


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


@pytest.mark.parametrize("n", [20, 60])
def test_ends_of_twins_are_joined_as_over_all_pairs(n):
    """Lists of one city a city leave many paths; edges between two of their ends that are left, or entered, are far."""
    matrix = np.random.default_rng(n).random((n, n)) + np.linspace(0.0, 5.0, n)
    form = symmetric_form(as_instance(TSP(matrix=matrix)))
    assert form is not None
    instance = with_lists(form.instance, 1)
    paths = np.full((2 * n, 3), -1, np.int32)
    paths[:, 2] = np.arange(2 * n)
    start._link_partners(instance, paths)
    ends, others, near, lengths = start._edges_by_matrix(instance, paths)
    assert sorted(ends) == sorted(others) == list(range(2 * n))
    for end, row, length in zip(ends, near, lengths, strict=True):
        all_lengths = instance.distance(np.full(2 * n, end), np.arange(2 * n))
        all_lengths[[end, paths[end, 2]]] = np.inf
        assert others[row].tolist() == np.argsort(all_lengths)[:8].tolist()
        assert length.tolist() == all_lengths[others[row]].tolist()
    assert sorted(start.greedy_tour(instance)) == list(range(2 * n))
