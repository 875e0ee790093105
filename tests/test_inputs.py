"""Every input that was tried, and what happens: the value that was written, or an error that names what decides."""

import gzip
import io
import json

import numpy as np
import pytest

from pymoo_gpuaco import read_cities
from pymoo_gpuaco.problems import columns as columns_module
from pymoo_gpuaco.problems import load_tsp

INF = np.inf
FOUR = [[0, 500, 1900, 700], [500, 0, 600, 1800], [1900, 600, 0, 800], [700, 1800, 800, 0]]
HALF = [[0, 3, 4, 2], [3, 0, 5, 6], [4, 5, 0, 1], [2, 6, 1, 0]]
MATRIX = [[0, 1, 2, 3], [4, 0, 5, 6], [7, 8, 0, 9], [1, 2, 3, 0]]
GAPS = [[0, 3, INF, 5], [3, 0, 4, INF], [INF, 4, 0, 6], [5, INF, 6, 0]]
POINTS = [[0.5, 1.25], [3, 0], [3.5, 4.75], [0, 4]]
SQUARE = [[0, 0], [3, 0], [3, 4], [0, 4]]


def case(text, numbers, ids=None, names=None, measured=None, **options):
    """Written input, the coordinates or the matrix, ids, names and metric, and options of `read_cities`."""
    measured = measured or ("EXPLICIT" if len(numbers[0]) == len(numbers) else "EXACT")
    return text, options, numbers, ids, names, measured


def globe(text, ids=None):
    """Four places a degree apart, named a to d."""
    return case(text, [[0, 0], [0, 1], [1, 1], [1, 0]], ids, list("abcd"), "HAVERSINE")


def question(text, words, **options):
    return text, options, words


