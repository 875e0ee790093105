"""The state of a focused colony: what one engine puts away, each of them goes on from.

It holds what every engine knows: the best tour, the tours at hand, trails on candidate edges, and where the annealing
is. Besides, a device puts away what only its own kind reads (``counts``, and ``dirty`` cities on the CPU): a device
of another kind looks at every city anew, which its own moves and candidates would ask for anyway. Random numbers come
from the key of each call, so there is no generator to put away.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.host.state import State, stored_integers, stored_numbers, stored_tours
from pymoo_gpuaco.search.device import SearchDevice
from pymoo_gpuaco.search.meeting import Meeting
from pymoo_gpuaco.search.population import Population
from pymoo_gpuaco.search.schedule import Schedule

_MOST = 2**62
_PLANNED = "first", "cycles_in_one", "later_in_one", "end"  # of a schedule by its device


class FocusedState(NamedTuple):
    """A checked state, on the candidates of the engine that reads it."""

    own: bool  # whether an engine of the same kind put it away
    tau: NDArray[np.float32]  # (n, k) of its candidates
    default_trail: NDArray[np.float32]  # (1,) of all other edges
    tours: NDArray[np.int32]  # (m, n), of another engine's the best first; m = 0 where none has been built
    best: NDArray[np.int32] | None  # (n,)
    best_length: float  # as the engine that put it away measured it
    schedule: Schedule  # of the run, by the rounds of the device that put it away
    #: rounds of the last generation, if it only annealed, whether its last round had a temperature, and the meeting
    #: that its tours wait for; 0, False and none for another kind of device, which goes at its own pace
    pace: tuple[int, bool, Meeting]
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
    pace: tuple[int, bool, Meeting],
) -> State:
    """Write a state, as copies; tours of zeros stand for "none yet"."""
    s = schedule
    tau, default_trail = device.trails()
    best = np.zeros(device.instance.n, np.int32) if population.best is None else population.best
    return {
        "engine": _name(device.kind),
        "ids": device.candidates.copy(),
        "tau": tau.copy(),
        "rest": default_trail.copy(),
        "tours": tours.copy(),
        "best": best[None].copy(),
        "best_length": np.array([population.length]),
        "schedule": np.array([s.first, s.cycle, s.done, s.rounds, s.last, s.finished], np.int64),
        # -1 stands for "unknown"
        "progress": np.nan_to_num(np.array([s.started, s.reported, s.progress, s.step, s.share]), nan=-1.0),
        "pace": np.array(pace, np.int64),
        **device.export_own(),
    }


def unpack(state: State, device: SearchDevice) -> FocusedState:
    """Read what ``pack`` wrote, for a device of whichever kind. Raises ValueError as all readers of states do."""
    candidates = device.candidates
    n = len(candidates)
    engine = stored_integers(state, "engine", (_size(state, "engine"),), 0, 127)
    listed = _size(state, "ids", axis=1)
    ids = stored_integers(state, "ids", (n, listed), 0, n - 1)
    tau = stored_numbers(state, "tau", (n, listed), np.float32)
    default_trail = stored_numbers(state, "rest", (1,), np.float32)
    tours = stored_tours(state, "tours", _size(state, "tours"), n)
    best = stored_tours(state, "best", 1, n)[0]
    length = float(stored_numbers(state, "best_length", (1,), infinity=True)[0])
    first, cycle, done, rounds, last, finished = (
        int(number) for number in stored_integers(state, "schedule", (6,), 0, _MOST, np.int64)
    )
    if first == 0 or max(last, finished) > 1:
        raise ValueError(
            f"state['schedule'] must begin with a positive number and end with two of 0 or 1, got {state['schedule']}"
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
        share=share,
        rounds=rounds,
        started=started,
        step=step,
    )
    schedule.reported = math.nan if reported < 0.0 else reported
    schedule.progress = math.nan if progress < 0.0 else progress
    own = np.array_equal(engine, _name(device.kind))
    annealed, annealing, due = stored_integers(state, "pace", (3,), 0, _MOST, np.int64) if own else (0, 0, 0)
    if due > Meeting.SECOND_STAGE:
        raise ValueError(
            f"state['pace'] must end with a number in [0, {Meeting.SECOND_STAGE:d}], got {state['pace']}"
        )
    tours = tours[tours.any(axis=1)]
    if not own and best.any():  # the engine may hold few of them
        tours = np.concatenate([best[None], tours])
    return FocusedState(
        own,
        trails_on(candidates, ids, tau, default_trail[0]),
        default_trail,
        tours,
        best if best.any() else None,
        length,
        schedule,
        (int(annealed), bool(annealing), Meeting(due)),
        device.read_own(state if own else None),
    )


def trails_on(
    candidates: NDArray[np.int32], ids: NDArray[np.int32], tau: NDArray[np.float32], default_trail: np.float32
) -> NDArray[np.float32]:
    """Trails (n, k) of the edges to ``candidates`` where ``tau`` (n, j) lies on those to ``ids``, for any direction.

    An edge that neither of its cities lists has the ``default_trail``.
    """
    if np.array_equal(candidates, ids):
        return tau
    n, k = candidates.shape
    found = np.full((n, k), default_trail, np.float32)
    city = np.arange(n)
    for column in range(k):
        other = candidates[:, column]
        for listed in range(ids.shape[1]):  # first what the other city says, so that a city's own word counts
            there = ids[other, listed] == city
            found[there, column] = tau[other[there], listed]
        for listed in range(ids.shape[1]):
            here = ids[:, listed] == other
            found[here, column] = tau[here, listed]
    return found


def _name(kind: str) -> NDArray[np.int32]:
    """The name of a kind of device as numbers."""
    return np.frombuffer(kind.encode("ascii"), np.uint8).astype(np.int32)


def _size(state: State, name: str, axis: int = 0) -> int:
    """Rows or columns of an array of a state; 0 where it has none."""
    shape = np.shape(state.get(name, ()))
    return shape[axis] if len(shape) > axis else 0
