"""Quadratic assignment on CUDA: one block an ant, see ``cuda_src/assignment``."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.assignment.model import AssignmentModel
from pymoo_gpuaco.assignment.parameters import (
    HIGHEST_TRAIL,
    MOST_LOCATIONS,
    AssignmentParameters,
    lowest_trail,
)
from pymoo_gpuaco.assignment.search import Colonies, Step
from pymoo_gpuaco.backends.cuda.device import Device, KernelGroup, Source, round_up, words
from pymoo_gpuaco.runtime.stop import Stop

_SEARCH, _LEARN = "assignment/search.cu", "assignment/learn.cu"
_KERNEL = "search_placements"
_MATRICES, _STATE = (
    ("flows", "distances", "linear", "kinds"),
    ("trails", "colony_best", "colony_costs", "stale"),
)
_LEARNERS = 256  # threads of a colony
_DEPTH = 4  # steps between two updates of C
_MOST_THREADS = 512


class Tier(NamedTuple):
    """Compiled for up to ``n`` locations: side of a tile, minimum blocks per multiprocessor (0: C in global memory)."""

    n: int
    side: int
    blocks: int


# The fastest of those measured on an H200 at n = 12, 30, 42, 60, 80, 90, 100 and 150: several blocks a multiprocessor
# hide the latency of a step, and a larger tile leaves more registers to each.
_TIERS = (
    Tier(16, 2, 16), Tier(30, 3, 16), Tier(44, 4, 8), Tier(64, 4, 5), Tier(84, 5, 4), Tier(102, 6, 3), Tier(114, 6, 2),
    Tier(155, 5, 1), Tier(186, 6, 1),
)  # fmt: skip
_OUTSIDE = Tier(MOST_LOCATIONS, 4, 0)
_MOST_SIDE_OF_DOUBLES = 5


class Shape(NamedTuple):
    """Launch shape of the tabu search of n items."""

    tier: Tier
    threads: int
    shared: int  # bytes
    tiles: int


def shape_of(model: AssignmentModel, most_shared: int) -> Shape:
    """Return the launch shape; a block has up to ``most_shared`` bytes of shared memory."""
    for tier in _TIERS:
        if model.n <= tier.n and (model.dtype == np.int32 or tier.side <= _MOST_SIDE_OF_DOUBLES):
            shape = _shape(model, tier)
            if shape.shared <= most_shared:
                return shape
    return _shape(model, _OUTSIDE)


def _threads(n: int, tier: Tier) -> int:
    across = -(-n // tier.side)
    return max(round_up(across * (across + 1) // 2, 32), round_up(n, 32)) if tier.blocks else _MOST_THREADS


def _shape(model: AssignmentModel, tier: Tier) -> Shape:
    n, pairs, size = model.n, len(model.flows), model.dtype.itemsize
    across, ld = -(-n // tier.side), round_up(n, 4)
    pad = max(round_up(across * tier.side, 4), ld)
    shared = (pairs * (2 * _DEPTH + 1) + 2) * pad * size + 4 * pad * 4
    shared += n * ld * size + 2 * n * n if tier.blocks else 0
    return Shape(tier, _threads(n, tier), round_up(shared, 16), across * (across + 1) // 2)


def definitions_of(model: AssignmentModel, shape: Shape) -> dict[str, object]:
    """Return the definitions of the tabu search."""
    whole, tier = model.dtype == np.int32, shape.tier
    return {
        "NUMBER": "int" if whole else "double",
        "PAIRS": len(model.flows),
        "SIDE": tier.side,
        "INSIDE": int(tier.blocks > 0),
        "DEPTH": _DEPTH,
        "THREADS": _threads(tier.n, tier),
        "BLOCKS": tier.blocks if whole and tier.blocks else 1,
    }


class CudaAssignment(KernelGroup):
    """``AssignmentDevice`` on one CUDA device; by default as many colonies as it runs at the same time."""

    kind = "cuda"

    def __init__(self, model: AssignmentModel, parameters: AssignmentParameters, device: int) -> None:
        self.model, self.parameters = model, parameters
        self.device = Device(device)
        self.shape = shape_of(model, self.device.limits.shared_bytes - 2048)
        pairs = len(model.flows)
        self.sources = [
            Source(_SEARCH, definitions_of(model, self.shape), [_KERNEL], {_KERNEL: self.shape.shared}),
            Source(_LEARN, {}, ["learn"]),
        ]
        self._ld = round_up(model.n, 4)
        matrix = model.n * self._ld * model.dtype.itemsize
        self.needed = {
            "flows": pairs * matrix, "distances": pairs * matrix, "linear": matrix, "kinds": 4 * model.n
        }  # fmt: skip
        self.device.set_up([self], "fewer ants (n_colonies) need less")
        occupying = self.device.occupying(_KERNEL, self.shape.threads)
        self.n_colonies = parameters.n_colonies or max(1, occupying // parameters.n_ants)
        self._take()

    def _take(self) -> None:
        """Allocate what every colony and every ant needs."""
        n, colonies, size = self.model.n, self.n_colonies, self.model.dtype.itemsize
        ants = colonies * self.parameters.n_ants
        pairs = self.shape.tiles * self.shape.tier.side**2
        needed = {
            "trails": 4 * colonies * n * n, "colony_best": 4 * colonies * n, "colony_costs": 8 * colonies,
            "stale": 4 * colonies, "best": 4 * ants * n, "costs": 8 * ants,
        }  # fmt: skip
        if not self.shape.tier.blocks:
            needed |= {"C": ants * n * self._ld * size, "changes": ants * pairs * size}
            needed |= {"until": 2 * ants * pairs, "stamps": 2 * ants * n * n}
        with self.device.working():
            self.device.take(needed)
        self.use(Colonies.new(colonies, n))

    def prepare(self) -> None:
        """Upload the model, its rows filled up with zeros."""
        model, device = self.model, self.device
        for name, array in (("flows", model.flows), ("distances", model.distances), ("linear", model.linear)):
            padded = np.zeros((*array.shape[:-1], self._ld), model.dtype)
            padded[..., : model.n] = array
            device.write(name, padded)
        device.write("kinds", model.kinds)

    def _empty_colonies(self) -> Colonies:
        c, n = self.n_colonies, self.model.n
        return Colonies(
            np.empty((c, n, n), np.int32), np.empty((c, n), np.int32), np.empty(c), np.empty(c, np.int32)
        )

    def colonies(self) -> Colonies:
        """Return the state of the colonies."""
        state = self._empty_colonies()
        with self.device.working():
            for name, array in zip(_STATE, state, strict=True):
                self.device.read(array, name)
        return state

    def use(self, colonies: Colonies) -> None:
        """Continue from the state of colonies."""
        with self.device.working():
            for name, array in zip(_STATE, colonies, strict=True):
                self.device.write(name, array)

    def iterate(self, step: Step, stop: Stop) -> NDArray[np.float64]:
        """Run every ant and update the trails, see ``AssignmentDevice``."""
        device, model, ours, arrays = self.device, self.model, self.parameters, self.device.arrays
        device.stop = stop
        ants = self.n_colonies * ours.n_ants
        costs = np.empty(ants)
        outside = [
            0 if self.shape.tier.blocks else arrays[name] for name in ("C", "changes", "until", "stamps")
        ]
        with device.working():
            device.launch(
                _KERNEL, ants, self.shape.threads,
                *(arrays[name] for name in (*_MATRICES, *_STATE[:3])),
                model.n, self._ld, ours.n_ants, step.iterations, step.swaps, np.uint32(step.greedy), model.noise,
                *words(step.key), arrays["best"], arrays["costs"], *outside, arrays["halt"],
            )  # fmt: skip
            device.launch(
                "learn", self.n_colonies, _LEARNERS, arrays["best"], arrays["costs"], model.n, ours.n_ants,
                ours.restart_after, np.uint32(ours.evaporation), ours.deposit, lowest_trail(model.n), HIGHEST_TRAIL,
                model.noise, *words(step.key),
                *(arrays[name] for name in _STATE),
            )  # fmt: skip
            device.wait_or_stop()
            device.read(costs, "costs")
        return costs

    def placement(self, ant: int) -> NDArray[np.int32]:
        """Return the placement (n,) of an ant of the last iteration."""
        found = np.empty(self.model.n, np.int32)
        with self.device.working():
            self.device.read(found, "best", 4 * self.model.n * ant)
        return found
