"""Whose tours an island receives."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pymoo_gpuaco.islands.member import Member, Tour

TOPOLOGIES = ("all", "ring", "none")


def incoming(topology: str, member: Member, members: Sequence[Member], best: Tour | None) -> Tour | None:
    """Return the tour that the topology sends an island with its next round, None where the island has it already.

    ``best`` is the best tour of all islands, merged.
    """
    tour = None
    if topology == "all":
        tour = best
    elif topology == "ring":
        tour = members[member.number - 1].best
    if tour is None or tour.cities is member.last_sent:
        return None
    if member.best is not None and np.array_equal(tour.cities, member.best.cities):
        return None
    return tour
