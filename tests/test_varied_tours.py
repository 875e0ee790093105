"""Varied first tours: made by one compiled call for instances of every kind, and the tours of `greedy_tour`."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pymoo_gpuaco import TSP, OpenPath
from pymoo_gpuaco.candidates import varied
from pymoo_gpuaco.candidates.lists import with_lists
from pymoo_gpuaco.candidates.start import greedy_tour
from pymoo_gpuaco.problems.symmetric import form_to_search
from pymoo_gpuaco.runtime.philox import generator
from tests.instances import listed_instance

KEY = 3


def different_places(n: int) -> np.ndarray:
    """Places of a grid of 100 by 100, none of them twice."""
    places = np.random.default_rng(n).permutation(10_000)[:n]
    return np.column_stack([places // 100, places % 100]).astype(float)


def plain(instance, number: int) -> np.ndarray:
    """Tour ``number`` of `varied_tours` by the uncompiled steps of `greedy_tour`."""
    usual = instance.neighbour_distances
    return greedy_tour(instance, lengths=usual * (1.0 + 0.3 * generator(KEY, number + 1).random(usual.shape)))


def searched(problem, k: int = 10):
    """The symmetric instance in which a memetic search looks for tours of a problem."""
    instance = listed_instance(problem, min(k, problem.n_cities - 1))
    form = form_to_search(instance)
    return instance if form is None else with_lists(form.instance, 16)


@pytest.fixture
def one_call(monkeypatch):
    """Fail if a varied tour is made by `greedy_tour`, which needs the interpreter's lock many times."""

    def unwanted(*_args, **_options):
        pytest.fail("a varied tour was made by greedy_tour")

    monkeypatch.setattr(varied, "greedy_tour", unwanted)


@pytest.mark.parametrize("metric", ["EUC_2D", "MAN_2D", "MAX_2D"])
@pytest.mark.parametrize("n", [5, 12, 900])
def test_tours_of_different_points_are_those_of_greedy_matching(n, metric, one_call):
    instance = listed_instance(TSP(different_places(n), metric), min(8, n - 1))
    tours = varied.varied_tours(instance, 6, KEY)
    np.testing.assert_array_equal(tours, [plain(instance, number) for number in range(6)])
    assert n < 900 or len(np.unique(tours, axis=0)) == 6


@given(st.integers(8, 90), st.integers(0, 2**32 - 1))
@settings(deadline=None, max_examples=40)
def test_tours_by_a_matrix_without_ties_are_those_of_greedy_matching(n, seed):
    upper = np.triu(np.random.default_rng(seed).permutation(n * n).reshape(n, n), 1).astype(float)
    instance = listed_instance(TSP(matrix=upper + upper.T), 7)
    tours = varied.varied_tours(instance, 3, KEY)
    np.testing.assert_array_equal(tours, [plain(instance, number) for number in range(3)])
    assert (np.sort(tours, axis=1) == np.arange(n)).all()


@given(st.integers(5, 16), st.integers(0, 2**32 - 1))
@settings(deadline=None, max_examples=40)
def test_paths_of_few_cities_are_those_of_greedy_matching(n, seed):
    """Nearly all other ends are listed. The dummy city, at distance 0 from all others, joins the first two cities."""
    instance = searched(OpenPath(np.random.default_rng(seed).random((n, 2))))
    assert instance.form.has_dummy
    np.testing.assert_array_equal(varied.varied_tours(instance, 1, KEY)[0], plain(instance, 0))


def two_parts(n: int) -> np.ndarray:
    """An asymmetric matrix without finite edges between the first half of the cities and the others."""
    matrix, half = np.full((n, n), np.inf), n // 2
    rng = np.random.default_rng(n)
    matrix[:half, :half], matrix[half:, half:] = (rng.integers(1, 50, (m, m)) for m in (half, n - half))
    np.fill_diagonal(matrix, 0.0)
    return matrix


