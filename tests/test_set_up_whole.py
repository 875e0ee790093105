"""Forks and interrupts while a run is set up, on default arguments: what they cut in two would hang for ever."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.fuzz import ASKED

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


def script(
    source: str, *arguments: str, cache: os.PathLike[str] | None = None, seconds: int = 900
) -> list[str]:
    """Run it in a process of its own, with another cache of compiled code where one is given; its last line's words."""
    environment = os.environ if cache is None else {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", source, *arguments],
        capture_output=True,
        text=True,
        timeout=seconds,
        env=environment,
    )
    assert run.returncode == 0, run.stderr
    return run.stdout.splitlines()[-1].split()


# Children are forked while another thread of the parent sets a default run up; each sets one up as well.
FORKS = """
import os, signal, sys, threading, time
import numpy as np
from pymoo_gpuaco import TSP, GPUMemetic
from pymoo.optimize import minimize
problem = TSP(np.random.default_rng(0).random((60, 2)))
def solve():
    return minimize(problem, GPUMemetic(backend="cpu"), ("n_gen", 2), seed=1).F[0]
lengths, children = [], []
thread = threading.Thread(target=lambda: lengths.append(solve()))
thread.start()
for _ in range(2):
    time.sleep(float(sys.argv[1]))
    child = os.fork()
    if child == 0:
        signal.alarm(600)
        os._exit(0 if np.isfinite(solve()) else 1)
    children.append(child)
lost = sum(os.waitpid(child, 0)[1] != 0 for child in children)
thread.join()
assert lengths == [solve()]
print(lost)
"""


@needs_fork
@pytest.mark.parametrize("seconds", [0.02 * k for k in range(1, 11)] if ASKED else [0.02, 0.2])
def test_a_child_forked_while_a_default_run_is_set_up_sets_one_up_too(seconds):
    assert script(FORKS, str(seconds)) == ["0"]


# A child has none of the threads of its parent: it would not learn that another process has compiled.
FORK_BESIDE = """
import os, time
from pymoo_gpuaco.runtime.background import BackgroundTask
from pymoo_gpuaco.memetic import warm_up
warm_up._processes.append(BackgroundTask(lambda: time.sleep(100.0)))
child = os.fork()
if child == 0:
    os._exit(len(warm_up._processes))
print(os.waitpid(child, 0)[1], len(warm_up._processes))
"""


@needs_fork
def test_a_child_does_not_wait_for_what_compiles_beside_its_parent():
    assert script(FORK_BESIDE) == ["0", "1"]


# An interrupt from the keyboard comes with the k-th call into LLVM's engine.
INTERRUPTS = """
import os, signal, sys, time
import numpy as np
from llvmlite.binding.executionengine import ExecutionEngine
import pymoo_gpuaco
from pymoo.optimize import minimize
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell ignores it for what runs in the background
strike, algorithm, calls, struck = int(sys.argv[1]), getattr(pymoo_gpuaco, sys.argv[2]), 0, None
def counted(name):
    method = getattr(ExecutionEngine, name)
    def call(self, *arguments):
        global calls, struck
        calls += 1
        if calls == strike:
            struck = time.process_time()
            os.kill(os.getpid(), signal.SIGINT)
        return method(self, *arguments)
    setattr(ExecutionEngine, name, call)
for name in ("add_module", "add_object_file", "finalize_object", "get_function_address"):
    counted(name)
problem = pymoo_gpuaco.TSP(np.random.default_rng(0).random((60, 2)))
def solve():
    return minimize(problem, algorithm(backend="cpu"), ("n_gen", 2), seed=1).F[0]
heard = -1.0
try:
    solve()
except KeyboardInterrupt:
    heard = time.process_time() - struck  # of this process: others may have the cores
assert solve() == solve()
print(calls, heard)
"""


def heard_after(
    strike: int, algorithm: str = "GPUMemetic", cache: os.PathLike[str] | None = None
) -> float | None:
    """Seconds of work until an interrupt after that number of calls ends the run; None where a run makes fewer."""
    calls, heard = script(INTERRUPTS, str(strike), algorithm, cache=cache)
    assert int(calls) > 10
    return None if float(heard) < 0.0 else float(heard)


def is_heard(strike: int, seconds: float | None) -> None:
    if seconds is None:
        assert strike > 9  # every run makes that number of calls
    else:
        assert seconds < 5.0


@pytest.mark.stress  # measures how long an interrupt waits
@pytest.mark.parametrize("strike", range(1, 61) if ASKED else (1, 21))
def test_an_interrupt_in_the_middle_of_loading_compiled_code_is_heard_and_the_next_run_works(strike):
    is_heard(strike, heard_after(strike))


@pytest.mark.slow
@pytest.mark.stress
@pytest.mark.parametrize("strike", range(2, 61, 6) if ASKED else [4])
def test_an_interrupt_in_the_middle_of_compiling_is_heard_and_the_next_run_works(strike, tmp_path):
    quickest = "GPU2OptIHC"  # to compile: the memetic search takes half a minute
    is_heard(strike, heard_after(strike, "GPUMemetic" if ASKED else quickest, tmp_path / "cache"))
