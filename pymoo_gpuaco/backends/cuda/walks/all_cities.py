"""Ants that weigh all open cities (construct_all.cu)."""

from __future__ import annotations

from typing import Any

from pymoo_gpuaco.backends.cuda.device import Part, Source, words
from pymoo_gpuaco.backends.cuda.walks.walk import (
    OVER_LISTS_OR_ALL,
    Setting,
    free_shape,
    rule_definitions,
    tabu_plan,
)
from pymoo_gpuaco.backends.cuda.weights.weights import INVERSES, SHARES, AllWeights


class AllCitiesWalk:
    """The roulette wheel ("rwm") or weighted reservoir sampling ("wrs") over all cities."""

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        limits = setting.device.limits
        # a list of the open cities is faster to read than a bitmask
        self.tabu = tabu_plan(setting.parameters.tabu, "compact", setting.n, limits)
        self.shape = free_shape(setting.m, self.tabu.size, limits)
        self._selection = setting.parameters.selection
        race = self._selection == "wrs"
        self._weights = AllWeights(
            setting.device, setting.cities, setting.exponents, INVERSES if race else SHARES
        )
        self.parts: list[Part] = [self._weights]

    def sources(self) -> list[Source]:
        """Return the walk."""
        definitions = {
            **self._setting.cities.definitions(),
            **self.tabu.definitions(),
            **rule_definitions(self._selection, OVER_LISTS_OR_ALL),
            "USUAL_EXPONENTS": int(self._setting.usual_exponents),
        }
        return [Source("walks/construct_all.cu", definitions, ["construct_all"])]

    def needed(self) -> dict[str, int]:
        """Return the bytes of every array."""
        ants = self.shape.blocks * self.shape.ants_a_block
        return {} if self.tabu.in_shared else {"tabus": ants * self.tabu.size}

    def prepare(self) -> None:
        """Prepare the arguments of all launches."""
        setting = self._setting
        arrays = setting.device.arrays
        self._shared = self.shape.ants_a_block * self.tabu.size if self.tabu.in_shared else 0
        setting.device.allow_shared("construct_all", self._shared)
        addresses = arrays.address("factors"), arrays.address("tau"), *setting.cities.arguments()
        self._before = (*addresses, *setting.exponents)
        self._after = self.tabu.size, arrays.optional("tabus")

    def build(self, key: int, tours: Any, ants: int) -> None:
        """Compute the weights, then walk."""
        self._weights.weigh()
        arguments = (*self._before, *words(key), ants, *self._after, int(tours))
        shape = self.shape
        self._setting.device.launch(
            "construct_all", shape.blocks_of(ants), shape.threads, *arguments, shared=self._shared
        )
