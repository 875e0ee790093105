"""Every input that was tried, and what happens: the value that was written, or an error that names what decides."""

import gzip
import io
import json

import numpy as np
import pytest

from pymoo_gpuaco import TSP, MultiObjectiveTSP, read_cities
from pymoo_gpuaco.problems import as_instance, load_tsp

INF = np.inf
FOUR = [[0, 500, 1900, 700], [500, 0, 600, 1800], [1900, 600, 0, 800], [700, 1800, 800, 0]]
HALF = [[0, 3, 4, 2], [3, 0, 5, 6], [4, 5, 0, 1], [2, 6, 1, 0]]
POINTS = [[0.5, 1.25], [3, 0], [3.5, 4.75], [0, 4]]
SQUARE = [[0, 0], [3, 0], [3, 4], [0, 4]]


def case(text, numbers, ids=None, names=None, **options):
    """What is written, the coordinates or the matrix, ids and names, and options of `read_cities`."""
    return text, options, numbers, ids, names


def question(text, words, **options):
    return text, options, words


READ = {
    # thousands and decimal marks
    "thousands commas beside points": case(
        'x,y\n"1,900",0.5\n"2,000",1.5\n3,2\n', [[1900, 0.5], [2000, 1.5], [3, 2]]
    ),
    "thousands commas, said so": case(
        'A,0,500,"1,900",700\nB,500,0,600,"1,800"\nC,"1,900",600,0,800\nD,700,"1,800",800,0\n',
        FOUR,
        names=list("ABCD"),
        decimal=".",
    ),
    "decimal commas, said so": case("x;y\n1,900;0\n3;4\n5;6\n", [[1.9, 0], [3, 4], [5, 6]], decimal=","),
    "millions": case("x;y\n1,234,567;0\n3,000;4\n5;6\n", [[1234567, 0], [3000, 4], [5, 6]]),
    "thousands and decimals in one number": case(
        "x;y\n1.234,5;0\n3;1.000\n5;6\n", [[1234.5, 0], [3, 1000], [5, 6]]
    ),
    "points and decimals the English way": case(
        "x;y\n1,234.5;0\n3;1,000\n5;6\n", [[1234.5, 0], [3, 1000], [5, 6]]
    ),
    "German thousands, said so": case(
        "x;y\n1.200;950\n3;4\n5;6\n", [[1200, 950], [3, 4], [5, 6]], thousands="."
    ),
    "three decimals everywhere": case(
        "x,y\n1.200,2.300\n3.100,4.000\n5.500,6.250\n", [[1.2, 2.3], [3.1, 4], [5.5, 6.25]]
    ),
    "three decimals beside ids": case(
        "id,x,y\n7,1.200,2.300\n8,3.100,4.000\n9,5.500,6.250\n",
        [[1.2, 2.3], [3.1, 4], [5.5, 6.25]],
        ids=[7, 8, 9],
        names=["7", "8", "9"],
    ),
    "three decimals, one below 1": case("x,y\n0.200,2\n3.100,4\n5.500,6\n", [[0.2, 2], [3.1, 4], [5.5, 6]]),
    "Swiss apostrophes": case("x;y\n1'200;0\n3;4'000.5\n5;6\n", [[1200, 0], [3, 4000.5], [5, 6]]),
    "French no-break spaces": case(
        "x;y\n1\u202f200;0\n3;4\u00a0000,5\n5;6\n", [[1200, 0], [3, 4000.5], [5, 6]]
    ),
    "grouped by blanks": case("x;y\n1 200;0\n3;4\n5;6\n", [[1200, 0], [3, 4], [5, 6]]),
    "typographic minus": case("x;y\n\u22125;0\n3;4\n5;6\n", [[-5, 0], [3, 4], [5, 6]]),
    "decimal commas between blanks": case(
        "1,5 2,5\n3,5 4,5\n5,5 6,5\n", [[1.5, 2.5], [3.5, 4.5], [5.5, 6.5]]
    ),
    "decimal commas between tabs": case(
        "1,5\t2,5\n3,5\t4,5\n5,5\t6,5\n", [[1.5, 2.5], [3.5, 4.5], [5.5, 6.5]]
    ),
    "a mark in a column that is ignored": case(
        'x,y,people\n0,0,"1,900"\n3,0,"2,000"\n3,4,"1,500"\n', SQUARE[:3]
    ),
    "exponents": case("x,y\n1e3,2.5E-1\n3,0\n3,4\n", [[1000, 0.25], [3, 0], [3, 4]]),
    # separators and lines
    "a first line that names the separator": case("sep=;\nx;y\n0,5;1,25\n3;0\n3,5;4,75\n0;4\n", POINTS),
    "the separator, said so": case("x~y\n0~0\n3~0\n3~4\n0~4\n", SQUARE, separator="~"),
    "colons": case("0:0:a\n3:0:b\n3:4:c\n0:4:d\n", SQUARE, names=list("abcd")),
    "a name that begins with #": case(
        'name,x,y\n"#12 Main St",9,9\nb,3,0\n# a comment, 1, "2\nc,3,4\n',
        [[9, 9], [3, 0], [3, 4]],
        names=["#12 Main St", "b", "c"],
    ),
    "trailing separators": case("0,0,\n3,0,\n3,4,\n0,4,\n", SQUARE),
    "names of digits and dashes": case(
        "2024-01-05;0;0\n12-14;3;0\n030/123;3;4\n", SQUARE[:3], names=["2024-01-05", "12-14", "030/123"]
    ),
    "inch marks": case('name,x,y\n5" pipe,0,0\nb,3,0\nc,3,4\n', SQUARE[:3], names=['5" pipe', "b", "c"]),
    # ids
    "ids from 0": case(
        "CityId,X,Y\n0,0,0\n1,3,0\n2,3,4\n3,0,4\n", SQUARE, ids=[0, 1, 2, 3], names=list("0123")
    ),
    "ids beside names": case(
        "node,name,x,y\n7,a,0,0\n5,b,3,0\n9,c,3,4\n", SQUARE[:3], ids=[7, 5, 9], names=list("abc")
    ),
    "ids of text": case(
        "stop_id,x,y\nA-1,0,0\n007,3,0\nB,3,4\n",
        SQUARE[:3],
        ids=["A-1", "007", "B"],
        names=["A-1", "007", "B"],
    ),
    "an index that pandas wrote": case(
        ",x,y\n10,0,0\n20,3,0\n30,3,4\n", SQUARE[:3], ids=[10, 20, 30], names=["10", "20", "30"]
    ),
    "ids that come twice are names": case(
        "code,x,y\n7,0,0\n7,3,0\n9,3,4\n", SQUARE[:3], names=["7", "7", "9"]
    ),
    "titles that are no ids": case("grid,x,y\n7,0,0\n8,3,0\n9,3,4\n", SQUARE[:3]),
    "three columns, said what": case(
        "1,0,0\n2,3,0\n3,3,4\n4,0,4\n", SQUARE, ids=[1, 2, 3, 4], names=list("1234"), columns=["id", "x", "y"]
    ),
    # titles
    "units in titles": case("X (m),Y [m]\n0,0\n3,0\n3,4\n", SQUARE[:3]),
    "years beside coordinates": case("x,y,2020,2021\n0,0,5,6\n3,0,5,6\n3,4,7,8\n", SQUARE[:3]),
    "the tour that this package writes": case(
        "stop,city,name,x,y,to_next\n1,7,a,0,0,3\n2,5,b,3,0,4\n3,9,c,3,4,5\n",
        SQUARE[:3],
        ids=[7, 5, 9],
        names=list("abc"),
    ),
    # matrices
    "blank upper half": case("0,,,\n3,0,,\n4,5,0,\n2,6,1,0\n", HALF),
    "blank lower half with names": case(
        "from,a,b,c,d\na,,3,4,2\nb,,,5,6\nc,,,,1\nd,,,,\n", HALF, names=list("abcd")
    ),
    "zero half, said so": case("0,3,4,2\n0,0,5,6\n0,0,0,1\n0,0,0,0\n", HALF, symmetric=True),
    "zero half, as it is": case("0,3,4,2\n0,0,5,6\n0,0,0,1\n0,0,0,0\n", np.triu(HALF), symmetric=False),
    "blanks of one direction": case(
        "0,3,,2\n9,0,5,6\n4,5,0,1\n2,6,1,0\n", [[0, 3, INF, 2], [9, 0, 5, 6], [4, 5, 0, 1], [2, 6, 1, 0]]
    ),
    "blanks opposite numbers, mirrored": case("0,3,,2\n3,0,5,6\n4,5,0,1\n2,6,,0\n", HALF, symmetric=True),
    "inf is never a half": case(
        "0,inf,inf,inf\n3,0,inf,inf\n4,5,0,inf\n2,6,1,0\n", np.where(np.triu(HALF, 1) > 0, INF, HALF)
    ),
    "a constant diagonal": case("9999 3 4 2\n3 9999 5 6\n4 5 9999 1\n2 6 1 9999\n", HALF),
    "any diagonal, with names around": case(
        "c,a,b,c\na,1,2,3\nb,4,5,6\nc,7,8,9\n", [[0, 2, 3], [4, 0, 6], [7, 8, 0]], names=list("abc")
    ),
    "any diagonal, said so": case(
        "1,0,0,10\n2,30,0,15\n3,30,40,5\n4,0,40,20\n",
        [[0, 0, 0, 10], [2, 0, 0, 15], [3, 30, 0, 5], [4, 0, 40, 0]],
        matrix=True,
    ),
    "numbers as labels": case(
        "id,10,20,30,40\n" + "\n".join(f"{10 * i + 10}," + ",".join(map(str, HALF[i])) for i in range(4)),
        HALF,
        ids=[10, 20, 30, 40],
        names=["10", "20", "30", "40"],
    ),
    # JSON
    "JSON matrix, null forbids": case("[[0,1,null],[2,0,3],[4,5,0]]", [[0, 1, INF], [2, 0, 3], [4, 5, 0]]),
    "JSON coordinates": case("[[0,0],[3,0],[3,4],[0,4]]", SQUARE),
    "JSON objects": case(
        '[{"id":7,"x":0,"y":0},{"id":8,"x":3,"y":0},{"id":9,"x":3,"y":4}]',
        SQUARE[:3],
        ids=[7, 8, 9],
        names=[7, 8, 9],
    ),
    "OSRM": case(
        '{"code":"Ok","durations":[[0,1,2],[3,0,4],[5,null,0]],"sources":[{"name":"a"},{"name":"b"},{"name":"c"}]}',
        [[0, 1, 2], [3, 0, 4], [5, INF, 0]],
        names=list("abc"),
    ),
    "durations and distances, one said": case(
        '{"durations":[[0,1,2],[3,0,4],[5,6,0]],"distances":[[0,9,9],[9,0,9],[9,9,0]]}',
        [[0, 1, 2], [3, 0, 4], [5, 6, 0]],
        weight="durations",
    ),
    "VROOM": case(
        '{"matrices":{"car":{"durations":[[0,1,2],[3,0,4],[5,6,0]]}}}', [[0, 1, 2], [3, 0, 4], [5, 6, 0]]
    ),
    "Google": case(
        json.dumps(
            {
                "rows": [
                    {
                        "elements": [
                            {"duration": {"value": v, "text": "x"}, "status": "OK"}
                            if v is not None
                            else {"status": "ZERO_RESULTS"}
                            for v in row
                        ]
                    }
                    for row in [[0, 1, None], [3, 0, 4], [5, 6, 0]]
                ]
            }
        ),
        [[0, 1, INF], [3, 0, 4], [5, 6, 0]],
    ),
    "Google's list of elements": case(
        json.dumps(
            [
                {"originIndex": i, "destinationIndex": j, "duration": f"{v}s"}
                for i, row in enumerate([[0, 1, 2], [3, 0, 4], [5, 6, 0]])
                for j, v in enumerate(row)
            ]
        ),
        [[0, 1, 2], [3, 0, 4], [5, 6, 0]],
    ),
}

