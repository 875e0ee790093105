"""Arguments of a TSP: which are refused, how a metric is given, and when a warning says what to do."""

import numpy as np
import pytest

from pymoo_gpuaco.problems import TSP, Metric, OpenPath

SQUARE = np.array([[0, 0], [3, 0], [3, 4], [0, 4]])
M3 = np.ones((3, 3))


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({}, ValueError, "exactly one of coords and matrix"),
        ({"coords": SQUARE, "matrix": M3}, ValueError, "exactly one of coords and matrix"),
        ({"coords": np.zeros((0, 2))}, ValueError, "at least 1 city, got 0"),
        ({"coords": [[0, 0], [1, 1], [np.nan, 2]]}, ValueError, "coords must be finite"),
        (
            {"coords": np.zeros((4, 3)), "metric": "EUC_2D"},
            ValueError,
            r"\(n, 2\) for metric EUC_2D, got \(4, 3\)",
        ),
        ({"coords": SQUARE, "metric": "EUC_3D"}, ValueError, r"\(n, 3\) for metric EUC_3D, got \(4, 2\)"),
        ({"coords": SQUARE, "metric": "XRAY1"}, ValueError, "unknown metric 'XRAY1'; known are EUC_2D, "),
        (
            {"coords": SQUARE, "metric": "haversin"},
            ValueError,
            "'haversin'; did you mean HAVERSINE. known are",
        ),
        ({"coords": SQUARE, "metric": Metric.EXPLICIT}, ValueError, "EXPLICIT has no coordinates"),
        ({"coords": SQUARE, "metric": 1}, TypeError, "metric must be a str or Metric, got int"),
        ({"coords": SQUARE, "positions": SQUARE}, ValueError, "positions goes with matrix only"),
        ({"matrix": np.ones((3, 4))}, ValueError, r"matrix must be square, got shape \(3, 4\)"),
        ({"matrix": np.ones(9)}, ValueError, r"matrix must be square, got shape \(9,\)"),
        ({"matrix": np.ones((0, 0))}, ValueError, "matrix must hold at least 1 city, got 0"),
        ({"matrix": M3 - 2 * np.eye(3)[[1, 2, 0]]}, ValueError, r"got -1 from city 0 to city 1"),
        ({"matrix": [[0, 1, 1], [1, 0, np.nan], [1, 1, 0]]}, ValueError, "got nan from city 1 to city 2"),
        (
            {"matrix": [[0, 1, 1], [1, 0, 1], [-np.inf, 1, 0]]},
            ValueError,
            "or inf .*, got -inf from city 2 to city 0",
        ),
        ({"matrix": M3 * 1e31}, ValueError, r"from 0 to 1e\+30"),
        (
            {"matrix": M3 * 1e-310},
            ValueError,
            "a distance of 1e-302 or more, or nothing but 0: the largest is",
        ),
        ({"matrix": [[0, 1], [1, 2, 3], [3, 4]]}, ValueError, "matrix must have rows of equal length"),
        ({"matrix": [[0, None, 1]] * 3}, TypeError, "dtype object: write inf for missing edges"),
        ({"matrix": np.ma.masked_equal(np.eye(3), 1)}, ValueError, "must have a value everywhere"),
        ({"coords": np.ma.masked_equal([[0, 0], [1, 1], [2, -1]], -1)}, ValueError, "1 are masked"),
        ({"coords": [[0, 1], [1, 2, 3], [3, 4]]}, ValueError, "coords must have rows of equal length"),
        ({"coords": [0, 1, 2, 3]}, ValueError, r"coords must have shape \(n, 2\)"),
        ({"coords": np.ones((5, 4))}, ValueError, r"coords must have shape \(n, 2\)"),
        ({"coords": [["a", "b"]] * 3}, TypeError, "coords must be an array of numbers"),
        ({"matrix": [["x"] * 3] * 3}, TypeError, "matrix must be an array of numbers"),
        (
            {"matrix": M3, "positions": SQUARE},
            ValueError,
            r"positions must have shape \(3, 2\), got \(4, 2\)",
        ),
        ({"matrix": M3, "positions": "x"}, ValueError, "positions must hold numbers, got dtype"),
        ({"coords": SQUARE, "best_known": -1}, ValueError, r"best_known must be in \[0, inf\), got -1"),
        ({"coords": SQUARE, "best_known": np.nan}, ValueError, r"best_known must be in \[0, inf\), got nan"),
        (
            {"coords": SQUARE, "best_known": "7"},
            TypeError,
            r"best_known must be a number in \[0, inf\), got '7'",
        ),
        ({"coords": "cities.csv"}, TypeError, "got 'cities.csv'; load_tsp reads a name or a file"),
        ({"coords": [{"x": 1, "y": 2}]}, TypeError, "dtype object; read_cities takes tables with names"),
        ({"coords": SQUARE, "metric": "euclidean"}, ValueError, "'euclidean'; did you mean EXACT. known are"),
        ({"coords": SQUARE, "metric": "cityblock"}, ValueError, "did you mean MANHATTAN."),
        ({"coords": SQUARE, "best_known": "short"}, TypeError, "best_known must be a number"),
        ({"coords": SQUARE, "optimal_tour": [0, 1, 2]}, ValueError, "optimal_tour must have 4 cities"),
        (
            {"coords": SQUARE, "optimal_tour": [0, 1, 2, 2]},
            ValueError,
            "optimal_tour: row 0 is not a permutation",
        ),
        ({"coords": SQUARE, "optimal_tour": [[0, 1, 2, 3]]}, ValueError, "optimal_tour must have shape"),
    ],
)
def test_bad_arguments_are_refused_by_name(arguments, error, message):
    with pytest.raises(error, match=message):
        TSP(**arguments)


