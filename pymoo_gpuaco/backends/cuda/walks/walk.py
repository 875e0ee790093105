"""Launch shapes and tabu layouts of all walks, and the walk over rows of candidates (construct.cu)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pymoo_gpuaco.backends.cuda.device import DeviceLimits, KernelGroup, round_keys, round_up
from pymoo_gpuaco.backends.cuda.instance import CandidateRows, node_bytes
from pymoo_gpuaco.backends.cuda.trails import Trails
from pymoo_gpuaco.backends.cuda.weights import Aliases, CandidateWeights, WalkContext, inverse_bytes
from pymoo_gpuaco.colony.selection import CODES

MOST_TOGETHER = 4  # maximum ants per block with rows in global memory, by the kernels' launch bounds
MOST_RESIDENT = 32  # maximum ants per block with rows in shared memory
FEW_RESIDENT = 8  # up to this number a thread may use all the registers that it needs
FEW_PER_MULTIPROCESSOR = 32  # up to this number of ants each has a block
BLOCKS_PER_MULTIPROCESSOR = 32  # maximum with ants in global memory; more would not be resident
TABU_CODES = {"list": 0, "compact": 1, "bitmask": 2}  # TABU in tabu.cuh


def tabu_bytes(tabu: str, n: int) -> int:
    """Return the bytes of a tabu (tabu.cuh)."""
    each = node_bytes(n)
    return round_up({"list": 2 * n * each, "compact": n * each, "bitmask": 4 * -(-n // 32)}[tabu], 16)


@dataclass(frozen=True)
class Shape:
    """Blocks of a launch, ants that a block handles simultaneously, and the memory of an ant."""

    blocks: int
    ants_per_block: int
    ant_bytes: int
    in_shared: bool  # the ants' memory is in shared memory, else in the array ``ants``

    @property
    def shared_bytes(self) -> int:
        """Bytes of shared memory of a block for its ants."""
        return self.ants_per_block * self.ant_bytes if self.in_shared else 0


def ants_per_multiprocessor(m: int, limits: DeviceLimits) -> int:
    """Return the number of ants per multiprocessor if m are distributed evenly."""
    return -(-m // limits.multiprocessors)


def free_shape(m: int, ant_bytes: int, limits: DeviceLimits) -> Shape:
    """Return the shape for ants with ``ant_bytes`` of memory: one per block, or four if there are many."""
    few = ants_per_multiprocessor(m, limits) <= FEW_PER_MULTIPROCESSOR
    together = 1 if few or MOST_TOGETHER * ant_bytes > limits.shared_bytes else MOST_TOGETHER
    return make_shape(m, together, ant_bytes, limits)


def make_shape(m: int, together: int, ant_bytes: int, limits: DeviceLimits) -> Shape:
    """Return the shape for blocks of ``together`` ants, in shared memory if one block's ants fit."""
    blocks, in_shared = -(-m // together), together * ant_bytes <= limits.shared_bytes
    if not in_shared:
        blocks = min(blocks, BLOCKS_PER_MULTIPROCESSOR * limits.multiprocessors)
    return Shape(blocks, together, ant_bytes, in_shared)


def row_shape(m: int, ant_bytes: int, row_bytes: int, limits: DeviceLimits) -> tuple[Shape, bool]:
    """Return the shape for ants that share rows of ``row_bytes``, and True if these are in shared memory.

    Then a multiprocessor has one block, which copies the rows once for all its ants.
    """
    together = min(MOST_RESIDENT, ants_per_multiprocessor(m, limits))
    if row_bytes + together * ant_bytes > limits.shared_bytes:
        return free_shape(m, ant_bytes, limits), False
    return Shape(min(-(-m // together), limits.multiprocessors), together, ant_bytes, True), True


class Walk(KernelGroup, ABC):
    """A part that builds tours from the current trails."""

    parts: list[KernelGroup]  # dependencies, prepared before the walk

    @abstractmethod
    def build(self, key: int, tours: Any, ants: int) -> None:
        """Launch the construction of tours (ants, n) on the device, ants <= m, with random numbers from ``key``."""


class FreeWalk(Walk):
    """Base of the walks of unsynchronised ants: one kernel, whose last parameters are WALK_PARAMETERS (walk.cuh)."""

    def __init__(
        self,
        context: WalkContext,
        file: str,
        kernels: list[str],
        definitions: Mapping[str, object],
        shape: Shape,
        shared_bytes: int = 0,
    ) -> None:
        """Set sources and arrays. The first of ``kernels`` walks, with ``shared_bytes`` besides those of its ants."""
        self._setting = context
        self._kernel = kernels[0]
        self.shape = shape
        own = {"IN_SHARED": int(shape.in_shared), **definitions}
        shared = {kernels[0]: shared_bytes + shape.shared_bytes}
        self.sources = [context.source(file, kernels, own, shared)]
        ants = shape.blocks * shape.ants_per_block * shape.ant_bytes
        self.needed = {} if shape.in_shared else {"ants": ants}

    def _launch(self, arguments: Iterable[Any], key: int, tours: Any, ants: int) -> None:
        """Launch the walk of ``ants`` ants."""
        shape, device = self.shape, self._setting.device
        blocks = min(shape.blocks, -(-ants // shape.ants_per_block))
        common = (*round_keys(key), ants, shape.ant_bytes, device.arrays.optional("ants"), tours)
        device.launch(self._kernel, blocks, 32 * shape.ants_per_block, *arguments, *common)


class RowWalk(FreeWalk):
    """Walk over rows of candidates; if all of them are visited, the best other city is chosen.

    With ``all_cities`` (no candidate list), rows contain the heaviest edges, and all other cities can be drawn as well.
    The rows are in shared memory if they fit beside the tabus of a block.
    """

    def __init__(self, context: WalkContext, trails: Trails) -> None:
        n, p, limits, cities = context.n, context.parameters, context.device.limits, context.cities
        self._all_cities = all_cities = p.candidate_list_size is None
        selection = str(p.rule("wrs").over_lists)
        tabu = "bitmask" if p.tabu == "auto" else p.tabu
        size = tabu_bytes(tabu, n)
        row_bytes = n * context.lists.stride * (4 + node_bytes(n)) + (inverse_bytes(n) if all_cities else 0)
        shape, resident = row_shape(context.m, size, row_bytes, limits)
        definitions = {
            "SELECTION": CODES[selection],
            "TABU": TABU_CODES[tabu],
            "REST": int(all_cities),
            "DENSE": int(trails.dense),
            "RESIDENT": int(resident),
            "MOST_RESIDENT": FEW_RESIDENT if shape.ants_per_block <= FEW_RESIDENT else MOST_RESIDENT,
        }
        shared = row_bytes if resident else 0
        super().__init__(context, "walks/construct.cu", ["construct_tours"], definitions, shape, shared)
        self._rows = CandidateWeights(context, trails, selection == "wrs", all_cities)
        aliases = [Aliases(context)] if all_cities else []
        self.parts = [*aliases, CandidateRows(context.device, cities.instance), self._rows]

    def prepare(self) -> None:
        """Look up the arguments, which are the same in every launch."""
        optional = self._setting.device.arrays.optional
        rows = "row_cities" if self._all_cities else "candidates"
        inputs = ("factors", rows, "tau", "outside_bound", "near_cities", "raised")
        outside = ("inverses", "rests", "spares", "aliases")  # null without ``all_cities``
        self._arguments = (*map(optional, inputs + outside), *self._setting.arguments, optional("halt"))

    def build(self, key: int, tours: Any, ants: int) -> None:
        """Compute the weights, then walk; the host may halt the walk, see ``Device.wait``."""
        self._rows.weigh()
        self._launch(self._arguments, key, tours, ants)