QUESTIONS = {
    "thousands commas": question(
        'A,0,500,"1,900",700\nB,500,0,600,"1,800"\nC,"1,900",600,0,800\nD,700,"1,800",800,0\n',
        r"'1,900' may be 1\.9 or 1900: decimal=',' \(--decimal ,\) or decimal='\.'",
    ),
    "German thousands": question(
        "x;y\n1.200;950\n3.400;4\n5;6\n", r"'1\.200' may be 1\.2 or 1200: decimal='\.'"
    ),
    "German thousands in one column": question("x;y\n1.200;950\n3.400;870\n", "decimal='.'"),
    "a German matrix": question(
        "0;1.200;2.100;1.300\n1.200;0;1.400;1.500\n2.100;1.400;0;1.600\n1.300;1.500;1.600;0\n", "decimal='.'"
    ),
    "commas and points that may be either": question("x;y\n1,900;1.200\n3;4\n5;6\n", "decimal="),
    "both marks decimal": question(
        "x;y\n0,5;1.5\n3;4\n5;6\n", "decimal point and '0,5' a decimal comma; write all numbers one way"
    ),
    "another mark than said": question(
        "x;y\n0,5;1,5\n3;4\n5;6\n", "'decimal=.' has a decimal point and '0,5' a decimal comma", decimal="."
    ),
    "two titles of one axis": question(
        "name,x,y,y\na,0,0,1\nb,3,0,1\nc,3,4,1\n", "columns 'y' and 'y' may both be y: columns="
    ),
    "two titles of one axis in two cases": question(
        "X,x,y\n0,5,0\n3,5,0\n3,5,4\n", "columns 'X' and 'x' may both be x"
    ),
    "two pairs of degrees": question(
        "lat,lon,latitude,longitude\n1,2,3,4\n2,3,4,5\n3,4,5,7\n", "'lat' and 'latitude' may both be lat"
    ),
    "two columns of ids": question(
        "id,id,x,y\n1,5,0,0\n2,6,3,0\n3,7,3,4\n", "two columns have the title 'id'"
    ),
    "clock times": question(
        "0:00 1:30 2:15 1:00\n1:30 0:00 0:45 2:00\n2:15 0:45 0:00 1:10\n1:00 2:00 1:10 0:00\n",
        "expected a distance, got '0:00', which is a time: give numbers, such as minutes",
    ),
    "clock times with names": question(
        "a 0:00 1:30 2:15\nb 1:30 0:00 0:45\nc 2:15 0:45 0:00\n", "'0:00', which is a time"
    ),
    "clock times with seconds": question(
        ",a,b,c\na,0,0:01:30,2\nb,1,0,2\nc,1,2,0\n",
        "from 'a' to 'b': expected a distance, got '0:01:30', which is a time",
    ),
    "clock times as coordinates": question("x,y\n1:30,0\n2:45,1\n3:15,5\n", "'1:30', which is a time"),
    "colons that may be times": question(
        "10:20\n11:30\n12:40\n", "separated by colons, or cells may be times of a clock: separator= "
    ),
    "zero half": question(
        "0,3,4,2\n0,0,5,6\n0,0,0,1\n0,0,0,0\n", "upper half alone and zeros in the other: symmetric=True"
    ),
    "zero half, lower": question(",a,b,c\na,0,0,0\nb,3,0,0\nc,4,5,0\n", "lower half alone"),
    "one blank opposite a number": question(
        "0,3,,2\n3,0,5,6\n4,5,0,1\n2,6,1,0\n",
        "from city 0 to city 2 .* is blank, and that back is 4: symmetric=True",
    ),
    "symmetric, which it is not": question(
        "0,3,4,2\n9,0,5,6\n4,5,0,1\n2,6,1,0\n",
        "not symmetric: it is 3 from city 0 to city 1, and 9 back",
        symmetric=True,
    ),
    "as many columns as rows": question(
        "1,0,0,10\n2,30,0,15\n3,30,40,5\n4,0,40,20\n", "matrix=True .--matrix. or titles, which columns="
    ),
    "as many columns as rows, as ids": question(
        "id,a,b,c,d\n1,5,0,0,10\n2,6,30,0,15\n3,7,30,40,5\n4,8,0,40,20\n", "matrix=True"
    ),
    "a dash in a matrix": question(
        ",a,b,c\na,0,-,2\nb,1,0,2\nc,1,2,0\n", "line 2, from 'a' to 'b': expected a distance, got '-'"
    ),
    "N/A in a matrix without titles": question(
        "a,0,1,2,4\nb,1,0,N/A,4\nc,2,3,0,4\nd,4,4,4,0\n",
        "line 2, from 'b' to 'c': expected a distance, got 'N/A'",
    ),
    "a unit in a matrix": question(
        ",a,b,c,d\na,0,3 km,2,1\nb,1,0,2,1\nc,1,2,0,1\nd,1,1,1,0\n",
        "from 'a' to 'b': expected a distance, got '3 km'",
    ),
    "a quotation mark that stays open": question(
        'name,x,y\n"a,0,0\nb,3,0\nc,3,4\n', "line 2: a quotation mark is not closed"
    ),
    "a quotation mark that closes lines later": question(
        'name,x,y\n"a,0,0\nb,3,0\n"c",3,4\nd,0,4\ne,1,1\n', "line 2: a quotation mark is not closed"
    ),
    "durations and distances": question(
        '{"durations":[[0,1,2],[3,0,4],[5,6,0]],"distances":[[0,9,9],[9,0,9],[9,9,0]]}',
        "there are durations and distances: weight='durations'",
    ),
    "numbers as text in JSON": question(
        '[[0,"1,5",2,3],[1,0,2,3],[1,2,0,3],[1,2,3,0]]',
        r"row 0, column 1 .*: expected a distance or null, got '1,5'",
    ),
    "an option without effect": question(
        "x,y\n0,0\n3,0\n3,4\n", "weight has no effect on a table", weight="length"
    ),
    "an entity in XML": question(
        '<?xml version="1.0"?><!DOCTYPE a [<!ENTITY b "c">]><gpx></gpx>', "entities"
    ),
    "another kind of XML": question("<html><body>1,2</body></html>", "neither GPX nor KML: 'html'"),
    "an archive": question(b"PK\x03\x04 nothing", "ZIP archive: unpack it"),
}


