"""Cities from other sources than tables of text: GeoJSON, GPX, KML, workbooks, data frames, graphs, open files."""

import gzip
import io
import json

import networkx
import numpy as np
import pytest
from pandas import DataFrame, to_timedelta

from pymoo_gpuaco import TSP, MultiObjectiveTSP, load_tsp, read_cities, solve
from pymoo_gpuaco.problems import Metric, as_instance, table
from tests.engine_cases import cloud
from tests.test_bad_input import Permutations
from tests.test_inputs import GAPS, HALF, MATRIX, SQUARE

TOWNS = {"a": (0, 0), "b": (0, 1), "c": (1, 1), "d": (1, 0)}  # latitude and longitude


def test_the_default_path_from_a_table_to_names_in_order(tmp_path):
    path = tmp_path / "cities.csv"
    path.write_text("name,x,y\nd,0,1\na,0,0\nc,1,1\nb,1,0\n")
    found = solve(path, seconds=5)
    assert (found.length, found.names.tolist(), found.problem.label) == (4, ["d", "a", "b", "c"], "cities")
    gaps = read_cities(io.StringIO("0,3,,5\n3,0,4,\n,4,0,6\n5,,6,0\n"))
    assert str(gaps).endswith("4 cities, distances from a matrix, 2 forbidden edges")
    assert solve(gaps).length == 18


def feature(place, **more):
    return {"type": "Feature", "geometry": {"type": "Point", "coordinates": place}, **more}


def test_geojson_has_longitude_before_latitude(tmp_path):
    features = [feature([lon, lat, 30], properties={"Name": name}) for name, (lat, lon) in TOWNS.items()]
    path = tmp_path / "towns.geojson"
    path.write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    for problem in (load_tsp(path), read_cities(io.StringIO(path.read_text()))):
        assert problem.metric is Metric.HAVERSINE
        assert problem.positions.tolist() == list(map(list, TOWNS.values()))
        assert problem.names.tolist() == list(TOWNS)
    del features[1]["properties"]  # as an empty cell of a table
    some = {"type": "FeatureCollection", "features": features}
    assert read_cities(io.StringIO(json.dumps(some))).names.tolist() == ["a", "", "c", "d"]
    points = {"type": "MultiPoint", "coordinates": [[0, 0], [1, 0], [1, 1]]}
    assert read_cities(io.BytesIO(json.dumps(points).encode())).names is None


def test_geojson_without_points_or_with_other_shapes(tmp_path):
    line = {"type": "Feature", "geometry": {"type": "LineString", "coordinates": [[0, 0], [1, 1]]}}
    collection = {"type": "FeatureCollection", "features": [line, *[feature([x, 2]) for x in range(3)]]}
    with pytest.warns(UserWarning, match="other than points are left out: 1 of LineString"):
        assert read_cities(io.StringIO(json.dumps(collection))).n_cities == 3
    for content, words in (
        ('{"type": "FeatureCollection", "features": []}', "holds no point"),
        ('{"type": "Point", "coordinates": [1]}', r"needs \[longitude, latitude\], got \[1\]"),
        ('{"type": "Point", "coordinates": ["1", 2]}', "needs"),
        ('{"type": "FeatureCollection"}', "without a list of features"),
        ('{"type": ', "it is not JSON"),
        ('[{"originIndex": 0, "destinationIndex": 1, "duration": "3s"}]', "expected columns x and y"),
        ('{"code": "Ok", "routes": []}', "neither GeoJSON nor a matrix .* json.load reads it in Python"),
        ("[[0, 1, 2], [1, 0, 3], [2, 3, 0]]", "three cities in space or a matrix: matrix=True"),
    ):
        with pytest.raises(ValueError, match=words):
            read_cities(io.StringIO(content))


def test_packed_data_that_are_far_too_long_are_refused_not_cut_off(monkeypatch):
    monkeypatch.setattr(table, "_ALWAYS", 0)
    packed = gzip.compress(b"0,0\n3,0\n" * 20_000)  # to less than 1/200 of its length
    with pytest.raises(ValueError, match="packed data of this size may hold"):
        read_cities(io.BytesIO(packed))


