"""Parameters of the memetic search follow from the instance, the threads and the time, as their docstring says."""

from __future__ import annotations

import pytest

from pymoo_gpuaco.colony.parameters import FEWEST_CITIES_TO_KICK
from pymoo_gpuaco.memetic import parameters as module
from pymoo_gpuaco.memetic.parameters import MemeticParameters


def test_tours_are_as_many_as_threads_and_at_least_two() -> None:
    assert [MemeticParameters().tours(threads) for threads in (1, 2, 7, 5000)] == [2, 2, 7, 1000]


@pytest.mark.parametrize(
    ("seconds", "n", "threads", "tours"),
    [
        (1.0, 2200, 2, 20),  # 22,000 cities a second and thread
        (5.0, 2200, 1, 50),
        (1.0, 3667, 1, None),  # 5.9995 tours: as many as usual
        (1.0, 3666, 1, 8),  # 6.0011: as few as evolve
        (6.4, 2200, 1, 64),
        (25.6, 2200, 1, 128),  # four times the time, twice the tours
        (30.0, 200, 8, 1000),  # of 1,300
        (0.0, 8, 1, None),
        (27.2, 25_001, 1, None),  # 11,000 cities: windows of one tour are usual, and 11.97 tours are too few
        (27.3, 25_001, 1, 12),
        (120.0, 100_000, 1, 13),
        (64.0, 44_000, 1, 16),
        (64.0, 44_000, 4, 32),  # of many cities four times the time is twice the tours from 16 on
        (1e5, 100_001, 2, None),
    ],
)
def test_as_many_tours_as_pay_in_the_time_of_a_run(
    seconds: float, n: int, threads: int, tours: int | None
) -> None:
    assert MemeticParameters().tours_in(seconds, n, threads) == tours
    if n > 25_000:
        assert MemeticParameters(whole_up_to=25_000).tours_in(seconds, n, threads) is None


def test_stretches_grow_with_the_kicks_and_are_never_shorter_than_short() -> None:
    own, enough = MemeticParameters(), module.KICKS_FOR_LONG_STRETCHES
    assert own.longest_stretch(0.0) == module.SHORT_STRETCH
    assert own.longest_stretch(0.8 * enough) == round(0.8 * module.LONG_STRETCH) > module.SHORT_STRETCH
    assert own.longest_stretch(enough) == own.longest_stretch(9.0 * enough) == module.LONG_STRETCH


def test_windows_share_a_tour_among_threads_and_none_has_more_than_half_of_it() -> None:
    own = MemeticParameters()
    assert own.cities_per_window(200_000, 1) == own.cities_per_window(200_000, 4) == 50_000
    assert own.cities_per_window(200_000, 64) == 20_000
    assert own.cities_per_window(90_001, 3) == 30_001
    assert own.cities_per_window(90_000, 2) == 45_000
    assert own.cities_per_window(30_001, 2) == 15_001  # half of them
    assert own.cities_per_window(10**6, 10**6) < own.cities_per_window(10**6, 1) < 10**6 // 2
    assert own.cities_per_window(9, 3) == FEWEST_CITIES_TO_KICK


def test_many_tours_share_the_trials_of_a_round() -> None:
    assert MemeticParameters().trials_per_tour(10**6, 10**5, True) == 1
