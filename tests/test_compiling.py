"""A run that waits for a compiler says so."""

import pytest

from pymoo_gpuaco import GPUAS, load_tsp
from pymoo_gpuaco.runtime import compiling
from pymoo_gpuaco.runtime.clock import CLOCK


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


def test_a_block_is_timed_without_compilers(monkeypatch):
    now = [10.0]
    monkeypatch.setattr(CLOCK, "monotonic", lambda: now[0])
    with compiling.timed() as took:
        compiling.begin("a")
        now[0] += 3.0
        compiling.end()
        now[0] += 2.0
    assert took.seconds == 2.0


def test_the_logger_says_so_once_if_no_messages_were_requested(monkeypatch, caplog):
    now = [10.0]
    monkeypatch.setattr(CLOCK, "monotonic", lambda: now[0])
    with compiling.announced(None), compiling.announced(None):
        for seconds in (1.5, 1.0, 0.5):
            compiling.begin("the CUDA engine")
            now[0] += seconds
            compiling.end()
    assert caplog.messages == [
        "pymoo_gpuaco: compiling the CUDA engine ..",
        "pymoo_gpuaco: compiled in 3.0 s",
    ]


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
