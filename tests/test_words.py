"""Words of the repository: plain technical English in comments, docstrings, messages and pages (CONTRIBUTING.md)."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
pytestmark = pytest.mark.static
#: words that hide a term of the field or make a sentence hard to read, and what to write
BANNED = {
    r"told": "evaluated, given, known from",
    r"at hand": "current, given",
    r"so many": "a number (n_...), several",
    r"nobody|no one": "no caller, not",
    r"whoever": "callers that",
    r"lest": "so that .. not",
    r"anew": "again",
    r"that which": "what, the one",
    r"comes? to be": "is made",
    r"made ready": "prepared",
}
#: docstrings begin with an imperative verb or a noun phrase
OPENINGS = ("Let ", "Whether ", "So ", "How ", "Which ", "What ")
#: (file, text that a line holds): where a banned word is a term, or part of a quotation
EXCEPTIONS: set[tuple[str, str]] = set()
FOLDERS = ("pymoo_gpuaco", "cuda_src", "tests", "benchmarks", "examples", "docs")
SUFFIXES = (".py", ".cu", ".cuh", ".h", ".md")


def files() -> list[Path]:
    """Sources and pages, except generated tables and this file."""
    return sorted(
        path
        for folder in FOLDERS
        for path in (ROOT / folder).rglob("*")
        if path.suffix in SUFFIXES and "generated" not in path.parts and path != Path(__file__)
    )


def banned_in(name: str, text: str) -> Iterator[str]:
    """Yield what is wrong with the words of a text, a line each."""
    for number, line in enumerate(text.splitlines(), 1):
        for word, instead in BANNED.items():
            found = re.search(rf"(?<![a-z])(?:{word.replace(' ', '[ _]')})(?![a-z])", line, re.IGNORECASE)
            if found and not any(name == file and part in line for file, part in EXCEPTIONS):
                yield f"{name}:{number}: {found[0]!r}, say: {instead}"


def openings_in(name: str, text: str) -> Iterator[str]:
    """Yield the docstrings of a source that begin with a banned word, a line each."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
            docstring = ast.get_docstring(node) or ""
            if docstring.startswith(OPENINGS):
                yield f"{name}:{getattr(node, 'lineno', 1)}: docstring begins with {docstring.split()[0]!r}"


def test_a_banned_word_is_found_in_a_name_too() -> None:
    for text in ("it is told", "def it_is_told()", "told_twice", "Anew:", "so_many = 1", "no one"):
        assert list(banned_in("a.py", text)), text
    for text in ("molest", "untold", "renewed", "so much"):
        assert not list(banned_in("a.py", text)), text


def test_no_banned_words() -> None:
    wrong = [
        line
        for path in files()
        for line in banned_in(path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8"))
    ]
    assert not wrong, "\n".join(wrong)


def test_docstrings_begin_with_a_verb_or_a_noun() -> None:
    wrong = [
        line
        for path in files()
        if path.suffix == ".py"
        for line in openings_in(path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8"))
    ]
    assert not wrong, "\n".join(wrong)
