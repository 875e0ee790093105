"""The benchmark of asymmetric instances: what its lengths are compared with belongs to the matrices that it makes."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from pymoo_gpuaco.problems.symmetric import symmetric_matrix


@pytest.fixture
def scripts(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "benchmarks"))
    import asymmetric_kinds
    import asymmetric_references

    return asymmetric_kinds, asymmetric_references


def test_every_length_known_is_one_of_the_matrix_that_is_made(scripts):
    kinds, references = scripts
    figures = json.loads(references.PATH.read_text(encoding="utf-8"))["figures"]
    for kind in kinds.KINDS:
        assert {f"{kind} 1000", f"{kind} 3000"} <= set(figures)
        matrix = kinds.instance(kind, 1000)
        known = references.known_of(kind, 1000, matrix)  # exits where the hash differs
        np.fill_diagonal(matrix, matrix.max() * 2.0)
        rows, columns = linear_sum_assignment(matrix)
        assert matrix[rows, columns].sum() <= known.length
        if known.lkh is not None:
            assert known.lkh[0] >= known.length


def test_drums_alone_are_symmetric_up_to_potentials(scripts):
    kinds, _ = scripts
    taken = [kind for kind in kinds.KINDS if symmetric_matrix(kinds.instance(kind, 60)) is not None]
    assert taken == ["tilted drum"]


def test_only_a_shorter_length_takes_the_place_of_another(scripts, tmp_path):
    _, references = scripts
    path, matrix = tmp_path / "some.json", np.arange(16.0).reshape(4, 4)
    assert references.known_of("disk", 4, matrix, path) == (None, None, None)
    assert references.keep_best("disk", 4, matrix, 20.0, "first", 3, path)
    assert not references.keep_best("disk", 4, matrix, 20.0, "second", 1, path)
    references.keep_lkh("disk", 4, matrix, (21.0, 1.26), path)
    assert references.keep_best("disk", 4, matrix, 19.0, "third", 2, path)
    assert references.known_of("disk", 4, matrix, path) == (19.0, "third", (21.0, 1.3))
    values = json.loads(path.read_text(encoding="utf-8"))["figures"]["disk 4"]["values"]
    assert values == {"length": 19.0, "runs": 2, "sha256": references.fingerprint(matrix)}
    before = path.read_text(encoding="utf-8")
    matrix[0, 1] += 1.0
    with pytest.raises(SystemExit, match="disk 4 is another one"):
        references.keep_best("disk", 4, matrix, 1.0, "other", 1, path)
    assert path.read_text(encoding="utf-8") == before


def test_a_row_is_told_to_the_best_known_with_what_lkh_found_before(scripts, tmp_path, monkeypatch, capsys):
    kinds, references = scripts
    path = tmp_path / "some.json"
    matrix = kinds.instance("disk", 20)
    references.keep_lkh("disk", 20, matrix, (2e9, 4.0), path)
    for name in ("known_of", "keep_best", "keep_lkh"):
        function = getattr(references, name)
        monkeypatch.setattr(kinds, name, lambda *given, function=function: function(*given, path))
    given = argparse.Namespace(
        lkh=0.0, backend="cpu", first_seed=1, seeds=2, seconds=0.2, long_seeds=0, long=1.0
    )
    row = kinds.measure("disk", 20, given)
    assert "shorter than any known of disk 20" in capsys.readouterr().out
    assert row["from"] == "a run"
    assert row["runs"] == 2
    best = row["best known"]
    assert row["LKH, gap %"] == pytest.approx(100.0 * (2e9 / best - 1.0), abs=1e-3)
    assert row["LKH, s"] == 4.0
    references.keep_best("disk", 20, matrix, 0.5 * best, "elsewhere", 1, path)
    row = kinds.measure("disk", 20, given)
    assert row["from"] == "earlier runs"
    assert row["best known"] == 0.5 * best
    assert row["mean gap %"] == pytest.approx(100.0, abs=1e-3)


def test_results_of_another_commit_are_left_where_all_is_measured_anew(scripts, tmp_path, monkeypatch):
    kinds, _ = scripts
    monkeypatch.setattr(kinds, "RESULTS", tmp_path)
    (tmp_path / "some.json").write_text(json.dumps({"commit": "0000000", "rows": [["disk", 1000, 1.0]]}))
    assert kinds.begins_anew("some", [("disk", 1000), ("disk", 3000)])
    assert not kinds.begins_anew("some", [("disk", 3000)])  # that row would be lost
    monkeypatch.setattr(kinds, "commit", lambda: "0000000")
    assert not kinds.begins_anew("some", [("disk", 1000)])


def test_the_script_runs_as_a_command(scripts, tmp_path, monkeypatch):
    kinds, references = scripts
    written: list[list[object]] = []
    for name in ("known_of", "keep_best", "keep_lkh"):
        function = getattr(references, name)
        path = tmp_path / "some.json"
        monkeypatch.setattr(kinds, name, lambda *given, function=function, path=path: function(*given, path))
    monkeypatch.setattr(kinds, "write", lambda name, title, columns, rows, *rest: written.append(rows))
    monkeypatch.setattr(kinds, "RESULTS", tmp_path)
    monkeypatch.setattr(kinds, "rows_of_others", lambda *given: [])
    options = "--backend cpu --cities 30 --kinds disk --seeds 1 --first-seed 11 --long-seeds 0 --lkh 0 --add"
    monkeypatch.setattr(sys, "argv", ["asymmetric_kinds.py", *options.split(), "--seconds", "0.2"])
    kinds.main()
    (row,) = written[-1]
    assert row[:2] == ["disk", 30]
    assert len(row) == len(kinds.COLUMNS)
