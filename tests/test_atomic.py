"""Counters that threads share in compiled functions."""

import numpy as np

from pymoo_gpuaco.runtime.threads import parallel_for
from tests.compiled_callees import take_and_wait


def test_threads_wait_for_each_other_and_lose_no_count():
    counts, seen = np.zeros(500, np.int64), np.zeros((4, 500), np.int64)
    parallel_for(lambda thread, *_: take_and_wait(counts, seen, thread, 500), 4, 4)
    assert (counts == 4).all()
    assert (seen == 4).all()
