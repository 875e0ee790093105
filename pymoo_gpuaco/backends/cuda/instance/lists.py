"""Candidate lists on the device, and the longer lists that are read when all candidates are visited."""

from __future__ import annotations

import numpy as np

from pymoo_gpuaco.backends.cuda.device import Device, Source
from pymoo_gpuaco.backends.cuda.instance.neighbours import near_cities
from pymoo_gpuaco.backends.cuda.layout import Layout
from pymoo_gpuaco.problems.instance import Instance


class Lists:
    """``neighbours`` (n, k), ``candidates`` (n, stride) padded, ``near_cities`` (n, near), ``eta_beta`` (n, k)."""

    def __init__(
        self, device: Device, instance: Instance, plan: Layout, beta: float, shortest: float
    ) -> None:
        self._device = device
        self._instance = instance
        self._plan = plan
        self._beta, self._shortest = beta, shortest

    def sources(self) -> list[Source]:
        """Return the kernel of padded rows."""
        definitions = {"SLOTS": self._plan.slots, "NODE": self._plan.node}
        return [Source("instance/lists.cu", definitions, {"pad_candidates": "PiiP"})]

    def needed(self) -> dict[str, int]:
        """Return the bytes of every array."""
        plan = self._plan
        return {
            "neighbours": 4 * plan.n * plan.k,
            "eta_beta": 8 * plan.n * plan.k,
            "candidates": plan.node_bytes * plan.n * plan.stride,
            "near_cities": plan.node_bytes * plan.n * plan.near,
        }

    def prepare(self) -> None:
        """Upload and pad."""
        instance, device, plan = self._instance, self._device, self._plan
        a = device.arrays
        device.write("neighbours", np.asarray(instance.neighbours, np.int32))
        node = np.uint16 if plan.node_bytes == 2 else np.uint32
        device.write("near_cities", near_cities(instance, plan.near).astype(node))
        device.write("eta_beta", np.maximum(instance.neighbour_distances, self._shortest) ** -self._beta)
        device.call("pad_candidates", plan.n * plan.stride, a["neighbours"], plan.n, plan.k, a["candidates"])
