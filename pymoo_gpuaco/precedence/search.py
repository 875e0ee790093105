"""Search for short tours under precedence constraints: annealing of several chains of feasible paths.

Each generation makes the same number of trials on every chain. The temperature falls with the progress of the run, once
or, with few cities, in several cycles of equal length. If the progress is unknown, each cycle is twice as long as the
one before. With many chains, short paths replace long ones (population annealing). As they become copies of one path,
random paths replace the longer half, or with few nodes all but the shortest, when the next cycle begins.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pymoo_gpuaco import checks
from pymoo_gpuaco.memetic.parameters import MemeticParameters
from pymoo_gpuaco.precedence.model import Chains, Excess, PathModel, Round
from pymoo_gpuaco.runtime.philox import fold_in, generator
from pymoo_gpuaco.runtime.state import State, stored_integers, stored_numbers, stored_tours
from pymoo_gpuaco.runtime.stop import Stop, StoppableEngine

# First and last temperature of a cycle, in units of `PathModel.excess` of the greedy path after local search. Tuned on
# the instances of benchmarks/precedence.py and a random one, in runs of 3 s.
FIRST_TEMPERATURE, LAST_TEMPERATURE = 1.0, 0.17
_ANNEALED = 0.97  # share of a run of known length after which the temperature is 0
# per chain, times m^2 for m nodes; with more trials, several cycles are better than a longer one (prob.42)
_TRIALS_OF_CYCLE = 150
# Up to this number of nodes, runs should find the optimum (tests/test_fuzz_constraints.py): cycles are shorter, and all
# chains but one start again.
_FEW_NODES, _TRIALS_OF_SHORT_CYCLE = 24, 30
_MUCH_LOWER = 0.25  # share of the highest excess below which that of a shorter path replaces it
FIRST_CYCLE = 16  # generations of the first cycle if the length of the run is unknown
# Random paths per cycle, up to milliseconds each, for half of the chains; for all but one, prob.42 is longer.
_MOST_RESTARTS = 64
FEWEST_TO_RESAMPLE = 8  # minimum number of chains for population annealing
_TRIALS_OF_IMPROVEMENT = 200  # per node in local search
_FEW_TO_DESCEND = 1000  # nodes of a greedy path that set-up improves, in less than .1 s


class PrecedenceDevice(Protocol):
    """Device that anneals paths."""

    kind: str
    model: PathModel
    n_chains: int
    trials: int  # per chain and generation

    def use(self, model: PathModel) -> None:
        """Use the costs of a model of the same nodes from now on."""

    def anneal(self, chains: Chains, around: Round, stop: Stop) -> None:
        """Anneal the paths in place, and store the best path of each chain."""


def check_arguments(parameters: MemeticParameters, device: Any) -> None:
    """Raise ValueError for arguments of a memetic search that a search with precedence does not use."""
    if parameters.candidates != "auto":
        raise ValueError(f"candidates must be 'auto' with precedence, got {parameters.candidates!r}")
    if parameters.n_offspring != MemeticParameters.n_offspring:
        raise ValueError(
            "n_offspring must not be set with precedence, which uses no recombination, got "
            f"{parameters.n_offspring}"
        )
    if isinstance(device, (str, Sequence)):
        raise ValueError(f"device must be one number with precedence, got {device!r}")


class PrecedenceSearch(StoppableEngine):
    """``SearchEngine`` of an instance with precedence, on any device."""

    def __init__(self, device: PrecedenceDevice, parameters: MemeticParameters) -> None:
        self.device = device
        self.instance = device.model.instance
        self.kind = device.kind
        self.parameters = parameters
        self.n_tours = device.n_chains
        self.n_trials = 0
        self.stop = Stop()
        self._chains: Chains | None = None
        self._cycle = self._done = 0  # number of the current cycle, and its generations so far
        self._improved = -1  # latest cycle that found a shorter path
        self._planned_cycles = 0  # if the length of the run is known, else 0
        self._progress, self._step = math.nan, 0.0
        self._excess: Excess | None = (
            None  # scale of temperatures, in distances; None before the first generation
        )
        self._longest = math.inf  # length of the path that the costs of the model were made for
        self._first = self._descended() if self.model.m <= _FEW_TO_DESCEND else None

    def describe(self) -> str:
        """Return the number of chains."""
        return f"{self.n_tours} chains with precedence"

    @property
    def model(self) -> PathModel:
        """Nodes, costs and precedence."""
        return self.device.model

    @property
    def _is_small(self) -> bool:
        """True if the run is expected to find the optimum."""
        return self.model.m <= _FEW_NODES

    # ---- Engine

    @property
    def n_built(self) -> int:
        """Number of paths per generation, one per chain."""
        return self.n_tours

    @property
    def may_stagnate(self) -> bool:
        """True if a whole cycle has found no shorter path, or annealing has ended."""
        unknown = math.isnan(self._progress)
        return self._cycle > self._improved + 1 if unknown else self._annealed() >= 1.0

    @property
    def lengths(self) -> NDArray[np.float64]:
        """Lengths (c,) of the current tours, rounded to units; (0,) before the first tours."""
        return np.empty(0) if self._chains is None else self.model.distances(self._chains.lengths[:, 0])

    def _tours(self, paths: Iterable[NDArray[np.int32]]) -> NDArray[np.int32]:
        """Return paths (e, m) as tours (e, n) of the problem."""
        return np.array([self.model.tour(path) for path in paths], np.int32).reshape(-1, self.instance.n)

    def _measured(self, paths: Iterable[NDArray[np.int32]]) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Return paths (e, m) as tours (e, n) of the problem, and their exact lengths (e,)."""
        tours = self._tours(paths)
        return tours, self.instance.tour_lengths(tours)

    def best_tours(self, most: int = 1) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Return up to ``most`` tours (e, n), the best one of each chain, the shortest first; and lengths (e,)."""
        if self._chains is None:
            return self._measured([self.model.greedy_path() if self._first is None else self._first.best[0]])
        found: dict[bytes, NDArray[np.int32]] = {}
        for chain in np.argsort(self._chains.lengths[:, 1], kind="stable"):
            found.setdefault(self._chains.best[chain].tobytes(), self._chains.best[chain])
            if len(found) == most:
                break
        return self._measured(found.values())

    # ---- a generation

    def expect(self, progress: float) -> None:
        """Set the progress of the run, in [0, 1], or NaN if unknown."""
        step = progress - self._progress
        self._step = max(0.0, step) if math.isfinite(step) else 0.0
        self._progress = float(progress)
        if self._planned_cycles == 0 and self._step > 0.0:
            generations = (1.0 - self._progress) / self._step
            trials = _TRIALS_OF_SHORT_CYCLE if self._is_small else _TRIALS_OF_CYCLE
            length = max(1.0, trials * self.model.m**2 / self.device.trials)
            self._planned_cycles = max(1, int(generations / length))

    def _annealed(self, progress: float | None = None) -> float:
        """Return the finished share of all annealing in a run of known length, now or at ``progress``."""
        progress = self._progress if progress is None else progress
        return progress / (self.parameters.annealing_share or _ANNEALED)

    def _begins_later_cycle(self) -> bool:
        """Return True if this generation begins a cycle that is not the first one."""
        if math.isnan(self._progress):
            return self._cycle > 0 and self._done == 0
        annealed, before = self._annealed(), self._annealed(self._progress - self._step)
        cycles = self._planned_cycles
        return annealed < 1.0 and int(before * cycles) < int(annealed * cycles)

    def _share(self) -> float:
        """Return the finished share of the current cycle."""
        if math.isnan(self._progress):
            return self._done / (FIRST_CYCLE << self._cycle)
        annealed = self._annealed()
        return annealed if annealed >= 1.0 else annealed * max(1, self._planned_cycles) % 1.0

    def _temperature(self, share: float) -> float:
        first = self.parameters.initial_temperature
        first = FIRST_TEMPERATURE if first is None else first
        if share >= 1.0 or first == 0.0:
            return 0.0
        assert self._excess is not None
        highest = first * self._excess.high * self.model.unit
        lowest = LAST_TEMPERATURE * self._excess.low * self.model.unit
        return highest * min(1.0, lowest / highest) ** share

    def _round(self, key: int, trials: int, first: float, last: float) -> Round:
        blocks = -(-trials // 256)
        steps = np.arange(blocks) / blocks
        return Round(key, trials, first + (last - first) * steps)

    def search(self, key: int) -> None:
        """Run one generation. ``key`` in [0, 2**64)."""
        self.stop.reset()
        chains = self._begin(key)
        share = self._share()
        first = self._temperature(share)
        unknown = math.isnan(self._progress)
        step = 1.0 / (FIRST_CYCLE << self._cycle) if unknown else self._step * max(1, self._planned_cycles)
        last = self._temperature(min(share + step, 1.0 - 1e-9)) if first > 0.0 else 0.0
        shortest = chains.shortest
        later = self._begins_later_cycle()
        chains = self._restarted(chains, key) if later else self._resampled(chains, key, first, last)
        self.device.anneal(chains, self._round(key, self.device.trials, first, last), self.stop)
        self._chains = chains
        self.n_trials += self.device.trials * self.n_tours
        if chains.shortest < shortest:
            self._improved = self._cycle
        self._done += 1
        if unknown and self._done >= FIRST_CYCLE << self._cycle:
            self._cycle, self._done = self._cycle + 1, 0

    def _begin(self, key: int) -> Chains:
        if self._excess is None:
            first = self._first or self._descended()
            while self._refine(first):
                first = self.model.chains(first.best)
                self._descend(first, 0)
            self._excess = self._excess_of(first.paths[0])
            paths = np.tile(first.paths, (self.n_tours, 1)) if self._chains is None else self._chains.paths
            self._chains = self.model.chains(paths)
        assert self._chains is not None
        chains = self._chains
        if self._refine(chains):
            chains = self.model.measured(chains.paths, chains.best)
        shortest = chains.best[chains.lengths[:, 1].argmin()]
        excess = self._excess_of(shortest)
        if excess.high < _MUCH_LOWER * self._excess.high:  # long edges have left the paths
            self._excess = excess
        return self._swapped(chains, key)

    def _descended(self) -> Chains:
        """Return a chain of the greedy path, the nearest allowed city next, after local search."""
        first = self.model.chains(self.model.greedy_path()[None])
        self._descend(first, 0)
        return first

    def _excess_of(self, path: NDArray[np.int32]) -> Excess:
        """Return the excess of a path in units of distance."""
        return Excess(*(value / self.model.unit for value in self.model.excess(path)))

    def _swapped(self, chains: Chains, key: int) -> Chains:
        """Return the chains, in some of which the nodes on both sides of the home city have changed places."""
        if len(self.model.nodes.sides) < 2:
            return chains
        temperature, paths = self._temperature(self._share()), chains.paths.copy()
        paths[:, [1, -2]] = paths[:, [-2, 1]]
        longer = self.model.lengths(paths) - chains.lengths[:, 0]
        taken = longer <= temperature * generator(key, 2).exponential(size=len(paths))
        paths = np.where(taken[:, None], paths, chains.paths)
        made = self.model.measured(paths, chains.best)
        shorter = made.lengths[:, 0] < made.lengths[:, 1]
        return self.model.measured(paths, np.where(shorter[:, None], paths, chains.best))

    def _refine(self, chains: Chains) -> bool:
        """Make the costs of the model finer if the best path is much shorter than its longest edges."""
        longest = self.model.distance(chains.best[chains.lengths[:, 1].argmin()])
        model = self.model.refined(longest)
        if model is self.model:
            return False
        self.device.use(model)
        self._longest = longest
        return True

    def _descend(self, chains: Chains, key: int) -> None:
        """Improve paths in place by local search: annealing at temperature 0."""
        self.device.anneal(
            chains, self._round(key, _TRIALS_OF_IMPROVEMENT * self.model.m, 0.0, 0.0), self.stop
        )

    def _resampled(self, chains: Chains, key: int, first: float, last: float) -> Chains:
        """Return copies of the chains; if many, resampled by the Boltzmann weights from ``first`` to ``last``.

        Population annealing: K. Hukushima and Y. Iba, AIP Conference Proceedings 690 (2003).
        """
        drawn = np.arange(self.n_tours)
        if self.n_tours >= FEWEST_TO_RESAMPLE and 0.0 < last < first:
            lengths = chains.lengths[:, 0]
            weights = np.exp(-(1.0 / last - 1.0 / first) * (lengths - lengths.min()))
            shares = np.cumsum(weights) / weights.sum() * self.n_tours
            drawn = np.searchsorted(shares, drawn + generator(key, 1).random())
        drawn = np.minimum(drawn, self.n_tours - 1)
        lengths = np.stack([chains.lengths[drawn, 0], chains.lengths[:, 1]], axis=1)
        return Chains(chains.paths[drawn], chains.best.copy(), lengths)

    def _restarted(self, chains: Chains, key: int) -> Chains:
        """Return copies of the chains, in which random paths replace the longer half, or all but the shortest."""
        kept = 1 if self._is_small else (self.n_tours + 1) // 2
        longer = np.argsort(chains.lengths[:, 0], kind="stable")[kept:]
        random, paths = generator(key, 3), chains.paths.copy()
        for chain in longer[-_MOST_RESTARTS:]:
            paths[chain] = self.model.path(random.permutation(self.instance.n))
        return self.model.measured(paths, chains.best.copy())

    # ---- Accepts, Improver

    def accept(self, tours: ArrayLike, lengths: ArrayLike) -> None:
        """Replace the longest paths by the shortest of tours (m, n), whose precedence is repaired first."""
        rows = checks.tours_by_length(tours, lengths, self.instance.n)[: self.n_tours]
        if not len(rows):
            return
        repaired = np.array([self.model.path(row) for row in rows])
        given = self.model.chains(np.resize(repaired, (self.n_tours, self.model.m)))
        if self._chains is None:
            self._chains = given
            return
        own = self._chains
        worst = np.argsort(-own.lengths[:, 0], kind="stable")[: max(1, min(len(rows), self.n_tours // 2))]
        own.paths[worst], own.lengths[worst, 0] = given.paths[: len(worst)], given.lengths[: len(worst), 0]
        shorter = worst[own.lengths[worst, 0] < own.lengths[worst, 1]]
        own.best[shorter], own.lengths[shorter, 1] = own.paths[shorter], own.lengths[shorter, 0]

    def improve(self, tours: ArrayLike, key: int) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Improve copies of any number of tours (m, n) by local search; return them and their exact lengths (m,)."""
        rows = checks.permutations("tours", tours, self.instance.n)
        self.stop.reset()
        improved = []
        for number, row in enumerate(rows):
            chain = self.model.chains(self.model.path(row)[None])
            self._descend(chain, fold_in(key, number))
            improved.append(chain.paths[0])
        return self._measured(improved)

    # ---- state

    def export_state(self) -> State:
        """Return the tours of the chains, the best tour of each, and the position in the schedule."""
        chains = self._chains
        return {
            "tours": self._tours(() if chains is None else chains.paths),
            "best": self._tours(() if chains is None else chains.best),
            "cycle": np.array([self._cycle, self._done, self._improved + 1, self._planned_cycles], np.int64),
            "scale": np.array(
                [*(self._excess or (-1.0,) * 3), -1.0 if math.isinf(self._longest) else self._longest]
            ),
            "progress": np.nan_to_num(np.array([self._progress, self._step]), nan=-1.0),
            "trials": np.array([self.n_trials], np.int64),
        }

    def import_state(self, state: State) -> None:
        """Continue from an exported state of the same instance, from any kind of device."""
        n, m = self.instance.n, len(state.get("tours", ()))
        tours, best = stored_tours(state, "tours", m, n), stored_tours(state, "best", m, n)
        cycle, done, improved, cycles = (
            int(v) for v in stored_integers(state, "cycle", (4,), 0, 2**62, np.int64)
        )
        progress, step = stored_numbers(state, "progress", (2,), low=-1.0).tolist()
        *excess, longest = stored_numbers(state, "scale", (4,), low=-1.0).tolist()
        trials = stored_integers(state, "trials", (1,), 0, 2**62, np.int64)
        if cycle > 40 or improved > cycle + 1 or max(progress, step) > 1.0 or step < 0.0:
            raise ValueError("state['cycle'] and state['progress'] are not those of a search with precedence")
        self._cycle, self._done, self._improved, self.n_trials = cycle, done, improved - 1, int(trials[0])
        self._planned_cycles = cycles
        self._progress, self._step = (math.nan if progress < 0.0 else progress), step
        self._excess = Excess(*excess) if min(excess) > 0.0 else None
        self._longest = math.inf if longest < 0.0 else longest
        if longest >= 0.0 and (refined := self.model.refined(longest)) is not self.model:
            self.device.use(refined)
        self._chains = None
        if m:
            paths, bests = (
                np.resize([self.model.path(row) for row in rows], (self.n_tours, self.model.m))
                for rows in (tours, best)
            )
            self._chains = self.model.measured(paths, bests)
