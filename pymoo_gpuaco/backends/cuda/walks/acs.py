"""The three tour constructions of ACS with local trail updates (Skinderowicz 2016)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pymoo_gpuaco.backends.cuda.device import KernelGroup, round_keys
from pymoo_gpuaco.backends.cuda.instance import CandidateRows
from pymoo_gpuaco.backends.cuda.trails import Rings, Trails
from pymoo_gpuaco.backends.cuda.walks.walk import (
    TABU_CODES,
    FreeWalk,
    Walk,
    ants_per_multiprocessor,
    free_shape,
    tabu_bytes,
)
from pymoo_gpuaco.backends.cuda.weights import CandidateWeights, WalkContext
from pymoo_gpuaco.backends.errors import BackendUnavailable
from pymoo_gpuaco.candidates.listed import ListedInstance
from pymoo_gpuaco.colony.trails import relative_eta_power

_NEVER = 2**31 - 1  # update period without local updates
# Minimum eta^beta of a candidate / the largest of its row: the product with a trail does not underflow in float.
_LEAST_ETA = 1e-25
_WALKER_BYTES = 32  # sizeof(Walker) of acs_sync.cu
_MOST_WARPS = 32  # maximum warps of a block of synchronous ants
# Number of cities from which the host waits for a synchronous walk; shorter walks take milliseconds.
_WAIT_FROM = 2000
_MOST_ARRIVALS = (1 << 30) - 1  # of blocks at the barriers of a walk, BLOCKS of acs_sync.cu
_FEWEST_ANTS_PER_BLOCK = 8  # of synchronous ants: barriers of fewer blocks are faster
STATIC_SHARED_BYTES = 1024  # upper bound of the static shared memory of kernels


def heuristic(instance: ListedInstance, beta: float, shortest: float, stride: int) -> np.ndarray:
    """Return eta^beta of the candidates / the largest of their row, (n, stride) float32, padded with 0."""
    eta = relative_eta_power(instance.neighbour_distances, shortest, beta)
    table = np.zeros((instance.n, stride), np.float32)
    table[:, : instance.k] = np.maximum(eta, _LEAST_ETA)
    return table


class _Choice(KernelGroup):
    """Heuristic ``eta`` (n, stride) and arguments of Eqs. (1) to (3), common to the three walks."""

    def __init__(self, context: WalkContext, trails: Trails | Rings) -> None:
        self._setting = context
        self._trails = trails
        p = context.parameters
        self.stride = context.lists.stride
        self.xi = p.resolved_xi(p.n_ants or context.m)
        self.period = min(p.local_update_period, _NEVER) if self.xi > 0.0 else _NEVER
        self.needed = {"eta": 4 * context.n * self.stride}

    def prepare(self) -> None:
        """Upload the heuristic."""
        instance, beta = self._setting.cities.instance, float(self._setting.parameters.beta)
        table = heuristic(instance, beta, instance.least_distance, self.stride)
        self._setting.device.write("eta", table)

    def arguments(self) -> tuple[Any, ...]:
        """Return the arguments of CITIES_PARAMETERS, and those of ACS_PARAMETERS up to the period."""
        update = self._trails.tau0, self.xi, self.period
        return *self._setting.arguments, float(self._setting.parameters.q0), *update


class _OpenTrails(KernelGroup):
    """Trails of the candidate edges in ``rows`` (n, stride) during a walk.

    With dense trails the walk also reads trails of other edges, with the bounds of ``CandidateWeights``. ``counted``:
    its ants count their updates in ``counts``.
    """

    def __init__(self, context: WalkContext, trails: Trails, choice: _Choice, counted: bool) -> None:
        self._device = context.device
        self._instance = context.cities.instance
        self._trails = trails
        self._places = context.n * choice.stride
        self._outside = [CandidateWeights(context, trails, race=False)] if trails.dense else []
        self.parts: list[KernelGroup] = [
            CandidateRows(context.device, self._instance),
            choice,
            *self._outside,
            self,
        ]
        kernels = ["open_rows", "close_rows"]
        if counted and trails.dense:
            kernels.append("update_outside")
        own = {"DENSE": int(trails.dense), "COUNTED": int(counted)}
        self.sources = [context.source("walks/acs_rows.cu", kernels, own)]
        self.needed = {"rows": 4 * self._places}
        if counted:
            self.needed |= {"counts": 8 * self._places}

    def open(self) -> tuple[int, ...]:
        """Launch the copy to the rows; return the first arguments of a walk on them."""
        for rows in self._outside:
            rows.weigh()
        a, instance = self._device.arrays, self._instance
        if "counts" in a:
            a.zero("counts", 8 * self._places)
        bound, rows_address = a.optional("outside_bound"), a["rows"]
        lists = (a["tau"], a["neighbours"], instance.n, instance.k)
        self._device.call("open_rows", self._places, *lists, self._trails.tau0, bound, rows_address)
        names = ("rows", "eta", "candidates", "tau", "outside_bound", "near_cities", "raised")
        return tuple(map(a.optional, names))

    def close(self, keep_log2: float = 0.0) -> None:
        """Launch the copy back to the trails, with counted updates."""
        a, instance = self._device.arrays, self._instance
        lists = (a["rows"], a["neighbours"], instance.n, instance.k)
        after = (self._trails.tau0, keep_log2, a.optional("counts"), a["tau"])
        self._device.call("close_rows", self._places, *lists, *after)


def _free_ants(context: WalkContext, definitions: dict[str, object]) -> dict[str, Any]:
    """Return arguments of ``FreeWalk``; with ``deterministic`` one warp builds the tours one after another."""
    p = context.parameters
    tabu = "bitmask" if p.tabu == "auto" else p.tabu
    m = 1 if p.deterministic else context.m
    return {
        "definitions": {"TABU": TABU_CODES[tabu], **definitions},
        "shape": free_shape(m, tabu_bytes(tabu, context.n), context.device.limits),
    }


class RelaxedWalk(FreeWalk):
    """ACS-GPU-Alt: ants build whole tours on trails that other ants change concurrently."""

    def __init__(self, context: WalkContext, trails: Trails) -> None:
        self._choice = _Choice(context, trails)
        how = _free_ants(context, {"DENSE": int(trails.dense)})
        super().__init__(context, "walks/acs_relaxed.cu", ["acs_relaxed"], **how)
        self._open = _OpenTrails(context, trails, self._choice, counted=False)
        self.parts = self._open.parts

    def build(self, key: int, tours: Any, ants: int) -> None:
        """Copy the trails to rows, walk, copy them back."""
        trails = self._open.open()
        self._launch((*trails, *self._choice.arguments()), key, tours, ants)
        self._open.close()


class SelectiveWalk(FreeWalk):
    """ACS-GPU-SPM: like ``RelaxedWalk``, on the selective pheromone memory."""

    def __init__(self, context: WalkContext, rings: Rings) -> None:
        self._rings = rings
        self._choice = _Choice(context, rings)
        how = _free_ants(context, {"TRAILS": rings.width})
        super().__init__(context, "walks/acs_selective.cu", ["acs_selective"], **how)
        self.parts = [CandidateRows(context.device, context.cities.instance), self._choice]

    def build(self, key: int, tours: Any, ants: int) -> None:
        """Launch the walk."""
        a = self._setting.device.arrays
        trails = (a["ring"], self._rings.default_trail[0], a["eta"], a["candidates"], a["near_cities"])
        self._launch((*trails, *self._choice.arguments()), key, tours, ants)


class SyncWalk(Walk):
    """ACS-GPU: all ants step synchronously.

    Candidate edges get local updates after each step, all others after the construction.
    """

    def __init__(self, context: WalkContext, trails: Trails) -> None:
        self._setting = context
        self._trails = trails
        self._choice = _Choice(context, trails)
        self._open = _OpenTrails(context, trails, self._choice, counted=True)
        self.parts = self._open.parts
        m, limits = context.m, context.device.limits
        self._ants_per_block = ants = max(_FEWEST_ANTS_PER_BLOCK, ants_per_multiprocessor(m, limits))
        blocks, barriers = -(-m // ants), context.n // self._choice.period
        if blocks * barriers > _MOST_ARRIVALS:
            raise BackendUnavailable(
                f"the CUDA engine counts {_MOST_ARRIVALS} arrivals at barriers, got {blocks} blocks at {barriers}: "
                "use GPUACS(variant='relaxed'), or fewer ants (n_ants)"
            )
        self._ant_bytes = _WALKER_BYTES + tabu_bytes("bitmask", context.n)
        shared = ants * self._ant_bytes
        in_shared = shared + STATIC_SHARED_BYTES <= limits.shared_bytes
        # log2(1 - xi); for xi = 1 a number such that 2^(c log) is 0 for every count c > 0
        self._keep_log2 = math.log2(1.0 - self._choice.xi) if self._choice.xi < 1.0 else -1e30
        own = {"DENSE": int(trails.dense), "IN_SHARED": int(in_shared)}
        shared_bytes = {"acs_sync": shared if in_shared else 0}
        self.sources = [context.source("walks/acs_sync.cu", ["acs_sync"], own, shared_bytes)]
        self.needed = {"arrivals": 4, **({} if in_shared else {"ants": m * self._ant_bytes})}

    def build(self, key: int, tours: Any, ants: int) -> None:
        """Copy the trails to rows, walk, and apply the counted updates.

        The host waits for a long walk; if it halts the walk (``Device.halted``), trails are unchanged.
        """
        device, n, choice = self._setting.device, self._setting.n, self._choice
        a, blocks = device.arrays, -(-ants // self._ants_per_block)
        a.zero("arrivals", 4)
        trails = (*self._open.open(), *choice.arguments())
        walkers = (*round_keys(key), ants, self._ant_bytes, a.optional("ants"), tours)
        state = (a["counts"], a["arrivals"], a["fault"], a["halt"])
        threads = 32 * min(_MOST_WARPS, self._ants_per_block)
        device.launch_together("acs_sync", blocks, threads, *trails, *walkers, self._keep_log2, *state)
        if n >= _WAIT_FROM:
            device.wait(early=True)
            if device.halted:
                return
        self._open.close(self._keep_log2)
        if self._trails.dense:
            edges = (tours, ants, n, self._trails.tau0, choice.xi, a["tau"])
            device.call("update_outside", device.grid_threads(ants * n), *edges)
