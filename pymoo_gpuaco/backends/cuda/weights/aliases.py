"""Alias tables of eta^beta over the cities that are no candidates, for drawing from them at once."""

from __future__ import annotations

import numpy as np

from pymoo_gpuaco.backends.cuda.device import Device, Source
from pymoo_gpuaco.backends.cuda.instance.cities import Cities
from pymoo_gpuaco.backends.cuda.weights.unit import weight_definitions

_ROWS = 4096  # whose tables are built together
_ALIAS_BYTES = 8  # Alias of alias.cuh


class Aliases:
    """``aliases`` (n, n) and ``rest_sums`` (n,)."""

    def __init__(self, device: Device, cities: Cities, exponents: tuple[float, float, float]) -> None:
        self._device = device
        self._cities = cities
        self._exponents = exponents
        self._rows = min(cities.n, _ROWS)

    def sources(self) -> list[Source]:
        """Return the kernel that builds them."""
        cities = self._cities
        definitions = {
            **cities.definitions(),
            **weight_definitions(cities.instance),
            "ALIAS_BYTES": _ALIAS_BYTES,
        }
        return [Source("weights/aliases.cu", definitions, ["build_aliases"])]

    def needed(self) -> dict[str, int]:
        """Return the bytes of every array."""
        n = self._cities.n
        return {"aliases": _ALIAS_BYTES * n * n, "rest_sums": 8 * n, "alias_scratch": 12 * n * self._rows}

    def prepare(self) -> None:
        """Build the tables of all rows, some at a time: each row needs room to be sorted in."""
        a, n, rows = self._device.arrays, self._cities.n, self._rows
        stacks = int(a["alias_scratch"]) + 8 * n * rows
        for first in range(0, n, rows):
            self._device.launch(
                "build_aliases",
                -(-rows // 32),
                32,
                a["neighbours"],
                self._cities.instance.k,
                *self._cities.arguments(),
                *self._exponents,
                first,
                rows,
                a["alias_scratch"],
                np.intp(stacks),
                a["aliases"],
                a["rest_sums"],
            )
