"""CUDA events around the kernels of an engine, and the bare iterations that they are measured in."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from pymoo_gpuaco.algorithms.ask_tell import Tours
from pymoo_gpuaco.algorithms.base import TourAlgorithm
from pymoo_gpuaco.backends import SearchEngine

#: part of a kernel's name, and the part of an iteration that it does; all others change trails
_WORDS = {
    "weigh": "weights",
    "construct": "walk",
    "improve": "local search",
    "measure": "measuring",
}
PARTS = ("weights", "walk", "local search", "measuring", "trails")


def part_of(kernel: str) -> str:
    """The one of ``PARTS`` that a kernel does."""
    return next((part for word, part in _WORDS.items() if word in kernel), "trails")


class EventClock:
    """CUDA events around each call of one method of an object of an engine."""

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
        """First argument and milliseconds of each call since the last reading."""
        with self._device.working():
            if self._calls:
                self._calls[-1][2].synchronize()
            done = [(name, last.time_since(first)) for name, first, last in self._calls]
            self._calls.clear()  # events end where their context is current
        return done

    def milliseconds(self) -> np.ndarray:
        """Times of all calls but the first tenth; the calls that follow are not timed."""
        setattr(*self._undo)
        times = [milliseconds for _, milliseconds in self._read()]
        return np.array(times[len(times) // 10 :])


class KernelClock(EventClock):
    """Times every launch of an engine; ``read`` gives milliseconds by part since it was last called."""

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


def iterate(algorithm: TourAlgorithm, key: int) -> float:
    """One iteration of a colony's engine and its trail update; return the length of its best tour."""
    engine = algorithm.engine
    if isinstance(engine, SearchEngine):
        engine.search(key)
        evaluated = Tours(*engine.best_tours())
    else:
        lengths = engine.construct(key)
        best = lengths.argmin()[None]
        evaluated = Tours(engine.tours(best), lengths[best])
    algorithm._learn(evaluated)
    return float(evaluated.lengths[0])
