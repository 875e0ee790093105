"""A GPU that is shared, used for long, out of memory or failing: the tests that only a device can pass.

``make gpu-trust`` runs them in the long form: PYMOO_GPUACO_RUNS runs without growth (default 30) and
PYMOO_GPUACO_SECONDS seconds without drift (default 5).
"""

from __future__ import annotations

import contextlib
import gc
import multiprocessing
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from pymoo.optimize import minimize

from pymoo_gpuaco import GPUACS, GPUAS, GPUMMAS, GPU2OptIHC, GPUMemetic, LocalSearch
from pymoo_gpuaco.algorithms.tour import TourAlgorithm
from pymoo_gpuaco.backends.errors import DeviceFailed
from tests.engine_cases import cloud, colony
from tests.interrupts import is_interrupted, needs_timer

pytestmark = pytest.mark.gpu

RUNS = int(os.environ.get("PYMOO_GPUACO_RUNS", "30"))
SECONDS = float(os.environ.get("PYMOO_GPUACO_SECONDS", "5"))
MOST_GROWTH = 8 << 20  # bytes that may come and go with the driver's own
ROOT = Path(__file__).resolve().parents[1]
N = 60


def algorithms(backend: str) -> list[TourAlgorithm]:
    """One of every engine; each gives the same tours whenever it is run."""
    return [
        GPUMemetic(backend=backend),
        GPUMMAS(n_ants=8, backend=backend),
        GPUAS(n_ants=8, backend=backend),
        GPUACS(n_ants=8, backend=backend),
        GPU2OptIHC(n_climbers=4, backend=backend),
    ]


def run_all(backend: str = "cuda", seed: int = 1) -> list[tuple[float, bytes]]:
    """Length and tour of a short run of each; lengths are what the problem says."""
    problem, found = cloud(N), []
    for algorithm in algorithms(backend):
        res = minimize(problem, algorithm, ("n_gen", 3), seed=seed)
        assert res.algorithm.engine.kind == backend
        assert problem.tour_length(res.X) == res.F[0]
        found.append((float(res.F[0]), np.asarray(res.X, np.int64).tobytes()))
    return found


def in_a_new_process(call: str) -> subprocess.CompletedProcess[str]:
    """Run a function of this file there."""
    code = f"from tests import test_cuda_trust as t\nt.{call}"
    return subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)


@contextlib.contextmanager
def primary_context():
    """Make the primary context of device 0 current; yield pycuda.driver."""
    from pymoo_gpuaco.backends.cuda.device import context

    primary = context.retain(0)
    primary.push()
    try:
        yield context.driver()
    finally:
        primary.pop()


def free_bytes() -> int:
    gc.collect()
    with primary_context() as cuda:
        return int(cuda.mem_get_info()[0])


# ---- together with others


def test_two_threads_on_one_device():
    expected = {seed: run_all(seed=seed) for seed in (1, 2)}
    found: dict[int, list[tuple[float, bytes]]] = {}

    def work(seed: int) -> None:
        found[seed] = run_all(seed=seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in expected]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == expected


def test_two_processes_on_one_device():
    """Started while this one has engines of its own, and at work at the same time."""
    expected = run_all()
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        jobs = [pool.apply_async(run_all) for _ in range(2)]
        here = run_all()
        assert [job.get(600) for job in jobs] == [expected, expected]
    assert here == expected


