"""People's own data on the command line: from a file or a pipe to names in visiting order."""

import copy
import csv
import io
import json
import pickle
import re
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from pymoo_gpuaco import OpenPath, load_tsp, read_cities, read_tour, solve, write_route
from pymoo_gpuaco.cli import main
from pymoo_gpuaco.cli.job import Job, Run
from pymoo_gpuaco.cli.options import parser
from pymoo_gpuaco.cli.outputs import write_best_tour

TOWNS = "name,lat,lon\na,0,0\nc,1,1\nb,0,1\nd,1,0\n"
LINE = "name,x,y\nleft,0,0\nright,10,0\nfirst,1,0\nthird,7,0\nsecond,4,0\n"


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "towns.csv").write_text(TOWNS)
    (tmp_path / "line.csv").write_text(LINE)


def run(capsys, *arguments):
    status = main(["solve", "--picture", "", *arguments])
    said = capsys.readouterr()
    return status, said.out, said.err


def test_a_table_of_towns_ends_at_its_proven_optimum_and_becomes_a_list_of_names(capsys, tmp_path):
    status, said, _ = run(capsys, "towns.csv", "--tour", "best.csv")
    assert status == 0
    assert "towns: 4 cities, great circles in kilometres, not rounded (HAVERSINE)" in said
    assert "stopped by  proof: no tour is shorter than 444.7" in said
    assert "gap at most %" in said
    assert "(no tour is shorter)" in said
    rows = list(csv.DictReader((tmp_path / "best.csv").read_text().splitlines()))
    assert [row["name"] for row in rows] == ["a", "b", "c", "d"]
    assert [row["city"] for row in rows] == ["1", "3", "2", "4"]
    assert [(row["lat"], row["lon"]) for row in rows][1] == ("0.0", "1.0")
    assert sum(float(row["to_next"]) for row in rows) == pytest.approx(444.763, abs=1e-2)


def test_a_tour_becomes_geojson_json_or_tsplibs(capsys, tmp_path):
    for name in ("best.geojson", "best.json", "best.tour"):
        assert run(capsys, "towns.csv", "--tour", name)[0] == 0
    found = json.loads((tmp_path / "best.geojson").read_text())["features"]
    assert found[0]["geometry"]["coordinates"] == [[0, 0], [1, 0], [1, 1], [0, 1], [0, 0]]  # longitude first
    assert [point["properties"]["name"] for point in found[1:]] == ["a", "b", "c", "d"]
    with pytest.warns(UserWarning, match="LineString"):
        assert read_cities(tmp_path / "best.geojson").names.tolist() == ["a", "b", "c", "d"]
    written = json.loads((tmp_path / "best.json").read_text())
    assert (written["tour"], written["names"], written["closed"]) == (
        [0, 2, 1, 3],
        ["a", "b", "c", "d"],
        True,
    )
    assert written["metric"] == "HAVERSINE"
    assert read_tour(tmp_path / "best.tour").tolist() == [0, 2, 1, 3]
    status, said, error = run(capsys, "line.csv", "--tour", "best.geojson")
    assert (status, said) == (2, "")
    assert (
        "--tour best.geojson: GeoJSON needs latitudes and longitudes, and line has positions in a plane"
        in error
    )


@pytest.mark.parametrize(
    ("options", "names", "demanded"),
    [
        (["--open"], ["left", "first", "second", "third", "right"], ""),
        (["--start", "right"], ["right", "third", "second", "first", "left"], ", from right"),
        (["--start", "2"], ["right", "third", "second", "first", "left"], ", from right"),
        (["--end", "right"], ["left", "first", "second", "third", "right"], ", to right"),
        (
            ["--start", "left", "--end", "first"],
            ["left", "second", "third", "right", "first"],
            ", from left to first",
        ),
    ],
)
def test_paths(capsys, tmp_path, options, names, demanded):
    status, said, _ = run(capsys, "line.csv", "--tour", "path.csv", *options)
    assert status == 0
    rows = list(csv.DictReader((tmp_path / "path.csv").read_text().splitlines()))
    found = [row["name"] for row in rows]
    assert (
        found == names
        or (options == ["--open"] and found == names[::-1])
        or (options[-1] == "first" and (found[0], found[-1]) == ("left", "first"))
    )
    words = re.search(
        r"line: 5 cities, Euclidean distances, not rounded \(EXACT\), along a path \(one-way, no return\)(.*)\n",
        said,
    )
    assert words[1] == demanded
    length = {"--open": 10, "--start": 10, "--end": 10}[options[0]] if len(options) < 4 else 19
    assert f"best tour   {length}\n" in said
    assert rows[-1]["to_next"] == ""
    assert [row["x"] for row in rows if row["name"] == "second"] == ["4.0"]
    assert sum(float(row["to_next"]) for row in rows[:-1]) == length


