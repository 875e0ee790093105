"""Maps of problems with a matrix and positions: files for map programs, and pictures."""

import json
from xml.etree import ElementTree

import numpy as np
import pytest
from pymoo.optimize import minimize

from pymoo_gpuaco import (
    TSP,
    GPUMemetic,
    MultiObjectiveTSP,
    OpenPath,
    load_tsp,
    read_cities,
    solve,
    write_route,
)
from pymoo_gpuaco.visualization import plot_tour

MINUTES = np.array([[0, 9, 21, 15], [10, 0, 14, 18], [20, 13, 0, 23], [16, 19, 24, 0]], float)
PLACES = [(52.52, 13.4), (53.55, 9.99), (48.14, 11.58), (50.94, 6.96)]
NAMES = ["Berlin", "Hamburg", "Munich", "Cologne"]
# 0 1 2 3 takes 9 + 14 + 23 + 16
LEGS = [9, 14, 23, 16]


def roads(**more):
    return TSP(matrix=MINUTES, positions=PLACES, names=NAMES, **more)


def places_in(path):
    """Points, line and distances to the next place in a file; places are (latitude, longitude)."""
    if path.suffix == ".geojson":
        route, *points = json.loads(path.read_text())["features"]
        line = [tuple(place[::-1]) for place in route["geometry"]["coordinates"]]
        legs = [point["properties"]["to_next"] for point in points]
        return [tuple(point["geometry"]["coordinates"][::-1]) for point in points], line, legs
    root = ElementTree.parse(path).getroot()
    words, *said = [e.text for e in root.iter() if e.tag.endswith(("}desc", "}description"))]
    assert words.startswith("distances from an asymmetric matrix")
    said = [text.removeprefix("to next: ") for text in said]
    if path.suffix == ".gpx":
        line = [(float(e.get("lat")), float(e.get("lon"))) for e in root.iter() if e.tag.endswith("rtept")]
        return line, line, [float(text) for text in said]
    texts = [e.text for e in root.iter() if e.tag.endswith("coordinates")]
    line, *points = [[tuple(map(float, p.split(",")))[::-1] for p in text.split()] for text in texts]
    return [point for (point,) in points], line, [float(text) for text in said]


@pytest.mark.parametrize("suffix", [".geojson", ".gpx", ".kml"])
@pytest.mark.parametrize("closed", [True, False])
def test_road_times_and_positions_give_a_map(suffix, closed, tmp_path):
    path, problem = tmp_path / f"map{suffix}", roads() if closed else OpenPath(roads())
    write_route(path, problem, [0, 1, 2, 3])
    points, line, legs = places_in(path)
    assert line == [*PLACES, PLACES[0]] if closed else PLACES  # straight legs; a path does not return
    assert points[:4] == PLACES
    assert [leg for leg in legs if leg is not None][:4] == LEGS[: 4 if closed else 3]


def test_a_solution_of_road_times_is_written_as_geojson_and_csv(tmp_path):
    solution = solve(roads(), seconds=1, start="Munich", end="Hamburg")
    solution.to_geojson(tmp_path / "a.geojson")
    points, line, legs = places_in(tmp_path / "a.geojson")
    assert line == points == [PLACES[city] for city in solution.tour]
    assert (legs[-1], sum(legs[:-1])) == (None, solution.length)
    solution.to_csv(tmp_path / "a.csv")
    titles, first, *_ = (tmp_path / "a.csv").read_text().splitlines()
    assert titles == "stop,city,name,lat,lon,to_next"
    assert first.startswith("1,3,Munich,48.14,11.58,")


DEGREES = np.array(PLACES)


