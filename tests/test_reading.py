"""Cities in the forms that people have them: tables, GeoJSON, data frames, graphs, open files."""

import io
import json

import numpy as np
import pytest

from pymoo_gpuaco import TSP, load_tsp, read_cities, solve
from pymoo_gpuaco.problems import Metric
from tests.engine_cases import cloud

# Four towns on the equator and the meridian, a degree each: 2 * pi * 6371.0088 / 360 km.
DEGREE = 111.19508023353
TOWNS = {"a": (0, 0), "b": (0, 1), "c": (1, 1), "d": (1, 0)}


def written(tmp_path, text, name="cities.csv"):
    path = tmp_path / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


@pytest.mark.parametrize(
    "text",
    [
        "name,lat,lon\na,0,0\nb,0,1\nc,1,1\nd,1,0\n",
        "Longitude;Latitude;City\n0,0;0,0;a\n1,0;0,0;b\n1,0;1,0;c\n0,0;1,0;d\n",
        "id|lng|lat|note\na|0|0|x\nb|1|0|x\nc|1|1|y\nd|0|1|y\n",
        '"lat" "long" "label"\n0 0 "a"\n0 1 "b"\n1 1 "c"\n1   0 "d"\n',
        "lat:lon:where\n0:0:a\n0:1:b\n1:1:c\n1:0:d\n",
    ],
    ids=["comma", "decimal comma", "bar", "blanks", "colon"],
)
def test_latitudes_and_longitudes_are_measured_over_the_globe(tmp_path, text):
    problem = read_cities(written(tmp_path, text))
    assert problem.metric is Metric.HAVERSINE
    assert problem.names.tolist() == ["a", "b", "c", "d"]
    assert problem.D[0, 1] == pytest.approx(DEGREE)
    assert problem.positions.tolist() == list(map(list, TOWNS.values()))
    assert problem.label == "cities"
    assert load_tsp(tmp_path / "cities.csv").metric is Metric.HAVERSINE


def test_the_default_path_from_a_table_to_names_in_order(tmp_path):
    path = written(tmp_path, "name,x,y\nd,0,1\na,0,0\nc,1,1\nb,1,0\n")
    tour, length = solve(path, seconds=5)
    assert length == 4
    assert read_cities(path).names[tour].tolist() == ["d", "a", "b", "c"]


@pytest.mark.parametrize(
    "text",
    ["a,0,0\nb,3,0\nc,3,4\n", "0 0 a\n3 0 b\n3 4 c\n", "0,0;0,0;a\n3,0;0,0;b\n3,0;4,0;c"],
)
def test_coordinates_without_titles_beside_names(tmp_path, text):
    problem = read_cities(written(tmp_path, text))
    assert problem.names.tolist() == ["a", "b", "c"]
    assert problem.metric is Metric.EXACT
    assert problem.tour_length([0, 1, 2]) == 12


def test_names_with_separators_line_breaks_and_umlauts(tmp_path):
    text = 'name,x,y\n"Main St. 1,\nKöln",0,0\n"say ""hi""",3,0\nc,3,4\n'
    for data in (text.encode(), text.encode("cp1252"), text.encode("utf-8-sig")):
        problem = read_cities(written(tmp_path, data))
        assert problem.names.tolist() == ["Main St. 1,\nKöln", 'say "hi"', "c"]


MATRIX = np.array([[0, 1, 2, 3], [4, 0, 5, 6], [7, 8, 0, 9], [1, 2, 3, 0]])


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("0 1 2 3\n4 0 5 6\n7 8 0 9\n1 2 3 0\n", None),
        ("a,0,1,2,3\nb,4,0,5,6\nc,7,8,0,9\nd,1,2,3,0\n", ["a", "b", "c", "d"]),
        (",a,b,c,d\na,0,1,2,3\nb,4,0,5,6\nc,7,8,0,9\nd,1,2,3,0\n", ["a", "b", "c", "d"]),
        (",0,1,2,3\n0,0,1,2,3\n1,4,0,5,6\n2,7,8,0,9\n3,1,2,3,0\n", ["0", "1", "2", "3"]),
        ("0,0;1,0;2;3\n4;0;5;6\n7;8;0;9\n1;2;3;0\n", None),
    ],
    ids=["bare", "names before", "names around", "as pandas writes it", "decimal comma"],
)
def test_a_square_of_numbers_is_a_matrix(tmp_path, text, names):
    problem = read_cities(written(tmp_path, text))
    assert problem.metric is Metric.EXPLICIT
    np.testing.assert_array_equal(problem.matrix, MATRIX)
    assert (None if problem.names is None else problem.names.tolist()) == names


