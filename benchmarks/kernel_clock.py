"""CUDA events around the kernels of an engine, and the bare iterations that they are measured in."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from pymoo_gpuaco import GPUMMAS

#: attribute of the engine that launches a kernel, and what that is called in the tables
PARTS = {
    "_lists": "weights",
    "_construction": "walk",
    "_search": "local search",
    "_cities": "measuring",
    "_trails": "trails",
}


class KernelClock:
    """Times every launch of an engine; ``read`` gives milliseconds by kernel since it was last called."""

    def __init__(self, engine: Any) -> None:
        import pycuda.driver as cuda

        self._device = engine._device
        self._launches: list[tuple[str, Any, Any]] = []
        inner = self._device.launch

        def timed(name: str, *arguments: Any, **options: Any) -> None:
            first, last = cuda.Event(), cuda.Event()
            first.record()
            inner(name, *arguments, **options)
            last.record()
            self._launches.append((name, first, last))

        self._device.launch = timed

    def read(self) -> dict[str, float]:
        with self._device.working():
            if self._launches:
                self._launches[-1][2].synchronize()
            done = [(name, last.time_since(first)) for name, first, last in self._launches]
            self._launches.clear()  # events must be gone before the context is left
        times: dict[str, float] = {}
        for name, milliseconds in done:
            times[name] = times.get(name, 0.0) + milliseconds
        return times


def part_of_kernel(engine: Any) -> dict[str, str]:
    """The part of ``PARTS`` for each kernel of an engine; kernels that prepare weights count as such."""
    parts = {}
    for attribute, part in vars(engine).items():
        for source in part.sources() if hasattr(part, "sources") else ():
            for kernel in source.kernels:
                parts[kernel] = "weights" if "weights" in kernel else PARTS.get(attribute, attribute)
    return parts


def iterations(algorithm: GPUMMAS, count: int, seed: int) -> Iterator[float]:
    """Run ``count`` iterations of the engine and the trail updates, nothing of pymoo; yield the best length of each."""
    algorithm._begin()
    engine = algorithm.engine
    for key in np.random.default_rng(seed).integers(0, 2**64, count, dtype=np.uint64):
        lengths = engine.construct(int(key))
        best = int(lengths.argmin())
        algorithm._learn(engine.tours([best])[0], float(lengths[best]))
        yield float(lengths[best])
