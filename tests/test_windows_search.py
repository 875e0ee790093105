"""Exchanges that windows find on the device: each exchange alone is a tour, and as much shorter as it says."""

from __future__ import annotations

import numpy as np
import pytest

from pymoo_gpuaco.backends.cuda import windows as module
from pymoo_gpuaco.backends.cuda.windows import Trials
from pymoo_gpuaco.memetic.search import MemeticSearch
from pymoo_gpuaco.problems import TSP
from tests.engine_cases import cloud
from tests.tour_cases import edges_of
from tests.windows_cases import device_of, each, emulated, search, windows_of

__all__ = ["emulated"]  # a fixture

DESCENT = Trials(trials=2, all_queued=True)
COOL = Trials(trials=8, slack=100.0)
HOT = Trials(trials=6, temperature=60.0)


def nearest_neighbour_tours(problem: TSP, m: int) -> np.ndarray:
    """Tours (m, n), each from another city; good enough for windows to change them in few places."""
    D, n = problem.D, problem.n_cities
    tours = np.empty((m, n), np.int32)
    for start, tour in enumerate(tours):
        left = np.ones(n, bool)
        city = start
        for place in range(n):
            tour[place], left[city] = city, False
            if place + 1 < n:
                city = int(np.where(left, D[city], np.inf).argmin())
    return tours


def applied(tour: np.ndarray, removed: np.ndarray, added: np.ndarray) -> np.ndarray:
    """The tour after one exchange, edge by edge; fails unless it is one."""
    n = len(tour)
    beside = [{(p - 1) % n, (p + 1) % n} for p in range(n)]
    for a, b in removed.tolist():
        beside[a].remove(b)
        beside[b].remove(a)
    for a, b in added.tolist():
        assert a != b
        assert b not in beside[a]
        beside[a].add(b)
        beside[b].add(a)
    assert {len(ends) for ends in beside} == {2}
    order, before = [0], -1
    while len(order) < n:
        before, here = order[-1], next(p for p in sorted(beside[order[-1]]) if p != before)
        order.append(here)
    assert len(set(order)) == n
    assert 0 in beside[order[-1]]
    return tour[order]


def check(
    problem: TSP, tours: int = 2, windows: int = 4, ways: tuple[Trials, ...] = (DESCENT, COOL, HOT)
) -> int:
    """Search and look at every exchange; the number of exchanges."""
    part, seen = windows_of(problem, tours, windows), 0
    rows = nearest_neighbour_tours(problem, tours)
    for key, how in enumerate(ways):
        for tour, exchanges in zip(rows, search(part, rows, key, how), strict=True):
            for one in each(exchanges):
                seen += 1
                new = applied(tour, one.removed, one.added)
                assert edges_of(new) != edges_of(tour)
                gain = problem.tour_length(tour) - problem.tour_length(new)
                if how.temperature > 0.0:
                    assert 0.0 < one.rank < 1.0
                else:
                    # ranks are in single precision
                    assert one.rank == (
                        np.float32(gain) if problem.integral else pytest.approx(gain, rel=1e-6, abs=1e-6)
                    )
                    assert gain >= 0.0
    return seen


# a window has up to 511 cities: all of them, one too few, some
@pytest.mark.parametrize("n", [8, 9, 511, 512, 800])
def test_every_exchange_is_a_tour_of_that_length(n, emulated):
    assert check(cloud(n, n), 2 if n < 100 else 1) > 0


