"""Weights of edges, computed from trails and distances: rows of candidates, all edges, and alias tables."""

from __future__ import annotations

import math

import numpy as np

from pymoo_gpuaco.backends.cuda.device import Device, Part, Source, round_up
from pymoo_gpuaco.backends.cuda.instance import Cities, ListPlan, node_bytes
from pymoo_gpuaco.backends.cuda.trails import Trails
from pymoo_gpuaco.candidates.listed import ListedInstance
from pymoo_gpuaco.colony.trails import eta_power, relative_eta_power

_SMALL, _LARGE = 2.0**-20, 2.0**20  # for median nearest distances between them the unit is 1
_REST_BYTES, _SPARE_BYTES, _ALIAS_BYTES = 16, 8, 8  # sizes of Rest, Spare and Alias (weight.cuh)
_ROWS = 4096  # maximum alias tables that are built together
SHARES, INVERSES, SCALED = 0, 1, 2  # FORM in all_weights.cu


def eta_unit(instance: ListedInstance) -> float:
    """Return the unit of distances in weights: 1, or a power of two if the median nearest distance is tiny or huge.

    The maximum beta is 20, and (1 / d)^20 does not over- or underflow in double precision for d from 1e-15 to 1e15.
    """
    near = float(np.median(instance.neighbour_distances[:, 0]))
    return 1.0 if near == 0.0 or _SMALL <= near <= _LARGE else math.ldexp(1.0, math.frexp(near)[1])


def _definitions(cities: Cities) -> dict[str, object]:
    """Return the definitions of kernels that include weight.cuh."""
    return {**cities.definitions, "ETA_UNIT": eta_unit(cities.instance).hex()}


def inverse_bytes(n: int) -> int:
    """Return the bytes of one float per city, rounded up to a multiple of 16."""
    return round_up(4 * n, 16)


class Rows(Part):
    """Weights of candidate edges: ``factors`` (n, stride), or their inverses with ``race``.

    With dense trails also ``raised`` (n, 32), the strongest edges that are not candidates, and ``outside_bound`` (n,),
    an upper bound of all other trails. With ``all_cities`` also ``row_cities`` (n, stride), ``spares`` (n, 32),
    ``inverses`` (n,) and ``rests`` (n,), see weights.cu.
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
        self._all_cities = all_cities
        n, lists = cities.n, ListPlan(cities.n, cities.instance.k)
        definitions = {
            **_definitions(cities),
            **lists.definitions(),
            "RACE": int(race),
            "REST": int(all_cities),
            "DENSE": int(trails.dense),
        }
        shared = {"weigh_rows": 4 * -(-n // 32) if trails.dense else 0}  # one bit per city
        self.sources = [Source("weights/weights.cu", definitions, [*shared], shared)]
        self.needed = {"factors": 4 * n * lists.stride, "eta_beta": 8 * n * lists.k}
        if trails.dense:
            self.needed |= {"raised": 32 * node_bytes(n) * n, "outside_bound": 4 * n}
        if all_cities:
            self.needed |= {
                "row_cities": node_bytes(n) * n * lists.stride,
                "spares": 32 * _SPARE_BYTES * n,
                "inverses": inverse_bytes(n),
                "rests": _REST_BYTES * n,
            }

    def prepare(self) -> None:
        """Compute eta^beta of the candidates (n, k) and prepare the arguments of all launches."""
        device, instance = self._device, self._cities.instance
        distances, (_, beta, shortest) = instance.neighbour_distances, self._exponents
        if self._all_cities:  # in the unit of kernels, see weight.cuh
            eta_beta = eta_power(distances, eta_unit(instance), shortest, beta)
        else:
            eta_beta = relative_eta_power(distances, shortest, beta)
        device.write("eta_beta", eta_beta)
        address, optional = device.arrays.address, device.arrays.optional
        inputs = ("tau", "neighbours", "eta_beta")
        outputs = ("outside_bound", "raised", "rest_sums", "row_cities", "spares", "inverses", "rests")
        self._before = (*map(address, inputs), *self._cities.arguments(), *self._exponents)
        self._after = (instance.k, address("factors"), *map(optional, outputs))

    def weigh(self) -> None:
        """Compute the weights."""
        common = float(self._trails.default_trail[0])
        arguments = (*self._before, common, *self._after)
        self._device.launch("weigh_rows", self._cities.n, 32, *arguments)


class Aliases(Part):
    """Alias tables of eta^beta over the cities that are not candidates: ``aliases`` (n, n), ``rest_sums`` (n,)."""

    def __init__(self, device: Device, cities: Cities, exponents: tuple[float, float, float]) -> None:
        self._device = device
        self._cities = cities
        self._exponents = exponents
        n = cities.n
        self._rows = min(n, _ROWS)
        self.sources = [Source("weights/aliases.cu", _definitions(cities), ["build_aliases"])]
        self.needed = {
            "aliases": _ALIAS_BYTES * n * n,
            "rest_sums": 8 * n,
            "alias_weights": 8 * n * self._rows,
            "alias_stacks": 4 * n * self._rows,
        }

    def prepare(self) -> None:
        """Build the tables in batches of rows, because each row needs a workspace."""
        address, rows = self._device.arrays.address, self._rows
        before = (address("neighbours"), self._cities.instance.k, *self._cities.arguments(), *self._exponents)
        after = [*map(address, ("alias_weights", "alias_stacks", "aliases", "rest_sums"))]
        for first in range(0, self._cities.n, rows):
            self._device.launch("build_aliases", -(-rows // 32), 32, *before, first, rows, *after)


class AllWeights(Part):
    """Weights of all edges from the current trails: ``factors`` (n, stride) in one of three forms, weight 0 past n."""

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
        self._stride = stride or cities.n
        self.sources = [
            Source("weights/all_weights.cu", {**_definitions(cities), "FORM": form}, ["all_weights"])
        ]
        self.needed = {"factors": 4 * cities.n * self._stride}

    def weigh(self) -> None:
        """Compute the weights."""
        a, cities = self._device.arrays, self._cities
        arguments = (a["tau"], *cities.arguments(), *self._exponents, self._stride, a["factors"])
        self._device.launch("all_weights", cities.n, 256, *arguments)
