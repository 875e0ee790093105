"""Windows and moves of the CPU engine, against tours recomputed by hand or by slow code."""

import math
from itertools import pairwise

import numpy as np
import pytest

from pymoo_gpuaco.backends.cpu.windows import moves, trials
from pymoo_gpuaco.backends.cpu.windows.cut import Cutter, without_fixed_ends
from pymoo_gpuaco.backends.cpu.windows.search import WindowSearch
from pymoo_gpuaco.backends.cpu.windows.units import make_units
from pymoo_gpuaco.backends.cpu.windows.window import LOGGED, load, make_window
from pymoo_gpuaco.candidates.graph import make_graph
from pymoo_gpuaco.candidates.lists import listed_instance
from pymoo_gpuaco.colony.parameters import FEWEST_CITIES_TO_KICK
from pymoo_gpuaco.host.philox import new_stream
from pymoo_gpuaco.problems import TSP
from pymoo_gpuaco.search.parameters import FocusedParameters
from pymoo_gpuaco.search.population import whole_units
from tests.engine_cases import cloud
from tests.test_assembly import two_opt


def units_of(problem, **focused):
    instance = listed_instance(problem, 8)
    return instance, make_units(instance, make_graph(instance), FocusedParameters(**focused))[0]


def window_of(units, tour, positions):
    w = make_window(len(positions), units.candidates.shape[1])
    load(units, tour, np.asarray(positions, np.int32), len(positions), np.full(len(tour), -1, np.int32), w)
    return w


def cycle(w, m):
    return w.city[w.order[:m]]


def edges_of(tour):
    return {frozenset((int(a), int(b))) for a, b in zip(tour, np.roll(tour, -1), strict=True)}


@pytest.mark.parametrize("n", [8, 9, 60, 400])
@pytest.mark.parametrize("metric", ["EUC_2D", "EXACT", "CEIL_2D"])
def test_gains_are_those_of_the_tours_laid_out(n, metric):
    instance, units = units_of(cloud(n, n, metric))
    tour = np.random.default_rng(1).permutation(n).astype(np.int32)
    search = WindowSearch(instance, units, FocusedParameters())

    def length(row):
        return search.distance(row, np.roll(row, -1)).sum()

    w = window_of(units, tour, np.arange(n))
    gain = trials.repair_all(units, w, n)
    assert np.array_equal(np.sort(cycle(w, n)), np.arange(n))
    assert gain == length(tour) - length(cycle(w, n))
    assert gain > 0
    for hot, cold in ((0.0, 0.0), (300.0, 50.0)):
        before = length(cycle(w, n))
        stream = new_stream(np.uint64(5), 0, 1)
        gain = trials.try_out(units, w, n, 200, hot, cold, 50, stream)
        assert np.array_equal(np.sort(cycle(w, n)), np.arange(n))
        assert gain == before - length(cycle(w, n))
        assert hot > 0 or gain >= 0
        assert np.array_equal(w.order[w.position], np.arange(n))


def test_no_two_opt_move_over_candidates_is_left():
    n = 150
    instance, units = units_of(cloud(n, 3))
    w = window_of(units, np.random.default_rng(1).permutation(n).astype(np.int32), np.arange(n))
    trials.repair_all(units, w, n)
    tour = cycle(w, n)
    place = np.argsort(tour)
    d = instance.distance(tour[:, None], tour[None])
    for p in range(n):
        for c in units.candidates[tour[p]]:
            q = place[c]
            a, b = (p + 1) % n, (q + 1) % n
            assert d[p, a] + d[q, b] <= d[p, q] + d[a, b]
            assert d[p - 1, p] + d[q - 1, q] <= d[p, q] + d[p - 1, q - 1]


@pytest.mark.parametrize(
    ("chosen", "ahead"),
    [
        ([(4, 1.0)], {4}),
        ([(10, 1.0)], {10}),
        ([(4, 1.0), (10, 3.0)], {4, 10}),
        (
            [(2, 1.0)],
            set(range(4, 12)),
        ),  # too near, and then too far, for two stretches of one to five cities
        ([(11, 1.0)], set(range(4, 12))),
        ([], set(range(4, 12))),
    ],
)
def test_a_kick_is_a_double_bridge_that_goes_where_an_ant_draws(chosen, ahead):
    m, longest, around, times = 64, 5, 30, 400
    instance, units = units_of(cloud(m, 3), ascent=0)
    w = window_of(units, np.arange(m, dtype=np.int32), np.arange(m))
    w.near[:], w.upto[:] = -1, 0.0
    for r, (steps, _) in enumerate(chosen):
        w.near[:, r] = (np.arange(m) + steps) % m
        w.upto[:, r:] += chosen[r][1]
    stream, seen = new_stream(np.uint64(8), 0, 1), []
    for _ in range(times):
        w.order[:] = w.position[:] = np.arange(m)
        w.queued[:], w.state[:] = 0, 0
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
    places, first, second, third = map(np.array, zip(*seen, strict=True))
    assert set(places.tolist()) == set(range(50))
    assert set((first + second + 1).tolist()) == ahead
    assert set(third.tolist()) == set(range(1, longest + 1))
    if len(ahead) > 2:
        assert set(first.tolist()) == set(second.tolist()) == set(range(1, longest + 1))
    elif len(ahead) == 2:  # in proportion to their weights: a quarter
        assert abs((first + second == 3).mean() - 0.25) < 4.0 * math.sqrt(0.25 * 0.75 / times)
    else:
        assert set(first.tolist()) == set(range(1, min(ahead) - 1))