def test_matrix_and_metric_decide_where_the_numbers_do_not(tmp_path):
    three = written(tmp_path, "0 1 2\n3 0 4\n5 6 0\n")
    assert read_cities(three, matrix=True).metric is Metric.EXPLICIT
    assert read_cities(three, metric="EUC_3D").metric is Metric.EUC
    assert load_tsp(three, matrix=True).tour_length([0, 1, 2]) == 1 + 4 + 5
    pairs = written(tmp_path, "0 0\n0 90\n90 0\n")
    assert read_cities(pairs, metric="HAVERSINE").D[0, 1] == pytest.approx(90 * DEGREE)
    titled = written(tmp_path, "x,y\n0,0\n0,90\n170,0\n")  # a latitude of 170 there is none
    assert read_cities(titled, metric="HAVERSINE").D[0, 2] == pytest.approx(170 * DEGREE)
    globe = written(tmp_path, "lat,lon\n0,0\n0,90\n50,0\n")
    assert read_cities(globe, metric="EXACT").positions.tolist() == [[0, 0], [90, 0], [0, 50]]
    with pytest.raises(ValueError, match=r"as many columns of numbers as rows, there are 2 and 3"):
        read_cities(pairs, matrix=True)
    with pytest.raises(ValueError, match=r"has no effect on .*TSPLIB instance: leave it out"):
        load_tsp("gr17", metric="EXACT")


@pytest.mark.parametrize(
    ("text", "warns"),
    [
        ("x,y\n13.405,52.52\n9.993,53.551\n11.576,48.137\n", True),
        ("52.52 13.405\n53.551 9.993\n48.137 11.576\n", True),
        ("x,y\n13.4,52.52\n9.99,53.55\n11.58,48.14\n", False),  # two decimals
        ("x,y\n0.405,0.521\n0.993,0.551\n0.576,0.137\n", False),  # a unit square
        ("x,y\n134.051,152.521\n99.931,53.551\n1.576,48.137\n", False),  # no latitude
        ("lat,lon\n13.405,52.52\n9.993,53.551\n11.576,48.137\n", False),
    ],
)
def test_degrees_in_x_and_y_are_noticed(tmp_path, text, warns, recwarn):
    path = written(tmp_path, text)
    load_tsp(path)
    assert [("look like degrees" in str(w.message)) for w in recwarn.list] == [True] * warns
    recwarn.clear()
    load_tsp(path, metric="EXACT")
    assert not recwarn.list


def feature(place, **more):
    return {"type": "Feature", "geometry": {"type": "Point", "coordinates": place}, **more}


def test_geojson_has_longitude_before_latitude(tmp_path):
    features = [feature([lon, lat, 30], properties={"Name": name}) for name, (lat, lon) in TOWNS.items()]
    path = written(tmp_path, json.dumps({"type": "FeatureCollection", "features": features}), "towns.geojson")
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
    with pytest.warns(UserWarning, match="no point: 1 of LineString"):
        assert read_cities(io.StringIO(json.dumps(collection))).n_cities == 3
    for content, words in (
        ('{"type": "FeatureCollection", "features": []}', "holds no point"),
        ('{"type": "Point", "coordinates": [1]}', r"needs \[longitude, latitude\], got \[1\]"),
        ('{"type": "Point", "coordinates": ["1", 2]}', "needs"),
        ('{"type": "FeatureCollection"}', "without a list of features"),
        ('{"type": ', "no JSON"),
        ('{"code": "Ok", "routes": []}', "neither GeoJSON nor a matrix .* json.load reads it in Python"),
        ("[[0, 1, 2], [1, 0, 3], [2, 3, 0]]", "three cities in space or a matrix: matrix=True"),
    ):
        with pytest.raises(ValueError, match=words):
            read_cities(io.StringIO(content))


