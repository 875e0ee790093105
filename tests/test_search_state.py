"""What a memetic search puts away comes back as it was, and what is no state is refused."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest

from pymoo_gpuaco.memetic.schedule import Schedule
from pymoo_gpuaco.memetic.state import pack, unpack

N = 6
TOURS = np.array([np.roll(np.arange(N), turn) for turn in (0, 2)], np.int32)
BEST = np.array([5, 4, 3, 2, 1, 0], np.int32)


def schedule() -> Schedule:
    """In the last of its cycles, with no two numbers alike."""
    made = Schedule(
        7,
        cycle=2,
        improved=1,
        done=5,
        last=True,
        finished=False,
        share=0.25,
        rounds=11,
        started=0.1,
        step=0.02,
    )
    made.reported, made.progress = 0.4, math.nan
    return made


class Device:
    """Of a device, what its states are made from."""

    instance = SimpleNamespace(n=N)
    export_own = staticmethod(dict)
    read_own = staticmethod(lambda state: {} if state is None else {"engine": state["engine"]})

    def __init__(self, kind: str) -> None:
        self.kind = kind


CPU = Device("cpu")


def packed(kind: str = "cpu") -> dict[str, np.ndarray]:
    best = SimpleNamespace(best=BEST, length=12.5)
    return pack(Device(kind), TOURS, best, schedule(), (4, True, True), TOURS[1:])


def test_the_same_comes_back() -> None:
    state = unpack(packed(), CPU)
    assert state.own
    assert np.array_equal(state.tours, TOURS)
    assert state.best is not None
    assert state.best.tolist() == BEST.tolist()
    assert state.best_length == 12.5
    assert state.pace == (4, True, True)
    assert np.array_equal(state.migrants, TOURS[1:])
    assert "engine" in state.of_device
    told, expected = vars(state.schedule), vars(schedule())
    assert math.isnan(told.pop("progress"))
    assert math.isnan(expected.pop("progress"))
    assert told == expected


def test_another_kind_of_device_gets_the_best_first_and_goes_at_its_own_pace() -> None:
    state = unpack(packed("cuda"), CPU)
    assert not state.own
    assert state.of_device == {}
    assert np.array_equal(state.tours, [BEST, *TOURS])
    assert state.pace == (0, False, False)
    own = Schedule(14)  # its cycles have twice as many rounds
    state.restore(own)
    assert (own.first, own.cycle, own.done, own.rounds, own.step) == (14, 2, 10, 22, 0.0)


def test_before_the_first_tour_there_is_none() -> None:
    none = SimpleNamespace(best=None, length=math.inf)
    nothing = pack(CPU, np.zeros((2, N), np.int32), none, Schedule(7), (0, False, False), TOURS[:0])
    state = unpack(nothing, Device("cuda"))
    assert len(state.tours) == 0
    assert state.best is None
    assert state.best_length == math.inf


@pytest.mark.parametrize("name", sorted(packed()))
def test_what_is_missing_is_named(name: str) -> None:
    state = packed()
    del state[name]
    with pytest.raises(ValueError, match=f"'{name}'"):
        unpack(state, CPU)


@pytest.mark.parametrize(
    ("name", "place", "value"),
    [
        ("schedule", 0, 0),  # a first cycle of no rounds
        ("schedule", 1, -1),
        ("schedule", 4, 2),
        ("schedule", 5, 2),
        ("progress", 0, -0.5),
        ("progress", 0, 1.5),
        ("progress", 1, 1.5),
        ("progress", 3, -0.5),
        ("progress", 4, 1.5),
        ("progress", 4, -0.5),
        ("tours", (0, 0), 3),
    ],
)
def test_what_can_be_no_state_is_refused(name: str, place: object, value: float) -> None:
    state = packed()
    state[name][place] = value
    with pytest.raises(ValueError, match=f"'{name}'"):
        unpack(state, CPU)
