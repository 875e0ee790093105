"""When the tours of a colony meet those of others."""

from __future__ import annotations

from enum import IntEnum


class Meeting(IntEnum):
    """What a colony that shares its tours waits for; the later in a run, the higher the number."""

    NONE = 0  # nothing: it anneals
    CYCLE = (
        1  # a cycle of annealing is over, and others follow: its tours are assembled with the best of others
    )
    FIRST_STAGE = 2  # all annealing is over: its tours evolve among those of others, by single AB-cycles
    SECOND_STAGE = 3  # then by blocks of AB-cycles; or, where tours are few, they are assembled with others'
    OVER = 4  # nothing any more


#: the meetings at which all annealing is over
AFTER_ANNEALING = (Meeting.FIRST_STAGE, Meeting.SECOND_STAGE)
