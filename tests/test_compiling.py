"""Nobody waits for a compiler in silence."""

import sys
import time

import pytest
from numba import njit

from pymoo_gpuaco import GPUAS, load_tsp
from pymoo_gpuaco.host import compiling
from pymoo_gpuaco.host.compiled import _compile


def test_work_of_several_compilers_is_told_once_and_counted_once(monkeypatch):
    clock = iter([10.0, 11.0, 12.0, 13.0, 14.0, 14.5])  # from the first begin to the last end
    monkeypatch.setattr(compiling.time, "perf_counter", lambda: next(clock))
    said = []
    with compiling.announced(said.append):
        compiling.begin("a")
        compiling.begin("a")
        compiling.begin("b")
        for _ in range(3):
            compiling.end()
    assert said == ["compiling a ..", "compiling b ..", "compiled in 4.5 s"]


def test_what_a_compiler_has_made_is_linked_and_kept_as_a_part_of_compiling(monkeypatch):
    """A limit of time would count it: of a first run seconds."""

    def twice(x):
        return 2 * x

    now = [10.0]
    monkeypatch.setattr(compiling.time, "perf_counter", lambda: now[0])
    function = _compile(twice, kept=False)
    link = function.add_overload

    def in_seven_seconds(version):
        now[0] += 7.0
        link(version)

    function.add_overload = in_seven_seconds
    with compiling.counted() as watch:
        assert function(3) == 6
        assert watch.seconds == 7.0
        with compiling.counted_whole():  # where nothing is compiled nothing counts
            now[0] += 1.0
    assert watch.seconds == 7.0


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


def test_numba_tells_when_it_compiles_and_not_when_it_has():
    @njit
    def twice(x):
        return 2 * x

    said = []
    with compiling.announced(said.append):
        assert twice(3) == 6
    assert said[0] == "compiling the CPU engine with numba .."
    assert said[1].startswith("compiled in ")
    with compiling.announced(said.append):
        twice(4)
    assert len(said) == 2


def wait_for(what):
    for _ in range(1000):
        if what():
            return
        time.sleep(0.01)
    raise AssertionError("it has not happened in ten seconds")


@pytest.mark.parametrize("terminal", [True, False])
def test_who_has_not_asked_is_told_by_the_logger_when_it_takes_long(monkeypatch, caplog, capsys, terminal):
    monkeypatch.setattr(compiling, "_QUIET", 0.03)
    monkeypatch.setattr(compiling, "_EVERY", 0.01)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    with compiling.announced(None), compiling.announced(None):  # told once
        compiling.begin("a")
        wait_for(lambda: caplog.messages)
        time.sleep(0.05)
        compiling.end()
    assert caplog.messages[0] == "pymoo_gpuaco: compiling a .."
    assert caplog.messages[1].startswith("pymoo_gpuaco: compiled in ")
    assert len(caplog.messages) == 2
    assert ("\r    0 s" in capsys.readouterr().err) == terminal


def test_nobody_is_told_of_what_is_soon_over_or_told_to_somebody_else(monkeypatch, caplog):
    with compiling.announced(None):
        compiling.begin("a")
        compiling.end()
    monkeypatch.setattr(compiling, "_QUIET", 0.0)
    said = []
    with compiling.announced(said.append), compiling.announced(None):
        compiling.begin("a")
        compiling.end()
    assert said[0] == "compiling a .."
    assert caplog.messages == []


@pytest.mark.parametrize("verbose", [True, False])
def test_a_run_passes_it_on_if_it_is_verbose(monkeypatch, capsys, verbose):
    set_up = GPUAS._setup

    def compiles(self, problem, **kwargs):
        compiling.begin("something")
        compiling.end()
        set_up(self, problem, **kwargs)

    monkeypatch.setattr(GPUAS, "_setup", compiles)
    GPUAS(n_ants=2, backend="cpu").setup(load_tsp("gr17"), verbose=verbose)
    assert ("compiling something .." in capsys.readouterr().out) == verbose