def test_what_is_undone_leaves_no_trace():
    n = 100
    _, units = units_of(cloud(n, 4))
    w = window_of(units, np.random.default_rng(2).permutation(n).astype(np.int32), np.arange(n))
    order = w.order.copy()
    direction = 1
    for a, b in ((3, 40), (90, 5), (17, 18), (60, 2)):
        direction = moves.flip(w.order, w.position, w.log, w.state, n, direction, a, b)
    assert not np.array_equal(w.order, order)
    moves.undo(w.order, w.position, w.log, w.state, n, 0)
    assert np.array_equal(w.order, order)
    assert np.array_equal(w.order[w.position], np.arange(n))
    assert w.state[LOGGED] == 0


def ring_where_kicks_cost(n, dear):
    """A ring of edges of length 100; a double bridge of stretches of one city makes it longer by ``dear``."""
    apart = np.abs(np.arange(n)[:, None] - np.arange(n))
    # two edges of the ring go, and the two that come join cities three steps apart
    D = np.where(np.minimum(apart, n - apart) == 3, 100.0 + dear / 2, 100.0)
    return TSP(matrix=D * (1 - np.eye(n)))


@pytest.mark.parametrize(
    ("hot", "cold", "count", "dear"), [(10.0, 10.0, 1, 4.0), (10.0, 0.0, 1, 20.0), (3.0, 17.0, 2, 30.0)]
)
def test_a_longer_tour_is_kept_with_the_probability_of_metropolis(hot, cold, count, dear):
    """The last trial is at temperature 10; one before it is too cool to be kept."""
    n, times, kept = 12, 4000, 0
    _, units = units_of(ring_where_kicks_cost(n, dear), ascent=0)
    w = window_of(units, np.arange(n, dtype=np.int32), np.arange(n))
    w.near[:], w.upto[:] = -1, 0.0  # nothing is repaired, and no ant says where kicks go
    stream = new_stream(np.uint64(3), 0, 1)
    for _ in range(times):
        w.order[:] = w.position[:] = np.arange(n)
        gain = trials.try_out(units, w, n, count, hot, cold, 1, stream)
        assert gain in (0.0, -dear)
        assert np.array_equal(w.order, np.arange(n)) == (gain == 0.0)
        kept += gain < 0.0
    chance = math.exp(-dear / 10.0)
    assert abs(kept - times * chance) < 4.0 * math.sqrt(times * chance * (1.0 - chance))


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
    gain = trials.repair_all(units, w, m) + trials.try_out(
        units, w, m, 500, hot, 0.0, 50, new_stream(np.uint64(1), 0, 1)
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
    trials.repair_all(units, w, m)
    before = edges_of(cycle(w, m))
    assert trials.try_out(units, w, m, 500, 0.0, 0.0, 50, new_stream(np.uint64(1), 0, 1)) > 0
    tied = {frozenset((int(w.city[p]), int(w.city[w.mate[p]]))) for p in range(m)}
    assert tied <= edges_of(cycle(w, m)) != before


def test_a_round_of_windows_gives_a_shorter_tour_whatever_the_threads(monkeypatch):
    n = 600
    instance, units = units_of(cloud(n, 6))
    rng = np.random.default_rng(4)
    start = rng.permutation(n).astype(np.int32)
    ends = []
    for threads in ("1", "3"):
        monkeypatch.setenv("PYMOO_GPUACO_THREADS", threads)
        search = WindowSearch(instance, units, FocusedParameters(whole_up_to=8, window=128))
        tour, dirty = start.copy(), np.ones(n, np.uint8)
        assert search.repair_stretches(tour, dirty, 0, 100) == search.stretches == 5
        lengths = [instance.tour_length(start), instance.tour_length(tour)]
        for done in range(0, 60, 6):
            tour, built = search.round(tour, dirty, done, 6, 30, 0.0, 0.0, 50, done)
            assert 1 <= built <= 6
            lengths.append(instance.tour_length(tour))
        assert lengths == sorted(lengths, reverse=True)
        assert lengths[-1] < 0.5 * lengths[0]
        ends.append(tour)
    assert np.array_equal(*ends)


@pytest.mark.parametrize(
    ("positions", "tied", "kept"),
    [
        # 2 begins a run and 10 ends one; 4 and 5 lie within, and 9 is an end no more without 10
        ([2, 3, 4, 5, 6, 8, 9, 10], [(2, 3), (4, 5), (9, 10)], [3, 4, 5, 6, 8, 9]),
        # what leads outwards is fixed anyway
        ([2, 3, 4], [(1, 2), (4, 5)], [2, 3, 4]),
        # one run across the seam, and its ends
        ([0, 1, 2, 10, 11], [(11, 0)], [0, 1, 2, 10, 11]),
        ([0, 1, 2, 10, 11], [(1, 2), (10, 11)], [0, 1, 11]),
        (list(range(12)), [(0, 1)], list(range(12))),
    ],
)
@pytest.mark.parametrize("turn", [0, 5])
def test_runs_end_at_no_edge_that_must_stay(positions, tied, kept, turn):
    tour = np.roll(np.arange(12, dtype=np.int32), turn)
    partner = np.full(12, -1, np.int32)
    for a, b in tied:
        partner[tour[a]], partner[tour[b]] = tour[b], tour[a]
    assert without_fixed_ends(np.array(positions, np.int32), tour, partner).tolist() == kept


def test_stretches_of_the_second_pass_lie_across_the_bounds_of_the_first(monkeypatch):
    n = 600
    instance, units = units_of(cloud(n, 6), ascent=0)
    part = WindowSearch(instance, units, FocusedParameters(whole_up_to=8, window=128), threads=1)
    laid_out = []
    monkeypatch.setattr(
        "pymoo_gpuaco.backends.cpu.windows.search.load",
        lambda units, tour, positions, *more: (
            laid_out.append(positions.tolist()),
            load(units, tour, positions, *more),
        ),
    )
    tour = np.arange(n, dtype=np.int32)
    for over in range(2):
        laid_out.clear()
        assert part.repair_stretches(tour, np.zeros(n, np.uint8), over * part.stretches, 100) == 5
        # five of 120 cities; those of the second pass begin in the middle of the first ones
        begin = 60 * over
        assert laid_out == [[(begin + 120 * s + i) % n for i in range(120)] for s in range(5)]


def test_windows_of_a_round_share_no_city_and_no_city_stands_alone():
    n = 500
    _, units = units_of(cloud(n, 7))
    tour = np.random.default_rng(5).permutation(n).astype(np.int32)
    where = np.argsort(tour).astype(np.int32)
    cutter = Cutter(units.candidates, 100)
    for first in (0, 4):
        windows = cutter.round(tour, where, first, 4, np.zeros(n, np.uint8))
        together = np.concatenate(windows)
        assert len(set(together)) == len(together)
        for positions in windows:
            assert np.array_equal(positions, np.unique(positions))
            own = set(positions.tolist())
            assert all((p + 1) % n in own or (p - 1) % n in own for p in own)


@pytest.mark.parametrize("dirty", [[], [7, 8, 90, 149], list(range(0, 150, 2))])
def test_windows_grow_from_centres_spread_over_the_tour_or_from_the_next_dirty_city(dirty):
    n, size, first, count = 150, 20, 3, 12
    _, units = units_of(cloud(n, 7), ascent=0)
    tour = two_opt(cloud(n, 7), np.random.default_rng(5).permutation(n))
    marks = np.zeros(n, np.uint8)
    marks[dirty] = 1
    expected, taken = [], set()
    for index in range(first, first + count):
        start = int((index * (math.sqrt(5) - 1) / 2) % 1 * n)
        free = [c for c in np.roll(tour, -start).tolist() if c not in taken and (not dirty or c in dirty)]
        if not free:
            break
        reach = [free[0]]
        taken.add(free[0])
        for city in reach:
            for c in units.candidates[city].tolist():
                if c not in taken and len(reach) < size:
                    reach.append(c)
                    taken.add(c)
        places = set(np.argsort(tour)[reach].tolist())
        positions = sorted(p for p in places if {(p + 1) % n, (p - 1) % n} & places)
        expected += [positions] if len(positions) >= 8 else []
    cutter = Cutter(units.candidates, size)
    for _ in range(2):  # nothing is left claimed
        found = cutter.round(tour, np.argsort(tour).astype(np.int32), first, count, marks)
        assert [positions.tolist() for positions in found] == expected
    assert 2 < len(expected) < count


def test_a_window_holds_what_the_instance_says_of_its_cities():
    n = 40
    instance, units = units_of(cloud(n, 2))
    units.weights[:] = np.random.default_rng(1).random(units.weights.shape)
    tour, number = np.random.default_rng(2).permutation(n).astype(np.int32), np.full(n, -1, np.int32)
    positions = np.array([0, 1, 5, 6, 7, 20, 21, 22, 23, 38, 39], np.int32)
    m, cities = len(positions), tour[positions].tolist()
    w = make_window(m, units.candidates.shape[1])
    for array in w[:-2]:
        array[:] = 77  # of the window before
    load(units, tour, positions, m, number, w)
    assert np.all(number == -1)
    assert w.city.tolist() == cities
    assert w.order.tolist() == w.position.tolist() == list(range(m))
    assert w.mate.tolist() == [-1, 2, 1, -1, 5, 4, -1, -1, 9, 8, -1]
    assert not w.queued.any()
    assert not w.state.any()
    for p, city in enumerate(cities):
        inside = [(r, cities.index(c)) for r, c in enumerate(units.candidates[city].tolist()) if c in cities]
        assert [q for q in w.near[p].tolist() if q >= 0] == [q for _, q in inside]
        assert w.cost[p, : len(inside)].tolist() == [
            instance.distance(city, cities[q]) + units.pi[city] + units.pi[cities[q]] for _, q in inside
        ]
        upto = np.cumsum([units.weights[city, r] for r, _ in inside])
        assert (
            w.upto[p].tolist()
            == np.pad(
                upto, (0, w.upto.shape[1] - len(inside)), "edge" if len(inside) else "constant"
            ).tolist()
        )


@pytest.mark.parametrize("first", [10, 50])
def test_a_stretch_is_repaired_between_its_ends(first):
    n, rng = 60, np.random.default_rng(3)
    instance, units = units_of(cloud(n, 5))
    tour = two_opt(cloud(n, 5), rng.permutation(n))
    positions = ((first + np.arange(24)) % n).astype(np.int32)  # the second one goes across the seam
    tour[positions[1:-1]] = rng.permutation(tour[positions[1:-1]])
    before, dirty, cities = tour.copy(), np.zeros(n, np.uint8), set(tour[positions].tolist())
    w = window_of(units, tour, positions)
    assert trials.repair_queued(units, w, 24, dirty) == 0.0  # no city of it is dirty
    dirty[:] = 1
    gain = trials.repair_queued(units, w, 24, dirty)
    trials.unload_stretch(w, 24, tour, positions)
    assert gain == instance.tour_length(before) - instance.tour_length(tour) > 0
    assert set(tour[positions].tolist()) == cities
    same = np.setdiff1d(np.arange(n), positions[1:-1])
    assert np.array_equal(tour[same], before[same])
    clean = {city for city in cities if cities.issuperset(units.candidates[city].tolist())}
    assert set(np.flatnonzero(dirty == 0).tolist()) == clean != set()


@pytest.mark.parametrize("n", [FEWEST_CITIES_TO_KICK - 1, 40])
def test_whole_tours_are_repaired_and_kicked_where_there_are_cities_enough(n):
    matrix = np.random.default_rng(3).integers(1, 1000, (n, n))  # many tours that no step shortens
    instance, units = units_of(TSP(matrix=np.minimum(matrix, matrix.T) * (1.0 - np.eye(n))))
    search = WindowSearch(instance, units, FocusedParameters())
    tours = np.array([np.random.default_rng(seed).permutation(n) for seed in range(3)], np.int32)
    repaired = tours.copy()
    search.search_tours(repaired, 1, 0, 0.0, 0.0, 50, True)
    for tour, before in zip(repaired, tours, strict=True):
        w = window_of(units, before, np.arange(n))
        trials.repair_all(units, w, n)
        assert np.array_equal(tour, cycle(w, n))
    kicked = repaired.copy()
    search.search_tours(kicked, 1, 9, 1e9, 1e9, 50, False)  # all is kept
    same = [edges_of(one) == edges_of(other) for one, other in zip(repaired, kicked, strict=True)]
    assert all(same) == (n < FEWEST_CITIES_TO_KICK)


def test_units_are_whole_and_fine_enough():
    assert whole_units(listed_instance(cloud(50), 5)) == 1.0
    exact = listed_instance(TSP(np.random.default_rng(0).random((50, 2)) * 1e-7, metric="EXACT"), 5)
    scale = whole_units(exact)
    assert scale * exact.neighbour_distances.mean() >= 2**19
    assert np.log2(scale) == int(np.log2(scale))
    assert whole_units(listed_instance(TSP(np.zeros((12, 2)), metric="EXACT"), 5)) == 1.0
