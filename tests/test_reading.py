"""Cities from other sources than tables of text: GeoJSON, GPX, KML, workbooks, data frames, graphs, open files."""

import gzip
import io
import json
import tracemalloc
import zipfile
from decimal import Decimal
from fractions import Fraction

import networkx
import numpy as np
import pytest
from pandas import NA, DataFrame, array, to_timedelta

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
    monkeypatch.setattr(table, "_MIN_UNPACK_LIMIT", 0)
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
    points = {"points": True} if "<rte>" in text else {}
    problem = read_cities(io.StringIO(text), **points)
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


@pytest.fixture
def workbook(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")

    def write(rows, replaced=None):
        book, path = openpyxl.Workbook(), tmp_path / "cities.xlsx"
        for place, value in rows.items():
            book.active[place] = value
        book.save(path)
        if replaced:
            with zipfile.ZipFile(path) as old:
                parts = {name: old.read(name) for name in old.namelist()}
            with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
                for name, part in parts.items():
                    new.writestr(name, part.replace(*replaced))
        return path

    return write


CORNERS = {"A1": "x", "B1": "y", "A2": 0, "B2": 0, "A3": 3, "B3": 0, "A4": 3, "B4": 4}


def test_the_cells_of_a_workbook_are_those_that_it_holds(workbook):
    """A sheet that claims 16,384 columns and 20,000 rows took gigabytes."""
    path = workbook(CORNERS, (b'<dimension ref="A1:B4"', b'<dimension ref="A1:XFD20000"'))
    tracemalloc.start()
    try:
        assert load_tsp(path).positions.tolist() == [[0, 0], [3, 0], [3, 4]]
        assert tracemalloc.get_traced_memory()[1] < 1e8
    finally:
        tracemalloc.stop()
    far = {f"XFD{row}": 1 for row in range(1, 400)}
    with pytest.raises(ValueError, match=r"line \d+: cells are far apart; delete blank rows and columns"):
        load_tsp(workbook(CORNERS | far))


def test_a_workbook_that_unpacks_to_gigabytes_is_refused(workbook, monkeypatch):
    monkeypatch.setattr(table, "_MIN_UNPACK_LIMIT", 0)
    monkeypatch.setattr(table, "_MAX_UNPACK_RATIO", 1)
    with pytest.raises(ValueError, match=r"cities\.xlsx: this workbook holds .* MB, .* MB are allowed"):
        load_tsp(workbook(CORNERS))


def test_formulas_without_a_value_are_refused(workbook):
    """openpyxl, which computes nothing, writes them so."""
    for cells in (CORNERS | {"B3": "=B2*2"}, {"A1": 0, "B1": 3, "A2": "=B1", "B2": 0}):
        place = "line 3, column 2" if len(cells) > 4 else "line 2, column 1"
        with pytest.raises(ValueError, match=f"{place}: a formula without a value; save the workbook"):
            load_tsp(workbook(cells))
    assert load_tsp(workbook(CORNERS | {"C2": "a", "C3": "b"})).names.tolist() == ["a", "b", None]


def test_every_point_of_a_placemark_is_a_city():
    points = "<Point><coordinates>1,2</coordinates></Point><Point><coordinates>3,4</coordinates></Point>"
    several = f"<Placemark><name>m</name><MultiGeometry>{points}</MultiGeometry></Placemark>"
    listed = "<Placemark><Point><coordinates>\n 7 ,8 , 0\n 9,8,0 </coordinates></Point></Placemark>"
    problem = read_cities(io.StringIO(KML.format(several + listed)))
    assert problem.positions.tolist() == [[2, 1], [4, 3], [8, 7], [8, 9]]
    assert problem.names.tolist() == ["m", "m", "", ""]


@pytest.mark.parametrize(
    ("crs", "in_degrees"),
    [
        ("urn:ogc:def:crs:OGC:1.3:CRS84", True),
        ("EPSG:4326", True),
        ("urn:ogc:def:crs:EPSG::4258", True),
        ("urn:ogc:def:crs:EPSG::3857", False),
        ("EPSG:25832", False),
        ("EPSG:2056", False),
    ],
)
def test_geojson_in_another_unit_than_degrees_is_refused(crs, in_degrees):
    features = [feature([x, y], properties={"customer": x}) for x, y in ((10, 20), (30, 40), (50, 60))]
    content = {"type": "FeatureCollection", "features": features}
    content["crs"] = {"type": "name", "properties": {"name": crs}}
    text = json.dumps(content)
    if in_degrees:
        assert read_cities(io.StringIO(text)).metric is Metric.HAVERSINE
    else:
        for metric in (None, "HAVERSINE"):
            with pytest.raises(
                ValueError, match=f'its crs is {crs}, which may not be in degrees: .* metric="EXACT"'
            ):
                read_cities(io.StringIO(text), metric=metric)
    plane = read_cities(io.StringIO(text), metric="EXACT")
    assert plane.positions.tolist() == [[10, 20], [30, 40], [50, 60]]
    assert plane.ids.tolist() == [10, 30, 50]


def test_a_property_that_differs_labels_the_points_of_geojson():
    features = [feature([x, 2], id=str(x), properties={"kind": "a", "customer": 100 + x}) for x in range(3)]
    content = json.dumps({"type": "FeatureCollection", "features": features})  # as geopandas numbers them
    problem = read_cities(io.StringIO(content))
    assert (problem.ids.tolist(), problem.read_as) == ([100, 101, 102], "id (customer), lat, lon; 3 cities")
    assert read_cities(io.StringIO(content.replace('"0"', '"7"'))).ids.tolist() == [7, 1, 2]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (
            {
                "rows": [],
                "origin_addresses": [],
                "status": "REQUEST_DENIED",
                "error_message": "The key is invalid.",
            },
            "it says status REQUEST_DENIED, error_message The key is invalid",
        ),
        ({"rows": [{"elements": [{"status": "NOT_FOUND"}]}], "status": "OK"}, "it says elements NOT_FOUND"),
        ({"rows": [1, 2]}, "its rows have no elements with a distance or a duration"),
        (
            {"rows": [{"elements": [{"distance": 3}]}]},
            "its rows have no elements with a distance or a duration",
        ),
        ({"code": "InvalidQuery", "message": "malformed"}, "it says code InvalidQuery, message malformed"),
        ({"error": {"code": 2004}}, "it says error {'code': 2004}"),
        ({"matrices": {"car": 5}}, "neither GeoJSON nor a matrix"),
    ],
)
def test_what_a_service_says_instead_of_a_matrix_is_passed_on(content, words):
    with pytest.raises(ValueError, match=words):
        read_cities(io.StringIO(json.dumps(content)))


