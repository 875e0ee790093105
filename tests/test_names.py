"""Names and ids of cities in paths, edges, solutions and files of tours, and on the command line."""

import csv
import io
import json

import numpy as np
import pytest

from pymoo_gpuaco import (
    TSP,
    MultiObjectiveTSP,
    OpenPath,
    load_tsp,
    read_cities,
    read_tour,
    solve,
    write_route,
)
from pymoo_gpuaco.cli import main

STOPS = "CityId,name,x,y\n0,Depot,0,0\n10,B,10,0\n7,C,1,0\n2,D,7,0\n5,E,4,0\n"


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "stops.csv").write_text(STOPS)


def run(capsys, *arguments):
    status = main(["solve", "stops.csv", "--picture", "", "--time", "5s", *arguments])
    said = capsys.readouterr()
    return status, said.out, said.err


def test_ends_and_edges_are_taken_by_name_id_and_position():
    stops = load_tsp("stops.csv")
    for start in ("Depot", "0", 0):
        assert OpenPath(stops, start=start).start == 0
    assert OpenPath(stops, start="2", end="B").start == 3  # an id, not the second line
    of_ids = read_cities(io.StringIO("id,x,y\n7,0,0\n8,3,0\n9,3,4\n"))  # which are its names too
    assert OpenPath(of_ids, start="8").start == 1
    path = solve("stops.csv", 5, start="B")
    assert (path.length, path.names.tolist()) == (10, ["B", "D", "E", "C", "Depot"])
    found = solve(
        "stops.csv", 5, start="C", end="C", fixed_edges=[("Depot", "B")], forbidden_edges=[("C", "E")]
    )
    assert found.names[0] == "C"
    assert found.length == 26  # Depot to B 10, and from there E, D, C and Depot: 6 + 3 + 6 + 1
    rounds = TSP(stops.positions, names=list("abcde"), fixed_edges=[("a", "b"), ("b", "a")])
    assert rounds.fixed_edges.tolist() == [[0, 1]]


@pytest.mark.parametrize(
    ("start", "words"),
    [
        ("depot", r"start must be .*, got 'depot'; did you mean 'Depot'\?"),
        ("Dpot", r"did you mean 'Depot'\?"),
        ("3", "start must be a name of a city or a number from 0 to 5 that the file has, got '3'"),
        (10, r"start must be an integer in \[0, 4\], got 10; 10 is an id: write it as text, '10'"),
        (9, r"start must be an integer in \[0, 4\], got 9$"),
    ],
)
def test_what_is_no_city_is_refused_with_the_nearest(start, words):
    with pytest.raises(ValueError, match=words):
        OpenPath(load_tsp("stops.csv"), start=start)


def test_a_label_that_is_a_name_and_an_id_of_two_cities_is_refused():
    problem = TSP(np.eye(3, 2), names=["2", "1", "x"], ids=[1, 2, 3])
    with pytest.raises(ValueError, match="'2' is the name of one city and the id of another"):
        problem.city("2")
    with pytest.raises(
        ValueError, match=r"in \[0, 2\], got \(7, 9\); integers are positions: write ids as text"
    ):
        TSP(np.eye(3, 2), ids=[7, 8, 9], fixed_edges=[(7, 9)])
    with pytest.raises(ValueError, match="ids must differ, one per city, got '1' twice"):
        TSP(np.eye(3, 2), ids=[1, "1", 2])


def test_ids_come_back_in_every_output(capsys, tmp_path):
    for name in ("best.csv", "best.json", "best.tour"):
        assert run(capsys, "--start", "10", "--tour", name)[0] == 0
    rows = csv.DictReader((tmp_path / "best.csv").read_text().splitlines())
    assert [row["city"] for row in rows] == ["10", "2", "5", "7", "0"]
    assert json.loads((tmp_path / "best.json").read_text())["ids"] == [10, 2, 5, 7, 0]
    assert "TOUR_SECTION\n10\n2\n5\n7\n0\n-1\n" in (tmp_path / "best.tour").read_text()
    problem = load_tsp("stops.csv")
    for name in ("best.csv", "best.json", "best.tour"):
        assert read_tour(name, 5, problem.ids).tolist() == [1, 3, 4, 2, 0]
    _, said, _ = run(capsys, "--start", "10", "--json")
    assert json.loads(said)["runs"][0]["ids"] == [10, 2, 5, 7, 0]


def test_solutions_are_written(tmp_path):
    found = solve("stops.csv", 5, start="B")
    found.to_csv(tmp_path / "out.txt")
    assert (tmp_path / "out.txt").read_text().splitlines()[1] == "1,10,B,10.0,0.0,3"
    with pytest.raises(ValueError, match=r"o\.xlsx: the suffix must be one of"):
        found.to_csv(tmp_path / "o.xlsx")
    with pytest.raises(ValueError, match="GeoJSON needs latitudes"):
        found.to_geojson(tmp_path / "out.geojson")


