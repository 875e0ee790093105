"""Division of long generations into launches, between which the host checks the clock.

Only some launches can be halted, and an interrupt waits for the others. Slices depend only on instance and parameters,
so that the same seed gives the same tours with and without a time limit.
"""

from __future__ import annotations

from dataclasses import dataclass

from pymoo_gpuaco.backends.cuda.local_search.search import usual_kicks
from pymoo_gpuaco.colony.parameters import ColonyParameters

# Most work of a launch, in steps of walks over candidate lists: an H200 makes 9e9 of them per second
# (benchmarks/results/gpu_iteration.json, fl3795: 3795 ants in 1.59 ms).
STEPS = 1 << 31
# Fewer ants do not fill a large device, and their launch is hardly shorter.
FEWEST_ANTS = 4096
# Other work in steps: cities that a warp weighs in a step; steps per city of local search (gpu_local_search.json,
# pla7397: 800 ants walk and search in 9 ms); steps of a kick and its repair (an estimate).
CITIES_A_STEP = 32
STEPS_OF_A_SEARCH = 13
STEPS_OF_A_KICK = 128
# Kicks of a tour in a launch: they are sequential.
KICKS = 1 << 14


@dataclass(frozen=True)
class Slices:
    """Ants of a launch, and kicks of an ant in each launch; the last slices may be smaller."""

    ants: int
    kicks: tuple[int, ...]  # by launch of the search; the first also finds local optima


def slices(n: int, m: int, parameters: ColonyParameters, together: bool, symmetric: bool = True) -> Slices:
    """Plan generations of m ants over n cities; ``together``: synchronous ants, which cannot be divided."""
    search = parameters.local_search
    kicks = 0 if search is None else search.number_of_kicks(n, usual_kicks(symmetric))
    parts = [KICKS] * (kicks // KICKS)
    if kicks % KICKS or not parts:
        parts.append(kicks % KICKS)
    an_ant = n * (1 if parameters.candidate_list_size is not None else -(-n // CITIES_A_STEP))
    if search is not None:
        an_ant += STEPS_OF_A_SEARCH * n + STEPS_OF_A_KICK * parts[0]
    return Slices(m if together else min(m, max(FEWEST_ANTS, STEPS // an_ant)), tuple(parts))
