"""Plan of window search on a device: numbers of tours and windows, units of length, and candidate edges."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.backends.cuda.windows.windows import NEAR
from pymoo_gpuaco.candidates.listed import ListedInstance
from pymoo_gpuaco.candidates.lists import Kind, check_alpha, lists
from pymoo_gpuaco.candidates.quadrant import has_quadrants, quadrant_lists
from pymoo_gpuaco.memetic.parameters import FEWEST_TO_EVOLVE, scaled_population_size
from pymoo_gpuaco.memetic.penalties import FEW_KICKS_FROM, Lists, penalised_lists
from pymoo_gpuaco.problems.metrics import Metric

# Cities of a tour per window. Windows have 511 cities, so they overlap, and of two exchanges that touch the same city
# one is rejected. Very large instances have one tour, unless the time suffices for several, see ``tours_that_evolve``.
CITIES_A_WINDOW, FEWEST_CITIES_A_WINDOW, ONE_TOUR_FROM = 140, 60, 150_000
# Trials of a window in an annealing round, one per 8 cities: more trials conflict more often.
LEAST_HOT_TRIALS, MOST_HOT_TRIALS, CITIES_A_TRIAL = 8, 32, 8
MOST_TOURS, MOST_TOURS_OF_MANY, MANY = 128, 32, 3000
# With a time limit, each host thread can recombine tours of this many cities for every second of the run.
CITIES_THAT_EVOLVE = 18_000.0
# Progress at which the last cycle ends if there are enough tours for recombination, which takes the rest of the run;
# `tours_that_evolve` limits their number so that it ends in time. With 0.8 and one round of recombination d18512 ended
# at .0052 % after 5 s, with 0.7 and regions half as long at .0027 (two runs each).
END_OF_MANY = 0.7
# Recombination of very many cities is bound by memory: a million cities on 64 cores and four H200s ended after 20 s at
# .148 % with 8 tours and at .169 % with 16. Tours also need kicks: on one H200 a single tour ended at .151 %, 8
# tours at .183 and 18 at .250; on two H200s one and ten at .042 and .057 (by another reference).
CITIES_THAT_EVOLVE_OF_VERY_MANY, VERY_MANY = 9_000.0, 500_000
KICKS_A_SECOND = 2_000.0  # per window on an H200
# Kicks per city, summed over all tours, below which one tour is better than several, from ``ONE_TOUR_FROM`` cities on.
LEAST_KICKS, LEAST_KICKS_OF_VERY_MANY = 80.0, 150.0

# If each city gets few kicks, partial moves must gain at least this share of a mean edge: more kicks in the same time
# are worth more than better repair. With 0.1 or 0.3 tours were no shorter.
MARGIN = 0.2
_UNITS_A_NEAREST = 1024.0  # if distances are not whole numbers
_MOST_UNITS = float(1 << 21)  # FARTHEST of window.cuh


class Layout(NamedTuple):
    """Number of tours in a batch, and of windows of each, both >= 1."""

    tours: int
    windows: int

    @property
    def in_all(self) -> int:
        """Number of windows of all tours."""
        return self.tours * self.windows

    @classmethod
    def of_tours(cls, tours: int, n: int, in_all: int) -> Layout:
        """Distribute at most ``in_all`` windows over tours of n cities; windows of a tour hardly overlap."""
        return cls(tours, max(1, min(in_all // tours, n // FEWEST_CITIES_A_WINDOW)))


def usual_layout(n: int, in_all: int) -> Layout:
    """Return the layout with as many tours of n cities as ``in_all`` windows can search."""
    cities = CITIES_A_WINDOW if n < ONE_TOUR_FROM else FEWEST_CITIES_A_WINDOW
    windows = min(in_all, max(1, n // cities))
    tours = max(1, min(in_all // windows, MOST_TOURS if n < MANY else MOST_TOURS_OF_MANY))
    return Layout.of_tours(tours, n, in_all)


def tours_that_evolve(seconds: float, n: int, threads: int, windows: int) -> int | None:
    """Return the best number of tours in a run of ``seconds``, by host threads (recombination) and windows (annealing).

    None if that number is too small; then the usual number is better.
    """
    very_many = n >= VERY_MANY
    pace = CITIES_THAT_EVOLVE_OF_VERY_MANY if very_many else CITIES_THAT_EVOLVE
    least = 0.0 if n < ONE_TOUR_FROM else LEAST_KICKS_OF_VERY_MANY if very_many else LEAST_KICKS
    wanted = pace * seconds * threads / n
    kicks = KICKS_A_SECOND * windows * END_OF_MANY * seconds / n
    return int(scaled_population_size(wanted, n)) if wanted >= FEWEST_TO_EVOLVE and kicks >= least else None


def hot_trials(n: int, windows: int) -> int:
    """Return the number of trials of a window in an annealing round; ``windows``: of a tour."""
    return min(MOST_HOT_TRIALS, max(LEAST_HOT_TRIALS, n // windows // CITIES_A_TRIAL))


def rounds_of_repair(n: int, windows: int) -> int:
    """Return the number of rounds in which the windows of a tour cover every city several times."""
    return 4 + math.ceil(3 * n / (windows * 240))


def window_lists(instance: ListedInstance, candidates: str, k: int = NEAR) -> NDArray[np.int32]:
    """Return k <= NEAR candidates of each city; "auto": by quadrant. Lists are repeated up to (n, NEAR).

    Raises
    ------
    ValueError : alpha-nearness of an instance that has none, see ``check_alpha``.
    """
    kind: Kind = "quadrant" if candidates == "auto" else candidates  # type: ignore[assignment]
    if kind == "alpha":
        check_alpha(instance.symmetric, instance.n)
    return repeated(lists(instance, kind, k).ids)


def first_lists(instance: ListedInstance, candidates: str, penalised: bool, k: int) -> Lists:
    """Return the lists for window search until penalties are available, if ``penalised``."""
    if penalised:
        return Lists(window_lists(instance, "quadrant", k), np.zeros(instance.n, np.float32))
    return Lists(window_lists(instance, candidates, k))


def penalised_lists_of(instance: ListedInstance, scale: float, k: int) -> Callable[[int | None], Lists]:
    """Return a function that finds lists with penalties by a number of 1-trees; ``scale``: units per distance."""

    def find(iterations: int | None) -> Lists:
        found = penalised_lists(instance, k, scale, iterations)
        return found._replace(near=repeated(found.near))

    return find


def margin(n: int) -> float:
    """Return the partial gain that a move needs to continue, in mean edges, see ``Trials``."""
    return MARGIN if n >= FEW_KICKS_FROM else 0.0


def nearest_lists(instance: ListedInstance) -> NDArray[np.int32]:
    """Return the nearest cities (n, NEAR), over which half of the windows grow. Shorter lists are repeated."""
    if instance.nearest is not None and instance.k == min(NEAR, instance.n - 1):
        return repeated(instance.nearest)
    if instance.form is not None or not has_quadrants(instance.metric, instance.coords):
        return repeated(lists(instance, "nearest", NEAR).ids)
    # parallel; duplicate cities rarely list one another
    return repeated(
        quadrant_lists(instance.metric, instance.coords, min(NEAR, instance.n - 1), per_quadrant=0)[0]
    )


def repeated(ids: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return lists (n, k) as lists (n, NEAR) by cyclic repetition."""
    if ids.shape[1] == NEAR:
        return ids
    return ids[:, np.arange(NEAR) % ids.shape[1]]


def unit_scale(instance: ListedInstance) -> float:
    """Return the whole units per unit of distance.

    1 if distances are whole numbers that the search can add exactly. Else a power of two by which a usual edge has
    about a thousand units, so that results do not depend on the unit.
    """
    if instance.form is not None and instance.form.far > 0.0:
        span = instance.form.far
    elif instance.metric == Metric.EXPLICIT:
        span = float(instance.matrix.max())
    else:
        span = sum(
            float(np.ptp(axis)) for axis in instance.real_coords.T
        )  # faster than one call for all axes
    if instance.integral and span < _MOST_UNITS:
        return 1.0
    near = instance.neighbour_distances[:, 0]
    mean = float(near[near > 0].mean()) if (near > 0).any() else 1.0
    return 2.0 ** round(math.log2(_UNITS_A_NEAREST / mean))
