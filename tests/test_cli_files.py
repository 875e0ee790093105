"""Files on the command line: none that is read is written over, and pipes are files too."""

import io
import json
import os
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from pymoo_gpuaco import GPU2PPLS, GPUMMAS, write_tour
from pymoo_gpuaco.cli import main

TSPLIB = "NAME: mine\nTYPE: TSP\nDIMENSION: 4\nEDGE_WEIGHT_TYPE: EUC_2D\nNODE_COORD_SECTION\n"
TSPLIB += "1 0 0\n2 0 3\n3 4 3\n4 4 0\nEOF\n"
MATRIX = "0,1,2\n1,0,3\n2,3,0\n"
READ = {
    "mine.tsp": TSPLIB,
    "x.csv": "x,y\n0,0\n0,3\n4,3\n",
    "km.csv": MATRIX,
    "eu.csv": MATRIX,
}


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    for name, contents in READ.items():
        (tmp_path / name).write_text(contents)
    write_tour("first.tour", [0, 1, 2, 3])
    (tmp_path / "link.csv").symlink_to("x.csv")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("mine.tsp --tour mine.tsp", "--tour mine.tsp: instance mine.tsp is read from the same file"),
        ("x.csv --stats x.csv", "--stats x.csv: instance x.csv is read from the same file"),
        ("x.csv --tour folder/../x.csv", "--tour folder/../x.csv: instance x.csv is read"),
        ("x.csv --tour link.csv", "--tour link.csv: instance x.csv is read"),
        ("link.csv --tour x.csv", "--tour x.csv: instance link.csv is read"),
        ("x.csv --save x.csv", "--save x.csv: instance x.csv is read"),
        ("mine.tsp --from-tour first.tour --tour first.tour", "--tour first.tour: --from-tour first.tour is"),
        ("km.csv+eu.csv --matrix --csv km.csv", "--csv km.csv: instance km.csv+eu.csv is read"),
        ("km.csv+eu.csv --matrix --save eu.csv", "--save eu.csv: instance km.csv+eu.csv is read"),
        ("x.csv gr17 --tour {instance}.csv", "--tour x.csv: instance x.csv is read"),
        ("gr17 --tour new.csv --stats new.csv", "--stats new.csv: --tour is written to the same file"),
        ("gr17 --stats new2.csv --save ./new2.csv", "--save new2.csv: --stats is written to the same"),
    ],
)
def test_no_file_that_is_read_or_written_is_written_over(arguments, words, capsys, monkeypatch):
    for algorithm in (GPUMMAS, GPU2PPLS):
        monkeypatch.setattr(algorithm, "setup", lambda *a, **k: pytest.fail("it has begun"))
    assert main(["solve", *arguments.split(), "--picture", ""]) == 2
    said = capsys.readouterr()
    assert said.err.startswith(f"pymoo-gpuaco: {words}")
    assert (said.out, said.err.count("\n")) == ("", 1)
    for name, contents in READ.items():
        with open(name) as file:
            assert file.read() == contents


@pytest.mark.parametrize("contents", [READ["x.csv"], TSPLIB], ids=["table", "TSPLIB"])
@pytest.mark.parametrize("name", ["ff", "./ff.tsp", "/dev/fd"])
def test_a_pipe_is_read_as_a_file_is(name, contents, capsys):
    if name == "/dev/fd":  # as shells name <(command)
        reading, writing = os.pipe()
        name = f"/dev/fd/{reading}"
        os.write(writing, contents.encode())
        os.close(writing)
    else:
        os.mkfifo(name)
        threading.Thread(target=Path(name).write_text, args=(contents,)).start()
    assert main(["solve", name, "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["runs"]
    assert found["length"] == {4: 14, 3: 12}[found["cities"]]  # round a rectangle, and the half of it
    assert found["instance"] == ("mine" if contents == TSPLIB else Path(name).stem)


def test_what_is_neither_file_nor_pipe_is_named(capsys):
    assert main(["solve", os.devnull]) == 2
    assert capsys.readouterr().err == f"pymoo-gpuaco: {os.devnull}: it is neither a file nor a pipe\n"


def test_a_run_is_saved_where_it_was_resumed_from_and_devices_take_anything(capsys, monkeypatch):
    command = ["--picture", "", "--backend", "cpu", "--save", "s.state"]
    assert main(["solve", "random:30", "--generations", "2", *command]) == 0
    assert main(["solve", "--resume", "./s.state", "--generations", "2", *command]) == 0
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(READ["x.csv"].encode())))
    assert main(["solve", "-", "--picture", "", "--tour", os.devnull, "--save", os.devnull]) == 0
    assert main(["solve", "--resume", "s.state", "--picture", "", "--tour", "s.state"]) == 2
    assert "--tour s.state: --resume s.state is read from the same file" in capsys.readouterr().err
