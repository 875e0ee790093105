"""Distances against hand-worked values, TSPLIB's published check values and the definition."""

import math
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pymoo_gpuaco.problems import METRIC_NAMES, TSP, Metric, distances, load_tsp, prepare_coordinates
from pymoo_gpuaco.problems.summation import tour_length
from tests.instances import listed_instance


def distance(name, a, b):
    metric = METRIC_NAMES[name][0]
    return float(distances(metric, prepare_coordinates(metric, [a, b]), 0, 1))


def test_codes_shared_with_the_kernels_never_change():
    assert {metric.name: int(metric) for metric in Metric} == {
        "EXPLICIT": 0, "EUC": 1, "CEIL": 2, "ATT": 3, "GEO": 4, "MAN": 5, "MAX": 6, "EXACT": 7, "HAVERSINE": 8,
    }  # fmt: skip


QUARTER = math.pi / 2 * 6371.0088  # kilometres from the pole to the equator


@pytest.mark.parametrize(
    ("name", "a", "b", "expected"),
    [
        ("EUC_2D", (0, 0), (1, 1), 1),  # 1.414
        ("EUC_2D", (0, 0), (1.5, 2), 3),  # 2.5: halves go up, not to the even number
        ("EUC_2D", (-3, 0), (0, -4), 5),
        ("EUC_3D", (0, 0, 0), (1, 2, 2), 3),
        ("EUC_3D", (0, 0, 0), (1, 1, 1), 2),  # 1.732
        ("CEIL_2D", (0, 0), (1, 1), 2),
        ("CEIL_2D", (0, 0), (3, 4), 5),
        ("ATT", (0, 0), (3, 1), 1),  # sqrt(10/10)
        ("ATT", (0, 0), (4, 0), 2),  # sqrt(1.6) = 1.26: nearest is 1, which is less, so 2
        ("ATT", (0, 0), (5, 0), 2),  # sqrt(2.5) = 1.58
        ("MAN_2D", (0, 0), (1.25, -1.25), 3),  # 2.5
        ("MAN_3D", (0, 0, 0), (1, 2, 3.25), 6),
        ("MAX_2D", (0, 0), (1, -2.5), 3),
        ("MAX_3D", (0, 0, 0), (1, 2, 3.5), 4),
        ("EXACT", (0, 0), (1, 1), math.sqrt(2)),
        ("EXACT", (0, 0, 0), (2, 3, 6), 7),
        ("GEO", (0, 0), (0, 1), 112),  # one degree: 6378.388 * 3.141592 / 180 = 111.32; plus 1, truncated
        ("GEO", (0, 0), (0, 0.30), 56),  # .30 is 30 minutes, half a degree: 55.66
        ("GEO", (-0.30, 0), (0.30, 0), 112),  # minutes of a southern latitude count southwards
        ("GEO", (0, 179), (0, -179), 223),  # two degrees across the date line: 222.65
        ("GEO", (90, 0), (-90, 0), 20039),  # 6378.388 * 3.141592 = 20038.29
        ("GEO", (10.2, 20.3), (10.2, 20.3), 1),  # two cities at one place
        ("HAVERSINE", (0, 0), (0, 90), QUARTER),
        ("HAVERSINE", (90, 0), (-90, 0), 2 * QUARTER),
        ("HAVERSINE", (60, 0), (60, 180), QUARTER * 2 / 3),  # over the pole: 30 + 30 degrees
        ("HAVERSINE", (0, 179), (0, -179), QUARTER / 45),  # two degrees across the date line
        ("HAVERSINE", (10, 359), (10, -1), 0),  # one place
        ("HAVERSINE", (5, 180), (5, -180), 0),
    ],
)
def test_distance_equals_the_hand_worked_value(name, a, b, expected):
    assert distance(name, a, b) == pytest.approx(expected, rel=1e-12 if name == "HAVERSINE" else 1e-15)
    assert distance(name, b, a) == distance(name, a, b)


@pytest.mark.parametrize(("name", "length"), [("pcb442", 221440), ("gr666", 423710), ("att532", 309636)])
def test_canonical_tour_has_the_length_that_tsplib_publishes(name, length):
    problem = load_tsp(name)
    assert problem.tour_length(np.arange(problem.n_cities)) == length


def geo_by_definition(a, b):
    """TSPLIB95, section 2.4. tsplib95 is no reference here: its pi is math.pi, and its d(i, i) is 1."""

    def radians(x):
        degrees = int(x)
        return 3.141592 * (degrees + 5.0 * (x - degrees) / 3.0) / 180.0

    (lat_a, lon_a), (lat_b, lon_b) = map(radians, a), map(radians, b)
    q1, q2, q3 = math.cos(lon_a - lon_b), math.cos(lat_a - lat_b), math.cos(lat_a + lat_b)
    return int(6378.388 * math.acos(0.5 * ((1.0 + q1) * q2 - (1.0 - q1) * q3)) + 1.0)


def test_geo_agrees_with_the_definition_on_pairs_of_gr666():
    problem = load_tsp("gr666")
    i, j = np.random.default_rng(2).integers(0, 666, size=(2, 20000))
    i, j = i[i != j], j[i != j]
    ends = zip(problem.positions[i], problem.positions[j], strict=True)
    expected = [geo_by_definition(a, b) for a, b in ends]
    np.testing.assert_array_equal(distances(Metric.GEO, problem.coords, i, j), expected)


