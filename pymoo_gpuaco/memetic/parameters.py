"""Parameters of the memetic search: population, windows, kicks, temperatures."""

from __future__ import annotations

import math
from dataclasses import dataclass

from pymoo_gpuaco import checks
from pymoo_gpuaco.colony.parameters import CANDIDATES, FEWEST_CITIES_TO_KICK

MOST_TOURS = 1000
WHOLE_UP_TO = 25_000  # cities
# Up to so many, where a run is long enough for several that evolve.
WHOLE_IN_TIME_UP_TO = 100_000

# Where a run's time is limited, a thread has so many cities of all tours for each second: a kick for three cities, in
# the part of the run that anneals. Tours that differ more give each other more, as long as the rest of the run is
# enough for them to evolve: after 20 s of two cores rl11849 ended at .0044 %, with half as many tours at .0153, d18512
# at .0087 and .0102, pla7397 at 0 and .0009 (one run each); after 5 s, means of three, at .026 and .032, .051 and .071,
# .0095 and .0109. Where that is fewer tours than wanted, as many as usual do better.
CITIES_A_SECOND, FEWEST_WANTED = 22_000.0, 6.0
# Of more than 25,000 cities, which need more kicks, there are so many times as many tours, and more are wanted: on a
# random map of 100,000 eight tours in 25 s lost to windows of one tour, and thirteen, in the time that w = 13 stands
# for, did as well.
OF_LONG_TOURS, FEWEST_LONG_WANTED = 0.5, 12.0
# From so many tours on, both their number and the kicks that each gets grow with the root of the time: the optimum's
# edges are nearly all in some tour then, and are found sooner among fewer and better ones. Of more than 25,000 cities
# that is so from fewer tours on: pla85900 ended at .038 % after a minute of an H100 with 50 tours, at .050 with 70, and
# of an H200 at .045 to .054 with 97.
TOURS_OF_SHORT_RUNS, TOURS_OF_MANY_CITIES = 64, 16
# Of the seconds so many count where each city is two, joined by an edge that stays: tours anneal more slowly there, and
# fewer of them end shorter.
OF_SECONDS_DOUBLED = 0.25
# So many tours or more evolve together, see ``eax.evolve``: fewer have lost what they could give each other soon.
FEWEST_TO_EVOLVE = 8

MOST_CANDIDATES = 8  # of a city: as many as windows on CUDA have shared memory for
# Temperature, in mean edges, of a cycle that makes ``KICKS_FOR_FULL_HEAT`` kicks a city on the CPU.
FULL_HEAT = 1.1
KICKS_OF_SHORT_ROUND = 128  # of all tours: some 10 ms
KICKS_FOR_FULL_HEAT = 10.0  # a city: with fewer, what the heat has broken is not mended by the end

# Cities of the longest stretch that a kick moves. Longer ones lead out of tours that shorter ones never leave, and take
# longer to repair: a search earns that time only if it makes many kicks a city.
SHORT_STRETCH, LONG_STRETCH = 50, 100
KICKS_FOR_LONG_STRETCHES = 20.0  # a city; in proportion below, but never shorter than short


def fewer_of_many(wanted: float, n: int) -> float:
    """As many tours of n cities as wanted in proportion to a run's time; of many fewer, see ``TOURS_OF_SHORT_RUNS``."""
    short = TOURS_OF_SHORT_RUNS if n <= WHOLE_UP_TO else TOURS_OF_MANY_CITIES
    return min(wanted if wanted <= short else math.sqrt(wanted * short), MOST_TOURS)