def test_round_trips_and_paths_on_the_command_line(capsys, tmp_path):
    status, said, _ = run(capsys, "--start", "B", "--end", "B", "--tour", "round.csv")
    assert status == 0
    assert said.startswith("stops: 5 cities, Euclidean distances, not rounded (EXACT), from B and back\n")
    assert "read as: id (CityId), name, x, y; 5 cities; separated by commas\n" in said
    assert (tmp_path / "round.csv").read_text().splitlines()[1].startswith("1,10,B")
    status, said, _ = run(capsys, "--start", "B")
    assert "along a path (one-way, no return), from B\n" in said.partition("\n")[0] + "\n"
    status, said, _ = run(capsys, "--fix", "Depot,B", "--forbid", "7,E", "--tour", "-")
    assert status == 0


def test_the_header_stands_once_over_several_seeds(capsys):
    _, said, _ = run(capsys, "--seeds", "3")
    assert said.count("stops: 5 cities") == said.count("read as:") == said.count(" time s") == 1


def test_the_bare_command_prints_help(capsys):
    assert main([]) == 0
    assert capsys.readouterr().out.startswith("usage: pymoo-gpuaco")


def test_options_of_the_command_line_decide(capsys, tmp_path):
    (tmp_path / "money.csv").write_text("x;y\n1.200;0\n0;900\n1.200;900\n")
    assert main(["solve", "money.csv", "--picture", ""]) == 2
    assert "(--decimal .) or decimal=',' (--decimal ,) decides" in capsys.readouterr().err
    assert main(["solve", "money.csv", "--picture", "", "--decimal", ","]) == 0
    assert "best tour   3600\n" in capsys.readouterr().out
    (tmp_path / "half.csv").write_text("0,3,4,2\n0,0,5,6\n0,0,0,1\n0,0,0,0\n")
    assert main(["solve", "half.csv", "--picture", ""]) == 2
    capsys.readouterr()
    for symmetric, length in (("yes", 11), ("no", 2)):
        assert main(["solve", "half.csv", "--picture", "", "--symmetric", symmetric]) == 0
        assert f"best tour   {length}\n" in capsys.readouterr().out


def test_keywords_of_solve():
    with pytest.raises(TypeError, match=r"solve has no argument 'vehicles'\. PyVRP and OR-tools serve"):
        solve(np.eye(3, 2), vehicles=2)
    with pytest.raises(ValueError, match="decimal has no effect on ndarray"):
        solve(np.eye(3, 2), decimal=",")
    assert solve([[0, 3, 4, 2], [0, 0, 5, 6], [0, 0, 0, 1], [0, 0, 0, 0]], 5, symmetric=True).length == 11


@pytest.mark.parametrize("name", ["o.xlsx", "o.html", "o.tsp", "o.pdf"])
def test_a_suffix_of_another_format_is_refused(name, capsys, tmp_path):
    with pytest.raises(ValueError, match=rf"{name}: the suffix must be one of .csv, .geojson, .gpx"):
        write_route(tmp_path / name, load_tsp("stops.csv"), range(5))
    status, _, error = run(capsys, "--tour", name)
    assert (status, f"--tour {name}: the suffix must be" in error, (tmp_path / name).exists()) == (
        2,
        True,
        False,
    )


def test_tours_of_other_programs_are_read(tmp_path):
    for name, text in (
        ("a.sol", "5\n1 3 4\n2 0\n"),
        ("a.cyc", "1\n3\n4\n2\n0\n"),
        ("linkern.cyc", "5 5\n1 3 3\n3 4 3\n4 2 3\n2 0 1\n0 1 10\n"),
        ("from1.txt", "2\n4\n5\n3\n1\n"),
    ):
        (tmp_path / name).write_text(text)
        assert read_tour(tmp_path / name).tolist() == [1, 3, 4, 2, 0], name
    for text, words in (
        ("5\n1 3 4\n2 2\n", "it lists a city twice"),
        ("99999999999 1", "it lists 99999999999, which is none of the 2"),
        ("3\n0.5 1 2\n", "expected a keyword, got 3"),
        ('{"tour": [1e400, 0]}', "it is JSON without a tour"),
        ('{"tour": [0.5, 1]}', "it is JSON without a tour"),
        ("stop,town\r1,7\r", "it lists None"),
        ('stop,city\n1,"' + 200_000 * "a", "a quotation mark is not closed|larger than field limit"),
    ):
        (tmp_path / "bad").write_text(text)
        with pytest.raises(ValueError, match=words):
            read_tour(tmp_path / "bad")


