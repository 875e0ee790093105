"""Conversion of islands to arrays and back, for copies and files."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from pymoo_gpuaco import checks
from pymoo_gpuaco.host.state import State, stored, stored_integers, stored_tours
from pymoo_gpuaco.islands.best import BestTour
from pymoo_gpuaco.islands.member import Member, Tour

_WHOLE = "island "  # and its number: the pickled colony of an island, for its next worker


def is_whole_island(name: str) -> bool:
    """Whether an array of a state is a pickle, which runs the code that is in it."""
    return name.startswith(_WHOLE)


def exported(key: int, best: BestTour, members: Sequence[Member], whole: bool) -> State:
    """Return the islands after their last rounds: the run's key, tours and, where ``whole``, pickled colonies.

    An island without a tour yet has a row of zeros and an infinite objective.
    """
    none = Tour(np.zeros(best.instance.n, np.int32), math.inf)
    tours = [none if tour is None else tour for tour in (best.tour, *(member.best for member in members))]
    state: State = {
        "key": np.array([key], np.uint64),
        "best": tours[0].cities[None],
        "tours": np.array([tour.cities for tour in tours[1:]]),
        "values": np.array([tour.value for tour in tours]),
        "rounds": np.array([[member.round, member.streams] for member in members], np.int64),
        "by_objective": np.array([best.by_objective], np.int64),
    }
    return {**state, **whole_colonies(members, whole)}


def whole_colonies(members: Sequence[Member], whole: bool) -> State:
    """Return the pickled colonies of islands, where ``whole``."""
    return {
        _WHOLE + str(member.number): np.frombuffer(member.state, np.uint8)
        for member in members
        if member.state is not None and whole
    }


def restore_colonies(state: State, members: Sequence[Member]) -> None:
    """Give members the colonies of a state."""
    for member in members:
        everything = state.get(_WHOLE + str(member.number))
        member.state = None if everything is None else np.asarray(everything, np.uint8).tobytes()


def restored(state: State, best: BestTour, members: Sequence[Member]) -> int:
    """Fill ``best`` and as many members as were exported; return the run's key.

    Raises ValueError, before anything changes, for a state of another number of islands or cities.
    """
    n, k = best.instance.n, len(members)
    key = stored(state, "key", (1,))
    best_tour = stored_tours(state, "best", 1, n)
    tours = stored_tours(state, "tours", k, n)
    values = checks.finite("state['values']", stored(state, "values", (k + 1,)), infinity=True)
    rounds = stored_integers(state, "rounds", (k, 2), 0, 2**62, np.int64)
    by_objective = stored_integers(state, "by_objective", (1,), 0, 1)
    found = [
        Tour(cities, float(value)) if cities.any() else None
        for cities, value in zip((*best_tour, *tours), values, strict=True)
    ]
    best.tour, best.by_objective = found[0], bool(by_objective[0])
    for member in members:
        member.best = found[member.number + 1]
        member.round, member.streams = (int(count) for count in rounds[member.number])
    restore_colonies(state, members)
    return int(key[0])