def test_precedence_from_a_file(capsys, tmp_path):
    (tmp_path / "pairs.txt").write_text("third,second\n\nsecond,first\n")
    status, said, _ = run(
        capsys, "line.csv", "--tour", "path.csv", "--start", "left", "--precedence", "pairs.txt"
    )
    assert status == 0
    assert "2 precedence pairs" in said
    rows = list(csv.DictReader((tmp_path / "path.csv").read_text().splitlines()))
    names = [row["name"] for row in rows]
    assert names[0] == "left"
    assert names.index("third") < names.index("second") < names.index("first")
    assert "best tour   19\n" in said  # to the right and back; without precedence it is 10
    (tmp_path / "pairs.txt").write_text("third,second\nsecond,third\n")
    status, _, said = run(capsys, "line.csv", "--precedence", "pairs.txt")
    assert status == 2
    assert "precedence has the cycle" in said


NO_CYCLE = ",1,,\n1,,1,\n,1,,1\n,,1,\n"  # four places in a row


def test_a_tour_that_breaks_constraints_is_written_and_reported(capsys, tmp_path):
    (tmp_path / "row.csv").write_text(NO_CYCLE)
    status, said, error = run(capsys, "row.csv", "--tour", "row.tour", "--generations", "2", "--seeds", "2")
    assert status == 1
    assert error == (
        "pymoo-gpuaco: row: no tour with all fixed edges and without forbidden ones was found: 1 constraint is broken\n"
    )
    assert "row: 4 cities, distances from a matrix, 3 forbidden edges\n" in said
    assert "proven" not in said
    assert sorted(read_tour(tmp_path / "row.tour")) == [0, 1, 2, 3]
    status, said, _ = run(capsys, "row.csv", "--json", "--generations", "1")
    assert (status, json.loads(said)["runs"][0]["violations"]) == (1, 1)
    status, said, error = run(capsys, "row.csv", "--open", "--tour", "row.tour")
    assert (status, error) == (0, "")
    assert "best tour   3\n" in said


def test_the_runs_that_break_no_demand_are_summed_up(capsys):
    """Of two runs the longer one keeps to all constraints."""
    problem = read_cities(io.StringIO(NO_CYCLE))
    row = {
        "best_known": None,
        "gap_percent": None,
        "lower_bound": None,
        "generations": 1,
        "tours": 1,
        "seconds": 1.0,
    }
    row |= {"stopped_by": "the end"}
    runs = [
        Run(problem, np.arange(4), {"seed": 1, "length": 2.0, "violations": 1, **row}),
        Run(problem, np.arange(4), {"seed": 2, "length": 9.0, "violations": 0, **row}),
    ]
    job = Job(parser().parse_args(["solve", "row"]), {"row": problem}, "GPUMemetic", [1, 2])
    assert write_best_tour(job, "row", runs) == 0
    text = capsys.readouterr().out
    assert "best tour   9" in text
    assert re.search(r"worst +9 ", text)


def test_cities_without_names_are_reported_by_number(capsys, tmp_path):
    (tmp_path / "bare.csv").write_text("0,0\n9,0\n1,0\n4,1\n")
    _, said, _ = run(capsys, "bare.csv", "--start", "2", "--backend", "cpu")
    assert (
        "bare: 4 cities, Euclidean distances, not rounded (EXACT), along a path (one-way, no return), from 2\n"
        in said
    )
    assert "ready on the CPU" in said


def test_a_path_is_drawn_open(capsys, tmp_path):
    assert main(["solve", "line.csv", "--open", "--picture", "path.png"]) == 0
    assert (tmp_path / "path.png").stat().st_size > 1000


def test_standard_input_and_options_for_numbers_in_doubt(capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b"0 1 2\n3 0 4\n5 6 0\n")))
    status, said, _ = run(capsys, "-", "--matrix", "--tour", "-")
    assert status == 0
    assert "NAME : stdin" in said
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b"0 0\n0 90\n90 0\n")))
    _, said, _ = run(capsys, "-", "--metric", "haversine")
    assert "stdin: 3 cities, great circles" in said
    monkeypatch.setattr(sys, "stdin", None)  # as Python has it where the shell has closed it
    assert main(["solve", "-", "--picture", ""]) == 2
    assert "stdin is closed" in capsys.readouterr().err


