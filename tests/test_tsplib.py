"""Reading TSPLIB files: every layout of the format, every shared file, and hostile ones."""

import gzip
import json
import tracemalloc

import numpy as np
import pytest

from pymoo_gpuaco.problems import Metric, read_cities, read_tour

HEADER = "NAME: t\nTYPE: TSP\nDIMENSION: {n}\nEDGE_WEIGHT_TYPE: {kind}\n"
TRIANGLE = HEADER.format(n=3, kind="EUC_2D") + "NODE_COORD_SECTION\n1 0 0\n2 3 0\n3 3 4\n"


@pytest.fixture
def write(tmp_path):
    def write(content, name="t.tsp"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


# The matrix of the layouts below: d(0,1) = 1, d(0,2) = 2, d(0,3) = 3, d(1,2) = 4, d(1,3) = 5, d(2,3) = 6.
M4 = [[0, 1, 2, 3], [1, 0, 4, 5], [2, 4, 0, 6], [3, 5, 6, 0]]


@pytest.mark.parametrize(
    ("layout", "weights"),
    [
        ("FULL_MATRIX", "0 1 2 3  1 0 4 5  2 4 0 6  3 5 6 0"),
        ("UPPER_ROW", "1 2 3  4 5  6"),
        ("LOWER_ROW", "1  2 4  3 5 6"),
        ("UPPER_DIAG_ROW", "0 1 2 3  0 4 5  0 6  0"),
        ("LOWER_DIAG_ROW", "0  1 0  2 4 0  3 5 6 0"),
        ("UPPER_COL", "1  2 4  3 5 6"),
        ("LOWER_COL", "1 2 3  4 5  6"),
        ("UPPER_DIAG_COL", "0  1 0  2 4 0  3 5 6 0"),
        ("LOWER_DIAG_COL", "0 1 2 3  0 4 5  0 6  0"),
    ],
)
@pytest.mark.parametrize("breaks", ["  ", " ", "never"], ids=["rows", "one a line", "one line"])
def test_every_matrix_layout_in_any_line_breaks(write, layout, weights, breaks):
    text = weights.replace(breaks, "\n")
    path = write(
        HEADER.format(n=4, kind="EXPLICIT") + f"EDGE_WEIGHT_FORMAT: {layout} \nEDGE_WEIGHT_SECTION\n{text}\n"
    )
    problem = read_cities(path)
    np.testing.assert_array_equal(problem.matrix, M4)
    assert problem.metric is Metric.EXPLICIT


@pytest.mark.parametrize("end", ["-1\nEOF\n", "", "-1\nNODE_COORD_SECTION\n30 0 0\n10 3 0\n20 3 4\n40 9 9\n"])
def test_fixed_edges_have_the_numbers_of_the_file(write, end):
    head = HEADER.format(n=4, kind="EUC_2D")
    places = "" if "NODE" in end else "NODE_COORD_SECTION\n30 0 0\n10 3 0\n20 3 4\n40 9 9\n"
    problem = read_cities(write(f"{head}{places}FIXED_EDGES_SECTION\n10 30\n 40 20\n{end}"))
    assert problem.fixed_edges.tolist() == [[0, 2], [3, 1]]
    matrix = (
        HEADER.format(n=4, kind="EXPLICIT")
        + "EDGE_WEIGHT_FORMAT: UPPER_ROW\nEDGE_WEIGHT_SECTION\n1 2 3 4 5 6\n"
    )
    assert read_cities(write(f"{matrix}FIXED_EDGES_SECTION\n1 2\n-1\n")).fixed_edges.tolist() == [[0, 1]]
    assert len(read_cities(write(f"{matrix}FIXED_EDGES_SECTION\n-1\n")).fixed_edges) == 0


def test_an_atsp_keeps_its_directions_and_ignores_its_diagonal(write):
    text = HEADER.format(n=3, kind="EXPLICIT").replace("TSP", "ATSP")
    path = write(
        f"{text}EDGE_WEIGHT_FORMAT: FULL_MATRIX\nEDGE_WEIGHT_SECTION\n9999 1 2\n3 9999 4\n5 6 9999\nEOF\n"
    )
    problem = read_cities(path)
    assert not problem.symmetric
    assert problem.tour_length([0, 1, 2]) == 1 + 4 + 5


@pytest.mark.parametrize(
    "text",
    [
        TRIANGLE,
        TRIANGLE + "EOF",  # no newline after it
        TRIANGLE + "EOF\n\n",
        TRIANGLE + "EOF\nwhatever follows: 1 2 3\n",
        TRIANGLE + "\x1a",
        TRIANGLE.replace(": ", " : "),
        TRIANGLE.replace(": ", ":"),
        TRIANGLE.replace("\n", "\r\n"),
        TRIANGLE.replace("\n", "\r"),
        TRIANGLE.replace("\n", "  \n\n"),
        "\ufeff" + TRIANGLE,
        TRIANGLE.replace("\n", "\n  \t"),
        TRIANGLE.replace("3 3 4", "3 3.00000e+00 4.0E0"),
        TRIANGLE.replace("1 0 0\n2 3 0\n3 3 4", "0001\t+0 -0\n0002 3. .0\n0003 3 4"),
        TRIANGLE.replace("1 0 0\n2 3 0\n3 3 4", "0 0 0\n1 3 0\n2 3 4"),
        TRIANGLE.replace("1 0 0\n2 3 0\n3 3 4", "70 3 4\n-5 0 0\n8 3 0"),  # by ascending number
        TRIANGLE.replace("NODE_COORD_SECTION", "NODE_COORD_SECTION :"),
        TRIANGLE.replace("TYPE: TSP", "TYPE: TSP (M.~Hofmeister)"),
        TRIANGLE.replace("EUC_2D", "euc_2d").replace("DIMENSION", "dimension"),
        "COMMENT: one\nCOMMENT: see TYPE: TOUR, DIMENSION: 7\nAUTHOR: me\n" + TRIANGLE,
        TRIANGLE.replace("NODE_COORD_SECTION", "NODE_COORD_TYPE: TWOD_COORDS\nNODE_COORD_SECTION"),
    ],
)
def test_every_way_to_write_the_triangle_is_read(write, text):
    problem = read_cities(write(text))
    np.testing.assert_array_equal(problem.positions, [[0, 0], [3, 0], [3, 4]])
    assert problem.tour_length([0, 1, 2]) == 12
    assert problem.label == "t"
    assert problem.metric is Metric.EUC


def test_a_comment_in_latin_1_and_a_compressed_file_are_read(write):
    text = ("COMMENT: Grötschel\n" + TRIANGLE).encode("latin-1")
    assert read_cities(write(text)).n_cities == 3
    assert read_cities(write(gzip.compress(text), "t.tsp.gz")).n_cities == 3


def test_a_file_without_name_is_called_after_the_file(write):
    text = TRIANGLE.replace("NAME: t\n", "")
    assert read_cities(write(text, "triangle.tsp")).label == "triangle"
    assert read_cities(write(gzip.compress(text.encode()), "tri.angle.tsp.gz")).label == "tri.angle"


@pytest.mark.parametrize("kind", ["EUC_3D", "MAN_3D", "MAX_3D"])
def test_three_coordinates(write, kind):
    text = HEADER.format(n=3, kind=kind) + "NODE_COORD_SECTION\n1 0 0 0\n2 1 2 2\n3 2 4 4\n"
    length = {"EUC_3D": 3 + 3 + 6, "MAN_3D": 5 + 5 + 10, "MAX_3D": 2 + 2 + 4}[kind]
    assert read_cities(write(text)).tour_length([0, 1, 2]) == length


def test_display_data_are_positions_of_a_matrix(write):
    text = (
        HEADER.format(n=3, kind="EXPLICIT")
        + "EDGE_WEIGHT_FORMAT: UPPER_ROW\nDISPLAY_DATA_TYPE: TWOD_DISPLAY\nEDGE_WEIGHT_SECTION\n1 2\n3\n"
        + "DISPLAY_DATA_SECTION\n1 10 20\n3 50 60\n2 30 40\nEOF\n"
    )
    problem = read_cities(write(text))
    np.testing.assert_array_equal(problem.positions, [[10, 20], [30, 40], [50, 60]])
    assert problem.tour_length([0, 1, 2]) == 1 + 3 + 2


def sized(text, dimension):
    return text.replace("DIMENSION: 3", f"DIMENSION: {dimension}")


def fixed(lines):
    return f"{TRIANGLE}FIXED_EDGES_SECTION\n{lines}\nEOF\n"


EXPLICIT3 = (
    HEADER.format(n=3, kind="EXPLICIT") + "EDGE_WEIGHT_FORMAT: UPPER_ROW\nEDGE_WEIGHT_SECTION\n1 2\n3\n"
)
MISLABELLED = EXPLICIT3.replace("UPPER_ROW", "UPPER_DIAG_ROW").replace("1 2\n3\n", "0\n1 0\n2 3 0\n")
GRAPH = "TYPE: HCP\nDIMENSION: 3\nEDGE_DATA_FORMAT: EDGE_LIST\nEDGE_DATA_SECTION\n1 2\n2 3\n3 1\n-1\n"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "it is empty"),
        ("\n \n", "it is empty"),
        (b"\x7fELF\x02\0\0\0", "it is a binary file"),
        (gzip.compress(TRIANGLE.encode(), mtime=0)[:40], "broken gzip data"),
        (b"\x1f\x8bnonsense", "broken gzip data"),
        ("hello world\n", "line 1: expected a keyword, got hello world"),
        ("<html><body>404</body></html>", "line 1: expected a keyword"),
        ("1 2 3\n", "line 1: expected a keyword, got 1 2 3"),
        ("x" * 10**6, r"line 1: expected a keyword, got x{37}\.\.\.$"),
        ("NAME: t\n", "there is no TYPE"),
        (TRIANGLE.replace("TYPE: TSP", "TYPE:"), "there is no TYPE"),
        (TRIANGLE.replace("TYPE: TSP", "TYPE: CVRPX"), "TYPE is CVRPX, only TSP, ATSP, SOP and HCP are read"),
        (TRIANGLE.replace("TYPE: TSP", "TYPE: CVRP"), "TYPE is CVRP"),
        (TRIANGLE.replace("TYPE: TSP", "TYPE: HCP"), "there is no EDGE_DATA_SECTION"),
        (TRIANGLE.replace("TYPE: TSP", "TYPE: TOUR"), "TYPE is TOUR"),
        (fixed("1 2 3\n-1"), "line 10: expected two city numbers, got 1 2 3"),
        (fixed("1 2\n1 -1"), "line 11: -1 is none of the 3 cities"),
        (fixed("1 2\n3 9\n-1"), "line 11: 9 is none of the 3 cities"),
        (
            sized(fixed("1 2\n2 3\n3 1\n-1"), "4").replace("3 3 4\n", "3 3 4\n4 9 9\n"),
            r"\(2, 0\) closes a cycle .* 4 cities \(cities count from 0 here\)",
        ),
        (fixed("1 1\n-1"), r"pairs of different cities in \[0, 2\], got \(0, 0\) \(cities count from 0 here\)"),
        (TRIANGLE + "NODE_COORD_SECTION\n1 2 3\n", "line 9: a second NODE_COORD_SECTION"),
        (TRIANGLE.replace("DIMENSION: 3", "DIMENSION: 3\nDIMENSION: 4"), "line 4: a second DIMENSION"),
        (TRIANGLE.replace("DIMENSION: 3\n", ""), "there is no DIMENSION"),
        (sized(TRIANGLE, "three"), "line 3: DIMENSION cannot be three"),
        (sized(TRIANGLE, "9" * 5000), "line 3: DIMENSION cannot be 999"),
        (sized(TRIANGLE, "9" * 50), r"DIMENSION is 9+\.\.\., the most that fits is"),
        (sized(TRIANGLE, "-3"), "DIMENSION is -3, a TSP needs at least 2"),
        (sized(TRIANGLE, "4"), "DIMENSION is 4, but NODE_COORD_SECTION has 3 cities"),
        (sized(TRIANGLE, "2000000000"), "DIMENSION is 2000000000, but NODE_COORD_SECTION"),
        (TRIANGLE + "4 5 6\n", "DIMENSION is 3, but NODE_COORD_SECTION has 4 cities"),
        (TRIANGLE.replace("EDGE_WEIGHT_TYPE: EUC_2D\n", ""), "there is no EDGE_WEIGHT_TYPE"),
        (TRIANGLE.replace("EUC_2D", "XRAY1"), "EDGE_WEIGHT_TYPE is XRAY1, known are EXPLICIT, EUC_2D"),
        (TRIANGLE.replace("EUC_2D", "SPECIAL"), "EDGE_WEIGHT_TYPE is SPECIAL"),
        (TRIANGLE.replace("EUC_2D", "EUC_3D"), "line 6: expected a city number and 3 coordinates, got 1 0 0"),
        (TRIANGLE.split("NODE_COORD")[0], "there is no NODE_COORD_SECTION"),
        (TRIANGLE[:-4], "line 8: expected a city number and 2 coordinates, got 3$"),
        (TRIANGLE.replace("2 3 0", "1 3 0"), "NODE_COORD_SECTION lists city 1 twice"),
        (TRIANGLE.replace("2 3 0", "2 3"), "line 7: expected a city number and 2 coordinates, got 2 3"),
        (TRIANGLE.replace("2 3 0", "2 3 0 0"), "line 7: expected a city number and 2 coordinates"),
        (TRIANGLE.replace("2 3 0", "2 3 ?"), r"line 7: expected numbers, got 2 3 \?"),
        (TRIANGLE.replace("2 3 0", "2 3 nan"), "line 7: expected numbers, got 2 3 nan"),
        (TRIANGLE.replace("2 3 0", "2 3 1e999"), "line 7: expected numbers, got 2 3 1e999"),
        (TRIANGLE.replace("2 3 0", "2 3_0 0"), "line 7: expected numbers, got 2 3_0 0"),
        (TRIANGLE.replace("2 3 0", "2.5 3 0"), "line 7: expected numbers, got 2.5 3 0"),
        (TRIANGLE.replace("2 3 0", "two 3 0"), "line 7: expected numbers, got two 3 0"),
        (TRIANGLE.replace("2 3 0", "2 3 1e20"), r"coords must be finite and at most 1e\+15"),
        (EXPLICIT3[:-2], "DIMENSION is 3, so UPPER_ROW has 3 weights, but EDGE_WEIGHT_SECTION lists 2"),
        (EXPLICIT3 + "4\n", "UPPER_ROW has 3 weights, but EDGE_WEIGHT_SECTION lists 4"),
        (sized(EXPLICIT3, "2000000000"), "so UPPER_ROW has 1999999999000000000 weights"),
        (EXPLICIT3.replace("UPPER_ROW", "FUNCTION"), "EDGE_WEIGHT_FORMAT is FUNCTION, known are FULL_M"),
        (EXPLICIT3.replace("EDGE_WEIGHT_FORMAT: UPPER_ROW\n", ""), "EDGE_WEIGHT_FORMAT is missing"),
        (EXPLICIT3.split("EDGE_WEIGHT_SECTION")[0], "there is no EDGE_WEIGHT_SECTION"),
        (EXPLICIT3.replace("1 2", "1 -2"), "matrix must hold .* got -2 from city 0 to city 2"),
        (EXPLICIT3.replace("1 2", "1 2x"), "line 7: expected numbers, got 1 2x"),
        (EXPLICIT3 + "DISPLAY_DATA_SECTION\n1 2 3\n", "but DISPLAY_DATA_SECTION has 1 cities"),
        (MISLABELLED, "the diagonal of UPPER_DIAG_ROW has different numbers: .* LOWER_DIAG_ROW"),
        (sized(GRAPH, "2000000000"), "DIMENSION is 2000000000, the graph of an HCP has at most 20000 cities"),
        (GRAPH.replace("2 3", "2 4"), "EDGE_DATA_SECTION lists the edge 2 4, cities are 1 to 3"),
        (GRAPH.replace("2 3", "2 3 1"), "EDGE_DATA_SECTION lists 7 numbers, which are no EDGE_LIST of pairs"),
        (GRAPH.replace("1 2\n2 3\n3 1", "1 2 9\n2 3 9"), "lists 6 numbers, which are no EDGE_LIST of pairs"),
        (TRIANGLE.replace("2 3 0", "2 1e-400 0"), "line 7: expected numbers, got 2 1e-400 0"),
        (GRAPH.replace("EDGE_LIST", "XYZ"), "EDGE_DATA_SECTION lists 6 numbers, which are no XYZ of pairs"),
    ],
)  # fmt: skip
def test_a_broken_file_is_refused_with_its_name_and_the_reason(write, content, message):
    path = write(content)
    with pytest.raises(ValueError, match=message) as info:
        read_cities(path)
    assert str(info.value).startswith(f"{path}: ")
    assert len(str(info.value)) < len(str(path)) + 300


