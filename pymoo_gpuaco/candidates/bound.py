"""What is proven of an instance: a length that no tour falls below."""

from __future__ import annotations

import numpy as np

from pymoo_gpuaco.candidates import exact
from pymoo_gpuaco.candidates.ascent import ascend
from pymoo_gpuaco.candidates.listed import ListedInstance
from pymoo_gpuaco.candidates.lists import lists

_CANDIDATES = 10  # a city, of the sparse graph that the ascent works on


def prove_lower_bound(instance: ListedInstance) -> float | None:
    """Return the length of the shortest tour up to 12 cities; above, the Held-Karp bound of a symmetric instance.

    The bound is rounded up where lengths are whole numbers. None for larger asymmetric instances, and where proving it
    would take too long (`complete.CompleteGraph`).
    """
    if instance.n <= exact.MOST_CITIES:
        everyone = np.arange(instance.n)
        return instance.tour_length(exact.shortest_tour(instance.distance(everyone[:, None], everyone)))
    if not instance.symmetric:
        return None
    return ascend(instance, lists(instance, "quadrant", _CANDIDATES).ids).bound
