"""Kernel times by CUDA events, and iterations of an engine without pymoo."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from pymoo_gpuaco.algorithms.individuals import Permutations
from pymoo_gpuaco.algorithms.tour import TourAlgorithm

#: part of a kernel's name, and its part of an iteration; all other kernels change trails
_PART_BY_WORD = {
    "weigh": "weights",
    "construct": "walk",
    "improve": "local search",
    "measure": "measuring",
}
PARTS = ("weights", "walk", "local search", "measuring", "trails")


def part_of(kernel: str) -> str:
    """Return the part of an iteration, of ``PARTS``, of a kernel."""
    return next((part for word, part in _PART_BY_WORD.items() if word in kernel), "trails")


class EventClock:
    """CUDA events around each call of a method of an engine's object."""

    def __init__(self, engine: Any, thing: Any, method: str) -> None:
        import pycuda.driver as cuda

        self._device = engine.device
        self._calls: list[tuple[Any, Any, Any]] = []
        self._undo = thing, method, getattr(thing, method)
        inner = self._undo[2]

        def timed(*arguments: Any, **options: Any) -> None:
            first, last = cuda.Event(), cuda.Event()
            first.record()
            inner(*arguments, **options)
            last.record()
            self._calls.append((arguments[0], first, last))

        setattr(thing, method, timed)

    def _read(self) -> list[tuple[Any, float]]:
        """Return the first argument and the milliseconds of each call since the last reading."""
        with self._device.working():
            if self._calls:
                self._calls[-1][2].synchronize()
            done = [(name, last.time_since(first)) for name, first, last in self._calls]
            self._calls.clear()  # events must be destroyed while their context is current
        return done

    def milliseconds(self) -> np.ndarray:
        """Stop timing; return the times of all calls without the first tenth."""
        setattr(*self._undo)
        times = [milliseconds for _, milliseconds in self._read()]
        return np.array(times[len(times) // 10 :])


class KernelClock(EventClock):
    """Times of all launches of an engine; ``read`` returns the milliseconds by part since the last reading."""

    def __init__(self, engine: Any) -> None:
        super().__init__(engine, engine.device, "launch")

    def read(self) -> dict[str, float]:
        times = dict.fromkeys(PARTS, 0.0)
        for kernel, milliseconds in self._read():
            times[part_of(kernel)] += milliseconds
        return times


def iterations(algorithm: TourAlgorithm, count: int, seed: int) -> Iterator[float]:
    """Run ``count`` iterations of the engine and the trail updates without pymoo; yield the best length of each."""
    algorithm._begin()
    for key in np.random.default_rng(seed).integers(0, 2**64, count, dtype=np.uint64):
        yield iterate(algorithm, int(key))


def build(algorithm: TourAlgorithm, key: int) -> Permutations:
    """Build the tours of an iteration; return its elites, as those of `ask`: others would deposit for the ants."""
    rows, values, _ = algorithm._build(key)
    algorithm._asked_permutations = built = Permutations(rows, values)
    return built


def iterate(algorithm: TourAlgorithm, key: int) -> float:
    """Run one iteration of the engine and its trail update; return the length of the best tour."""
    built = build(algorithm, key)
    algorithm._learn(built)
    return float(built.values.min())