OTHER_PROBLEMS = {
    "TIME_WINDOW_SECTION\n1 0 9": "PyVRP and OR-tools serve",
    "PICKUP_AND_DELIVERY_SECTION\n1 0 0 9 0 0 2": "PyVRP and OR-tools serve",
    "BACKHAUL_SECTION\n2 -1": "PyVRP and OR-tools serve",
    "SERVICE_TIME_SECTION\n1 5": "PyVRP and OR-tools serve",
    "DEMAND_SECTION\n1 5": "PyVRP and OR-tools serve",
    "DEPOT_SECTION\n1 -1": "PyVRP and OR-tools serve",
    "SERVICE_TIME: 5": "PyVRP and OR-tools serve",
    "SALESMEN: 3": "PyVRP and OR-tools serve",
    "vehicles : 2": "PyVRP and OR-tools serve",
    "CAPACITY: 100": "PyVRP and OR-tools serve",
    "DISTANCE: 100": "PyVRP and OR-tools serve",
    "GTSP_SETS: 2": "LKH-3 serves it",
    "GTSP_SET_SECTION\n1 1 2 -1": "LKH-3 serves it",
    "CTSP_SET_SECTION\n1 1 2 -1": "LKH-3 serves it",
    "GROUP_SECTION\n1 1 2 -1": "LKH-3 serves it",
    "DRAFT_LIMIT_SECTION\n1 5": "LKH-3 serves it",
    "REQUIRED_NODES_SECTION\n1 2 -1": "LKH-3 serves it",
    "NODE_SCORE_SECTION\n1 5": "LKH-3 serves it",
    "COST_LIMIT: 100": "LKH-3 serves it",
    "SCALE: 100": "multiply the coordinates or the weights by it",
}


