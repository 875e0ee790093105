"""Whose tours an island receives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.islands.member import Member, Tour
from pymoo_gpuaco.search.meeting import AFTER_ANNEALING, Meeting

TOPOLOGIES = ("all", "ring", "none")
# Tours of others that an island evolves among, at most: a child costs the same among more, but they take memory and
# have to be sent.
MOST_MATES = 200


def givers(topology: str, member: Member, members: Sequence[Member]) -> list[Member]:
    """Return the islands whose tours the topology sends to an island."""
    if topology == "all":
        return [other for other in members if other is not member]
    before = members[member.number - 1]
    return [before] if topology == "ring" and before is not member else []


def mates(topology: str, member: Member, members: Sequence[Member], n: int) -> NDArray[np.int32]:
    """Return distinct tours (e, n) for the meeting that an island has reported; e = 0 where it has reported none.

    Between two cycles these are the best tours of its givers. When all annealing is over, they are all tours that the
    givers had then, or the shortest of each giver, equally many, where these are more than MOST_MATES.
    """
    others = givers(topology, member, members)
    rows: list[NDArray[np.int32]] = []
    if member.meeting == Meeting.CYCLE:
        rows = [other.best.cities for other in others if other.best is not None]
    elif member.meeting in AFTER_ANNEALING:
        most = max(1, MOST_MATES // max(1, len(others)))
        rows = [row for other in others if other.tours is not None for row in other.tours[:most]]
    return distinct(np.array(rows, np.int32).reshape(-1, n))


def distinct(tours: NDArray[Any]) -> NDArray[Any]:
    """Return tours (m, n) without those that came before.

    Not by `numpy.unique`: where that compares rows, it makes a TypeError of an interrupt from the keyboard.
    """
    first: dict[bytes, int] = {}
    for row, tour in enumerate(tours):
        first.setdefault(tour.tobytes(), row)
    return tours[list(first.values())]


def incoming(topology: str, member: Member, members: Sequence[Member], best: Tour | None) -> Tour | None:
    """Return the tour that the topology sends an island with its next round, None where the island has it already.

    ``best`` is the best tour of all islands, merged. An island that shares all its tours is sent none between meetings.
    """
    tour = None
    if member.meeting is not None:
        return None
    if topology == "all":
        tour = best
    elif topology == "ring":
        tour = members[member.number - 1].best
    if tour is None or tour.cities is member.last_sent:
        return None
    if member.best is not None and np.array_equal(tour.cities, member.best.cities):
        return None
    return tour