@dataclass(frozen=True)
class MemeticParameters:
    """Parameters of one memetic search, measured on instances of 1,000 to 200,000 cities.

    Parameters
    ----------
    population_size : tours that are annealed and recombined, in [1, 1000], or None: one for each thread, at least 2 (on
        CUDA as many as keep the device busy), and where the time of a run is limited what `tours_in` says. Eight or
        more are recombined by edge assembly crossover at the end of a run.
    n_offspring : offspring of a pair of parents in a generation of edge assembly crossover, in [1, 1000].
    candidate_list_size : candidate edges of each city, in [4, 8], or None: 8; on the CPU 5 by alpha-nearness, and 7
        above 25,000 cities.
    candidates : "auto", "nearest", "quadrant" or "alpha", see ``candidates.lists``.
    initial_temperature : temperature at which each cycle of annealing starts, in mean edge lengths of the tour, in
        [0, 100], or None: what suits the length of the cycle, see ``Plan.first_heat``.
    annealing_share : share of a run of known length after which annealing ends, in (0, 1], or None: 0.7 where the
        population is recombined by edge assembly, else 0.97.
    n_windows : windows that are searched at a time, >= 1, or None: on CUDA what keeps the device busy, on the CPU one
        for each part of one tour.
    whole_up_to : most cities of tours that are searched whole, >= 8; longer ones are searched in parts. None: 25,000,
        and 100,000 where the time of a run is limited and several tours pay, see `tours_in`. CPU only, as below.
    window : cities of a part of one tour, a window or a stretch, in [64, 100,000], and at most half of all, or None:
        one part for each thread, but parts of 20,000 to 50,000 cities: in smaller ones long edges of the first tour
        stay, whose ends are in no part together.
    trials : kicks of all tours in a round, >= 1, or None: see `trials_a_tour`.
    first_cycle : kicks a city that a tour gets in the first cycle, > 0, or None: 8, and 16 above 25,000 cities; each
        cycle is twice as long as the one before.
    ascent : 1-trees made for the node penalties, in [1, 1000], or None: 50, fewer above 10,000 cities, and 0 above
        100,000, where the nearest cities by quadrant are the candidates.
    """

    population_size: int | None = None
    n_offspring: int = 30
    candidate_list_size: int | None = None
    candidates: str = "auto"
    initial_temperature: float | None = None
    annealing_share: float | None = None
    n_windows: int | None = None
    whole_up_to: int | None = None
    window: int | None = None
    trials: int | None = None
    first_cycle: float | None = None
    ascent: int | None = None

    def __post_init__(self) -> None:
        """Validate."""
        checks.optional_integer("population_size", self.population_size, 1, MOST_TOURS)
        checks.integer("n_offspring", self.n_offspring, 1, 1000)
        checks.optional_integer("candidate_list_size", self.candidate_list_size, 4, MOST_CANDIDATES)
        checks.choice("candidates", self.candidates, CANDIDATES)
        if self.initial_temperature is not None:
            checks.real("initial_temperature", self.initial_temperature, 0.0, 100.0)
        if self.annealing_share is not None:
            checks.real("annealing_share", self.annealing_share, 0.0, 1.0, open_low=True)
        checks.optional_integer("n_windows", self.n_windows, 1, 1 << 20)
        checks.optional_integer("whole_up_to", self.whole_up_to, 8)
        checks.optional_integer("window", self.window, 64, 100_000)
        checks.optional_integer("trials", self.trials, 1)
        if self.first_cycle is not None:
            checks.real("first_cycle", self.first_cycle, 0.0, 1e6, open_low=True)
        checks.optional_integer("ascent", self.ascent, 0, 1000)

    def whole(self, n: int) -> bool:
        """Whether each ant keeps a whole tour of n cities, whatever the time of a run."""
        return n <= (WHOLE_UP_TO if self.whole_up_to is None else self.whole_up_to)

    def longest_stretch(self, kicks: float) -> int:
        """Cities of the longest stretch that kicks move in a cycle of so many kicks a city."""
        share = min(1.0, kicks / KICKS_FOR_LONG_STRETCHES)
        return max(SHORT_STRETCH, round(share * LONG_STRETCH))

    def tours(self, threads: int) -> int:
        """Tours of their own that ants keep, where so many threads search them."""
        return min(max(2, threads), MOST_TOURS)

    def tours_in(self, seconds: float, n: int, threads: int) -> int | None:
        """Tours of n cities that pay in so many seconds: several that evolve together, or None for as many as usual.

        They are w = 22,000 seconds threads / n, at least 8, and from w = 64 on the root of 64 w, at most 1000; None
        below w = 6. Where windows of one tour are usual, as above 25,000 cities, w is
        half as much and from w = 16 on they are the root of 16 w; None below w = 12, above 100,000 cities, and where
        ``whole_up_to`` is given.
        """
        wanted = seconds * threads * CITIES_A_SECOND / n
        fewest = FEWEST_WANTED
        if not self.whole(n):
            wanted *= OF_LONG_TOURS
            can_be = self.whole_up_to is None and n <= WHOLE_IN_TIME_UP_TO
            fewest = FEWEST_LONG_WANTED if can_be else math.inf
        if wanted < fewest:
            return None
        return max(FEWEST_TO_EVOLVE, round(fewer_of_many(wanted, n)))

    def cities_a_window(self, n: int, threads: int) -> int:
        """Cities of a window of a tour of n cities, where so many threads search windows."""
        size = min(max(20_000, -(-n // threads)), 50_000) if self.window is None else self.window
        return min(size, max(FEWEST_CITIES_TO_KICK, -(-n // 2)))

    def trials_a_tour(self, n: int, m: int, limited: bool) -> int:
        """Kicks on each of m tours, or parts of one, of n cities in a round; loading a tour must not take as long.

        limited : whether the time of the run is; else rounds are short, so that a run by ``n_gen`` takes seconds.
        """
        if self.trials is not None:
            return max(1, self.trials // m)
        if not self.whole(n):
            return max(1, min(max(2048, n // 12), 8192) // m)
        if not limited:
            return max(KICKS_OF_SHORT_ROUND // m, n // 32, 1)
        if m < FEWEST_TO_EVOLVE:
            return 1024
        return max(2048 // m, n // 32, 1)

    def kicks_of_first_cycle(self, n: int) -> float:
        """Kicks a city that a tour of n cities gets in the first cycle."""
        if self.first_cycle is not None:
            return self.first_cycle
        return 8.0 if self.whole(n) else 16.0

    def n_candidates(self, n: int) -> int:
        """Candidate edges a city by alpha-nearness for n cities on the CPU."""
        if self.candidate_list_size is not None:
            return self.candidate_list_size
        return 5 if n <= WHOLE_UP_TO else 7

    def iterations(self, n: int) -> int:
        """1-trees of the ascent for n cities."""
        if self.ascent is not None:
            return self.ascent
        return 0 if n > 100_000 else min(50, 500_000 // n)