@pytest.mark.parametrize("lines", OTHER_PROBLEMS)
def test_what_makes_another_problem_is_refused_with_what_serves_it(write, lines):
    keyword = lines.partition(":")[0].split()[0].upper()
    for text in (
        f"{TRIANGLE}{lines}\nEOF\n",
        f"{lines}\n{TRIANGLE}",
        f"{EXPLICIT3}{lines}\n",
        f"{GRAPH}{lines}\n",
    ):
        if text.startswith(lines) and ":" not in lines:
            continue  # a section is no header
        with pytest.raises(ValueError, match=f"{keyword} is not supported: {OTHER_PROBLEMS[lines]}"):
            read_cities(write(f"NAME: u\n{text}".replace("NAME: t\n", "")))


def test_unknown_keywords_and_sections_are_warned_of_and_descriptions_are_not(write):
    silent = "COMMENT: a\nCOMMENT: b\nNODE_COORD_TYPE: TWOD_COORDS\nDISPLAY_DATA_TYPE: NO_DISPLAY\n"
    silent += "SALESMEN: 1\nSCALE: 1\n"
    assert read_cities(write(silent + TRIANGLE)).n_cities == 3
    for text, ignored in (
        (f"{TRIANGLE}FOO_SECTION\n1 2 3\n", "FOO_SECTION"),
        (f"BAR: 5\nBAR: 6\n{TRIANGLE}FOO_SECTION\n1 2 3\n", "BAR, FOO_SECTION"),
        (f"{TRIANGLE}TOUR_SECTION\n1 2 3 -1\n", "TOUR_SECTION"),
        (f"{TRIANGLE}EDGE_WEIGHT_SECTION\n5 5 5\n", "EDGE_WEIGHT_SECTION"),
        (f"{EXPLICIT3}FOO_SECTION\n1\n", "FOO_SECTION"),
        (f"{GRAPH}FOO_SECTION\n1\n", "FOO_SECTION"),
    ):
        with pytest.warns(UserWarning, match=rf"t\.tsp: keywords and sections that are ignored: {ignored}$"):
            assert read_cities(write(text)).n_cities == 3


