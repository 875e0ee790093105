"""``pymoo-gpuaco solve``: several runs, parameters, limits, statistics, states."""

import contextlib
import csv
import io
import json
import logging
import re

import numpy as np
import pytest

from pymoo_gpuaco import GPUMMAS, LocalSearch, checkpoint, load_tsp
from pymoo_gpuaco.algorithms.tour import TourAlgorithm
from pymoo_gpuaco.cli import job, main, options, outputs, parser
from pymoo_gpuaco.problems import read_tour, write_tour
from pymoo_gpuaco.runtime import notices
from pymoo_gpuaco.runtime.clock import CLOCK
from tests.algorithm_cases import cities

QUICK = ["--set", "population_size=2", "--backend", "cpu", "--picture", ""]


def run(capsys, *arguments):
    """Status and what was said to standard output."""
    status = main(["solve", *map(str, arguments), *QUICK])
    return status, capsys.readouterr().out


def test_several_instances_and_seeds_give_a_table_and_files(tmp_path, capsys):
    stats = tmp_path / "runs.csv"
    tours = tmp_path / "{instance}.tour"
    options = ["--seeds", 2, "--seed", 5, "--generations", 3, "--stats", stats, "--tour", tours]
    status, said = run(capsys, "gr17", "random:40", *options)
    assert status == 0
    rows = list(csv.DictReader(stats.read_text().splitlines()))
    assert [(row["instance"], row["seed"]) for row in rows] == [
        ("gr17", "5"),
        ("gr17", "6"),
        ("random-40", "5"),
        ("random-40", "6"),
    ]
    for name, given in (("gr17", "gr17"), ("random-40", "random:40")):
        lengths = [float(row["length"]) for row in rows if row["instance"] == name]
        problem = load_tsp(given)
        tour = read_tour(tmp_path / f"{name}.tour", problem.n_cities)
        assert problem.tour_length(tour) == min(lengths)
        assert f"    mean  {np.mean(lengths):12.10g}" in said
    assert {row["gap_percent"] for row in rows if row["instance"] == "random-40"} == {""}
    assert all(row["stopped_by"] == "budget: 3 generations" for row in rows if row["instance"] == "random-40")


