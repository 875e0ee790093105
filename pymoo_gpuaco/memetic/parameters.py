"""Parameters of the memetic search: population, windows, kicks, temperatures."""

from __future__ import annotations

import math
from dataclasses import dataclass

from pymoo_gpuaco import checks
from pymoo_gpuaco.colony.parameters import CANDIDATES, FEWEST_CITIES_TO_KICK

MOST_TOURS = 1000
WHOLE_UP_TO = 25_000  # cities; longer tours are searched in parts
# The same in a run that is long enough to evolve several tours.
WHOLE_IN_TIME_UP_TO = 100_000

# Cities of all tours per thread and second of a run with a time limit: one kick per three cities during annealing. More
# tours differ more and gain more from recombination, if the rest of the run is long enough to evolve them. Below
# FEWEST_WANTED tours, the default number is better.
CITIES_PER_SECOND, FEWEST_WANTED = 22_000.0, 6.0
# Factor on the number of tours of more than 25,000 cities, which need more kicks, and the minimum of this number: with
# fewer tours, windows of one tour are better.
LONG_TOUR_FACTOR, FEWEST_LONG_WANTED = 0.5, 12.0
# From this number of tours on, both the number and the kicks of each tour grow with the square root of the time. Nearly
# every edge of the optimum is then in some tour, and is found sooner among fewer, better tours. The second number is
# for more than 25,000 cities.
TOURS_OF_SHORT_RUNS, TOURS_OF_MANY_CITIES = 64, 16
# Factor on the seconds of a run if each city is a pair joined by a fixed edge. Doubled instances anneal slowly, so use
# fewer tours.
DOUBLED_TIME_FACTOR = 0.25
# Minimum number of tours for ``eax.evolve``: fewer tours soon become equal.
FEWEST_TO_EVOLVE = 8

MOST_CANDIDATES = 8  # per city: limited by the shared memory of windows on CUDA
# Temperature, in mean edges, of a cycle with ``KICKS_AT_FULL_TEMPERATURE`` kicks per city on the CPU.
FULL_TEMPERATURE = 1.1
KICKS_OF_SHORT_ROUND = 128  # of all tours together: about 10 ms
KICKS_AT_FULL_TEMPERATURE = 10.0  # per city: with fewer, a cycle does not recover from this temperature

# Cities of the longest stretch that a kick moves. Longer stretches leave local optima that shorter ones never leave,
# but their repair takes longer, so they need many kicks per city.
SHORT_STRETCH, LONG_STRETCH = 50, 100
KICKS_FOR_LONG_STRETCHES = (
    20.0  # per city; with fewer, stretches are shorter in proportion, down to SHORT_STRETCH
)


def scaled_population_size(wanted: float, n: int) -> float:
    """Return the number of tours of n cities from ``wanted``, which is proportional to the time of the run.

    Large numbers are reduced to a square root, see ``TOURS_OF_SHORT_RUNS``.
    """
    short = TOURS_OF_SHORT_RUNS if n <= WHOLE_UP_TO else TOURS_OF_MANY_CITIES
    return min(wanted if wanted <= short else math.sqrt(wanted * short), MOST_TOURS)