LARGE = 2**53 + 1


@pytest.mark.parametrize(
    "columns",
    [
        {"a": [0, LARGE, 2], "b": [1.5, 0, 2], "c": [1.0, 2, 0]},
        {"a": np.array([0, LARGE, 2], np.uint64), "b": [1, 0, 2], "c": [1, 2, 0]},
        {"a": [0, LARGE, 2], "b": array([1, 0, 2], dtype="Int64"), "c": [1.0, 2, 0]},
        {"a": [Decimal(0), Decimal(LARGE), Decimal(2)], "b": [1.5, 0, 2], "c": [1, 2, 0]},
        {"a": [Fraction(0), Fraction(LARGE), Fraction(2)], "b": [1.5, 0, 2], "c": [1, 2, 0]},
        {"a": np.array([0, LARGE, 2], np.longdouble), "b": [1, 0, 2], "c": [1, 2, 0]},
    ],
)
def test_whole_numbers_of_a_data_frame_are_not_rounded(columns):
    if getattr(columns["a"], "dtype", None) == np.longdouble and np.longdouble(LARGE) == float(LARGE):
        pytest.skip("longdouble is double here")
    frame = DataFrame(columns, list("abc"))
    with pytest.raises(ValueError, match=rf"exactly .* got {LARGE}"):
        read_cities(frame)
    with pytest.raises((ValueError, TypeError), match=rf"exactly .* got {LARGE}|dtype object"):
        TSP(matrix=frame)


def test_ids_beside_coordinates_with_fractions_stay_whole():
    frame = DataFrame({"id": [7, 8, 9], "x": [0, 3, 3], "y": [0.5, 0, 4]})
    for one in (frame, frame.rename(columns={"id": "customer"})):
        assert repr(read_cities(one).ids.tolist()) == "[7, 8, 9]"


def test_na_of_pandas_is_blank():
    full = DataFrame(GAPS, list("abcd"), list("abcd")).replace(np.inf, np.nan).astype("Int64")
    np.testing.assert_array_equal(read_cities(full).matrix, GAPS)
    with pytest.raises(ValueError, match="row 2: expected 2 finite numbers, got '<NA>, 4'"):
        read_cities(DataFrame({"x": array([0, 3, NA], dtype="Int64"), "y": [0, 0, 4]}))
    names = DataFrame({"id": array([1, NA, 3], dtype="Int64"), "x": [0, 1, 2], "y": [0, 1, 5]})
    assert read_cities(names).ids is None


def test_columns_x_and_y_in_degrees_are_warned_of_with_any_number_of_decimals():
    frame = DataFrame({"X": [13.4051234567891, 9.993, 11.576], "Y": [52.52, 53.551, 48.137]})
    for read in (
        lambda: read_cities(frame),
        lambda: TSP(frame),
        lambda: read_cities(io.StringIO(frame.to_csv())),
    ):
        with pytest.warns(UserWarning, match="look like degrees"):
            read()


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
    points[1].is_empty = True
    with pytest.raises(ValueError, match="row 1: expected a Point"):
        read_cities(GeoFrame(points, True))
    with pytest.raises(ValueError, match="row 0: expected a Point, got None"):
        read_cities(GeoFrame([None, *points[::2]], True))
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
