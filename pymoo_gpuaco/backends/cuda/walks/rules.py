"""Walks over all cities by the selection rules of selection_rules.cu."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pymoo_gpuaco.backends.cuda.device import DeviceLimits, round_up
from pymoo_gpuaco.backends.cuda.instance import node_bytes
from pymoo_gpuaco.backends.cuda.walks.walk import (
    TABU_CODES,
    FreeWalk,
    Shape,
    free_shape,
    make_shape,
    tabu_bytes,
)
from pymoo_gpuaco.backends.cuda.weights import AllWeights, WalkContext
from pymoo_gpuaco.colony.parameters import ColonyParameters
from pymoo_gpuaco.colony.selection import BITS, CODES, LIST, RULES

_PARTS = 128  # parts of a row of sums (PARTS of selection_rules.cu)


def rule_shape(n: int, m: int, parameters: ColonyParameters, limits: DeviceLimits) -> tuple[int, Shape]:
    """Return the lanes per ant in a tournament, else 32, and the launch shape of a rule for m ants over n cities.

    A tournament has a lane for every drawn city; the ants of a block share a warp (section IV.B, Murooka et al.).
    """
    rule = RULES[parameters.selection]
    if rule.remembers is None:
        return 32, free_shape(m, tabu_bytes(parameters.tabu, n), limits)
    # a bitmask, a list of the open cities, or first a bitmask and then a list
    listed = {BITS: 0, LIST: n}.get(rule.remembers, parameters.switch_left(n))
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
    """Walk by a rule: one warp per ant; in tournaments several ants per warp. Most rules determine the tabu."""

    def __init__(self, context: WalkContext) -> None:
        n, p = context.n, context.parameters
        if p.tabu == "auto":
            p = replace(p, tabu="compact")  # a list of the open cities is faster to read than a bitmask
        rule = RULES[p.selection]
        self._sums = rule.sums
        lanes, shape = rule_shape(n, context.m, p, context.device.limits)
        width = -(-n // _PARTS)
        stride = _PARTS * width
        definitions: dict[str, object] = {"SELECTION": CODES[p.selection], "WIDTH": width, "LANES": lanes}
        if rule.remembers is None:
            definitions["TABU"] = TABU_CODES[p.tabu]
        kernels = ["construct_by_rule", "sum_weights"]
        super().__init__(context, "walks/selection_rules.cu", kernels, definitions, shape)
        if self._sums:
            self.needed = {**self.needed, "weight_sums": 4 * n * stride, "part_ends": 4 * n * _PARTS}
        self._weights = AllWeights(context, race=p.selection == "wrs", stride=stride)
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
