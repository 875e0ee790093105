"""MAX-MIN Ant System for quadratic assignment: colonies of ants that improve their placements by tabu search.

T. Stuetzle, H. Hoos, "MAX-MIN Ant System", Future Generation Computer Systems 16 (2000). Each ant builds a placement
and improves it by robust tabu search. Then each colony evaporates its trails and deposits on its best placement or on
the best one of the iteration. A colony that stagnates forgets its trails and its best placement. Colonies exchange
nothing: many small colonies find better placements than a large one.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pymoo_gpuaco import checks
from pymoo_gpuaco.assignment.model import AssignmentModel
from pymoo_gpuaco.assignment.parameters import (
    HIGHEST_TRAIL,
    AssignmentParameters,
    greedy_threshold,
    lowest_trail,
)
from pymoo_gpuaco.runtime.philox import fold_in
from pymoo_gpuaco.runtime.state import State, stored_integers, stored_numbers, stored_tours
from pymoo_gpuaco.runtime.stop import Stop, StoppableEngine


class Colonies(NamedTuple):
    """State of c colonies: trails (c, n, n), best placements (c, n), costs (c,), iterations without better ones (c,).

    A cost of inf stands for no placement yet. Trails are whole numbers of `lowest_trail` to `HIGHEST_TRAIL`.
    """

    trails: NDArray[np.int32]
    best: NDArray[np.int32]
    costs: NDArray[np.float64]
    stale: NDArray[np.int32]

    @classmethod
    def new(cls, colonies: int, n: int) -> Colonies:
        """Return colonies that have learnt nothing."""
        trails = np.full((colonies, n, n), HIGHEST_TRAIL, np.int32)
        empty = np.zeros((colonies, n), np.int32), np.full(colonies, np.inf), np.zeros(colonies, np.int32)
        return cls(trails, *empty)


class Step(NamedTuple):
    """An iteration: key, iterations of the tabu search, swaps of perturbed starts, threshold of greedy choices."""

    key: int
    iterations: int
    swaps: int
    greedy: int


class AssignmentDevice(Protocol):
    """Device that runs ants and holds the state of their colonies."""

    kind: str
    model: AssignmentModel
    parameters: AssignmentParameters
    n_colonies: int

    def colonies(self) -> Colonies:
        """Return the state of the colonies."""

    def use(self, colonies: Colonies) -> None:
        """Continue from the state of colonies."""

    def iterate(self, step: Step, stop: Stop) -> NDArray[np.float64]:
        """Run every ant and update the trails; return the costs (m,) of the ants' placements.

        After a stop, ants that did not begin have cost inf.
        """

    def placement(self, ant: int) -> NDArray[np.int32]:
        """Return the placement (n,) of an ant of the last iteration."""


class AssignmentSearch(StoppableEngine):
    """Engine of `GPUMMASQAP` on any device."""

    def __init__(self, device: AssignmentDevice) -> None:
        self.device, self.kind = device, device.kind
        self.instance = self.model = device.model
        self.parameters = device.parameters
        self.n_ants, self.n_colonies = device.parameters.n_ants, device.n_colonies
        self.tabu_iterations = self.parameters.tabu_iterations_of(
            self.model.n, self.model.structured, self.n_ants * self.n_colonies
        )
        self.stop = Stop()
        self.n_built = 0
        self.costs = np.empty(0)  # of the last iteration
        self._placement = np.arange(self.model.n, dtype=np.int32)
        self._cost = float(self.model.costs(self._placement[None])[0])

    @property
    def best(self) -> tuple[NDArray[np.int32], float]:
        """Return the best placement (n,) of the run and its cost; before the first one, item i is at location i."""
        return self._placement.copy(), self._cost / self.model.scale

    def search(self, key: int) -> None:
        """Run one generation. ``key`` in [0, 2**64)."""
        n, ours = self.model.n, self.parameters
        self.stop.reset()
        self.n_built = 0
        for number in range(ours.iterations_of_a_generation(n)):
            if number and self.stop.ended():
                break
            step = Step(
                fold_in(key, number),
                self.tabu_iterations,
                ours.swaps_of(n),
                greedy_threshold(n),
            )
            costs = self.device.iterate(step, self.stop)
            ant = int(costs.argmin())
            if costs[ant] < self._cost - self.model.noise:
                self._placement, self._cost = self.device.placement(ant), float(costs[ant])
            self.costs = costs[np.isfinite(costs)] / self.model.scale
            self.n_built += len(self.costs)

    def accept(self, placements: ArrayLike, lengths: ArrayLike) -> None:
        """Replace the best placements of the first colonies by given ones (m, n), sorted by cost, that cost less."""
        rows = checks.permutations("placements", placements, self.model.n).astype(np.int32)
        costs = self.model.costs(rows)
        colonies = self.device.colonies()
        for c, row in zip(range(self.n_colonies), np.argsort(costs, kind="stable"), strict=False):
            if costs[row] < colonies.costs[c]:
                colonies.best[c], colonies.costs[c], colonies.stale[c] = rows[row], costs[row], 0
            if costs[row] < self._cost:
                self._placement, self._cost = rows[row], float(costs[row])
        self.device.use(colonies)

    def export_state(self) -> State:
        """Return the colonies and the best placement of the run."""
        return {**self.device.colonies()._asdict(), "placement": self._placement[None]}

    def import_state(self, state: State) -> None:
        """Continue from an exported state of any engine kind. Raises ValueError before anything changes."""
        c, n = self.n_colonies, self.model.n
        costs = stored_numbers(state, "costs", (c,), low=-np.inf, infinity=True)
        placement = stored_tours(state, "placement", 1, n)[0]
        colonies = Colonies(
            stored_integers(state, "trails", (c, n, n), lowest_trail(n), HIGHEST_TRAIL),
            stored_tours(state, "best", c, n, np.isinf(costs)),
            costs,
            stored_integers(state, "stale", (c,), 0, 2**31 - 2),
        )
        self._placement, self._cost = placement, float(self.model.costs(placement[None])[0])
        self.device.use(colonies)