def test_what_is_local_leaves_the_rest_of_the_tour_in_order(emulated):
    # a stretch longer than a window lies outside it, at least in part
    n = 2000
    problem = cloud(n, 7)
    part, rows = windows_of(problem, 1, 8), nearest_neighbour_tours(problem, 1)
    part.load(rows)
    for key in range(4):
        part.search(key, DESCENT)
    (found,) = search(part, part.read(), 3, Trials(trials=12, temperature=40.0))
    flags = []
    for one in each(found):
        flags.append(one.local)
        new = applied(np.arange(n), one.removed, one.added)
        low, high = one.removed.min(axis=1), one.removed.max(axis=1)
        cuts = np.sort(np.where(high - low == 1, low, n - 1))
        lengths = np.diff(cuts, append=cuts[0] + n)
        middles = (cuts + 1 + lengths // 2)[lengths > 511] % n
        place = np.empty(n, int)
        place[new] = np.arange(n)
        steps = (place[(middles + 1) % n] - place[middles]) % n
        order = place[middles] if len(steps) and steps[0] == 1 else -place[middles]
        in_order = len(set(steps.tolist())) <= 1 and (np.diff(order, append=order[:1]) < 0).sum() <= 1
        assert in_order or not one.local
    assert any(flags)
    assert not all(flags)


PROBLEMS = {
    "ceiling": cloud(300, 1, "CEIL_2D"),
    "ATT": cloud(300, 2, "ATT"),
    "HAVERSINE": TSP(np.random.default_rng(3).uniform(-80, 80, (280, 2)), metric="HAVERSINE"),
    "GEO": TSP(np.random.default_rng(3).uniform(-80, 80, (280, 2)), metric="GEO"),
    "Manhattan": cloud(300, 4, "MAN_2D"),
    "maximum": cloud(300, 5, "MAX_2D"),
    "not rounded": cloud(300, 6, "EXACT"),
    "not rounded and tiny": TSP(np.random.default_rng(6).random((260, 2)) * 1e-6, metric="EXACT"),
    "far apart": TSP(np.random.default_rng(6).random((260, 2)) * 1e8, metric="EUC_2D"),
    "in space": TSP(np.random.default_rng(7).integers(0, 500, (300, 3)), metric="EUC_3D"),
    "matrix": TSP(matrix=cloud(270, 8).D),
    "matrix of fractions": TSP(matrix=cloud(60, 8, "EXACT").D),
    "all distances 5": TSP(matrix=5.0 * (1 - np.eye(40))),
    "at 70 places": TSP(np.random.default_rng(9).integers(0, 900, (70, 2)).repeat(5, axis=0), "EUC_2D"),
    "at one place": TSP(np.zeros((300, 2)), metric="EUC_2D"),
    "lattice": TSP(np.indices((18, 18)).reshape(2, -1).T * 10, metric="EUC_2D"),
}


# each metric is compiled for the host in seconds; the rest run on a device, or with --emulate
@pytest.mark.parametrize(
    "name",
    [
        "GEO",
        "HAVERSINE",
        "not rounded",
        "matrix",
        "all distances 5",
        "at 70 places",
        "at one place",
        "lattice",
    ],
)
def test_other_distances(name, emulated):
    assert check(PROBLEMS[name], 1) > 0 or name == "at one place"


def same(one: list, two: list) -> bool:
    return all(np.array_equal(a, b) for e, f in zip(one, two, strict=True) for a, b in zip(e, f, strict=True))


def test_the_key_decides_and_the_shape_of_blocks_does_not(emulated, monkeypatch):
    problem, key = cloud(300, 2), 2**64 - 1
    rows = nearest_neighbour_tours(problem, 2)
    found = []
    for warps in (2, 1):
        monkeypatch.setattr(module, "_WARPS", warps)
        part = windows_of(problem, 2, 3)
        found.append([search(part, rows, key, how) for how in (DESCENT, COOL, HOT)])
        again = [search(part, rows, key, how) for how in (DESCENT, COOL, HOT)]
        assert all(map(same, found[-1], again))
        assert not same(search(part, rows, 7, DESCENT), again[0])
    assert all(map(same, *found))


def test_a_trial_under_way_ends_soon_after_the_last_was_begun(emulated):
    problem = cloud(300, 3)
    rows = nearest_neighbour_tours(problem, 1)
    looks = {}
    for overtime in (30, 1 << 29):
        part, before = windows_of(problem, 1, 1), 0
        looks[overtime] = []
        for key in range(12):
            search(
                part, rows, key, Trials(trials=1000, temperature=60.0, move_searches=100, overtime=overtime)
            )
            looks[overtime].append(int(part.statistics()[1]) - before)
            before += looks[overtime][-1]
    # an attempt under way, of up to 24 moves, is ended in any case
    assert all(100 <= count < 100 + 30 + 24 for count in looks[30])
    assert max(looks[1 << 29]) >= 100 + 30 + 24
    for short, whole in zip(looks[30], looks[1 << 29], strict=True):
        assert short <= whole  # the same trials up to there
        assert short == whole or short >= 130


def test_improving_any_number_of_tours(emulated, monkeypatch):
    monkeypatch.setattr(module, "_IMPROVEMENT", [DESCENT, COOL])
    problem = cloud(100, 5)
    engine = MemeticSearch(device_of(problem, 2, 3))
    starts = np.array([np.random.default_rng(s).permutation(100) for s in range(5)])
    improved, lengths = engine.improve(starts, 2**64 - 1)
    assert np.array_equal(lengths, problem.tour_lengths(improved))
    assert (lengths < problem.tour_lengths(starts)).all()
    for few in (0, 1, 3):
        fewer, their = engine.improve(starts[:few].reshape(few, 100), 2**64 - 1)
        assert np.array_equal(fewer, improved[:few])
        assert np.array_equal(their, lengths[:few])


@pytest.mark.gpu
@pytest.mark.parametrize("name", [8, 511, 512, 1500, 4000, *PROBLEMS])
def test_every_exchange_on_a_device(name):
    problem = PROBLEMS[name] if isinstance(name, str) else cloud(name, name)
    assert check(problem, 3, 10) > 0 or name == "at one place"
