"""The ways to build tours: each is a kernel, the weights it reads, and its launch."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from pymoo_gpuaco.backends.cuda.aliases import Aliases
from pymoo_gpuaco.backends.cuda.cities import CITIES, Cities
from pymoo_gpuaco.backends.cuda.device import Device, Part, Source, words
from pymoo_gpuaco.backends.cuda.layout import Layout
from pymoo_gpuaco.backends.cuda.neighbours import LENGTH
from pymoo_gpuaco.backends.cuda.rows import Rows
from pymoo_gpuaco.backends.cuda.trails import Trails
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
        self._exponents = np.float32(parameters.alpha), np.float32(parameters.beta), np.float32(shortest)

    def _definitions(self) -> dict[str, object]:
        plan, p = self._plan, self._parameters
        return {
            **self._cities.definitions(),
            "RACE": int(plan.race),
            "NODE": plan.node,
            "TABU": plan.tabu,
            "DENSE": int(plan.dense),
            "NEAR": LENGTH,
            "USUAL_EXPONENTS": int(p.alpha == 1.0 and p.beta == 2.0),
            "TABU_IN_SHARED": int(plan.tabu_in_shared),
            "ANTS_A_BLOCK": plan.ants_a_block,
        }

    def _needed(self) -> dict[str, int]:
        plan = self._plan
        if plan.tabu_in_shared:
            return {}
        return {"tabus": plan.blocks * plan.ants_a_block * plan.tabu_bytes}

    def _launch(self, kernel: str, rows: tuple[Any, ...], key: int, tours: Any) -> None:
        plan = self._plan
        self._device.launch(
            kernel,
            plan.blocks,
            32 * plan.ants_a_block,
            *rows,
            *self._cities.arguments(),
            *self._exponents,
            *words(key),
            plan.m,
            plan.tabu_bytes,
            self._device.arrays["tabus"],
            tours,
            shared=plan.shared_bytes,
        )


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
        types = ("PPPPPPPPPP" if plan.rest else "PPPPPP") + CITIES + "fffIIiiPP"
        own = Source("construct.cu", definitions, {"construct_tours": types})
        return [own, *(source for part in self._parts for source in part.sources())]

    def needed(self) -> dict[str, int]:
        """Return the bytes of every array."""
        needed = self._needed()
        for part in self._parts:
            needed.update(part.needed())
        return needed

    def prepare(self) -> None:
        """Build what all iterations read."""
        self._device.allow_shared("construct_tours", self._plan.shared_bytes)
        for part in self._parts:
            part.prepare()

    def build(self, key: int, tours: Any) -> None:
        """Weigh the rows, then walk."""
        a, plan = self._device.arrays, self._plan
        self._rows.weigh()
        rows = [
            a["factors"],
            a["row_cities" if plan.rest else "candidates"],
            a["tau"] if plan.dense else np.intp(0),
            a["outside_bound"],
            a["near_cities"],
            a["raised"],
        ]
        if plan.rest:
            rows += [a["inverses"], a["rests"], a["spares"], a["aliases"]]
        self._launch("construct_tours", tuple(rows), key, tours)


class AllCitiesWalk(_Walk):
    """Ants weigh all open cities one by one."""

    def sources(self) -> list[Source]:
        """Return the walk and its weights."""
        kernels = {
            "all_weights": "P" + CITIES + "fffP",
            "construct_all": "PP" + CITIES + "fffIIiiPP",
        }
        return [Source("construct_all.cu", self._definitions(), kernels)]

    def needed(self) -> dict[str, int]:
        """Return the bytes of every array."""
        return {**self._needed(), "factors": 4 * self._plan.n * self._plan.n}

    def prepare(self) -> None:
        """Weights are made anew for every construction."""
        self._device.allow_shared("construct_all", self._plan.shared_bytes)

    def build(self, key: int, tours: Any) -> None:
        """Weigh, then walk."""
        a, plan = self._device.arrays, self._plan
        cities = self._cities.arguments()
        self._device.launch("all_weights", plan.n, 256, a["tau"], *cities, *self._exponents, a["factors"])
        self._launch("construct_all", (a["factors"], a["tau"]), key, tours)
