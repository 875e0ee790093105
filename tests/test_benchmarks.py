"""Benchmarks: their kicks in C are the engine's, their statistics and references are right, results keep their form."""

from __future__ import annotations

import importlib
import json
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from pymoo_gpuaco import GPUACS, GPUAS, GPUMMAS, GPURAS, load_tsp

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"
SOURCES = sorted(path.stem for path in (BENCHMARKS / "references").glob("*.json"))


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], ModuleType]]:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    yield importlib.import_module
    for name, module in list(sys.modules.items()):
        if Path(getattr(module, "__file__", None) or "").parent == BENCHMARKS:
            del sys.modules[name]


# ---- results and references


def test_a_table_is_rounded_sorted_and_extended(script, tmp_path, monkeypatch, capsys):
    harness = script("harness")
    monkeypatch.setenv("PYMOO_GPUACO_COMMIT", "abc1234")
    monkeypatch.setattr(harness, "RESULTS", tmp_path)

    def table():
        return harness.Table("some", "Some", "name | a: b, %:2 | c:0 | d", {"seeds": 3}, ["Note."])

    first = table()
    first.add("y", 1.2345, np.float64(2.5), None)
    first.add("x", None, 7, 1.5)
    first.write(lambda row: row[0])
    written = json.loads((tmp_path / "some.json").read_text(encoding="utf-8"))
    assert written["columns"] == ["name", "a: b, %", "c", "d"]
    assert json.dumps(written["rows"]) == '[["x", null, 7, 1.5], ["y", 1.23, 2, null]]'
    assert (written["title"], written["commit"], written["notes"]) == ("Some", "abc1234", ["Note."])
    second = table()
    second.keep_others({("x", None)}, keys=2)
    assert second.rows == [["y", 1.23, 2, None]]
    assert second.parameters == {"seeds": 3, "other parts": []}
    monkeypatch.setenv("PYMOO_GPUACO_COMMIT", "other")
    with pytest.raises(SystemExit, match=r"--add: some\.json was measured at commit abc1234"):
        table().keep_others(())


@pytest.mark.parametrize("source", SOURCES)
def test_every_figure_of_others_says_what_it_is(script, source):
    harness = script("harness")
    file = json.loads((harness.REFERENCES / f"{source}.json").read_text(encoding="utf-8"))
    assert set(file) == {"source", "figures"}
    for name, figure in file["figures"].items():
        assert tuple(figure) == harness.FIELDS
        assert all(figure[field] for field in ("what", "unit", "where"))
        assert harness.values(source, name)


def test_figures_of_others_are_read(script):
    harness = script("harness")
    assert harness.values("skinderowicz_2020_code", "local_search")["pr1002"] == [0.23, 2.6]
    assert harness.values("oneil_burtscher_code", "moves")[493] == 824  # a number of cities is a number
    asked = 0
    for path in BENCHMARKS.glob("*.py"):
        for source, name in re.findall(r'\bvalues\("(\w+)", "(\w+)"\)', path.read_text(encoding="utf-8")):
            harness.values(source, name)
            asked += 1
    assert asked >= 20


# ---- the CPU engine


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


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
@pytest.mark.parametrize("generation", [1, 3])
def test_tours_in_c_are_the_engines(script, tmp_path, monkeypatch, generation):
    vs_c = script("cpu_vs_c")
    monkeypatch.setattr(vs_c, "REPEATS", 1)
    rows = vs_c.Table("cpu_vs_c", "", vs_c.HEADER, {})
    vs_c.measure(vs_c.compile_reference(str(tmp_path)), "pcb442", load_tsp("pcb442"), generation, rows)
    assert [row[:3] for row in rows.rows] == [
        ["pcb442", generation, "construction"],
        ["pcb442", generation, "construction + local search"],
    ]


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="no /proc")
def test_every_number_of_a_first_run_is_measured(script, monkeypatch):
    first_run = script("cpu_first_run")
    monkeypatch.setattr(first_run, "MAPS", 1)
    rows = first_run.measure(repeats=1, seconds=0.5)
    assert {len(values) for values in rows.values()} == {1}
    by_label = {
        label: [value for (_, measured), (value,) in rows.items() if measured == label]
        for label in first_run.LABELS.values()
    }
    assert [len(values) for values in by_label.values()] == [4, 5, 1, 1]
    assert min(by_label["wall, s"] + by_label["processor, s"]) > 0.0
    assert 20.0 < by_label["peak memory, MiB"][0] < 1000.0


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="no /proc")
def test_a_city_takes_less_than_a_kilobyte(script):
    memory = script("cpu_scaling").memory_of(200_000, 1.0)
    assert 100 < (memory["peak"] - memory["before"]) / 200_000 < 1000
    assert memory["generations"] >= 1


