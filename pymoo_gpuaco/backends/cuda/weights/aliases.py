"""Alias tables of eta^beta over the cities that are no candidates, for drawing from them at once."""

from __future__ import annotations

import numpy as np

from pymoo_gpuaco.backends.cuda.device import Device, Source
from pymoo_gpuaco.backends.cuda.instance.cities import CITIES, Cities
from pymoo_gpuaco.backends.cuda.layout import Layout


class Aliases:
    """``aliases`` (n, n) and ``rest_sums`` (n,)."""

    def __init__(
        self,
        device: Device,
        cities: Cities,
        plan: Layout,
        exponents: tuple[float, float, float],
    ) -> None:
        self._device = device
        self._cities = cities
        self._plan = plan
        self._exponents = exponents

    def sources(self) -> list[Source]:
        """Return the kernel that builds them."""
        kernels = {"build_aliases": "Pi" + CITIES + "fffiiPPPP"}
        return [Source("weights/aliases.cu", self._cities.definitions(), kernels)]

    def needed(self) -> dict[str, int]:
        """Return the bytes of every array."""
        plan = self._plan
        return {
            "aliases": 8 * plan.n * plan.n,
            "rest_sums": 8 * plan.n,
            "alias_scratch": 12 * plan.n * plan.alias_rows,
        }

    def prepare(self) -> None:
        """Build the tables of all rows, some at a time: each row needs room to be sorted in."""
        a, plan = self._device.arrays, self._plan
        stacks = int(a["alias_scratch"]) + 8 * plan.n * plan.alias_rows
        for first in range(0, plan.n, plan.alias_rows):
            self._device.launch(
                "build_aliases",
                -(-plan.alias_rows // 32),
                32,
                a["neighbours"],
                plan.k,
                *self._cities.arguments(),
                *self._exponents,
                first,
                plan.alias_rows,
                a["alias_scratch"],
                np.intp(stacks),
                a["aliases"],
                a["rest_sums"],
            )