def test_open_files_hold_tables_and_tsplib(tmp_path):
    assert read_cities(io.BytesIO(b"x;y\n0;0\n3;0\n3;4\n"), name="mine").label == "mine"
    problem = read_cities(
        io.StringIO(
            "NAME: own\nTYPE: TSP\nDIMENSION: 3\nEDGE_WEIGHT_TYPE: CEIL_2D\nNODE_COORD_SECTION\n1 0 0\n2 1 1\n3 0 1\n"
        )
    )
    assert (problem.label, problem.metric) == ("own", Metric.CEIL)
    assert solve(io.StringIO("0 0\n0 1\n1 1\n1 0\n")).length == 4


PLACES = ((0, 1), (2, 3), (4, 6))  # latitude and longitude
GPX = '<?xml version="1.0" encoding="UTF-8"?>\n<gpx xmlns="http://www.topografix.com/GPX/1/1" version="1.1">{}</gpx>'
WAYPOINTS = "".join(
    f'<wpt lat="{lat}" lon="{lon}"><ele>5</ele><name>n{lat}</name></wpt>' for lat, lon in PLACES
)
KML = '<kml xmlns="http://www.opengis.net/kml/2.2"><Document>{}</Document></kml>'
PLACEMARKS = "".join(
    f"<Placemark><name>n{lat}</name><Point><coordinates>\n {lon},{lat},0 </coordinates></Point></Placemark>"
    for lat, lon in PLACES
)
FEATURES = [json.dumps(feature([lon, lat], properties={"name": f"n{lat}"})) for lat, lon in PLACES]


@pytest.mark.parametrize(
    "text",
    [
        GPX.format(WAYPOINTS),
        GPX.format("<rte>" + WAYPOINTS.replace("wpt", "rtept") + "</rte>"),
        KML.format(PLACEMARKS),
        "\n".join(FEATURES),
        "".join(f"\x1e{feature}\n" for feature in FEATURES),
    ],
    ids=["GPX", "GPX route", "KML", "Features in lines", "GeoJSONSeq"],
)
def test_points_of_the_globe(text):
    problem = read_cities(io.StringIO(text))
    assert problem.positions.tolist() == [[0, 1], [2, 3], [4, 6]]
    assert (problem.metric.name, problem.names.tolist()) == ("HAVERSINE", ["n0", "n2", "n4"])


