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
    assert "gr17: 17 cities, distances from a matrix, best known 2085" in said
    assert "generation" in said
    assert "best tour   2085" in said
    assert "stopped by  reached target 2085 with length 2085" in said
    assert load_tsp("gr17").tour_length(read_tour(tour, 17)) == 2085
    assert "picture     none: the instance has distances but no positions" in said
    assert not picture.exists()


def test_solve_draws_an_instance_with_positions(tmp_path, capsys):
    picture = tmp_path / "t.png"
    # so many cities that the best tour is not found in that time
    assert main(["solve", "random:3000", "--seconds", "0.5", "--picture", str(picture)]) == 0
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert "stopped by  budget: " in capsys.readouterr().out


@pytest.mark.parametrize("algorithm", ["GPUAS", "GPUACS", "GPU2OptIHC"])
def test_every_algorithm_can_be_chosen(algorithm, capsys):
    assert main(["solve", "gr17", "--seconds", "0.5", "--picture", "", "--algorithm", algorithm]) == 0
    assert algorithm in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["solve", "pcb424"], "pcb442"),  # the close match is offered
        (["solve", "/no/such/file.tsp"], "/no/such/file.tsp"),
        (["solve", "."], "it is a directory"),
        (["solve"], "name an instance"),
        (["solve", "gr17", "gr17"], "given twice"),
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
        ["bench", "--seconds", "0"],
        ["bench", "--backend", "tpu"],
        ["fly"],
    ],
)
def test_wrong_options_are_refused_by_the_parser(arguments):
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 2


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["solve", "gr17", "--secnds", "3"], "--secnds 3; did you mean --seconds?"),
        (["solve", "gr17", "--generatons=3"], "--generatons=3; did you mean --generations?"),
        (["bench", "--secondz", "3"], "--secondz; did you mean --seconds?"),
        (["solve", "gr17", "--xyzzy"], "--xyzzy"),
        (["solve", "gr17", "--n-ants", "8"], "--n-ants 8; did you mean --set n_ants=..?"),
        (["solve", "gr17", "--rho=0.1"], "--rho=0.1; did you mean --set rho=..?"),
        (["solve", "gr17", "--quiet", "x"], "x; names stand together, before or after the options"),
        (["info", "x"], "x"),
        (["info", "--sed", "1"], "--sed 1"),
    ],
)
def test_a_misspelt_option_is_refused_with_the_one_it_may_mean(arguments, hint, capsys):
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert said.endswith(f"pymoo-gpuaco {arguments[0]}: error: unrecognized arguments: {hint}\n")


def test_bench_measures_each_instance_it_is_given(capsys, caplog):
    assert main(["bench", "gr17", "pcb442", "--seconds", "0.5", "--backend", "cpu"]) == 0
    lines = capsys.readouterr().out.splitlines()
    header = next(line for line in lines if line.startswith("instance "))
    assert header.split("  ")[0] == "instance"
    rows = {line.split()[0]: line.split()[1:] for line in lines if line.startswith(("gr17", "pcb442"))}
    for name, n in (("gr17", "17"), ("pcb442", "442")):
        cities, backend, construction, trials, length, gap, seconds = rows[name]
        assert (cities, backend) == (n, "cpu")
        assert float(construction) > 0.0
        assert float(trials) > 0.0
        known = load_tsp(name).best_known
        assert float(length) >= known
        assert float(gap) == pytest.approx(100.0 * (float(length) / known - 1.0), abs=6e-4)
        assert float(seconds) >= 0.0
    assert rows["gr17"][4:6] == ["2085", "0.000"]
    assert "whole tours" not in caplog.text  # nobody has asked for another algorithm


@pytest.mark.gpu
def test_bench_runs_on_cuda(capsys):
    assert main(["bench", "gr17", "--seconds", "0.5", "--backend", "cuda"]) == 0
    row = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("gr17"))
    assert row.split()[1:3] == ["17", "cuda"]


def test_bench_of_an_instance_without_a_best_known_length(tmp_path, capsys):
    file = tmp_path / "own.tsp"
    file.write_text(
        "NAME: own\nTYPE: TSP\nDIMENSION: 4\nEDGE_WEIGHT_TYPE: EUC_2D\nNODE_COORD_SECTION\n"
        "1 0 0\n2 0 3\n3 4 3\n4 4 0\nEOF\n"
    )
    assert main(["bench", str(file), "--seconds", "0.2", "--backend", "cpu"]) == 0
    row = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("own"))
    assert row.split()[5:7] == ["14", "-"]  # 3 + 4 + 3 + 4


def test_bench_names_a_wrong_instance_before_it_measures(capsys):
    assert main(["bench", "gr17", "pcb424"]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("pymoo-gpuaco: ")
    assert "pcb442" in said.err
    assert said.err.count("\n") == 1


AFTER_COMPILING = """
from numba.core import event
from pymoo_gpuaco.cli import main
class Told(event.Listener):
    def on_start(self, event):
        print(event.data["dispatcher"], event.data["args"])
    def on_end(self, event):
        pass
event.register("numba:compile", Told())
for instance in ("random:10", "pcb442", "ulysses16", "random:900"):
    main(["solve", instance, "--generations", "3", "--backend", "cpu", "--quiet", "--picture", ""])
for objectives in (2, 3):
    instance = "+".join(f"random:12:{seed + 1}" for seed in range(objectives))
    main(["solve", instance, "--generations", "9", "--backend", "cpu", "--quiet", "--picture", ""])
"""


@pytest.mark.slow
def test_what_runs_need_is_compiled_by_compile(capsys):
    assert main(["compile", "GPU2OptIHC", "GPU2PPLS", "--backend", "cpu"]) == 0
    assert "s in all" in capsys.readouterr().out
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", AFTER_COMPILING], capture_output=True, text=True, timeout=300
    )
    assert (run.returncode, run.stdout) == (0, ""), run.stderr
    assert main(["compile", "--backend", "cpu"]) == 0
    assert capsys.readouterr().out.startswith("everything was compiled already; ")


def test_info_says_what_is_installed_and_what_cuda_lacks(capsys):
    assert main(["info"]) == 0
    said = capsys.readouterr().out
    for word in ("pymoo_gpuaco", "numba", "CPU threads", "CUDA compiler", "CUDA backend"):
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
