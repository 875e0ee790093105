"""State of a memetic search, from which an engine on any kind of device can continue.

It has the best tour, the population, and the position in the annealing schedule. A device adds arrays that only its own
kind reads (``counts``, and ``dirty`` cities on the CPU); a device of another kind searches every city once more. Random
numbers depend on the key of each call, so the state has no random generator.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.memetic.device import SearchDevice
from pymoo_gpuaco.memetic.evolution import EvolutionState
from pymoo_gpuaco.memetic.population import Population
from pymoo_gpuaco.memetic.schedule import Schedule
from pymoo_gpuaco.runtime.state import State, stored_integers, stored_numbers, stored_tours

_MOST = 2**62
# Fields of a schedule in the arrays "schedule" and "progress".
_INTEGERS = "first", "cycle", "done", "rounds", "last", "finished", "improved"
_REALS = "started", "reported", "progress", "step", "share"
_EVOLVING = "annealed", "winners", "paused"  # arrays of tours of an evolution
_PLANNED = "first", "cycles_in_one", "later_in_one", "end"  # fields that the plan of the device sets


class MemeticState(NamedTuple):
    """A checked state."""

    own: bool  # True: exported by an engine on the same kind of device
    tours: NDArray[np.int32]  # (m, n), the best first if not ``own``; m = 0 before the first tours
    best: NDArray[np.int32] | None  # (n,)
    best_length: float  # as measured by the engine that exported it
    schedule: Schedule  # in rounds of the device that exported it
    #: rounds of the last generation, 0 if it did other work; True if its last round had a temperature above 0; True if
    #: the next generation begins with an evolution; (0, False, False) if not ``own``
    pace: tuple[int, bool, bool]
    migrants: NDArray[np.int32]  # (e, n) for the next recombination
    given: NDArray[np.int32]  # (g, n) to evolve before any annealing
    evolution: EvolutionState
    of_device: State  # result of ``SearchDevice.read_own``

    def restore(self, schedule: Schedule) -> None:
        """Set ``schedule`` to the same share of the same cycle, in rounds of its own device."""
        stored = self.schedule
        first = schedule.first
        planned = {name: getattr(schedule, name) for name in _PLANNED}
        schedule.__dict__.update(vars(stored), **planned)
        schedule.done = stored.done * first // stored.first
        schedule.rounds = -(-stored.rounds * first // stored.first)  # at least 1 if there was a round
        schedule.step = stored.step if self.own else 0.0  # rounds of another kind of device take another time


def pack(
    device: SearchDevice,
    tours: NDArray[np.int32],
    population: Population,
    schedule: Schedule,
    pace: tuple[int, bool, bool],
    migrants: NDArray[np.int32],
    given: NDArray[np.int32],
    evolution: EvolutionState,
) -> State:
    """Return a state of copies; rows of zeros mean that no tour exists yet."""
    best = np.zeros(device.instance.n, np.int32) if population.best is None else population.best
    return {
        "engine": _name(device.kind),
        "tours": tours.copy(),
        "best": best[None].copy(),
        "best_length": np.array([population.length]),
        "schedule": np.array([getattr(schedule, name) for name in _INTEGERS], np.int64),
        # -1 means "unknown"
        "progress": np.nan_to_num([getattr(schedule, name) for name in _REALS], nan=-1.0),
        "pace": np.array(pace, np.int64),
        "migrants": migrants.copy(),
        "given": given.copy(),
        "evolution": np.array([evolution.is_running, evolution.number, evolution.blocks], np.int64),
        **{name: getattr(evolution, name).reshape(-1, device.instance.n).copy() for name in _EVOLVING},
        **device.export_own(),
    }


def unpack(state: State, device: SearchDevice) -> MemeticState:
    """Check a state from ``pack`` for a device of any kind. Raises ValueError for an invalid state."""
    n = device.instance.n
    engine = stored_integers(state, "engine", (_size(state, "engine"),), 0, 127)
    tours = stored_tours(state, "tours", _size(state, "tours"), n, none=True)
    best = stored_tours(state, "best", 1, n, none=True)[0]
    length = float(stored_numbers(state, "best_length", (1,), infinity=True)[0])
    numbers = stored_integers(state, "schedule", (len(_INTEGERS),), 0, _MOST, np.int64).tolist()
    schedule = Schedule(**dict(zip(_INTEGERS, numbers, strict=True)))
    if schedule.first == 0 or max(numbers[4:6]) > 1 or schedule.improved > schedule.cycle:
        raise ValueError(
            "state['schedule'] must hold first > 0, cycle, done, rounds, last and finished of 0 or 1, and "
            f"improved <= cycle, got {state['schedule']}"
        )
    reals = stored_numbers(state, "progress", (len(_REALS),), low=-1.0).tolist()
    started, reported, _, step, share = reals
    if min(started, step, share) < 0.0 or max(started, reported, share) > 1.0:
        raise ValueError(f"state['progress'] must hold numbers in [0, 1], got {state['progress']}")
    for name, number in zip(_REALS, reals, strict=True):
        setattr(schedule, name, math.nan if number < 0.0 else number)
    schedule.last, schedule.finished = bool(schedule.last), bool(schedule.finished)
    own = np.array_equal(engine, _name(device.kind))
    annealed, annealing, evolves = (
        stored_integers(state, "pace", (3,), 0, _MOST, np.int64) if own else (0, 0, 0)
    )
    if max(annealing, evolves) > 1:
        raise ValueError(f"state['pace'] must end with two numbers of 0 or 1, got {state['pace']}")
    migrants, given = (stored_tours(state, name, _size(state, name), n) for name in ("migrants", "given"))
    running, number, blocks = stored_integers(state, "evolution", (3,), 0, _MOST, np.int64).tolist()
    evolving = {name: stored_tours(state, name, _size(state, name), n) for name in _EVOLVING}
    annealed_tours, winners = len(evolving["annealed"]), len(evolving["winners"])
    if max(running, blocks) > 1 or (running and annealed_tours < max(2, 2 * winners)):
        raise ValueError(
            "state['evolution'] must hold running of 0 or 1, number, and stage of 0 or 1; if it is running with two "
            f"annealed tours or more and at most half as many winners; got {state['evolution']}, {annealed_tours} "
            f"annealed tours and {winners} winners"
        )
    tours = tours[tours.any(axis=1)]
    if not own and best.any():  # this device may have fewer tours: the best must be among the first
        tours = np.concatenate([best[None], tours])
    return MemeticState(
        own,
        tours,
        best if best.any() else None,
        length,
        schedule,
        (int(annealed), bool(annealing), bool(evolves)),
        migrants,
        given,
        EvolutionState(bool(running), number, bool(blocks), **evolving),
        device.read_own(state if own else None),
    )


def _name(kind: str) -> NDArray[np.int32]:
    """Return the name of a kind of device as numbers."""
    return np.frombuffer(kind.encode("ascii"), np.uint8).astype(np.int32)


def _size(state: State, name: str) -> int:
    """Return the number of rows of an array of a state; 0 if it is missing."""
    shape = np.shape(state.get(name, ()))
    return shape[0] if shape else 0
