"""Helpers of the tests of memetic engines, and generations that are short enough for an emulated device."""

from __future__ import annotations

import numpy as np
import pytest

from tests.engine_cases import cloud, memetic


@pytest.fixture(autouse=True)
def short(few_kicks: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Generations, and improving, of few kicks or rounds: an emulated device takes seconds for each round."""
    from pymoo_gpuaco.backends.cuda import search_device as engine
    from pymoo_gpuaco.backends.cuda import windows
    from pymoo_gpuaco.backends.cuda import windows as plan

    monkeypatch.setattr(engine, "ROUNDS", 4)
    monkeypatch.setattr(engine, "ROUNDS_AT_ONCE", 2)
    monkeypatch.setattr(engine, "FIRST_CYCLE", 6)
    monkeypatch.setattr(engine, "FIRST_CYCLE_OF_ONE", 6)
    monkeypatch.setattr(plan, "MOST_TOURS", 2)
    monkeypatch.setattr(windows, "_IMPROVEMENT", windows._IMPROVEMENT[::12])


def tours_of(engine):
    """The current tours of an engine."""
    with engine.device.working():
        return engine.device.read()


def best_of(engine):
    """Length of the best tour of a run."""
    return engine.best_tours()[1][0]


def same_generation(one, two, key) -> bool:
    """Return True if a generation gives two engines the same tours."""
    one.search(key)
    two.search(key)
    return np.array_equal(one.lengths, two.lengths) and np.array_equal(
        one.best_tours(3)[0], two.best_tours(3)[0]
    )


def before_and_after_a_generation(backend):
    """A problem, two equal engines, as made and after a generation of both, and five tours to improve."""
    problem = cloud(60, 1)
    engine, other = (memetic(problem, backend) for _ in range(2))
    start = np.array([np.random.default_rng(s).permutation(60) for s in range(5)])
    yield problem, engine, other, start
    engine.search(1)
    other.search(1)
    yield problem, engine, other, start


def same_state(one, two) -> bool:
    one, two = one.export_state(), two.export_state()
    return one.keys() == two.keys() and all(np.array_equal(one[name], two[name]) for name in one)
