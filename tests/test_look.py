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
WELL |= {"cut": [], "overlapping": [], "drawings": [], "raw": 0, "wrong": 0, "hosts": []}


@pytest.mark.parametrize(
    ("found", "words"),
    [
        ({}, []),
        ({"outside": ["table: a b c"]}, ["leaves the page: table: a b c"]),
        ({"cut": ["cut: p: abc"]}, ["text cut: p: abc"]),
        ({"overlapping": ['"a" and "b"']}, ['text over text: "a" and "b"']),
        ({"drawings": ['x.svg: "a" leaves the picture']}, ['picture x.svg: "a" leaves the picture']),
        ({"sideways": True}, ["scrolls sideways as a whole"]),
        ({"images": ["x.png"]}, ["image missing: x.png"]),
        ({"raw": 2}, ["2 equations not typeset"]),
        ({"hosts": ["cdn.example"]}, ["asked of another host: cdn.example"]),
    ],
)
def test_what_was_found_becomes_words(look, found, words):
    assert look.faults({**WELL, **found}) == words


needs_a_browser = pytest.mark.skipif(
    not (
        os.environ.get("CHROME") or any(map(shutil.which, ("chromium", "chromium-browser", "google-chrome")))
    ),
    reason="neither Chromium nor Chrome is installed",
)


def faults_of(folder, body, files=()):
    """Return the output of the script for a site with one page, and its exit status."""
    for name, text in dict(files).items():
        (folder / name).write_text(text)
    # a font of one width for all letters, so that all machines break lines at the same places
    style = "body { margin: 0; font: 16px/1.5 monospace; }"
    page = f"<!doctype html><style>{style}</style><article>{body}</article>"
    (folder / "index.html").write_text(page)
    answer = subprocess.run(
        [sys.executable, SCRIPT, "--site", folder], capture_output=True, text=True, check=False, timeout=300
    )
    *lines, last = answer.stdout.splitlines()
    faults = [line.strip() for line in lines if line.startswith("    ")]
    assert last == f"{len(faults)} faults", answer.stderr
    return faults, answer.returncode


TABLE = "<table><tr><td style='min-width:900px'>wide</td></tr></table>"
LONG = "a_name_that_is_longer_than_a_telephone_is_wide()"


# Both widths are looked at: 1280, where the tables and LONG fit, and 390, where they do not.
@pytest.mark.slow
@needs_a_browser
@pytest.mark.parametrize(
    ("body", "faults"),
    [
        (TABLE, ["leaves the page: table: wide", "scrolls sideways as a whole"]),
        (f"<div style='overflow-x:auto'>{TABLE}</div>", []),
        (f"<pre style='overflow:auto'>{LONG}</pre>", [f"text cut until it is scrolled: pre: {LONG}"]),
        (f"<pre style='white-space:pre-wrap;overflow-wrap:anywhere'>{LONG}</pre>", []),
        (f"<p style='overflow:hidden'>{LONG}</p>", [f"text cut: p: {LONG}"]),
        (
            "<p style='overflow:hidden;height:20px;width:100px'>one two three four</p>",
            ["text cut below: p: one two three four"] * 2,
        ),
        ("<p style='width:60px'>one two_three</p>", ["text sticks out of its box: p: one two_three"] * 2),
        (
            "<p>first</p><p style='margin-top:-40px'>second</p>",
            ['text over text: "first" and "second"'] * 2,
        ),
        (
            "<div style='display:grid;grid-template-columns:30px 30px'><p>first</p><p>second</p></div>",
            [
                "text sticks out of its box: p: first",
                "text sticks out of its box: p: second",
                'text over text: "first" and "second"',
            ]
            * 2,
        ),
        # not seen, and pinned above what scrolls below it
        ("<p>first</p><p style='margin-top:-40px;visibility:hidden'>second</p>", []),
        ("<p>first</p><p style='position:sticky;margin-top:-40px'>second</p>", []),
        ("<img src='good.svg'>", []),
        ("<img src='left.svg'>", ['picture left.svg: "beyond" leaves the picture'] * 2),
        ("<img src='over.svg'>", ['picture over.svg: "one" and "two" overlap'] * 2),
    ],
)
def test_what_is_broken_is_found_and_what_is_well_is_not(tmp_path, body, faults):
    def svg(*texts):
        drawn = "".join(f"<text x='{x}' y='20'>{words}</text>" for x, words in texts)
        return f"<svg xmlns='http://www.w3.org/2000/svg' width='200' height='40'>{drawn}</svg>"

    drawings = {
        "good.svg": svg((0, "one"), (100, "two")),
        "left.svg": svg((0, "one"), (190, "beyond")),
        "over.svg": svg((0, "one"), (5, "two")),
    }
    assert faults_of(tmp_path, body, drawings) == (faults, 1 if faults else 0)