@pytest.mark.parametrize(
    ("positions", "metric", "is_on_globe"),
    [
        (DEGREES, None, True),
        (DEGREES, "EXACT", False),
        (DEGREES[:, ::-1] * 9, None, False),  # kilometres
        (np.round(DEGREES), None, False),  # whole numbers: pixels, more likely
        (np.round(DEGREES), "HAVERSINE", True),
        (np.random.default_rng(1).random((4, 2)) * 50, None, False),  # 16 decimals
        (DEGREES / 60, None, False),  # a unit square
        (-DEGREES, None, True),
        (DEGREES[:, ::-1] + [90, 0], None, False),  # longitude first
        (np.round(DEGREES), "GEO", True),
    ],
)
def test_positions_of_a_matrix_are_degrees_if_said_or_written_so(positions, metric, is_on_globe, tmp_path):
    problem = TSP(matrix=MINUTES, positions=positions, metric=metric)
    assert np.array_equal(problem.cities, np.asarray(positions)[:, :: -1 if is_on_globe else 1])
    if is_on_globe:
        write_route(tmp_path / "a.geojson", problem, range(4))
    else:
        with pytest.raises(ValueError, match=r'GeoJSON needs lat.* takes positions=, and metric="HAVERSINE"'):
            write_route(tmp_path / "a.geojson", problem, range(4))


@pytest.mark.parametrize("titles", [["lat", "lon"], ["Longitude", "Latitude"], ["x", "y"]])
def test_titles_of_positions_say_what_they_are(titles):
    pandas = pytest.importorskip("pandas")
    numbers = np.round(DEGREES)[:, :: -1 if titles[0] == "Longitude" else 1]
    problem = TSP(matrix=MINUTES, positions=pandas.DataFrame(numbers, columns=titles))
    assert problem.positions.tolist() == np.round(DEGREES).tolist()
    assert problem.position_metric == ("EXACT" if titles[0] == "x" else "HAVERSINE")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"metric": "HAVERSINE"}, "metric='HAVERSINE' has no effect on a matrix without positions"),
        ({"metric": "HAVERSINE", "positions": DEGREES + 90}, r"latitude must be in \[-90, 90\], got 142.52"),
        ({"metric": "miles", "positions": DEGREES}, "unknown metric 'miles'"),
        ({"positions": DEGREES[:3]}, r"positions must have shape \(4, 2\), got \(3, 2\)"),
    ],
)
def test_wrong_positions_are_named(given, words):
    with pytest.raises(ValueError, match=words):
        TSP(matrix=MINUTES, **given)


def test_forbidden_edges_and_weighted_objectives_keep_the_globe(tmp_path):
    globe = TSP(DEGREES, "HAVERSINE", forbidden_edges=[(0, 1)])
    weighted = MultiObjectiveTSP([roads(), roads()]).weighted([1, 2])
    for problem in (globe, weighted, load_tsp("gr666").__class__(load_tsp("gr666").positions, "GEO")):
        write_route(tmp_path / "a.geojson", problem, range(problem.n_cities))
    for problem in (globe, weighted):
        assert np.array_equal(problem.cities, DEGREES[:, ::-1])


@pytest.mark.parametrize(
    "sources",
    [
        [{"location": [lon, lat], "name": name} for (lat, lon), name in zip(PLACES, NAMES, strict=True)],
        [[{"lat": lat, "lon": lon} for lat, lon in PLACES]],
    ],
    ids=["OSRM", "Valhalla"],
)
def test_the_answer_of_a_service_has_its_places(sources, tmp_path):
    path = tmp_path / "table.json"
    path.write_text(json.dumps({"durations": MINUTES.tolist(), "sources": sources, "destinations": sources}))
    problem = read_cities(path)
    assert problem.positions.tolist() == DEGREES.tolist()
    write_route(tmp_path / "a.gpx", problem, range(4))


def test_a_picture_of_road_times_has_north_at_the_top_and_is_drawn_from_any_result():
    problem = roads()
    solution, result = solve(problem, seconds=1), minimize(problem, GPUMemetic(), ("n_gen", 1), seed=1)
    for given in (solution, result, solution.tour):
        axes = plot_tour(problem, given).axes[0]
        tour = np.append(
            getattr(given, "X", solution.tour), given.X[0] if given is result else solution.tour[0]
        )
        assert np.array_equal(axes.lines[0].get_xydata(), DEGREES[tour][:, ::-1])
        # a degree of longitude is shorter: cos of the middle between 48.14 and 53.55
        assert axes.get_aspect() == pytest.approx(1 / np.cos(np.radians(50.845)))
