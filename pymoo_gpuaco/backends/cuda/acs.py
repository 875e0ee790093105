"""The three ways in which the ants of ACS build tours: each changes the trails behind it (paper 003)."""

from __future__ import annotations

from typing import Any

import numpy as np

from pymoo_gpuaco.backends.cuda.cities import CITIES, Cities
from pymoo_gpuaco.backends.cuda.device import Device, Source, words
from pymoo_gpuaco.backends.cuda.layout import Layout
from pymoo_gpuaco.backends.cuda.neighbours import LENGTH
from pymoo_gpuaco.backends.cuda.rings import Rings
from pymoo_gpuaco.backends.cuda.rows import Rows
from pymoo_gpuaco.backends.cuda.trails import Trails
from pymoo_gpuaco.colony.parameters import ColonyParameters
from pymoo_gpuaco.problems.instance import Instance

# Parameters that the three kernels share, from alpha to the tours.
_WALK = CITIES + "ffffffiIIiiPP"
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
            "NEAR": LENGTH,
            "SYMMETRIC": int(self._cities.instance.symmetric),
            "ALPHA_IS_ONE": int(p.alpha == 1.0),
            "USUAL_EXPONENTS": int(p.alpha == 1.0 and p.beta == 2.0),
        }

    def needed(self) -> dict[str, int]:
        """Return the bytes of every array."""
        return {"eta": 4 * self._plan.n * self._plan.stride}

    def prepare(self) -> None:
        """Upload the heuristic."""
        table = heuristic(
            self._cities.instance, float(self._parameters.beta), self._shortest, self._plan.stride
        )
        self._device.write("eta", table)

    def _walk(self, key: int, ant_bytes: int, memory: Any, tours: Any) -> tuple[Any, ...]:
        """Return the arguments of ``_WALK``."""
        p = self._parameters
        return (
            *self._cities.arguments(),
            np.float32(p.alpha),
            np.float32(p.beta),
            np.float32(self._shortest),
            np.float32(p.q0),
            np.float32(self._trails.tau0),
            np.float32(p.xi),
            self._period,
            *words(key),
            self._plan.m,
            ant_bytes,
            memory,
            tours,
        )


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
        walk = self._walk(key, plan.tabu_bytes, self._device.arrays["tabus"], tours)
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
        self._outside = Rows(
            device, cities, trails, plan, (np.float32(p.alpha), np.float32(p.beta), np.float32(d))
        )

    def sources(self, definitions: dict[str, object], counted: bool) -> list[Source]:
        """Return what goes between trails and rows."""
        names = ("NODE", "SLOTS", "ALPHA_IS_ONE", "SYMMETRIC")
        own = Source(
            "acs_rows.cu",
            {
                **{name: definitions[name] for name in names},
                "DENSE": int(self._plan.dense),
                "COUNTED": int(counted),
            },
            {"open_rows": "PPiifPP", "close_rows": "PPiiffPP"},
        )
        return [own, *self._outside.sources()] if self._plan.dense else [own]

    def needed(self) -> dict[str, int]:
        """Return the bytes of every array."""
        outside = self._outside.needed() if self._plan.dense else {}
        return {"rows": 4 * self._plan.n * self._plan.stride, **outside}

    def prepare(self) -> None:
        """Prepare the bounds."""
        if self._plan.dense:
            self._outside.prepare()

    def walked(self) -> tuple[Any, ...]:
        """Return the first arguments of a walk on rows."""
        a = self._device.arrays
        tau = a["tau"] if self._plan.dense else np.intp(0)
        return a["rows"], a["eta"], a["candidates"], tau, a["outside_bound"], a["near_cities"], a["raised"]

    def open(self) -> None:
        """Launch: fill the rows."""
        a, plan = self._device.arrays, self._plan
        if plan.dense:
            self._outside.weigh()
        lists = (a["neighbours"], plan.n, plan.k)
        tau0 = np.float32(self._trails.tau0)
        self._device.call(
            "open_rows", plan.n * plan.stride, a["tau"], *lists, tau0, a["outside_bound"], a["rows"]
        )

    def close(self, keep_log2: np.float32) -> None:
        """Launch: put the rows back, with the updates that were counted."""
        a, plan = self._device.arrays, self._plan
        lists = (a["neighbours"], plan.n, plan.k)
        tau0 = np.float32(self._trails.tau0)
        self._device.call(
            "close_rows", plan.n * plan.stride, a["rows"], *lists, tau0, keep_log2, a["counts"], a["tau"]
        )


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
            Source("acs_relaxed.cu", definitions, {"acs_relaxed": "PPPPPPP" + _WALK}),
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
        self._launch(self._open.walked(), key, tours)
        self._open.close(np.float32(0.0))


class SyncWalk(_AcsWalk):
    """ACS-GPU: every ant makes a step before any makes the next one."""

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
        self._keep_log2 = np.float32(np.log2(1.0 - xi) if xi < 1.0 else -1e30)

    def sources(self) -> list[Source]:
        """Return the walk, and what goes between trails and rows."""
        definitions = {
            **self._definitions(),
            "DENSE": int(self._plan.dense),
            "TABU_IN_SHARED": int(self._shared > 0),
            "MOST_WARPS": _MOST_WARPS,
        }
        return [
            Source("acs_sync.cu", definitions, {"acs_sync": "PPPPPPP" + _WALK + "fPP"}),
            *self._open.sources(definitions, counted=True),
        ]

    def needed(self) -> dict[str, int]:
        """Return the bytes of every array."""
        counts = 8 * self._plan.n * self._plan.stride
        needed = {**super().needed(), **self._open.needed(), "counts": counts, "meeting": 16}
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
        a.zero("meeting", 16)
        walk = self._walk(key, self._ant_bytes, a["walkers"], tours)
        self._device.launch(
            "acs_sync",
            self._blocks,
            32 * self._warps,
            *self._open.walked(),
            *walk,
            self._keep_log2,
            a["counts"],
            a["meeting"],
            shared=self._shared,
        )
        self._open.close(self._keep_log2)


class SelectiveWalk(_FreeWalk):
    """ACS-GPU-SPM: as relaxed, on rings of few trails."""

    _kernel = "acs_selective"

    def __init__(self, device: Device, cities: Cities, rings: Rings, plan: Layout, *rest: Any) -> None:
        super().__init__(device, cities, rings, plan, *rest)
        self._rings = rings

    def sources(self) -> list[Source]:
        """Return the walk."""
        definitions = {**self._definitions(), "TRAILS": self._rings.width}
        return [Source("acs_selective.cu", definitions, {"acs_selective": "PPfPPP" + _WALK})]

    def build(self, key: int, tours: Any) -> None:
        """Walk."""
        a = self._device.arrays
        trails = (a["ring"], a["tail"], self._rings.rest[0], a["eta"], a["candidates"], a["near_cities"])
        self._launch(trails, key, tours)
