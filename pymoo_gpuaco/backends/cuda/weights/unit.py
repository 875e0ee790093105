"""The unit of distances in the weights that kernels work out in double precision."""

from __future__ import annotations

import math

import numpy as np

from pymoo_gpuaco.candidates.listed import ListedInstance

_SMALL, _LARGE = 2.0**-20, 2.0**20  # between them eta is one over the distance itself


def eta_unit(instance: ListedInstance) -> float:
    """1, but a power of two near the usual distance to the nearest city where that is tiny or huge.

    The largest beta is 20, and (1 / d)^20 is a number in double precision for d from 1e-15 to 1e15.
    """
    near = float(np.median(instance.neighbour_distances[:, 0]))
    return 1.0 if near == 0.0 or _SMALL <= near <= _LARGE else math.ldexp(1.0, math.frexp(near)[1])


def weight_definitions(instance: ListedInstance) -> dict[str, object]:
    """What kernels that include weight.cuh are compiled with beside the cities' definitions."""
    unit = eta_unit(instance)
    return {} if unit == 1.0 else {"ETA_UNIT": unit.hex()}
