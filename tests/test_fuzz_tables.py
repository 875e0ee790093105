"""Drawn tables, whose numbers the oracle knows: each is read as it was written, or refused; none as another one."""

import io
import random
import re
import warnings

import numpy as np
import pytest

from pymoo_gpuaco import read_cities
from tests.fuzz import SEED, TIMES

ENCODINGS = ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "cp1252"]
SEPARATORS = [",", ";", "\t", "|", " ", ":"]
MARKS = [(".", ""), (",", ""), (".", ","), (",", "."), (",", "\u00a0"), (".", "'"), (",", " ")]
WORDS = [
    "a",
    "Köln",
    "St. Gall",
    "#12 Main St",
    "Main St. 1, Bonn",
    'say "hi"',
    "0:a",
    "12-14",
    "A;B",
    "x|y",
    "two\nlines",
]


def spelt(value, marks, digits, rng):
    """Return a number as people write it under marks."""
    decimal, thousands = marks
    text = f"{abs(value):.{digits}f}"
    whole, _, fraction = text.partition(".")
    if thousands and len(whole) > 3:
        head = len(whole) % 3
        whole = thousands.join(
            filter(None, [whole[:head], *(whole[i : i + 3] for i in range(head, len(whole), 3))])
        )
    if digits and rng.random() < 0.2:
        fraction = fraction.rstrip("0")
    return "-" * (value < 0) + whole + (decimal + fraction if fraction else "")


def only_grouped(cell):
    """Tell whether a number has one point, which groups thousands."""
    return re.fullmatch(r"-?\d+\.\d{3}", cell) is not None


def quoted(cell, separator, rng):
    """Return a cell as programs write it: in quotation marks where it must be, and now and then elsewhere."""
    special = any(sign in cell for sign in (separator, '"', "\n", "#")) or (
        separator == " " and "\u00a0" in cell
    )
    return '"' + cell.replace('"', '""') + '"' if special or rng.random() < 0.1 else cell


def value(rng, digits):
    scale = 10 ** rng.randint(0, 6)
    return round(rng.choice([1, 1, 1, -1]) * rng.random() * scale, digits)


def encoded(lines, rng):
    text = rng.choice(["\n", "\r\n"]).join(lines) + rng.choice(["", "\n"])
    encoding = rng.choice(ENCODINGS)
    try:
        return text.encode(encoding)
    except UnicodeEncodeError:
        return text.encode("utf-8")


def drawn_cities(rng):
    """Return the bytes of a table of cities and what it says: coordinates, names, ids."""
    n, separator, marks = rng.randint(3, 7), rng.choice(SEPARATORS), rng.choice(MARKS)
    digits, titled = rng.choice([0, 0, 1, 2, 3, 6]), rng.random() < 0.7
    coords = [[value(rng, digits), value(rng, digits)] for _ in range(n)]
    columns = {axis: [spelt(row[a], marks, digits, rng) for row in coords] for a, axis in enumerate("xy")}
    names = [f"{rng.choice(WORDS)} {i}" for i in range(n)] if rng.random() < 0.6 else None
    ids = rng.sample(range(-3, 2000), n) if titled and rng.random() < 0.5 else None
    if names:
        columns["name"] = names
    if ids:
        columns[rng.choice(["id", "CityId", "nr", ""])] = list(map(str, ids))
    if titled and rng.random() < 0.3:
        columns["demand"] = [spelt(value(rng, digits), marks, digits, rng) for _ in range(n)]
    order = rng.sample(list(columns), len(columns)) if titled else list(columns)
    if not titled and names and rng.random() < 0.5:
        order = ["name", "x", "y"]
    rows = [order] * titled + [[columns[title][i] for title in order] for i in range(n)]
    if marks == (",", ".") and all(map(only_grouped, columns["x"] + columns["y"])):
        return drawn_cities(rng)  # as they are, they are files of "%.3f"
    lines = [separator.join(quoted(cell, separator, rng) for cell in row) for row in rows]
    if rng.random() < 0.2:
        lines.insert(rng.randint(0, len(lines)), "# 1, 2; a comment")
    if rng.random() < 0.1 and separator != " ":
        lines.insert(0, f"sep={separator}")
    return encoded(lines, rng), (coords, names, ids)


