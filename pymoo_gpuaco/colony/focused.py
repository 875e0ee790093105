"""What focused ants are told: how large their windows are, how many trials they make, how warm they start."""

from __future__ import annotations

import math
from dataclasses import dataclass

from pymoo_gpuaco.colony import checks

KICKS_FOR_FULL_HEAT = 10.0  # a city: with fewer, what the heat has broken is not mended by the end

# Cities of the longest stretch that a kick moves. Longer ones lead out of tours that shorter ones never leave, and take
# longer to repair: a search earns that time only if it makes many kicks a city.
SHORT_STRETCH, LONG_STRETCH = 50, 100
KICKS_FOR_LONG_STRETCHES = 20.0  # a city; in proportion below, but never shorter than short


@dataclass(frozen=True)
class FocusedParameters:
    """One focused colony. Measured on TSPLIB instances of 1,000 to 86,000 cities and random ones of 200,000.

    Parameters
    ----------
    n_candidates : candidate edges a city by alpha-nearness, in [4, 32], or None: 5, and 7 above 25,000 cities, where
        fewer 1-trees tell good edges less well.
    whole_up_to : up to so many cities each ant keeps a whole tour of its own, >= 8; above, ants take windows of one
        tour. Default 25,000.
    n_tours : tours of their own that ants keep there, in [1, 64]. Default 2.
    window : cities of a window, in [64, 100,000], and at most half of all. Default 50,000: in smaller ones long edges
        of the first tour stay, whose ends are in no window together.
    trials : kicks that the ants of one generation make together, >= 1, or None: 2,048, and more above 24,576 cities,
        one for every 12, up to 8,192.
    heat : temperature at which a cycle of annealing starts that makes 10 kicks a city and tour or more, in mean edge
        lengths of the tour, in [0, 100]. Shorter cycles start cooler, see ``first_heat``. Default 1.1.
    first_cycle : kicks a city in the first cycle, of all tours together; each cycle is twice as long as the one
        before, > 0. Default 16.
    ascent : 1-trees made for the node penalties, in [1, 1000], or None: 50, fewer above 10,000 cities, and 0 above
        100,000, where the nearest cities by quadrant are the candidates.
    """

    n_candidates: int | None = None
    whole_up_to: int = 25_000
    n_tours: int = 2
    window: int = 50_000
    trials: int | None = None
    heat: float = 1.1
    first_cycle: float = 16.0
    ascent: int | None = None

    def __post_init__(self) -> None:
        """Validate."""
        checks.optional_integer("n_candidates", self.n_candidates, 4, 32)
        checks.integer("whole_up_to", self.whole_up_to, 8)
        checks.integer("n_tours", self.n_tours, 1, 64)
        checks.integer("window", self.window, 64, 100_000)
        checks.optional_integer("trials", self.trials, 1)
        checks.real("heat", self.heat, 0.0, 100.0)
        checks.real("first_cycle", self.first_cycle, 0.0, 1e6, open_low=True)
        checks.optional_integer("ascent", self.ascent, 0, 1000)

    def first_heat(self, kicks: float) -> float:
        """Temperature at which a cycle of so many kicks a city starts, in mean edge lengths of the tour."""
        return self.heat * math.sqrt(min(1.0, kicks / KICKS_FOR_FULL_HEAT))

    def longest_stretch(self, kicks: float) -> int:
        """Cities of the longest stretch that kicks move in a cycle of so many kicks a city."""
        share = min(1.0, kicks / KICKS_FOR_LONG_STRETCHES)
        return max(SHORT_STRETCH, round(share * LONG_STRETCH))

    def trials_a_generation(self, n: int) -> int:
        """Kicks that the ants make together for n cities; measuring a long tour must not take as long as they do."""
        return min(max(2048, n // 12), 8192) if self.trials is None else self.trials

    def candidates(self, n: int) -> int:
        """Candidate edges a city by alpha-nearness for n cities."""
        if self.n_candidates is not None:
            return self.n_candidates
        return 5 if n <= 25_000 else 7

    def iterations(self, n: int) -> int:
        """1-trees of the ascent for n cities."""
        if self.ascent is not None:
            return self.ascent
        return 0 if n > 100_000 else min(50, 500_000 // n)