def test_metric_may_be_a_member_or_a_name_in_any_case():
    assert TSP(SQUARE, "ceil_2d").metric is Metric.CEIL
    assert TSP(np.zeros((3, 3)), Metric.MAX).metric is Metric.MAX
    assert TSP(np.zeros((3, 3)), "EXACT").metric is Metric.EXACT


@pytest.mark.parametrize(
    "coords", [SQUARE[[0, 2, 1]], SQUARE[[0, 2, 1]].astype(float), SQUARE[[0, 2, 1]] + 0.5]
)
def test_without_a_metric_distances_are_exact_whatever_the_coordinates(coords):
    coords = np.array(coords) * [1, 2]  # sides of 3, 8 and their diagonal
    problem = TSP(coords)
    assert problem.metric is Metric.EXACT
    assert problem.tour_length([0, 1, 2]) == pytest.approx(11 + np.sqrt(9 + 64), rel=1e-12)
    assert TSP(np.pad(coords, ((0, 0), (0, 1)))).metric is Metric.EXACT


@pytest.mark.parametrize("known", [{"best_known": 14}, {"optimal_tour": [0, 1, 2, 3]}])
def test_whole_coordinates_with_a_known_tour_and_no_metric_name_tsplibs(known):
    with pytest.warns(UserWarning, match='not rounded.*metric="EUC_2D"'):
        problem = TSP(SQUARE, **known)
    assert problem.metric is Metric.EXACT
    assert problem.best_known == 14


@pytest.mark.parametrize("metric", ["EUC_2D", "CEIL_2D", "ATT", "MAN_2D", "MAX_2D"])
def test_a_rounded_metric_that_blurs_the_distances_warns_and_says_what_to_do(metric):
    row = np.column_stack([np.arange(10) * 0.5, np.zeros(10)])  # every city is 0.5 from its nearest
    with pytest.warns(UserWarning, match=r"only 0\.5 away.*EXACT.*multiply the coordinates by 10000"):
        TSP(row, metric)


@pytest.mark.parametrize(
    "arguments",
    [
        {"coords": SQUARE},
        {"coords": SQUARE * 0.5, "metric": "EXACT"},
        {"coords": SQUARE, "metric": "EXACT", "best_known": 14},
        {"coords": SQUARE, "best_known": 14.5},  # no length of rounded distances
        {"coords": SQUARE + 0.5, "best_known": 14},  # nor have such coordinates any
        {"coords": SQUARE * 0.5, "metric": "EUC_2D", "best_known": 8},  # somebody has solved it as it is
        {"coords": SQUARE, "metric": "EUC_2D"},  # whole coordinates are TSPLIB's custom
        {"coords": SQUARE * 10.5, "metric": "EUC_2D"},  # 31.5 apart
        {"coords": SQUARE * 0.5, "metric": "GEO"},  # degrees, not distances
    ],
)
def test_no_warning_where_rounding_is_meant(arguments, recwarn):
    TSP(**arguments)
    assert not recwarn.list


BERLIN = [[52.52, 13.405], [53.551, 9.993], [48.137, 11.576]]
DRAWN = np.random.default_rng(0).random((9, 2))


@pytest.mark.parametrize(
    ("coords", "options", "doubted"),
    [
        (BERLIN, {}, True),
        (np.array(BERLIN)[:, ::-1], {}, True),
        (np.array([[40.71278, -74.00597], [-33.86882, 151.20929], [51.50735, -0.12776]]), {}, True),
        (BERLIN, {"metric": "EXACT"}, False),
        (np.pad(BERLIN, ((0, 0), (0, 1))), {}, False),  # in space
        (np.round(BERLIN, 2), {}, False),
        (DRAWN, {}, False),
        (DRAWN * 60.0, {}, False),  # 16 digits, as no map has them
        (50.0 + DRAWN[:3], {}, False),
        (np.round(DRAWN * 60.0, 4), {}, True),
    ],
)
def test_arrays_that_look_like_degrees_are_warned_of(coords, options, doubted, recwarn):
    assert TSP(coords, **options).metric is Metric.EXACT
    words = 'coords look like degrees, but count as places in a plane: metric="HAVERSINE" takes latitude'
    assert [words in str(one.message) for one in recwarn.list] == [True] * doubted


def test_a_distance_matrix_given_as_coordinates_is_refused_with_the_argument():
    with pytest.raises(ValueError, match=r"got \(4, 4\).*matrix="):
        TSP(np.ones((4, 4)))


def test_each_end_of_a_path_that_is_another_one_counts():
    path = OpenPath(np.eye(4, 2), start=1, end=3)
    tours = np.array([[1, 0, 2, 3], [0, 1, 2, 3], [1, 0, 3, 2], [3, 0, 2, 1]])
    assert path.violations(tours).tolist() == [0, 1, 1, 2]


@pytest.mark.parametrize(
    ("closed", "directed", "expected"),
    # of the tours 0 1 2 3, its reverse, and 1 0 3 2 with the fixed edges (0, 1) and (3, 0)
    [(True, False, [0, 0, 0]), (True, True, [0, 2, 2]), (False, False, [1, 1, 0]), (False, True, [1, 2, 2])],
)
def test_fixed_edges_that_a_tour_lacks_count_by_direction_and_around(closed, directed, expected):
    matrix = np.arange(16.0).reshape(4, 4) if directed else np.ones((4, 4))
    kind = TSP if closed else OpenPath
    problem = kind(matrix=matrix, fixed_edges=[(0, 1), (3, 0)])
    tours = np.array([[0, 1, 2, 3], [3, 2, 1, 0], [1, 0, 3, 2]])
    assert problem.violations(tours).tolist() == expected
