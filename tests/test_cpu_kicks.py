"""Repair and kicks in windows of the CPU engine, against tours recomputed by hand or by slow code."""

from itertools import pairwise

import numpy as np
import pytest

from pymoo_gpuaco.backends.cpu.windows import trials
from pymoo_gpuaco.backends.cpu.windows.search import WindowSearch
from pymoo_gpuaco.memetic.parameters import MemeticParameters
from tests.compiled_callees import new_stream
from tests.cpu_window_cases import cycle, kick_window, repair_window, units_of, window_of
from tests.engine_cases import cloud
from tests.tour_cases import edges_of


@pytest.mark.parametrize("n", [8, 9, 60, 400])
@pytest.mark.parametrize("metric", ["EUC_2D", "EXACT", "CEIL_2D"])
def test_gains_are_those_of_the_tours_laid_out(n, metric):
    instance, units = units_of(cloud(n, n, metric))
    tour = np.random.default_rng(1).permutation(n).astype(np.int32)
    search = WindowSearch(instance, units, MemeticParameters())

    def length(row):
        return search.distance(row, np.roll(row, -1)).sum()

    w = window_of(units, tour, np.arange(n))
    gain = repair_window(units, w, n, np.ones(n, np.uint8))
    assert np.array_equal(np.sort(cycle(w, n)), np.arange(n))
    assert gain == length(tour) - length(cycle(w, n))
    assert gain > 0
    for hot, cold in ((0.0, 0.0), (300.0, 50.0)):
        before = length(cycle(w, n))
        gain = kick_window(units, w, n, 200, hot, cold, 50, 5)
        assert np.array_equal(np.sort(cycle(w, n)), np.arange(n))
        assert gain == before - length(cycle(w, n))
        assert hot > 0 or gain >= 0
        assert np.array_equal(w.order[w.position], np.arange(n))


def test_a_kick_is_a_double_bridge_of_short_stretches_near_a_place():
    m, longest, around, times = 64, 5, 30, 400
    instance, units = units_of(cloud(m, 3), candidates="quadrant")
    w = window_of(units, np.arange(m, dtype=np.int32), np.arange(m))
    stream, seen = new_stream(8, 0, 1), []
    for _ in range(times):
        w.order[:] = w.position[:] = np.arange(m)
        w.queued[:], w.state[:], w.ring[:] = 0, 0, 0
        gain, made = trials._kick(units, w, m, around, longest, stream)
        assert made
        assert gain == instance.tour_length(np.arange(m)) - instance.tour_length(w.order)
        old, new = edges_of(np.arange(m)), edges_of(w.order)
        if len(old - new) < 4:
            continue  # single cities side by side have changed places: the edge between them is there again
        assert set(np.flatnonzero(w.queued).tolist()) == {end for pair in old ^ new for end in pair}
        p, x, y, z = sorted(
            i for i in range(m) if frozenset(((around + i) % m, (around + i + 1) % m)) in old - new
        )
        joints = np.array([(p, y + 1), (z, x + 1), (y, p + 1), (x, z + 1)])
        assert new - old == set(map(frozenset, ((around + joints) % m).tolist()))
        seen.append((p, x - p, y - x, z - y))
    places, *stretches = map(set, zip(*seen, strict=True))
    assert places == set(range(trials.SPREAD))
    assert stretches == [set(range(1, longest + 1))] * 3


@pytest.mark.parametrize("hot", [0.0, 500.0])
def test_fixed_links_are_never_broken(hot):
    n = 300
    _, units = units_of(cloud(n, 5))
    tour = np.random.default_rng(3).permutation(n).astype(np.int32)
    runs = [
        (0, 12),
        (30, 55),
        (80, 82),
        (100, 180),
        (200, 203),
        (250, 300),
    ]  # the first and the last join at the seam
    positions = np.concatenate([np.arange(a, b) for a, b in runs])
    m = len(positions)
    w = window_of(units, tour, positions)
    ends = [(tour[b - 1], tour[c]) for (_, b), (c, _) in pairwise(runs)]
    gain = repair_window(units, w, m, np.ones(len(units.candidates), np.uint8)) + kick_window(
        units, w, m, 500, hot, 0.0, 50, 1
    )
    assert gain > 0
    found = edges_of(cycle(w, m))
    assert {frozenset(map(int, pair)) for pair in ends} <= found
    assert frozenset((int(tour[-1]), int(tour[0]))) not in {frozenset(map(int, p)) for p in ends}


def test_kicks_move_fixed_links_along():
    n = 300
    _, units = units_of(cloud(n, 5))
    positions = np.flatnonzero(np.arange(n) % 3 < 2)  # every other link of the window is fixed
    m = len(positions)
    w = window_of(units, np.random.default_rng(3).permutation(n).astype(np.int32), positions)
    repair_window(units, w, m, np.ones(len(units.candidates), np.uint8))
    before = edges_of(cycle(w, m))
    assert kick_window(units, w, m, 500, 0.0, 0.0, 50, 1) > 0
    fixed = {frozenset((int(w.city[p]), int(w.city[w.mate[p]]))) for p in range(m)}
    assert fixed <= edges_of(cycle(w, m)) != before
