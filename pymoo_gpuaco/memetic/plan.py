"""How a device spends a generation of focused ants, as numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Plan:
    """What one device decides about a focused colony; a round is one search of all its tours or windows.

    Attributes
    ----------
    rounds : most rounds of a generation, >= 1.
    rounds_without_limit : rounds of a generation where the time of the run is not limited, >= 1.
    rounds_between_checks : rounds after which the clock is checked and the host waits for the device, >= 1.
    whole_rounds : whether a round, once launched, goes on when time is over: then none is that would end too late by
        more than half of it.
    first_cycle : rounds of the first cycle of annealing, >= 1; each cycle is twice as long as the one before.
    cycles_in_one : a run known to be shorter than so many first cycles is one cycle.
    later_in_one : what is left of a run after that is one cycle where it is shorter than so many of the next cycle.
    kicks : that a tour gets in a round, >= 1.
    end : progress of the run, in (0, 1], at which its last cycle is over; the rest goes without heat.
    heat : temperature, in mean edges of the tour, at which a cycle begins that makes ``kicks_for_heat`` kicks a city;
        it grows with the root of the kicks, within [``least_heat``, ``most_heat``].
    cool_part : share of a cycle, its last, that goes without heat.
    merged_while_annealing, merged_at_zero : shortest tours that are merged with the best one after a generation that
        ends no cycle, at a temperature above zero or at zero; 0 keeps the shortest tour if it is shorter than the best.
    """

    rounds: int
    rounds_without_limit: int
    rounds_between_checks: int
    first_cycle: int
    cycles_in_one: int
    later_in_one: int
    kicks: int
    end: float
    heat: float
    kicks_for_heat: float
    least_heat: float
    most_heat: float
    cool_part: float = 0.0
    merged_while_annealing: int = 0
    merged_at_zero: int = 0
    whole_rounds: bool = False

    def first_heat(self, kicks: float) -> float:
        """Temperature at which a cycle of so many kicks a city starts, in mean edge lengths of the tour."""
        wanted = self.heat * math.sqrt(kicks / self.kicks_for_heat)
        return min(self.most_heat, max(self.least_heat, wanted))


@dataclass(frozen=True)
class Heat:
    """Temperatures and measures of a round of windows; lengths in whole units of the device's search."""

    first: float  # temperature at the beginning of the round
    last: float  # at its end
    edge: float  # mean edge of the best tour
    kicks: float  # a city that this cycle makes
