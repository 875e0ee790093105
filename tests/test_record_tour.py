"""The tour of mona-lisa100K in `benchmarks/tours` has the length that README states."""

from __future__ import annotations

import lzma
import math
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
TOUR = ROOT / "benchmarks" / "tours" / "mona-lisa100K.tour.xz"
#: https://www.math.uwaterloo.ca/tsp/data/ml/monalisa.html
INSTANCE = ROOT.parent / "shared" / "record" / "mona-lisa100K.tsp"
N = 100_000


def numbers(text: str, section: str) -> list[list[int]]:
    """Return the whole numbers of the lines of a section."""
    lines = text.split(f"{section}\n")[1].splitlines()
    return [[int(word) for word in line.split()] for line in lines if re.fullmatch(r"[\d ]+", line)]


def tour() -> list[int]:
    return [city for (city,) in numbers(lzma.decompress(TOUR.read_bytes()).decode(), "TOUR_SECTION")]


def test_every_city_is_visited_once():
    assert sorted(tour()) == list(range(1, N + 1))
    assert TOUR.stat().st_size <= 300_000


def test_its_length_is_that_of_readme():
    """In whole numbers: the distance d is the square root of s rounded, so (2 d - 1)^2 <= 4 s < (2 d + 1)^2."""
    if not INSTANCE.is_file():
        pytest.skip(f"needs {INSTANCE}")
    at = {city: (x, y) for city, x, y in numbers(INSTANCE.read_text(), "NODE_COORD_SECTION")}
    length, cities = 0, tour()
    for a, b in zip(cities, [*cities[1:], cities[0]], strict=True):
        s = (at[a][0] - at[b][0]) ** 2 + (at[a][1] - at[b][1]) ** 2
        length += (math.isqrt(4 * s) + 1) // 2
    said = re.search(r"mona-lisa100K\b.*?\b(5,7\d\d,\d{3})\b", (ROOT / "README.md").read_text(), re.S)
    assert length == int(said[1].replace(",", ""))
