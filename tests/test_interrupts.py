"""Ctrl-C at any moment of a run: what is there stays true, the best tour is in ``opt``, and the run goes on."""

from __future__ import annotations

import _thread
import copy
import gc
import os
import signal
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from pymoo.optimize import minimize

from pymoo_gpuaco import (
    GPU2PPLS,
    GPUACS,
    GPUAS,
    GPUBWAS,
    GPUFACO,
    GPUMMAS,
    TSP,
    GPU2OptIHC,
    GPUMemetic,
    MultiObjectiveTSP,
    OpenPath,
)
from pymoo_gpuaco.runtime.stop import Stop, end_on_interrupt
from tests.algorithm_cases import shorten_climbs
from tests.fuzz import SEED, TIMES
from tests.interrupts import is_interrupted, needs_timer, timed_interrupts

pytestmark = pytest.mark.filterwarnings("ignore:the problem's objective")


class Tolls(TSP):
    """Tours cost more than their length."""

    def _evaluate(self, x: Any, out: Any, *_: Any, **__: Any) -> None:
        super()._evaluate(x, out)
        out["F"] = out["F"] + 100.0 * (np.abs(np.diff(x, axis=1)) > 20).sum(axis=1)[:, None]


class Kind(NamedTuple):
    """A kind of run."""

    algorithm: Callable[[], Any]
    problem: Callable[[], Any]
    n_gen: int = 4


def cities(n: int) -> np.ndarray:
    return np.random.default_rng(n).random((n, 2)) * 100.0


CPU: dict[str, Any] = {"backend": "cpu"}
FEW_ANTS: dict[str, Any] = {"n_ants": 8, **CPU}
MATRIX = np.random.default_rng(50).integers(1, 1000, (50, 50)).astype(float)
GIVEN = np.array([np.random.default_rng(seed).permutation(80) for seed in range(3)])
KINDS = {
    "memetic": Kind(lambda: GPUMemetic(**CPU), lambda: TSP(cities(200))),
    "memetic, evolution": Kind(lambda: GPUMemetic(population_size=9, **CPU), lambda: TSP(cities(60)), 8),
    "memetic, one tour": Kind(lambda: GPUMemetic(population_size=1, **CPU), lambda: TSP(cities(400))),
    "memetic, path": Kind(lambda: GPUMemetic(**CPU), lambda: OpenPath(cities(80), start=3)),
    "memetic, asymmetric": Kind(lambda: GPUMemetic(**CPU), lambda: TSP(matrix=MATRIX)),
    "memetic, given tours": Kind(lambda: GPUMemetic(sampling=GIVEN, **CPU), lambda: TSP(cities(80))),
    "memetic, few cities": Kind(lambda: GPUMemetic(**CPU), lambda: TSP(cities(9))),
    "GPUMMAS": Kind(lambda: GPUMMAS(restart_after=1, **FEW_ANTS), lambda: TSP(cities(60))),
    "GPUAS": Kind(lambda: GPUAS(**FEW_ANTS), lambda: TSP(cities(60))),
    "GPUBWAS": Kind(lambda: GPUBWAS(**FEW_ANTS), lambda: TSP(cities(60))),
    "GPUACS": Kind(lambda: GPUACS(**FEW_ANTS), lambda: TSP(cities(60))),
    "GPUFACO": Kind(lambda: GPUFACO(**FEW_ANTS), lambda: TSP(cities(60))),
    "GPU2OptIHC": Kind(lambda: GPU2OptIHC(**CPU), lambda: TSP(cities(60))),
    "custom objective": Kind(lambda: GPUMMAS(**FEW_ANTS), lambda: Tolls(cities(40))),
}


def assert_sound(algorithm: Any) -> None:
    """The best tour is one, of exactly its length, and the engine's tours have the lengths that it says."""
    result, problem = algorithm.result(), algorithm.problem
    if result.X is not None:
        assert np.array_equal(np.sort(result.X), np.arange(problem.n_var))
        assert problem.evaluate(result.X[None], return_values_of=["F"])[0, 0] == result.F[0]
    if hasattr(algorithm.engine, "best_tours"):
        tours, lengths = algorithm.engine.best_tours(99)
        assert np.array_equal(np.sort(tours, axis=1), np.tile(np.arange(problem.n_var), (len(tours), 1)))
        assert np.array_equal(problem.tour_lengths(tours), lengths)