def test_workbooks(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in [["CityId", "x", "y"], [7, 0, 0], [8, 3, 0.5], [9, 3, "4,25"]]:
        book.active.append(row)
    book.save(tmp_path / "cities.xlsx")
    problem = load_tsp(tmp_path / "cities.xlsx")
    assert problem.positions.tolist() == [[0, 0], [3, 0.5], [3, 4.25]]
    assert problem.ids.tolist() == [7, 8, 9]


TABLE = DataFrame({"city": list(TOWNS), "lat": [0.0, 0, 1, 1], "lon": [0.0, 1, 1, 0]})
PLANE = DataFrame({"x": TABLE.lon, "y": TABLE.lat})


def test_data_frames():
    problem = read_cities(TABLE, name="towns")
    assert (problem.label, problem.metric) == ("towns", Metric.HAVERSINE)
    assert problem.names.tolist() == list(TOWNS)
    assert read_cities(TABLE.set_index("city")).names.tolist() == list(TOWNS)
    assert solve(PLANE).length == 4
    assert solve(DataFrame([[0, 0], [0, 1], [1, 1], [1, 0]])).length == 4  # without titles
    for matrix in (MATRIX, GAPS):
        table = DataFrame(matrix, list("abcd"), list("abcd")).replace(np.inf, np.nan)
        np.testing.assert_array_equal(read_cities(table).matrix, matrix)
        assert read_cities(table).names.tolist() == list("abcd")
    np.testing.assert_array_equal(read_cities(DataFrame(GAPS).replace(np.inf, np.nan)).matrix, GAPS)
    blank = DataFrame(np.where(np.triu(HALF, 1) > 0, np.nan, HALF), list("abcd"), list("abcd"))
    np.testing.assert_array_equal(read_cities(blank).matrix, HALF)
    assert read_cities(PLANE.drop(1)).ids.tolist() == [0, 2, 3]
    commas = DataFrame({"x": ["52,5", "53,25", "48"], "y": ["13,4", "10", "11,5"]})
    assert read_cities(commas).positions.tolist() == [[52.5, 13.4], [53.25, 10], [48, 11.5]]
    with pytest.warns(UserWarning, match="look like degrees"):
        read_cities(DataFrame({"x": [13.405, 9.993, 11.576], "y": [52.52, 53.551, 48.137]}))


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        (DataFrame({"a": [0, 1, 2], "b": [0, 1, 2]}), "expected columns x and y"),
        (
            DataFrame({"x": [0, "a", 1], "y": [0, np.nan, 1]}),
            "row 1: expected 2 finite numbers, got 'a, nan'",
        ),
        (DataFrame({"x": ["1,900", "3", "5"], "y": [1, 2, 3]}), "decimal="),
        (DataFrame([[0, 0, 1], [3, 0, 1], [3, 4, 1]], columns=["x", "y", "y"]), "may both be y"),
        (DataFrame({c: to_timedelta([1, 2, 3, 4], "min") for c in "abcd"}), "the cells are times"),
    ],
)
def test_data_frames_that_are_refused(frame, words):
    with pytest.raises(ValueError, match=words):
        read_cities(frame)
    with pytest.raises(ValueError, match="separator has no effect on a DataFrame"):
        read_cities(frame, separator=";")


class Point:
    geom_type = "Point"

    def __init__(self, x, y):
        self.x, self.y = x, y


class GeoFrame:
    """Part of a GeoDataFrame of geopandas, where it is not installed."""

    columns = ("name", "geometry")

    def __init__(self, points, geographic):
        self.rows, self.index = [[f"n{i}", point] for i, point in enumerate(points)], range(len(points))
        self.crs = type("CRS", (), {"is_geographic": geographic})()

    def to_numpy(self):
        return np.array(self.rows, dtype=object)


def test_geo_data_frames_have_points():
    points = [Point(13.4, 52.5), Point(10, 53), Point(11.5, 48)]
    globe = read_cities(GeoFrame(points, True))
    assert globe.metric.name == "HAVERSINE"
    assert globe.positions[0].tolist() == [52.5, 13.4]
    plane = read_cities(GeoFrame(points, False))
    assert (plane.metric.name, plane.positions[0].tolist()) == ("EXACT", [13.4, 52.5])
    points[1].geom_type = "Polygon"
    with pytest.raises(ValueError, match="row 1: expected a Point"):
        read_cities(GeoFrame(points, True))


def test_graphs():
    graph = networkx.Graph()
    graph.add_weighted_edges_from([("a", (1, 2), 4), ("a", 3, 5), (3, (1, 2), 6), (3, 3, 9)])
    problem = read_cities(graph)
    assert problem.matrix.tolist() == [[0, 4, 5], [4, 0, 6], [5, 6, 0]]
    assert problem.names.tolist() == ["a", (1, 2), 3]
    directed = networkx.MultiDiGraph()
    directed.add_weighted_edges_from([(0, 1, 1), (1, 2, 1), (2, 0, 1)])
    one_way = read_cities(directed)
    assert one_way.matrix.tolist() == [[0, 1, np.inf], [np.inf, 0, 1], [1, np.inf, 0]]
    assert (one_way.n_forbidden, solve(one_way).length) == (3, 3)
    directed.add_weighted_edges_from([(1, 0, 9), (2, 1, 9), (0, 2, 9), (0, 2, 8), (0, 2, 10)])
    assert read_cities(directed).matrix.tolist() == [
        [0, 1, 8],
        [9, 0, 1],
        [1, 9, 0],
    ]  # of parallel edges the least