def kinds(n: int) -> dict[str, TSP]:
    """A problem of every kind except round trips through different points in a plane."""
    rng = np.random.default_rng(n)
    xy = different_places(n)
    matrix = rng.integers(1, 50, (n, n)).astype(float)
    degrees = np.column_stack([rng.uniform(-60, 60, n), rng.uniform(-170, 170, n)])
    pairs = rng.permutation(n)[: n // 3 * 2].reshape(-1, 2)
    return {
        "matrix with ties": TSP(matrix=np.minimum(matrix, matrix.T)),
        "asymmetric": TSP(matrix=matrix),
        "few places": TSP(rng.integers(0, 5, (n, 2)).astype(float), "EUC_2D"),
        "one place": TSP(np.zeros((n, 2)), "EUC_2D"),
        "in space": TSP(rng.random((n, 3)) * 100.0, "EUC_3D"),
        "on the globe": TSP(degrees, "GEO"),
        "path": OpenPath(xy, "EUC_2D"),
        "path of few places": OpenPath(rng.integers(0, 5, (n, 2)).astype(float), "EUC_2D"),
        "fixed edges": TSP(xy, "EUC_2D", fixed_edges=pairs),
        "asymmetric path": OpenPath(matrix=matrix),
    }


@pytest.mark.parametrize("kind", kinds(8))
@pytest.mark.parametrize("n", [8, 60, 700])
def test_every_kind_is_made_by_one_call(kind, n, one_call):
    instance = searched(kinds(n)[kind])
    tours = varied.varied_tours(instance, 5, KEY)
    assert (np.sort(tours, axis=1) == np.arange(instance.n)).all()
    onward, back = np.roll(tours, -1, axis=1), np.roll(tours, 1, axis=1)
    if instance.partner is not None:
        partner = instance.partner[tours]
        assert ((partner < 0) | (partner == onward) | (partner == back)).all()
    usual = instance.tour_length(greedy_tour(instance))
    lengths = [instance.tour_length(tour) for tour in tours]
    assert max(lengths) <= 1.6 * usual, "random distances are up to 30 % longer"


@pytest.mark.parametrize("n", [12, 40, 90])
def test_tours_enter_a_city_at_one_end_and_leave_it_at_the_other(n, one_call):
    instance = searched(TSP(matrix=two_parts(n)))
    tours = varied.varied_tours(instance, 20, KEY)
    assert ((tours ^ np.roll(tours, -1, axis=1)) % 2 == 1).all()


@pytest.mark.parametrize("kind", ["matrix with ties", "asymmetric", "path", "fixed edges"])
def test_tours_do_not_depend_on_the_number_of_threads(kind, monkeypatch):
    instance, tours = searched(kinds(300)[kind]), []
    for threads in ("1", "9"):
        monkeypatch.setenv("PYMOO_GPUACO_THREADS", threads)
        tours.append(varied.varied_tours(instance, 12, KEY))
    np.testing.assert_array_equal(*tours)


def test_more_cities_than_pairs_allow_are_joined_by_greedy_tour(monkeypatch):
    instance = searched(kinds(60)["matrix with ties"])
    monkeypatch.setattr(varied, "MOST_BY_PAIRS", 59)
    np.testing.assert_array_equal(varied.varied_tours(instance, 2, KEY)[1], plain(instance, 1))


def test_no_tours_need_no_search_for_coincident_cities(monkeypatch):
    monkeypatch.setattr(varied, "at_one_point", lambda _: pytest.fail("searched"))
    assert varied.varied_tours(searched(kinds(60)["few places"]), 0, KEY).shape == (0, 60)


def test_paths_that_no_finite_edge_joins_raise_the_error_of_greedy_tour():
    matrix = np.full((12, 12), np.inf)
    for first in (0, 6):  # two parts
        matrix[first : first + 6, first : first + 6] = 1.0
    np.fill_diagonal(matrix, 0.0)
    with pytest.raises(ValueError, match="no greedy tour"):
        varied.varied_tours(listed_instance(TSP(matrix=matrix), 5), 1, KEY)