@needs_timer
@pytest.mark.parametrize("kind", KINDS.values(), ids=list(KINDS))
def test_an_interrupt_at_any_moment_loses_no_tour_and_the_run_goes_on(kind, monkeypatch):
    shorten_climbs(monkeypatch)
    whole = minimize(kind.problem(), kind.algorithm(), ("n_gen", kind.n_gen), seed=1)
    again = kind.algorithm().setup(kind.problem(), termination=("n_gen", kind.n_gen), seed=1)
    began = time.monotonic()
    again.run()
    took, rng, struck, number = time.monotonic() - began, np.random.default_rng(SEED), 0, -1
    assert np.array_equal(again.result().X, whole.X)
    while (number := number + 1) < 6 * TIMES or not struck:
        if not struck:
            took *= 0.8  # runs may be faster than the first one was
        algorithm = kind.algorithm().setup(kind.problem(), termination=("n_gen", kind.n_gen), seed=1)
        with timed_interrupts() as strike_after:
            try:
                strike_after(max(1e-4, rng.uniform(0.0, took)))
                algorithm.run()
                strike_after(0.0)
            except KeyboardInterrupt:
                struck += 1
        assert_sound(algorithm)
        kept = algorithm.result().F
        if number % 3 == 2:
            algorithm = copy.deepcopy(algorithm)
        algorithm.run()
        assert_sound(algorithm)
        assert kept is None or algorithm.result().F[0] <= kept[0]
        assert not algorithm.has_next()


class Struck(TSP):
    """Interrupts the next evaluation of many tours, once, and remembers these tours."""

    armed, tours = False, np.empty(0)

    def _evaluate(self, x: Any, out: Any, *_: Any, **__: Any) -> None:
        if self.armed and len(x) > 1:
            self.armed, self.tours = False, x.copy()
            raise KeyboardInterrupt
        super()._evaluate(x, out)


@pytest.mark.parametrize("seed", range(4))
def test_an_interrupted_first_evaluation_leaves_the_shortest_tour_to_the_run(seed):
    problem = Struck(cities(40))
    algorithm = GPUAS(n_elites=8, **FEW_ANTS).setup(problem, termination=("n_gen", 1), seed=seed)
    problem.armed = True
    with pytest.raises(KeyboardInterrupt):
        algorithm.next()
    shortest = problem.tour_lengths(problem.tours).min()
    assert algorithm.opt[0].F[0] == shortest
    algorithm.run()
    assert algorithm.result().F[0] <= shortest


@needs_timer
def test_an_interrupt_at_any_moment_keeps_the_front():
    rng = np.random.default_rng(SEED)
    problem = MultiObjectiveTSP([TSP(cities(30)), TSP(rng.random((30, 2)))])
    for _ in range(6 * TIMES):
        algorithm = GPU2PPLS(**CPU).setup(problem, termination=("n_gen", 3), seed=1)
        with timed_interrupts() as strike_after:
            try:
                strike_after(rng.uniform(1e-4, 0.1))
                algorithm.run()
                strike_after(0.0)
            except KeyboardInterrupt:
                pass
        kept = algorithm.result().F
        algorithm.run()
        result = algorithm.result()
        assert np.array_equal(problem.tour_lengths(result.X), result.F)
        for lengths in kept if kept is not None else ():
            assert (lengths >= result.F).all(axis=1).any()


def test_ctrl_c_of_this_process_ends_a_long_generation():
    problem = TSP(cities(2000))
    algorithm = GPUMMAS(local_search="2opt", n_ants=100_000, candidate_list_size=None, **CPU)
    algorithm.setup(problem, termination=("n_gen", 1), seed=1)
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    construct = algorithm.engine.construct
    algorithm.engine.construct = lambda key: (timer.start(), construct(key))[1]
    with pytest.raises(KeyboardInterrupt):
        algorithm.run()
    assert problem.tour_length(algorithm.result().X) == algorithm.result().F[0]