def of(content):
    return io.BytesIO(content) if isinstance(content, bytes) else io.StringIO(content)


@pytest.mark.parametrize("case", READ)
def test_inputs_are_read_as_they_were_written(case):
    content, options, numbers, ids, names = READ[case]
    problem = read_cities(of(content), **options)
    read = problem.positions if problem.matrix is None else problem.matrix
    np.testing.assert_array_equal(read, numbers)
    assert (None if problem.ids is None else problem.ids.tolist()) == ids
    assert (None if problem.names is None else problem.names.tolist()) == names
    assert f"{problem.n_cities} cities" in problem.read_as


@pytest.mark.parametrize("case", QUESTIONS)
def test_what_may_mean_two_things_is_refused_with_the_argument_that_decides(case):
    content, options, words = QUESTIONS[case]
    with pytest.raises(ValueError, match=words):
        read_cities(of(content), **options)


@pytest.mark.parametrize(
    "encode",
    [
        lambda text: text.encode(),
        lambda text: text.encode("utf-8-sig"),
        lambda text: text.encode("utf-16"),
        lambda text: text.encode("utf-16-le"),
        lambda text: text.encode("utf-16-be"),
        lambda text: text.encode("latin-1"),
        lambda text: gzip.compress(text.encode("utf-16")),
        lambda text: text.replace("\n", "\r\n").encode(),
        lambda text: text.replace("\n", "\r").encode(),
    ],
)
def test_encodings(encode):
    problem = read_cities(io.BytesIO(encode("name;x;y\nKöln;0,5;1,25\nb;3;0\nc;3,5;4,75\nd;0;4\n")))
    assert problem.positions.tolist() == POINTS
    assert problem.names[0] == "Köln"