def drawn_matrix(rng):
    """Return the bytes of a matrix and its numbers (n, n) without the diagonal."""
    n, separator, marks = rng.randint(3, 7), rng.choice(SEPARATORS[:5]), rng.choice(MARKS)
    digits = rng.choice([0, 0, 1, 2, 3])
    full = np.array([[abs(value(rng, digits)) or 1.0 for _ in range(n)] for _ in range(n)])
    if rng.random() < 0.5:
        full = np.triu(full, 1) + np.triu(full, 1).T
    cells = [[spelt(number, marks, digits, rng) for number in row] for row in full.tolist()]
    diagonal = rng.choice(["0", "0", "", spelt(9999, marks, 0, rng)] if separator != " " else ["0", "9999"])
    for i in range(n):
        cells[i][i] = diagonal
    half = rng.choice([None, None, None, "", "0"]) if separator != " " else None
    if half is not None:
        full = np.tril(full, -1) + np.tril(full, -1).T
        for i in range(n):
            cells[i][i + 1 :] = [half] * (n - i - 1)
    labels = rng.choice([None, [f"{rng.choice('abc')}{i}" for i in range(n)], rng.sample(range(2, 99), n)])
    if labels is not None:
        names = list(map(str, labels))
        cells = [["city", *names], *([name, *row] for name, row in zip(names, cells, strict=True))]
    inner = [cell for row in cells[labels is not None :] for cell in row[labels is not None :]]
    if marks == (",", ".") and all(only_grouped(cell) for cell in inner if cell):
        return drawn_matrix(rng)
    lines = [separator.join(quoted(cell, separator, rng) for cell in row) for row in cells]
    np.fill_diagonal(full, 0.0)
    return encoded(lines, rng), full


def read(data):
    """Return the problem, or None for a table that is refused."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return read_cities(io.BytesIO(data))
        except ValueError:
            return None


def test_no_coordinate_is_read_as_another_one():
    rng, good = random.Random(SEED), 0
    for _ in range(1500 * TIMES):
        data, (coords, names, ids) = drawn_cities(rng)
        problem = read(data)
        if problem is None:
            continue
        good += 1
        assert problem.matrix is None, data
        np.testing.assert_array_equal(problem.positions, coords, str(data))
        if names is not None:
            assert [str(name) for name in problem.names] == names, data
        if ids is not None:
            assert [str(own) for own in problem.ids] == list(map(str, ids)), data
    assert good > 1000 * TIMES


def test_no_distance_is_read_as_another_one():
    rng, good = random.Random(SEED), 0
    for _ in range(1000 * TIMES):
        data, full = drawn_matrix(rng)
        problem = read(data)
        if problem is None:
            continue
        good += 1
        assert problem.matrix is not None, data
        np.testing.assert_array_equal(problem.matrix, full, str(data))
    assert good > 500 * TIMES


@pytest.mark.parametrize("draw", [drawn_cities, drawn_matrix])
def test_what_is_broken_on_the_way_is_a_problem_or_a_value_error(draw):
    rng = random.Random(SEED)
    for _ in range(1000 * TIMES):
        data = bytearray(draw(rng)[0])
        for _ in range(rng.randint(1, 4)):
            at = rng.randrange(len(data))
            data[at : at + rng.randint(0, 3)] = rng.choice(
                [b"", b"\n", b'"', b",", b";", b".", b"\xff", b"0", b"sep=", b":"]
            )
            data = data or bytearray(b"0")
        problem = read(bytes(data))
        if problem is not None:
            numbers = problem.positions if problem.matrix is None else problem.matrix
            assert not np.isnan(numbers).any()
