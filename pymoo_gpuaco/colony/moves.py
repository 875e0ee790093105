"""Moves of the local search by name; the index of a name is its number in compiled code."""

from __future__ import annotations

#: moves of the descent to a local optimum
CLIMBS = ("2opt", "2opt+oropt")
#: the last of CLIMBS, then window search
WINDOWS = "windows"
MOVES = (*CLIMBS, WINDOWS)


def number_of(moves: str) -> int:
    """Return the number of the moves of the descent."""
    return CLIMBS.index(CLIMBS[-1] if moves == WINDOWS else moves)