def test_halves_of_arrays_frames_files_and_objectives(tmp_path):
    half = np.triu(HALF)
    for read in (
        lambda **said: TSP(matrix=half, **said),
        lambda **said: TSP(matrix=half.T, **said),
        lambda **said: load_tsp(full_matrix(tmp_path, half), **said),
    ):
        with pytest.raises(ValueError, match="half alone and zeros in the other: symmetric=True"):
            read()
        np.testing.assert_array_equal(read(symmetric=True).matrix, HALF)
        assert not read(symmetric=False).symmetric
    with pytest.raises(ValueError, match="symmetric=True"):
        MultiObjectiveTSP([half, half])
    with pytest.raises(ValueError, match="goes with matrix only"):
        TSP(SQUARE, symmetric=True)


def full_matrix(folder, numbers):
    path = folder / "half.atsp"
    rows = "\n".join(" ".join(map(str, row)) for row in np.asarray(numbers).tolist())
    path.write_text(
        "TYPE: ATSP\nDIMENSION: 4\nEDGE_WEIGHT_TYPE: EXPLICIT\nEDGE_WEIGHT_FORMAT: FULL_MATRIX\n"
        f"EDGE_WEIGHT_SECTION\n{rows}\nEOF\n"
    )
    return path


def test_a_half_as_d_of_an_own_problem_warns():
    from tests.test_bad_input import Permutations

    with pytest.warns(UserWarning, match="D of Permutations has distances in its upper half alone"):
        as_instance(Permutations(n=4, D=np.triu(HALF).astype(float)))


