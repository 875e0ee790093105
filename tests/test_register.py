"""Measured numbers: pages take them from results, and the register says which results still hold."""

from __future__ import annotations

import importlib.util
import re
import subprocess
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[1]
pytestmark = pytest.mark.static
#: lines that may hold a number with a unit: sizes, defaults and limits of the package, and sourced figures of others
REVIEWED = ROOT / "tests" / "numbers_in_pages.txt"
MOST_REVIEWED = 30
_UNITS = r"%|percent|s|ms|us|seconds?|minutes?|hours?|times|[kMG]B|/s|a second"
_MEASURED = re.compile(rf"\d[\d.,]* ?(?:{_UNITS})(?![\w/])")
_GENERATED = re.compile(r"<!-- ([\w-]+)(?:: \w+)? -->.*?<!-- /\1 -->", re.DOTALL)
_CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)


def numbers_in(text: str) -> list[str]:
    """Return the lines of a page with a digit and a unit outside generated blocks and code."""
    rest = text
    for part in (_GENERATED, _CODE):
        rest = part.sub(lambda found: "\n" * found[0].count("\n"), rest)
    lines = zip(text.splitlines(), rest.splitlines(), strict=True)
    return [" ".join(line.split()) for line, searched in lines if _MEASURED.search(searched)]


def test_numbers_are_found_outside_code_and_generated_blocks() -> None:
    text = "takes 3 s\n`5 s`\n<!-- gap -->\n1 %\n<!-- /gap -->\n```\n2 ms\n```\n3 GB more\n5 cities, 2 sets\n7.5 T/s"
    assert numbers_in(text) == ["takes 3 s", "3 GB more"]
    assert numbers_in("0.22 % of it") == ["0.22 % of it"]


def test_pages_take_measured_numbers_from_results() -> None:
    pages = [
        ROOT / "README.md",
        *(path for path in (ROOT / "docs").rglob("*.md") if "generated" not in path.parts),
    ]
    found = {line for page in pages for line in numbers_in(page.read_text(encoding="utf-8"))}
    reviewed = set(REVIEWED.read_text(encoding="utf-8").splitlines())
    assert not found - reviewed, f"take these from a result, or add them to {REVIEWED.name}"
    assert not reviewed - found, "no page has these"
    assert len(reviewed) <= MOST_REVIEWED


@pytest.fixture(scope="module")
def register() -> ModuleType:
    spec = importlib.util.spec_from_file_location("register", ROOT / "benchmarks" / "register.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_result_has_a_script_in_the_register(register: ModuleType) -> None:
    rows = register.register()
    assert {row.name for row in rows} == {path.stem for path in register.RESULTS.glob("*.json")}
    for beginning in register.HEADLINE:
        assert any(row.name.startswith(beginning) for row in rows), beginning


@pytest.mark.needs_build
def test_measured_paths_exist(register: ModuleType) -> None:
    for script, paths in register.MEASURES.items():
        assert (ROOT / "benchmarks" / f"{script}.py").is_file(), script
        for path in paths:
            assert (ROOT / path).exists(), (script, path)


def test_later_commits_count_those_that_changed_a_path(
    register: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def git(*arguments: str) -> str:
        given = ("git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b", *arguments)
        return subprocess.run(given, capture_output=True, text=True, check=True).stdout.strip()

    git("init", "-q")
    commits = []
    for number, name in enumerate(["kernel", "page", "kernel", "kernel"]):
        (tmp_path / name).write_text(str(number), encoding="utf-8")
        git("add", ".")
        git("commit", "-q", "-m", name)
        commits.append(git("rev-parse", "HEAD"))
    monkeypatch.setattr(register, "ROOT", tmp_path)
    assert [register.later_commits(commit, ("kernel",)) for commit in commits] == [2, 2, 1, 0]
    assert register.later_commits("0" * 40, ("kernel",)) is None
    assert register.later_commits(f"{commits[-1]}-dirty", ("kernel",)) is None
    monkeypatch.setattr(register, "WITHOUT_EFFECT", {commits[2][:8]: (("speed",), "a comment")})
    of_script = [register.later_commits(commit, ("kernel",), "speed") for commit in commits]
    assert of_script == [1, 1, 1, 0]
    assert register.later_commits(commits[0], ("kernel",), "quality") == 2


@pytest.mark.needs_build
def test_commits_without_effect_changed_the_paths_of_their_scripts(register: ModuleType) -> None:
    def git(*arguments: str) -> str:
        answer = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True)
        return answer.stdout.strip()

    if git("rev-parse", "--is-shallow-repository") != "false":
        pytest.skip("a checkout without the whole history")
    for commit, (scripts, reason) in register.WITHOUT_EFFECT.items():
        assert reason.endswith(".")
        git("merge-base", "--is-ancestor", commit, "HEAD")  # raises CalledProcessError
        for script in scripts:
            listed = git("log", "-1", "--format=%h", commit, "--", *register.MEASURES[script])
            assert listed.startswith(commit[:7]), (commit, script)
