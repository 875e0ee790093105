"""Numbers in the cells of tables: which texts are one, and what they are under the marks of a table."""

from __future__ import annotations

import pytest

from pymoo_gpuaco.problems.cells import Marks, is_number, without_marks


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        ("1 234", True),
        ("12 345 678", True),
        ("-1'234", True),
        ("1 234,5", True),
        ("1 234 567.", True),
        ("0 123", False),  # thousands begin with no zero
        ("1234 567", False),  # groups have three digits, the first one at most three
        ("1 23", False),
        ("1 2345", False),
        ("1 234'567", False),  # one separator
        ("1 234,5,6", False),  # one decimal mark
        ("1.234.567,8", True),
        ("1.234.567.8", False),  # the decimal mark is another one
        ("1,234,567.8", True),
        ("1 234e5", False),
    ],
)
def test_thousands_are_grouped_by_one_mark_and_in_threes(cell, expected):
    assert is_number(cell) == expected


@pytest.mark.parametrize(
    ("cell", "decimal", "thousands", "expected"),
    [
        ("1.234", ".", "", "1.234"),
        ("1.234", ",", ".", "1234"),
        ("1.234,5", ",", ".", "1234.5"),
        ("1 234 567,25", ",", " ", "1234567.25"),
        ("1 234", ".", "", None),  # blanks group nothing in this table
        ("1,5", ".", "", None),
        ("\u2212" + "7", ".", "", "-7"),
        (3.5, ",", ".", 3.5),
    ],
)
def test_a_cell_is_read_under_the_marks_of_its_table(cell, decimal, thousands, expected):
    assert without_marks(cell, Marks(decimal, thousands)) == expected