def test_a_lower_triangle_that_is_called_upper_is_refused(tmp_path):
    path = tmp_path / "t.tsp"
    head = "TYPE: TSP\nDIMENSION: 4\nEDGE_WEIGHT_TYPE: EXPLICIT\nEDGE_WEIGHT_SECTION\n0\n3 0\n4 5 0\n2 6 1 0\nEOF\n"
    for layout, good in (("LOWER_DIAG_ROW", True), ("UPPER_DIAG_ROW", False)):
        path.write_text(
            head.replace("EDGE_WEIGHT_SECTION", f"EDGE_WEIGHT_FORMAT: {layout}\nEDGE_WEIGHT_SECTION")
        )
        if good:
            np.testing.assert_array_equal(load_tsp(path).matrix, HALF)
        else:
            with pytest.raises(ValueError, match=r"UPPER_DIAG_ROW has different numbers: .* LOWER_DIAG_ROW"):
                load_tsp(path)


def test_data_frames_enter_at_their_cells():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"x": ["52,5", "53,25", "48"], "y": ["13,4", "10", "11,5"]})
    assert read_cities(frame).positions.tolist() == [[52.5, 13.4], [53.25, 10], [48, 11.5]]
    with pytest.raises(ValueError, match="decimal="):
        read_cities(pandas.DataFrame({"x": ["1,900", "3", "5"], "y": [1, 2, 3]}))
    with pytest.warns(UserWarning, match="look like degrees"):
        read_cities(pandas.DataFrame({"x": [13.405, 9.993, 11.576], "y": [52.52, 53.551, 48.137]}))
    kept = pandas.DataFrame({"x": [0, 3, 3, 0], "y": [0, 0, 4, 4]}).drop(1)
    assert read_cities(kept).ids.tolist() == [0, 2, 3]
    blank = pandas.DataFrame(np.where(np.triu(HALF, 1) > 0, np.nan, HALF), list("abcd"), list("abcd"))
    np.testing.assert_array_equal(read_cities(blank).matrix, HALF)
    twice = pandas.DataFrame([[0, 0, 1], [3, 0, 1], [3, 4, 1]], columns=["x", "y", "y"])
    with pytest.raises(ValueError, match="may both be y"):
        read_cities(twice)
    with pytest.raises(ValueError, match="the cells are times"):
        read_cities(pandas.DataFrame({c: pandas.to_timedelta([1, 2, 3, 4], "min") for c in "abcd"}))
    with pytest.raises(ValueError, match="separator has no effect on a DataFrame"):
        read_cities(frame, separator=";")


