"""What the benchmark of gaps over time reckons with, on any machine; fast-tsp's part where it is installed."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from pymoo_gpuaco import TSP, load_tsp

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    yield importlib.import_module("gpu_gap_over_time")
    for name, module in list(sys.modules.items()):
        if Path(getattr(module, "__file__", None) or "").parent == BENCHMARKS:
            del sys.modules[name]


def test_fewer_seeds_fit_a_smaller_budget(script):
    plan = {"pla85900": (1.0, 20.0)}
    most = script.expected_seconds(plan, 5, 1)
    assert most == pytest.approx(5 * 21 + script.FIXED + 85900 * script.A_CITY)
    assert script.seeds_that_fit(plan, 5, 1, most) == 5
    assert script.seeds_that_fit(plan, 5, 1, most - 1) == 4
    assert script.seeds_that_fit(plan, 5, 1, 0.0) == 1


def test_without_fast_tsp_only_runs_of_the_colony_take_time(script):
    plan = {"pr2392": (0.5, 1.0)}
    alone = script.expected_seconds(plan, 2, 1, colony_only=True)
    assert alone == pytest.approx(2 * 1.5 + script.FIXED + 2392 * script.A_CITY)
    assert script.seeds_that_fit(plan, 9, 1, alone, colony_only=True) == 2


def test_what_is_measured_again_takes_the_place_of_what_was(script, tmp_path, monkeypatch):
    monkeypatch.setenv("PYMOO_GPUACO_COMMIT", "abc1234")
    monkeypatch.setattr(sys.modules["record"], "RESULTS", tmp_path)
    monkeypatch.setattr(script, "RESULTS", tmp_path)
    problem = load_tsp("gr17")

    def measured(limits, add, solver, gap):
        rows = script.Measured({}, {"gr17": limits}, add, solver == script.COLONY)
        for limit in limits:
            rows.add("gr17", problem, solver, limit, [script.Ended(gap, limit)])
        rows.write()

    measured((0.5, 1.0), False, script.ONE_CORE, 3.0)
    measured((0.5, 1.0), False, script.COLONY, 2.0)  # the rows of fast-tsp stay
    measured((1.0,), True, script.COLONY, 1.0)  # and so does the other time
    told = json.loads((tmp_path / "gpu_gap_over_time_runs.json").read_text(encoding="utf-8"))
    assert [(row[2], row[3], row[5]) for row in told["rows"]] == [
        *((script.COLONY, 0.5, 2.0), (script.COLONY, 1.0, 1.0)),
        *((script.ONE_CORE, 0.5, 3.0), (script.ONE_CORE, 1.0, 3.0)),
    ]
    assert told["parameters"]["fast-tsp"].startswith("measured at commit abc1234 on ")


def test_what_others_add_while_a_plan_is_measured_stays(script, tmp_path, monkeypatch):
    monkeypatch.setenv("PYMOO_GPUACO_COMMIT", "abc1234")
    monkeypatch.setattr(sys.modules["record"], "RESULTS", tmp_path)
    monkeypatch.setattr(script, "RESULTS", tmp_path)
    problem, first = load_tsp("gr17"), script.Measured({}, {"gr17": (0.5, 1.0)}, False, True)
    first.add("gr17", problem, script.COLONY, 0.5, [script.Ended(3.0, 0.5)])
    first.write()
    other = script.Measured({}, {"gr17": (20.0,)}, True, True)
    other.add("gr17", problem, script.COLONY, 20.0, [script.Ended(1.0, 20.0)])
    other.write()
    first.add("gr17", problem, script.COLONY, 1.0, [script.Ended(2.0, 1.0)])
    first.write()
    told = json.loads((tmp_path / "gpu_gap_over_time_runs.json").read_text(encoding="utf-8"))
    assert [(row[3], row[5]) for row in told["rows"]] == [(0.5, 3.0), (1.0, 2.0), (20.0, 1.0)]


def test_every_instance_of_the_plan_tells_its_number_of_cities(script):
    assert [script.cities_of(name) for name in script.PLAN] == [
        *(1002, 2392, 4461, 7397, 11849, 15112, 18512, 85900, 100_000, 1_000_000, 10_000_000)
    ]


def test_limits_stand_side_by_side(script):
    tail = [0.0] * 7
    rows = [
        ["a", 9, "x", 0.5, 3, 0.25, *tail],
        ["a", 9, "x", 20.0, 2, 0.125, *tail],
        ["a", 9, "y", 1.0, 1, 0.0, *tail],
    ]
    assert script.side_by_side(rows) == [
        ["a", "x", 2, 0.25, None, None, 0.125, None, None],
        ["a", "y", 1, None, 0.0, None, None, None, None],
    ]


def test_what_random_cities_are_compared_with(script):
    length, name = script.reference(load_tsp("random:10000"))
    assert length == pytest.approx(71.83e6)  # 0.7124 * 100 + 0.59 sides of a million
    assert name == "0.7124 sqrt(nA) + 0.59 sqrt(A)"
    assert script.reference(load_tsp("gr17")) == (2085.0, "best known")


def test_a_matrix_for_fast_tsp_is_whole_and_scaled_where_it_is_long(script):
    square = [[0, 0], [3, 0], [3, 4], [0, 4]]
    np.testing.assert_array_equal(
        script.whole_matrix(TSP(square, "EUC_2D")), [[0, 3, 5, 4], [3, 0, 4, 5], [5, 4, 0, 3], [4, 5, 3, 0]]
    )
    large = script.whole_matrix(TSP(np.array(square) * 26_000, "EUC_2D"))  # the longest is 130,000
    np.testing.assert_array_equal(large[0], [0, 39_000, 65_000, 52_000])


def test_too_many_cities_for_fast_tsp_are_left_out(script):
    pytest.importorskip("fast_tsp")
    assert script.lacks_fast_tsp(20_000) is None
    assert "20000" in script.lacks_fast_tsp(20_001)
