"""Forks and interrupts while a run is set up, on default arguments: what they cut in two would hang for ever."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.fuzz import ASKED

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


def script(source: str, *arguments: str, seconds: int = 900) -> list[str]:
    """Run it in a process of its own; return its last line's words."""
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", source, *arguments],
        capture_output=True,
        text=True,
        timeout=seconds,
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
