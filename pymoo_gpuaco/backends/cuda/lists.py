"""Candidate lists on the device, and the longer lists that are read when all candidates are visited."""

from __future__ import annotations

import numpy as np

from pymoo_gpuaco.backends.cuda.device import Device, Source
from pymoo_gpuaco.backends.cuda.layout import Layout
from pymoo_gpuaco.backends.cuda.neighbours import LENGTH, near_cities
from pymoo_gpuaco.problems.instance import Instance


class Lists:
    """``neighbours`` (n, k), ``candidates`` (n, stride) padded, ``near_cities`` (n, 128), ``eta_beta`` (n, k)."""

    def __init__(
        self, device: Device, instance: Instance, plan: Layout, alpha: float, beta: float, shortest: float
    ) -> None:
        self._device = device
        self._instance = instance
        self._plan = plan
        self._alpha, self._beta, self._shortest = alpha, beta, shortest

    def sources(self) -> list[Source]:
        """Return the kernels of padded rows."""
        plan = self._plan
        definitions = {
            "RACE": int(plan.race),
            "SLOTS": plan.slots,
            "NODE": plan.node,
            "DENSE": int(plan.dense),
            "ALPHA_IS_ONE": int(self._alpha == 1.0),
        }
        return [Source("weights.cu", definitions, {"pad_candidates": "PiiP", "candidate_weights": "PPPdiiP"})]

    def needed(self) -> dict[str, int]:
        """Return the bytes of every array."""
        plan = self._plan
        return {
            "neighbours": 4 * plan.n * plan.k,
            "eta_beta": 8 * plan.n * plan.k,
            "candidates": plan.node_bytes * plan.n * plan.stride,
            "near_cities": plan.node_bytes * plan.n * LENGTH,
        }

    def prepare(self) -> None:
        """Upload and pad."""
        instance, device, plan = self._instance, self._device, self._plan
        a = device.arrays
        device.write("neighbours", np.asarray(instance.neighbours, np.int32))
        node = np.uint16 if plan.node_bytes == 2 else np.uint32
        device.write("near_cities", near_cities(instance).astype(node))
        device.write("eta_beta", np.maximum(instance.neighbour_distances, self._shortest) ** -self._beta)
        device.call("pad_candidates", plan.n * plan.stride, a["neighbours"], plan.n, plan.k, a["candidates"])

    def weigh(self) -> None:
        """Candidate weights of every row, from the trails as they stand, into ``factors`` (n, stride)."""
        a, plan = self._device.arrays, self._plan
        arrays = (a["tau"], a["neighbours"], a["eta_beta"])
        self._device.call(
            "candidate_weights", 32 * plan.n, *arrays, self._alpha, plan.n, plan.k, a["factors"]
        )