def test_a_run_in_another_thread_goes_on_when_the_main_thread_is_interrupted():
    problem, results = TSP(cities(60)), []
    began = threading.Event()

    def run() -> None:
        def note(_: Any) -> None:
            began.set()

        results.append(minimize(problem, GPUMMAS(**FEW_ANTS), ("n_gen", 5), seed=1, callback=note).F[0])

    thread = threading.Thread(target=run)
    thread.start()
    try:
        began.wait(60.0)
        _thread.interrupt_main()
        while thread.is_alive():
            thread.join(0.01)
        pytest.fail("the main thread was not interrupted")
    except KeyboardInterrupt:
        thread.join()
    assert results == [minimize(problem, GPUMMAS(**FEW_ANTS), ("n_gen", 5), seed=1).F[0]]


@needs_timer
def test_a_handler_of_the_user_is_called_at_once_and_changes_no_run():
    problem, during = TSP(cities(200)), []
    algorithm = GPUMemetic(**CPU).setup(problem, termination=("n_gen", 6), seed=1)
    search = algorithm.engine.search

    def strike(key: int) -> None:
        signal.raise_signal(signal.SIGALRM)
        assert len(during) == 1
        algorithm.engine.search = search
        return search(key)

    algorithm.engine.search = strike
    before = signal.signal(signal.SIGALRM, lambda number, frame: during.append(frame))
    try:
        algorithm.run()
    finally:
        signal.signal(signal.SIGALRM, before)
    assert len(during) == 1
    assert np.array_equal(algorithm.result().X, minimize(problem, GPUMemetic(**CPU), ("n_gen", 6), seed=1).X)


@needs_timer
def test_an_interrupt_is_raised_once_the_work_has_ended_and_leaves_handlers_and_stops_as_they_were():
    stop, ended = Stop(), []

    def work() -> None:
        assert signal.getsignal(signal.SIGALRM) is not signal.default_int_handler
        while not stop.passed():
            stop.reset()  # at the start of each of many calls
            assert stop.is_set() == stop.interrupted
            time.sleep(0.001)
        ended.append(end_on_interrupt(lambda: 3))  # within another

    is_interrupted(0.1, lambda: end_on_interrupt(work, stop))
    assert ended == [3]
    assert not stop.passed()
    with timed_interrupts():
        assert end_on_interrupt(lambda: 4, stop) == 4
        assert signal.getsignal(signal.SIGALRM) is signal.default_int_handler


@needs_timer
def test_an_interrupt_keeps_no_object_that_the_work_used():
    class Used:
        pass

    kept: list[weakref.ref[Used]] = []

    def work() -> None:
        used = Used()
        kept.append(weakref.ref(used))
        signal.raise_signal(signal.SIGALRM)

    gc.collect()
    gc.disable()  # a cycle of frames would be freed only by a collection
    try:
        with timed_interrupts(), pytest.raises(KeyboardInterrupt):
            end_on_interrupt(work)
        assert kept[0]() is None
    finally:
        gc.enable()


@needs_timer
def test_a_second_interrupt_waits_for_the_end_too():
    stop, ended = Stop(), []
    with timed_interrupts() as strike_after:

        def work() -> None:
            while not stop.passed():
                time.sleep(0.001)
            strike_after(0.02)
            time.sleep(0.1)
            ended.append(True)

        strike_after(0.02)
        with pytest.raises(KeyboardInterrupt):
            end_on_interrupt(work, stop)
    assert ended == [True]


def test_work_that_fails_says_so_and_leaves_handlers_as_they_were():
    def fail() -> None:
        raise ZeroDivisionError("of the work")

    with pytest.raises(ZeroDivisionError, match="of the work"):
        end_on_interrupt(fail)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_interrupt_while_handlers_are_put_back_leaves_none_behind(monkeypatch):
    set_handler, stop = signal.signal, Stop()

    def interrupted(number: int, handler: Any) -> Any:
        before = set_handler(number, handler)
        if handler is signal.default_int_handler:
            monkeypatch.undo()
            raise KeyboardInterrupt
        return before

    with timed_interrupts():
        monkeypatch.setattr(signal, "signal", interrupted)
        with pytest.raises(KeyboardInterrupt):
            end_on_interrupt(stop.interrupt, stop)
    found = signal.getsignal(signal.SIGINT)
    set_handler(signal.SIGINT, signal.default_int_handler)
    assert found is signal.default_int_handler
    assert not stop.interrupted
