"""Moves in a window: the best 3-opt move against every one tried one by one, and steps that go on from it."""

from __future__ import annotations

import struct
from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from tests import emulator

NONE, NEAR = 511, 8
SOURCE = """#include "windows/lin_kernighan.cuh"
__device__ inline void load(const View& view, const unsigned short* near, const int* tied, const float* penalties) {
    Window& w = view.w;
    const int m = view.m;
    w.fixed_next[lane_id()] = 0;
    for (int i = SLOTS * lane_id(); i < min(m, SLOTS * (lane_id() + 1)); ++i) {
        w.point[i] = point_of(view.cities, i);
        w.order[i] = w.place[i] = i;
#if PENALTIES
        w.penalty[i] = penalties[i];
#endif
        w.fixed_next[lane_id()] |= tied[i] << i % SLOTS;
        w.near_high[i] = 0;
        for (int s = 0; s < NEAR; ++s) {
            w.near_low[i][s] = near[NEAR * i + s] & 255;
            w.near_high[i] |= near[NEAR * i + s] >> 8 << s;
        }
    }
    __syncwarp();
    view.measure();
}
extern "C" __global__ void look(CITIES_PARAMETERS, int m, const unsigned short* near, const int* tied,
                                const float* penalties, float margin, float* gains, int* orders) {
    extern __shared__ uint4 shared[];
    Window& w = *reinterpret_cast<Window*>(shared);
    const Cities cities = CITIES;
    const View view{w, cities, 1.0f, m, margin};
    load(view, near, tied, penalties);
    const int t2 = blockIdx.x;
    bool closes;
    const Move move = best_move(view, Start{t2, 3, 0.0f}, closes);
    if (closes)
        make_move(view, Path{view, w.place[t2], move.backward() ? -1 : 1}, move.pattern(), move.x(), move.y());
    for (int i = lane_id(); i < m; i += 32) orders[t2 * m + i] = w.order[i];
    if (lane_id() == 0) gains[t2] = closes ? move.gain : 0.0f;
}
extern "C" __global__ void go_on(CITIES_PARAMETERS, int m, const unsigned short* near, const int* tied,
                                 const float* penalties, float* gains, int* orders, int* queued, float* measured) {
    extern __shared__ uint4 shared[];
    Window& w = *reinterpret_cast<Window*>(shared);
    const Cities cities = CITIES;
    const View view{w, cities, 1.0f, m, 0.0f};
    load(view, near, tied, penalties);
    Queue queue;
    int looks = 0;
    const int city = blockIdx.x;
    const float gain = improve(view, city, queue, looks);
    for (int i = lane_id(); i < m; i += 32) {
        orders[city * m + i] = w.order[i];
        measured[city * m + i] = w.edge[i];
    }
    for (int i = 0; i < m; ++i)
        if (lane_id() == i >> 5) queued[city * m + i] = queue.own >> (i & 31) & 1u;
    if (lane_id() == 0) gains[city] = gain;
}
"""


@pytest.fixture
def build(compiled_kernels: Path):
    emulator.skip_without_compiler()
    return lambda **definitions: emulator.build(
        "look.cu", {"NEAR": NEAR, **definitions}, compiled_kernels, SOURCE
    )


def looks(library, places, near, tied, penalties=None, margin=0.0):
    """Gain of the best move at every city, and the order (m, m) that the move leaves."""
    m = len(places)
    points = np.ascontiguousarray(places, np.float32)
    penalties = np.zeros(m, np.float32) if penalties is None else penalties.astype(np.float32)
    gains, orders = np.zeros(m, np.float32), np.zeros((m, m), np.int32)
    given = (array.ctypes.data for array in (near, tied, penalties))
    made = (array.ctypes.data for array in (gains, orders))
    packed = struct.pack("@PPPPiiPPPfPP", 0, 0, points.ctypes.data, 0, m, m, *given, margin, *made)
    assert library.run_look(m, 32, packed) == 0
    return gains, orders


def is_one_cycle(edges: Counter, m: int) -> bool:
    """Return True if a multiset of edges is a tour; an edge may be there twice only if nothing else could be."""
    beside: dict[int, list[int]] = {i: [] for i in range(m)}
    for (a, b), times in edges.items():
        if times not in (0, 1):
            return False
        if times:
            beside[a].append(b)
            beside[b].append(a)
    if any(len(ends) != 2 for ends in beside.values()):
        return False
    before, here, seen = -1, 0, 1
    while True:
        one, two = beside[here]
        before, here = here, two if one == before else one
        if here == 0:
            return seen == m
        seen += 1


