"""The state of a memetic search, from which an engine of any kind of device can go on.

It holds what every engine knows: the best tour, the population, and where the annealing is. A device adds what only its
own kind reads (``counts``, and ``dirty`` cities on the CPU): a device of another kind searches every city once more.
Random numbers come from the key of each call, so no generator is stored.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.memetic.device import SearchDevice
from pymoo_gpuaco.memetic.population import Population
from pymoo_gpuaco.memetic.schedule import Schedule
from pymoo_gpuaco.runtime.state import State, stored_integers, stored_numbers, stored_tours

_MOST = 2**62
_PLANNED = "first", "cycles_in_one", "later_in_one", "end"  # of a schedule by its device


class MemeticState(NamedTuple):
    """A checked state."""

    own: bool  # whether an engine of the same kind put it away
    tours: NDArray[np.int32]  # (m, n), of another engine's the best first; m = 0 where none has been built
    best: NDArray[np.int32] | None  # (n,)
    best_length: float  # as the engine that put it away measured it
    schedule: Schedule  # of the run, by the rounds of the device that put it away
    #: rounds of the last generation, if it only annealed, whether its last round had a temperature, and whether the
    #: next one begins with an evolution; 0 and False for another kind of device, which goes at its own pace
    pace: tuple[int, bool, bool]
    mates: NDArray[np.int32]  # (e, n) migrants that the next recombination takes in
    of_device: State  # what ``SearchDevice.read_own`` has read

    def restore(self, schedule: Schedule) -> None:
        """Let a run's annealing go on where this one's was: at the same share of the same cycle."""
        stored = self.schedule
        first = schedule.first
        planned = {name: getattr(schedule, name) for name in _PLANNED}
        schedule.__dict__.update(vars(stored), **planned)
        schedule.done = stored.done * first // stored.first
        schedule.rounds = -(-stored.rounds * first // stored.first)  # any round at all stays one
        schedule.step = stored.step if self.own else 0.0  # another kind of device goes at its own pace


def pack(
    device: SearchDevice,
    tours: NDArray[np.int32],
    population: Population,
    schedule: Schedule,
    pace: tuple[int, bool, bool],
    mates: NDArray[np.int32],
) -> State:
    """Write a state, as copies; tours of zeros stand for "none yet"."""
    s = schedule
    best = np.zeros(device.instance.n, np.int32) if population.best is None else population.best
    return {
        "engine": _name(device.kind),
        "tours": tours.copy(),
        "best": best[None].copy(),
        "best_length": np.array([population.length]),
        "schedule": np.array([s.first, s.cycle, s.done, s.rounds, s.last, s.finished, s.improved], np.int64),
        # -1 stands for "unknown"
        "progress": np.nan_to_num(np.array([s.started, s.reported, s.progress, s.step, s.share]), nan=-1.0),
        "pace": np.array(pace, np.int64),
        "mates": mates.copy(),
        **device.export_own(),
    }


def unpack(state: State, device: SearchDevice) -> MemeticState:
    """Read what ``pack`` wrote, for a device of whichever kind. Raises ValueError as all readers of states do."""
    n = device.instance.n
    engine = stored_integers(state, "engine", (_size(state, "engine"),), 0, 127)
    tours = stored_tours(state, "tours", _size(state, "tours"), n)
    best = stored_tours(state, "best", 1, n)[0]
    length = float(stored_numbers(state, "best_length", (1,), infinity=True)[0])
    first, cycle, done, rounds, last, finished, improved = (
        int(number) for number in stored_integers(state, "schedule", (7,), 0, _MOST, np.int64)
    )
    if first == 0 or max(last, finished) > 1 or improved > cycle:
        raise ValueError(
            "state['schedule'] must hold first > 0, cycle, done, rounds, last and finished of 0 or 1, and "
            f"improved <= cycle, got {state['schedule']}"
        )
    started, reported, progress, step, share = stored_numbers(state, "progress", (5,), low=-1.0).tolist()
    if min(started, step, share) < 0.0 or max(started, reported, share) > 1.0:
        raise ValueError(f"state['progress'] must hold numbers in [0, 1], got {state['progress']}")
    schedule = Schedule(
        first,
        cycle=cycle,
        done=done,
        last=bool(last),
        finished=bool(finished),
        improved=improved,
        share=share,
        rounds=rounds,
        started=started,
        step=step,
    )
    schedule.reported = math.nan if reported < 0.0 else reported
    schedule.progress = math.nan if progress < 0.0 else progress
    own = np.array_equal(engine, _name(device.kind))
    annealed, annealing, evolves = (
        stored_integers(state, "pace", (3,), 0, _MOST, np.int64) if own else (0, 0, 0)
    )
    if max(annealing, evolves) > 1:
        raise ValueError(f"state['pace'] must end with two numbers of 0 or 1, got {state['pace']}")
    mates = stored_tours(state, "mates", _size(state, "mates"), n)
    tours = tours[tours.any(axis=1)]
    if not own and best.any():  # the engine may hold few of them
        tours = np.concatenate([best[None], tours])
    return MemeticState(
        own,
        tours,
        best if best.any() else None,
        length,
        schedule,
        (int(annealed), bool(annealing), bool(evolves)),
        mates,
        device.read_own(state if own else None),
    )


def _name(kind: str) -> NDArray[np.int32]:
    """The name of a kind of device as numbers."""
    return np.frombuffer(kind.encode("ascii"), np.uint8).astype(np.int32)


def _size(state: State, name: str) -> int:
    """Rows of an array of a state; 0 where it has none."""
    shape = np.shape(state.get(name, ()))
    return shape[0] if shape else 0