def test_each_seed_has_its_files(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    files = ["--tour", "{instance}-{seed}.tour", "--picture", "{seed}.svg", "--save", "{seed}.state"]
    assert main(["solve", "random:40", "--seeds", "2", "--seed", "7", "--generations", "1", *files]) == 0
    said = capsys.readouterr().out
    problem, lengths = load_tsp("random:40"), []
    for seed in (7, 8):
        lengths.append(problem.tour_length(read_tour(f"random-40-{seed}.tour", 40)))
        assert re.search(rf"\n +{seed} +{lengths[-1]:.10g} ", said)
        assert f"{lengths[-1]:.10g}" in (tmp_path / f"{seed}.svg").read_text()  # its title
        assert checkpoint.load(f"{seed}.state").seed == seed
    assert len(list(tmp_path.iterdir())) == 6
    assert main(["solve", "random:40", "--generations", "1"]) == 0
    assert len(list(tmp_path.iterdir())) == 6  # nothing is written without being asked for


def test_statistics_to_standard_output(capsys):
    assert main(["solve", "gr17", "--seeds", "2", "--generations", "1", "--stats", "-", *QUICK]) == 0
    said = capsys.readouterr()
    rows = list(csv.DictReader(said.out.splitlines()))
    assert [row["seed"] for row in rows] == ["1", "2"]
    assert f"best tour   {min(float(row['length']) for row in rows):.10g}" in said.err


def test_json_is_the_only_thing_that_is_printed(capsys):
    status, said = run(capsys, "gr17", "--generations", 2, "--json")
    assert status == 0
    answer = json.loads(said)
    (found,) = answer["runs"]
    assert answer["algorithm"] == "GPUMemetic"
    assert load_tsp("gr17").tour_length(found["tour"]) == found["length"]


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize(
    ("option", "notices_said", "warnings_printed"), [("--quiet", 0, 0), ("--json", 0, 1), ("--seed=1", 1, 1)]
)
def test_quiet_prints_nothing_and_json_no_notices(
    option, notices_said, warnings_printed, capsys, caplog, monkeypatch, tmp_path
):
    notices.warn_once.cache_clear()
    setup = TourAlgorithm.setup
    monkeypatch.setattr(
        TourAlgorithm, "setup", lambda *a, **k: notices.warn_once("a notice") or setup(*a, **k)
    )
    file = tmp_path / "degrees.csv"
    file.write_text("x,y\n8.541,47.374\n7.439,46.951\n6.632,46.519\n7.589,47.559\n")  # which a warning tells
    command = ["solve", str(file), "--generations", "1", *QUICK, option]
    assert main(command) == 0
    said = capsys.readouterr()
    assert said.err.count("pymoo-gpuaco: warning: ") == warnings_printed
    assert said.err.count("\n") == warnings_printed
    assert (said.out == "") == (option == "--quiet")
    assert sum("a notice" in record.getMessage() for record in caplog.records) == notices_said
    assert bool(caplog.records) == bool(notices_said)
    assert logging.getLogger("pymoo_gpuaco").isEnabledFor(logging.WARNING)  # afterwards
    assert main(["solve", "none.csv", *QUICK, option]) == 2
    assert "there is no file 'none.csv'" in capsys.readouterr().err


def test_the_tour_alone_goes_to_standard_output(capsys, tmp_path):
    assert main(["solve", "gr17", "--generations", "2", "--tour", "-", *QUICK]) == 0
    said = capsys.readouterr()
    (tmp_path / "out.tour").write_text(said.out)
    length = load_tsp("gr17").tour_length(read_tour(tmp_path / "out.tour", 17))
    assert f"best tour   {length:.10g}" in said.err


def test_target_and_stagnation_end_a_run(capsys):
    assert "stopped by  reached target 3000 with length" in run(capsys, "gr17", "--target", 3000)[1]
    _, said = run(capsys, "random:100", "--stagnation", 4)
    waited = re.search(r"stopped by  stagnation: no shorter tour in (\d+) generations", said)
    assert waited is not None
    assert int(waited[1]) >= 4  # and a whole annealing cycle
    assert "no time limit" in said


def test_a_start_tour_is_the_first_generation(capsys, tmp_path):
    problem = load_tsp("pcb442")
    write_tour(tmp_path / "best.tour", problem.optimal_tour)
    _, said = run(capsys, "pcb442", "--from-tour", tmp_path / "best.tour", "--time", "5s")
    assert "stopped by  reached target 50778 with length 50778" in said
    assert re.search(r" 1 +\| +1 +\| +50778 ", said)  # generation 1, one tour


def test_a_saved_run_goes_on_as_if_it_had_never_stopped(capsys, tmp_path):
    state, first, resumed, whole = (tmp_path / name for name in ("s.state", "1.tour", "2.tour", "3.tour"))
    run(capsys, "random:60", "--generations", 4, "--save", state, "--tour", first)
    main(["solve", "--resume", str(state), "--generations", "3", "--picture", "", "--tour", str(resumed)])
    said = capsys.readouterr().out
    assert "stopped by  budget: 7 generations" in said
    run(capsys, "random:60", "--generations", 7, "--tour", whole)
    np.testing.assert_array_equal(read_tour(resumed), read_tour(whole))


def test_a_run_that_was_ended_early_goes_on_to_its_end(capsys, tmp_path, monkeypatch):
    state, kept, resumed, whole = (tmp_path / name for name in ("s.state", "1.state", "2.tour", "3.tour"))
    update = checkpoint.Saver._update

    def is_killed_in_the_third(self, algorithm):
        self._last = -1e9 if algorithm.n_iter == 3 else CLOCK.monotonic()
        update(self, algorithm)
        if algorithm.n_iter == 3:
            kept.write_bytes(state.read_bytes())
            raise KeyboardInterrupt

    monkeypatch.setattr(checkpoint.Saver, "_update", is_killed_in_the_third)
    run(capsys, "random:60", "--generations", 7, "--save", state)
    monkeypatch.undo()
    main(["solve", "--resume", str(kept), "--picture", "", "--tour", str(resumed)])
    ours = capsys.readouterr().out
    assert "stopped by  budget: 7 generations" in ours
    _, said = run(capsys, "random:60", "--generations", 7, "--tour", whole)
    np.testing.assert_array_equal(read_tour(resumed), read_tour(whole))
    tours = [re.findall(r"7 \| +(\d+) \|", text)[-1] for text in (ours, said)]
    assert tours[0] == tours[1]


def test_what_is_no_state_is_refused(capsys, tmp_path):
    path = tmp_path / "x.state"
    path.write_bytes(b"no run")
    assert main(["solve", "--resume", str(path)]) == 2
    said = capsys.readouterr().err
    assert f"--resume {path}: the file is damaged, or not written by pymoo_gpuaco.checkpoint.save" in said
    assert said.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["gr17", "--set", "pop_size=3"], "population_size"),
        (["gr17", "--algorithm", "GPUMMAS", "--set", "rho=2"], "rho must be in (0, 1], got 2"),
        (["gr17", "--device", "0,0"], "device must be a number, 'all' or a list of different numbers"),
        (["gr17", "--set", "seed=3"], "--set seed is not allowed: use --seed"),
        (["gr17", "--set", "termination=5"], "--set termination is not allowed: termination is an argument"),
        (["gr17", "--set", "output=x"], "output is an argument for Python only"),
        (
            ["gr17", "--algorithm", "GPUMMAS", "--set", "local_search.kick=3"],
            "LocalSearch has no argument 'kick'; did you mean kicks?",
        ),
        (["gr17", "--from-tour", "none.tour"], "none.tour: No such file"),
        (["none.tsp"], "there is no file 'none.tsp' in "),
        (["pcb424"], "did you mean pcb442?"),
        (["/no/such/file.tsp"], "/no/such/file.tsp: there is no such file"),
        (["."], "it is a directory"),
        ([], "no instance: give a name"),
        (["gr17", "gr17"], "instance gr17 is given twice"),
        (["line.csv", "--start", "6"], "--start must be a name of a city or a number from 1 to 5, got '6'"),
        (["line.csv", "--end", "up"], "--end must be a name of a city or a number from 1 to 5, got 'up'"),
        (["line.csv", "--fix", "left"], "--fix must be two cities such as A,B, got 'left'"),
        (["line.csv", "--fix", "left,First"], "did you mean 'first'?"),
        (["gr17", "--metric", "exact"], "metric has no effect on gr17, a TSPLIB instance"),
        (["gr17", "--matrix"], "matrix has no effect on gr17, a TSPLIB instance"),
        (["gr17", "pcb442", "--from-tour", "a.tour"], "one instance"),
        (
            ["gr17", "--seeds", "2", "--save", "a.state"],
            "2 seeds require a file each; put {seed} into the name",
        ),
        (["gr17", "pcb442", "--tour", "a.tour"], "put {instance} into the name"),
        (["gr17", "--tour", "no/such/a.tour"], "--tour no/such/a.tour: there is no folder no/such"),
        (["gr17", "--tour", "."], "the path must be a file, got a folder"),
        (["gr17", "--picture", "a.bmq"], "--picture a.bmq: the suffix must be one of"),
        (["gr17", "--picture", "a.svg", "--tour", "a.svg"], "--tour is written to the same file"),
        (["gr17", "--stats", "a.xls"], "--stats a.xls: the suffix must be .csv"),
        (["gr17", "--json", "--tour", "-"], "--tour and --json print to stdout: give one of them"),
        (["gr17", "--stats", "-", "--tour", "-"], "--tour and --stats print to stdout"),
        (["gr17", "--tour", "{name}.csv"], "unknown placeholder {name}; known are {instance} and {seed}"),
        (["gr17", "--picture", "{}.png"], "unknown placeholder {}; known are"),
        (["gr17", "--stats", "{seed}.csv"], "unknown placeholder {seed}; one file has the lines of all runs"),
        (["gr17", "pcb442", "--save", "{seed}.state"], "put {instance} into the name"),
        (
            ["line.csv", "--fix", "left,right", "--algorithm", "GPUMMAS"],
            "--algorithm GPUMMAS cannot use constraints (1 fixed edge): GPUMemetic does",
        ),
        (["line.csv", "--open", "--algorithm", "GPU2OptIHC"], "cannot use constraints (a path): GPUMemetic"),
        (["gr17", "--resume", "a"], "instance cannot be given with --resume"),
        (["--seed", "2", "--resume", "a"], "--seed cannot be given with --resume"),
    ],
)
def test_mistakes_are_reported_in_one_line_before_the_search(arguments, words, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(TourAlgorithm, "setup", lambda *a, **k: pytest.fail("it has begun"))
    (tmp_path / "line.csv").write_text("name,x,y\nleft,0,0\nright,10,0\nfirst,1,0\nthird,7,0\nsecond,4,0\n")
    assert main(["solve", *arguments]) == 2
    said = capsys.readouterr()
    assert words in said.err
    assert said.err.count("\n") == 1
    assert said.out == ""
    assert [path.name for path in tmp_path.iterdir()] == ["line.csv"]


def test_parameters_from_the_command_line():
    texts = ("rho=0.2", "n_ants=7", "local_search.moves=2opt", "local_search.kicks=.5", "tabu=list")
    given = options.parameters([options.assignment(text) for text in texts])
    assert given == {
        "rho": 0.2,
        "n_ants": 7,
        "local_search": LocalSearch(moves="2opt", kicks=0.5),
        "tabu": "list",
    }


@pytest.mark.parametrize(
    ("text", "value"),
    [("30", 30.0), ("30s", 30.0), ("1.5m", 90.0), ("2h", 7200.0), ("1e2", 100.0), (".5", 0.5)],
)
def test_times(text, value):
    assert options.seconds(text) == value


def test_devices():
    assert [options.device(text) for text in ("1", "0,2", "all")] == [1, [0, 2], "all"]


def test_a_name_inside_a_file_leads_to_no_other_folder(tmp_path):
    assert job.file_of("out/{instance}.tour", "../../etc/x", 1).as_posix() == "out/.._.._etc_x.tour"


def test_all_devices_are_the_default_of_many_cities(monkeypatch):
    monkeypatch.setattr(job, "devices_for", lambda n: n)
    chosen = [
        job.prepare(parser().parse_args(["solve", *given.split()])).parameters["device"]
        for given in (
            "gr17",
            "gr17 berlin52",
            "gr17 --device 1",
            "gr17 --algorithm GPUMMAS",
            "gr17 --islands 2",
        )
    ]
    assert chosen == [17, 17, 1, 0, 0]


class Terminal(io.StringIO):
    def isatty(self):
        return True


class Bar:
    """Stands in for a bar of alive_progress, and keeps what it shows."""

    def __init__(self):
        self.shown = []

    def __call__(self, share):
        self.shown.append(share)

    def text(self, words):
        self.shown.append(words)


@pytest.mark.parametrize(("stream", "is_shown"), [(Terminal, True), (io.StringIO, False)])
def test_a_terminal_shows_a_bar_with_the_remaining_time(stream, is_shown, clock, monkeypatch):
    bar = Bar()
    monkeypatch.setattr(outputs, "alive_bar", lambda **given: contextlib.nullcontext(bar))
    colony = GPUMMAS(n_ants=2, backend="cpu").setup(cities(9), termination=("time", 10), seed=1)
    progress = outputs.Progress(stream())
    for _ in range(4):
        colony.next()
        progress(colony)
        clock.step(1)
    progress.close()
    assert bar.shown == ([0.2, "8 s left", 0.3, "7 s left"] if is_shown else [])


def test_a_bar_is_drawn_on_a_terminal_and_removed(clock):
    colony = GPUMMAS(n_ants=2, backend="cpu").setup(cities(9), termination=("time", 10), seed=1)
    with contextlib.closing(outputs.Progress(stream := Terminal())) as progress:
        colony.next()
        clock.step(5)
        progress(colony)
        before = stream.getvalue()
    assert " time s | n_gen" in before
    assert stream.getvalue().endswith("\x1b[2K\r")
