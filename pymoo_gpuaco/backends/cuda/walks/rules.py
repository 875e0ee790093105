"""Walks over all cities: the selection rules of papers 000 and 004, and those of paper 001 without candidate lists."""

from __future__ import annotations

from typing import Any

from pymoo_gpuaco.backends.cuda.device import DeviceLimits, round_up
from pymoo_gpuaco.backends.cuda.instance import node_bytes
from pymoo_gpuaco.backends.cuda.walks.walk import (
    OVER_LISTS_OR_ALL,
    TABU_CODES,
    FreeWalk,
    Shape,
    free_shape,
    make_shape,
    rule_definitions,
    tabu_bytes,
)
from pymoo_gpuaco.backends.cuda.weights import AllWeights, Setting
from pymoo_gpuaco.colony.parameters import ColonyParameters
from pymoo_gpuaco.colony.selection import BITS, LIST, RULES

#: rules of selection_rules.cu
BY_RULE = tuple(rule.name for rule in RULES.values() if rule.remembers is not None)
_PARTS = 128  # parts of a row of sums (PARTS of selection_rules.cu)


class AllCitiesWalk(FreeWalk):
    """Roulette wheel ("rwm") or weighted reservoir sampling ("wrs") over all open cities (construct_all.cu)."""

    def __init__(self, setting: Setting) -> None:
        selection, tabu = setting.parameters.selection, setting.parameters.tabu
        if tabu == "auto":
            tabu = "compact"  # a list of the open cities is faster to read than a bitmask
        shape = free_shape(setting.m, tabu_bytes(tabu, setting.n), setting.device.limits)
        definitions = {
            **setting.fallback_definitions,
            **rule_definitions(selection, OVER_LISTS_OR_ALL),
            "TABU": TABU_CODES[tabu],
        }
        super().__init__(setting, "walks/construct_all.cu", ["construct_all"], definitions, shape)
        self._weights = AllWeights(setting, selection == "wrs", setting.n)
        self.parts = [self._weights]

    def build(self, key: int, tours: Any, ants: int) -> None:
        """Compute the weights, then walk."""
        self._weights.weigh()
        a = self._setting.device.arrays
        self._launch((a["factors"], a["tau"], *self._setting.arguments()), key, tours, ants)


def rule_shape(n: int, m: int, parameters: ColonyParameters, limits: DeviceLimits) -> tuple[int, Shape]:
    """Return the lanes per ant in a tournament, else 32, and the launch shape of a rule for m ants over n cities.

    A tournament has a lane for every drawn city; the ants of a block share a warp (section IV.B, paper 004).
    """
    rule = RULES[parameters.selection]
    # a bitmask, a list of the open cities, or first a bitmask and then a list
    listed = {BITS: 0, LIST: n}.get(rule.remembers or BITS, parameters.switch_left(n))
    ant_bytes = 0 if rule.remembers == LIST else 16 * -(-n // _PARTS)
    ant_bytes += round_up(listed * node_bytes(n), 16)
    if rule.name != "acceptance_tournament":
        return 32, free_shape(m, ant_bytes, limits)
    lanes = 32
    while lanes // 2 >= parameters.resolved_tournament_size(n):
        lanes //= 2
    while lanes < 32 and 32 // lanes * ant_bytes > limits.shared_bytes:
        lanes *= 2
    return lanes, make_shape(m, 32 // lanes, ant_bytes, limits)


class RuleWalk(FreeWalk):
    """Walk by a rule: one warp per ant; in tournaments several ants per warp. The rule determines the tabu."""

    def __init__(self, setting: Setting) -> None:
        n, p = setting.n, setting.parameters
        self._sums = RULES[p.selection].sums
        lanes, shape = rule_shape(n, setting.m, p, setting.device.limits)
        width = -(-n // _PARTS)
        stride = _PARTS * width
        definitions: dict[str, object] = {
            **rule_definitions(p.selection, BY_RULE),
            "WIDTH": width,
            "LANES": lanes,
        }
        kernels = ["construct_by_rule", "sum_weights"]
        super().__init__(setting, "walks/selection_rules.cu", kernels, definitions, shape)
        if self._sums:
            self.needed = {**self.needed, "weight_sums": 4 * n * stride, "part_ends": 4 * n * _PARTS}
        self._weights = AllWeights(setting, race=False, stride=stride)
        self.parts = [self._weights]

    def build(self, key: int, tours: Any, ants: int) -> None:
        """Compute the weights of all edges, then walk."""
        device, n, p = self._setting.device, self._setting.n, self._setting.parameters
        factors, sums, ends = map(device.arrays.optional, ("factors", "weight_sums", "part_ends"))
        self._weights.weigh()
        if self._sums:
            device.call("sum_weights", 32 * n, factors, n, sums, ends)
        choice = int(p.trials), p.switch_left(n), p.resolved_tournament_size(n)
        self._launch((factors, sums, ends, n, *choice), key, tours, ants)
