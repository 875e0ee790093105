"""The ways to build tours: each is a kernel, the weights it reads, and its launch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from pymoo_gpuaco.backends.cuda.device import Device, Part, Source, round_keys, words
from pymoo_gpuaco.backends.cuda.instance.cities import CITIES, Cities
from pymoo_gpuaco.backends.cuda.layout import Layout
from pymoo_gpuaco.backends.cuda.trails.trails import Trails
from pymoo_gpuaco.backends.cuda.weights.aliases import Aliases
from pymoo_gpuaco.backends.cuda.weights.all_weights import AllWeights
from pymoo_gpuaco.backends.cuda.weights.rows import Rows
from pymoo_gpuaco.colony.parameters import ColonyParameters


class Construction(Part, Protocol):
    """A part that builds tours from the trails as they stand."""

    def build(self, key: int, tours: Any) -> None:
        """Launch: m tours (m, n) on the device, random numbers from ``key``."""
        ...


class _Walk:
    """What all walks share: ants with a tabu each, on constant trails."""

    def __init__(
        self,
        device: Device,
        cities: Cities,
        trails: Trails,
        plan: Layout,
        parameters: ColonyParameters,
        shortest: float,
    ) -> None:
        self._device = device
        self._cities = cities
        self._trails = trails
        self._plan = plan
        self._parameters = parameters
        # alpha, beta and the distance that eta = 1 / d takes for d = 0
        self._exponents = float(parameters.alpha), float(parameters.beta), shortest

    def _definitions(self) -> dict[str, object]:
        plan, p = self._plan, self._parameters
        return {
            **self._cities.definitions(),
            "RACE": int(plan.race),
            "NODE": plan.node,
            "TABU": plan.tabu,
            "DENSE": int(plan.dense),
            "NEAR": plan.near,
            "USUAL_EXPONENTS": int(p.alpha == 1.0 and p.beta == 2.0),
            "TABU_IN_SHARED": int(plan.tabu_in_shared),
            "ANTS_A_BLOCK": plan.ants_a_block,
        }

    def _needed(self) -> dict[str, int]:
        plan = self._plan
        if plan.tabu_in_shared:
            return {}
        return {"tabus": plan.blocks * plan.ants_a_block * plan.tabu_bytes}

    def _keep_arguments(self, kernel: str, *arrays: str) -> None:
        """Put together what is the same in every launch."""
        address, plan = self._device.arrays.address, self._plan
        self._device.allow_shared(kernel, plan.shared_bytes)
        self._before = (*map(address, arrays), *self._cities.addresses(), *self._exponents)
        self._after = (plan.m, plan.tabu_bytes, address("tabus"))

    def _launch(self, kernel: str, key: Sequence[Any], tours: Any) -> None:
        plan = self._plan
        arguments = (*self._before, *key, *self._after, int(tours))
        self._device.launch(kernel, plan.blocks, 32 * plan.ants_a_block, *arguments, shared=plan.shared_bytes)


class RowWalk(_Walk):
    """Ants choose in the row of the city they stand at.

    Rows hold the candidates, and the best of all others follows where those are visited; or, with a rest, the heaviest
    edges, and all other cities take part in the choice.
    """

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        self._rows = Rows(self._device, self._cities, self._trails, self._plan, self._exponents)
        self._parts: list[Part] = [self._rows]
        if self._plan.rest:
            self._parts.append(Aliases(self._device, self._cities, self._plan, self._exponents))

    def sources(self) -> list[Source]:
        """Return the walk and what it reads."""
        plan = self._plan
        definitions = {
            **self._definitions(),
            "REST": int(plan.rest),
            "SLOTS": plan.slots,
            "RESIDENT": int(plan.resident),
            "LEAST_BLOCKS": plan.least_blocks,
        }
        types = (10 if plan.rest else 6) * "P" + CITIES + "fff" + 20 * "I" + "iiPP"
        own = Source("walks/construct.cu", definitions, {"construct_tours": types})
        return [own, *(source for part in self._parts for source in part.sources())]

    def needed(self) -> dict[str, int]:
        """Return the bytes of every array."""
        needed = self._needed()
        for part in self._parts:
            needed.update(part.needed())
        return needed

    def prepare(self) -> None:
        """Build what all iterations read."""
        plan = self._plan
        for part in self._parts:
            part.prepare()
        arrays = [
            "factors",
            "row_cities" if plan.rest else "candidates",
            "tau",
            "outside_bound",
            "near_cities",
            "raised",
        ]
        if plan.rest:
            arrays += ["inverses", "rests", "spares", "aliases"]
        self._keep_arguments("construct_tours", *arrays)

    def build(self, key: int, tours: Any) -> None:
        """Weigh the rows, then walk."""
        self._rows.weigh()
        self._launch("construct_tours", round_keys(key), tours)


class AllCitiesWalk(_Walk):
    """Ants weigh all open cities one by one."""

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        self._weights = AllWeights(
            self._device, self._cities, self._plan, self._exponents, inverse=self._plan.race
        )

    def sources(self) -> list[Source]:
        """Return the walk and its weights."""
        types = "PP" + CITIES + "fffIIiiPP"
        own = Source("walks/construct_all.cu", self._definitions(), {"construct_all": types})
        return [own, *self._weights.sources()]

    def needed(self) -> dict[str, int]:
        """Return the bytes of every array."""
        return {**self._needed(), **self._weights.needed()}

    def prepare(self) -> None:
        """Keep what is the same in every launch."""
        self._weights.prepare()
        self._keep_arguments("construct_all", "factors", "tau")

    def build(self, key: int, tours: Any) -> None:
        """Weigh, then walk."""
        self._weights.weigh()
        self._launch("construct_all", words(key), tours)


class WholeRowWalk:
    """Ants read the weights of all cities at every step: the instance is small."""

    def __init__(
        self,
        device: Device,
        cities: Cities,
        trails: Trails,
        plan: Layout,
        parameters: ColonyParameters,
        shortest: float,
    ) -> None:
        self._device = device
        self._plan = plan
        exponents = float(parameters.alpha), float(parameters.beta), shortest
        self._weights = AllWeights(device, cities, plan, exponents, inverse=False)

    def sources(self) -> list[Source]:
        """Return the walk and its weights."""
        plan = self._plan
        definitions = {
            "SLOTS": -(-plan.n // 32),
            "RESIDENT": int(plan.resident),
            "ANTS_A_BLOCK": plan.ants_a_block,
            "THREADS": self._threads,
        }
        types = "Pi" + 20 * "I" + "iP"
        return [
            Source("walks/construct_whole.cu", definitions, {"construct_whole": types}),
            *self._weights.sources(),
        ]

    @property
    def _threads(self) -> int:
        """Of a block: warps without an ant help to fill the shared memory."""
        own = 32 * self._plan.ants_a_block
        return max(512, own) if self._plan.resident else own

    def needed(self) -> dict[str, int]:
        """Return the bytes of every array."""
        return self._weights.needed()

    def prepare(self) -> None:
        """Weights are made anew for every construction."""
        self._weights.prepare()
        self._device.allow_shared("construct_whole", self._plan.shared_bytes)
        self._factors = self._device.arrays.address("factors")

    def build(self, key: int, tours: Any) -> None:
        """Weigh, then walk."""
        plan = self._plan
        self._weights.weigh()
        arguments = (self._factors, plan.n, *round_keys(key), plan.m, int(tours))
        self._device.launch(
            "construct_whole", plan.blocks, self._threads, *arguments, shared=plan.shared_bytes
        )
