"""The benchmark of fronts: what is told of a front beside a reference, and that references only grow better."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from pymoo_gpuaco import TSP, MultiObjectiveTSP


@pytest.fixture
def scripts(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "benchmarks"))
    import front_references
    import front_runs

    return front_runs, front_references


def test_found_are_points_that_are_reached_and_the_area_is_the_references(scripts):
    runs, _ = scripts
    reference = np.array([[0.0, 100.0], [50, 50], [100, 0]])
    # from (101, 101): (0, 100) has 101 x 1, (50, 50) adds 51 x 50, (100, 0) adds 1 x 50
    area = 101 * 1 + 51 * 50 + 1 * 50
    # (50, 49) beats (50, 50); (0, 101) lies outside; (60, 60) is dominated
    points = np.array([[0.0, 101.0], [50, 49], [60, 60]])
    quality = runs.Quality.of(points, reference)
    assert (quality.points, round(quality.found, 6)) == (2, round(100 / 3, 6))
    assert quality.hypervolume == pytest.approx(100 * 51 * 52 / area)


@pytest.mark.parametrize("method", ["GPUMOACO", "two phases", "NSGA-II", "MOEA/D"])
def test_every_method_is_recorded_at_every_moment(scripts, method, monkeypatch):
    runs, _ = scripts
    monkeypatch.setattr(runs, "POPULATION", 20)
    places = np.random.default_rng(0).integers(0, 100, (2, 20, 2))
    problem = MultiObjectiveTSP([TSP(part, "EUC_2D") for part in places])
    first, second = runs.record(runs.METHODS[method](problem, 1), [0.2, 0.4])
    assert first.shape[1] == second.shape[1] == 2
    assert len(second) > 0


def test_a_reference_is_united_and_tells_its_sources(scripts, monkeypatch, tmp_path):
    _, references = scripts
    monkeypatch.setattr(references, "REFERENCES", tmp_path)
    assert references.unite("a+b", np.array([[1.0, 3.0], [2, 2]]), "one") == 2
    assert references.unite("a+b", np.array([[1.0, 2.0], [5, 5]]), "other") == 1
    assert references.read_reference("a+b").tolist() == [[1, 2]]
    sources = json.loads((tmp_path / "a+b.json").read_text())["sources"]
    assert [line.split(",")[0] for line in sources] == ["one", "other"]