def edge(a, b):
    return (a, b) if a < b else (b, a)


def best_by_trying(t2: int, D, near, ties, margin=0.0) -> float:
    """Gain of the best move that takes out an edge of t2, of the tour 0, 1, .., m-1; see ``best_from``."""
    m = len(D)
    return max(best_from(t1, t2, D, near, ties, margin) for t1 in ((t2 - 1) % m, (t2 + 1) % m))


def best_from(t1: int, t2: int, D, near, ties, margin=0.0) -> float:
    """Gain of the best 2-opt or sequential 3-opt move that takes t1-t2 out first, with a gain after each step.

    Those before the last are above ``margin``.
    """
    m = len(D)
    tour = Counter(edge(i, (i + 1) % m) for i in range(m))
    if edge(t1, t2) in ties:
        return 0.0

    def beside(city):
        return [c for c in ((city - 1) % m, (city + 1) % m) if edge(city, c) not in ties]

    def gain_if_tour(gain, out, into):
        if any(a == b for a, b in into):
            return 0.0
        changed = tour.copy()
        for pair in out:
            changed[edge(*pair)] -= 1
        for pair in into:
            changed[edge(*pair)] += 1
        return gain if gain > 0 and is_one_cycle(changed, m) else 0.0

    best = 0.0
    for t3 in near[t2]:
        if t3 in (NONE, (t2 - 1) % m, (t2 + 1) % m) or D[t1, t2] - D[t2, t3] <= margin:
            continue
        for t4 in beside(t3):
            two = D[t1, t2] - D[t2, t3] + D[t3, t4]
            out, into = [(t1, t2), (t3, t4)], [(t2, t3)]
            best = max(best, gain_if_tour(two - D[t4, t1], out, [*into, (t4, t1)]))
            for t5 in near[t4]:
                if t5 == NONE or two - D[t4, t5] <= margin:
                    continue
                for t6 in beside(t5):
                    three = two - D[t4, t5] + D[t5, t6] - D[t6, t1]
                    best = max(best, gain_if_tour(three, [*out, (t5, t6)], [*into, (t4, t5), (t6, t1)]))
    return best


def small_window(rng, m):
    """Places (m, 2), distances, neighbours (m, 8), and cities tied to the next."""
    places = rng.integers(0, 60, (m, 2))
    D = np.floor(np.hypot(*(places[:, None] - places[None]).transpose(2, 0, 1)) + 0.5)
    order = np.argsort(D + np.diag(np.full(m, 1e9)), axis=1, kind="stable")[:, : min(NEAR, m - 1)]
    near = np.full((m, NEAR), NONE, np.uint16)
    near[:, : order.shape[1]] = order
    near[rng.random(near.shape) < 0.15] = NONE  # not in the window
    ties = {edge(i, (i + 1) % m) for i in np.flatnonzero(rng.random(m) < 0.2).tolist()}
    return places, D, near, tied_to(ties, m), ties


def tied_to(ties, m):
    """Return the notes of a window on its ties, which are edges of 0, 1, .., m-1."""
    return np.array([edge(i, (i + 1) % m) in ties for i in range(m)], np.int32)


def settled(library, window):
    """The window when no 3-opt move is left, its cities numbered by their places again."""
    places, _, near, _, ties = window
    m = len(places)
    while True:
        D = np.floor(np.hypot(*(places[:, None] - places[None]).transpose(2, 0, 1)) + 0.5)
        tied = tied_to(ties, m)
        gains, orders = looks(library, places, near, tied)
        if gains.max() == 0.0:
            return places, D, near, tied, ties
        order = orders[gains.argmax()]
        place = np.full(NONE + 1, NONE)
        place[order] = np.arange(m)
        places, near = places[order], place[near[order]].astype(np.uint16)
        ties = {edge(int(place[a]), int(place[b])) for a, b in ties}


