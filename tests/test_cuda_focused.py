"""How focused ants on CUDA spend a run: first tours, generations, and what they take over from each other.

The kernels run on the host.
"""

from __future__ import annotations

import time

import numpy as np
import pytest

from pymoo_gpuaco import exchange
from pymoo_gpuaco.backends.cuda import focused
from pymoo_gpuaco.candidates.lists import listed_instance
from pymoo_gpuaco.colony.parameters import ColonyParameters
from tests.engine_cases import cloud
from tests.test_exchange import edges_of
from tests.windows_cases import emulated, folder

__all__ = ["emulated", "folder"]  # fixtures

N = 200


def engine_of(n_ants: int = 4, n: int = N) -> focused.CudaFocused:
    parameters = ColonyParameters(n_ants=n_ants, construction="focused", candidates="quadrant")
    return focused.CudaFocused(listed_instance(cloud(n, 3), 8), parameters)


@pytest.mark.parametrize("key", [1, 2**64 - 1])
def test_first_tours_differ(key, emulated):
    tours = engine_of(8)._first_tours(key)
    assert len({frozenset(edges_of(tour)) for tour in tours}) == len(tours) > 3
    for tour in tours:
        assert np.array_equal(np.sort(tour), np.arange(N))
    assert edges_of(tours[0]) == edges_of(engine_of().greedy_tour()[0])


def test_what_comes_before_annealing_is_a_generation_apart(emulated, monkeypatch):
    monkeypatch.setattr(focused, "ROUNDS", 8)
    engine = engine_of()
    repair = engine._descent
    assert 0 < repair < 8
    for key, (progress, rounds) in enumerate([(0.0, repair), (0.4, 8), (0.5, 8)]):
        engine.expect(progress)
        step = engine._step
        engine.construct(key)
        assert engine.n_built == rounds * engine.n_ants
        assert engine._cooling.started == (0.4 if key else 0.0)
    assert step == pytest.approx(0.1 / 8)  # a tenth of the run for the rounds of the second


def test_where_time_is_limited_the_first_generations_are_short(emulated, monkeypatch):
    monkeypatch.setattr(focused, "ROUNDS", 8)
    monkeypatch.setattr(focused, "ROUNDS_AT_ONCE", 2)
    engine = engine_of()
    engine.construct(0)
    engine.stop_at(time.monotonic() + 600.0)
    rounds = []
    for key in range(1, 6):
        engine.construct(key)
        rounds.append(engine.n_built // engine.n_ants)
    assert rounds == [2, 2, 4, 8, 8]


def test_the_pace_is_that_of_generations_that_only_anneal(emulated, monkeypatch):
    monkeypatch.setattr(focused, "ROUNDS", 4)
    monkeypatch.setattr(focused, "FIRST_CYCLE", 6)
    engine = engine_of()
    engine.expect(0.0)
    while engine._descent > 0:
        engine.construct(0)
    engine.expect(0.1)
    engine.construct(1)
    engine.expect(0.2)
    assert engine._step == pytest.approx(0.1 / 4)
    engine.construct(2)  # ends a cycle, which takes time
    assert engine._cooling.cycle == 1
    engine.expect(0.5)
    assert engine._step == pytest.approx(0.1 / 4)


@pytest.mark.parametrize("better", [False, True])
def test_at_the_end_of_a_cycle_all_tours_take_over_and_the_best_is_one_of_them(better, emulated, monkeypatch):
    calls = []

    def assemble(graph, tours, key, until):
        calls.append((tours.copy(), exchange.assemble(graph, tours, key, until)))
        return calls[-1][1]

    monkeypatch.setattr(focused, "assemble", assemble)
    engine = engine_of(4)
    engine.construct(0)
    before = engine._tours.read_all()
    if better:  # than all that are at hand
        improved = engine.improve(before, 7)[0]
        lengths = [engine.instance.tour_length(tour) for tour in improved]
        assert min(lengths) < engine._best_length
        engine._best, engine._best_length = improved[np.argmin(lengths)], min(lengths)
    best, least = engine._best.copy(), engine._best_length
    with engine.device.working():
        engine._assemble(5)
        after = engine.windows.read()
    ((given, taken),) = calls
    if better:
        longest = int(engine._tours.lengths.argmax())
        assert np.array_equal(given[longest], best)
        assert np.array_equal(np.delete(given, longest, axis=0), np.delete(before, longest, axis=0))
    else:
        assert np.array_equal(given, before)
    assert np.array_equal(after, taken)
    lengths = [engine.instance.tour_length(tour) for tour in after]
    assert engine._best_length == min(lengths) <= least
    assert engine.instance.tour_length(engine._best) == engine._best_length


def test_a_tour_alone_is_merged_with_the_best(emulated):
    engine = engine_of(1)
    engine.construct(0)
    assert engine.windows.tours == 1
    assert engine._cooling.first == focused.FIRST_CYCLE_ALONE
    tour, least = engine._tours.read_all()[0], engine._best_length
    worse = tour.copy()
    worse[20:30] = worse[20:30][::-1].copy()
    engine._take(worse[None])
    with engine.device.working():
        engine._assemble(5)
        assert edges_of(engine.windows.read()[0]) == edges_of(tour)
    assert engine._best_length == least
