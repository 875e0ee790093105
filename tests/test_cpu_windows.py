"""Cities in the windows of the CPU engine, and rounds of them."""

import math

import numpy as np
import pytest

from pymoo_gpuaco.backends.cpu.windows import trials
from pymoo_gpuaco.backends.cpu.windows.cut import cut_windows
from pymoo_gpuaco.backends.cpu.windows.search import Kicks, WindowSearch
from pymoo_gpuaco.backends.cpu.windows.window import load, make_units, make_window
from pymoo_gpuaco.candidates.listed import make_graph
from pymoo_gpuaco.candidates.lists import with_lists
from pymoo_gpuaco.colony.parameters import FEWEST_CITIES_TO_KICK
from pymoo_gpuaco.memetic.parameters import MemeticParameters
from pymoo_gpuaco.problems import TSP, OpenPath
from pymoo_gpuaco.problems.pymoo_problems import as_instance
from pymoo_gpuaco.problems.symmetric import symmetric_form
from tests.cpu_window_cases import SmallWindows, cycle, repair_window, units_of, window_of
from tests.engine_cases import cloud
from tests.tour_cases import edges_of, two_opt


def test_a_round_of_windows_gives_a_shorter_tour_whatever_the_threads(monkeypatch):
    n = 600
    instance, units = units_of(cloud(n, 6))
    rng = np.random.default_rng(4)
    start = rng.permutation(n).astype(np.int32)
    ends = []
    for threads in ("1", "3"):
        monkeypatch.setenv("PYMOO_GPUACO_THREADS", threads)
        search = WindowSearch(instance, units, SmallWindows(whole_up_to=8, window=128))
        tour, dirty = start.copy(), np.ones(n, np.uint8)
        assert search.repair_stretches(tour, dirty, 0, 100) == search.stretches == 5
        lengths = [instance.tour_length(start), instance.tour_length(tour)]
        for done in range(0, 60, 6):
            tour, built = search.round(tour, dirty, done, 6, Kicks(30, done))
            assert 1 <= built <= 6
            lengths.append(instance.tour_length(tour))
        assert lengths == sorted(lengths, reverse=True)
        assert lengths[-1] < 0.5 * lengths[0]
        ends.append(tour)
    assert np.array_equal(*ends)


def test_annealed_stretches_are_kept_whole_whatever_the_threads(monkeypatch):
    n = 600
    instance, units = units_of(cloud(n, 6))
    start = two_opt(cloud(n, 6), np.random.default_rng(4).permutation(n))
    ends = []
    for threads in ("1", "3"):
        monkeypatch.setenv("PYMOO_GPUACO_THREADS", threads)
        search = WindowSearch(instance, units, SmallWindows(whole_up_to=8, window=128))
        tour, lengths = start.copy(), []
        for temperature in (0.0, 1e9):  # nothing that makes it longer is kept, and everything
            for done in range(0, 30, 5):
                assert (
                    search.anneal_stretches(
                        tour, np.ones(n, np.uint8), done, 9, Kicks(40, done, temperature, temperature)
                    )
                    == 5
                )
                assert set(tour.tolist()) == set(range(n))
                lengths.append(instance.tour_length(tour))
        cold, hot = lengths[:6], lengths[6:]
        assert cold == sorted(cold, reverse=True)
        assert cold[-1] < instance.tour_length(start)
        assert max(hot) > cold[-1]
        ends.append(tour)
    assert np.array_equal(*ends)


@pytest.mark.parametrize("dirty", [[], [7, 8, 90, 149], list(range(0, 150, 2))])
def test_windows_grow_from_centres_spread_over_the_tour_or_from_the_next_dirty_city(dirty):
    n, size, first, count = 150, 20, 3, 12
    _, units = units_of(cloud(n, 7), candidates="quadrant")
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
    found = cut_windows(units.candidates, size, tour, np.argsort(tour).astype(np.int32), first, count, marks)
    assert [positions.tolist() for positions in found] == expected
    assert 2 < len(expected) < count


