"""A longer tour is kept with probability exp(-d / T): the windows of both engines, as they are searched in a run.

Each window is searched twice with the same key, so with the same kick and the same repair: once so hot that everything
is kept, which tells how much longer d its tour becomes, and once at temperature T.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy.stats import chi2

from pymoo_gpuaco.backends.cpu.windows.search import Kicks, WindowSearch
from pymoo_gpuaco.backends.cpu.windows.window import make_units
from pymoo_gpuaco.backends.cuda.windows import Trials
from pymoo_gpuaco.candidates.listed import make_graph
from pymoo_gpuaco.memetic.parameters import MemeticParameters
from pymoo_gpuaco.problems import TSP
from tests.engine_cases import cloud
from tests.instances import listed_instance
from tests.tour_cases import edges_of
from tests.windows_cases import emulated, search, windows_of

__all__ = ["emulated"]  # a fixture

N = 100
EVERYTHING = 1e9  # a temperature
TEMPERATURES = (20.0, 60.0)  # in lengths: a mean edge of the tour is 77
# of d / T, between which trials are counted together
BOUNDS = np.array([0.0, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0])
LEAST = 5.0  # trials of a group that are to be expected kept, and taken back


def chance_of(ratios: np.ndarray, kept: np.ndarray) -> float:
    """Probability of counts at least as far from exp(-d / T) as these, by chi-square; trials with d / T > 0."""
    chance = np.exp(-ratios)
    group = np.searchsorted(BOUNDS, ratios, side="left")
    statistic, groups = 0.0, 0
    for g in range(1, len(BOUNDS)):
        own = group == g
        expected = chance[own].sum()
        if min(expected, own.sum() - expected) >= LEAST:
            statistic += (kept[own].sum() - expected) ** 2 / (chance[own] * (1.0 - chance[own])).sum()
            groups += 1
    assert groups >= 4, "too few trials"
    return float(chi2.sf(statistic, groups))


def check(kept_at: Callable[[float], tuple[np.ndarray, np.ndarray]]) -> None:
    """``kept_at(T)``: which trials have changed their tour, and how much longer they have made it."""
    changed, longer = kept_at(EVERYTHING)
    ratios, kept = [], []
    for temperature in TEMPERATURES:
        now, by = kept_at(temperature)
        assert np.array_equal(by[now], longer[now])  # the same kicks and repairs
        assert not now[~changed].any()
        assert now[changed & (longer <= 0.0)].all()
        ratios.append(longer[longer > 0.0] / temperature)
        kept.append(now[longer > 0.0])
    assert chance_of(np.concatenate(ratios), np.concatenate(kept)) > 1e-4


def on_the_cpu(problem: TSP) -> WindowSearch:
    instance, parameters = listed_instance(problem, 8), MemeticParameters()
    return WindowSearch(instance, make_units(instance, make_graph(instance), parameters)[0], parameters)


def repaired(problem: TSP) -> np.ndarray:
    """A tour that no move of the CPU engine shortens, and few kicks do."""
    tours = np.arange(problem.n_cities, dtype=np.int32)[None].copy()
    on_the_cpu(problem).search_tours(tours, Kicks(50, 1), True)
    return tours[0]


def test_windows_on_the_cpu_keep_longer_tours_with_the_probability_of_metropolis():
    problem = cloud(N, 3)
    part, before = on_the_cpu(problem), repaired(problem)

    def kept_at(temperature: float) -> tuple[np.ndarray, np.ndarray]:
        tours = np.tile(before, (4000, 1))
        part.search_tours(tours, Kicks(1, 5, temperature, temperature), False)
        changed = np.array([edges_of(tour) != edges_of(before) for tour in tours])
        return changed, problem.tour_lengths(tours) - problem.tour_length(before)

    check(kept_at)


def check_on_cuda(tours: int, windows: int, keys: int) -> None:
    problem = cloud(N, 3)
    part, before = windows_of(problem, tours, windows), repaired(problem)
    rows, along = np.tile(before, (tours, 1)), problem.D[np.ix_(before, before)]

    def kept_at(temperature: float) -> tuple[np.ndarray, np.ndarray]:
        changed, longer = [], []
        for key in range(keys):
            for found in search(part, rows, key, Trials(trials=1, temperature=temperature)):
                added, removed = (along[tuple(pairs.T)] for pairs in (found.added, found.removed))
                sums = np.concatenate([[0.0], np.cumsum(added - removed)])
                changed.append(np.diff(found.first) > 0)
                longer.append(np.diff(sums[found.first]))
        return np.concatenate(changed), np.concatenate(longer)

    check(kept_at)


def test_windows_of_the_kernel_on_the_host_do_too(emulated):
    check_on_cuda(8, 40, 3)


@pytest.mark.gpu
def test_windows_on_a_device_do_too():
    check_on_cuda(32, 250, 5)