def test_asymmetric_instances_have_their_known_lengths(script):
    kinds = script("asymmetric_kinds")
    for kind in kinds.KINDS:
        matrix = kinds.instance(kind, 1000)
        known, lkh = (kinds.known_of(f"{kind} 1000{solver}", matrix) for solver in ("", ", LKH 3"))
        matrix[0, 1] += 1.0
        with pytest.raises(SystemExit, match=f"{kind} 1000 is of another matrix"):
            kinds.known_of(f"{kind} 1000", matrix)
        np.fill_diagonal(matrix, matrix.max() * 2.0)
        rows, columns = linear_sum_assignment(matrix)
        assert matrix[rows, columns].sum() <= known["length"] + 1.0
        assert lkh is None or lkh["length"] >= known["length"]
    assert kinds.known_of("disk 17", kinds.instance("disk", 17)) is None


# ---- statistics of the family


@pytest.mark.parametrize(("k", "q"), [(3, 2.343), (4, 2.569), (7, 2.949), (10, 3.164)])
def test_nemenyi_is_0_05_at_the_critical_difference(script, k, q):
    # Demsar 2006, Table 5(a): ranks that differ by q sqrt(k (k + 1) / (6 N)). Here algorithm i always has rank i + 1,
    # so the last is k - 1 ranks from the first; N blocks make that the critical difference.
    blocks = (q / (k - 1)) ** 2 * k * (k + 1) / 6.0
    few, many = (
        script("family").compare(np.tile(np.arange(float(k)), (n, 1)))[2][-1]
        for n in (int(np.floor(blocks)), int(np.ceil(blocks)))
    )
    assert many < 0.05 < few


def test_ranks_and_friedman(script):
    family = script("family")
    # ranks 1 2 3, 1 3 2, 1 2 3: 12 / (3 * 3 * 4) * (3^2 + 7^2 + 8^2) - 3 * 3 * 4 = 14 / 3, chi-squared of two degrees
    ranks, friedman, nemenyi = family.compare(np.array([[1.0, 2.0, 3.0], [1.0, 3.0, 2.0], [1.0, 2.0, 3.0]]))
    assert ranks == pytest.approx([1.0, 7 / 3, 8 / 3])
    assert friedman == pytest.approx(np.exp(-14 / 6))
    assert nemenyi[0] == pytest.approx(1.0)
    assert nemenyi[2] < nemenyi[1] < 1.0
    for medians in (np.ones((3, 4)), np.ones((1, 4))):  # nothing differs: there is no test
        ranks, friedman, nemenyi = family.compare(medians)
        assert ranks.tolist() == [2.5] * 4
        assert np.isnan([friedman, *nemenyi]).all()


# ---- time


# ---- iterations without pymoo


@pytest.mark.parametrize("colony", [GPUAS, GPURAS, GPUMMAS, GPUACS], ids=lambda cls: cls.__name__)
def test_iterations_without_pymoo_leave_the_trails_of_ask_and_tell(script, colony):
    def begun():
        algorithm = colony(12, local_search=False, backend="cpu").setup(load_tsp("berlin52"), seed=3)
        algorithm._begin_once()
        return algorithm

    bare, whole = begun(), begun()
    for _ in range(3):
        length = script("kernel_clock").iterate(bare, bare._draw_key())
        infills = whole.ask()
        whole.evaluator.eval(whole.problem, infills)
        assert length == infills[0].F[0]
        whole.tell(infills)
    np.testing.assert_array_equal(bare.trails(), whole.trails())
