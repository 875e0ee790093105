"""The ways to build tours: each is a kernel, the weights it reads, and its launch."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from pymoo_gpuaco.backends.cuda.cities import CITIES, Cities
from pymoo_gpuaco.backends.cuda.device import Device, Part, Source, words
from pymoo_gpuaco.backends.cuda.layout import Layout
from pymoo_gpuaco.backends.cuda.lists import Lists
from pymoo_gpuaco.backends.cuda.neighbours import LENGTH
from pymoo_gpuaco.colony.parameters import ColonyParameters


class Construction(Part, Protocol):
    """A part that builds tours from the trails as they stand."""

    def build(self, key: int, tours: Any) -> None:
        """Launch: m tours (m, n) on the device, random numbers from ``key``."""
        ...


class _Walk:
    """What both walks share: ants with a tabu each, on constant trails."""

    def __init__(
        self,
        device: Device,
        cities: Cities,
        lists: Lists,
        plan: Layout,
        parameters: ColonyParameters,
        shortest: float,
    ) -> None:
        self._device = device
        self._cities = cities
        self._lists = lists
        self._plan = plan
        self._parameters = parameters
        # alpha, beta and the distance that eta = 1 / d takes for d = 0
        self._exponents = np.float32(parameters.alpha), np.float32(parameters.beta), np.float32(shortest)

    def _definitions(self) -> dict[str, object]:
        plan, p = self._plan, self._parameters
        return {
            **self._cities.definitions(),
            "SLOTS": plan.slots,
            "NODE": plan.node,
            "TABU": plan.tabu,
            "DENSE": int(plan.dense),
            "NEAR": LENGTH,
            "BATCH": plan.batch,
            "USUAL_EXPONENTS": int(p.alpha == 1.0 and p.beta == 2.0),
            "TABU_IN_SHARED": int(plan.tabu_in_shared),
            "ANTS_A_BLOCK": plan.ants_a_block,
        }

    def _needed(self) -> dict[str, int]:
        plan = self._plan
        needed = {"factors": 4 * plan.n * (plan.stride if plan.tiered else plan.n)}
        if not plan.tabu_in_shared:
            needed["tabus"] = plan.blocks * plan.ants_a_block * plan.tabu_bytes
        return needed

    def _launch(self, kernel: str, rows: tuple[Any, ...], key: int, tours: Any) -> None:
        a, plan = self._device.arrays, self._plan
        self._device.launch(
            kernel,
            plan.blocks,
            32 * plan.ants_a_block,
            *rows,
            a["tau"] if plan.dense else np.intp(0),
            a["bound"],
            a["near_cities"],
            *self._cities.arguments(),
            *self._exponents,
            *words(key),
            plan.m,
            plan.tabu_bytes,
            a["tabus"],
            tours,
            shared=plan.shared_bytes,
        )


class CandidateWalk(_Walk):
    """Ants choose among the candidates, and the best of all others when those are visited."""

    def sources(self) -> list[Source]:
        """Return the walk."""
        definitions = {
            **self._definitions(),
            "RACE": int(self._plan.race),
            "RESIDENT": int(self._plan.resident),
        }
        return [Source("construct.cu", definitions, {"construct_tours": "PPPPP" + CITIES + "fffIIiiPP"})]

    def needed(self) -> dict[str, int]:
        """Return the bytes of every array."""
        return self._needed()

    def prepare(self) -> None:
        """Weights are made anew for every tour."""
        self._device.allow_shared("construct_tours", self._plan.shared_bytes)

    def build(self, key: int, tours: Any) -> None:
        """Weigh the candidates, then walk."""
        a = self._device.arrays
        self._lists.weigh()
        self._launch("construct_tours", (a["factors"], a["candidates"]), key, tours)


class AllCitiesWalk(_Walk):
    """Ants choose among all open cities."""

    def sources(self) -> list[Source]:
        """Return the walk and its weights."""
        kernels = {
            "all_weights": "P" + CITIES + "fffP",
            "build_aliases": "P" + CITIES + "fffiiPPPP",
            "tier_weights": "PPPPPfiiPP",
            "construct_all": "PPPPPPP" + CITIES + "fffIIiiPP",
        }
        return [Source("construct_all.cu", {**self._definitions(), "RULE": self._plan.rule}, kernels)]

    def needed(self) -> dict[str, int]:
        """Return the bytes of every array."""
        plan, needed = self._plan, self._needed()
        if plan.tiered:
            needed["aliases"] = 8 * plan.n * plan.n
            needed["rest_sums"] = 8 * plan.n
            needed["rest"] = 4 * plan.n
            needed["alias_scratch"] = 12 * plan.n * plan.alias_rows
        return needed

    def prepare(self) -> None:
        """Build the alias tables of all rows, some at a time: each row needs room to be sorted in."""
        self._device.allow_shared("construct_all", self._plan.shared_bytes)
        a, plan = self._device.arrays, self._plan
        if not plan.tiered:
            return
        stacks = int(a["alias_scratch"]) + 8 * plan.n * plan.alias_rows
        for first in range(0, plan.n, plan.alias_rows):
            self._device.launch(
                "build_aliases",
                -(-plan.alias_rows // 32),
                32,
                a["candidates"],
                *self._cities.arguments(),
                *self._exponents,
                first,
                plan.alias_rows,
                a["alias_scratch"],
                np.intp(stacks),
                a["aliases"],
                a["rest_sums"],
            )

    def build(self, key: int, tours: Any) -> None:
        """Weigh, then walk."""
        a = self._device.arrays
        self._weigh()
        self._launch("construct_all", (a["factors"], a["candidates"], a["rest"], a["aliases"]), key, tours)

    def _weigh(self) -> None:
        a, plan = self._device.arrays, self._plan
        if not plan.tiered:
            cities = self._cities.arguments()
            self._device.launch("all_weights", plan.n, 256, a["tau"], *cities, *self._exponents, a["factors"])
            return
        self._device.call(
            "tier_weights",
            32 * plan.n,
            a["tau"],
            a["bound"],
            a["neighbours"],
            a["eta_beta"],
            a["rest_sums"],
            self._exponents[0],
            plan.n,
            plan.k,
            a["factors"],
            a["rest"],
        )
