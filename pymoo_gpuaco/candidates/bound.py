"""What is proven of an instance: a length that no tour falls below."""

from __future__ import annotations

from pymoo_gpuaco.candidates.ascent import ascend
from pymoo_gpuaco.candidates.listed import ListedInstance
from pymoo_gpuaco.candidates.lists import lists

_CANDIDATES = 10  # a city, of the sparse graph that the ascent works on
_FEWEST_CITIES = 4


def prove_lower_bound(instance: ListedInstance) -> float | None:
    """Return the Held-Karp bound of a symmetric instance, rounded up where lengths are whole numbers; else None.

    None too for fewer than four cities and where proving it would take too long (`complete.CompleteGraph`).
    """
    if not instance.symmetric or instance.n < _FEWEST_CITIES:
        return None
    return ascend(instance, lists(instance, "quadrant", _CANDIDATES).ids).bound