def fork_then_use(backend: str) -> None:
    """Fork before CUDA has started: child and parent may both use it."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            run_all(backend)
            status = 0
        finally:
            os._exit(status)
    run_all(backend)
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_fork_before_cuda_has_started():
    result = in_a_new_process("fork_then_use('cuda')")
    assert result.returncode == 0, result.stderr[-3000:]


def before_between_after(library: str, backend: str, first: bool) -> None:
    """Work of another library on the same device around runs of ours; ``first``: it starts CUDA, else we do."""
    import importlib

    if not first:
        expected = run_all(backend)
    module = importlib.import_module(library)

    def theirs() -> float:
        if library == "torch":
            ones = module.ones(256, 256, device=backend)
            return float((ones @ ones).sum())
        ones = module.ones((256, 256), dtype=module.float32)
        return float((ones @ ones).sum())

    kept = module.arange(1000, device=backend) if library == "torch" else module.arange(1000)
    assert theirs() == 256.0**3
    if first:
        expected = run_all(backend)
    engine = colony(cloud(N), backend, n_ants=8)
    lengths = engine.construct(1)
    assert theirs() == 256.0**3
    engine.reset_trails(1.0)
    assert np.array_equal(engine.construct(1), lengths)
    del engine
    gc.collect()
    assert theirs() == 256.0**3
    assert int(kept.sum()) == 499_500
    assert run_all(backend) == expected


@pytest.mark.parametrize("first", [True, False], ids=["theirs first", "ours first"])
@pytest.mark.parametrize("library", ["torch", "cupy"])
def test_another_library_before_between_and_after(library, first):
    if subprocess.run([sys.executable, "-c", f"import {library}"], capture_output=True).returncode != 0:
        pytest.skip(f"{library} is not installed")
    result = in_a_new_process(f"before_between_after({library!r}, 'cuda', {first})")
    assert result.returncode == 0, result.stderr[-3000:]


def test_engines_end_in_any_thread():
    engines = [colony(cloud(N), "cuda", n_ants=8)]
    before = free_bytes()
    thread = threading.Thread(target=engines.clear)
    thread.start()
    thread.join()
    assert free_bytes() >= before


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_an_engine_in_a_forked_child_raises():
    engine = colony(cloud(N), "cuda", n_ants=4)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            engine.construct(1)
        except RuntimeError as error:
            status = int("spawn" not in str(error))
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0


# ---- for long


def test_run_after_run_without_growth():
    expected = run_all()
    run_all()
    before = free_bytes()
    for _ in range(-(-RUNS // len(expected))):
        assert run_all() == expected
    assert before - free_bytes() < MOST_GROWTH


@pytest.mark.parametrize(
    "make",
    [
        lambda: GPUMemetic(backend="cuda"),
        lambda: GPUMMAS(backend="cuda"),
        lambda: GPUACS(backend="cuda"),
        lambda: GPU2OptIHC(backend="cuda"),
    ],
    ids=["focused ants", "whole tours", "ACS", "climbers"],
)
def test_a_long_run_without_drift(make):
    """A quarter of ``SECONDS`` each."""
    problem = cloud(2000)
    expected = run_all()
    algorithm = make().setup(problem, termination=("n_gen", 10**9), seed=1)
    for _ in range(3):
        algorithm.next()
    before, best, end = free_bytes(), np.inf, time.monotonic() + SECONDS / 4
    while time.monotonic() < end:
        algorithm.next()
        found = algorithm.opt[0]
        assert found.F[0] <= best
        assert problem.tour_length(found.X) == found.F[0]
        best = found.F[0]
    assert before - free_bytes() < MOST_GROWTH
    assert run_all() == expected


# ---- what fails


def test_a_device_that_is_full_and_then_not():
    expected, held = run_all(), []
    before = free_bytes()
    with primary_context() as cuda:
        for size in (1 << 30, 1 << 26, 1 << 21):
            while True:
                try:
                    held.append(cuda.mem_alloc(size))
                except cuda.MemoryError:
                    break
    try:
        for algorithm in algorithms("cuda"):
            with pytest.raises(MemoryError, match=r"needs? "):
                minimize(cloud(N), algorithm, ("n_gen", 3), seed=1)
    finally:
        with primary_context():
            for block in held:
                block.free()
    assert run_all() == expected
    assert before - free_bytes() < MOST_GROWTH


def a_kernel_that_fails() -> None:
    """A launch that writes where there is no memory, in the middle of a run; the process goes on with the CPU."""
    problem = cloud(N)
    algorithm = GPUAS(n_ants=8, backend="cuda").setup(problem, termination=("n_gen", 9), seed=1)
    other = colony(problem, "cuda", n_ants=8)
    algorithm.next()
    algorithm.next()
    best = algorithm.result()
    device = algorithm.engine.device
    messages = []
    try:
        with device.working():
            device.launch("fill_trails", 1, 32, 64, 32, np.float32(1.0))
            device.wait()
    except DeviceFailed as error:
        messages.append(str(error))
    for use in (algorithm.next, lambda: other.construct(1)):
        try:
            use()
        except DeviceFailed as error:
            messages.append(str(error))
    assert len(messages) == 3, messages
    assert all("start a new process" in words for words in messages), messages
    assert np.array_equal(algorithm.result().X, best.X)
    after = minimize(problem, GPUAS(n_ants=8), ("n_gen", 3), seed=1)
    assert after.algorithm.engine.kind == "cpu"
    assert problem.tour_length(after.X) == after.F[0]


def test_a_kernel_that_fails():
    result = in_a_new_process("a_kernel_that_fails()")
    assert result.returncode == 0, result.stderr[-3000:]
    assert "pymoo_gpuaco runs on the CPU: CUDA device 0 has failed in this process" in result.stderr


# ---- what takes long


@needs_timer
def test_an_interrupt_ends_a_search_with_many_kicks():
    problem = cloud(3000)
    algorithm = GPUMMAS(n_ants=24, local_search=LocalSearch(kicks=900.0), backend="cuda").setup(
        problem, termination=("n_gen", 5), seed=1
    )
    is_interrupted(1.0, algorithm.run)
    kept = algorithm.result()
    assert problem.tour_length(kept.X) == kept.F[0]
    run_all()
