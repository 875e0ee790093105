"""Nobody waits for a compiler in silence."""

import os
import subprocess
import sys

import pytest

from pymoo_gpuaco.backends import compiling


def test_work_of_several_compilers_is_told_once_and_counted_once(monkeypatch):
    clock = iter([10.0, 14.5])  # only the outermost begin and end read it
    monkeypatch.setattr(compiling.time, "perf_counter", lambda: next(clock))
    said = []
    with compiling.announced(said.append):
        compiling.begin("a")
        compiling.begin("a")
        compiling.begin("b")
        for _ in range(3):
            compiling.end()
    assert said == ["compiling a ..", "compiling b ..", "compiled in 4.5 s"]


def test_where_nothing_is_compiled_nothing_is_said():
    said = []
    with compiling.announced(said.append):
        pass
    compiling.begin("a")  # nobody listens any more
    compiling.end()
    with compiling.announced(None):
        compiling.begin("a")
        compiling.end()
    assert said == []


def fail():
    compiling.begin("a")
    compiling.end()
    raise RuntimeError


def test_after_a_failure_nobody_listens_any_more():
    said = []
    with pytest.raises(RuntimeError), compiling.announced(said.append):
        fail()
    compiling.begin("b")
    compiling.end()
    assert said == ["compiling a .."]


@pytest.mark.slow
def test_a_cold_start_with_verbose_says_that_it_compiles(tmp_path):
    program = (
        "from pymoo.optimize import minimize\n"
        "from pymoo_gpuaco import GPUAS, load_tsp\n"
        "colony = GPUAS(n_ants=2, backend='cpu')\n"
        "minimize(load_tsp('gr17'), colony, ('n_gen', 1), verbose=True)\n"
        "minimize(load_tsp('gr17'), colony, ('n_gen', 1), verbose=True)\n"
    )

    answer = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    lines = answer.stdout.splitlines()
    assert lines[0] == "compiling the CPU engine with numba .."
    assert lines[1].startswith("compiled in ")
    assert sum("compil" in line for line in lines) == 2  # the second run has nothing to compile
