"""Commit and merge against slow references that know nothing of segments."""

import networkx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pymoo_gpuaco.memetic.commit import Exchanges, commit
from pymoo_gpuaco.memetic.partition_crossover import difference, merge, merge_all
from tests.tour_cases import edges_of


def pack(gains, removed, added):
    """``Exchanges`` from lists of pairs, one list an exchange."""
    rows = [len(pairs) for pairs in removed]
    return Exchanges(
        np.array(gains, float),
        np.concatenate([[0], np.cumsum(rows)]).astype(np.int64),
        np.array([pair for pairs in removed for pair in pairs], np.int32).reshape(-1, 2),
        np.array([pair for pairs in added for pair in pairs], np.int32).reshape(-1, 2),
    )


def segment_swap(n, start, first, second):
    """Stretches of ``first`` and ``second`` positions after ``start`` change places: three edges out and in."""
    a, b, c, d, e, f = (
        p % n
        for p in (
            start,
            start + 1,
            start + first,
            start + first + 1,
            start + first + second,
            start + first + second + 1,
        )
    )
    return [(a, b), (c, d), (e, f)], [(a, d), (e, b), (c, f)]


def reversal(n, start, length):
    a, b, c, d = (p % n for p in (start, start + 1, start + length, start + length + 1))
    return [(a, b), (d, c)], [(c, a), (b, d)]


