"""Tours over all cities by the selection rules of the two Hiroshima papers (000 and 004)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pymoo_gpuaco.backends.cuda.device import Device, Source, words
from pymoo_gpuaco.backends.cuda.device.limits import DeviceLimits
from pymoo_gpuaco.backends.cuda.instance.cities import CITIES, Cities
from pymoo_gpuaco.backends.cuda.layout import Layout
from pymoo_gpuaco.colony.parameters import ColonyParameters

#: code of each rule in selection_rules.cu
RULES = {"roulette": 0, "compressed": 1, "stochastic_trial": 2, "hybrid": 3, "acceptance_tournament": 4}
_BY_SUMS = ("stochastic_trial", "hybrid")
_PARTS = 128  # of a row of sums
_MOST_QUADS = 8  # reads of four weights that a lane has under way


@dataclass(frozen=True)
class RuleLayout:
    """How a rule is compiled and launched."""

    width: int  # places of a part; rows are padded to 128 parts
    quads: int
    lanes: int  # of an ant in a tournament
    ants_a_block: int
    blocks: int
    ant_bytes: int
    in_shared: bool

    @property
    def stride(self) -> int:
        """Places of a padded row."""
        return _PARTS * self.width

    @property
    def shared_bytes(self) -> int:
        """Shared memory of a block."""
        return self.ants_a_block * self.ant_bytes if self.in_shared else 0


def rule_layout(plan: Layout, parameters: ColonyParameters, limits: DeviceLimits) -> RuleLayout:
    """Decide what a rule is compiled and launched with."""
    n, selection = plan.n, parameters.selection
    width = -(-n // _PARTS)
    rounds = -(-width // _MOST_QUADS)
    # a bit a city, a list of the cities that are open, or first the one and then the other
    ant_bytes = 0 if selection == "compressed" else 16 * width
    listed = {"compressed": n, "roulette": 0, "stochastic_trial": 0}.get(selection, parameters.switch_left(n))
    ant_bytes += -(-listed * plan.node_bytes // 16) * 16
    lanes = 32
    if selection == "acceptance_tournament":
        # a lane a city that is drawn, and several ants a warp (section IV.B, paper 004)
        while lanes // 2 >= parameters.resolved_tournament_size(n):
            lanes //= 2
        while lanes < 32 and 32 // lanes * ant_bytes > limits.shared_bytes:
            lanes *= 2
        ants_a_block = 32 // lanes
    else:
        share = -(-plan.m // limits.multiprocessors)
        ants_a_block = 1 if share <= 32 or 4 * ant_bytes > limits.shared_bytes else 4
    in_shared = ants_a_block * ant_bytes <= limits.shared_bytes
    blocks = -(-plan.m // ants_a_block)
    return RuleLayout(
        width=width,
        quads=-(-width // rounds),
        lanes=lanes,
        ants_a_block=ants_a_block,
        blocks=blocks if in_shared else min(blocks, 32 * limits.multiprocessors),
        ant_bytes=ant_bytes,
        in_shared=in_shared,
    )


class RuleWalk:
    """One warp an ant; in tournaments several ants a warp. The tabu is what the rule has, whatever ``tabu`` says."""

    def __init__(
        self, device: Device, cities: Cities, plan: Layout, parameters: ColonyParameters, shortest: float
    ) -> None:
        self._device = device
        self._cities = cities
        self._plan = plan
        self._parameters = parameters
        self._layout = rule_layout(plan, parameters, device.limits)
        self._exponents = np.float32(parameters.alpha), np.float32(parameters.beta), np.float32(shortest)

    def sources(self) -> list[Source]:
        """Return the walk and what it reads."""
        how = self._layout
        definitions = {
            **self._cities.definitions(),
            "NODE": self._plan.node,
            "SELECTION": RULES[self._parameters.selection],
            "WIDTH": how.width,
            "QUADS": how.quads,
            "LANES": how.lanes,
            "ANTS_A_BLOCK": how.ants_a_block,
            "TABU_IN_SHARED": int(how.in_shared),
        }
        kernels = {
            "weigh_all_edges": "P" + CITIES + "fffP",
            "sum_weights": "PiPP",
            "construct_by_rule": "PPPiIIiiiiiPP",
        }
        return [Source("walks/selection_rules.cu", definitions, kernels)]

    def needed(self) -> dict[str, int]:
        """Return the bytes of every array."""
        n, how = self._plan.n, self._layout
        needed = {"weights": 4 * n * how.stride}
        if self._parameters.selection in _BY_SUMS:
            needed["weight_sums"] = 4 * n * how.stride
            needed["part_ends"] = 4 * n * _PARTS
        if not how.in_shared:
            needed["ants"] = how.blocks * how.ants_a_block * how.ant_bytes
        return needed

    def prepare(self) -> None:
        """Weights are made anew for every tour."""
        self._device.allow_shared("construct_by_rule", self._layout.shared_bytes)

    def build(self, key: int, tours: Any) -> None:
        """Weigh all edges, then walk."""
        a, plan, how, p = self._device.arrays, self._plan, self._layout, self._parameters
        cities = self._cities.arguments()
        self._device.launch("weigh_all_edges", plan.n, 256, a["tau"], *cities, *self._exponents, a["weights"])
        if p.selection in _BY_SUMS:
            self._device.call(
                "sum_weights", 32 * plan.n, a["weights"], plan.n, a["weight_sums"], a["part_ends"]
            )
        self._device.launch(
            "construct_by_rule",
            how.blocks,
            32 * how.ants_a_block,
            a["weights"],
            a["weight_sums"],
            a["part_ends"],
            plan.n,
            *words(key),
            plan.m,
            int(p.trials),
            p.switch_left(plan.n),
            p.resolved_tournament_size(plan.n),
            how.ant_bytes,
            a["ants"],
            tours,
            shared=how.shared_bytes,
        )
