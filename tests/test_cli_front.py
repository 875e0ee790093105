"""``pymoo-gpuaco solve`` of several objectives: the front on the screen, in files and in a picture."""

import csv
import json

import numpy as np
import pytest

from pymoo_gpuaco import load_tsp
from pymoo_gpuaco.cli import main

PAIR = "random:20+random:20:2"


def run(capsys, *arguments):
    """Status, and what was said to standard output and standard error."""
    status = main(["solve", *map(str, arguments), "--backend", "cpu"])
    return status, *capsys.readouterr()


def test_a_front_is_said_written_and_drawn(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    status, said, wrong = run(
        capsys, PAIR, "--csv", "front.csv", "--picture", "front.png", "--generations", 3
    )
    assert (status, wrong) == (0, "")
    head, *rows = csv.reader((tmp_path / "front.csv").read_text().splitlines())
    assert head[:3] == ["random-20", "random-20-2", "stop 1"]
    lengths = np.array([[float(cell) for cell in row[:2]] for row in rows])
    tours = np.array([[int(cell) for cell in row[2:]] for row in rows]) - 1
    assert np.array_equal(load_tsp(PAIR).tour_lengths(tours), lengths)
    assert np.all(np.diff(lengths[:, 0]) > 0)
    assert np.all(np.diff(lengths[:, 1]) < 0)  # nothing dominates another
    assert "random-20+random-20-2: 20 cities, 2 objectives: random-20: Euclidean" in said
    assert f"\nfront       {len(rows)} tours\n" in said
    assert f"            random-20 {lengths[0, 0]:.10g} to {lengths[-1, 0]:.10g}\n" in said
    reference = 1.01 * lengths.max(axis=0)
    steps = np.diff(np.append(lengths[:, 0], reference[0]))
    assert f"\nhypervolume {float(steps @ (reference[1] - lengths[:, 1])):.10g} below" in said
    assert "\nstopped by  budget: 3 generations\n" in said
    assert (tmp_path / "front.png").stat().st_size > 5000


def test_a_front_as_json(capsys):
    status, said, _ = run(capsys, PAIR, "--json", "--generations", 2, "--seed", 4)
    found = json.loads(said)
    assert status == 0
    assert (found["algorithm"], found["seed"], found["generations"]) == ("GPU2PPLS", 4, 2)
    assert found["objectives"] == ["random-20", "random-20-2"]
    assert found["size"] == len(found["front"])
    lengths = load_tsp(PAIR).tour_lengths([member["tour"] for member in found["front"]])
    assert lengths.tolist() == [member["lengths"] for member in found["front"]]


def test_a_hypervolume_that_takes_long_is_left_out(capsys, monkeypatch):
    monkeypatch.setattr("pymoo_gpuaco.cli.outputs.measured_at_once", lambda points: False)
    status, said, elsewhere = run(capsys, PAIR, "--json", "--generations", 1)
    assert status == 0
    assert json.loads(said)["hypervolume"] is None
    assert "hypervolume" not in elsewhere


def test_a_front_to_standard_output_with_all_else_on_standard_error(capsys):
    status, said, elsewhere = run(capsys, PAIR, "--csv", "-", "--generations", 1, "--picture", "")
    assert status == 0
    assert said.startswith("random-20,random-20-2,stop 1")
    assert "stopped by" in elsewhere


def test_a_front_goes_on_from_its_state(tmp_path, capsys):
    state = tmp_path / "state"
    status, *_ = run(capsys, PAIR, "--generations", 2, "--save", state, "--quiet")
    assert status == 0
    status, said, _ = run(capsys, "--resume", state, "--generations", 2, "--json")
    assert status == 0
    whole = json.loads(run(capsys, PAIR, "--generations", 4, "--json")[1])
    assert json.loads(said)["front"] == whole["front"]


@pytest.mark.parametrize(
    ("option", "words"),
    [
        (["--target", "9"], "--target does not support several objectives: use --time"),
        (
            ["--tour", "x.tour"],
            "--tour does not support several objectives: --csv FILE writes all tours",
        ),
        (["--stats", "x.csv"], "--stats does not support several objectives: --json prints the front"),
        (["--csv", "x.xlsx"], "--csv x.xlsx: the suffix must be one of .csv, .txt"),
        (["--seeds", "2"], "--seeds does not support several objectives"),
        (["--algorithm", "GPUACS"], "--algorithm does not support several objectives: GPU2PPLS searches"),
        (["--start", "1"], "--start does not support several objectives: tours are round trips"),
        (["gr17"], "one instance is allowed with several objectives, got 2"),
        (["--csv", "-", "--json"], "--csv and --json print to stdout: give one of them"),
    ],
)
def test_what_makes_no_sense_of_several_objectives_is_refused_in_one_line(option, words, capsys):
    status, said, wrong = run(capsys, PAIR, *option)
    assert (status, said) == (2, "")
    assert wrong.startswith(f"pymoo-gpuaco: {words}")
    assert wrong.count("\n") == 1


def test_one_objective_has_no_front(capsys):
    status, _, wrong = run(capsys, "gr17", "--csv", "front.csv")
    assert status == 2
    assert "--csv writes the front of several objectives: use --tour FILE.csv" in wrong
    status, _, wrong = run(capsys, "gr17+berlin52")
    assert status == 2
    assert "gr17+berlin52: problems must have the same cities, got gr17 with 17, berlin52 with 52" in wrong
