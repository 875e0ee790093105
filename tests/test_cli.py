"""The command line, as a person uses it."""

import subprocess
import sys

import numpy as np
import pytest

from pymoo_gpuaco import load_tsp
from pymoo_gpuaco.cli import main
from pymoo_gpuaco.problems import read_tour


def test_solve_prints_progress_a_summary_and_writes_tour_and_picture(tmp_path, capsys):
    picture, tour = tmp_path / "t.png", tmp_path / "t.tour"
    status = main(["solve", "gr17", "--seconds", "5", "--picture", str(picture), "--tour", str(tour)])
    said = capsys.readouterr().out
    assert status == 0
    assert "17 cities, best known 2085" in said
    assert "generation" in said
    assert "best tour   2085" in said
    assert "stopped by  target" in said
    assert load_tsp("gr17").tour_length(read_tour(tour, 17)) == 2085
    if load_tsp("gr17").positions is None:
        assert not picture.exists()


def test_solve_draws_an_instance_with_positions(tmp_path, capsys):
    picture = tmp_path / "t.png"
    assert main(["solve", "pcb442", "--seconds", "0.5", "--picture", str(picture)]) == 0
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert "stopped by  time: 0.5 s" in capsys.readouterr().out


@pytest.mark.parametrize("algorithm", ["GPUAS", "GPUACS", "GPU2OptIHC"])
def test_every_algorithm_can_be_chosen(algorithm, capsys):
    assert main(["solve", "gr17", "--seconds", "0.5", "--picture", "", "--algorithm", algorithm]) == 0
    assert algorithm in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["solve", "pcb424"], "pcb442"),  # the close match is offered
        (["solve", "/no/such/file.tsp"], "/no/such/file.tsp"),
    ],
)
def test_a_wrong_instance_gives_one_line_and_status_2(arguments, words, capsys):
    assert main(arguments) == 2
    said = capsys.readouterr().err
    assert words in said
    assert "Traceback" not in said
    assert said.startswith("pymoo-gpuaco: ")


@pytest.mark.parametrize(
    "arguments",
    [
        ["solve", "gr17", "--seconds", "-1"],
        ["solve", "gr17", "--seed", "-1"],
        ["solve", "gr17", "--backend", "tpu"],
        ["solve"],
        ["fly"],
    ],
)
def test_wrong_options_are_refused_by_the_parser(arguments):
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 2


def test_info_says_what_is_installed_and_what_cuda_lacks(capsys):
    assert main(["info"]) == 0
    said = capsys.readouterr().out
    for word in ("pymoo_gpuaco", "numba", "CPU threads", "nvcc", "CUDA backend"):
        assert word in said


def test_the_module_runs_as_a_command():
    answer = subprocess.run(
        [sys.executable, "-m", "pymoo_gpuaco.cli", "--version"], capture_output=True, text=True, check=True
    )
    assert answer.stdout.startswith("pymoo-gpuaco ")


def test_the_same_seed_writes_the_same_tour(tmp_path, capsys):
    tours = []
    for run in range(2):
        path = tmp_path / f"{run}.tour"
        assert main(["solve", "gr17", "--seed", "3", "--picture", "", "--tour", str(path)]) == 0
        tours.append(read_tour(path))
    assert np.array_equal(*tours)