RING = "EDGE_DATA_FORMAT: EDGE_LIST\nEDGE_DATA_SECTION\n{}\n-1\nEOF\n"


def test_the_edges_of_a_graph_restrict_a_tsp(write):
    square = HEADER.format(n=4, kind="EUC_2D") + "NODE_COORD_SECTION\n10 0 0\n20 3 0\n30 3 4\n40 0 4\n"
    problem = read_cities(write(square + RING.format("10 20\n20 30\n30 40\n40 10\n10 30")))
    inf = np.inf
    np.testing.assert_array_equal(
        problem.matrix, [[0, 3, 5, 4], [3, 0, 4, inf], [5, 4, 0, 3], [4, inf, 3, 0]]
    )
    assert (problem.n_forbidden, problem.ids.tolist()) == (1, [10, 20, 30, 40])
    np.testing.assert_array_equal(problem.positions, [[0, 0], [3, 0], [3, 4], [0, 4]])
    with pytest.raises(ValueError, match="lists the edge 1 20, cities are 10 to 40"):
        read_cities(write(square + RING.format("1 20")))
    lists = RING.replace("EDGE_LIST", "ADJ_LIST").format("10 20 30 40 -1 20 30 -1 30 40 -1")
    np.testing.assert_array_equal(read_cities(write(square + lists)).matrix, problem.matrix)
    weights = (
        HEADER.format(n=4, kind="EXPLICIT")
        + "EDGE_WEIGHT_FORMAT: UPPER_ROW\nEDGE_WEIGHT_SECTION\n1 2 3 4 5 6\n"
    )
    full = [[0, 1, 2, inf], [1, 0, inf, 5], [2, inf, 0, 6], [inf, 5, 6, 0]]
    np.testing.assert_array_equal(read_cities(write(weights + RING.format("1 2 2 4\n4 3 3 1"))).matrix, full)
    directed = weights.replace("TSP", "ATSP").replace("UPPER_ROW", "FULL_MATRIX")
    directed = directed.replace("1 2 3 4 5 6", "0 1 2 3 1 0 4 5 2 4 0 6 3 5 6 0")
    arcs = [[0, 1, inf, inf], [inf, 0, 4, inf], [inf, inf, 0, 6], [3, inf, inf, 0]]
    np.testing.assert_array_equal(
        read_cities(write(directed + RING.format("1 2\n2 3\n3 4\n4 1"))).matrix, arcs
    )


