"""Tables, files and objects as people have them: what each is read as."""

import io
import json
from types import SimpleNamespace

import numpy as np
import pytest

from pymoo_gpuaco import TSP, read_cities, solve

NAN = float("nan")
MUNICH = [48 + 8 / 60 + 14 / 3600, 11 + 34 / 60 + 30 / 3600]
GPX = "<gpx><{0}>{1}</{0}></gpx>"


def gpx(kind, point):
    return GPX.format(kind, "".join(f"<{point} lat='{i}' lon='2'/>" for i in range(3)))


@pytest.mark.parametrize(
    ("titles", "is_on_globe", "at"),
    [
        ("stop_id,stop_name,stop_lat,stop_lon,parent_station", True, (2, 3)),  # GTFS
        ("id,decimalLatitude,decimalLongitude,country,year", True, (1, 2)),  # Darwin Core
        ("id,POINT_X,POINT_Y,area,kind", False, (1, 2)),  # ArcGIS
        ("Ref,Val,PosX,PosY,Side", False, (2, 3)),  # KiCad
        ("Designator,Mid X,Mid Y,Ref X,Ref Y", False, (1, 2)),  # Altium
        ("Designator,Center-X(mm),Center-Y(mm),Layer,Rotation", False, (1, 2)),
        ("pickup_longitude,pickup_latitude,name,a,b", True, (1, 0)),
        ("lat,lon,dest_lat,dest_lon,name", True, (0, 1)),  # the plain titles come first
        ("easting,northing,name,a,b", False, (0, 1)),
        ("Rechtswert,Hochwert,name,a,b", False, (0, 1)),
        ("Ort,Breitengrad,Längengrad,a,b", True, (1, 2)),
        ("Ort,Laengengrad,Breitengrad,a,b", True, (2, 1)),
        ("Ort,geogr. Breite,geogr. Länge,a,b", True, (1, 2)),
        ("nombre,latitud,longitud,a,b", True, (1, 2)),
        ("nome,latitudine,longitudine,a,b", True, (1, 2)),
        ("naam,breedtegraad,lengtegraad,a,b", True, (1, 2)),
        ("cidade,latitude,longitude,a,b", True, (1, 2)),
        ("ville,GPS Latitude,GPS Longitude,a,b", True, (1, 2)),
        ("nazwa,szerokość geograficzna,długość geograficzna,a,b", True, (1, 2)),
        ("szerokość,długość,nazwa,a,b", True, (0, 1)),
    ],
)
def test_titles_of_coordinates(titles, is_on_globe, at):
    rows = [[10.25, 11.5, 12.75, 13.5, 14.25], [20.25, 21.5, 22.75, 23.5, 24.25], [1.5, 2.25, 3.25, 4.5, 5.5]]
    text = "\n".join([titles, *(",".join(map(str, row)) for row in rows)])
    problem = read_cities(io.StringIO(text))
    assert problem.metric_name == ("HAVERSINE" if is_on_globe else "EXACT")
    assert problem.positions.tolist() == [[row[c] for c in at] for row in rows]


def test_ids_and_names_of_gtfs():
    stops = "stop_id,stop_code,stop_name,stop_lat,stop_lon\nS1,7,Main,48.1,11.5\nN2,8,East,48.2,11.75\n"
    problem = read_cities(io.StringIO(stops))
    assert (problem.ids.tolist(), problem.names.tolist()) == (["S1", "N2"], ["Main", "East"])