def test_write_route_from_python(tmp_path):
    problem = load_tsp("line.csv")
    write_route("line.json", OpenPath(problem, start=0), solve(OpenPath(problem, start=0)).tour)
    written = json.loads((tmp_path / "line.json").read_text())
    assert (written["length"], written["closed"], written["names"][0]) == (10, False, "left")
    write_route("gr17.csv", load_tsp("gr17"), np.arange(17))
    assert (tmp_path / "gr17.csv").read_text().splitlines()[:2] == ["stop,city,name,to_next", "1,1,1,633"]
    with pytest.raises(ValueError, match="GeoJSON needs"):
        write_route("gr17.geojson", load_tsp("gr17"), np.arange(17))
    globe = load_tsp("gr666")
    write_route("gr666.geojson", globe, np.arange(666))
    place = json.loads((tmp_path / "gr666.geojson").read_text())["features"][1]["geometry"]["coordinates"]
    lat, lon = globe.positions[0]  # degrees and minutes
    assert place == pytest.approx([int(lon) + (lon % 1) / 0.6, int(lat) + (lat % 1) / 0.6])


# on a line, in this order along it: 4, 9, 2, 7
NUMBERED = "TYPE: TSP\nDIMENSION: 4\nEDGE_WEIGHT_TYPE: GEO\nNODE_COORD_SECTION\n9 0 20\n4 0 10\n7 0 40\n2 0 30\nEOF\n"


def test_the_numbers_of_a_tsplib_file_are_kept(capsys, tmp_path):
    (tmp_path / "own.tsp").write_text(NUMBERED)
    problem = load_tsp("own.tsp")
    assert problem.ids.tolist() == [2, 4, 7, 9]
    assert copy.deepcopy(problem).ids is problem.ids
    assert pickle.loads(pickle.dumps(problem)).ids.tolist() == [2, 4, 7, 9]
    for name in ("own.tour", "own.csv", "own.geojson"):
        status, said, _ = run(capsys, "own.tsp", "--start", "7", "--tour", name)
        assert (status, "along a path (one-way, no return), from 7\n" in said) == (0, True)
    assert "TOUR_SECTION\n7\n2\n9\n4\n-1\n" in (tmp_path / "own.tour").read_text()
    rows = list(csv.DictReader((tmp_path / "own.csv").read_text().splitlines()))
    assert [(row["city"], row["name"]) for row in rows] == [(number, number) for number in "7294"]
    points = json.loads((tmp_path / "own.geojson").read_text())["features"][1:]
    assert [point["properties"]["city"] for point in points] == [7, 2, 9, 4]
    assert read_tour("own.tour", ids=problem.ids).tolist() == [2, 0, 3, 1]
    status, said, _ = run(capsys, "own.tsp", "--start", "7", "--from-tour", "own.tour", "--generations", "1")
    assert status == 0
    status, _, error = run(capsys, "own.tsp", "--end", "3")
    assert (status, "--end must be a number from 2 to 9 that the file has, got '3'" in error) == (2, True)


def test_of_several_objectives_the_numbers_are_those_that_all_files_have(capsys, tmp_path):
    for name in ("a.tsp", "b.tsp"):
        (tmp_path / name).write_text(NUMBERED)
    (tmp_path / "c.tsp").write_text(NUMBERED.replace("7 0 40", "8 0 40"))
    for instance, numbers in (("a.tsp+b.tsp", list("2479")), ("a.tsp+c.tsp", list("1234"))):
        assert run(capsys, instance, "--csv", "front.csv", "--time", "1s")[0] == 0
        for row in list(csv.reader((tmp_path / "front.csv").read_text().splitlines()))[1:]:
            assert sorted(row[2:]) == numbers


def test_cities_that_count_from_0_and_from_minus_1(capsys, tmp_path):
    for least in (0, -1):
        lines = "".join(f"{least + city} 0 {10 * city}\n" for city in range(4))
        (tmp_path / "own.tsp").write_text(NUMBERED.split("9 0 20")[0] + lines)
        status, said, error = run(capsys, "own.tsp", "--start", str(least), "--tour", "-")
        assert status == (0 if least == 0 else 2)
        assert said.endswith("TOUR_SECTION\n0\n1\n2\n3\n-1\nEOF\n" if least == 0 else "")
        assert ("--tour -: TSPLIB's tours end at -1, which is the id of a city here" in error) == (least < 0)
    status, said, _ = run(capsys, "own.tsp", "--end=-1", "--json", "--tour", "own.json")
    assert status == 0
    for written in (*json.loads(said)["runs"], json.loads((tmp_path / "own.json").read_text())):
        assert (written["tour"], written["ids"]) == ([3, 2, 1, 0], [2, 1, 0, -1])
