"""CUDA events around the kernels of an engine, and the bare iterations that they are measured in."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from pymoo_gpuaco import GPUMMAS
from pymoo_gpuaco.algorithms.ask_tell import Tours
from pymoo_gpuaco.algorithms.base import TourAlgorithm
from pymoo_gpuaco.backends import SearchEngine

#: what is in a kernel's name, and the part of an iteration that it does; all others change trails
_WORDS = {
    "weigh": "weights",
    "construct": "walk",
    "improve": "local search",
    "measure": "measuring",
    "tour_neighbours": "measuring",
}
PARTS = ("weights", "walk", "local search", "measuring", "trails")


def part_of(kernel: str) -> str:
    """The one of ``PARTS`` that a kernel does."""
    return next((part for word, part in _WORDS.items() if word in kernel), "trails")


class KernelClock:
    """Times every launch of an engine; ``read`` gives milliseconds by part since it was last called.

    ``part`` names the part that a kernel does: one of ``PARTS``, or with ``str`` the kernel itself.
    """

    def __init__(self, engine: Any, part: Callable[[str], str] = part_of) -> None:
        import pycuda.driver as cuda

        self._device = engine.device
        self._launches: list[tuple[str, Any, Any]] = []
        inner = self._device.launch

        def timed(name: str, *arguments: Any, **options: Any) -> None:
            first, last = cuda.Event(), cuda.Event()
            first.record()
            inner(name, *arguments, **options)
            last.record()
            self._launches.append((part(name), first, last))

        self._device.launch = timed

    def read(self) -> dict[str, float]:
        with self._device.working():
            if self._launches:
                self._launches[-1][2].synchronize()
            done = [(part, last.time_since(first)) for part, first, last in self._launches]
            self._launches.clear()  # events must be gone before the context is left
        times = dict.fromkeys(PARTS, 0.0)
        for part, milliseconds in done:
            times[part] = times.get(part, 0.0) + milliseconds
        return times


def iterations(algorithm: GPUMMAS, count: int, seed: int) -> Iterator[float]:
    """Run ``count`` iterations of the engine and the trail updates, nothing of pymoo; yield the best length of each."""
    algorithm._begin()
    for key in np.random.default_rng(seed).integers(0, 2**64, count, dtype=np.uint64):
        yield iterate(algorithm, int(key))


def iterate(algorithm: TourAlgorithm, key: int) -> float:
    """One iteration of a colony's engine and its trail update; return the length of its best tour."""
    engine = algorithm.engine
    if isinstance(engine, SearchEngine):
        engine.search(key)
        told = Tours(*engine.best_tours())
    else:
        lengths = engine.construct(key)
        best = lengths.argmin()[None]
        told = Tours(engine.tours(best), lengths[best])
    algorithm._learn(told)
    return float(told.lengths[0])
