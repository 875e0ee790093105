"""Tours shortened under weights: a block a tour."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.backends.cuda.device import Device, Part, Source, words
from pymoo_gpuaco.backends.cuda.pareto.edges import Edges

_THREADS = 256  # of one tour


class Descents(Part):
    """``descend`` of the protocol."""

    def __init__(self, device: Device, edges: Edges) -> None:
        self._device, self._edges = device, edges

    def sources(self) -> list[Source]:
        """Return the kernel."""
        definitions = {**self._edges.definitions(), "THREADS": _THREADS}
        return [Source("pareto/descend.cu", definitions, ["descend_tours"])]

    def descend(
        self, tours: NDArray[np.int32], weights: NDArray[np.float64], kicks: int, key: int
    ) -> NDArray[np.int32]:
        """Shorten tours (m, n), each under its weights (m, k), by so many kicks."""
        m, n = tours.shape
        device, found = self._device, tours.astype(np.uint16)
        if m == 0:
            return tours.copy()
        device.launch(
            "descend_tours",
            m,
            _THREADS,
            *self._edges.arguments(),
            device.put("descending", found),
            device.put("descending_weights", np.asarray(weights, np.float64)),
            kicks,
            *words(key),
            device.arrays["halt"],
            shared=11 * n,
        )
        device.wait_or_stop()
        device.read(found, "descending")
        return found.astype(np.int32)
