"""When the tours of a colony meet those of others."""

from __future__ import annotations

import math
from enum import IntEnum

from pymoo_gpuaco.search.parameters import FEWEST_TO_EVOLVE
from pymoo_gpuaco.search.schedule import Schedule


class Meeting(IntEnum):
    """What a colony that shares its tours waits for; the later in a run, the higher the number."""

    NONE = 0  # nothing: it anneals
    # a cycle of annealing is over, and others follow: its tours are assembled with the best of others
    CYCLE = 1
    FIRST_STAGE = 2  # all annealing is over: its tours evolve among those of others, by single AB-cycles
    SECOND_STAGE = 3  # then by blocks of AB-cycles; or, where tours are few, they are assembled with others'
    OVER = 4  # nothing any more


#: the meetings at which all annealing is over
AFTER_ANNEALING = (Meeting.FIRST_STAGE, Meeting.SECOND_STAGE)


def next_meeting(schedule: Schedule, n_tours: int) -> Meeting:
    """The meeting of a colony that shares its tours, at the end of a cycle; NONE: its own alone are recombined."""
    many = n_tours >= FEWEST_TO_EVOLVE
    if n_tours == 1:
        return Meeting.NONE
    if schedule.finished:
        return Meeting.FIRST_STAGE if many else Meeting.SECOND_STAGE
    # where it is known when many tours will evolve, those of several colonies stay different until then
    return Meeting.NONE if many and not math.isnan(schedule.progress) else Meeting.CYCLE