class Point:
    geom_type = "Point"

    def __init__(self, x, y):
        self.x, self.y = x, y


class GeoFrame:
    """What geopandas has of a GeoDataFrame, where it is not installed."""

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


GPX = '<?xml version="1.0" encoding="UTF-8"?>\n<gpx xmlns="http://www.topografix.com/GPX/1/1" version="1.1">{}</gpx>'
WAYPOINTS = "".join(
    f'<wpt lat="{lat}" lon="{lon}"><ele>5</ele><name>n{lat}</name></wpt>'
    for lat, lon in ((0, 1), (2, 3), (4, 6))
)
KML = '<kml xmlns="http://www.opengis.net/kml/2.2"><Document>{}</Document></kml>'
PLACEMARKS = "".join(
    f"<Placemark><name>n{lat}</name><Point><coordinates>\n {lon},{lat},0 </coordinates></Point></Placemark>"
    for lat, lon in ((0, 1), (2, 3), (4, 6))
)
FEATURES = [
    json.dumps(
        {
            "type": "Feature",
            "properties": {"name": f"n{lat}"},
            "geometry": {"type": "Point", "coordinates": [lon, lat]},
        }
    )
    for lat, lon in ((0, 1), (2, 3), (4, 6))
]


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


def test_a_graph_names_its_attributes():
    networkx = pytest.importorskip("networkx")
    graph = networkx.Graph()
    graph.add_edge("a", "b", length=3, time=9)
    graph.add_edge("b", "c", length=4, time=9)
    graph.add_edge("c", "a", length=5, time=9)
    with pytest.raises(ValueError, match="it has 'length', 'time': weight= names the attribute"):
        read_cities(graph)
    assert read_cities(graph, weight="length").tour_length([0, 1, 2]) == 12
    with pytest.raises(ValueError, match="no number as its price"):
        read_cities(graph, weight="price")
    with pytest.raises(ValueError, match="metric has no effect on a graph"):
        read_cities(graph, metric="EXACT")


def test_workbooks(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in [["CityId", "x", "y"], [7, 0, 0], [8, 3, 0.5], [9, 3, "4,25"]]:
        book.active.append(row)
    book.save(tmp_path / "cities.xlsx")
    problem = load_tsp(tmp_path / "cities.xlsx")
    assert problem.positions.tolist() == [[0, 0], [3, 0.5], [3, 4.25]]
    assert problem.ids.tolist() == [7, 8, 9]
