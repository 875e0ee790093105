"""Ctrl-C, SIGTERM and failing files: the best tour is on the disk or on the screen."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from pymoo_gpuaco import GPUMemetic, load_tsp
from pymoo_gpuaco.backends.errors import DeviceFailed
from pymoo_gpuaco.cli import commands, main, outputs
from pymoo_gpuaco.cli import main as entry
from pymoo_gpuaco.problems import read_tour

posix = pytest.mark.skipif(os.name != "posix", reason="signals are POSIX's")


def tour_on_screen(text, tmp_path):
    """The tour that was printed, read as a file."""
    path = tmp_path / "screen.tour"
    path.write_text(text[text.index("NAME : ") :])
    return read_tour(path)


def interrupt_in_generation(monkeypatch, number, error=KeyboardInterrupt):
    """Interrupt the colony where it builds tours."""
    build = GPUMemetic._build

    def interrupted(self, key):
        if self.n_iter == number:
            raise error
        return build(self, key)

    monkeypatch.setattr(GPUMemetic, "_build", interrupted)


@posix
@pytest.mark.parametrize(
    ("number", "words"), [(signal.SIGTERM, "SIGTERM"), (signal.SIGINT, "from the keyboard")]
)
def test_a_signal_ends_the_search_and_the_tour_is_written(tmp_path, number, words):
    path = tmp_path / "best.tour"
    options = ["--time", "5m", "--backend", "cpu", "--picture", "", "--tour", path]
    # a shell's background job, and so all that it starts, ignores SIGINT
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        process = subprocess.Popen(
            [sys.executable, "-m", "pymoo_gpuaco.cli", "solve", "random:300", *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
    finally:
        signal.signal(signal.SIGINT, before)
    said = []
    for line in process.stdout:
        said.append(line)
        if line.count("|") == 6 and line.split()[2] == "1":  # the first generation's line
            break
    time.sleep(0.2)
    process.send_signal(number)
    said += process.stdout.readlines()
    assert process.wait(timeout=300) == 0, said
    process.stdout.close()
    assert any(
        f"stopped by  interrupted: {words}" in line or f"interrupted {words}" in line for line in said
    ), said
    problem = load_tsp("random:300")
    assert f"best tour   {problem.tour_length(read_tour(path, 300)):.10g}\n" in said


@pytest.mark.parametrize("arguments", [["solve", "gr17"], ["bench", "gr17"], ["info"]])
def test_ctrl_c_before_there_is_a_tour_is_one_line_and_130(arguments, monkeypatch, capsys):
    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(GPUMemetic, "setup", interrupted)
    monkeypatch.setattr(commands, "show_versions", interrupted)
    assert main(arguments) == 130
    assert capsys.readouterr().err.strip().count("\n") == 0


def test_an_interrupted_batch_keeps_what_it_has_and_says_130(monkeypatch, capsys, tmp_path):
    interrupt_in_generation(monkeypatch, 3)
    stats = tmp_path / "runs.csv"
    arguments = ["random:100", "--seeds", "4", "--generations", "9", "--picture", "", "--stats", str(stats)]
    assert main(["solve", *arguments, "--backend", "cpu"]) == 130
    assert len(stats.read_text().splitlines()) == 2  # titles and the run that was interrupted
    assert "best tour" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("function", "option", "file"),
    [("_drawn", "--picture", "t.png"), ("write_whole", "--tour", "a.tour")],
)
def test_a_file_that_cannot_be_written_leaves_the_tour_on_the_screen(
    monkeypatch, capsys, tmp_path, function, option, file
):
    def fail(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(outputs, function, fail)
    options = ["--generations", "1", "--picture", "", option, str(tmp_path / file)]
    assert main(["solve", "pcb442", *options]) == 2
    said = capsys.readouterr()
    assert "No space left" in said.err
    tour = tour_on_screen(said.out, tmp_path)
    assert f"length {load_tsp('pcb442').tour_length(tour):.10g}" in said.out


def test_a_written_tour_survives_a_failing_picture(monkeypatch, capsys, tmp_path):
    def fail(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(outputs, "_drawn", fail)
    path = tmp_path / "a.tour"
    options = ["--generations", "1", "--picture", str(tmp_path / "t.png"), "--tour", str(path)]
    assert main(["solve", "pcb442", *options]) == 130
    assert "NAME : " not in capsys.readouterr().out
    assert np.array_equal(np.sort(read_tour(path)), np.arange(442))


def break_second_run(monkeypatch, error):
    """Make the second seed raise in set-up."""
    setup = GPUMemetic.setup

    def broken(self, *args, seed, **kwargs):
        if seed == 2:
            raise error
        return setup(self, *args, seed=seed, **kwargs)

    monkeypatch.setattr(GPUMemetic, "setup", broken)


@pytest.mark.parametrize(
    "error", [MemoryError("no memory"), ValueError("bad"), ZeroDivisionError("a bug")], ids=repr
)
def test_a_second_run_that_raises_leaves_the_tour_of_the_first(monkeypatch, capsys, tmp_path, error):
    break_second_run(monkeypatch, error)
    path, stats = tmp_path / "a.tour", tmp_path / "runs.csv"
    command = ["solve", "gr17", "--seeds", "2", "--tour", str(path), "--stats", str(stats)]
    if isinstance(error, ZeroDivisionError):
        with pytest.raises(ZeroDivisionError):
            main(command)
    else:
        assert main(command) == 2
        assert capsys.readouterr().err == f"pymoo-gpuaco: {error}\n"
    assert load_tsp("gr17").tour_length(read_tour(path)) == 2085
    assert len(stats.read_text().splitlines()) == 2


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (MemoryError("no memory"), "an error: "),
        (OSError(28, "No space left"), "an error: "),
        (DeviceFailed("CUDA device 0 has failed"), "device failure"),
    ],
    ids=repr,
)
def test_a_run_that_raises_in_a_generation_leaves_its_tour(monkeypatch, capsys, tmp_path, error, words):
    interrupt_in_generation(monkeypatch, 3, error)
    path = tmp_path / "a.tour"
    assert main(["solve", "random:300", "--tour", str(path), "--picture", "", "--backend", "cpu"]) == 2
    said = capsys.readouterr()
    tour = read_tour(path, 300)
    assert f"best tour   {load_tsp('random:300').tour_length(tour):.10g}" in said.out
    assert f"stopped by  {words}" in said.out
    assert str(error) in said.err


def test_the_tour_comes_before_the_state(monkeypatch, capsys, tmp_path):
    path, state = tmp_path / "a.tour", tmp_path / "a.state"

    def full(*args, **kwargs):
        assert load_tsp("gr17").tour_length(read_tour(path)) == 2085
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(outputs.checkpoint, "save", full)
    assert main(["solve", "gr17", "--tour", str(path), "--save", str(state)]) == 2
    said = capsys.readouterr()
    assert said.err == f"pymoo-gpuaco: --save {state}: No space left on device\n"
    assert "best tour   2085" in said.out
    assert not state.exists()


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full on this system")
def test_a_state_on_a_full_disk_leaves_the_tour_on_the_screen(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["solve", "pcb442", "--generations", "2", "--save", "/dev/full"]) == 2
    said = capsys.readouterr()
    assert said.err == "pymoo-gpuaco: --save /dev/full: No space left on device\n"
    assert sorted(tour_on_screen(said.out, tmp_path)) == list(range(442))
    assert not list(tmp_path.glob("*.png"))  # drawn only with --picture


def test_the_handler_of_sigterm_is_put_back(capsys):
    before = signal.getsignal(signal.SIGTERM)
    assert entry(["info"]) == 0
    assert signal.getsignal(signal.SIGTERM) is before
