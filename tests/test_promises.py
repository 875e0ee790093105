"""The page "What you can rely on" names tests that there are."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "promises.md"


def test_every_test_that_a_promise_names_is_there():
    if not PAGE.is_file():
        pytest.skip("no docs beside the tests")
    rows = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    promises = [row for row in rows if "`tests/" in row]
    assert len(promises) >= 15
    for row in promises:
        file = ""
        for name in re.findall(r"`((?:tests/\w+\.py)?(?:::\w+)?)`", row.rsplit("|", 2)[1]):
            file, _, test = (name if name.startswith("tests/") else file + name).partition("::")
            text = (ROOT / file).read_text(encoding="utf-8")
            assert not test or f"def {test}(" in text, name