def test_graphs_of_hcp_files_allow_their_edges_alone(tmp_path):
    head = "NAME: ring\nTYPE: HCP\nDIMENSION: 4\nEDGE_DATA_FORMAT: {}\nEDGE_DATA_SECTION\n{}\n-1\nEOF\n"
    for layout, edges in (("EDGE_LIST", "1 3\n3 2\n2 4\n4 1"), ("ADJ_LIST", "1 3 4 -1\n2 3 4 -1")):
        (tmp_path / "ring.hcp").write_text(head.format(layout, edges))
        problem = read_cities(tmp_path / "ring.hcp")
        assert problem.n_forbidden == 2
        assert problem.violations([[0, 2, 1, 3], [0, 1, 2, 3]]).tolist() == [0, 2]
    (tmp_path / "cvrp.vrp").write_text("NAME: a\nTYPE: CVRP\nDIMENSION: 4\nEDGE_WEIGHT_TYPE: EUC_2D\n")
    with pytest.raises(ValueError, match=r"TYPE is CVRP, .* PyVRP and OR-tools"):
        load_tsp(tmp_path / "cvrp.vrp")


def test_two_cities():
    assert solve([[0, 0], [3, 4]], 1).length == 10
    assert solve(OpenPath([[0, 0], [3, 4]]), 1).length == 5
    path = solve(TSP(matrix=[[0, 3], [4, 0]], names=["a", "b"]), 1, start="b")
    assert (path.names.tolist(), path.length) == (["b", "a"], 4)
    both = MultiObjectiveTSP([TSP([[0, 0], [3, 4]]), TSP([[0, 0], [1, 0]])])
    assert solve(both, 1).lengths.tolist() == [[10, 2]]
    with pytest.raises(ValueError, match="two cities or a matrix"):
        solve([[0, 5], [5, 0]])


def test_metrics_that_become_a_matrix(tmp_path):
    places = [[0.0, 1.0], [0.0, 2.0], [90.0, 7.5]]
    problem = TSP(places, "GEOM", names=list("abc"))
    degree = 6378388 * np.pi / 180  # along the equator, and a quarter of a circle to the pole
    assert problem.D[0].tolist() == [0, int(degree + 1), int(90 * degree + 1)]
    assert str(problem) == "TSP: 3 cities, great circles in whole metres (GEOM)"
    write_route(tmp_path / "a.geojson", OpenPath(problem, start="c"), [2, 0, 1])
    write_route(tmp_path / "a.gpx", problem, [0, 1, 2])
    again = read_cities(tmp_path / "a.gpx", points=True)
    assert again.positions.tolist() == [*places, places[0]]  # it comes back
    space = [[0.5, 1, 0], [3, 4.25, 9], [-2, 1, 1]]
    assert TSP(space, "MANHATTAN").D[0].tolist() == [0, 2.5 + 3.25 + 9, 2.5 + 1]
    assert TSP(space, "chebyshev").D[0].tolist() == [0, 9, 2.5]
    assert TSP(np.array(space)[:, :2], "EXACT_2D").D[0, 2] == 2.5
    with pytest.raises(ValueError, match=r"must have shape \(n, 2\)"):
        TSP(space, "EXACT_2D")
    with pytest.raises(ValueError, match="metric MANHATTAN needs a matrix: 20000 cities at most, got 20001"):
        TSP(np.zeros((20001, 2)), "MANHATTAN")
    text = "NAME: g\nTYPE: TSP\nDIMENSION: 3\nEDGE_WEIGHT_TYPE: GEOM\nNODE_COORD_SECTION\n1 0 1\n2 0 2\n3 90 7.5\n"
    (tmp_path / "g.tsp").write_text(text)
    np.testing.assert_array_equal(load_tsp(tmp_path / "g.tsp").D, problem.D)


def test_cities_of_the_same_name_are_distinguished_by_the_numbers_of_the_caller(capsys):
    named = TSP([[0, 0], [9, 9], [1, 0], [1, 1]], names=["B", "A", "A", "C"], ids=[7, 8, 9, 5])
    with pytest.raises(ValueError, match=r"start 'A': 2 cities have this name; give the position 1 or 2$"):
        OpenPath(named, start="A")
    assert OpenPath(named, start=2).start == 2
    with open("twins.csv", "w") as file:
        file.write("id,name,x,y\n7,B,0,0\n8,A,9,9\n9,A,1,0\n5,C,1,1\n")
    assert main(["solve", "twins.csv", "--start", "A"]) == 2
    assert "--start 'A': 2 cities have this name; give the number 8 or 9" in capsys.readouterr().err


def test_ids_of_a_column_of_any_title_come_back_in_every_output(capsys):
    with open("customers.csv", "w") as file:
        file.write("customer,x,y\n101,0,0\n104,3,0\n103,3,4\n102,0,4\n")
    found = solve("customers.csv", seconds=1)
    found.to_csv("out.csv")
    with open("out.csv", newline="") as file:
        assert sorted(row["city"] for row in csv.DictReader(file)) == ["101", "102", "103", "104"]
    route = ["customers.csv", "--time", "1", "--picture", "", "--quiet"]
    for name in ("out.tour", "out.json", "out.csv"):
        assert main(["solve", *route, "--tour", name]) == 0
        assert sorted(read_tour(name, ids=found.problem.ids).tolist()) == [0, 1, 2, 3]
    with open("out.tour") as file:
        assert {"101", "102", "103", "104"} < set(file.read().split())