def test_edges_without_a_weight():
    petersen = read_cities(networkx.petersen_graph())
    assert repr(petersen) == "TSP: 10 cities, distances from a matrix, 30 forbidden edges"
    with pytest.warns(UserWarning, match="1 constraint is broken"):  # it has no Hamiltonian cycle
        assert solve(petersen, 0.5).length == 9  # edges that carry nothing weigh 1
    graph = networkx.Graph()
    for a, b, length in (("a", "b", 3), ("b", "c", 4), ("c", "a", 5)):
        graph.add_edge(a, b, length=length, time=9)
    assert read_cities(graph, weight="length").tour_length([0, 1, 2]) == 12
    for words, options in (
        ("from 'a' to 'b' has no number as its weight, got None; it has 'length', 'time': weight= names", {}),
        ("no number as its price", {"weight": "price"}),
        ("metric has no effect on a graph", {"metric": "EXACT"}),
    ):
        with pytest.raises(ValueError, match=words):
            read_cities(graph, **options)


def full_matrix(folder, numbers):
    path = folder / "half.atsp"
    rows = "\n".join(" ".join(map(str, row)) for row in np.asarray(numbers).tolist())
    path.write_text(
        "TYPE: ATSP\nDIMENSION: 4\nEDGE_WEIGHT_TYPE: EXPLICIT\nEDGE_WEIGHT_FORMAT: FULL_MATRIX\n"
        f"EDGE_WEIGHT_SECTION\n{rows}\nEOF\n"
    )
    return path


def test_halves_of_arrays_files_objectives_and_own_problems(tmp_path):
    half = np.triu(HALF)
    for read in (
        lambda **said: TSP(matrix=half, **said),
        lambda **said: TSP(matrix=half.T, **said),
        lambda **said: load_tsp(full_matrix(tmp_path, half), **said),
    ):
        with pytest.raises(ValueError, match="half and zeros in the other: symmetric=True"):
            read()
        np.testing.assert_array_equal(read(symmetric=True).matrix, HALF)
        assert not read(symmetric=False).symmetric
    with pytest.raises(ValueError, match="symmetric=True"):
        MultiObjectiveTSP([half, half])
    with pytest.raises(ValueError, match="goes with matrix only"):
        TSP(SQUARE, symmetric=True)
    with pytest.warns(UserWarning, match="D of Permutations has distances only in its upper half"):
        as_instance(Permutations(n=4, D=half.astype(float)))


def test_a_problem_of_tsplib95():
    tsplib95 = pytest.importorskip("tsplib95")
    header = "NAME: own\nTYPE: TSP\nDIMENSION: 3\nEDGE_WEIGHT_TYPE: EUC_2D\n"
    text = f"{header}NODE_COORD_SECTION\n1 0 0\n2 3.5 0\n3 3 4\nEOF\n"
    problem = read_cities(tsplib95.parse(text))
    assert (problem.label, problem.metric) == ("own", Metric.EUC)
    assert problem.positions.tolist() == [[0, 0], [3.5, 0], [3, 4]]


def test_what_is_no_source_is_refused(tmp_path):
    with pytest.raises(TypeError, match="source must be a path, an open file, a DataFrame or a graph"):
        read_cities(42)
    with pytest.raises(FileNotFoundError):
        read_cities(tmp_path / "nowhere.csv")
    with pytest.raises(ValueError, match="directory"):
        read_cities(tmp_path)


def test_names_are_kept_and_checked():
    problem = TSP(np.eye(3, 2), names=["a", ("b", 1), None])
    assert problem.names[[2, 0, 1]].tolist() == [None, "a", ("b", 1)]
    assert cloud(4).names is None
    with pytest.raises(ValueError, match="names must be 3, one per city, got 2"):
        TSP(np.eye(3, 2), names=["a", "b"])
    with pytest.raises(TypeError, match="names must be a sequence of 3 names"):
        TSP(np.eye(3, 2), names="abc")