READ = {
    # tables as programs write them
    "bare": case("0,0\n3,0\n3,4\n0,4\n", SQUARE),
    "titles, no last line break": case("x,y\n0,0\n3,0\n3,4\n0,4", SQUARE),
    "a spreadsheet's mark and order": case(
        "\ufeffname;Y;X\r\na;0;0\r\nb;0;3\r\nc;4;3\r\nd;4;0\r\n", SQUARE, names=list("abcd")
    ),
    "comments and blanks": case("# four corners\n0 0\n\n3 0\n3  4\n0 4\n", SQUARE),
    "quoted numbers between tabs": case('"x"\t"y"\n"0"\t"0"\n3\t0\n3\t4e0\n0\t4\n', SQUARE),
    "titles in a comment, as numpy.savetxt writes them": case("# y,x\n0,0\n0,3\n4,3\n4,0\n", SQUARE),
    "degrees in a comment": case(
        "# lon lat\n0 0\n1 0\n1 1\n", [[0, 0], [0, 1], [1, 1]], measured="HAVERSINE"
    ),
    "titles below a comment of titles": case("# y,x\nx,y\n0,0\n3,0\n3,4\n0,4\n", SQUARE),
    "a column of ids titled #": case(
        "#,x,y\n7,0,0\n8,3,0\n9,3,4\n5,0,4\n", SQUARE, ids=[7, 8, 9, 5], names=list("7895")
    ),
    "thousands grouped by blanks, quoted between blanks": case(
        '"1 200" 0\n3 "4 000"\n5 6\n', [[1200, 0], [3, 4000], [5, 6]]
    ),
    "three axes": case(
        "x,y,z\n0,0,0\n3,4,0\n0,0,0.5\n", [[0, 0, 0], [3, 4, 0], [0, 0, 0.5]], measured="EXACT"
    ),
    "names before": case("a,0,0\nb,3,0\nc,3,4\n", SQUARE[:3], names=list("abc")),
    "names after": case("0 0 a\n3 0 b\n3 4 c\n", SQUARE[:3], names=list("abc")),
    "names after decimal commas": case("0,0;0,0;a\n3,0;0,0;b\n3,0;4,0;c", SQUARE[:3], names=list("abc")),
    "names with separators, line breaks and quotation marks": case(
        'name,x,y\n"Main St. 1,\nKöln",0,0\n"say ""hi""",3,0\nc,3,4\n',
        SQUARE[:3],
        names=["Main St. 1,\nKöln", 'say "hi"', "c"],
    ),
    "bars in the names": case("1|a,0,0\n2|b,3,0\n3|c,3,4\n", SQUARE[:3], names=["1|a", "2|b", "3|c"]),
    # places on the globe
    "degrees": globe("name,lat,lon\na,0,0\nb,0,1\nc,1,1\nd,1,0\n"),
    "degrees, longitude first": globe(
        "Longitude;Latitude;City\n0,0;0,0;a\n1,0;0,0;b\n1,0;1,0;c\n0,0;1,0;d\n"
    ),
    "degrees between bars": globe("id|lng|lat|note\na|0|0|x\nb|1|0|x\nc|1|1|y\nd|0|1|y\n", ids=list("abcd")),
    "degrees between blanks": globe('"lat" "long" "label"\n0 0 "a"\n0 1 "b"\n1 1 "c"\n1   0 "d"\n'),
    "degrees between colons": globe("lat:lon:where\n0:0:a\n0:1:b\n1:1:c\n1:0:d\n"),
    "pairs, said to be degrees": case(
        "0 0\n0 90\n90 0\n", [[0, 0], [0, 90], [90, 0]], measured="HAVERSINE", metric="HAVERSINE"
    ),
    "x is the longitude": case(
        "x,y\n0,0\n0,90\n170,0\n", [[0, 0], [90, 0], [0, 170]], measured="HAVERSINE", metric="HAVERSINE"
    ),
    "degrees, said to be a plane": case(
        "lat,lon\n0,0\n0,90\n50,0\n", [[0, 0], [90, 0], [0, 50]], metric="EXACT"
    ),
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
    "a first column of any title": case(
        "grid,x,y,note\n7,0,0,p\n8,3,0,q\n9,3,4,r\n", SQUARE[:3], ids=[7, 8, 9], names=list("pqr")
    ),
    "codes with zeros in front": case(
        "x,y,parcel\n0,0,007\n3,0,070\n3,4,700\n",
        SQUARE[:3],
        ids=["007", "070", "700"],
        names=["007", "070", "700"],
    ),
    "customers beside notes that repeat": case(
        "x,y,customer,note\n0,0,101,\n3,0,102,fragile\n3,4,103,\n",
        SQUARE[:3],
        ids=[101, 102, 103],
        names=["", "fragile", ""],
    ),
    "demands beside names": case(
        "name,x,y,demand\na,0,0,7\nb,3,0,8\nc,3,4,9\n", SQUARE[:3], names=list("abc")
    ),
    "demands beside towns": case(
        "town,x,y,demand\na,0,0,7\nb,3,0,8\nc,3,4,9\n", SQUARE[:3], names=list("abc")
    ),
    "heights are no labels": case("x,y,height\n0,0,7.5\n3,0,8\n3,4,9\n", SQUARE[:3]),
    "equal numbers are no labels": case("kind,x,y\n7,0,0\n7,3,0\n9,3,4\n", SQUARE[:3]),
    "columns that the user ignores": case(
        "7,0,0,a\n8,3,0,b\n9,3,4,c\n", SQUARE[:3], columns=["-", "x", "y", "-"]
    ),
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
    "bare matrix": case("0 1 2 3\n4 0 5 6\n7 8 0 9\n1 2 3 0\n", MATRIX),
    "names before a matrix": case("a,0,1,2,3\nb,4,0,5,6\nc,7,8,0,9\nd,1,2,3,0\n", MATRIX, names=list("abcd")),
    "names around a matrix": case(
        ",a,b,c,d\na,0,1,2,3\nb,4,0,5,6\nc,7,8,0,9\nd,1,2,3,0\n", MATRIX, names=list("abcd")
    ),
    "a matrix that pandas wrote": case(
        ",0,1,2,3\n0,0,1,2,3\n1,4,0,5,6\n2,7,8,0,9\n3,1,2,3,0\n", MATRIX, ids=[0, 1, 2, 3], names=list("0123")
    ),
    "decimal commas in a matrix": case("0,0;1,0;2;3\n4;0;5;6\n7;8;0;9\n1;2;3;0\n", MATRIX),
    "three rows, said to be a matrix": case(
        "0 1 2\n3 0 4\n5 6 0\n", [[0, 1, 2], [3, 0, 4], [5, 6, 0]], matrix=True
    ),
    "three rows, said to be cities": case(
        "0 1 2\n3 0 4\n5 6 0\n", [[0, 1, 2], [3, 0, 4], [5, 6, 0]], measured="EUC", metric="EUC_3D"
    ),
    "gaps": case("0,3,,5\n3,0,4,\n,4,0,6\n5,,6,0\n", GAPS),
    "gaps as words": case("0,3,inf,5\n3,0,4,INF\nInfinity,4,0,6\n5,inf,6,0\n", GAPS),
    "gaps as words between blanks": case("0 3 inf 5\n3 0 4 inf\ninf 4 0 6\n5 inf 6 0\n", GAPS),
    "gaps and no diagonal": case("\t3\t\t5\n3\t\t4\t\n\t4\t\t6\n5\t\t6\t\n", GAPS),
    "gaps between decimal commas": case(";3,0;;5,0\n3,0;;4,0;\n;4,0;;6,0\n5,0;;6,0;\n", GAPS),
    "gaps with names": case(
        "from,a,b,c,d\na,0,3,,5\nb,3,0,4,\nc,,4,0,6\nd,5,,6,0\n", GAPS, names=list("abcd")
    ),
    "gaps that pandas wrote": case(
        ",0,1,2,3\n0,0,3,,5\n1,3,0,4,\n2,,4,0,6\n3,5,,6,0\n", GAPS, ids=[0, 1, 2, 3], names=list("0123")
    ),
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
    "large numbers with the digits of a double": case(
        "0,1e23,1.234567890123456690e+23\n9007199254740994.0,0,6\n7,8,0\n",
        [[0, 1e23, 1.2345678901234567e23], [9007199254740994, 0, 6], [7, 8, 0]],
        matrix=True,
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
}

QUESTIONS = {
    "nothing": question("", "no coordinates found"),
    "city numbers are no coordinates": question(
        "1,0,0\n2,3,0\n", "3 columns of numbers and no line of titles"
    ),
    "other titles": question(
        "a,b\n0,0\n", "expected columns x and y, or lat and lon, .* the titles are 'a, b'"
    ),
    "a word for a number": question("0,0\n3,zero\n", "line 2: expected 2 finite numbers, got '3, zero'"),
    "no number": question("0,0\n3,nan\n", "line 2: expected 2 finite numbers"),
    "a gap in a column": question("x,y\n0,0\n3,\n4,4\n5,5\n", "line 3: expected 2 finite numbers, got '3, '"),
    "a short row": question("x,y\n0,0\n3\n", "line 3: expected 2 cells as in the first line, got 1: '3'"),
    "a lower triangle": question("0\n3 0\n4 5 0\n2 6 1 0\n", "write all cells, as in 0,, and 3,0,"),
    "a lower triangle without its diagonal": question("3\n4,5\n2,6,1\n", "the rows are a triangle"),
    "an upper triangle": question("0,3,4\n0,5\n0\n", "the rows are a triangle"),
    "a triangle with names": question("a,0\nb,3,0\nc,4,5,0\n", "the rows are a triangle"),
    "a triangle with titles": question("from,a,b,c\na,0\nb,3,0\nc,4,5,0\n", "the rows are a triangle"),
    "a triangle of JSON": question("[[0],[3,0],[4,5,0]]", "the rows are a triangle"),
    "one column": question("x\n1\n", "at least two columns"),
    "places on the globe and in a plane": question("x,y,lat,lon\n1,2,3,4\n", "give a metric"),
    "three rows of three numbers": question(
        "1,2,3\n4,5,6\n7,8,9\n", "three cities in space or a matrix: matrix=True .--matrix .* titles x, y, z"
    ),
    "pairs, said to be a matrix": question(
        "0 0\n0 90\n90 0\n", "as many columns of numbers as rows, got 2 and 3", matrix=True
    ),
    "a latitude of 91": question(
        "lat,lon\n91,0\n0,0\n1,1\n", r"latitude must be in \[-90, 90\], got 91 at city 0"
    ),
    "a coordinate of 1e16": question("x,y\n0,0\n1,1\n1e16,2\n", r"at most 1e\+15 in magnitude"),
    "binary": question("x,y\0\n", "binary"),
    "a negative infinity": question(
        "0,1,-inf\n1,0,2\n2,3,0\n", "line 1, from 1 to 3: expected a distance, got '-inf'", matrix=True
    ),
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
        "0,3,4,2\n0,0,5,6\n0,0,0,1\n0,0,0,0\n", "upper half and zeros in the other: symmetric=True"
    ),
    "zero half, lower": question(",a,b,c\na,0,0,0\nb,3,0,0\nc,4,5,0\n", "lower half and zeros"),
    "one blank opposite a number": question(
        "0,3,,2\n3,0,5,6\n4,5,0,1\n2,6,1,0\n",
        "from city 0 to city 2 .* is blank, and the reverse is 4: symmetric=True",
    ),
    "symmetric, which it is not": question(
        "0,3,4,2\n9,0,5,6\n4,5,0,1\n2,6,1,0\n",
        "not symmetric: it is 3 from city 0 to city 1, and 9 back",
        symmetric=True,
    ),
    "as many columns as rows": question(
        "1,0,0,10\n2,30,0,15\n3,30,40,5\n4,0,40,20\n", "matrix=True .--matrix. or titles .columns="
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
    "another kind of XML": question(
        "<html><body>1,2</body></html>", "neither GPX, KML nor OpenStreetMap: 'html'"
    ),
    "an archive": question(b"PK\x03\x04 nothing", "ZIP archive: unpack it"),
}


def of(content):
    return io.BytesIO(content) if isinstance(content, bytes) else io.StringIO(content)


@pytest.mark.parametrize("case", READ)
def test_inputs_are_read_as_they_were_written(case):
    content, options, numbers, ids, names, measured = READ[case]
    problem = read_cities(of(content), **options)
    read = problem.matrix if problem.coords is None else problem.coords[:, : len(numbers[0])]
    read = problem.positions if measured == "HAVERSINE" else read
    assert problem.metric.name == measured
    np.testing.assert_array_equal(read, numbers)
    assert (None if problem.ids is None else problem.ids.tolist()) == ids
    assert (None if problem.names is None else problem.names.tolist()) == names
    assert f"{problem.n_cities} cities" in problem.read_as


@pytest.mark.parametrize("case", QUESTIONS)
def test_what_may_mean_two_things_is_refused_with_the_argument_that_decides(case):
    content, options, words = QUESTIONS[case]
    with pytest.raises(ValueError, match=words):
        read_cities(of(content), **options)


for number in ("9007199254740993", "9007199254740993.0", "9.007199254740993e15"):
    QUESTIONS |= {
        f"{number} in a table": question(f"0,{number}\n70,0\n", f"exactly .* got {number}", matrix=True),
        f"{number} in JSON": question(
            f"[[0,{number},7,9],[1,0,2,3],[1,2,0,3],[1,2,3,0]]", "a double represents exactly"
        ),
    }
QUESTIONS |= {
    "1e-400 as a coordinate": question(
        "x,y\n0,0\n1e-400,0\n", "line 3: expected 2 finite numbers, got '1e-400, 0'"
    ),
    "1e-400 as a distance": question(
        "0,1e-400\n2,0\n", "from 1 to 2: expected a distance, got '1e-400'", matrix=True
    ),
    "1e-400 in JSON": question(
        "[[0,1e-400,7,9],[1,0,2,3],[1,2,0,3],[1,2,3,0]]", "row 0, column 1 .* expected"
    ),
    "1e400 in JSON": question("[[0,1e400,7,9],[1,0,2,3],[1,2,0,3],[1,2,3,0]]", "row 0, column 1 .* expected"),
}

WARNED = {
    "x,y\n13.405,52.52\n9.993,53.551\n11.576,48.137\n": "look like degrees",
    "52.52 13.405\n53.551 9.993\n48.137 11.576\n": "look like degrees",
    "x,y\n13.4,52.52\n9.99,53.55\n11.58,48.14\n": "",  # two decimals
    "x,y\n0.405,0.521\n0.993,0.551\n0.576,0.137\n": "",  # a unit square
    "x,y\n134.051,152.521\n99.931,53.551\n1.576,48.137\n": "",  # no latitude
    "lat,lon\n13.405,52.52\n9.993,53.551\n11.576,48.137\n": "",
    "0,1\n0.5,0.25\n1.5,2.5\n3.0,4.0\n": "first line, 0, 1",  # DataFrame(c).to_csv(index=False)
    "0;1;2\na;0;0\nb;3;0\nc;3;4\n": "first line, 0, 1",
    "x,y\n0,1\n3,0\n3,4\n": "",
    "0.0,1.0\n3,0\n3,4\n": "",
    "3,0\n0,1\n3,4\n": "",
    "0,1,2,3\n1,0,4,5\n2,4,0,6\n3,5,6,0\n": "",  # a matrix
}
READ_AS_CITIES = {
    "4 2\n0 0\n3 0\n3 4\n0 4\n": "the first row, 4, 2, is read as a city",
    "4 4\n0 0\n3 0\n3 4\n0 4\n": "the first row, 4, 4, is read as a city",
    "[[4,2],[0,0],[3,0],[3,4],[0,4]]": "the first row, 4, 2, is read as a city",
    "4 0\n0 0\n3 0\n3 4\n0 4\n": "",
    "x y\n4 2\n0 0\n3 0\n3 4\n0 4\n": "",
    "2 2\n0 0\n3 0\n3 4\n0 4\n": "",
    "name,x,y\na,0,0\nb,3,0\nc,3,4\nTotal,6,4\n": "the last row, Total, is read as a city",
    "id,x,y\n1,0,0\n2,3,0\n3,3,4\nGrand total,6,4\n": "the last row, Grand total, is read as a city",
    ",a,b,c,Sum\na,0,1,2,3\nb,4,0,5,9\nc,7,8,0,15\nSum,11,9,7,27\n": "the last row, Sum, is read as a city",
    "name,x,y\nTotal,6,4\na,0,0\nb,3,0\nc,3,4\n": "",
    "08:30:00 1 2\n08:45:00 3 4\n09:00:00 7 6\n": "times such as 08:30:00 are read as names",
    "08:30,1,2\n08:45,3,4\n09:00,7,6\n": "times such as 08:30 are read as names",
    "opens,x,y\n8:30,1,2\n8:45,3,4\n9:00,7,6\n": "times such as 8:30 are read as names",
    "id,x,y,opens\n1,1,2,8:30\n2,3,4,8:45\n3,7,6,9:00\n": "",  # ignored, as the header says
}


@pytest.mark.parametrize("text", READ_AS_CITIES)
def test_counts_totals_and_times_among_the_cities_are_warned_of(text, recwarn):
    read_cities(io.StringIO(text))
    assert [READ_AS_CITIES[text] in str(one.message) for one in recwarn] == [True] * bool(
        READ_AS_CITIES[text]
    )


def test_the_header_names_the_column_of_any_title_that_labels_the_cities():
    problem = read_cities(io.StringIO("customer,x,y\n101,0,0\n102,3,0\n103,3,4\n"))
    assert problem.read_as == "id (customer), x, y; 3 cities; separated by commas"
    assert problem.city("102") == 1


def test_columns_cost_linear_time(monkeypatch):
    """Each label is compared with the titles once, not with each title."""
    looked = []
    monkeypatch.setattr(columns_module, "str", lambda cell: looked.append(0) or str(cell), raising=False)
    for width in (100, 200):
        text = "\n".join(
            [
                ",".join(f"c{c}" for c in range(width)) + ",x,y",
                *[",".join(["5"] * width) + f",{r},{r * r}" for r in range(3)],
            ]
        )
        looked.append(0)
        before = len(looked)
        read_cities(io.StringIO(text))
        assert len(looked) - before < 20 * width


@pytest.mark.parametrize("text", WARNED)
def test_degrees_and_numbered_columns_are_warned_of_unless_a_metric_is_given(tmp_path, text, recwarn):
    path = tmp_path / "cities.csv"
    path.write_text(text)
    load_tsp(path)
    assert [WARNED[text] in str(one.message) for one in recwarn.list] == [True] * bool(WARNED[text])
    recwarn.clear()
    if WARNED[text]:
        load_tsp(path, metric="EXACT")
        assert not recwarn.list


def test_a_line_left_out_among_the_rows_is_reported():
    text = "# cities\nname,x,y\n#12 Main St,9,9\nb,3,0\nc,3,4\n"
    assert read_cities(io.StringIO(text)).read_as.startswith(
        "name, x, y; 2 cities; lines left out that begin with #: 1"
    )


def test_messages_begin_with_the_file(tmp_path):
    path = tmp_path / "cities.csv"
    for text in ("x,y\n", "0,0\n3,zero\n", "x,y\n0,0\n1,1\n1e16,2\n"):
        path.write_text(text)
        with pytest.raises(ValueError, match=rf"^{path}: "):
            load_tsp(path)


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