def test_fixed_edges_of_graphs_and_of_sequential_ordering_are_read(write):
    fixed = "FIXED_EDGES_SECTION\n2 3\n-1\n"
    assert read_cities(write(GRAPH + fixed)).fixed_edges.tolist() == [[1, 2]]
    sop = "TYPE: SOP\nDIMENSION: 4\nEDGE_WEIGHT_TYPE: EXPLICIT\nEDGE_WEIGHT_FORMAT: FULL_MATRIX\nEDGE_WEIGHT_SECTION\n"
    path = write(sop + "0 1 2 3\n-1 0 4 5\n-1 4 0 6\n-1 -1 -1 0\n" + fixed)
    assert read_cities(path).fixed_edges.tolist() == [[1, 2]]


def test_a_huge_dimension_allocates_nothing(write):
    paths = [
        write(sized(text, "2000000000"), f"{name}.tsp")
        for name, text in (("coords", TRIANGLE), ("weights", EXPLICIT3))
    ]
    tracemalloc.start()
    try:
        for path in paths:
            with pytest.raises(ValueError, match="DIMENSION is 2000000000"):
                read_cities(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 1e6


@pytest.mark.parametrize("read", [read_cities, read_tour])
def test_missing_files_and_directories(tmp_path, read):
    with pytest.raises(FileNotFoundError, match=r"nowhere\.tsp"):
        read(tmp_path / "nowhere.tsp")
    with pytest.raises(ValueError, match="it is a directory"):
        read(tmp_path)


TOUR = "NAME : t.tour\nTYPE : TOUR\nDIMENSION : 4\nTOUR_SECTION\n"


@pytest.mark.parametrize(
    "text",
    [
        TOUR + "3\n1\n2\n4\n-1\nEOF\n",
        TOUR + "3 1 2 4 -1",
        TOUR + "  3 1\n 2 4\n",  # neither -1 nor EOF
        TOUR + "3 1 2 4\n-1\n-1\nEOF\n",
        TOUR + "2\n0\n1\n3\n-1\nEOF",
        TOUR.replace("DIMENSION : 4\n", "") + "3 1 2 4 EOF".replace(" EOF", "\nEOF"),
        TOUR.replace("NAME", "COMMENT : (Length 629)\nNAME") + "13\r\n11\r\n12\r\n14\r\n",
    ],
)
def test_every_way_to_write_the_tour_is_read(write, text):
    path = write(text, "t.opt.tour")
    tour = read_tour(path)
    assert tour.dtype == np.int64
    np.testing.assert_array_equal(tour, [2, 0, 1, 3])
    np.testing.assert_array_equal(read_tour(path, n=4), tour)
    with pytest.raises(ValueError, match="the problem has 5, but TOUR_SECTION lists 4 cities"):
        read_tour(path, n=5)


def test_a_second_tour_is_warned_of(write):
    path = write(TOUR + "3 1 2 4\n-1\n1 2 3 4\n-1\nEOF\n", "t.opt.tour")
    with pytest.warns(UserWarning, match=r"t\.opt\.tour: TOUR_SECTION has another tour, which is ignored"):
        tour = read_tour(path)
    np.testing.assert_array_equal(tour, [2, 0, 1, 3])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "it is empty"),
        (TRIANGLE, "there is no TOUR_SECTION"),
        (TOUR, "DIMENSION is 4, but TOUR_SECTION lists 0 cities"),
        (TOUR.replace("DIMENSION : 4\n", ""), "TOUR_SECTION has no cities"),
        (TOUR + "1 2 3\n-1\n", "DIMENSION is 4, but TOUR_SECTION lists 3 cities"),
        (TOUR + "1 2 3 3\n-1\n", "TOUR_SECTION lists a city twice"),
        (TOUR + "1 2 3 5\n-1\n", "TOUR_SECTION lists 5, which is none of the 4 cities"),
        (TOUR + "1 2 x 4\n-1\n", "line 5: expected city numbers, got 1 2 x 4"),
        (TOUR + "1 2.0 3 4\n-1\n", "line 5: expected city numbers"),
        (TOUR + f"1 2 3 {'9' * 4000}\n-1\n", r"TOUR_SECTION lists 9+\.\.\., which is none"),
    ],
)
def test_a_broken_tour_is_refused_with_its_file_and_the_reason(write, text, message):
    path = write(text, "t.opt.tour")
    with pytest.raises(ValueError, match=message) as info:
        read_tour(path)
    assert str(info.value).startswith(f"{path}: ")


