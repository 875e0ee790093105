"""Labels around a square of distances say which row and which column are the same city."""

import io
import json

import numpy as np
import pytest

from pymoo_gpuaco import TSP, OpenPath, read_cities, solve
from pymoo_gpuaco.problems import MultiObjectiveTSP
from pymoo_gpuaco.problems.cells import columns_by_rows

pandas = pytest.importorskip("pandas")

NAMES = list("abcd")
FULL = np.array([[0, 1, 2, 3], [4, 0, 5, 6], [7, 8, 0, 9], [1, 2, 3, 0]])
TURNED = pandas.DataFrame(FULL, NAMES, NAMES)[list("dbac")]


def test_the_same_labelled_distances_have_the_same_shortest_tour_by_default():
    full = TSP(np.random.default_rng(0).random((12, 2))).D
    names = list("abcdefghijkl")
    table = pandas.DataFrame(full, names, names)
    turned = table[names[::-1]]
    shortest = solve(full).length
    assert solve(turned).length == shortest
    assert solve(table.loc[names[::-1]]).length == shortest
    assert solve(io.StringIO(turned.to_csv())).length == shortest
    assert solve(TSP(matrix=turned)).length == shortest


@pytest.mark.parametrize(
    "read",
    [
        read_cities,
        lambda table: read_cities(io.StringIO(table.to_csv())),
        lambda table: read_cities(io.StringIO(table.to_csv(index_label="from", sep=";"))),
        lambda table: read_cities(table.reset_index()),  # as read_csv without index_col returns it
        lambda table: TSP(matrix=table, names=NAMES),
        lambda table: OpenPath(matrix=table, names=NAMES),
        lambda table: MultiObjectiveTSP([table, table]).parts[1],
    ],
)
def test_columns_come_in_the_order_of_the_rows(read):
    problem = read(TURNED)
    np.testing.assert_array_equal(problem.matrix, FULL)
    assert problem.names is None or problem.names.tolist() == NAMES


@pytest.mark.parametrize("names", [list("abc"), list("xyz"), [10, 20, 30], [2, 1, 0]])
def test_three_rows_are_a_matrix_where_columns_have_their_labels(names):
    table = pandas.DataFrame(FULL[:3, :3], names, names)
    turned = table[[names[2], names[0], names[1]]]
    for read in (table, turned, io.StringIO(table.to_csv()), io.StringIO(turned.to_csv())):
        problem = read_cities(read)
        np.testing.assert_array_equal(problem.matrix, FULL[:3, :3])
        assert problem.names.tolist() in (names, list(map(str, names)))


def test_three_rows_that_only_count_may_be_cities_in_space():
    table = pandas.DataFrame(FULL[:3, :3])
    for read in (table, io.StringIO(table.to_csv())):
        with pytest.raises(ValueError, match=r"matrix=True \(--matrix on the command line\) says"):
            read_cities(read)
    np.testing.assert_array_equal(read_cities(table, matrix=True).matrix, FULL[:3, :3])


def test_numbers_are_labels_where_they_do_not_only_count():
    table = pandas.DataFrame(FULL, [10, 20, 30, 40], ["40", "20.0", "10", "30"])
    problem = read_cities(table)
    assert problem.matrix[0].tolist() == [0, 1, 3, 0]  # the diagonal is no distance
    shuffled = pandas.DataFrame(FULL).loc[[2, 0, 3, 1]]
    np.testing.assert_array_equal(read_cities(shuffled).matrix, FULL[[2, 0, 3, 1]][:, [2, 0, 3, 1]])
    np.testing.assert_array_equal(TSP(matrix=shuffled).matrix, FULL[[2, 0, 3, 1]][:, [2, 0, 3, 1]])


@pytest.mark.parametrize(
    ("index", "titles", "names"),
    [
        (range(4), NAMES, NAMES),
        (range(1, 5), NAMES, NAMES),
        (NAMES, range(4), NAMES),
        (NAMES, range(1, 5), NAMES),
        (list("aabb"), list("aabb"), list("aabb")),
        (range(4), range(4), None),
        (range(4), [f"column_{c}" for c in range(4)], None),  # as polars titles them
    ],
)
def test_where_one_side_only_counts_or_all_is_in_order_nothing_moves(index, titles, names):
    table = pandas.DataFrame(FULL, index, titles)
    for problem in (read_cities(table), TSP(matrix=table, names=names)):
        np.testing.assert_array_equal(problem.matrix, FULL)
        assert (None if problem.names is None else problem.names.tolist()) == names
    np.testing.assert_array_equal(read_cities(io.StringIO(table.to_csv())).matrix, FULL)


@pytest.mark.parametrize(
    ("index", "titles", "words"),
    [
        (NAMES, list("abcq"), "only rows have 'd', only columns 'q'"),
        (NAMES, list("pqrs"), "only rows have 'a', 'b', 'c', .., only columns 'p', 'q', 'r', .."),
        ([3, 0, 2, 1], NAMES, "only rows have '3', '0', '2', .., only columns 'a'"),
        (NAMES, list("abcc"), "only rows have 'd', only columns none"),
        (list("aabc"), list("cbaa"), "in different orders, and 'a' comes twice"),
    ],
)
def test_labels_that_are_not_the_same_are_refused_by_name(index, titles, words):
    table = pandas.DataFrame(FULL, index, titles)
    with pytest.raises(ValueError, match=words):
        read_cities(table)
    with pytest.raises(ValueError, match=words):
        TSP(matrix=table)
    with pytest.raises(ValueError, match=f"^distances: .*{words}"):
        read_cities(io.StringIO(table.to_csv()), name="distances")


