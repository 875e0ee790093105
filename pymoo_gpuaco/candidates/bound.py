"""A proven lower bound on the length of every tour."""

from __future__ import annotations

from pymoo_gpuaco.candidates import exact
from pymoo_gpuaco.candidates.ascent import ascend
from pymoo_gpuaco.candidates.listed import ListedInstance
from pymoo_gpuaco.candidates.lists import lists, with_lists
from pymoo_gpuaco.problems.symmetric import symmetric_form

_CANDIDATES = 10  # a city, of the sparse graph that the ascent works on


def prove_lower_bound(instance: ListedInstance) -> float | None:
    """Return the length of the shortest tour up to 12 cities; above, the bound of Held and Karp.

    The bound is rounded up where lengths are whole numbers. It holds for tours that break none of the instance's
    demands. None where even the best tour of up to 12 cities breaks some, and where proving a bound would take too long
    (`complete.CompleteGraph`).
    """
    if instance.n <= exact.MOST_CITIES:
        tour = exact.shortest_with_demands(instance)
        return None if instance.violations(tour[None])[0] else instance.tour_length(tour)
    form = symmetric_form(instance)
    if form is None:
        return ascend(instance, lists(instance, "quadrant", _CANDIDATES).ids).bound
    if form.instance.n <= exact.MOST_CITIES:
        tour = form.to_problem(exact.shortest_with_demands(form.instance))
        return None if instance.violations(tour[None])[0] else instance.tour_length(tour)
    listed = with_lists(form.instance, _CANDIDATES, "quadrant")
    bound = ascend(listed, listed.neighbours).bound
    return None if bound is None else max(0.0, bound + form.constant)