@pytest.mark.parametrize("m", [8, 9, 13, 20, 33, 300])  # numbers of more than eight bits
def test_the_best_move_is_found_and_made(m, build):
    library = build(METRIC=1, DIMENSIONS=2, TABLE=0)
    rng = np.random.default_rng(m)
    moves = 0
    for _ in range(max(1, 80 // m)):
        places, D, near, tied, ties = small_window(rng, m)
        gains, orders = looks(library, places, near, tied)
        old = D[np.arange(m), np.roll(np.arange(m), -1)].sum()
        for t2 in range(0, m, 1 + m // 50):
            assert gains[t2] == best_by_trying(t2, D, near.tolist(), ties), t2
            order = orders[t2]
            assert np.array_equal(np.sort(order), np.arange(m))
            assert old - D[order, np.roll(order, -1)].sum() == gains[t2]
            assert ties <= {edge(*pair) for pair in pairwise([*order.tolist(), int(order[0])])}
            moves += gains[t2] > 0
    assert moves > min(m, 33)


@pytest.mark.parametrize("margin", [0.0, 9.0, 30.0])
def test_penalties_and_a_margin_change_which_moves_are_found_but_not_what_they_gain(margin, build):
    library = build(METRIC=1, DIMENSIONS=2, TABLE=0, PENALTIES=1)
    rng = np.random.default_rng(5)
    m, moves, others = 24, 0, 0
    for _ in range(4):
        places, D, near, tied, ties = small_window(rng, m)
        penalties = rng.integers(0, 25, m)
        gains, orders = looks(library, places, near, tied, penalties, margin)
        counted = D + penalties + penalties[:, None]
        old = D[np.arange(m), np.roll(np.arange(m), -1)].sum()
        for t2 in range(m):
            assert gains[t2] == best_by_trying(t2, counted, near.tolist(), ties, margin), t2
            assert old - D[orders[t2], np.roll(orders[t2], -1)].sum() == gains[t2]
            moves += gains[t2] > 0
            others += gains[t2] != best_by_trying(t2, D, near.tolist(), ties)
    assert moves > m
    assert others > 0


def steps(library, places, near, tied):
    """At every city: the gain of the steps from it, and the window that they leave: order, queue, lengths (m, m)."""
    m = len(places)
    points = np.ascontiguousarray(places, np.float32)
    gains, orders, queued = np.zeros(m, np.float32), np.zeros((m, m), np.int32), np.zeros((m, m), np.int32)
    measured, penalties = np.zeros((m, m), np.float32), np.zeros(m, np.float32)
    pointers = (array.ctypes.data for array in (near, tied, penalties, gains, orders, queued, measured))
    packed = struct.pack("@PPPPiiPPPPPPP", 0, 0, points.ctypes.data, 0, m, m, *pointers)
    assert library.run_go_on(m, 32, packed) == 0
    return gains, orders, queued, measured


@pytest.mark.parametrize("m", [33, 60, 270])
def test_steps_go_on_where_no_move_closes_and_leave_the_window_as_it_was_where_they_find_nothing(m, build):
    library = build(METRIC=1, DIMENSIONS=2, TABLE=0)
    rng = np.random.default_rng(m)
    deep = 0
    for number in range(12 if m < 100 else 2):
        window = small_window(rng, m)
        places, D, near, tied, ties = settled(library, window) if number else window
        closed, _ = looks(library, places, near, tied)
        gains, orders, queued, measured = steps(library, places, near, tied)
        own = np.arange(m)
        old = {edge(i, (i + 1) % m) for i in range(m)}
        for city in range(m):
            order, after = orders[city], np.roll(orders[city], -1)
            changed = old ^ {edge(*pair) for pair in zip(order.tolist(), after.tolist(), strict=True)}
            assert np.array_equal(np.sort(order), own)
            assert D[own, np.roll(own, -1)].sum() - D[order, after].sum() == gains[city]
            assert not ties & changed
            lengths = [
                -(2.0**24) if edge(a, b) in ties else D[a, b] for a, b in zip(order, after, strict=True)
            ]
            assert measured[city].tolist() == lengths
            if closed[city] > 0:
                assert gains[city] == closed[city]
            elif gains[city] > 0:
                deep += 1
            else:
                assert np.array_equal(order, own)
                assert not queued[city].any()
            assert all(queued[city, end] for pair in changed for end in pair)
    assert deep > 0