@pytest.mark.parametrize(
    ("north", "east"),
    [
        ("48°08'14\"N", "11°34'30\"E"),
        ("48° 8′ 14″ N", "11° 34′ 30″ E"),
        ("48 08 14 N", "11 34 30 E"),
        ("N48°08'14\"", "E011°34'30\""),
        ("48º08’14”n", "11º34.5’e"),
        ("+48°08'14\"", "11°34'30''"),
        ("48°08'14,0\" N", "11,575° E"),
        (f"{MUNICH[0]:.9f}N", "11.575E"),
        (f"{MUNICH[0]:.9f}", "11 34.5 E"),
    ],
)
@pytest.mark.parametrize("titled", [True, False])
def test_degrees_minutes_and_seconds(north, east, titled):
    if titled or (north[0].isdigit() and "E" not in east[-1] + north):
        south = f"name;lat;lon\nA;{north};{east}\nB;1°30'S;2°15'W\n"
    elif "°" in north + east or "º" in north:
        south = f"A;{north};{east}\nB;1°30'S;2°15'W\n"
    else:
        south = f"A;{north};{east}\nB;1 30 S;2 15 W\n"
    problem = read_cities(io.StringIO(south))
    np.testing.assert_allclose(problem.positions, [MUNICH, [-1.5, -2.25]], atol=1e-9)
    assert problem.metric_name == "HAVERSINE"


@pytest.mark.parametrize(
    "cell", ["48°61'14\"N", "48°08'74\"N", "48.5°08'N", "-48°08'N", "11°34'30\"E", "48d08m", "N48°N", "91°N"]
)
def test_degrees_that_are_not_recognised_are_named(cell):
    with pytest.raises(ValueError, match=r"line 2: .*48 08 14 N|latitude must be in \[-90, 90\], got 91"):
        read_cities(io.StringIO(f"name;lat;lon\nA;{cell};11°E\nB;48°N;12°E\n"))


def test_rows_without_coordinates_are_named_or_left_out():
    table = "name,x,y\na,1,2\nb,,\nc,3,4\nd,5,\ne,,\nf,,\ng,0,9\n"
    with pytest.raises(
        ValueError, match=r"line 3: .*without coordinates: 4 \(line 3, line 5, line 6, \.\.\)"
    ):
        read_cities(io.StringIO(table))
    problem = read_cities(io.StringIO(table), skip_blank=True)
    assert problem.names.tolist() == ["a", "c", "g"]
    assert "left out: rows without coordinates: 4" in problem.read_as
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"x": [1, NAN, 3], "y": [1.0, 2, 4]}, index=["a", "b", "c"])
    assert read_cities(frame, skip_blank=True).names.tolist() == ["a", "c"]


FULL = [[0, 1, 3], [2, 0, 5], [4, 6, 0]]
HALF = [[0, 1, 3], [1, 0, 5], [3, 5, 0]]
PAIRS = {("a", "b"): 1, ("a", "c"): 3, ("b", "c"): 5}
TWICE = {pair: f"{distance},9" for pair, distance in PAIRS.items()}
BACK = {("b", "a"): 2, ("c", "a"): 4, ("c", "b"): 6}


def lines(pairs, titles="from,to,km"):
    return "\n".join([titles, *(f"{i},{j},{d}" for (i, j), d in pairs.items())])


@pytest.mark.parametrize(
    ("source", "options", "matrix"),
    [
        (lines(PAIRS | BACK), {}, FULL),
        (lines(PAIRS), {}, HALF),
        (lines(PAIRS, "origin_id,destination_id,travel time"), {}, HALF),
        (lines(PAIRS, "Source;Target;cost").replace(",", ";"), {}, HALF),
        (lines(PAIRS | {("a", "a"): 0, ("b", "a"): 1}), {"symmetric": True}, HALF),
        (lines(PAIRS | BACK | {("c", "b"): "inf"}), {}, [*FULL[:2], [4, np.inf, 0]]),
        (lines(PAIRS, "u,v,w"), {"columns": ["from", "to", "distance"]}, HALF),
        (lines(TWICE, "from,to,km,min"), {"columns": ["from", "to", "km", "-"]}, HALF),
        (PAIRS | BACK, {}, FULL),
        (PAIRS, {}, HALF),
        ("3\n0 1 3\n2 0 5\n4 6 0\n", {"matrix": True}, FULL),  # the first line counts the rows
    ],
)  # fmt: skip
def test_matrices_by_pairs(source, options, matrix):
    problem = read_cities(io.StringIO(source) if isinstance(source, str) else source, **options)
    assert problem.matrix.tolist() == matrix
    assert problem.names is None or problem.names.tolist() == ["a", "b", "c"]


