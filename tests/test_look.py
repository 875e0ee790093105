"""The script that looks at the site finds what leaves a page, and nothing where all is well."""

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[1] / "docs" / "look.py"


@pytest.fixture(scope="module")
def look():
    spec = importlib.util.spec_from_file_location("look", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


WELL = {"height": 1, "sideways": False, "outside": [], "tables": 0, "scrolling": 0, "images": []}
WELL |= {"raw": 0, "wrong": 0, "hosts": []}


@pytest.mark.parametrize(
    ("found", "words"),
    [
        ({}, []),
        ({"outside": ["table: a b c"]}, ["leaves the page: table: a b c"]),
        ({"sideways": True}, ["scrolls sideways as a whole"]),
        ({"images": ["x.png"]}, ["image missing: x.png"]),
        ({"raw": 2}, ["2 equations not typeset"]),
        ({"hosts": ["cdn.example"]}, ["asked of another host: cdn.example"]),
    ],
)
def test_what_was_found_becomes_words(look, found, words):
    assert look.faults({**WELL, **found}) == words


@pytest.mark.slow
def test_a_wide_table_is_found_and_one_in_its_box_is_not(look, tmp_path):
    if not (os.environ.get("CHROME") or any(map(shutil.which, look.BROWSERS))):
        pytest.skip("neither Chromium nor Chrome is installed")
    table = "<table><tr><td style='min-width:900px'>wide</td></tr></table>"
    pages = {"bad": table, "good": f"<div style='overflow-x:auto'>{table}</div>"}
    for name, body in pages.items():
        (tmp_path / name).mkdir()
        text = f"<!doctype html><body style='margin:0'><article>{body}</article>"
        (tmp_path / name / "index.html").write_text(text)
    answer = subprocess.run(
        [sys.executable, SCRIPT, "--site", tmp_path], capture_output=True, text=True, check=False, timeout=300
    )
    lines = answer.stdout.splitlines()
    assert answer.returncode == 1, answer.stderr
    # at 1280 pixels the table fits; at 390 the bare one leaves the page and makes it scroll
    assert [line for line in lines if line.startswith("    ")] == [
        "    leaves the page: table: wide",
        "    scrolls sideways as a whole",
    ]
    assert lines[-1] == "2 faults"
