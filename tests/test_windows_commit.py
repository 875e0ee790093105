"""Exchanges committed on the device against those of the host: the same are taken, and the tours are the same.

But of those that gain nothing the host takes few, as commit.cu says.
"""

from __future__ import annotations

import numpy as np
import pytest

from pymoo_gpuaco.backends.cuda.windows import MOST_EDGES, Windows
from pymoo_gpuaco.memetic import commit as host
from pymoo_gpuaco.memetic.commit import Exchanges
from pymoo_gpuaco.problems import TSP
from tests.test_partition_crossover import pack, reversal, segment_swap
from tests.windows_cases import FOUND, emulated, windows_of

__all__ = ["emulated"]  # a fixture

ACCEPTED = 3  # State of commit.cu
Pairs = list[tuple[int, int]]


def cities_in_a_plane(n: int) -> TSP:
    return TSP(np.random.default_rng(n).uniform(0, 1000, (n, 2)), metric="EUC_2D")


def part_of(n: int, tours: int, windows: int) -> Windows:
    return windows_of(cities_in_a_plane(n), tours, windows, 4)


def commit(part: Windows, tours: np.ndarray, found: list[Exchanges]) -> tuple[np.ndarray, np.ndarray]:
    """Commit the exchanges of every tour; return which were taken (tours, windows), and the tours they become."""
    device, n = part._device, tours.shape[1]
    table = np.zeros((part.tours, part.windows), FOUND)
    rows = np.zeros(part.tours, np.int32)
    removed, added = np.zeros((2, part.tours, part.windows * MOST_EDGES, 2), np.int32)
    owners = np.zeros(removed.shape[:2], np.int32)
    for tour, (own, exchanges) in enumerate(zip(table, found, strict=True)):
        count, sizes = len(exchanges.gain), np.diff(exchanges.first)
        own["rank"][:count], own["edges"][:count] = exchanges.gain, sizes
        own["local"][:count] = False if exchanges.local is None else exchanges.local
        rows[tour] = row = len(exchanges.removed)
        removed[tour, :row], added[tour, :row] = exchanges.removed, exchanges.added
        owners[tour, :row] = np.repeat(np.arange(count), sizes)
        # on a device exchanges come to lie in any order, the edges of each one behind another
        order = np.argsort(np.random.default_rng(row).permutation(count)[owners[tour, :row]], kind="stable")
        for array in (removed, added, owners):
            array[tour, :row] = array[tour, order]
    with device.working():
        part.load(tours)
        for name, values in (
            ("exchanges", table),
            ("edges", rows),
            ("removed", removed),
            ("added", added),
            ("owners", owners),
        ):
            device.write(f"window_{name}", values)
        part.commit()
        states = np.empty(table.shape, np.int32)
        device.read(states, "window_states")
        positions = np.empty((part.tours, n), np.int32)
        device.read(positions, "window_positions")
        laid = part.read()
    assert np.array_equal(np.take_along_axis(positions, laid, axis=1), np.tile(np.arange(n), (len(laid), 1)))
    return states == ACCEPTED, laid


def compare(part: Windows, tours: np.ndarray, found: list[Exchanges]) -> np.ndarray:
    """Commit on both sides; return what was taken."""
    taken, laid = commit(part, tours, found)
    for own, tour, new, exchanges in zip(taken, tours, laid, found, strict=True):
        accepted, expected = host.commit(tour, exchanges)
        assert np.array_equal(own[: len(accepted)], accepted)
        assert not own[len(accepted) :].any()
        assert np.array_equal(new, expected)
    return taken


def double_bridge(n: int, places: np.ndarray) -> tuple[Pairs, Pairs]:
    """Four edges out, at four places: stretches B, C, D behind the first become D, C, B."""
    a, b, c, d = map(int, np.sort(places))
    end = (d + 1) % n
    return [(a, a + 1), (b, b + 1), (c, c + 1), (d, end)], [(a, c + 1), (d, b + 1), (c, a + 1), (b, end)]


def moved_city(n: int, city: int, to: int) -> tuple[Pairs, Pairs]:
    """A city moves behind the one at ``to``: its position loses both edges."""
    before, after, behind = (city - 1) % n, (city + 1) % n, (to + 1) % n
    return [(before, city), (city, after), (to, behind)], [(before, after), (to, city), (city, behind)]


