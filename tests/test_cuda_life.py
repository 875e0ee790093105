"""CUDA engines beside each other, in threads, in forks and in the end. Needs a CUDA device."""

from __future__ import annotations

import gc
import os
import threading

import numpy as np
import pytest

from pymoo_gpuaco.colony.parameters import LocalSearch
from tests.cuda_cases import (
    colony,
    random_instance,
)

pytestmark = pytest.mark.gpu


def test_nothing_leaks_and_engines_die_in_any_thread():
    import pycuda.driver as driver

    from pymoo_gpuaco.backends.cuda.device import context

    instance = random_instance(1500, 16)
    retained = context.retain(0)

    def free_bytes() -> int:
        with context.active(retained):
            return driver.mem_get_info()[0]

    def work() -> None:
        engine = colony(instance, n_ants=500, candidate_list_size=16, local_search=LocalSearch(kicks=0.0))
        engine.reset_trails(1.0)
        engine.construct(1)

    work()
    gc.collect()
    before = free_bytes()
    for _ in range(3):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        gc.collect()
    box = [colony(instance, n_ants=500, candidate_list_size=16)]
    thread = threading.Thread(target=box.clear)
    thread.start()
    thread.join()
    gc.collect()
    assert before - free_bytes() < 8 << 20


@pytest.mark.slow
def test_a_thousand_engines_leave_nothing_behind():
    import pycuda.driver as driver

    from pymoo_gpuaco.backends.cuda.device import context

    instance = random_instance(20, 8)
    retained = context.retain(0)

    def free_bytes_after(runs: int) -> int:
        for _ in range(runs):
            engine = colony(instance, n_ants=4, candidate_list_size=8, local_search=LocalSearch(kicks=0.0))
            engine.reset_trails(1.0)
            engine.construct(1)
        del engine
        gc.collect()
        with context.active(retained):
            return driver.mem_get_info()[0]

    before = free_bytes_after(10)
    assert before - free_bytes_after(1000) < 8 << 20


def test_torch_keeps_working_in_the_same_process():
    torch = pytest.importorskip("torch")
    before = torch.arange(1000, device="cuda", dtype=torch.float32)
    engine = colony(random_instance(60, 8), n_ants=10)
    engine.reset_trails(1.0)
    first = engine.construct(1)
    assert float((before * 2).sum()) == 999_000.0
    graph = torch.ones(64, 64, device="cuda") @ torch.ones(64, 64, device="cuda")
    np.testing.assert_array_equal(engine.construct(1), first)
    del engine
    gc.collect()
    assert float(graph.sum()) == 64.0**3
    assert float((before + 1).max()) == 1000.0


def test_engines_work_side_by_side_in_threads():
    instance = random_instance(200, 16)
    expected = {}
    for key in range(4):
        engine = colony(instance, n_ants=50, candidate_list_size=16)
        engine.reset_trails(1.0)
        expected[key] = engine.construct(key)
    found = {}

    def work(key: int) -> None:
        engine = colony(instance, n_ants=50, candidate_list_size=16)
        for _ in range(5):
            engine.reset_trails(1.0)
            found[key] = engine.construct(key)

    threads = [threading.Thread(target=work, args=(key,)) for key in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for key, lengths in expected.items():
        np.testing.assert_array_equal(found[key], lengths)


def test_a_forked_child_is_told():
    engine = colony(random_instance(30, 8), n_ants=4)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        words = b""
        try:
            engine.construct(1)
        except RuntimeError as error:
            words = str(error).encode()
        finally:
            os.write(write, words)
            os._exit(0)
    os.waitpid(child, 0)
    os.close(write)
    assert b"spawn" in os.read(read, 4096)
    os.close(read)
