"""A proven lower bound on the length of every tour."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.candidates import exact
from pymoo_gpuaco.candidates.ascent import ascend
from pymoo_gpuaco.candidates.listed import ListedInstance
from pymoo_gpuaco.candidates.lists import lists, with_lists
from pymoo_gpuaco.candidates.quadrant import has_quadrants
from pymoo_gpuaco.problems.instance import Instance
from pymoo_gpuaco.problems.matrix import ALL_EXACT
from pymoo_gpuaco.problems.symmetric import form_to_search, ranked
from pymoo_gpuaco.runtime.stop import Stop
from pymoo_gpuaco.runtime.threads import runs_in_progress

# Relative tolerance of a proof above 12 cities where sums are rounded: large penalties cancel out.
PROVEN = 1e-9
ROUNDING = 4.0 * np.finfo(float).eps  # maximum relative error of a sum, for each of its terms

_SECONDS_PER_CITY, _SECONDS_PER_PAIR = 1e-4, 5e-7  # in the plane; elsewhere, with all pairs
_LEAST_SECONDS = 0.005  # for few cities
SHORT_PROOF = 1.2  # s: 12,000 cities in the plane, about 1500 elsewhere
_CANDIDATES = 10  # per city, of the sparse graph of the ascent


def seconds_to_prove(instance: ListedInstance) -> float:
    """Estimate the duration of `prove_lower_bound` on two cores, within a factor of about three.

    The runs of this process share its interpreter.
    """
    if instance.n <= exact.MOST_CITIES:
        return 0.0
    n = instance.n if instance.symmetric else 2 * instance.n  # of the symmetric form
    in_plane = has_quadrants(instance.metric, instance.coords)
    seconds = _SECONDS_PER_CITY * n if in_plane else _SECONDS_PER_PAIR * n * n
    return max(_LEAST_SECONDS, seconds) * runs_in_progress()


def _rounding(instance: Instance, length: float) -> float:
    """Return the maximum rounding error of a tour length; whole numbers are added exactly."""
    exact = instance.integral and abs(length) < ALL_EXACT
    return 0.0 if exact else float(ROUNDING * instance.n * abs(length))


def _optimum(instance: ListedInstance, tour: NDArray[np.integer]) -> float | None:
    """Return the length of a shortest tour (n,) minus its rounding error, or None if it violates constraints."""
    length = instance.tour_length(tour)
    return None if instance.violations(tour[None])[0] else max(0.0, length - _rounding(instance, length))


def prove_lower_bound(instance: ListedInstance, stop: Stop | None = None) -> float | None:
    """Return the length of the shortest tour up to 12 cities; above, the bound of Held and Karp.

    For asymmetric distances of up to 1,000 cities the shortest assignment is returned if it is larger. The bound is
    rounded up for whole lengths, and lowered by the possible rounding errors of other sums, see `ROUNDING`. It holds
    for `ranked` distances and for tours that satisfy the constraints. Returns None if no tour of up to 12 cities
    satisfies them, if the proof would take too long (`complete.CompleteGraph`), or if ``stop`` ends it.
    """
    form = form_to_search(instance)
    optimal = exact.optimal_tour(instance, form)
    if optimal is not None:
        return _optimum(instance, optimal)
    if form is None:
        return ascend(instance, *lists(instance, "quadrant", _CANDIDATES), stop=stop).bound
    listed = with_lists(form.instance, _CANDIDATES, "quadrant")
    bound = ascend(listed, listed.neighbours, listed.neighbour_distances, stop=stop).bound
    if bound is None:
        return None
    bound = max(bound, math.ceil(listed.bound) if listed.integral else listed.bound)
    total = bound + form.constant
    if _rounding(instance, total) > 0.0:  # the error is that of both parts
        total -= ROUNDING * instance.n * (abs(bound) + abs(form.constant))
    return max(0.0, total)


def is_proven(instance: Instance, tour: NDArray[np.integer], bound: float) -> bool:
    """Return True if a bound of `prove_lower_bound` proves that a tour (n,) is a shortest one.

    Where sums are rounded, the tour may be longer by `PROVEN` of the bound, up to 12 cities by two rounding errors.
    Up to 12 cities tours are also compared in ranked distances, since a very long edge can hide the rest of a tour.
    """
    instance_ranked = ranked(instance)
    length = instance.tour_length(tour)
    slack = 2.0 * _rounding(instance, length)
    if slack > 0.0 and instance.n > exact.MOST_CITIES:
        slack = PROVEN * bound
    if abs(length - bound) > slack:
        return False
    if instance_ranked is instance or instance.n > exact.MOST_CITIES:
        return True
    shortest = instance_ranked.tour_length(exact.shortest_with_constraints(instance))
    return instance_ranked.tour_length(tour) <= shortest + 2.0 * _rounding(instance_ranked, shortest)
