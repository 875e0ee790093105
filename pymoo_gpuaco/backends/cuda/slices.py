"""How a long generation is cut into launches, between which the host looks at the clock. Pure numbers, no device.

Few launches can be ended from outside, and an interrupt from the keyboard waits for the others. What is cut depends on
the instance and the parameters alone, so that the same seed gives the same tours with a time limit and without.
"""

from __future__ import annotations

from dataclasses import dataclass

from pymoo_gpuaco.backends.cuda.local_search.search import usual_kicks
from pymoo_gpuaco.colony.parameters import ColonyParameters

# What all ants of a launch take at most, in steps of walks over candidate lists: an H200 makes 9e9 of them a second
# (benchmarks/results/gpu_iteration.json, fl3795: 3795 ants in 1.59 ms).
STEPS = 1 << 31
# Fewer ants do not fill a large device, and a launch of them is hardly shorter.
FEWEST_ANTS = 4096
# The same of other work: cities that a warp weighs in the time of a step; a city of a tour that is searched
# (gpu_local_search.json, pla7397: 800 ants walk and search in 9 ms); a kick and its repair, which was not measured.
CITIES_A_STEP = 32
STEPS_OF_A_SEARCH = 13
STEPS_OF_A_KICK = 128
# A tour's kicks follow one another, however few tours there are.
KICKS = 1 << 14


@dataclass(frozen=True)
class Slices:
    """Ants of a launch, and the kicks that each gets in one; the last of both may be fewer."""

    ants: int
    kicks: tuple[int, ...]  # launches of the search: in the first tours come to a local optimum


def slices(n: int, m: int, parameters: ColonyParameters, together: bool, symmetric: bool = True) -> Slices:
    """Plan generations of m ants over n cities; ``together``: ants that wait for each other, which no cut may part."""
    search = parameters.local_search
    kicks = 0 if search is None else search.number_of_kicks(n, usual_kicks(symmetric))
    parts = [KICKS] * (kicks // KICKS)
    if kicks % KICKS or not parts:
        parts.append(kicks % KICKS)
    an_ant = n * (1 if parameters.candidate_list_size is not None else -(-n // CITIES_A_STEP))
    if search is not None:
        an_ant += STEPS_OF_A_SEARCH * n + STEPS_OF_A_KICK * parts[0]
    return Slices(m if together else min(m, max(FEWEST_ANTS, STEPS // an_ant)), tuple(parts))
