"""When the tours of a colony meet those of others."""

from __future__ import annotations

from enum import IntEnum


class Meeting(IntEnum):
    """What a colony that shares its tours waits for; the later in a run, the higher the number."""

    NONE = 0  # nothing: it anneals
    CYCLE = 1  # a cycle of annealing is over, and others follow: its tours take over from the best of others
    FIRST = 2  # all annealing is over: its tours are to evolve among those of others, by single AB-cycles
    LAST = 3  # and then by blocks of them, among what the others have become; where tours are few, take over
    OVER = 4  # nothing any more