@dataclass(frozen=True)
class MemeticParameters:
    """Parameters of one memetic search, measured on instances of 1,000 to 200,000 cities.

    Parameters
    ----------
    population_size : tours to anneal and recombine, in [1, 1000]. None: one per thread, at least 2 (on CUDA enough to
        keep the device busy), or the result of `tours_in` if the run has a time limit. Eight or more are recombined by
        edge assembly crossover at the end of a run.
    n_offspring : offspring per pair of parents and generation of edge assembly crossover, in [1, 1000].
    candidate_list_size : candidate edges of each city, in [4, 8]. None: 8; on the CPU 5 by alpha-nearness, and 7 above
        25,000 cities.
    candidates : "auto", "nearest", "quadrant" or "alpha", see ``candidates.lists``.
    initial_temperature : temperature at which each cycle of annealing starts, in mean edge lengths of the tour, in
        [0, 100]. None: by the length of the cycle, see ``Plan.first_temperature``.
    annealing_share : share of a run of known length after which annealing ends, in (0, 1]. None: 0.7 if the population
        is recombined by edge assembly, else 0.97.
    n_windows : windows searched at a time, >= 1. None: on CUDA enough to keep the device busy, on the CPU one per part
        of one tour.
    whole_up_to : maximum cities of tours that are searched whole, >= 8; longer tours are searched in parts. None:
        25,000, or 100,000 if `tours_in` gives several tours. CPU only.
    """

    population_size: int | None = None
    n_offspring: int = 30
    candidate_list_size: int | None = None
    candidates: str = "auto"
    initial_temperature: float | None = None
    annealing_share: float | None = None
    n_windows: int | None = None
    whole_up_to: int | None = None

    def __post_init__(self) -> None:
        """Validate the parameters that users set."""
        checks.optional_integer("population_size", self.population_size, 1, MOST_TOURS)
        checks.integer("n_offspring", self.n_offspring, 1, 1000)
        checks.optional_integer("candidate_list_size", self.candidate_list_size, 4, MOST_CANDIDATES)
        checks.choice("candidates", self.candidates, CANDIDATES)
        if self.initial_temperature is not None:
            checks.real("initial_temperature", self.initial_temperature, 0.0, 100.0)
        if self.annealing_share is not None:
            checks.real("annealing_share", self.annealing_share, 0.0, 1.0, open_low=True)

    def whole(self, n: int) -> bool:
        """Return True if tours of n cities are searched whole without a time limit."""
        return n <= (WHOLE_UP_TO if self.whole_up_to is None else self.whole_up_to)

    def longest_stretch(self, kicks: float) -> int:
        """Return the cities of the longest stretch that kicks move in a cycle with ``kicks`` per city."""
        share = min(1.0, kicks / KICKS_FOR_LONG_STRETCHES)
        return max(SHORT_STRETCH, round(share * LONG_STRETCH))

    def tours(self, threads: int) -> int:
        """Return the default number of tours for this number of threads."""
        return min(max(2, threads), MOST_TOURS)

    def tours_in(self, seconds: float, n: int, threads: int) -> int | None:
        """Return the number of tours of n cities to evolve in a run of ``seconds``, or None for the default number.

        With w = 22,000 seconds threads / n it is w, at least 8, and from w = 64 on sqrt(64 w), at most 1000; None below
        w = 6. Above 25,000 cities w is half as much, and from w = 16 on the number is sqrt(16 w); None below w = 12,
        above 100,000 cities, and if ``whole_up_to`` is set.
        """
        wanted = seconds * threads * CITIES_PER_SECOND / n
        fewest = FEWEST_WANTED
        if not self.whole(n):
            wanted *= LONG_TOUR_FACTOR
            may_be_whole = self.whole_up_to is None and n <= WHOLE_IN_TIME_UP_TO
            fewest = FEWEST_LONG_WANTED if may_be_whole else math.inf
        if wanted < fewest:
            return None
        return max(FEWEST_TO_EVOLVE, round(scaled_population_size(wanted, n)))

    def cities_per_window(self, n: int, threads: int) -> int:
        """Return the cities of a window of a tour of n cities, for this number of threads.

        Smaller windows leave some long edges of the first tour, whose ends are never in the same window.
        """
        size = min(max(20_000, -(-n // threads)), 50_000)
        return min(size, max(FEWEST_CITIES_TO_KICK, -(-n // 2)))

    def trials_per_tour(self, n: int, m: int, limited: bool) -> int:
        """Return the kicks per round on each of m tours, or parts of one, of n cities: enough to outweigh its loading.

        limited : True if the run has a time limit; else rounds are short, so that a run by ``n_gen`` takes seconds.
        """
        if not self.whole(n):
            return max(1, min(max(2048, n // 12), 8192) // m)
        if not limited:
            return max(KICKS_OF_SHORT_ROUND // m, n // 32, 1)
        if m < FEWEST_TO_EVOLVE:
            return 1024
        return max(2048 // m, n // 32, 1)

    def kicks_of_first_cycle(self, n: int) -> float:
        """Return the kicks per city of a tour of n cities in the first cycle; each further cycle has twice as many."""
        return 8.0 if self.whole(n) else 16.0

    def n_candidates(self, n: int) -> int:
        """Return the candidate edges per city by alpha-nearness for n cities on the CPU."""
        if self.candidate_list_size is not None:
            return self.candidate_list_size
        return 5 if n <= WHOLE_UP_TO else 7

    def iterations(self, n: int) -> int:
        """Return the number of 1-trees for the node penalties of n cities, on the CPU.

        Without penalties the candidates are the nearest cities by quadrant.
        """
        return 0 if n > 100_000 else min(50, 500_000 // n)
