"""A run that waits for a compiler says so."""

import pytest
from numba import njit

from pymoo_gpuaco import GPUAS, load_tsp
from pymoo_gpuaco.runtime import compiling
from pymoo_gpuaco.runtime.clock import CLOCK
from pymoo_gpuaco.runtime.compiled import _compile


def test_work_of_several_compilers_is_reported_once_and_counted_once(monkeypatch):
    now = [10.0]
    monkeypatch.setattr(CLOCK, "monotonic", lambda: now[0])
    said = []
    with compiling.announced(said.append):
        for what in ("a", "a", "b"):
            compiling.begin(what)
            now[0] += 1.0
        for _ in range(3):
            now[0] += 0.5
            compiling.end()
        now[0] += 7.0
    assert said == ["compiling a ..", "compiling b ..", "compiled in 4.5 s"]


def test_what_a_compiler_has_made_is_linked_and_kept_as_a_part_of_compiling(monkeypatch):
    """A limit of time would count it: of a first run seconds."""

    def twice(x):
        return 2 * x

    now = [10.0]
    monkeypatch.setattr(CLOCK, "monotonic", lambda: now[0])
    function = _compile(twice, cached=False)
    link = function.add_overload

    def in_seven_seconds(version):
        now[0] += 7.0
        link(version)

    function.add_overload = in_seven_seconds
    before = compiling.so_far()
    assert function(3) == 6
    assert compiling.so_far() == before + 7.0
    with compiling.counted_block():  # where nothing is compiled nothing counts
        now[0] += 1.0
    assert compiling.so_far() == before + 7.0
    with compiling.timed() as took:
        compiling.begin("a")
        now[0] += 3.0
        compiling.end()
        now[0] += 2.0
    assert took.seconds == 2.0


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


def test_the_logger_says_so_where_no_caller_has_asked_and_compiling_takes_long(monkeypatch, caplog):
    now = [10.0]
    monkeypatch.setattr(CLOCK, "monotonic", lambda: now[0])
    with compiling.announced(None), compiling.announced(None):  # once
        for seconds in (1.5, 1.0, 0.5):
            compiling.begin(compiling.CPU)
            now[0] += seconds
            compiling.end()
        assert caplog.messages == ["pymoo_gpuaco: compiling the CPU engine with numba .."]
    assert caplog.messages[1:] == ["pymoo_gpuaco: compiled in 3.0 s"]


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
