"""The three tour constructions of ACS with local trail updates (paper 003)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pymoo_gpuaco.backends.cuda.device import Part, Source, round_keys
from pymoo_gpuaco.backends.cuda.instance import Lists
from pymoo_gpuaco.backends.cuda.trails import Rings, Trails
from pymoo_gpuaco.backends.cuda.walks.walk import (
    Setting,
    Shape,
    Walk,
    ants_per_multiprocessor,
    free_shape,
    tabu_plan,
)
from pymoo_gpuaco.backends.cuda.weights import Rows
from pymoo_gpuaco.candidates.listed import ListedInstance
from pymoo_gpuaco.colony.trails import relative_eta_power

_NEVER = 2**31 - 1  # update period without local updates
# Minimum eta^beta of a candidate / the largest of its row: the product with a trail does not underflow in float.
_LEAST_ETA = 1e-25
_WALKER_BYTES = 48  # sizeof(Walker) of acs_sync.cu
_MOST_WARPS = 32  # maximum warps of a block of synchronous ants
# Number of cities from which the host waits for a synchronous walk; shorter walks take milliseconds.
_WAIT_FROM = 2000
_FEWEST_ANTS_PER_BLOCK = 8  # of synchronous ants: barriers of fewer blocks are faster
STATIC_SHARED_BYTES = 1024  # upper bound of the static shared memory of kernels


def heuristic(instance: ListedInstance, beta: float, shortest: float, stride: int) -> np.ndarray:
    """Return eta^beta of the candidates / the largest of their row, (n, stride) float32, padded with 0."""
    eta = relative_eta_power(instance.neighbour_distances, shortest, beta)
    table = np.zeros((instance.n, stride), np.float32)
    table[:, : instance.k] = np.maximum(eta, _LEAST_ETA)
    return table


class _AcsWalk(Walk):
    """Base of the ACS walks: choice by Eqs. (1) and (2), local update by Eq. (3)."""

    def __init__(self, setting: Setting, trails: Trails | Rings) -> None:
        self._setting = setting
        self._device = setting.device
        self._memory = trails
        lists = Lists(setting.device, setting.cities.instance)
        self.parts: list[Part] = [lists]
        p, self._stride = setting.parameters, lists.plan.stride
        self._xi = p.resolved_xi(setting.colony)
        self._period = min(p.local_update_period, _NEVER) if self._xi > 0.0 else _NEVER
        self.needed: dict[str, int] = {"eta": 4 * setting.n * self._stride}
        self._definitions: dict[str, object] = {
            **setting.cities.definitions,
            **lists.plan.definitions(),
            "NEAR": lists.plan.near,
            "SYMMETRIC": int(setting.cities.instance.symmetric),
            "ALPHA_IS_ONE": int(p.alpha == 1.0),
            "USUAL_EXPONENTS": int(setting.usual_exponents),
        }

    def prepare(self) -> None:
        """Upload the heuristic and prepare the arguments of all launches."""
        p, cities = self._setting.parameters, self._setting.cities
        alpha, beta, shortest = self._setting.exponents
        self._device.write("eta", heuristic(cities.instance, beta, shortest, self._stride))
        self._before = (*cities.arguments(), alpha, beta, shortest, float(p.q0))

    def _walk(self, key: int, ants: int, ant_bytes: int, memory: int, tours: Any) -> tuple[Any, ...]:
        """Return the arguments of CITIES_PARAMETERS and ACS_PARAMETERS (acs.cuh), common to the three kernels."""
        update, sizes = (self._memory.tau0, self._xi, self._period), (ants, ant_bytes, memory)
        return (*self._before, *update, *round_keys(key), *sizes, int(tours))


class _FreeWalk(_AcsWalk):
    """Walk of ants without synchronisation; ``deterministic``: one warp builds the tours one after another."""

    _kernel: str

    def __init__(self, setting: Setting, trails: Trails | Rings) -> None:
        super().__init__(setting, trails)
        p, limits = setting.parameters, setting.device.limits
        self.tabu = tabu_plan(p.tabu, "bitmask", setting.n, limits)
        self.shape = Shape(1, 1) if p.deterministic else free_shape(setting.m, self.tabu.size, limits)
        self.needed |= self.tabu.needed(self.shape)

    def _source(self, definitions: dict[str, object]) -> Source:
        """Return the source of the kernel, with additional definitions."""
        shared = {self._kernel: self.tabu.shared_bytes(self.shape)}
        definitions = {**self._definitions, **self.tabu.definitions(), **definitions}
        return Source(f"walks/{self._kernel}.cu", definitions, [*shared], shared)

    def _launch(self, trails: tuple[Any, ...], key: int, tours: Any, ants: int) -> None:
        walk = self._walk(key, ants, self.tabu.size, self._device.arrays.optional("tabus"), tours)
        self._device.launch(self._kernel, self.shape.blocks_of(ants), self.shape.threads, *trails, *walk)


class _OpenTrails(Part):
    """Trails of the candidate edges in ``rows`` (n, stride) during a walk.

    With dense trails the walk also reads trails of other edges, with the bounds of ``Rows``. ``definitions`` are those
    of the walk; ``counted``: its ants count their updates.
    """

    def __init__(
        self, setting: Setting, trails: Trails, definitions: dict[str, object], stride: int, counted: bool
    ) -> None:
        self._device = setting.device
        self._instance = setting.cities.instance
        self._trails = trails
        self._places = setting.n * stride
        rows = Rows(setting.device, setting.cities, trails, setting.exponents, race=False)
        self._outside = rows if trails.dense else None
        self.parts = [rows] if trails.dense else []
        kernels = ["open_rows", "close_rows"]
        if counted and trails.dense:
            kernels.append("update_outside")
        own = {**definitions, "DENSE": int(trails.dense), "COUNTED": int(counted)}
        del own["SYMMETRIC"]  # not used in acs_rows.cu
        self.sources = [Source("walks/acs_rows.cu", own, kernels)]
        self.needed = {"rows": 4 * self._places}

    def prepare(self) -> None:
        """Prepare the arguments of all launches."""
        address, optional = self._device.arrays.address, self._device.arrays.optional
        walk_arguments = ("rows", "eta", "candidates", "tau")
        outside = (optional("outside_bound"), address("near_cities"), optional("raised"))
        # the first arguments of a walk on rows
        self.walk_arguments = (*map(address, walk_arguments), *outside)
        lists = (address("neighbours"), self._instance.n, self._instance.k)
        self._opened = (address("tau"), *lists), (optional("outside_bound"), address("rows"))
        self._closed = (address("rows"), *lists), (optional("counts"), address("tau"))

    def open(self) -> None:
        """Launch the copy to the rows."""
        if self._outside:
            self._outside.weigh()
        before, after = self._opened
        self._device.call("open_rows", self._places, *before, self._trails.tau0, *after)

    def close(self, keep_log2: float) -> None:
        """Launch the copy back to the trails, with counted updates."""
        before, after = self._closed
        numbers = self._trails.tau0, keep_log2
        self._device.call("close_rows", self._places, *before, *numbers, *after)


class RelaxedWalk(_FreeWalk):
    """ACS-GPU-Alt: ants build whole tours on trails that other ants change concurrently."""

    _kernel = "acs_relaxed"

    def __init__(self, setting: Setting, trails: Trails) -> None:
        super().__init__(setting, trails)
        self._open = _OpenTrails(setting, trails, self._definitions, self._stride, counted=False)
        self.parts += [*self._open.parts, self._open]
        self.sources = [self._source({"DENSE": int(trails.dense)})]

    def build(self, key: int, tours: Any, ants: int) -> None:
        """Copy the trails to rows, walk, copy them back."""
        self._open.open()
        self._launch(self._open.walk_arguments, key, tours, ants)
        self._open.close(0.0)


class SyncWalk(_AcsWalk):
    """ACS-GPU: all ants step synchronously.

    Candidate edges get local updates after each step, all others after the construction.
    """

    def __init__(self, setting: Setting, trails: Trails) -> None:
        super().__init__(setting, trails)
        self._trails = trails
        self._open = _OpenTrails(setting, trails, self._definitions, self._stride, counted=True)
        self.parts += [*self._open.parts, self._open]
        m, limits = setting.m, setting.device.limits
        ants = max(_FEWEST_ANTS_PER_BLOCK, ants_per_multiprocessor(m, limits))
        self._ants_per_block = ants
        self._counted = False  # True: an unfinished walk may have left counts
        self._warps = min(_MOST_WARPS, ants)
        self._ant_bytes = _WALKER_BYTES + 16 * -(-setting.n // 128)  # with a bitmask, a multiple of 16 bytes
        shared = ants * self._ant_bytes
        self._shared = shared if shared + STATIC_SHARED_BYTES <= limits.shared_bytes else 0
        # log2(1 - xi); for xi = 1 a number such that 2^(c log) is 0 for every count c > 0
        self._keep_log2 = math.log2(1.0 - self._xi) if self._xi < 1.0 else -1e30
        definitions = {
            **self._definitions,
            "DENSE": int(trails.dense),
            "TABU_IN_SHARED": int(self._shared > 0),
            "MOST_WARPS": _MOST_WARPS,
        }
        self.sources = [Source("walks/acs_sync.cu", definitions, ["acs_sync"], {"acs_sync": self._shared})]
        self._count_bytes = 8 * setting.n * self._stride
        self.needed |= {"counts": self._count_bytes, "arrivals": 4}
        if not self._shared:
            self.needed |= {"walkers": m * self._ant_bytes}

    def prepare(self) -> None:
        """Upload the heuristic and prepare the arguments of all launches."""
        super().prepare()
        names = ("counts", "arrivals", "fault", "halt")
        self._after = (self._keep_log2, *map(self._device.arrays.address, names))

    def build(self, key: int, tours: Any, ants: int) -> None:
        """Copy the trails to rows, walk, and apply the counted updates.

        The host waits for a long walk; if it halts the walk (``Device.halted``), trails are unchanged.
        """
        device, n = self._device, self._setting.n
        a, blocks = device.arrays, -(-ants // self._ants_per_block)
        self._open.open()
        a.zero("arrivals", 4)
        if self._counted:
            a.zero("counts", self._count_bytes)
        self._counted = True
        walk = self._walk(key, ants, self._ant_bytes, a.optional("walkers"), tours)
        arguments = (*self._open.walk_arguments, *walk, *self._after)
        device.launch("acs_sync", blocks, 32 * self._warps, *arguments)
        if n >= _WAIT_FROM:
            device.mark()
            device.wait(early=True)
            if device.halted:
                return
        self._open.close(self._keep_log2)
        self._counted = False
        if self._trails.dense:
            edges = (int(tours), ants, n, self._trails.tau0, self._xi, a["tau"])
            device.call("update_outside", device.spread(ants * n), *edges)


class SelectiveWalk(_FreeWalk):
    """ACS-GPU-SPM: like ``RelaxedWalk``, on the selective pheromone memory."""

    _kernel = "acs_selective"

    def __init__(self, setting: Setting, rings: Rings) -> None:
        super().__init__(setting, rings)
        self._rings = rings
        self.sources = [self._source({"TRAILS": rings.width})]

    def build(self, key: int, tours: Any, ants: int) -> None:
        """Launch the walk."""
        a = self._device.arrays
        trails = (a["ring"], self._rings.default_trail[0], a["eta"], a["candidates"], a["near_cities"])
        self._launch(trails, key, tours, ants)