def test_every_problem_of_tsplib_is_read_as_its_header_says(tsplib_dir):
    paths = sorted([*tsplib_dir.glob("*.tsp"), *tsplib_dir.glob("*.atsp")])
    assert len(paths) > 70
    for path in paths:
        problem = read_cities(path)
        stated = next(line for line in path.read_text().splitlines() if line.startswith("DIMENSION"))
        assert problem.n_cities == int(stated.split(":")[1])
        assert problem.label == path.stem
        assert problem.symmetric == (path.suffix == ".tsp")
        assert problem.integral


def test_every_optimal_tour_of_tsplib_has_the_best_known_length(tsplib_dir):
    best_known = json.loads((tsplib_dir / "best_known.json").read_text())["tsp"]
    paths = sorted(tsplib_dir.glob("*.opt.tour"))
    assert len(paths) > 25
    for path in paths:
        name = path.name.removesuffix(".opt.tour")
        problem = read_cities(tsplib_dir / f"{name}.tsp")
        assert problem.tour_length(read_tour(path, problem.n_cities)) == best_known[name], name


def test_sequential_ordering_problems_of_tsplib_are_paths_with_precedence(tsplib_dir):
    paths = sorted(tsplib_dir.glob("*.sop"))
    assert paths
    for path in paths:
        problem = read_cities(path)
        assert (problem.start, problem.end) == (0, problem.n_cities - 1)
        assert len(problem.precedence)
