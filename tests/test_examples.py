"""Every example runs, in a folder of its own, and does what its first line says."""

import runpy
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"

# example: (a part of its output, the files it writes)
EXPECTED = {
    "first_tour": ("best known 50778", "first_tour.png"),
    "ask_tell": ("best tour 2085, best known 2085", None),
    "checkpoint": ("resumed ", "colony.run"),
    "memetic_ga": ("best known 27686", None),
    "convergence_plot": ("", "convergence.png"),
    "colony_study": ("published parameters gave the shorter median", "colony_study.csv colony_study.png"),
    "custom_problem": ("round trip of ", None),
    "large_instance": ("320000 trails in 1.2 MiB", None),
    "tolls": ("with one evaluation a generation", None),
    "service": (" s of search, budget: 0.5", None),
}

# example: packages of an extra
NEEDED = {"service": ("fastapi", "uvicorn")}

# example: arguments of a short run
SHORT = {"colony_study": ("--quick", "--seeds", "1", "--tours", "300", "--seconds", "0.02")}


def test_none_is_forgotten():
    assert {path.stem for path in EXAMPLES.glob("*.py")} == set(EXPECTED)


# the example of tolls shows what this says
@pytest.mark.filterwarnings("ignore:the problem's objective .* is not the tour's length:UserWarning")
@pytest.mark.parametrize("name", EXPECTED)
def test_example_runs(name, tmp_path, monkeypatch, capsys):
    printed, files = EXPECTED[name]
    for package in NEEDED.get(name, ()):
        pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [name, *SHORT.get(name, ())])
    runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    assert printed in capsys.readouterr().out
    written = sorted(tmp_path.iterdir())
    assert [path.name for path in written] == (files or "").split()
    assert all(path.stat().st_size > 1000 for path in written)
