"""Coordinates from CSV files, and maps that are made from a seed."""

import numpy as np
import pytest

from pymoo_gpuaco.problems import Metric, load_tsp, random_map

SQUARE = [[0, 0], [3, 0], [3, 4], [0, 4]]


@pytest.mark.parametrize(
    "text",
    [
        "0,0\n3,0\n3,4\n0,4\n",
        "x,y\n0,0\n3,0\n3,4\n0,4",
        "\ufeffname;Y;X\r\na;0;0\r\nb;0;3\r\nc;4;3\r\nd;4;0\r\n",  # a spreadsheet's: mark, titles, another order
        "# four corners\n0 0\n\n3 0\n3  4\n0 4\n",
        '"x"\t"y"\n"0"\t"0"\n3\t0\n3\t4e0\n0\t4\n',
    ],
)
def test_csv_in_the_forms_that_programs_write(tmp_path, text):
    path = tmp_path / "square.csv"
    path.write_text(text, encoding="utf-8", newline="")
    problem = load_tsp(path)
    np.testing.assert_array_equal(problem.positions, SQUARE)
    assert (problem.label, problem.metric, problem.best_known) == ("square", Metric.EXACT, None)
    assert problem.tour_length([0, 1, 2, 3]) == 14


def test_csv_with_a_third_axis_and_with_fractions(tmp_path):
    path = tmp_path / "space.csv"
    path.write_text("x,y,z\n0,0,0\n3,4,0\n0,0,0.5\n")
    np.testing.assert_array_equal(load_tsp(path).coords, [[0, 0, 0], [3, 4, 0], [0, 0, 0.5]])
    assert load_tsp(path).metric is Metric.EXACT


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no coordinates found"),
        ("1,0,0\n2,3,0\n", "3 columns of numbers and no line of titles"),  # city numbers are no coordinates
        ("a,b\n0,0\n", "expected columns x and y, or lat and lon, .* the titles are 'a, b'"),
        ("0,0\n3,zero\n", "line 2: expected 2 finite numbers, got '3, zero'"),
        ("x,y\n0,0\n3\n", "line 3: expected 2 cells as in the first line, got 1: '3'"),
        ("0,0\n3,nan\n", "line 2"),
        ("x;y\n0;0,5\n1.5;2\n", "'1.5' has a decimal point and '0,5' a decimal comma; write all"),
        ("x\n1\n", "at least two columns"),
        ("x,y,lat,lon\n1,2,3,4\n", "give a metric"),
        (
            "1,2,3\n4,5,6\n7,8,9\n",
            "three cities in space or a matrix: matrix=True .--matrix .* titles x, y, z",
        ),
        ("lat,lon\n91,0\n0,0\n1,1\n", r"bad\.csv: .*latitude must be in \[-90, 90\], got 91 at city 0"),
        ("x,y\0\n", "binary"),
        ("0,0\n", "at least 2 cities"),
    ],
)
def test_csv_with_other_contents_is_refused_by_line(tmp_path, text, words):
    path = tmp_path / "bad.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match=words):
        load_tsp(path)


@pytest.mark.parametrize(
    ("text", "warns"),
    [
        ("0,1\n0.5,0.25\n1.5,2.5\n3.0,4.0\n", True),  # DataFrame(c).to_csv(index=False)
        ("0;1;2\na;0;0\nb;3;0\nc;3;4\n", True),
        ("x,y\n0,1\n3,0\n3,4\n", False),
        ("0.0,1.0\n3,0\n3,4\n", False),
        ("3,0\n0,1\n3,4\n", False),
        ("0,1,2,3\n1,0,4,5\n2,4,0,6\n3,5,6,0\n", False),  # a matrix
    ],
)
def test_a_first_line_that_numbers_the_columns_is_noticed(tmp_path, text, warns, recwarn):
    path = tmp_path / "cities.csv"
    path.write_text(text)
    load_tsp(path)
    assert ["first line, 0, 1" in str(warning.message) for warning in recwarn.list] == [True] * warns


def test_a_random_map_is_the_same_everywhere():
    problem = load_tsp("random:1000")
    assert (problem.n_cities, problem.label, problem.metric) == (1000, "random-1000", Metric.EUC)
    # the first three outputs of Philox4x64-10 with key 1, their 53 high bits as a fraction of the side
    raw = [int(word) for word in np.random.Philox(key=1).random_raw(3)]
    x, y, x1 = ((word >> 11) * 1_000_000 // 2**53 for word in raw)
    assert problem.positions[0].tolist() == [x, y] == [303568, 848708]
    assert problem.positions[1][0] == x1
    assert problem.positions.min() >= 0
    assert problem.positions.max() < 1_000_000
    # uniform: each quarter of the square holds about 250 of the 1000 (standard deviation 13.7)
    west, south = (problem.positions < 500_000).T
    assert all(180 < np.sum(a & b) < 320 for a in (west, ~west) for b in (south, ~south))


def test_a_random_map_has_a_seed():
    assert not np.array_equal(load_tsp("random:50:2").positions, load_tsp("random:50").positions)
    np.testing.assert_array_equal(load_tsp("random:50:2").positions, random_map(50, 2).positions)


@pytest.mark.parametrize("name", ["random:", "random:ten", "random:10:", "random:1:2:3", "random:-5"])
def test_a_random_map_of_another_form_is_refused(name):
    with pytest.raises(ValueError, match=r"random:N or random:N:SEED"):
        load_tsp(name)


def test_a_random_map_of_too_few_or_too_many_cities_is_refused():
    for name in ("random:2", "random:100000001"):
        with pytest.raises(ValueError, match=r"n must be an integer in \[3, 100000000\]"):
            load_tsp(name)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x,y\n0,0\n", "a TSP needs at least 2 cities, got 1"),
        ("x,y\n0,0\n1,1\n1e16,2\n", "coords must be finite and at most 1e\\+15 in magnitude"),
    ],
)
def test_contents_that_make_no_problem_name_the_file(tmp_path, text, words):
    path = tmp_path / "cities.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match=rf"cities\.csv: {words}"):
        load_tsp(path)


def test_arguments_without_effect_on_an_instance_are_refused():
    with pytest.raises(ValueError, match="symmetric has no effect on random:10: leave it out"):
        load_tsp("random:10", symmetric=True)
    with pytest.raises(ValueError, match="decimal has no effect on gr17, a TSPLIB instance"):
        load_tsp("gr17", decimal=",")
    assert load_tsp("gr17", symmetric=True).n_cities == 17