def test_pairs_of_many_cities_are_refused_before_there_is_a_matrix():
    ring = "\n".join(["from,to,km", *(f"{i},{i + 1},1" for i in range(200_000))])
    with pytest.raises(ValueError, match="there is no distance from '0' to '2', one of 39999"):
        read_cities(io.StringIO(ring))


@pytest.mark.parametrize(
    ("pairs", "words"),
    [
        (PAIRS | {("b", "a"): 1}, "there is no distance from 'c' to 'a', one of 2 that are missing"),
        ({("a", "b"): 1, ("c", "a"): 2}, "there is no distance from 'c' to 'b', one of 2"),
        (PAIRS | {("a ", "b"): 2}, "line 5: a second distance from 'a' to 'b', 2 after 1"),
        (PAIRS | {("b", "a"): "far"}, "needs one column of distances, got none"),
        (TWICE, "got 'km' and 'time': columns="),
    ],
)
def test_pairs_that_make_no_matrix_are_named(pairs, words):
    titles = "from,to,km" + ",time" * (len(str(pairs["a", "b"])) > 1)
    with pytest.raises(ValueError, match=words):
        read_cities(io.StringIO(lines(pairs, titles)))


OVERPASS = [{"type": "node", "id": 5, "lat": 0, "lon": 2, "tags": {"name": "A"}}]
OVERPASS += [
    {"type": "way", "id": 6, "center": {"lat": 1, "lon": 2}},
    {"type": "node", "id": 7, "lat": 2, "lon": 2},
]
OSM = "<osm><node id='5' lat='0' lon='2'><tag k='name' v='A'/></node><node id='6' lat='1' lon='2'/></osm>"
XY = [{"name": "a", "x": 0, "y": 2}, {"name": "b", "x": 1, "y": 2}, {"name": "c", "x": 2, "y": 2}]


@pytest.mark.parametrize(
    ("source", "options"),
    [
        (XY, {}),
        (tuple(XY), {}),
        ([tuple(row.values()) for row in XY], {}),
        ([["name", "lat", "lon"], *(list(row.values()) for row in XY)], {}),
        ("\n".join(map(json.dumps, XY)), {}),
        (json.dumps({"version": 0.6, "elements": OVERPASS}), {}),
        (
            OSM.replace("</osm>", "<node id='7' lat='2' lon='2'/></osm>").replace(
                "<tag k='name' v='A'/>", ""
            ),
            {},
        ),
        ("3\n0 2\n1 2\n2 2\n", {}),
        (gpx("rte", "rtept"), {"points": True}),
        (gpx("trkseg", "trkpt"), {"points": True}),
        (
            "NAME x\nTYPE TSP\nDIMENSION 3\nEDGE_WEIGHT_TYPE EUC_2D\nNODE_COORD_SECTION\n1 0 2\n2 1 2\n3 2 2\n",
            {},
        ),
        (
            "NAME: x\nTYPE: TSP\nDIMENSION 3\nEDGE_WEIGHT_TYPE: EUC_2D\nNODE_COORD_SECTION\n1 0 2\n2 1 2\n3 2 2",
            {},
        ),
        ("name x y\na 0 2\nb 1 2\nc 2 2\n", {}),  # no TSPLIB
    ],
)
@pytest.mark.filterwarnings("ignore:metric EUC rounds")
def test_places(source, options):
    problem = read_cities(io.StringIO(source) if isinstance(source, str) else source, **options)
    assert problem.positions.tolist() == [[0, 2], [1, 2], [2, 2]]