def random_exchanges(rng: np.random.Generator, n: int, count: int) -> Exchanges:
    """Valid ones alone; many have the same gain, and some lengthen the tour, as those of annealing do."""
    removed, added = [], []
    for _ in range(count):
        kind, start = rng.integers(4), int(rng.integers(n))
        if kind == 0 or n < 8:
            out, into = reversal(n, start, int(rng.integers(2, n - 1)))
        elif kind == 1:
            first = int(rng.integers(1, n // 2 - 1))
            out, into = segment_swap(n, start, first, int(rng.integers(1, n - 1 - first)))
        elif kind == 2:
            out, into = moved_city(n, start, (start + int(rng.integers(2, n - 2))) % n)
        else:
            out, into = double_bridge(n, rng.choice(n, 4, replace=False))
        removed.append(out)
        added.append(into)
    exchanges = pack(rng.choice([-2, -1, *range(1, 9)], count), removed, added)
    return exchanges._replace(local=rng.random(count) < 0.5)


def tours_of(rng: np.random.Generator, n: int, m: int) -> np.ndarray:
    return np.array([rng.permutation(n) for _ in range(m)], np.int32)


def random_cases(n: int, tours: int, windows: int, times: int) -> None:
    rng = np.random.default_rng(n)
    part = part_of(n, tours, windows)
    taken = refused = 0
    for _ in range(times):
        found = [random_exchanges(rng, n, int(rng.integers(windows + 1))) for _ in range(tours)]
        accepted = compare(part, tours_of(rng, n, tours), found)
        taken += int(accepted.sum())
        refused += sum(len(e.gain) for e in found) - int(accepted.sum())
    assert taken > 0
    assert refused > 0  # some contradict each other


# 8 is the fewest of an engine; all positions of so few are claimed at once
@pytest.mark.parametrize(
    ("n", "tours", "windows"), [(8, 2, 4), (9, 1, 7), (33, 3, 6), (64, 2, 20), (200, 1, 30)]
)
def test_the_same_as_on_the_host(n, tours, windows, emulated):
    random_cases(n, tours, windows, 12)


def test_exchanges_that_split_the_tour_together(emulated):
    # each closes a ring around the one inside it: all are dropped, after more rounds than the gentle ones
    n, count = 120, 18
    removed = [[(i * 3, i * 3 + 1), (n - 2 - i * 3, n - 1 - i * 3)] for i in range(count)]
    added = [[(i * 3, n - 1 - i * 3), (n - 2 - i * 3, i * 3 + 1)] for i in range(count)]
    taken = compare(
        part_of(n, 1, count), np.arange(n, dtype=np.int32)[None], [pack([1] * count, removed, added)]
    )
    assert not taken.any()


def test_of_those_that_gain_nothing_the_host_takes_few_and_the_device_all_that_fit(emulated):
    n, count = 300, 30
    parts = [reversal(n, 10 * i, 4) for i in range(count)]  # no two share a position
    exchanges = pack([0] * count, [p[0] for p in parts], [p[1] for p in parts])
    taken, _ = commit(part_of(n, 1, count), np.arange(n, dtype=np.int32)[None], [exchanges])
    assert taken.all()
    assert host.commit(np.arange(n, dtype=np.int32), exchanges)[0].sum() == 16 + 300 // 256


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("n", "tours", "windows"), [(9, 2, 5), (300, 3, 60), (5000, 4, 300), (20_000, 2, 1100)]
)
def test_the_same_as_on_the_host_by_all_threads(n, tours, windows):
    random_cases(n, tours, windows, 5)


@pytest.mark.gpu
@pytest.mark.slow
def test_a_million_cities():
    n, count = 1_000_000, 6000
    rng = np.random.default_rng(3)
    parts = []
    for start in rng.integers(0, n, count):
        if rng.random() < 0.5:
            parts.append(segment_swap(n, int(start), *map(int, rng.integers(1, 400, 2))))
        else:
            parts.append(reversal(n, int(start), int(rng.integers(2, n - 2))))
    exchanges = pack(rng.integers(1, 99, count), [p[0] for p in parts], [p[1] for p in parts])
    swaps = np.array([len(p[0]) == 3 for p in parts])
    taken = compare(part_of(n, 1, count), tours_of(rng, n, 1), [exchanges._replace(local=swaps)])
    assert taken.sum() > count / 2
    # stretches that change places nearby, and those that turn up to half of the tour around
    assert taken[0][swaps].mean() > 0.8
    assert taken[0][~swaps].mean() > 0.8
