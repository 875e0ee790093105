"""First tours: greedy edge matching against a plain greedy."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pymoo_gpuaco.candidates import start
from pymoo_gpuaco.candidates.quadrant import quadrant_lists
from pymoo_gpuaco.candidates.start import greedy_tour
from pymoo_gpuaco.problems import TSP
from pymoo_gpuaco.problems.metrics import Metric
from tests.instances import listed_instance


def greedy_reference(D, directed):
    """Greedy over all n^2 edges; edges of one length go as the tours of `greedy_tour` may: only tested without."""
    n = len(D)
    edges = sorted((D[i, j], i, j) for i in range(n) for j in range(n) if i != j and (directed or i < j))
    path = list(range(n))
    left, right, chosen = [0] * n, [0] * n, []
    for _, i, j in edges:
        ends_free = not right[i] and not left[j] if directed else left[i] < 2 and left[j] < 2
        if ends_free and path[i] != path[j]:
            path = [path[i] if p == path[j] else p for p in path]
            if directed:
                right[i], left[j] = 1, 1
            else:
                left[i], left[j] = left[i] + 1, left[j] + 1
            chosen.append((i, j))
    return chosen


def steps(tour, directed):
    """The tour's edges but the closing one."""
    pairs = list(zip(tour[:-1].tolist(), tour[1:].tolist(), strict=True))
    return sorted(pairs if directed else [(min(p), max(p)) for p in pairs])


@given(st.integers(3, 40), st.booleans(), st.integers(0, 2**32 - 1))
@settings(deadline=None, max_examples=60)
def test_greedy_on_full_lists_is_greedy_over_all_edges(n, directed, seed):
    rng = np.random.default_rng(seed)
    if directed:
        matrix = rng.permutation(n * n).reshape(n, n).astype(float)
    else:
        upper = np.triu(rng.permutation(n * n).reshape(n, n), 1)
        matrix = (upper + upper.T).astype(float)
    instance = listed_instance(TSP(matrix=matrix), n - 1)
    if instance.symmetric is directed:
        return  # a 3 x 3 draw may be symmetric by chance
    # lists of 6 and rounds of 8 do not hold every edge from 8 cities on, but greedy there is still a tour
    tour = greedy_tour(instance)
    assert sorted(tour) == list(range(n))
    if n <= 7:
        assert steps(tour, directed) == sorted(greedy_reference(instance.matrix, directed))


@st.composite
def cities(draw):
    metric, columns = draw(
        st.sampled_from(
            [("EUC_2D", 2), ("GEO", 2), ("HAVERSINE", 2), ("EUC_3D", 3), ("MAN_2D", 2), ("EXACT", 3)]
        )
    )
    width = draw(st.sampled_from([0, 1, 5, 80]))
    n = draw(st.integers(3, 200))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    return TSP(rng.integers(-width, width + 1, size=(n, columns)), metric)


@given(cities(), st.integers(1, 12))
@settings(deadline=None, max_examples=100)
def test_first_tours_visit_every_city_once(problem, k):
    instance = listed_instance(problem, k)
    tour = greedy_tour(instance)
    assert tour.dtype == np.int32
    assert sorted(tour) == list(range(instance.n))


@given(st.integers(3, 150), st.booleans(), st.sampled_from([1, 3, 1000]), st.integers(0, 2**32 - 1))
@settings(deadline=None, max_examples=60)
def test_greedy_tours_of_matrices_visit_every_city_once(n, symmetric, high, seed):
    matrix = np.random.default_rng(seed).integers(0, high, size=(n, n))
    # where zeros are distances, half a matrix is not mirrored
    problem = TSP(matrix=matrix + matrix.T) if symmetric else TSP(matrix=matrix, symmetric=False)
    instance = listed_instance(problem, 5)
    assert sorted(greedy_tour(instance)) == list(range(n))


def test_quality_on_random_cities():
    """Bentley 1992: greedy is 14 to 18 % above 0.7124 sqrt(n A), which is the best at this n but for the border."""
    n = 20_000
    coords = np.random.default_rng(1).random((n, 2)) * 1e6
    problem = TSP(coords, "EXACT")
    instance = listed_instance(problem, 8)
    best = 0.7124 * np.sqrt(n * 1e12)
    quadrants = quadrant_lists(instance.metric, instance.coords, 8)
    assert 1.12 < problem.tour_length(greedy_tour(instance)) / best < 1.19
    assert 1.12 < problem.tour_length(greedy_tour(instance, *quadrants)) / best < 1.19


def test_tours_do_not_depend_on_the_number_of_threads(monkeypatch):
    instance = listed_instance(TSP(np.random.default_rng(1).integers(0, 70, size=(4000, 2)), "EUC_2D"), 8)
    tours = []
    for threads in ("1", "5"):
        monkeypatch.setenv("PYMOO_GPUACO_THREADS", threads)
        tours.append(greedy_tour(instance))
    np.testing.assert_array_equal(tours[0], tours[1])


def test_greedy_does_not_depend_on_how_many_edges_are_looked_at_together(monkeypatch):
    instance = listed_instance(TSP(np.random.default_rng(6).integers(0, 40, size=(2000, 2)), "EUC_2D"), 8)
    usual = greedy_tour(instance)
    monkeypatch.setattr(start, "_EDGES_PER_FILTER", 70)
    np.testing.assert_array_equal(greedy_tour(instance), usual)


def test_a_greedy_tour_that_edges_of_infinite_length_alone_would_close_is_refused():
    D = np.full((6, 6), np.inf)  # two triangles that no edge joins
    D[:3, :3] = D[3:, 3:] = 1.0
    np.fill_diagonal(D, 0.0)
    ids = np.array([[1, 2], [2, 0], [0, 1], [4, 5], [5, 3], [3, 4]], np.int32)
    near = np.take_along_axis(D, ids, axis=1)

    class Given(SimpleNamespace):
        __hash__ = object.__hash__  # as an instance's: it is itself

    instance = Given(
        n=6,
        k=2,
        symmetric=True,
        partner=None,
        form=None,
        metric=Metric.EXPLICIT,
        matrix=D,
        coords=None,
        distance=lambda i, j: D[i, j],
        neighbours=ids,
        neighbour_distances=near,
    )
    with pytest.raises(ValueError, match="infinite length"):
        greedy_tour(instance)
