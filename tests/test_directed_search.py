"""Local search of asymmetric tours: stretches change places and keep their direction."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pymoo_gpuaco import GPUACS, GPUAS, GPUBWAS, GPUMMAS, LocalSearch
from pymoo_gpuaco.backends import make_improver
from pymoo_gpuaco.backends.cpu import directed_search, workspace
from pymoo_gpuaco.backends.cpu.improver import improve_tours
from pymoo_gpuaco.candidates.exact import shortest_tour
from pymoo_gpuaco.candidates.listed import make_graph
from pymoo_gpuaco.problems.summation import tour_length
from tests.compiled_callees import new_stream
from tests.engine_cases import BACKENDS, asymmetric
from tests.instances import listed_instance


def random_graph(n, seed):
    return make_graph(listed_instance(asymmetric(n, seed), n - 1))


def loaded(n, seed=None):
    """A workspace with a random tour, or with the cities in order."""
    w = workspace.make_workspace(n)
    tour = np.arange(n) if seed is None else np.random.default_rng(seed).permutation(n)
    workspace.load_tour(w, tour.astype(np.int32))
    return w


def improve(graph, tours, kicks=0, longest=1, key=1, reference=None):
    """Improved copies of tours (m, n), and their lengths."""
    tours = np.array(tours, np.int32)
    m, n = tours.shape
    lengths = np.zeros(m)
    known = np.full((n, 2), -1, np.int32) if reference is None else reference
    improve_tours(
        graph,
        workspace.make_workspace(n),
        True,
        0,
        known,
        kicks,
        longest,
        np.uint64(key),
        0,
        m,
        tours,
        lengths,
    )
    return tours, lengths


def swapped(tour, first, a, b):
    """The cycle of a list in which the stretches of a and b cities from ``first`` on change places."""
    turned = np.roll(tour, -first).tolist()
    return turned[a : a + b] + turned[:a] + turned[a + b :]


def from_zero(tour):
    tour = np.asarray(tour)
    return np.roll(tour, -int(np.argmax(tour == 0))).tolist()


@given(st.integers(3, 14), st.data())
@settings(max_examples=60, deadline=None)
def test_stretches_change_places_as_in_a_list(n, data):
    first = data.draw(st.integers(0, n - 1))
    a = data.draw(st.integers(1, n - 2))
    b = data.draw(st.integers(1, n - 1 - a))
    for swap in (directed_search.swap_stretches, directed_search.cycle_stretches):
        w = loaded(n)
        w.logged[0] = 0
        swap(w, first, a, b)
        assert from_zero(w.tour) == from_zero(swapped(np.arange(n), first, a, b))
        assert all(w.position[w.tour] == np.arange(n))
        workspace.undo(w)
        assert w.tour.tolist() == list(range(n))


@settings(max_examples=40, deadline=None)
@given(st.integers(3, 25), st.integers(0, 1000), st.sampled_from([0, 20]))
def test_tours_stay_tours_and_lengths_are_exact(n, seed, kicks):
    graph = random_graph(n, seed)
    start = [np.random.default_rng(seed + s).permutation(n) for s in range(3)]
    kicks = kicks if n >= 8 else 0
    for tour, length, old in zip(*improve(graph, start, kicks, (n - 2) // 3 or 1), start, strict=True):
        assert sorted(tour) == list(range(n))
        assert length == tour_length(graph, tour) <= tour_length(graph, old.astype(np.int32))


@settings(max_examples=40, deadline=None)
@given(st.integers(4, 40), st.integers(0, 1000))
def test_the_change_of_length_is_exact(n, seed):
    graph, w = random_graph(n, seed), loaded(n, seed)
    before = tour_length(graph, w.tour)
    workspace.push_changed(w, np.full((n, 2), -1, np.int32), True)
    delta = directed_search.search(graph, w, 0)
    assert tour_length(graph, w.tour) == before + delta  # whole numbers: exact
    assert delta <= 0.0


@pytest.mark.parametrize("seed", range(5))
def test_no_exchange_of_stretches_is_left(seed):
    n = 9
    graph = random_graph(n, seed)
    tours, lengths = improve(graph, [np.random.default_rng(seed).permutation(n)])
    while True:  # a city whose own edges stay is not looked at again by one search; by another it is
        again, shorter = improve(graph, tours)
        if shorter[0] == lengths[0]:
            break
        tours, lengths = again, shorter
    for first in range(n):
        for a in range(1, n - 1):
            for b in range(1, n - a):
                other = np.array(swapped(tours[0], first, a, b), np.int32)
                assert tour_length(graph, other) >= lengths[0]


def test_a_kick_turns_the_order_of_three_stretches_and_knows_its_delta():
    n = 30
    graph = random_graph(n, 3)
    for key in range(20):
        w = loaded(n)
        w.logged[0] = 0
        delta = directed_search.kick(graph, w, 5, new_stream(key, 0, 1))
        assert tour_length(graph, w.tour) == tour_length(graph, np.arange(n, dtype=np.int32)) + delta
        # four edges are new, and all others run as before
        follows = w.tour[(w.position + 1) % n]
        assert np.count_nonzero(follows != (np.arange(n) + 1) % n) == 4
        workspace.undo(w)
        assert w.tour.tolist() == list(range(n))


def test_where_a_known_tour_runs_nothing_is_looked_for_but_its_reverse_is_another():
    graph = random_graph(20, 2)
    tour = np.random.default_rng(5).permutation(20).astype(np.int32)
    reference = np.empty((20, 2), np.int32)
    workspace.tour_neighbours(tour, reference)
    same, length = improve(graph, [tour], reference=reference)
    assert same[0].tolist() == tour.tolist()
    assert length[0] == tour_length(graph, tour)
    _, reverse = improve(graph, [tour[::-1]], reference=reference)
    assert reverse[0] < tour_length(graph, tour[::-1].copy())


@pytest.mark.parametrize("backend", BACKENDS)
def test_moves_are_sought_with_the_16_nearest(backend):
    problem = asymmetric(50, 6)
    start = np.array([np.random.default_rng(s).permutation(50) for s in range(3)])

    def improved(k):
        return make_improver(listed_instance(problem, k), LocalSearch(kicks=1.0), backend).improve(start, 1)[
            0
        ]

    assert np.array_equal(improved(16), improved(30))
    assert not np.array_equal(improved(16), improved(15))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("cls", [GPUMMAS, GPUACS, GPUAS, GPUBWAS])
def test_colonies_find_the_shortest_tour(cls, backend):
    problem = asymmetric(11, 4)
    algorithm = cls(8, local_search=True, backend=backend)
    assert algorithm.setup(problem, termination=("n_gen", 20), seed=1).run().F[0] == problem.tour_length(
        shortest_tour(problem.D)
    )
