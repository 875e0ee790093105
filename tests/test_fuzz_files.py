"""Files of a broken disk, an enemy or a careless program: each is a problem, or a ValueError in bounded memory."""

import gzip
import random
import tracemalloc

import numpy as np
import pytest

from pymoo_gpuaco.problems import TSP, load_tsp, read_cities, read_tour
from tests.fuzz import SEED, TIMES

COORDINATES = """NAME: t
COMMENT: five cities
TYPE: TSP
DIMENSION: 5
EDGE_WEIGHT_TYPE: EUC_2D
NODE_COORD_SECTION
1 0 0
2 3.5 0
3 3e1 4
4 -7 2
5 1 1
EOF
"""
WEIGHTS = """NAME: w
TYPE: ATSP
DIMENSION: 4
EDGE_WEIGHT_TYPE: EXPLICIT
EDGE_WEIGHT_FORMAT: FULL_MATRIX
EDGE_WEIGHT_SECTION
0 1 2 3
4 0 5 6 7
8 0 9
1 2 3 0
EOF
"""
TOUR = "NAME: t\nTYPE: TOUR\nDIMENSION: 5\nTOUR_SECTION\n3\n1\n2\n5\n4\n-1\nEOF\n"
PIECES = [
    "\n",
    " ",
    ":",
    "-1",
    "0",
    "99999999999",
    "1e400",
    "nan",
    "EOF",
    "\f",
    "\x85",
    "\u2028",
    "\r",
    "\0",
    "é",
]
PIECES += ["DIMENSION", "NODE_COORD_SECTION", "TYPE: TSP\n", "EXPLICIT", "2_0", "-", "1e-400", "COMMENT : "]


def mutated(text, rng):
    """A file with one to six things wrong."""
    data = text.encode()
    for _ in range(rng.randint(1, 6)):
        at, to = sorted(rng.randint(0, len(data)) for _ in range(2))
        way = rng.randrange(6)
        if way == 0:
            data = data[:at] + bytes([rng.randrange(256)]) + data[at + 1 :]
        elif way == 1:
            data = data[:at] + rng.choice(PIECES).encode() + data[at:]
        elif way == 2:
            data = data[:at] + data[to:]
        elif way == 3:
            data = data[:to] + data[at:to] + data[to:]
        elif way == 4:
            data = data[:at]
        else:
            lines = data.split(b"\n")
            rng.shuffle(lines)
            data = b"\n".join(lines)
    return gzip.compress(data)[: rng.choice([None, None, 40])] if rng.random() < 0.1 else data


ROUTES = {
    "tour": TOUR,
    "Concorde": "5\n1 3 4\n2 0\n",
    "CSV": 'stop,city,name,to_next\n1,3,a,1\n2,1,b,1\n3,2,"c, d",1\n',
    "JSON": '{"tour": [2, 0, 1], "length": 3.5}',
}
FILES = {"coordinates": COORDINATES, "weights": WEIGHTS, **ROUTES}


@pytest.mark.filterwarnings("ignore:.*ignored")  # keywords and tours that a file should not have
@pytest.mark.parametrize("text", FILES.values(), ids=FILES)
def test_a_mutated_file_is_a_problem_or_a_value_error(tmp_path, text):
    rng = random.Random(SEED)
    path = tmp_path / "t.tsp"
    good = 0
    for _ in range(700 * TIMES):
        path.write_bytes(mutated(text, rng))
        try:
            if text in ROUTES.values():
                tour = read_tour(path)
                assert sorted(tour) == list(range(len(tour)))
            else:
                problem = read_cities(path)
                assert isinstance(problem, TSP)
                length = problem.tour_length(np.arange(problem.n_cities))
                assert 0.0 <= length < np.inf
            good += 1
        except ValueError as error:
            assert str(path) in str(error)  # noqa: PT017 - any other error is the failure
    assert 0 < good < 700 * TIMES


def most_memory(action):
    """Peak memory in bytes that Python and numpy take for an action."""
    tracemalloc.start()
    try:
        action()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def refused(path, message):
    def read():
        with pytest.raises(ValueError, match=message):
            read_cities(path)

    return read


def test_a_gzip_bomb_is_refused_before_it_is_unpacked(tmp_path):
    path = tmp_path / "bomb.tsp.gz"
    bomb = gzip.compress(COORDINATES.encode()[:-4] + b"\n" * 100_000_000, 6)
    path.write_bytes(bomb)
    assert len(bomb) < 120_000
    assert most_memory(refused(path, r"may hold \d+ MB at most")) < 250e6


def test_what_is_long_and_honest_is_read(tmp_path):
    n = 30_000
    points = np.random.default_rng(0).random((n, 2)) * 1e6
    lines = "\n".join(f"{i + 1:<30} {x:<60.17g} {y:<60.17g}" for i, (x, y) in enumerate(points))
    text = COORDINATES.split("1 0 0")[0].replace("DIMENSION: 5", f"DIMENSION: {n}") + lines + "\nEOF\n"
    path = tmp_path / "long.tsp.gz"
    path.write_bytes(gzip.compress(text.encode()))
    assert np.array_equal(read_cities(path).positions, points)


def test_a_matrix_of_equal_weights_packs_well_and_is_read(tmp_path):
    n = 600
    text = WEIGHTS.split("EDGE_WEIGHT_SECTION")[0].replace("DIMENSION: 4", f"DIMENSION: {n}")
    path = tmp_path / "ones.atsp.gz"
    path.write_bytes(gzip.compress((text + "EDGE_WEIGHT_SECTION\n" + "1 " * (n * n)).encode(), 9))
    assert read_cities(path).tour_length(np.arange(n)) == n


@pytest.mark.parametrize("sign", ["\x85", "\f", "\v", "\u2028", "\u2029", "\x1c"])
@pytest.mark.parametrize("encoding", ["utf-8", "latin-1"])
def test_only_line_ends_end_a_line(tmp_path, sign, encoding):
    try:
        data = COORDINATES.replace("five cities", f"five{sign}5 cities").encode(encoding)
    except UnicodeEncodeError:
        pytest.skip("latin-1 has no such character")
    path = tmp_path / "t.tsp"
    path.write_bytes(data)
    assert read_cities(path).n_cities == 5


@pytest.mark.parametrize("value", ["~nosuchuser/x", "~", "\x01", "/dev/null"])
def test_a_data_folder_that_makes_no_sense_is_passed_over(monkeypatch, value):
    monkeypatch.setenv("PYMOO_GPUACO_DATA", value)
    with pytest.raises(ValueError, match="unknown instance 'nosuch'"):
        load_tsp("nosuch")