def test_a_window_holds_what_the_instance_says_of_its_cities():
    n = 40
    instance, units = units_of(cloud(n, 2))
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


@pytest.mark.parametrize("first", [10, 50])
def test_a_stretch_is_repaired_between_its_ends(first):
    n, rng = 60, np.random.default_rng(3)
    instance, units = units_of(cloud(n, 5))
    tour = two_opt(cloud(n, 5), rng.permutation(n))
    positions = ((first + np.arange(24)) % n).astype(np.int32)  # the second one goes across the seam
    tour[positions[1:-1]] = rng.permutation(tour[positions[1:-1]])
    before, dirty, cities = tour.copy(), np.zeros(n, np.uint8), set(tour[positions].tolist())
    w = window_of(units, tour, positions)
    assert repair_window(units, w, 24, dirty) == 0.0  # no city of it is dirty
    dirty[:] = 1
    gain = repair_window(units, w, 24, dirty)
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
    search = WindowSearch(instance, units, MemeticParameters())
    tours = np.array([np.random.default_rng(seed).permutation(n) for seed in range(3)], np.int32)
    repaired = tours.copy()
    search.search_tours(repaired, Kicks(0, 1), True)
    for tour, before in zip(repaired, tours, strict=True):
        w = window_of(units, before, np.arange(n))
        repair_window(units, w, n, np.ones(n, np.uint8))
        assert np.array_equal(tour, cycle(w, n))
    kicked = repaired.copy()
    search.search_tours(kicked, Kicks(9, 1, 1e9, 1e9), False)  # all is kept
    same = [edges_of(one) == edges_of(other) for one, other in zip(repaired, kicked, strict=True)]
    assert all(same) == (n < FEWEST_CITIES_TO_KICK)


@pytest.mark.parametrize("metric", ["EUC_2D", "EXACT"])
def test_edges_to_the_dummy_of_a_path_cost_its_penalties_alone(metric):
    n, rng = 40, np.random.default_rng(3)
    form = symmetric_form(as_instance(OpenPath(rng.integers(0, 1000, (n, 2)).astype(float), metric=metric)))
    instance = with_lists(form.instance, 8, "quadrant")
    units = make_units(instance, make_graph(instance), MemeticParameters())[0]
    w = window_of(units, np.arange(n + 1, dtype=np.int32), np.arange(n + 1))
    dummies = 0
    for city in range(n + 1):
        for other, cost in zip(w.near[city].tolist(), w.cost[city].tolist(), strict=True):
            length = 0.0 if n in (city, other) else float(instance.distance(city, other))
            dummies += n in (city, other)
            expected = np.floor(length * units.scale + 0.5) + units.pi[city] + units.pi[other]
            assert other < 0 or cost == expected
    assert dummies >= 4


@pytest.mark.parametrize("metric", ["EUC_2D", "CEIL_2D", "ATT", "MAN_2D", "MAX_2D", "EXACT", "HAVERSINE"])
def test_edges_in_a_window_cost_their_length_and_the_penalties_of_their_ends(metric):
    """A city's number in the window is another than in the instance."""
    n, rng = 40, np.random.default_rng(3)
    instance, units = units_of(TSP(rng.uniform(-80, 80, (n, 2)), metric=metric))
    units = units._replace(pi=rng.integers(-9, 9, n).astype(np.float64))
    w = window_of(units, rng.permutation(n).astype(np.int32), np.arange(n))
    here, column = np.nonzero(w.near >= 0)
    city, other = w.city[here], w.city[w.near[here, column]]
    expected = np.floor(instance.distance(city, other) * units.scale + 0.5) + units.pi[city] + units.pi[other]
    assert len(here) >= 4 * n
    # great circles are rounded otherwise by compiled code
    assert np.abs(w.cost[here, column] - expected).max() <= (metric == "HAVERSINE")