def test_nodes_of_openstreetmap_without_tags_are_bends_of_ways():
    more = "<node id='8' lat='3' lon='2'><tag k='shop' v='books'/></node></osm>"
    assert read_cities(io.StringIO(OSM.replace("</osm>", more))).ids.tolist() == [5, 8]


@pytest.mark.parametrize(
    ("array", "options", "kind"),
    [
        (np.arange(8.0).reshape(4, 2), {}, "EXACT"),
        (np.arange(8).reshape(4, 2), {"metric": "HAVERSINE"}, "HAVERSINE"),
        (1.0 - np.eye(4), {}, "EXPLICIT"),
        (1.0 - np.eye(3), {"matrix": True}, "EXPLICIT"),
        (np.array([(1, 2.5), (3, 4.5)], [("lat", int), ("lon", float)]), {}, "HAVERSINE"),
        (1.0 - np.eye(3), {}, "3 x 3 numbers are three cities in space or a matrix"),
        (np.array([None]), {}, "numpy cannot read this array"),
    ],
)
def test_arrays_in_files(array, options, kind, tmp_path):
    np.save(tmp_path / "a.npy", array)
    if " " in kind:
        with pytest.raises(ValueError, match=kind):
            read_cities(tmp_path / "a.npy", **options)
    else:
        assert read_cities(tmp_path / "a.npy", **options).metric_name == kind


def test_tables_of_pandas(monkeypatch, tmp_path):
    pandas = pytest.importorskip("pandas")
    series = pandas.Series(PAIRS)
    for source in (series, series.to_frame("km"), series.rename_axis(["from", "to"]).reset_index(name="km")):
        assert read_cities(source).matrix.tolist() == HALF
    (tmp_path / "a.parquet").write_bytes(b"PAR1 and more")
    monkeypatch.setattr(pandas, "read_parquet", lambda file: pandas.DataFrame(XY))
    assert read_cities(tmp_path / "a.parquet").names.tolist() == ["a", "b", "c"]
    monkeypatch.delattr(pandas, "read_parquet")
    with pytest.raises(ValueError, match="pip install pandas pyarrow"):
        read_cities(tmp_path / "a.parquet")


def test_a_geodataframe_of_multipoints_of_one_point():
    pandas = pytest.importorskip("pandas")
    points = [SimpleNamespace(geom_type="Point", is_empty=False, x=float(i), y=2.0) for i in range(3)]
    multi = [SimpleNamespace(geom_type="MultiPoint", is_empty=False, geoms=[point]) for point in points]
    assert read_cities(pandas.DataFrame({"geometry": multi})).positions.tolist() == [[0, 2], [1, 2], [2, 2]]
    multi[1].geoms.append(points[0])
    with pytest.raises(ValueError, match="row 1: expected a Point"):
        read_cities(pandas.DataFrame({"geometry": multi}))


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (
            lambda: TSP([[0, 0], [1, 1]], metric=lambda a, b: 1.0),
            TypeError,
            r"write matrix=cdist\(coords, coords, ",
        ),
        (
            lambda: read_cities(io.StringIO(gpx("trkseg", "trkpt"))),
            ValueError,
            "a track, 3 points in order: points",
        ),
        (
            lambda: read_cities(io.StringIO(gpx("rte", "rtept"))),
            ValueError,
            "a route, 3 points in order: points=True",
        ),
        (
            lambda: read_cities(io.StringIO("x,y\n1,2\n"), points=True),
            ValueError,
            "points has no effect on a table",
        ),
        (lambda: read_cities({"a": 1}), TypeError, "source must be a path"),
        (lambda: solve({("a", "b"): 1, ("b", "a"): "x"}), ValueError, "needs one column of distances"),
    ],
)
def test_what_is_refused_with_the_next_step(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_solve_takes_them_all():
    assert solve(XY, seconds=1).length == 4
    assert solve(PAIRS, seconds=1).length == 9
