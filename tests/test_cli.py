"""The command line, as a person uses it."""

import subprocess
import sys
from types import SimpleNamespace

import pytest

from pymoo_gpuaco import load_tsp
from pymoo_gpuaco.cli import main, options
from pymoo_gpuaco.problems import read_tour


def test_solve_prints_progress_a_summary_and_writes_tour_and_picture(tmp_path, capsys):
    picture, tour = tmp_path / "t.png", tmp_path / "t.tour"
    status = main(["solve", "gr17", "--seconds", "5", "--picture", str(picture), "--tour", str(tour)])
    said = capsys.readouterr().out
    assert status == 0
    assert "gr17: 17 cities, distances from a matrix, best known 2085" in said
    assert " time s | n_gen  |" in said
    assert "best tour   2085" in said
    assert "stopped by  reached target 2085 with length 2085" in said
    assert load_tsp("gr17").tour_length(read_tour(tour, 17)) == 2085
    assert "picture     none: the instance has no positions" in said
    assert not picture.exists()


def test_solve_draws_an_instance_with_positions(tmp_path, capsys):
    picture = tmp_path / "t.png"
    # too many cities to find the best tour in that time
    assert main(["solve", "random:3000", "--seconds", "0.5", "--picture", str(picture)]) == 0
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert "stopped by  budget: " in capsys.readouterr().out


def test_another_algorithm_can_be_chosen_and_its_header_names_the_ants(capsys):
    chosen = ["--algorithm", "GPUACS", "--set", "n_ants=3", "--set", "local_search=2opt"]
    assert main(["solve", "gr17", "--seconds", "0.5", "--picture", "", *chosen]) == 0
    assert "GPUACS: 3 ants, local search 2opt\n time s | n_gen  |" in capsys.readouterr().out


NO_ROUTING = "PyVRP and OR-tools serve vehicles"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("solve gr17 --seconds -1", "must be a positive time"),
        ("solve gr17 --time 0", "must be a positive time"),
        ("solve gr17 --time 5d", "must be a positive time such as 30, 30s, 5m or 1h, got '5d'"),
        ("solve gr17 --seed -1", "argument --seed: must be an integer >= 0, got '-1'"),
        ("solve gr17 --seed abc", "argument --seed: must be an integer >= 0, got 'abc'"),
        ("solve gr17 --seeds 0", "must be an integer >= 1, got '0'"),
        ("solve gr17 --device 0,x", "argument --device: must be an integer >= 0, got 'x'"),
        ("solve gr17 --target short", "invalid float value: 'short'"),
        ("solve gr17 --set rho", "must be NAME=VALUE, as in rho=0.2, got 'rho'"),
        ("solve gr17 --symmetric maybe", "must be yes or no"),
        ("solve gr17 --backend tpu", "must be one of auto, cpu, cuda, got 'tpu'"),
        ("solve gr17 --algorithm MMAS", "did you mean GPUMMAS?"),
        ("bench --seconds 0", "must be a positive time"),
        ("bench --backend tpu", "must be one of"),
        ("fly", "must be one of solve, bench, info, got 'fly'"),
        ("slove x", "did you mean solve?"),
        ("solve gr17 --secnds 3", "unrecognized arguments: --secnds 3; did you mean --seconds?\n"),
        (
            "solve gr17 --generatons=3",
            "unrecognized arguments: --generatons=3; did you mean --generations?\n",
        ),
        ("bench --secondz 3", "unrecognized arguments: --secondz; did you mean --seconds?\n"),
        ("solve gr17 --xyzzy", "unrecognized arguments: --xyzzy\n"),
        ("solve gr17 --n-ants 8", "unrecognized arguments: --n-ants 8; did you mean --set n_ants=..?\n"),
        ("solve gr17 --rho=0.1", "unrecognized arguments: --rho=0.1; did you mean --set rho=..?\n"),
        ("solve gr17 --quiet x", "arguments: x; give all names together, before or after the options\n"),
        ("solve gr17 --output y", "did you mean --tour?"),
        ("solve gr17 --time-limit 3", "did you mean --time?"),
        ("solve gr17 --verbose", "unrecognized arguments: --verbose\n"),
        ("solve gr17 --progress", "did you mean --quiet?"),
        ("info x", "unrecognized arguments: x\n"),
        ("info --sed 1", "unrecognized arguments: --sed 1\n"),
        ("solve x --vehicles 3", NO_ROUTING),
        ("solve x --time-windows t.csv", NO_ROUTING),
        ("solve x --depot 1", NO_ROUTING),
    ],
)
def test_wrong_options_are_refused_with_what_may_be_meant(arguments, words, capsys):
    with pytest.raises(SystemExit) as ended:
        main(arguments.split())
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert words in said
    assert "pymoo-gpuaco" in said.splitlines()[-1]


