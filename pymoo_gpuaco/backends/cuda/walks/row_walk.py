"""Ants that choose from the row of their current city (construct.cu)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pymoo_gpuaco.backends.cuda.device import Part, Source, round_keys
from pymoo_gpuaco.backends.cuda.device.parts import DeviceLimits
from pymoo_gpuaco.backends.cuda.instance.lists import ListPlan, Lists, node_bytes
from pymoo_gpuaco.backends.cuda.trails.trails import Trails
from pymoo_gpuaco.backends.cuda.walks.walk import (
    MOST_RESIDENT,
    OVER_LISTS_OR_ALL,
    Setting,
    Shape,
    TabuPlan,
    ants_a_multiprocessor,
    free_shape,
    resident_shape,
    rule_definitions,
    tabu_plan,
)
from pymoo_gpuaco.backends.cuda.weights.weights import Aliases, Rows, inverse_bytes
from pymoo_gpuaco.colony.parameters import ColonyParameters

FEW_ANTS = 20  # of a multiprocessor, as in construct.cu


@dataclass(frozen=True)
class RowPlan:
    """Compilation of the walk, independent of the number of ants."""

    lists: ListPlan
    selection: str  # "wrs" or "rwm"
    all_cities: bool  # rows contain only the heaviest edges; all other cities can be drawn, too
    tabu: TabuPlan
    row_bytes: int  # of all rows and their inverses
    resident: bool  # rows in shared memory, beside the tabus of a block of ants

    def shape(self, m: int, limits: DeviceLimits) -> Shape:
        """Return the launch shape for m ants."""
        return resident_shape(m, limits) if self.resident else free_shape(m, self.tabu.size, limits)

    def shared_bytes(self, shape: Shape) -> int:
        """Return the shared memory of a block."""
        rows = self.row_bytes if self.resident else 0
        return rows + (shape.ants_a_block * self.tabu.size if self.tabu.in_shared else 0)


def row_plan(n: int, k: int, parameters: ColonyParameters, limits: DeviceLimits) -> RowPlan:
    """Plan the walk over n cities with k candidates each."""
    all_cities = parameters.candidate_list_size is None
    lists = ListPlan(n, k)
    tabu = tabu_plan(parameters.tabu, "bitmask", n, limits)
    row_bytes = n * lists.stride * (4 + node_bytes(n)) + (inverse_bytes(n) if all_cities else 0)
    return RowPlan(
        lists=lists,
        selection=str(parameters.rule("wrs").over_lists),
        all_cities=all_cities,
        tabu=tabu,
        row_bytes=row_bytes,
        resident=row_bytes + MOST_RESIDENT * tabu.size <= limits.shared_bytes,
    )


class RowWalk:
    """Walk over rows of candidates; if all of them are visited, the best other city follows.

    With ``all_cities`` (no candidate list), rows contain the heaviest edges, and all other cities can be drawn, too.
    """

    def __init__(self, setting: Setting, trails: Trails) -> None:
        device, cities = setting.device, setting.cities
        self._setting = setting
        self._trails = trails
        limits = device.limits
        self.plan = row_plan(setting.n, cities.instance.k, setting.parameters, limits)
        self.shape = self.plan.shape(setting.m, limits)
        # the only definition that depends on the number of ants, with two values and only for ``all_cities``
        self._few = ants_a_multiprocessor(setting.m, limits) <= FEW_ANTS
        self._rows = Rows(
            device, cities, trails, setting.exponents, self.plan.selection == "wrs", self.plan.all_cities
        )
        self.parts: list[Part] = [Lists(device, cities.instance), self._rows]
        if self.plan.all_cities:
            self.parts.insert(0, Aliases(device, cities, setting.exponents))

    def sources(self) -> list[Source]:
        """Return the walk."""
        plan, setting = self.plan, self._setting
        definitions = {
            **setting.cities.definitions(),
            **plan.lists.definitions(),
            **plan.tabu.definitions(),
            **rule_definitions(plan.selection, OVER_LISTS_OR_ALL),
            "REST": int(plan.all_cities),
            "DENSE": int(self._trails.dense),
            "NEAR": plan.lists.near,
            "USUAL_EXPONENTS": int(setting.usual_exponents),
            "RESIDENT": int(plan.resident),
        }
        if plan.all_cities:
            definitions["FEW_ANTS"] = int(self._few)
        return [Source("walks/construct.cu", definitions, ["construct_tours"])]

    def needed(self) -> dict[str, int]:
        """Return the bytes of every array."""
        plan, shape = self.plan, self.shape
        return {} if plan.tabu.in_shared else {"tabus": shape.blocks * shape.ants_a_block * plan.tabu.size}

    def prepare(self) -> None:
        """Prepare the arguments of all launches."""
        plan, setting = self.plan, self._setting
        device = setting.device
        address, optional = device.arrays.address, device.arrays.optional
        device.allow_shared("construct_tours", plan.shared_bytes(self.shape))
        arrays = (
            address("factors"),
            address("row_cities" if plan.all_cities else "candidates"),
            address("tau"),
            optional("outside_bound"),
            address("near_cities"),
            optional("raised"),
        )
        beyond = ("inverses", "rests", "spares", "aliases") if plan.all_cities else ()
        self._before = (*arrays, *map(address, beyond), *setting.cities.arguments(), *setting.exponents)
        self._after = plan.tabu.size, optional("tabus"), address("halt")

    def build(self, key: int, tours: Any, ants: int) -> None:
        """Compute the weights, then walk; the host may halt the walk, see ``Device.wait``."""
        self._rows.weigh()
        shape = self.shape
        arguments = (*self._before, *round_keys(key), ants, *self._after, int(tours))
        shared = self.plan.shared_bytes(shape)
        self._setting.device.launch(
            "construct_tours", shape.blocks_of(ants), shape.threads, *arguments, shared=shared
        )
