"""Weights of edges, computed from trails and distances: rows of candidates, all edges, and alias tables."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pymoo_gpuaco.backends.cuda.device import Device, KernelGroup, Source, round_up, sources
from pymoo_gpuaco.backends.cuda.instance import DeviceInstance, ListPlan, node_bytes
from pymoo_gpuaco.backends.cuda.trails import Trails
from pymoo_gpuaco.candidates.listed import ListedInstance
from pymoo_gpuaco.colony.parameters import ColonyParameters
from pymoo_gpuaco.colony.selection import CODES
from pymoo_gpuaco.colony.trails import eta_power, relative_eta_power

_SMALL, _LARGE = 2.0**-20, 2.0**20  # for median nearest distances between them the unit is 1
_REST_BYTES, _SPARE_BYTES, _ALIAS_BYTES = 16, 8, 8  # sizes of Rest, Spare and Alias (weight.cuh)
#: codes of the selection rules in kernels
RULE_CODES = {f"RULE_{name.upper()}": code for name, code in CODES.items()}
_ROWS = 4096  # maximum alias tables that are built together


@dataclass(frozen=True)
class WalkContext:
    """Arguments of all weights and walks."""

    device: Device
    cities: DeviceInstance
    parameters: ColonyParameters
    m: int  # maximum ants of a launch

    @property
    def n(self) -> int:
        """Number of cities."""
        return self.cities.n

    @cached_property
    def arguments(self) -> tuple[float, ...]:
        """Arguments of CITIES_PARAMETERS, then alpha, beta, and the minimum distance in eta = 1 / d."""
        p, shortest = self.parameters, self.cities.instance.least_distance
        return *self.cities.arguments, float(p.alpha), float(p.beta), shortest

    @cached_property
    def lists(self) -> ListPlan:
        """Shapes of the candidate lists."""
        return ListPlan(self.n, self.cities.instance.k)

    def source(
        self,
        file: str,
        kernels: Sequence[str],
        own: Mapping[str, object],
        shared: Mapping[str, int] | None = None,
    ) -> Source:
        """Return a file of kernels, with its ``own`` definitions and those of ``definitions`` that it reads."""
        read = set(re.findall(r"[A-Z]\w+", sources.with_includes(file).decode()))
        common = {name: value for name, value in self.definitions.items() if name in read}
        return Source(file, {**common, **own}, kernels, shared or {})

    @cached_property
    def definitions(self) -> dict[str, object]:
        """Definitions common to all kernels of weights and walks; for alpha = 1 and beta = 2 they compute no powers."""
        p, instance = self.parameters, self.cities.instance
        return {
            **self.cities.definitions,
            **self.lists.definitions(),
            "NEAR": self.lists.near,
            "SYMMETRIC": int(instance.symmetric),
            "ETA_UNIT": eta_unit(instance).hex(),
            "ALPHA_IS_ONE": int(p.alpha == 1.0),
            "USUAL_EXPONENTS": int(p.alpha == 1.0 and p.beta == 2.0),
            **RULE_CODES,
        }


def eta_unit(instance: ListedInstance) -> float:
    """Return the unit of distances in weights: 1, or a power of two if the median nearest distance is tiny or huge.

    The maximum beta is 20, and (1 / d)^20 does not over- or underflow in double precision for d from 1e-15 to 1e15.
    """
    near = float(np.median(instance.nearest))
    return 1.0 if near == 0.0 or _SMALL <= near <= _LARGE else math.ldexp(1.0, math.frexp(near)[1])


def inverse_bytes(n: int) -> int:
    """Return the bytes of one float per city, rounded up to a multiple of 16."""
    return round_up(4 * n, 16)


class CandidateWeights(KernelGroup):
    """Weights of candidate edges: ``factors`` (n, stride), or their inverses with ``race``.

    With dense trails also ``raised`` (n, 32), the strongest edges that are not candidates, and ``outside_bound`` (n,),
    an upper bound of all other trails. With ``all_cities`` also ``row_cities`` (n, stride), ``spares`` (n, 32),
    ``inverses`` (n,) and ``rests`` (n,), see weights.cu.
    """

    def __init__(self, context: WalkContext, trails: Trails, race: bool, all_cities: bool = False) -> None:
        self._setting = context
        self._trails = trails
        self._all_cities = all_cities
        n, lists = context.n, context.lists
        own = {"RACE": int(race), "REST": int(all_cities), "DENSE": int(trails.dense)}
        shared = {"weigh_rows": 4 * -(-n // 32) if trails.dense else 0}  # one bit per city
        self.sources = [context.source("weights/weights.cu", [*shared], own, shared)]
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
        """Compute eta^beta of the candidates (n, k)."""
        instance, beta = self._setting.cities.instance, float(self._setting.parameters.beta)
        distances, shortest = instance.neighbour_distances, instance.least_distance
        if self._all_cities:  # in the unit of kernels, see weight.cuh
            eta_beta = eta_power(distances, eta_unit(instance), shortest, beta)
        else:
            eta_beta = relative_eta_power(distances, shortest, beta)
        self._setting.device.write("eta_beta", eta_beta)
        a = self._setting.device.arrays
        self._inputs = (a["tau"], a["neighbours"], a["eta_beta"], *self._setting.arguments)
        outputs = (
            "factors",
            "outside_bound",
            "raised",
            "rest_sums",
            "row_cities",
            "spares",
            "inverses",
            "rests",
        )
        self._outputs = (instance.k, *map(a.optional, outputs))

    def weigh(self) -> None:
        """Compute the weights."""
        context, common = self._setting, float(self._trails.default_trail[0])
        context.device.launch("weigh_rows", context.n, 32, *self._inputs, common, *self._outputs)


class Aliases(KernelGroup):
    """Alias tables of eta^beta over the cities that are not candidates: ``aliases`` (n, n), ``rest_sums`` (n,)."""

    def __init__(self, context: WalkContext) -> None:
        self._setting = context
        n = context.n
        self._rows = min(n, _ROWS)
        self.sources = [context.source("weights/aliases.cu", ["build_aliases"], {})]
        self.needed = {
            "aliases": _ALIAS_BYTES * n * n,
            "rest_sums": 8 * n,
            "alias_weights": 8 * n * self._rows,
            "alias_stacks": 4 * n * self._rows,
        }

    def prepare(self) -> None:
        """Build the tables in batches of rows, because each row needs a workspace."""
        context, rows, a = self._setting, self._rows, self._setting.device.arrays
        before = (a["neighbours"], context.cities.instance.k, *context.arguments)
        after = (a["alias_weights"], a["alias_stacks"], a["aliases"], a["rest_sums"])
        for first in range(0, context.n, rows):
            context.device.launch("build_aliases", -(-rows // 32), 32, *before, first, rows, *after)


class AllWeights(KernelGroup):
    """Weights of all edges: ``factors`` (n, stride), 0 past n, scaled, or inverse with ``race``."""

    def __init__(self, context: WalkContext, race: bool, stride: int) -> None:
        self._setting = context
        self._stride = stride
        self.sources = [context.source("weights/all_weights.cu", ["all_weights"], {"RACE": int(race)})]
        self.needed = {"factors": 4 * context.n * stride}

    def weigh(self) -> None:
        """Compute the weights from the current trails."""
        context, a = self._setting, self._setting.device.arrays
        arguments = (a["tau"], *context.arguments, self._stride, a["factors"])
        context.device.launch("all_weights", context.n, 256, *arguments)