def test_bench_measures_each_instance_it_is_given(capsys, tmp_path):
    file = tmp_path / "own.tsp"
    file.write_text(
        "NAME: own\nTYPE: TSP\nDIMENSION: 4\nEDGE_WEIGHT_TYPE: EUC_2D\nNODE_COORD_SECTION\n"
        "1 0 0\n2 0 3\n3 4 3\n4 4 0\nEOF\n"
    )
    assert main(["bench", "gr17", "pcb442", str(file), "--seconds", "0.4", "--backend", "cpu"]) == 0
    lines = capsys.readouterr().out.splitlines()
    header = next(number for number, line in enumerate(lines) if line.startswith("instance "))
    rows = {line.split()[0]: line.split()[1:] for line in lines[header + 1 : header + 4]}
    for name, n in (("gr17", "17"), ("pcb442", "442"), ("own", "4")):
        cities, backend, construction, trials, length, gap, seconds = rows[name]
        assert (cities, backend) == (n, "cpu")
        assert float(construction) > 0.0 <= float(seconds)
        if name != "own":  # whose four cities are solved without trials
            assert float(trials) > 0.0
            known = load_tsp(name).best_known
            assert float(gap) == pytest.approx(100.0 * (float(length) / known - 1.0), abs=6e-4)
    assert rows["gr17"][4:6] == ["2085", "0.000"]
    assert rows["own"][4:6] == ["14", "-"]  # 3 + 4 + 3 + 4, and no best known length


@pytest.mark.gpu
def test_bench_runs_on_cuda(capsys):
    assert main(["bench", "gr17", "--seconds", "0.5", "--backend", "cuda"]) == 0
    row = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("gr17"))
    assert row.split()[1:3] == ["17", "cuda"]


def test_bench_names_a_wrong_instance_before_it_measures(capsys):
    assert main(["bench", "gr17", "pcb424"]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("pymoo-gpuaco: ")
    assert "pcb442" in said.err
    assert said.err.count("\n") == 1


def test_info_says_what_is_installed_and_what_cuda_lacks(capsys):
    assert main(["info"]) == 0
    said = capsys.readouterr().out
    for word in ("pymoo_gpuaco", "numpy", "CPU threads", "CUDA compiler", "CUDA backend"):
        assert word in said


def test_the_module_runs_as_a_command():
    answer = subprocess.run(
        [sys.executable, "-m", "pymoo_gpuaco.cli", "--version"], capture_output=True, text=True, check=True
    )
    assert answer.stdout.startswith("pymoo-gpuaco ")


def test_a_shell_completes_options_and_names(monkeypatch, tmp_path, capsys):
    completed = []
    monkeypatch.setitem(sys.modules, "argcomplete", SimpleNamespace(autocomplete=completed.append))
    assert main(["info"]) == 0
    assert completed == []
    monkeypatch.setenv("_ARGCOMPLETE", "1")
    assert main(["info"]) == 0
    assert [type(command_line) for command_line in completed] == [type(options.parser())]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "berlin.csv").touch()
    (tmp_path / "berge").mkdir()
    assert sorted(options.names("ber")) == ["berge/", "berlin.csv", "berlin52"]
