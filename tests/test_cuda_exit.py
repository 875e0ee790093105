"""A process that an interrupt in set-up has left with background work ends only when no thread is in the driver.

A real driver ends a process with a signal if one of its threads is in the driver, or enters it, while the process
exits. ``fake_device`` stands in for it here, with calls that take some time; it needs no GPU.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

# Exit statuses of a process that a driver would end: a thread was in it (97), came to it (98), or PyCUDA would abort,
# as a context was left on its stack (99).
_CHILD = """
import atexit, functools, os, signal, sys, threading, time, types

interrupt_at, again = int(sys.argv[1]), sys.argv[2] == "again"
inside, calls, gone = set(), [0], []

def end():  # of all that is registered to be done at exit, the last: it stands for the exit of a real driver
    gone.append(True)
    time.sleep(0.2)
    os._exit(99 if driver.primary.depth else 97 if inside else 0)

atexit.register(end)
import pytest
from pymoo_gpuaco import GPUACS, TSP
from pymoo_gpuaco.backends.cuda import engines
from pymoo_gpuaco.backends.cuda.device import compile as compiler
from pymoo_gpuaco.backends.cuda.device import context
from pymoo.optimize import minimize
from tests import fake_device
import numpy as np

def slow(call):
    @functools.wraps(call)
    def takes_some_time(*arguments, **named):
        if gone:
            os._exit(98)
        inside.add(own := (threading.get_ident(), object()))
        calls[0] += 1
        if calls[0] == interrupt_at:
            os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.01)
        result = call(*arguments, **named)
        inside.discard(own)
        return result
    return takes_some_time

class Slow(fake_device.FakeDriver):
    def __init__(self):
        super().__init__()
        self.init = slow(lambda: None)
        self.Device.__class__.count = slow(self.Device.__class__.count)

for name in "take launch memcpy_htod memcpy_dtoh memset_d8 mem_get_info".split():
    setattr(Slow, name, slow(getattr(Slow, name)))
fake_device.Allocation.free = slow(fake_device.Allocation.free)

start = context._start
driver = Slow()
fake_device.install(pytest.MonkeyPatch(), driver)
context._start = start
sys.modules["pycuda"] = types.SimpleNamespace(driver=driver)
sys.modules["pycuda.driver"] = driver
pytest.MonkeyPatch().setattr(engines, "why_unavailable", lambda: context.device_count() and None)
problem = TSP(np.random.default_rng(0).random((33, 2)) * 100, "EUC_2D")

def run():
    minimize(problem, GPUACS(n_ants=6), ("n_gen", 1), seed=1)

try:
    try:
        run()
    except KeyboardInterrupt:
        print("interrupted", flush=True)
    if again:
        run()
except ValueError as error:  # kernels that do nothing leave no tours
    print("built", flush=True)
"""


@pytest.mark.parametrize(
    ("call", "again"), [(1, "leave"), (2, "leave"), (12, "leave"), (40, "leave"), (2, "again"), (25, "again")]
)
def test_a_process_ends_when_no_thread_is_in_the_driver(call, again):
    result = subprocess.run(
        [sys.executable, "-c", _CHILD, str(call), again],
        cwd=Path(__file__).parents[1],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert "interrupted" in result.stdout, result.stderr
    assert "runs on the CPU" not in result.stderr  # nothing is tried in another way any more
    assert result.returncode == 0, (result.returncode, result.stderr[-2000:])