def test_open_files_hold_tables_and_tsplib(tmp_path):
    assert read_cities(io.BytesIO(b"x;y\n0;0\n3;0\n3;4\n"), name="mine").label == "mine"
    problem = read_cities(
        io.StringIO(
            "NAME: own\nTYPE: TSP\nDIMENSION: 3\nEDGE_WEIGHT_TYPE: CEIL_2D\nNODE_COORD_SECTION\n1 0 0\n2 1 1\n3 0 1\n"
        )
    )
    assert (problem.label, problem.metric) == ("own", Metric.CEIL)
    assert solve(io.StringIO("0 0\n0 1\n1 1\n1 0\n")).length == 4


class Frame:
    """What pandas has of a DataFrame, where it is not installed."""

    def __init__(self, columns, rows, index=None):
        self.columns, self._rows = columns, rows
        self.index = range(len(rows)) if index is None else index

    def to_numpy(self):
        return np.array(self._rows, dtype=object)


def test_data_frames():
    rows = [["a", 0.0, 0.0], ["b", 0.0, 1.0], ["c", 1.0, 1.0], ["d", 1.0, 0.0]]
    problem = read_cities(Frame(["city", "lat", "lon"], rows), name="towns")
    assert (problem.label, problem.metric) == ("towns", Metric.HAVERSINE)
    assert problem.names.tolist() == list(TOWNS)
    labelled = read_cities(Frame(["x", "y"], [row[1:] for row in rows], index=list("abcd")))
    assert labelled.names.tolist() == list("abcd")
    matrix = read_cities(Frame(list("abc"), [[0, 1, 2], [3, 0, 4], [5, 6, 0]], index=list("abc")))
    assert matrix.metric is Metric.EXPLICIT
    assert matrix.names.tolist() == list("abc")
    assert solve(Frame(["x", "y"], [row[1:] for row in rows])).length == 4
    with pytest.raises(ValueError, match="expected columns x and y"):
        read_cities(Frame(["a", "b"], [[0, 0]] * 4))
    with pytest.raises(ValueError, match=r"row 1: expected 2 finite numbers, got 'a, nan'"):
        read_cities(Frame(["x", "y"], [[0, 0], ["a", float("nan")], [1, 1]]))


def test_a_data_frame_of_pandas():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"name": ["a", "b", "c"], "x": [0, 3, 3], "y": [0, 0, 4.0]})
    problem = read_cities(frame)
    assert problem.names.tolist() == ["a", "b", "c"]
    assert problem.tour_length([0, 1, 2]) == 12
    assert read_cities(frame.set_index("name")).names.tolist() == ["a", "b", "c"]
    assert solve(pandas.DataFrame([[0, 0], [0, 1], [1, 1], [1, 0]])).length == 4  # nobody gave titles
    table = pandas.DataFrame(MATRIX, index=list("abcd"), columns=list("abcd"))
    np.testing.assert_array_equal(read_cities(table).matrix, MATRIX)


class Graph:
    """What networkx has of a graph, where it is not installed."""

    def __init__(self, nodes, edges, directed=False):
        self.nodes, self._edges, self._directed = nodes, edges, directed

    def is_directed(self):
        return self._directed

    def edges(self, data):
        assert data
        return self._edges


def weighted(*edges):
    return [(u, v, {} if w is None else {"weight": w}) for u, v, w in edges]


def test_graphs_with_weights():
    problem = read_cities(
        Graph(["a", (1, 2), 3], weighted(("a", (1, 2), 4), ("a", 3, 5), (3, (1, 2), 6), (3, 3, 9)))
    )
    np.testing.assert_array_equal(problem.matrix, [[0, 4, 5], [4, 0, 6], [5, 6, 0]])
    assert problem.names.tolist() == ["a", (1, 2), 3]
    there = weighted((0, 1, 1), (1, 2, 1), (2, 0, 1))
    back = weighted((1, 0, 9), (2, 1, 9), (0, 2, 9), (0, 2, 8))  # of parallel edges the shortest
    directed = Graph([0, 1, 2], there + back, directed=True)
    np.testing.assert_array_equal(read_cities(directed).matrix, [[0, 1, 8], [9, 0, 1], [1, 9, 0]])
    one_way = read_cities(Graph([0, 1, 2], there, directed=True))
    assert one_way.matrix.tolist() == [[0, 1, np.inf], [np.inf, 0, 1], [1, np.inf, 0]]
    assert (one_way.n_forbidden, solve(one_way).length) == (3, 3)
    with pytest.raises(ValueError, match="from 0 to 1 has no number as its weight, got None"):
        read_cities(Graph([0, 1, 2], weighted((0, 1, None), (1, 2, 5))))
    with pytest.raises(
        ValueError, match="from 0 to 1 has no number as its weight, got None; it has 'length'"
    ):
        read_cities(Graph([0, 1, 2], [(0, 1, {"length": 3}), (1, 2, {"length": 4})]))