def test_of_several_columns_beside_a_matrix_the_one_with_its_titles_names_the_cities():
    table = TURNED.reset_index(names="city")
    table.insert(0, "country", ["DE", "DE", "FR", "FR"])
    problem = read_cities(io.StringIO(table.to_csv(index=False)))
    np.testing.assert_array_equal(problem.matrix, FULL)
    assert problem.names.tolist() == NAMES


def test_text_decides_before_numbers():
    assert columns_by_rows([["01", "1"]], ["1", "01"]) == [1, 0]
    assert columns_by_rows([[1.0, 30]], ["30", "01"]) == [1, 0]


def answer(rows, columns, kind):
    """The matrix FULL with named rows and columns as a service answers it; place a is at (0, 50), b at (1, 51) .."""
    numbers = pandas.DataFrame(FULL, NAMES, NAMES)
    numbers = numbers.reindex(index=list(rows), columns=list(columns), fill_value=7).to_numpy().tolist()
    if kind == "Google":
        elements = [
            {"elements": [{"status": "OK", "distance": {"value": d}} for d in row]} for row in numbers
        ]
        return {"origin_addresses": list(rows), "destination_addresses": list(columns), "rows": elements}
    places = [[{"location": [ord(name) - 97, ord(name) - 47]} for name in names] for names in (rows, columns)]
    if kind == "Valhalla":
        places = [[{"lon": p["location"][0], "lat": p["location"][1]} for p in end] for end in places]
        return {"sources_to_targets": {"durations": numbers}, "sources": places[0], "targets": [places[1]]}
    if kind == "names":
        places = [[{"name": name} for name in names] for names in (rows, columns)]
    return {"durations": numbers, "sources": places[0], "destinations": places[1]}


KINDS = ("Google", "locations", "names", "Valhalla")


@pytest.mark.parametrize("kind", KINDS)
def test_columns_of_a_service_come_in_the_order_of_its_rows(kind, recwarn):
    for columns in ("abcd", "dbac"):
        problem = read_cities(io.StringIO(json.dumps(answer("abcd", columns, kind))))
        np.testing.assert_array_equal(problem.matrix, FULL)
        assert problem.names is None or problem.names.tolist() == NAMES
    assert not recwarn.list


@pytest.mark.parametrize("kind", KINDS)
def test_columns_of_a_service_that_are_other_places_are_refused(kind):
    with pytest.raises(
        ValueError, match="rows and columns of a matrix must have the same labels: only rows have"
    ):
        read_cities(io.StringIO(json.dumps(answer("abcd", "abcz", kind))))


def test_zeros_between_different_places_of_a_service_are_warned_of(recwarn):
    full = (FULL + 1).tolist()
    full[0][2] = 0
    for places in ({}, {"sources": [{"location": [i, 9]} for i in range(4)]}):
        with pytest.warns(
            UserWarning, match=r"1 distances between different places are 0, such as from 0 to 2"
        ):
            read_cities(io.StringIO(json.dumps({"durations": full, **places})))
    same = {"sources": [{"location": [i % 2, 9]} for i in range(4)]}  # 0 and 2 are one place
    read_cities(io.StringIO(json.dumps({"durations": full, **same})))
    assert not recwarn.list


class Labelled:
    """Part of a DataArray of xarray, where it is not installed."""

    dims, ndim = ("from", "to"), 2

    def __init__(self, frame):
        self.frame, self.coords = frame, {"from": frame.index, "to": frame.columns}

    def to_pandas(self):
        return self.frame

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self.frame, dtype)


def test_labels_of_arrays_of_xarray_are_those_of_data_frames():
    arrays = [Labelled(TURNED)]
    try:
        import xarray
    except ImportError:
        pass
    else:
        arrays.append(xarray.DataArray(TURNED, dims=("from", "to")))
    for array in arrays:
        np.testing.assert_array_equal(TSP(matrix=array).matrix, FULL)
        problem = read_cities(array)
        np.testing.assert_array_equal(problem.matrix, FULL)
        assert problem.names.tolist() == NAMES
        assert solve(array, seconds=1).length == solve(FULL, seconds=1).length
    with pytest.raises(ValueError, match="only rows have 'd', only columns 'q'"):
        TSP(matrix=Labelled(pandas.DataFrame(FULL, NAMES, list("abcq"))))


def test_objectives_whose_rows_have_different_orders_are_refused():
    table = pandas.DataFrame(FULL, NAMES, NAMES)
    assert MultiObjectiveTSP([table, TURNED]).city_names.tolist() == NAMES
    with pytest.raises(ValueError, match="cities in the same order, got 'a' and 'd' as city 0"):
        MultiObjectiveTSP([table, table.loc[NAMES[::-1]]])
    other = TSP(matrix=FULL, names=list("ABCD"))  # the same cities may have other names
    assert MultiObjectiveTSP([table, other]).city_names.tolist() == NAMES
