"""The three ways in which the ants of ACS build tours: each changes the trails behind it (paper 003)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pymoo_gpuaco.backends.cuda.device import Device, Source, round_keys
from pymoo_gpuaco.backends.cuda.instance.cities import CITIES, Cities
from pymoo_gpuaco.backends.cuda.layout import Layout
from pymoo_gpuaco.backends.cuda.trails.rings import Rings
from pymoo_gpuaco.backends.cuda.trails.trails import Trails
from pymoo_gpuaco.backends.cuda.weights.rows import Rows
from pymoo_gpuaco.colony.parameters import ColonyParameters
from pymoo_gpuaco.problems.instance import Instance

# Parameters that the three kernels share, from alpha to the tours.
_WALK = CITIES + "ffffffi" + 20 * "I" + "iiPP"
_NEVER = 2**31 - 1  # a period of updates that no tour reaches
# Least eta^beta of a candidate over the largest of its row: beside it a trail still leaves a float above zero.
_LEAST_ETA = 1e-25
# Synchronous ants: bytes of one between two steps, beside its tabu; most warps of a block; fewest ants of a block, as
# few blocks meet more quickly.
_WALKER_BYTES = 48
_MOST_WARPS = 32
_FEWEST_ANTS_A_BLOCK = 8
_SHARED_KEPT = 1024  # shared memory that kernels declare themselves


def heuristic(instance: Instance, beta: float, shortest: float, stride: int) -> np.ndarray:
    """eta^beta of the candidates over the largest of their row, (n, stride) float32, padded with 0."""
    eta = np.maximum(instance.neighbour_distances, shortest) ** -beta
    table = np.zeros((instance.n, stride), np.float32)
    table[:, : instance.k] = np.maximum(eta / eta.max(axis=1, keepdims=True), _LEAST_ETA)
    return table


class _AcsWalk:
    """What the three have in common: choice by Eqs. (1) and (2), local update by Eq. (3)."""

    def __init__(
        self,
        device: Device,
        cities: Cities,
        trails: Trails | Rings,
        plan: Layout,
        parameters: ColonyParameters,
        shortest: float,
    ) -> None:
        self._device = device
        self._cities = cities
        self._trails = trails
        self._plan = plan
        self._parameters = parameters
        self._shortest = shortest
        self._period = min(parameters.local_update_period, _NEVER) if parameters.xi > 0.0 else _NEVER

    def _definitions(self) -> dict[str, object]:
        plan, p = self._plan, self._parameters
        return {
            **self._cities.definitions(),
            "SLOTS": plan.slots,
            "NODE": plan.node,
            "NEAR": plan.near,
            "SYMMETRIC": int(self._cities.instance.symmetric),
            "ALPHA_IS_ONE": int(p.alpha == 1.0),
            "USUAL_EXPONENTS": int(p.alpha == 1.0 and p.beta == 2.0),
        }

    def needed(self) -> dict[str, int]:
        """Return the bytes of every array."""
        return {"eta": 4 * self._plan.n * self._plan.stride}

    def prepare(self) -> None:
        """Upload the heuristic, and put together what is the same in every launch."""
        p, plan = self._parameters, self._plan
        self._device.write(
            "eta", heuristic(self._cities.instance, float(p.beta), self._shortest, plan.stride)
        )
        exponents = float(p.alpha), float(p.beta), self._shortest
        self._before = (*self._cities.addresses(), *exponents, float(p.q0))
        self._between = float(p.xi), self._period

    def _walk(self, key: int, ant_bytes: int, memory: str, tours: Any) -> tuple[Any, ...]:
        """Return the arguments of ``_WALK``."""
        keys, address = round_keys(key), self._device.arrays.address
        sizes = self._plan.m, ant_bytes, address(memory)
        return (*self._before, self._trails.tau0, *self._between, *keys, *sizes, int(tours))


class _FreeWalk(_AcsWalk):
    """Ants that do not wait for each other; ``deterministic``: one warp walks them one after another."""

    _kernel: str

    @property
    def _shape(self) -> tuple[int, int]:
        """Blocks, and ants of a block."""
        return (1, 1) if self._parameters.deterministic else (self._plan.blocks, self._plan.ants_a_block)

    def _definitions(self) -> dict[str, object]:
        return {
            **super()._definitions(),
            "TABU": self._plan.tabu,
            "TABU_IN_SHARED": int(self._plan.tabu_in_shared),
            "ANTS_A_BLOCK": self._shape[1],
        }

    def needed(self) -> dict[str, int]:
        """Return the bytes of every array."""
        needed, (blocks, ants) = super().needed(), self._shape
        if not self._plan.tabu_in_shared:
            needed["tabus"] = blocks * ants * self._plan.tabu_bytes
        return needed

    @property
    def _shared(self) -> int:
        return self._shape[1] * self._plan.tabu_bytes if self._plan.tabu_in_shared else 0

    def prepare(self) -> None:
        """Upload the heuristic."""
        super().prepare()
        self._device.allow_shared(self._kernel, self._shared)

    def _launch(self, trails: tuple[Any, ...], key: int, tours: Any) -> None:
        plan, (blocks, ants) = self._plan, self._shape
        walk = self._walk(key, plan.tabu_bytes, "tabus", tours)
        self._device.launch(self._kernel, blocks, 32 * ants, *trails, *walk, shared=self._shared)


class _OpenTrails:
    """Trails of the candidate edges in ``rows`` (n, stride), for the time of a walk.

    Of dense trails the walk also reads what lies outside the lists, with the bounds that ``Rows`` finds.
    """

    def __init__(
        self, device: Device, cities: Cities, trails: Trails, plan: Layout, p: ColonyParameters, d: float
    ):
        self._device = device
        self._plan = plan
        self._trails = trails
        self._outside = Rows(device, cities, trails, plan, (float(p.alpha), float(p.beta), d))

    def sources(self, definitions: dict[str, object], counted: bool) -> list[Source]:
        """Return what goes between trails and rows."""
        names = ("NODE", "SLOTS", "ALPHA_IS_ONE", "SYMMETRIC")
        own = Source(
            "walks/acs_rows.cu",
            {
                **{name: definitions[name] for name in names},
                "DENSE": int(self._plan.dense),
                "COUNTED": int(counted),
            },
            {
                "open_rows": "PPiifPP",
                "close_rows": "PPiiffPP",
                **({"update_outside": "PiiffP"} if counted and self._plan.dense else {}),
            },
        )
        return [own, *self._outside.sources()] if self._plan.dense else [own]

    def needed(self) -> dict[str, int]:
        """Return the bytes of every array."""
        outside = self._outside.needed() if self._plan.dense else {}
        return {"rows": 4 * self._plan.n * self._plan.stride, **outside}

    def prepare(self) -> None:
        """Put together what is the same in every launch."""
        if self._plan.dense:
            self._outside.prepare()
        address = self._device.arrays.address
        walked = ("rows", "eta", "candidates", "tau", "outside_bound", "near_cities", "raised")
        self.walked = tuple(map(address, walked))  # first arguments of a walk on rows
        lists = (address("neighbours"), self._plan.n, self._plan.k)
        self._opened = (address("tau"), *lists), (address("outside_bound"), address("rows"))
        self._closed = (address("rows"), *lists), (address("counts"), address("tau"))

    def open(self) -> None:
        """Launch: fill the rows."""
        if self._plan.dense:
            self._outside.weigh()
        before, after = self._opened
        self._device.call("open_rows", self._plan.n * self._plan.stride, *before, self._trails.tau0, *after)

    def close(self, keep_log2: float) -> None:
        """Launch: put the rows back, with the updates that were counted."""
        before, after = self._closed
        numbers = self._trails.tau0, keep_log2
        self._device.call("close_rows", self._plan.n * self._plan.stride, *before, *numbers, *after)


class RelaxedWalk(_FreeWalk):
    """ACS-GPU-Alt: an ant walks its whole tour, on trails that the others change meanwhile."""

    _kernel = "acs_relaxed"

    def __init__(self, device: Device, cities: Cities, trails: Trails, plan: Layout, *rest: Any) -> None:
        super().__init__(device, cities, trails, plan, *rest)
        self._open = _OpenTrails(device, cities, trails, plan, *rest)

    def sources(self) -> list[Source]:
        """Return the walk, and what goes between trails and rows."""
        definitions = {**self._definitions(), "DENSE": int(self._plan.dense)}
        return [
            Source("walks/acs_relaxed.cu", definitions, {"acs_relaxed": "PPPPPPP" + _WALK}),
            *self._open.sources(definitions, counted=False),
        ]

    def needed(self) -> dict[str, int]:
        """Return the bytes of every array."""
        return {**super().needed(), **self._open.needed()}

    def prepare(self) -> None:
        """Upload the heuristic."""
        super().prepare()
        self._open.prepare()

    def build(self, key: int, tours: Any) -> None:
        """Open the rows, walk, close them."""
        self._open.open()
        self._launch(self._open.walked, key, tours)
        self._open.close(0.0)


class SyncWalk(_AcsWalk):
    """ACS-GPU: every ant makes a step before any makes the next one.

    Candidate edges get their local updates step by step, all others when the tours are built.
    """

    def __init__(self, device: Device, cities: Cities, trails: Trails, plan: Layout, *rest: Any) -> None:
        super().__init__(device, cities, trails, plan, *rest)
        self._open = _OpenTrails(device, cities, trails, plan, *rest)
        multiprocessors = device.limits.multiprocessors
        ants = max(_FEWEST_ANTS_A_BLOCK, -(-plan.m // multiprocessors))
        self._blocks = -(-plan.m // ants)
        self._warps = min(_MOST_WARPS, ants)
        self._ant_bytes = _WALKER_BYTES + 16 * -(-plan.n // 128)  # of a bitmask in words of 16 bytes
        shared = ants * self._ant_bytes
        self._shared = shared if shared + _SHARED_KEPT <= device.limits.shared_bytes else 0
        # 1 - xi in logarithms; of xi = 1 one so low that 2^(c log) is 0 for every count c but 0
        xi = self._parameters.xi
        self._keep_log2 = math.log2(1.0 - xi) if xi < 1.0 else -1e30

    def sources(self) -> list[Source]:
        """Return the walk, and what goes between trails and rows."""
        definitions = {
            **self._definitions(),
            "DENSE": int(self._plan.dense),
            "TABU_IN_SHARED": int(self._shared > 0),
            "MOST_WARPS": _MOST_WARPS,
        }
        return [
            Source("walks/acs_sync.cu", definitions, {"acs_sync": "PPPPPPP" + _WALK + "fPP"}),
            *self._open.sources(definitions, counted=True),
        ]

    def needed(self) -> dict[str, int]:
        """Return the bytes of every array."""
        counts = 8 * self._plan.n * self._plan.stride
        needed = {**super().needed(), **self._open.needed(), "counts": counts, "arrivals": 4}
        if not self._shared:
            needed["walkers"] = self._plan.m * self._ant_bytes
        return needed

    def prepare(self) -> None:
        """Upload the heuristic; nothing is counted yet."""
        super().prepare()
        self._open.prepare()
        self._device.arrays.zero("counts", self.needed()["counts"])
        self._device.allow_shared("acs_sync", self._shared)

    def build(self, key: int, tours: Any) -> None:
        """Open the rows, walk, and let them take what was counted."""
        a = self._device.arrays
        self._open.open()
        a.zero("arrivals", 4)
        walk = self._walk(key, self._ant_bytes, "walkers", tours)
        self._device.launch(
            "acs_sync",
            self._blocks,
            32 * self._warps,
            *self._open.walked,
            *walk,
            self._keep_log2,
            a["counts"],
            a["arrivals"],
            shared=self._shared,
        )
        self._open.close(self._keep_log2)
        if self._plan.dense:
            m, n, p = self._plan.m, self._plan.n, self._parameters
            edges = (int(tours), m, n, self._trails.tau0, float(p.xi), a["tau"])
            self._device.call("update_outside", self._device.spread(m * n), *edges)


class SelectiveWalk(_FreeWalk):
    """ACS-GPU-SPM: as relaxed, on rings of few trails."""

    _kernel = "acs_selective"

    def __init__(self, device: Device, cities: Cities, rings: Rings, plan: Layout, *rest: Any) -> None:
        super().__init__(device, cities, rings, plan, *rest)
        self._rings = rings

    def sources(self) -> list[Source]:
        """Return the walk."""
        definitions = {**self._definitions(), "TRAILS": self._rings.width}
        return [Source("walks/acs_selective.cu", definitions, {"acs_selective": "PfPPP" + _WALK})]

    def build(self, key: int, tours: Any) -> None:
        """Walk."""
        a = self._device.arrays
        trails = (a["ring"], self._rings.rest[0], a["eta"], a["candidates"], a["near_cities"])
        self._launch(trails, key, tours)