def test_edges_that_carry_nothing_weigh_1():
    problem = read_cities(Graph([0, 1, 2], weighted((0, 1, None), (1, 2, None))))
    assert problem.D.tolist() == [[0, 1, np.inf], [1, 0, 1], [np.inf, 1, 0]]


def test_a_graph_of_networkx():
    networkx = pytest.importorskip("networkx")
    graph = networkx.Graph()
    graph.add_weighted_edges_from([("a", "b", 1), ("b", "c", 2), ("c", "a", 3)])
    assert read_cities(graph).tour_length([0, 1, 2]) == 6
    assert read_cities(graph).names.tolist() == ["a", "b", "c"]


def test_a_graph_of_networkx_that_is_not_complete():
    networkx = pytest.importorskip("networkx")
    graph = networkx.petersen_graph()
    networkx.set_edge_attributes(graph, 1, "weight")
    problem = read_cities(graph)
    assert repr(problem) == "TSP(10 cities, EXPLICIT, 30 forbidden edges)"
    with pytest.warns(
        UserWarning, match="1 constraint is broken"
    ):  # it is the graph without a Hamiltonian cycle
        assert solve(problem, 0.5).length == 9


GAPS = [[0, 3, np.inf, 5], [3, 0, 4, np.inf], [np.inf, 4, 0, 6], [5, np.inf, 6, 0]]


@pytest.mark.parametrize(
    "text",
    [
        "0,3,,5\n3,0,4,\n,4,0,6\n5,,6,0\n",
        "0,3,inf,5\n3,0,4,INF\nInfinity,4,0,6\n5,inf,6,0\n",
        "0 3 inf 5\n3 0 4 inf\ninf 4 0 6\n5 inf 6 0\n",
        "\t3\t\t5\n3\t\t4\t\n\t4\t\t6\n5\t\t6\t\n",  # without its diagonal
        ";3,0;;5,0\n3,0;;4,0;\n;4,0;;6,0\n5,0;;6,0;\n",
        "from,a,b,c,d\na,0,3,,5\nb,3,0,4,\nc,,4,0,6\nd,5,,6,0\n",
        ",0,1,2,3\n0,0,3,,5\n1,3,0,4,\n2,,4,0,6\n3,5,,6,0\n",  # as pandas writes it
    ],
)
def test_gaps_in_a_matrix_are_edges_that_no_tour_may_use(text):
    problem = read_cities(io.StringIO(text))
    np.testing.assert_array_equal(problem.matrix, GAPS)
    assert str(problem).endswith("4 cities, distances from a matrix, 2 forbidden edges")
    assert solve(problem).length == 18


def test_gaps_in_frames_and_in_coordinates():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(GAPS).replace(np.inf, np.nan)
    np.testing.assert_array_equal(read_cities(frame).matrix, GAPS)
    labelled = pandas.DataFrame(GAPS, index=list("abcd"), columns=list("abcd"))
    np.testing.assert_array_equal(read_cities(labelled).matrix, GAPS)
    with pytest.raises(ValueError, match="line 3: expected 2 finite numbers, got '3, '"):
        read_cities(io.StringIO("x,y\n0,0\n3,\n4,4\n5,5\n"))
    with pytest.raises(ValueError, match="line 1, from 1 to 3: expected a distance, got '-inf'"):
        read_cities(io.StringIO("0,1,-inf\n1,0,2\n2,3,0\n"), matrix=True)


def test_a_problem_of_tsplib95(tmp_path):
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
    with pytest.raises(ValueError, match="names must be 3, one a city, got 2"):
        TSP(np.eye(3, 2), names=["a", "b"])
    with pytest.raises(TypeError, match="names must be a sequence of 3 names"):
        TSP(np.eye(3, 2), names="abc")
