"""Settings, launch shapes and tabu layouts of all walks, and the walk over rows of candidates (construct.cu)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from pymoo_gpuaco.backends.cuda.device import Device, DeviceLimits, Part, Source, round_keys, round_up
from pymoo_gpuaco.backends.cuda.instance import Cities, ListPlan, Lists, node_bytes, node_type
from pymoo_gpuaco.backends.cuda.trails import Trails
from pymoo_gpuaco.backends.cuda.weights import Aliases, Rows, inverse_bytes
from pymoo_gpuaco.colony.parameters import ColonyParameters
from pymoo_gpuaco.colony.selection import ACS, CODES, RULES

#: rules of construct.cu and construct_all.cu (paper 001)
OVER_LISTS_OR_ALL = tuple(rule.name for rule in RULES.values() if rule.over_lists == rule.name != ACS)


class Walk(Part):
    """A part that builds tours from the current trails."""

    parts: list[Part]  # dependencies, prepared before the walk

    def build(self, key: int, tours: Any, ants: int) -> None:
        """Launch the construction of tours (ants, n) on the device, ants <= m, with random numbers from ``key``."""
        raise NotImplementedError


@dataclass(frozen=True)
class Setting:
    """Arguments of every walk."""

    device: Device
    cities: Cities
    parameters: ColonyParameters
    m: int  # maximum ants of a launch

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
        """Alpha, beta, and the minimum distance in eta = 1 / d, see ``least_distance``."""
        return float(self.parameters.alpha), float(self.parameters.beta), self.cities.instance.least_distance

    @property
    def usual_exponents(self) -> bool:
        """True for alpha = 1 and beta = 2, for which kernels compute no powers."""
        return self.parameters.alpha == 1.0 and self.parameters.beta == 2.0


def rule_definitions(selection: str, among: Iterable[str]) -> dict[str, int]:
    """Return the definitions of a file: its selection rule, and the codes of all rules that it implements."""
    numbers = {f"RULE_{name.upper()}": CODES[name] for name in among}
    return {"SELECTION": CODES[selection], **numbers}


MOST_TOGETHER = 4  # maximum ants per block with rows in global memory, by the kernels' launch bounds
MOST_RESIDENT = 32  # maximum ants per block with rows in shared memory
FEW_PER_MULTIPROCESSOR = 32  # up to this number of ants each has a block
BLOCKS_PER_MULTIPROCESSOR = 32  # maximum with tabus in global memory; more would not be resident


@dataclass(frozen=True)
class Shape:
    """Number of blocks of a launch, and of ants that a block handles simultaneously."""

    blocks: int
    ants_per_block: int

    @property
    def threads(self) -> int:
        """Number of threads of a block."""
        return 32 * self.ants_per_block

    def blocks_of(self, ants: int) -> int:
        """Return the number of blocks for ``ants`` ants."""
        return min(self.blocks, -(-ants // self.ants_per_block))


def ants_per_multiprocessor(m: int, limits: DeviceLimits) -> int:
    """Return the number of ants per multiprocessor if m are distributed evenly."""
    return -(-m // limits.multiprocessors)


def free_shape(m: int, ant_bytes: int, limits: DeviceLimits) -> Shape:
    """Return the shape for ants with ``ant_bytes`` of memory: one per block, or four if there are many."""
    few = ants_per_multiprocessor(m, limits) <= FEW_PER_MULTIPROCESSOR
    together = 1 if few or MOST_TOGETHER * ant_bytes > limits.shared_bytes else MOST_TOGETHER
    blocks = -(-m // together)
    if ant_bytes > limits.shared_bytes:
        blocks = min(blocks, BLOCKS_PER_MULTIPROCESSOR * limits.multiprocessors)
    return Shape(blocks, together)


def resident_shape(m: int, limits: DeviceLimits) -> Shape:
    """Return the shape of one block per multiprocessor, which copies the rows once for all its ants."""
    together = min(MOST_RESIDENT, ants_per_multiprocessor(m, limits))
    return Shape(min(-(-m // together), limits.multiprocessors), together)


LIST, COMPACT, BITMASK = 0, 1, 2  # TABU in tabu.cuh
_CODES = {"list": LIST, "compact": COMPACT, "bitmask": BITMASK}


@dataclass(frozen=True)
class TabuPlan:
    """Layout and size of a tabu (tabu.cuh)."""

    n: int
    code: int
    size: int  # bytes
    in_shared: bool  # the tabus are in shared memory: at least one fits

    def definitions(self) -> dict[str, object]:
        """Return the definitions of a walk."""
        return {"NODE": node_type(self.n), "TABU": self.code, "TABU_IN_SHARED": int(self.in_shared)}

    def shared_bytes(self, shape: Shape) -> int:
        """Return the bytes of shared memory of a block for its tabus."""
        return shape.ants_per_block * self.size if self.in_shared else 0

    def needed(self, shape: Shape) -> dict[str, int]:
        """Return the array of the tabus, unless they are in shared memory."""
        return {} if self.in_shared else {"tabus": shape.blocks * shape.ants_per_block * self.size}


def tabu_plan(asked: str, usual: str, n: int, limits: DeviceLimits) -> TabuPlan:
    """Plan the tabu of ``ColonyParameters.tabu``; "auto" is the walk's ``usual`` one."""
    code = _CODES[usual if asked == "auto" else asked]
    each = node_bytes(n)
    size = round_up({LIST: 2 * n * each, COMPACT: n * each, BITMASK: 4 * -(-n // 32)}[code], 16)
    return TabuPlan(n, code, size, size <= limits.shared_bytes)


FEW_ANTS = 20  # per multiprocessor, see FEW_ANTS in construct.cu


class RowWalk(Walk):
    """Walk over rows of candidates; if all of them are visited, the best other city is chosen.

    With ``all_cities`` (no candidate list), rows contain the heaviest edges, and all other cities can be drawn as well.
    The rows are in shared memory if they fit beside the tabus of a block.
    """

    def __init__(self, setting: Setting, trails: Trails) -> None:
        device, cities, p = setting.device, setting.cities, setting.parameters
        n, limits = setting.n, device.limits
        self._setting = setting
        self._all_cities = all_cities = p.candidate_list_size is None
        selection = str(p.rule("wrs").over_lists)
        lists = ListPlan(n, cities.instance.k)
        self.tabu = tabu = tabu_plan(p.tabu, "bitmask", n, limits)
        row_bytes = n * lists.stride * (4 + node_bytes(n)) + (inverse_bytes(n) if all_cities else 0)
        resident = row_bytes + MOST_RESIDENT * tabu.size <= limits.shared_bytes
        self.shape = (
            resident_shape(setting.m, limits) if resident else free_shape(setting.m, tabu.size, limits)
        )
        self._rows = Rows(device, cities, trails, setting.exponents, selection == "wrs", all_cities)
        self.parts = [Lists(device, cities.instance), self._rows]
        if all_cities:
            self.parts.insert(0, Aliases(device, cities, setting.exponents))
        # the only definition that depends on the number of ants, with two values and only for ``all_cities``
        few = all_cities and ants_per_multiprocessor(setting.m, limits) <= FEW_ANTS
        definitions = {
            **cities.definitions,
            **lists.definitions(),
            **tabu.definitions(),
            **rule_definitions(selection, OVER_LISTS_OR_ALL),
            "REST": int(all_cities),
            "DENSE": int(trails.dense),
            "NEAR": lists.near,
            "USUAL_EXPONENTS": int(setting.usual_exponents),
            "RESIDENT": int(resident),
            "FEW_ANTS": int(few),
        }
        shared = {"construct_tours": (row_bytes if resident else 0) + tabu.shared_bytes(self.shape)}
        self.sources = [Source("walks/construct.cu", definitions, [*shared], shared)]
        self.needed = tabu.needed(self.shape)

    def prepare(self) -> None:
        """Prepare the arguments of all launches."""
        setting = self._setting
        optional = setting.device.arrays.optional
        rows = "row_cities" if self._all_cities else "candidates"
        inputs = ("factors", rows, "tau", "outside_bound", "near_cities", "raised")
        outside = ("inverses", "rests", "spares", "aliases")  # null without ``all_cities``
        self._before = (*map(optional, inputs + outside), *setting.cities.arguments(), *setting.exponents)
        self._after = self.tabu.size, optional("tabus"), optional("halt")

    def build(self, key: int, tours: Any, ants: int) -> None:
        """Compute the weights, then walk; the host may halt the walk, see ``Device.wait``."""
        self._rows.weigh()
        arguments = (*self._before, *round_keys(key), ants, *self._after, int(tours))
        blocks, threads = self.shape.blocks_of(ants), self.shape.threads
        self._setting.device.launch("construct_tours", blocks, threads, *arguments)
