"""GPU2PPLS ends in time and after Ctrl-C, at any moment, and keeps its front."""

from __future__ import annotations

import _thread

import numpy as np
import pytest
from pymoo.optimize import minimize

from pymoo_gpuaco import (
    GPU2PPLS,
)
from pymoo_gpuaco.pareto import search
from pymoo_gpuaco.runtime.stop import end_on_interrupt
from tests.engine_cases import BACKENDS
from tests.front_cases import beaten, dominated, engine_of, problem_of


def test_what_is_taken_in_may_end_between_two_parts(monkeypatch):
    runs = []
    monkeypatch.setattr(search, "_MOST_TAKEN", 40)
    for ends in (False, True):
        algorithm = GPU2PPLS().setup(problem_of(30, 3), termination=("n_gen", 100), seed=1)
        engine = algorithm.engine
        while engine.n_sums == 0 or len(engine._unsolved_sums().rows):
            algorithm.next()
        before = engine.n_tours
        taken = engine._take

        def take(*given, engine=engine, taken=taken, ends=ends):
            taken(*given)
            engine._device.stop.until = 0.0 if ends else None

        monkeypatch.setattr(engine, "_take", take)
        engine.search(7)
        runs.append((engine, engine.n_tours - before))
    (whole, many), (part, few) = runs
    assert many > 40 == few
    joined = whole.archive.lengths[whole.joined]
    assert len(joined) > 40
    assert len(np.unique(joined, axis=0)) == len(joined)
    explored = [engine.archive.explored[engine.archive.front] for engine in (whole, part)]
    assert (explored[0] > 0).sum() > (
        explored[1] > 0
    ).sum()  # members with children that were not taken: once more


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_limit_of_time_ends_a_generation_and_keeps_the_front(backend):
    problem = problem_of(60)
    result = minimize(problem, GPU2PPLS(backend=backend), ("time", 0.5), seed=1)
    assert (problem.tour_lengths(result.X) == result.F).all()
    assert not dominated(result.F).any()


def _to_the_end(algorithm: GPU2PPLS) -> None:
    while algorithm.has_next():
        algorithm.next()


def test_an_interrupt_keeps_the_front(monkeypatch):
    problem = problem_of(30)
    algorithm = GPU2PPLS(4)
    algorithm.setup(problem, termination=("n_gen", 50), seed=1)
    engine = algorithm.engine
    look, calls = engine._device.explore, []

    def interrupted(*args):
        calls.append(engine.archive.points.copy())
        if len(calls) == 3:
            _thread.interrupt_main()
        return look(*args)

    monkeypatch.setattr(engine._device, "explore", interrupted)
    with pytest.raises(KeyboardInterrupt):
        _to_the_end(algorithm)
    result = algorithm.result()
    # members are there, or better ones
    assert (result.F[None] <= calls[-1][:, None]).all(axis=2).any(axis=1).all()
    assert (problem.tour_lengths(result.X) == result.F).all()
    assert not dominated(result.F).any()
    algorithm.next()
    assert not beaten(algorithm.opt.get("F"), result.F).any()


def test_an_interrupt_leaves_no_tour_half_taken_in(monkeypatch):
    problem = problem_of(20)
    engine = engine_of(problem)
    update_front = engine.archive._update_front

    def interrupted(first):
        _thread.interrupt_main()
        update_front(first)

    monkeypatch.setattr(engine.archive, "_update_front", interrupted)
    with pytest.raises(KeyboardInterrupt):
        end_on_interrupt(lambda: engine.accept(np.arange(20)[None]), engine.stop)
    assert engine.front()[1].tolist() == problem.tour_lengths(np.arange(20)[None]).tolist()


def test_sums_that_are_cut_short_are_solved_yet(monkeypatch):
    engine = engine_of(problem_of(20))
    device = engine._device
    descend = device.descend

    def cut_short(*args):
        device.stop.flag[0] = 1
        return descend(*args)

    for known in (0, 2):  # each alone, then sums of both
        with monkeypatch.context() as patch:
            patch.setattr(device, "descend", cut_short)
            engine.search(1)
        assert engine.n_sums == known
        assert not engine._solved
        engine.search(2)
        assert engine.n_sums > known


@pytest.mark.parametrize("work", ["explore", "slide", "corners"])
def test_what_is_cut_short_is_not_noted_as_done(work, monkeypatch):
    engine = engine_of(problem_of(20))
    device, cut = engine._device, []
    owner, name = (search, "assemble_pairs") if work == "corners" else (device, work)
    whole = getattr(owner, name)

    def cut_short(*given, **named):
        cut.append(work)
        device.stop.flag[0] = 1
        return whole(*given, **named)

    def done() -> int:
        """How much is noted of such work."""
        return int((engine.archive.explored > 0).sum()) if work == "explore" else len(engine._along)

    with monkeypatch.context() as patch:
        patch.setattr(owner, name, cut_short)
        key = 0
        while not cut:
            before, key = done(), key + 1
            engine.search(key)
    assert done() == before
    while done() == before:  # it is done now
        key += 1
        engine.search(key)
        assert key < 60
