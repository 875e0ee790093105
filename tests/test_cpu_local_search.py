"""2-opt, Or-opt and kicks: valid tours, exact deltas, true local optima, exact undo."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pymoo_gpuaco.backends.cpu import local_search, moves, workspace
from pymoo_gpuaco.candidates.listed import make_graph
from pymoo_gpuaco.problems import TSP
from pymoo_gpuaco.problems.summation import tour_length
from tests.compiled_callees import new_stream
from tests.instances import listed_instance


def square_cloud(n, seed, metric="EUC_2D", k=None):
    points = np.random.default_rng(seed).integers(0, 1000, (n, 2))
    return make_graph(listed_instance(TSP(points, metric=metric), k or n - 1))


def loaded(n, seed):
    w = workspace.make_workspace(n)
    tour = np.random.default_rng(seed).permutation(n).astype(np.int32)
    workspace.load_tour(w, tour)
    return w, tour


def queue_all(w):
    workspace.push_changed(w, np.full((len(w.tour), 2), -1, np.int32), False)


def is_tour(w):
    n = len(w.tour)
    return sorted(w.tour) == list(range(n)) and all(w.position[w.tour] == np.arange(n))


@settings(max_examples=40, deadline=None)
@given(st.integers(4, 40), st.integers(0, 10_000), st.booleans())
def test_the_change_of_length_is_exact_and_the_tour_stays_a_tour(n, seed, or_opt):
    graph = square_cloud(n, seed)
    w, tour = loaded(n, seed + 1)
    queue_all(w)
    delta = local_search.search(graph, w, or_opt)
    assert is_tour(w)
    assert tour_length(graph, w.tour) == tour_length(graph, tour) + delta  # integers: exact
    assert delta <= 0.0


def best_two_opt(graph, tour):
    n = len(tour)
    length = tour_length(graph, tour)
    best = 0.0
    for i in range(n - 1):
        for j in range(i + 1, n):
            other = np.concatenate([tour[:i], tour[i : j + 1][::-1], tour[j + 1 :]])
            best = min(best, tour_length(graph, other) - length)
    return best


@pytest.mark.parametrize("metric", ["EUC_2D", "EXACT", "MAN_2D", "CEIL_2D", "ATT"])
@pytest.mark.parametrize("seed", range(3))
def test_no_two_opt_move_is_left_with_full_neighbour_lists(metric, seed):
    graph = square_cloud(14, seed, metric)
    w, _ = loaded(14, seed)
    queue_all(w)
    local_search.search(graph, w, False)
    assert best_two_opt(graph, w.tour.copy()) >= -1e-6


@pytest.mark.parametrize("seed", range(6))
def test_no_or_opt_move_is_left_whose_segment_end_gets_a_nearer_neighbour(seed):
    # every improving Or-opt move gives some city at a changed edge a nearer tour neighbour; those that the
    # search looks at carry the segment that this city ends
    graph = square_cloud(12, seed)
    w, _ = loaded(12, seed)
    queue_all(w)
    before = local_search.search(graph, w, True)
    assert before < 0
    assert best_two_opt(graph, w.tour.copy()) >= -1e-6
    queue_all(w)
    assert local_search.search(graph, w, True) == 0.0


@settings(max_examples=40, deadline=None)
@given(st.integers(6, 30), st.integers(0, 1000), st.data())
def test_carrying_a_segment_gives_the_tour_worked_out_on_a_list(n, seed, data):
    w, tour = loaded(n, seed)
    start = data.draw(st.integers(0, n - 1))
    size = data.draw(st.integers(1, 3))
    flip = data.draw(st.booleans())
    turned = list(np.roll(tour, -start))
    segment, rest = turned[:size], turned[size:]
    at = data.draw(st.integers(0, len(rest) - 2))  # behind the last is where the segment stands
    moves.move_segment(w, segment[0], segment[-1], rest[at], flip)
    expected = rest[: at + 1] + (segment[::-1] if flip else segment) + rest[at + 1 :]
    assert is_tour(w)
    got = np.roll(w.tour, -int(np.flatnonzero(w.tour == expected[0])[0]))
    assert list(got) == expected or [got[0], *got[:0:-1]] == expected


def test_a_kick_swaps_two_adjacent_stretches_and_knows_its_delta():
    graph = square_cloud(30, 1)
    changed = []
    for seed in range(50):
        w, tour = loaded(30, seed)
        w.logged[0] = 0
        delta = local_search._kick(graph, w, 5, new_stream(seed, 0, 1))
        assert is_tour(w)
        assert tour_length(graph, w.tour) == tour_length(graph, tour) + delta
        edges = {frozenset(e) for e in zip(tour, np.roll(tour, -1), strict=True)}
        new = {frozenset(e) for e in zip(w.tour, np.roll(w.tour, -1), strict=True)}
        changed.append(len(edges - new))
    # two single cities that change places share an edge that stays
    assert set(changed) == {2, 3}
    assert changed.count(3) > 40


def test_a_full_log_ends_the_search_early_but_keeps_undo_exact():
    graph = square_cloud(60, 4)
    w = workspace.make_workspace(60, log_capacity=8)
    tour = np.random.default_rng(0).permutation(60).astype(np.int32)
    workspace.load_tour(w, tour)
    w.logged[0] = 0
    queue_all(w)
    delta = local_search.search(graph, w, True)
    assert 0 < w.logged[0] <= 8
    assert w.ring[1] == 0
    assert tour_length(graph, w.tour) == tour_length(graph, tour) + delta
    workspace.undo(w)
    assert np.array_equal(w.tour, tour)
