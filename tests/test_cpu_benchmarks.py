"""The kicks in C that the engine is timed beside are the engine's kicks; memory grows as the documentation says."""

from __future__ import annotations

import importlib
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

import pymoo_gpuaco
from pymoo_gpuaco import load_tsp

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], ModuleType]]:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    yield importlib.import_module
    for name, module in list(sys.modules.items()):
        if Path(getattr(module, "__file__", None) or "").parent == BENCHMARKS:
            del sys.modules[name]


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
@pytest.mark.parametrize("name", ["pcb442", "random:12500"])
def test_kicks_in_c_end_with_the_engines_tour(script, tmp_path, name):
    kicks = script("cpu_kicks")
    rows = kicks.measure(kicks.compile_reference(str(tmp_path)), name, load_tsp(name), 300, 1)
    assert [row[2] for row in rows] == ["none", "falling"]
    for row in rows:
        same, ours, theirs = row[9:]
        assert same == "yes"
        assert ours == theirs != 0


def test_speed_is_that_of_kicks(script, monkeypatch):
    monkeypatch.setenv("PYMOO_GPUACO_THREADS", "1")  # put back afterwards
    scaling = script("cpu_scaling")
    engine, windows = scaling.engine_with(1000, 2, 3)
    assert windows.search._threads == 2
    assert engine.n_tours == 3
    clock = iter([0.0, 1.0, 2.0, 4.0])
    monkeypatch.setattr(scaling.time, "perf_counter", lambda: next(clock))
    # two generations of three tours
    assert scaling.kicks_a_second(engine, 3.0) == 2 * 3 * windows._trials / 4.0


def test_time_to_the_optimum_is_that_of_the_runs_that_found_it(script):
    benchmark = script("time_to_optimum")
    runs = [(100.0, 3.0), (101.0, 9.0), (100.0, 2.0), (100.0, 7.0)]
    assert benchmark.row_of("a", "b", 2, 9.0, runs, 100.0) == ["a", "b", 2, 4, 9.0, 3, 3.0, 0.25]
    assert benchmark.row_of("a", "b", 1, None, runs[1:2], 100.0) == ["a", "b", 1, 1, None, 0, None, 1.0]


def test_a_run_to_the_optimum_ends_there(script):
    benchmark, problem = script("time_to_optimum"), load_tsp("gr17")
    ((length, seconds),) = benchmark.colony_runs(problem, 3600.0, 1, "cpu")
    assert length == problem.best_known
    assert seconds > 0.0


@pytest.mark.parametrize(
    ("backend", "name", "limit", "notes"),
    [
        ("cpu", "cpu_time_to_optimum", 2.0, 3),
        ("cuda", "gpu_time_to_optimum", 1.0, 4),  # one more says what its cores are
    ],
)
def test_each_device_has_a_table_of_times_to_the_optimum(script, monkeypatch, backend, name, limit, notes):
    benchmark, told, written = script("time_to_optimum"), [], {}
    monkeypatch.setenv("PYMOO_GPUACO_THREADS", "3")  # put back afterwards
    monkeypatch.setattr(sys, "argv", ["", "folder", "--backend", backend, "--only", "pr1002", "--runs", "2"])
    monkeypatch.setattr(benchmark, "find_spec", lambda _: None)  # no elkai
    monkeypatch.setattr(
        benchmark, "problems_of", lambda _, names: {n: SimpleNamespace(best_known=259045.0) for n in names}
    )
    monkeypatch.setattr(benchmark, "run_for", lambda *told_first: told.append(told_first[-1]))

    def solved(_: object, seconds: float, seed: int, algorithm: pymoo_gpuaco.GPUMemetic) -> SimpleNamespace:
        told.append((seconds, seed))
        return SimpleNamespace(length=259045.0)

    monkeypatch.setattr(benchmark, "solve", solved)
    monkeypatch.setattr(benchmark, "write", lambda name, *result: written.update({name: result}))
    benchmark.main()
    assert told == [backend, (limit, 1), (limit, 2)]  # compiled and read before the first run that counts
    _, columns, rows, parameters, said = written[name]
    assert parameters == {
        "algorithm": f"GPUMemetic(backend='{backend}')",
        "threads": 2 if backend == "cpu" else 3,
    }
    assert dict(zip(columns, rows[0], strict=True))["at the optimum"] == 2
    assert [row[0] for row in rows] == ["pr1002", "pr2392", "fnl4461"]
    assert len(said) == notes
    assert said.count("LKH 3 was not run.") == 1


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="no /proc")
def test_a_city_takes_less_than_a_kilobyte(script):
    memory = script("cpu_scaling").memory_of(200_000, 1.0)
    assert 100 < (memory["peak"] - memory["before"]) / 200_000 < 1000
    assert memory["generations"] >= 1


def test_time_limits_are_those_of_what_is_written_beside_them(script):
    for text, (algorithm, options, sizes) in script("time_limits").CASES.items():
        assert repr(eval(text, vars(pymoo_gpuaco))) == repr(algorithm(**options))
        assert list(sizes) == sorted(sizes)
    assert set(script("time_limits").FLOW_SHOPS) <= set(script("time_limits").CASES)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no interval timers on this system")
@pytest.mark.parametrize(("interrupt", "wrong"), [(None, 0.0), (0.5, 0.0), (None, 1.0)])
def test_what_is_late_counts_from_the_limit_or_the_interrupt(script, monkeypatch, interrupt, wrong):
    limits, problem = script("time_limits"), load_tsp("gr17")
    tour = np.arange(17)

    class Stub:
        def setup(self, *_: object, **__: object) -> Stub:
            return self

        def run(self) -> None:
            if interrupt is not None:
                raise KeyboardInterrupt

        def result(self) -> SimpleNamespace:
            return SimpleNamespace(X=tour, F=[problem.tour_length(tour) + wrong])

    clock = iter([9.0, 9.0, 10.0, 10.75])  # set-up, and the run
    monkeypatch.setattr(limits.time, "perf_counter", lambda: next(clock))
    if wrong:
        with pytest.raises(AssertionError):
            limits.late(problem, Stub(), 0.25, interrupt)
    else:
        assert limits.late(problem, Stub(), 0.25, interrupt) == (0.5 if interrupt is None else 0.25)


def test_time_to_a_gap_is_read_off_runs_of_several_lengths(script):
    seconds_to = script("islands").seconds_to
    gaps = {1.0: 0.4, 4.0: 0.1, 16.0: 0.025}  # the gap is 0.4 / s: a straight line between logarithms
    assert seconds_to(0.2, gaps) == pytest.approx(2.0)
    assert seconds_to(0.05, gaps) == pytest.approx(8.0)
    assert seconds_to(0.1, gaps) == pytest.approx(4.0)
    assert seconds_to(0.5, gaps) is seconds_to(0.02, gaps) is None
    assert seconds_to(0.0, {2.0: 0.1, 8.0: 0.0}) == 8.0
    assert seconds_to(0.1, {2.0: 0.1, 8.0: 0.1}) == 2.0