def random_exchanges(rng, n, count):
    """Valid ones alone: reversals and swaps, anywhere, also across the seam."""
    removed, added = [], []
    for _ in range(count):
        start = int(rng.integers(n))
        if n < 6 or rng.random() < 0.5:
            out, into = reversal(n, start, int(rng.integers(2, n - 1)))
        else:
            first = int(rng.integers(1, n // 2 - 1))
            out, into = segment_swap(n, start, first, int(rng.integers(1, n - 1 - first)))
        removed.append(out)
        added.append(into)
    return pack(rng.integers(-3, 9, count), removed, added)._replace(local=rng.random(count) < 0.5)


def apply_slowly(n, exchanges, accepted):
    """Edges of 0, 1, ..., n-1 after the accepted exchanges; checks that each removes what is there."""
    edges = edges_of(np.arange(n))
    for i in np.flatnonzero(accepted):
        rows = slice(exchanges.first[i], exchanges.first[i + 1])
        out = {frozenset(map(int, pair)) for pair in exchanges.removed[rows]}
        assert out <= edges
        edges = (edges - out) | {frozenset(map(int, pair)) for pair in exchanges.added[rows]}
    return edges


def select_slowly(n, exchanges):
    """Return what ``select`` accepts, as its docstring has it: edge by edge, without segments."""
    count = len(exchanges.gain)
    rows = [slice(*exchanges.first[i : i + 2]) for i in range(count)]
    order = sorted(range(count), key=lambda i: -exchanges.gain[i])
    to_drop = sorted(order, key=lambda i: exchanges.local is not None and exchanges.local[i], reverse=True)
    zeros, owner, accepted = 16 + n // 256, {}, set()
    for i in order:
        zeros -= exchanges.gain[i] == 0.0
        positions = set(exchanges.removed[rows[i]].ravel().tolist())
        if not positions & owner.keys() and (exchanges.gain[i] != 0.0 or zeros >= 0):
            accepted.add(i)
            owner |= dict.fromkeys(positions, i)
    rounds = 0
    while True:
        out = {frozenset(pair) for i in accepted for pair in exchanges.removed[rows[i]].tolist()}
        graph = networkx.Graph([edge for edge in edges_of(range(n)) if edge not in out])
        graph.add_nodes_from(range(n))
        graph.add_edges_from(pair for i in accepted for pair in exchanges.added[rows[i]].tolist())
        cycles = sorted(networkx.connected_components(graph), key=min)
        if len(cycles) == 1:
            return [i in accepted for i in range(count)]
        parting = {pair for pair in out if not any(pair <= cycle for cycle in cycles)}
        largest = max(cycles, key=len)
        for cycle in cycles:
            if cycle is not largest:
                between = [owner[min(pair)] for pair in parting if pair & cycle]
                accepted.discard(max(between, key=to_drop.index))
        if rounds >= 12:
            everything = {owner[min(pair)] for pair in parting}
            accepted -= {
                i for i in everything if rounds >= 20 or exchanges.local is None or not exchanges.local[i]
            }
        rounds += 1


def committed(n, exchanges):
    """Commit, compare with the reference; return what was accepted and the tour."""
    accepted, out = commit(np.arange(n, dtype=np.int32), exchanges)
    assert np.array_equal(np.sort(out), np.arange(n))
    assert edges_of(out) == apply_slowly(n, exchanges, accepted)
    assert accepted.tolist() == select_slowly(n, exchanges)
    return accepted, out


@settings(max_examples=300, deadline=None)
@given(st.integers(5, 60), st.integers(0, 12), st.integers(0, 2**32))
def test_any_exchanges_end_in_one_tour(n, count, seed):
    exchanges = random_exchanges(np.random.default_rng(seed), n, count)
    accepted, _ = committed(n, exchanges)
    if count:
        assert accepted.any() or not exchanges.gain.any()


@pytest.mark.parametrize("local", [None, np.arange(60) % 2 == 0])
def test_nested_splits_end_too(local):
    # every exchange closes a ring around the one inside it: more rounds than the gentle ones
    n, count = 400, 60
    removed = [[(i * 3, i * 3 + 1), (n - 2 - i * 3, n - 1 - i * 3)] for i in range(count)]
    added = [[(i * 3, n - 1 - i * 3), (n - 2 - i * 3, i * 3 + 1)] for i in range(count)]
    accepted, _ = committed(n, pack([1] * count, removed, added)._replace(local=local))
    assert accepted.sum() == 0


def test_of_a_flood_without_gain_only_some_are_taken():
    n = 10_000
    parts = [reversal(n, 10 * i, 4) for i in range(1000)]
    gains = np.zeros(1000)
    gains[-1] = 1.0
    accepted, _ = committed(n, pack(gains, [p[0] for p in parts], [p[1] for p in parts]))
    assert accepted[-1]
    assert accepted.sum() == 1 + 16 + n // 256


def cloud(rng, n):
    """Whole-number distances of random points, as a function of city arrays and as a matrix."""
    points = rng.random((n, 2)) * 1000
    matrix = np.rint(np.hypot(*(points[:, None] - points[None]).transpose(2, 0, 1)))
    return lambda i, j: matrix[i, j]


def length(distance, tour):
    return distance(tour, np.roll(tour, -1)).sum()


def locally_changed(rng, tour, times):
    tour = tour.copy()
    n = len(tour)
    for _ in range(times):
        start = int(rng.integers(n))
        cities = (start + np.arange(int(rng.integers(2, 5)))) % n
        tour[cities] = tour[cities[::-1]]
    return tour


@settings(max_examples=150, deadline=None)
@given(st.integers(5, 80), st.integers(0, 30), st.integers(0, 2**32))
def test_merging_never_loses_and_keeps_what_both_share(n, times, seed):
    rng = np.random.default_rng(seed)
    distance = cloud(rng, n)
    tour = rng.permutation(n).astype(np.int32)
    other = np.roll(locally_changed(rng, tour, times), int(rng.integers(n)))[:: int(rng.choice([-1, 1]))]
    merged, gain = merge(tour, other, distance)
    assert np.array_equal(np.sort(merged), np.arange(n))
    assert length(distance, merged) <= min(length(distance, tour), length(distance, other))
    assert gain == length(distance, tour) - length(distance, merged)
    assert edges_of(tour) & edges_of(other) <= edges_of(merged) <= edges_of(tour) | edges_of(other)


def test_merging_takes_the_better_side_of_every_difference():
    # cities on a circle; each parent has three stretches reversed that the other has in order
    n = 60
    angle = 2 * np.pi * np.arange(n) / n
    points = np.column_stack([np.cos(angle), np.sin(angle)])

    def distance(i, j):
        return np.rint(1e6 * np.hypot(*(points[i] - points[j]).T))

    best = np.arange(n, dtype=np.int32)
    parents = [best.copy() for _ in range(4)]
    for parent, starts in zip(parents, ((1, 20, 40), (8, 30, 50), (12, 33, 54), (25, 44)), strict=True):
        for start in starts:
            parent[start : start + 4] = parent[start : start + 4][::-1]
    merged, gain = merge(parents[0], parents[1], distance)
    assert edges_of(merged) == edges_of(best)
    assert gain == length(distance, parents[0]) - length(distance, best)
    merged, gain = merge_all(parents, distance)
    assert edges_of(merged) == edges_of(best)
    assert gain == length(distance, parents[0]) - length(distance, best)


def test_what_is_as_long_is_left_as_it_is():
    tour, other = np.random.default_rng(4).permuted(np.tile(np.arange(40, dtype=np.int32), (2, 1)), axis=1)
    merged, gain = merge(tour, other, lambda i, j: np.ones(np.shape(i)))
    assert np.array_equal(merged, tour)
    assert gain == 0.0


def test_merging_ends_where_rounding_lets_either_of_two_tours_seem_shorter():
    """Four cities a group, the inner two of which every other group has the other way round in the other tour."""
    seem = 0
    for seed in range(400):
        rng = np.random.default_rng(seed)
        groups, scale = 20, rng.choice([0.1, 0.3, 1 / 3, 0.7])
        points = np.column_stack([np.arange(80) * scale, (np.arange(80) % 2) * 0.37])

        def distance(i, j, points=points):
            return np.hypot(*(points[i] - points[j]).T)

        tours = np.tile(np.arange(80, dtype=np.int32), (2, 1))
        for group, turned in enumerate(rng.permutation(groups) < groups // 2):
            tours[int(turned), 4 * group + 1 : 4 * group + 3] = 4 * group + 2, 4 * group + 1
        one, other = np.roll(tours[0], rng.integers(80)), np.roll(tours[1][::-1], rng.integers(80))
        gains = [difference(*both, distance).gain.sum() for both in ((one, other), (other, one))]
        seem += min(gains) > 0.0
        merged, _ = merge(one, other, distance)
        assert length(distance, merged) <= min(length(distance, one), length(distance, other)) + 1e-9
    assert seem > 0
