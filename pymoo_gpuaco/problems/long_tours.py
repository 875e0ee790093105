"""Lengths of long tours, by compiled code on all threads: the sums of `adding_up`, to the last bit."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.problems.adding_up import ADDED_AT_ONCE
from pymoo_gpuaco.problems.compiled_metrics import between
from pymoo_gpuaco.problems.metrics import Metric
from pymoo_gpuaco.runtime.compiled import compiled
from pymoo_gpuaco.runtime.threads import spread, thread_count

FEWEST_CITIES = 100_000  # of a tour that is worth compiling and several threads
# Metrics of roots and sums: those of sines differ from numpy's in the last bit.
_AS_NUMPY = (Metric.EUC, Metric.CEIL, Metric.ATT, Metric.MAN, Metric.MAX, Metric.EXACT)


def is_long(metric: int, n: int) -> bool:
    """Whether `long_tour_length` is for tours of n cities under a metric."""
    return n >= FEWEST_CITIES and metric in _AS_NUMPY


def compile_lengths(metric: int, n: int) -> None:
    """Compile what the tours of a problem are measured by, before its time counts."""
    if is_long(metric, n):
        long_tour_length(metric, np.zeros((3, 3)), np.arange(3, dtype=np.int32))


def long_tour_length(metric: int, coords: NDArray[np.float64], tour: NDArray[np.int32]) -> float:
    """Return the length of a closed tour (n,), a permutation of 0 .. n-1, see `adding_up.add_up`."""
    n = len(tour)
    zero = int(np.argmax(tour == 0))
    step = -1 if tour[zero - 1] < tour[(zero + 1) % n] else 1
    sums = np.empty(-(-n // ADDED_AT_ONCE))
    # for a Metric numba makes a version of its own, and would compile it in the middle of a run
    code = int(metric)

    def work(_: int, first: int, last: int) -> None:
        _add_blocks(code, coords, tour, zero, step, first, last, sums)

    spread(work, len(sums), thread_count())
    return float(np.cumsum(sums)[-1])


@compiled
def _add_blocks(metric, coords, tour, zero, step, first, last, sums):  # type: ignore[no-untyped-def]
    """Add up blocks first .. last-1 of the tour's edges, from position ``zero`` on, a ``step`` of 1 or -1 each."""
    n = tour.shape[0]
    for block in range(first, last):
        begin, end = block * ADDED_AT_ONCE, min(n, (block + 1) * ADDED_AT_ONCE)
        at = (zero + step * begin + n) % n
        i, total = tour[at], 0.0
        for _ in range(begin, end):
            at += step
            at = 0 if at == n else n - 1 if at < 0 else at
            j = tour[at]
            total += between(
                metric, coords[i, 0], coords[i, 1], coords[i, 2], coords[j, 0], coords[j, 1], coords[j, 2]
            )
            i = j
        sums[block] = total
