"""Whole units of length: searches add whole numbers, so that their gains are exact and they end.

The rules differ in the numbers that they add: doubles (CPU windows, recombination), floats (windows on CUDA), and
32-bit integers (paths with precedence).
"""

from __future__ import annotations

import math

import numpy as np

from pymoo_gpuaco.candidates.listed import ListedInstance
from pymoo_gpuaco.problems.matrix import largest_finite
from pymoo_gpuaco.problems.metrics import Metric

# Whole units of a mean candidate edge, as a power of two, if distances are not whole numbers. Sums are then exact, and
# rounding changes a tour by less than 1e-6.
_EDGE_EXPONENT = 20
# Additional power of two for a symmetric form of few cities, whose forbidden edges are up to 2^7 times as long.
_UNITS_OF_SMALL_FORM, _SMALL_FORM = 7, 100
# Ratio of mean to median candidate edge above which a few long edges dominate the mean; sample size for the median.
_FEW_ARE_LONGER, _SAMPLE = 1000.0, 1000
_LONGEST = 50  # limit of a distance in whole units, as a power of two
_LARGEST_EXPONENT = 1023  # of a double: limit of finer units; a coarsest unit beyond it raises an error
_LONGEST_WHOLE = 2.0**40  # whole distances with a mean below this are not scaled

_UNITS_PER_NEAREST_EDGE = 1024.0  # in single precision, unless distances are integral
_MOST_FLOAT_UNITS = float(1 << 21)  # FARTHEST of window.cuh
MOST_PATH_UNITS = 2**27  # maximum length of a path: its changes fit 32 bits


def whole_units(instance: ListedInstance) -> float:
    """Return the factor from distances to whole units in doubles: 1 for whole numbers, else a power of two.

    Whole numbers too large for exact sums are treated like other numbers. If a few candidate edges are far longer than
    the others, the others determine the unit, as long as the longest distance is at most 2^50 units.

    Raises ValueError if distances vanish in double precision.
    """
    lengths = instance.neighbour_distances
    mean = float(lengths.mean())
    if mean <= 0.0 or (instance.integral and mean < _LONGEST_WHOLE):
        return 1.0
    coarsest = _EDGE_EXPONENT - math.frexp(mean)[1]
    of_form = _UNITS_OF_SMALL_FORM if instance.form is not None and instance.n <= _SMALL_FORM else 0
    exponent = coarsest + of_form
    usual = float(np.median(lengths.ravel()[:: 1 + lengths.size // _SAMPLE]))
    if mean > _FEW_ARE_LONGER * usual > 0.0:
        longest = math.frexp(longest_distance(instance))[1]
        finer = min(_EDGE_EXPONENT - math.frexp(usual)[1], _LONGEST - longest)
        exponent = max(exponent, min(finer, 0) if instance.integral else finer)
    try:
        return math.ldexp(1.0, max(coarsest, min(exponent, _LARGEST_EXPONENT)))
    except OverflowError as error:
        raise ValueError(
            f"mean distance to candidates must be 0 or at least 1e-302, got {mean:g}; use a smaller unit"
        ) from error


def float_units(instance: ListedInstance) -> float:
    """Return the factor from distances to whole units in floats.

    It is 1 if floats add the distances exactly. Otherwise it is a power of two such that an edge to the nearest city
    has about a thousand units: results do not depend on the unit of distance.
    """
    if instance.integral and longest_distance(instance) < _MOST_FLOAT_UNITS:
        return 1.0
    near = instance.neighbour_distances[:, 0]
    mean = float(near[near > 0].mean()) if (near > 0).any() else 1.0
    return 2.0 ** round(math.log2(_UNITS_PER_NEAREST_EDGE / mean))


def path_units(integral: bool, longest: float) -> tuple[float, bool]:
    """Return the units per unit of distance if no path is longer than ``longest``, and True if no cost is rounded."""
    exact = integral and longest <= MOST_PATH_UNITS
    return 1.0 if exact or longest == 0.0 else MOST_PATH_UNITS / longest, exact


def longest_distance(instance: ListedInstance) -> float:
    """Return an upper limit of all distances."""
    if instance.form is not None and instance.form.far > 0.0:
        return instance.form.far
    if instance.metric == Metric.EXPLICIT:
        return largest_finite(instance.matrix)
    # faster than one call for all axes
    return sum(float(np.ptp(axis)) for axis in instance.real_coords.T)
