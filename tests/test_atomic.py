"""Counters that threads share in compiled functions."""

from __future__ import annotations

import numpy as np

from pymoo_gpuaco.runtime.atomic import atomic_add, atomic_load, await_count
from pymoo_gpuaco.runtime.compiled import compiled
from pymoo_gpuaco.runtime.threads import spread


@compiled
def _take_and_wait(counts, seen, thread, rounds):  # type: ignore[no-untyped-def]
    """Count up in every round, wait for the other threads, and store what this thread then reads."""
    threads = seen.shape[0]
    for r in range(rounds):
        atomic_add(counts, r, 1)
        await_count(counts, r, threads)
        seen[thread, r] = atomic_load(counts, r)


def test_threads_wait_for_each_other_and_lose_no_count():
    counts, seen = np.zeros(500, np.int64), np.zeros((4, 500), np.int64)
    spread(lambda thread, *_: _take_and_wait(counts, seen, thread, 500), 4, 4)
    assert (counts == 4).all()
    assert (seen == 4).all()