def test_haversine_agrees_with_the_formula_of_that_name():
    places = np.random.default_rng(4).uniform([-90, -180], [90, 360], (400, 2))
    places[200:] = places[:200] + 1e-3  # a hundred metres away
    places[:, 0] = places[:, 0].clip(-90, 90)
    lat, lon = np.radians(places).T
    i, j = np.arange(400)[:, None], np.arange(400)
    half = (
        np.sin((lat[i] - lat[j]) / 2) ** 2
        + np.cos(lat[i]) * np.cos(lat[j]) * np.sin((lon[i] - lon[j]) / 2) ** 2
    )
    expected = 2 * 6371.0088 * np.arcsin(np.sqrt(half.clip(0, 1)))
    found = distances(Metric.HAVERSINE, prepare_coordinates(Metric.HAVERSINE, places), i, j)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
    assert found[np.arange(200), np.arange(200, 400)].max() < 0.16  # so that the metre counts


@pytest.mark.parametrize("name", METRIC_NAMES)
def test_compiled_functions_measure_as_arrays_do(name):
    _, dimension = METRIC_NAMES[name]
    coords = np.random.default_rng(5).uniform(-80, 80, (30, dimension))
    problem = TSP(coords, name, best_known=0)
    graph = listed_instance(problem, 3).graph
    tour = np.random.default_rng(6).permutation(30).astype(np.int32)
    assert tour_length(graph, tour) == pytest.approx(problem.tour_length(tour), rel=1e-14)


def test_geo_uses_tsplibs_pi_where_a_more_exact_one_gives_another_kilometre():
    # An arc of less than 10019 km by 3.141592 and of more by pi, in degrees, then as degrees.minutes.
    degrees = 10019 / (6378.388 * 3.1415923 / 180)
    city = math.floor(degrees) + (degrees % 1) * 0.6
    assert distance("GEO", (0, 0), (0, city)) == 10019  # 10018.999 + 1, truncated
    assert int(6378.388 * math.radians(degrees) + 1) == 10020  # 10019.001 + 1, truncated


def test_no_city_is_away_from_itself_under_any_metric():
    coords = np.array([[10.2, 20.3], [-5.5, 3.25], [0.0, 0.0]])
    for metric in Metric:
        if metric != Metric.EXPLICIT:
            prepared = prepare_coordinates(metric, coords)
            np.testing.assert_array_equal(distances(metric, prepared, np.arange(3), np.arange(3)), 0)


def test_opposite_and_coincident_places_on_the_globe_give_numbers():
    lat, lon = np.random.default_rng(3).uniform([-90, 0], [90, 180], size=(5000, 2)).T.round()
    here, there = np.column_stack([lat, lon]), np.column_stack([-lat, lon - 180])
    prepared = prepare_coordinates(Metric.GEO, np.vstack([here, there, here]))
    city = np.arange(5000)
    opposite = distances(Metric.GEO, prepared, city, city + 5000)
    assert opposite.min() >= 20038
    np.testing.assert_array_equal(distances(Metric.GEO, prepared, city, city + 10000), 1)


@given(
    st.sampled_from(list(METRIC_NAMES)),
    st.lists(st.tuples(*[st.floats(-1e6, 1e6)] * 2), min_size=2, max_size=20),
)
@settings(deadline=None, max_examples=100)
def test_distances_are_symmetric_finite_and_whole_unless_exact(name, places):
    metric, dimension = METRIC_NAMES[name]
    coords = np.array(places) * (9e-5 if name == "HAVERSINE" else 1.0)
    if dimension == 3:
        coords = np.column_stack([coords, coords[:, 0] / 3])
    n = len(coords)
    table = distances(metric, prepare_coordinates(metric, coords), np.arange(n)[:, None], np.arange(n))
    assert np.isfinite(table).all()
    assert (table >= 0).all()
    np.testing.assert_array_equal(table, table.T)
    if metric not in (Metric.EXACT, Metric.HAVERSINE):
        np.testing.assert_array_equal(table, np.floor(table))


@pytest.mark.parametrize(
    ("metric", "coords", "error", "message"),
    [
        (Metric.GEO, np.zeros((3, 3)), ValueError, r"coords must have shape \(n, 2\) for GEO"),
        (Metric.EUC, [[0, 0], [np.nan, 1]], ValueError, "coords must be finite.* nan at city 1"),
        (Metric.EUC, [[0, 0], [0, 1], [0, -np.inf]], ValueError, "-inf at city 2"),
        (Metric.EUC, [[0, 0], [2e15, 1]], ValueError, r"at most 1e\+15 in magnitude, got 2e\+15 at city 1"),
        (Metric.HAVERSINE, np.zeros((3, 3)), ValueError, r"coords must have shape \(n, 2\) for HAVERSINE"),
        (
            Metric.HAVERSINE,
            [[0, 0], [91, 0]],
            ValueError,
            r"latitude must be in \[-90, 90\], got 91 at city 1",
        ),
        (
            Metric.HAVERSINE,
            [[0, -361]],
            ValueError,
            r"longitude must be in \[-360, 360\], got -361 at city 0",
        ),
        (Metric.EUC, [[1j, 0]], TypeError, "coords must be an array of numbers"),
    ],
)
def test_bad_coordinates_are_refused_by_name_and_value(metric, coords, error, message):
    with pytest.raises(error, match=message):
        prepare_coordinates(metric, coords)


def test_decimal_degrees_under_geo_are_warned_of():
    with pytest.warns(UserWarning, match='minutes above 59, .* "HAVERSINE" .* "GEOM"'):
        TSP([[52.52, 13.405], [48.137, 11.576], [50.94, 6.96]], "GEO")
    places = np.tile([52.31, 13.24], (100, 1))
    places[0] = 52.8  # as three of 1,070 numbers of ali535
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        TSP(places, "GEO")
        TSP([[52.59, 13.0], [48.08, -11.59]], "GEO")
