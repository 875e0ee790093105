"""GPU2PPLS ends in time and after Ctrl-C, at any moment, and keeps its front."""

from __future__ import annotations

import _thread

import pytest
from pymoo.optimize import minimize

from pymoo_gpuaco import (
    GPU2PPLS,
)
from pymoo_gpuaco.pareto import search
from tests.engine_cases import BACKENDS
from tests.front_cases import beaten, dominated, engine_of, problem_of


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
        """Amount of work that is noted."""
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
