"""Tours over all cities by the selection rules of the two Hiroshima papers (000 and 004)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pymoo_gpuaco.backends.cuda.device import Part, Source, words
from pymoo_gpuaco.backends.cuda.device.parts import DeviceLimits, round_up
from pymoo_gpuaco.backends.cuda.instance.lists import node_bytes, node_type
from pymoo_gpuaco.backends.cuda.walks.walk import (
    BLOCKS_A_MULTIPROCESSOR,
    Setting,
    Shape,
    free_shape,
    rule_definitions,
)
from pymoo_gpuaco.backends.cuda.weights.weights import SCALED, AllWeights
from pymoo_gpuaco.colony.parameters import ColonyParameters
from pymoo_gpuaco.colony.selection import BITS, LIST, RULES

#: rules of selection_rules.cu
BY_RULE = tuple(rule.name for rule in RULES.values() if rule.remembers is not None)
_PARTS = 128  # of a row of sums
_MOST_QUADS = 8  # loads of four weights in flight of a lane


@dataclass(frozen=True)
class RulePlan:
    """Compilation of a rule, independent of the number of ants."""

    width: int  # places of a part; rows are padded to 128 parts
    quads: int
    tournament: bool
    lanes: int  # of an ant in a tournament; the ants of a block share a warp there
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
        ants = 32 // self.lanes  # of one warp
        blocks = -(-m // ants)
        most = blocks if self.in_shared else BLOCKS_A_MULTIPROCESSOR * limits.multiprocessors
        return Shape(min(blocks, most), ants)

    def shared_bytes(self, shape: Shape) -> int:
        """Return the shared memory of a block."""
        return shape.ants_a_block * self.ant_bytes if self.in_shared else 0


def rule_plan(n: int, parameters: ColonyParameters, limits: DeviceLimits) -> RulePlan:
    """Plan a rule over n cities."""
    rule = RULES[parameters.selection]
    tournament = rule.name == "acceptance_tournament"
    width = -(-n // _PARTS)
    rounds = -(-width // _MOST_QUADS)
    # a bit a city, a list of the open cities, or first a bitmask and then a list
    listed = {BITS: 0, LIST: n}.get(rule.remembers or BITS, parameters.switch_left(n))
    ant_bytes = (0 if rule.remembers == LIST else 16 * width) + round_up(listed * node_bytes(n), 16)
    lanes = 32
    if tournament:
        # a lane a drawn city, and several ants a warp (section IV.B, paper 004)
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


class RuleWalk:
    """Walk by a rule: a warp an ant, or several ants a warp in tournaments. The rule determines the tabu."""

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        self._rule = RULES[setting.parameters.selection]
        self.plan = rule_plan(setting.n, setting.parameters, setting.device.limits)
        self.shape = self.plan.shape(setting.m, setting.device.limits)
        self._weights = AllWeights(
            setting.device, setting.cities, setting.exponents, SCALED, self.plan.stride
        )
        self.parts: list[Part] = [self._weights]

    def sources(self) -> list[Source]:
        """Return the walk."""
        plan, setting = self.plan, self._setting
        definitions = {
            "NODE": node_type(setting.n),
            **rule_definitions(self._rule.name, BY_RULE),
            "WIDTH": plan.width,
            "QUADS": plan.quads,
            "LANES": plan.lanes,
            "TABU_IN_SHARED": int(plan.in_shared),
        }
        return [Source("walks/selection_rules.cu", definitions, ["sum_weights", "construct_by_rule"])]

    def needed(self) -> dict[str, int]:
        """Return the bytes of every array."""
        n, plan = self._setting.n, self.plan
        needed = {}
        if self._rule.sums:
            needed["weight_sums"] = 4 * n * plan.stride
            needed["part_ends"] = 4 * n * _PARTS
        if not plan.in_shared:
            needed["ants"] = self.shape.blocks * self.shape.ants_a_block * plan.ant_bytes
        return needed

    def prepare(self) -> None:
        """Allow the shared memory of a block."""
        self._setting.device.allow_shared("construct_by_rule", self.plan.shared_bytes(self.shape))

    def build(self, key: int, tours: Any, ants: int) -> None:
        """Compute the weights of all edges, then walk."""
        setting, plan, shape = self._setting, self.plan, self.shape
        device, p, n = setting.device, setting.parameters, setting.n
        a = device.arrays
        self._weights.weigh()
        if self._rule.sums:
            device.call("sum_weights", 32 * n, a["factors"], n, a["weight_sums"], a["part_ends"])
        device.launch(
            "construct_by_rule",
            shape.blocks_of(ants),
            shape.threads,
            a["factors"],
            a.optional("weight_sums"),
            a.optional("part_ends"),
            n,
            *words(key),
            ants,
            int(p.trials),
            p.switch_left(n),
            p.resolved_tournament_size(n),
            plan.ant_bytes,
            a.optional("ants"),
            tours,
            shared=plan.shared_bytes(shape),
        )
