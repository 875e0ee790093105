"""Weights of edges, computed from trails and distances: rows of candidates, all edges, and alias tables."""

from __future__ import annotations

import math

import numpy as np

from pymoo_gpuaco.backends.cuda.device import Device, Source
from pymoo_gpuaco.backends.cuda.device.parts import round_up
from pymoo_gpuaco.backends.cuda.instance.cities import Cities
from pymoo_gpuaco.backends.cuda.instance.lists import ListPlan, node_bytes
from pymoo_gpuaco.backends.cuda.trails.trails import Trails
from pymoo_gpuaco.candidates.listed import ListedInstance
from pymoo_gpuaco.colony.heuristic import eta_power, relative_eta_power

_SMALL, _LARGE = 2.0**-20, 2.0**20  # of median distances; between them the unit is 1


def eta_unit(instance: ListedInstance) -> float:
    """Return the unit of distances in weights: 1, or a power of two if the median nearest distance is tiny or huge.

    The largest beta is 20, and (1 / d)^20 is a number in double precision for d from 1e-15 to 1e15.
    """
    near = float(np.median(instance.neighbour_distances[:, 0]))
    return 1.0 if near == 0.0 or _SMALL <= near <= _LARGE else math.ldexp(1.0, math.frexp(near)[1])


def weight_definitions(instance: ListedInstance) -> dict[str, object]:
    """Return the definitions of kernels that include weight.cuh, besides those of the cities."""
    unit = eta_unit(instance)
    return {} if unit == 1.0 else {"ETA_UNIT": unit.hex()}


_REST_BYTES, _SPARE_BYTES = 16, 8  # Rest and Spare of weight.cuh


def inverse_bytes(n: int) -> int:
    """Return the bytes of one float a city, rounded up to 16."""
    return round_up(4 * n, 16)


class Rows:
    """Weights of rows: ``factors`` (n, stride), or their inverses with ``race``.

    With dense trails also ``raised`` (n, 32), the strongest edges that are not candidates, and ``outside_bound`` (n,),
    an upper bound of the others. With ``all_cities`` also ``row_cities`` (n, stride), ``spares`` (n, 32), ``inverses``
    (n,) and ``rests`` (n,), see weights.cu.
    """

    def __init__(
        self,
        device: Device,
        cities: Cities,
        trails: Trails,
        exponents: tuple[float, float, float],
        race: bool,
        all_cities: bool = False,
    ) -> None:
        self._device = device
        self._cities = cities
        self._trails = trails
        self._exponents = exponents
        self._race = race
        self._all_cities = all_cities
        self._lists = ListPlan(cities.n, cities.instance.k)

    def sources(self) -> list[Source]:
        """Return the kernel of weights."""
        definitions = {
            **self._cities.definitions(),
            **self._lists.definitions(),
            **weight_definitions(self._cities.instance),
            "RACE": int(self._race),
            "REST": int(self._all_cities),
            "DENSE": int(self._trails.dense),
            "REST_BYTES": _REST_BYTES,
            "SPARE_BYTES": _SPARE_BYTES,
        }
        return [Source("weights/weights.cu", definitions, ["weigh_rows"])]

    def needed(self) -> dict[str, int]:
        """Return the bytes of every array."""
        n, places = self._cities.n, self._cities.n * self._lists.stride
        needed = {"factors": 4 * places, "eta_beta": 8 * n * self._lists.k}
        if self._trails.dense:
            needed["raised"] = 32 * node_bytes(n) * n
            needed["outside_bound"] = 4 * n
        if self._all_cities:
            needed["row_cities"] = node_bytes(n) * places
            needed["spares"] = 32 * _SPARE_BYTES * n
            needed["inverses"] = inverse_bytes(n)
            needed["rests"] = _REST_BYTES * n
        return needed

    @property
    def _mask_bytes(self) -> int:
        """Shared memory of a block: a bit a city."""
        return 4 * -(-self._cities.n // 32) if self._trails.dense else 0

    def prepare(self) -> None:
        """Compute eta^beta of the candidates (n, k) and prepare the arguments of all launches."""
        device, distances = self._device, self._cities.instance.neighbour_distances
        _, beta, shortest = self._exponents
        if self._all_cities:  # in the unit of weights that kernels compute, see weight.cuh
            eta_beta = eta_power(distances, eta_unit(self._cities.instance), shortest, beta)
        else:
            eta_beta = relative_eta_power(distances, shortest, beta)
        device.write("eta_beta", eta_beta)
        device.allow_shared("weigh_rows", self._mask_bytes)
        if self._all_cities:  # walks copy it in units of 16 bytes, and no weight fills the last
            device.arrays.zero("inverses", inverse_bytes(self._cities.n))
        address, optional = device.arrays.address, device.arrays.optional
        inputs = ("tau", "neighbours", "eta_beta")
        outputs = ("outside_bound", "raised", "rest_sums", "row_cities", "spares", "inverses", "rests")
        self._before = (*map(address, inputs), *self._cities.arguments(), *self._exponents)
        self._after = (self._lists.k, address("factors"), *map(optional, outputs))

    def weigh(self) -> None:
        """Compute the weights."""
        common = float(self._trails.default_trail[0])
        arguments = (*self._before, common, *self._after)
        self._device.launch("weigh_rows", self._cities.n, 32, *arguments, shared=self._mask_bytes)


_ROWS = 4096  # of alias tables that are built together
_ALIAS_BYTES = 8  # Alias of weight.cuh


class Aliases:
    """Alias tables of eta^beta over the cities that are not candidates: ``aliases`` (n, n), ``rest_sums`` (n,)."""

    def __init__(self, device: Device, cities: Cities, exponents: tuple[float, float, float]) -> None:
        self._device = device
        self._cities = cities
        self._exponents = exponents
        self._rows = min(cities.n, _ROWS)

    def sources(self) -> list[Source]:
        """Return the kernel."""
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
        """Build the tables of all rows in batches, because each row needs a workspace."""
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


SHARES, INVERSES, SCALED = 0, 1, 2  # FORM in all_weights.cu


class AllWeights:
    """Weights of all edges: ``factors`` (n, stride) from the current trails, in one of three forms; 0 past n."""

    def __init__(
        self,
        device: Device,
        cities: Cities,
        exponents: tuple[float, float, float],
        form: int,
        stride: int | None = None,
    ) -> None:
        self._device = device
        self._cities = cities
        self._exponents = exponents
        self._form = form
        self._stride = stride or cities.n

    def sources(self) -> list[Source]:
        """Return the kernel of weights."""
        cities = self._cities
        definitions = {**cities.definitions(), **weight_definitions(cities.instance), "FORM": self._form}
        return [Source("weights/all_weights.cu", definitions, ["all_weights"])]

    def needed(self) -> dict[str, int]:
        """Return the bytes of the array."""
        return {"factors": 4 * self._cities.n * self._stride}

    def prepare(self) -> None:
        """Prepare the arguments of all launches."""
        address, cities = self._device.arrays.address, self._cities.arguments()
        self._arguments = address("tau"), *cities, *self._exponents, self._stride, address("factors")

    def weigh(self) -> None:
        """Compute the weights."""
        self._device.launch("all_weights", self._cities.n, 256, *self._arguments)
