"""Parts common to all walks: settings, launch shapes and tabu layouts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from pymoo_gpuaco.backends.cuda.device import Device, Part
from pymoo_gpuaco.backends.cuda.device.parts import DeviceLimits, round_up
from pymoo_gpuaco.backends.cuda.instance.cities import Cities
from pymoo_gpuaco.backends.cuda.instance.lists import node_bytes, node_type
from pymoo_gpuaco.colony.parameters import ColonyParameters
from pymoo_gpuaco.colony.selection import ACS, CODES, RULES

#: rules of construct.cu and construct_all.cu (paper 001)
OVER_LISTS_OR_ALL = tuple(rule.name for rule in RULES.values() if rule.over_lists == rule.name != ACS)


class Walk(Part, Protocol):
    """A part that builds tours from the current trails."""

    parts: list[Part]  # dependencies, prepared before it

    def build(self, key: int, tours: Any, ants: int) -> None:
        """Launch the construction of tours (ants, n) on the device, ants <= m, with random numbers from ``key``."""
        ...


@dataclass(frozen=True)
class Setting:
    """Arguments of every walk."""

    device: Device
    cities: Cities
    parameters: ColonyParameters
    m: int  # most ants of a launch

    @property
    def colony(self) -> int:
        """Number of ants of a generation."""
        return self.parameters.n_ants or self.m

    @property
    def n(self) -> int:
        """Number of cities."""
        return self.cities.n

    @property
    def exponents(self) -> tuple[float, float, float]:
        """Alpha, beta, and the distance by which eta = 1 / d replaces 0, see ``least_distance``."""
        return float(self.parameters.alpha), float(self.parameters.beta), self.cities.instance.least_distance

    @property
    def usual_exponents(self) -> bool:
        """True for alpha = 1 and beta = 2, for which kernels need no powers."""
        return self.parameters.alpha == 1.0 and self.parameters.beta == 2.0


def rule_definitions(selection: str, among: Iterable[str]) -> dict[str, int]:
    """Return the definitions of a file: its selection rule, and the codes of all rules that it implements."""
    numbers = {f"RULE_{name.upper()}": CODES[name] for name in among}
    return {"SELECTION": CODES[selection], **numbers}


# Ants of a block whose rows are not in shared memory, by the kernels' launch bounds.
MOST_TOGETHER = 4
MOST_RESIDENT = 32  # ants of a block with rows in shared memory
FEW_A_MULTIPROCESSOR = 32
BLOCKS_A_MULTIPROCESSOR = 32  # with tabus in global memory; more would not be resident


@dataclass(frozen=True)
class Shape:
    """Number of blocks of a launch, and of ants that a block handles at a time."""

    blocks: int
    ants_a_block: int

    @property
    def threads(self) -> int:
        """Number of threads of a block."""
        return 32 * self.ants_a_block

    def blocks_of(self, ants: int) -> int:
        """Return the number of blocks that ``ants`` ants need."""
        return min(self.blocks, -(-ants // self.ants_a_block))


def ants_a_multiprocessor(m: int, limits: DeviceLimits) -> int:
    """Return the number of ants of a multiprocessor, if m are distributed evenly."""
    return -(-m // limits.multiprocessors)


def free_shape(m: int, ant_bytes: int, limits: DeviceLimits) -> Shape:
    """Return the shape for ants that need only ``ant_bytes``: a block each, or blocks of four if there are many."""
    few = ants_a_multiprocessor(m, limits) <= FEW_A_MULTIPROCESSOR
    together = 1 if few or MOST_TOGETHER * ant_bytes > limits.shared_bytes else MOST_TOGETHER
    blocks = -(-m // together)
    if ant_bytes > limits.shared_bytes:
        blocks = min(blocks, BLOCKS_A_MULTIPROCESSOR * limits.multiprocessors)
    return Shape(blocks, together)


def resident_shape(m: int, limits: DeviceLimits) -> Shape:
    """Return the shape of one block a multiprocessor, which copies the rows once for all its ants."""
    together = min(MOST_RESIDENT, ants_a_multiprocessor(m, limits))
    return Shape(min(-(-m // together), limits.multiprocessors), together)


LIST, COMPACT, BITMASK = 0, 1, 2  # TABU in tabu.cuh
_CODES = {"list": LIST, "compact": COMPACT, "bitmask": BITMASK}


@dataclass(frozen=True)
class TabuPlan:
    """Layout and size of a tabu (tabu.cuh)."""

    n: int
    code: int
    size: int  # bytes
    in_shared: bool  # at least one fits into the shared memory of a block

    def definitions(self) -> dict[str, object]:
        """Return the definitions of a walk."""
        return {"NODE": node_type(self.n), "TABU": self.code, "TABU_IN_SHARED": int(self.in_shared)}


def tabu_plan(asked: str, usual: str, n: int, limits: DeviceLimits) -> TabuPlan:
    """Plan the tabu of ``ColonyParameters.tabu``; "auto" is the walk's ``usual`` one."""
    code = _CODES[usual if asked == "auto" else asked]
    each = node_bytes(n)
    size = round_up({LIST: 2 * n * each, COMPACT: n * each, BITMASK: 4 * -(-n // 32)}[code], 16)
    return TabuPlan(n, code, size, size <= limits.shared_bytes)
