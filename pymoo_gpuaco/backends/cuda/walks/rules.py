"""Walks over all cities: the selection rules of papers 000 and 004, and those of paper 001 without candidate lists."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pymoo_gpuaco.backends.cuda.device import DeviceLimits, Source, round_up, words
from pymoo_gpuaco.backends.cuda.instance import node_bytes, node_type
from pymoo_gpuaco.backends.cuda.walks.walk import (
    BLOCKS_PER_MULTIPROCESSOR,
    OVER_LISTS_OR_ALL,
    Setting,
    Shape,
    Walk,
    free_shape,
    rule_definitions,
    tabu_plan,
)
from pymoo_gpuaco.backends.cuda.weights import INVERSES, SCALED, SHARES, AllWeights
from pymoo_gpuaco.colony.parameters import ColonyParameters
from pymoo_gpuaco.colony.selection import BITS, LIST, RULES

#: rules of selection_rules.cu
BY_RULE = tuple(rule.name for rule in RULES.values() if rule.remembers is not None)
_PARTS = 128  # parts of a row of sums (PARTS of selection_rules.cu)
_MOST_QUADS = 8  # maximum independent loads of four weights per lane


class AllCitiesWalk(Walk):
    """Roulette wheel ("rwm") or weighted reservoir sampling ("wrs") over all open cities (construct_all.cu)."""

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        device, selection = setting.device, setting.parameters.selection
        # a list of the open cities is faster to read than a bitmask
        self.tabu = tabu_plan(setting.parameters.tabu, "compact", setting.n, device.limits)
        self.shape = free_shape(setting.m, self.tabu.size, device.limits)
        form = INVERSES if selection == "wrs" else SHARES
        self._weights = AllWeights(device, setting.cities, setting.exponents, form)
        self.parts = [self._weights]
        definitions = {
            **setting.cities.definitions,
            **self.tabu.definitions(),
            **rule_definitions(selection, OVER_LISTS_OR_ALL),
            "USUAL_EXPONENTS": int(setting.usual_exponents),
        }
        shared = {"construct_all": self.tabu.shared_bytes(self.shape)}
        self.sources = [Source("walks/construct_all.cu", definitions, [*shared], shared)]
        self.needed = self.tabu.needed(self.shape)

    def build(self, key: int, tours: Any, ants: int) -> None:
        """Compute the weights, then walk."""
        self._weights.weigh()
        setting, a = self._setting, self._setting.device.arrays
        weights = (a["factors"], a["tau"], *setting.cities.arguments(), *setting.exponents)
        arguments = (*weights, *words(key), ants, self.tabu.size, a.optional("tabus"), int(tours))
        setting.device.launch("construct_all", self.shape.blocks_of(ants), self.shape.threads, *arguments)


@dataclass(frozen=True)
class RulePlan:
    """Compilation of a rule, independent of the number of ants."""

    width: int  # length of a part; rows are padded to 128 parts
    quads: int
    tournament: bool
    lanes: int  # lanes per ant in a tournament; the ants of a block share a warp
    ant_bytes: int
    in_shared: bool

    @property
    def stride(self) -> int:
        """Length of a padded row."""
        return _PARTS * self.width

    def shape(self, m: int, limits: DeviceLimits) -> Shape:
        """Return the launch shape for m ants."""
        if not self.tournament:
            return free_shape(m, self.ant_bytes, limits)
        ants = 32 // self.lanes  # per warp
        blocks = -(-m // ants)
        most = blocks if self.in_shared else BLOCKS_PER_MULTIPROCESSOR * limits.multiprocessors
        return Shape(min(blocks, most), ants)


def rule_plan(n: int, parameters: ColonyParameters, limits: DeviceLimits) -> RulePlan:
    """Plan a rule over n cities."""
    rule = RULES[parameters.selection]
    tournament = rule.name == "acceptance_tournament"
    width = -(-n // _PARTS)
    rounds = -(-width // _MOST_QUADS)
    # a bitmask, a list of the open cities, or first a bitmask and then a list
    listed = {BITS: 0, LIST: n}.get(rule.remembers or BITS, parameters.switch_left(n))
    ant_bytes = (0 if rule.remembers == LIST else 16 * width) + round_up(listed * node_bytes(n), 16)
    lanes = 32
    if tournament:
        # one lane per drawn city, and several ants per warp (section IV.B, paper 004)
        while lanes // 2 >= parameters.resolved_tournament_size(n):
            lanes //= 2
        while lanes < 32 and 32 // lanes * ant_bytes > limits.shared_bytes:
            lanes *= 2
    return RulePlan(
        width=width,
        quads=-(-width // rounds),
        tournament=tournament,
        lanes=lanes,
        ant_bytes=ant_bytes,
        in_shared=32 // lanes * ant_bytes <= limits.shared_bytes,
    )


class RuleWalk(Walk):
    """Walk by a rule: one warp per ant; in tournaments several ants per warp. The rule determines the tabu."""

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        device, n = setting.device, setting.n
        self._rule = RULES[setting.parameters.selection]
        self.plan = plan = rule_plan(n, setting.parameters, device.limits)
        self.shape = plan.shape(setting.m, device.limits)
        self._weights = AllWeights(device, setting.cities, setting.exponents, SCALED, plan.stride)
        self.parts = [self._weights]
        definitions = {
            "NODE": node_type(n),
            **rule_definitions(self._rule.name, BY_RULE),
            "WIDTH": plan.width,
            "QUADS": plan.quads,
            "LANES": plan.lanes,
            "TABU_IN_SHARED": int(plan.in_shared),
        }
        kernels = ["sum_weights", "construct_by_rule"]
        shared = {"construct_by_rule": self.shape.ants_per_block * plan.ant_bytes if plan.in_shared else 0}
        self.sources = [Source("walks/selection_rules.cu", definitions, kernels, shared)]
        self.needed = {}
        if self._rule.sums:
            self.needed |= {"weight_sums": 4 * n * plan.stride, "part_ends": 4 * n * _PARTS}
        if not plan.in_shared:
            self.needed |= {"ants": self.shape.blocks * self.shape.ants_per_block * plan.ant_bytes}

    def build(self, key: int, tours: Any, ants: int) -> None:
        """Compute the weights of all edges, then walk."""
        device, shape, n, p = self._setting.device, self.shape, self._setting.n, self._setting.parameters
        factors, sums, ends, memory = map(
            device.arrays.optional, ("factors", "weight_sums", "part_ends", "ants")
        )
        self._weights.weigh()
        if self._rule.sums:
            device.call("sum_weights", 32 * n, factors, n, sums, ends)
        choice = int(p.trials), p.switch_left(n), p.resolved_tournament_size(n), self.plan.ant_bytes
        arguments = (factors, sums, ends, n, *words(key), ants, *choice, memory, int(tours))
        device.launch("construct_by_rule", shape.blocks_of(ants), shape.threads, *arguments)
