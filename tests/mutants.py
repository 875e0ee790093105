"""Find changes of the search that no test notices. Run by hand: ``make mutants COUNT=150 SEED=1``, again to go on.

Changes are drawn by a seed: a comparison that holds on the other side, another operator, a number that is one more,
an assignment that does not happen. Each is made in a copy of the repository, and the tests of its module run there
without compiling (NUMBA_DISABLE_JIT), until one fails. What no test has noticed is listed at the end. Results are kept
in build/mutants-SEED.json, so that a run of --seconds goes on where the last one ended.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "pymoo_gpuaco"
#: tests that see what a module does, the quickest first
TESTS = {
    "algorithms/termination.py": ("termination", "colony_termination"),
    "algorithms/ask_tell.py": ("ask_and_tell", "custom_objective"),
    "candidates/bound.py": ("lower_bound",),
    "memetic/commit.py": ("partition_crossover",),
    "memetic/partition_crossover.py": ("partition_crossover", "assembly"),
    "memetic/eax.py": ("eax_evolve", "eax"),
    "memetic/block2.py": ("eax_choosing", "eax", "assembly"),
    "memetic/stretches.py": ("eax", "eax_evolve", "assembly"),
    "memetic/ab_cycles.py": ("eax", "assembly", "eax_regions"),
    "memetic/assembly.py": ("assembly", "eax"),
    "memetic/child.py": ("eax", "eax_evolve"),
    "memetic/entropy.py": ("eax_choosing", "eax_evolve"),
    "memetic/offspring.py": ("eax_choosing", "eax_regions", "eax_evolve"),
    "pareto/archive.py": ("fronts_archive", "fronts_moves", "ppls"),
    "pareto/assembly.py": ("fronts_assembly",),
    "pareto/instance.py": ("fronts_archive", "fronts_moves", "ppls"),
    "pareto/nd_tree.py": ("fronts_archive",),
    "pareto/search.py": ("fronts_assembly", "ppls"),
    "pareto/front_2d.py": ("fronts_archive", "fronts_moves"),
    "pareto/weights.py": ("fronts_moves", "fronts_assembly", "ppls"),
    "problems/constraints.py": ("tsp_arguments", "every_tour"),
    "problems/instance.py": ("objective_kind",),
    "problems/reading.py": ("reading",),
    "problems/table.py": ("inputs", "fuzz_tables"),
    "problems/columns.py": ("inputs", "fuzz_tables"),
    "problems/tsplib.py": ("tsplib",),
    "memetic/schedule.py": ("schedule", "memetic_rounds"),
    "memetic/population.py": ("population", "memetic_rounds"),
    "memetic/evolution.py": ("evolution", "memetic_rounds"),
    "memetic/penalties.py": ("penalties", "cuda_penalties"),
    "memetic/state.py": ("memetic_states", "schedule"),
    "memetic/translated.py": ("every_tour", "construction"),
    "memetic/exact.py": ("every_tour", "construction"),
    "memetic/parameters.py": ("memetic_parameters", "cpu_windows"),
    "memetic/search.py": ("memetic_rounds", "schedule", "evolution"),
    "backends/cpu/windows/cut.py": ("cpu_windows",),
    "backends/cpu/windows/moves.py": ("cpu_moves", "cpu_windows"),
    "backends/cpu/windows/search.py": ("cpu_windows", "windows_improver", "warm_start"),
    "backends/cpu/windows/trials.py": ("cpu_windows",),
    "backends/cpu/windows/window.py": ("cpu_windows", "cpu_moves"),
}
SLOW = 3.0  # s of the processor: tests that take longer without compiling are left out
ENDLESS = 30.0  # s of the processor: a change that makes a test take longer is noticed
_SECONDS, _TOO_LONG = "PYMOO_GPUACO_MUTANT_SECONDS", "too_long"  # a variable and a file
#: pytest that keeps no cache; without compiling, whole numbers of 64 bits warn where they wrap around
PYTEST = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "tests.mutants")
PYTEST += ("-W", "ignore::RuntimeWarning")

_COMPARED = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
}
_COMPUTED = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "/"),
    ast.FloorDiv: ("//", "*"),
    ast.Div: ("/", "*"),
    ast.BitXor: ("^", "&"),
    ast.BitAnd: ("&", "|"),
    ast.RShift: (">>", "<<"),
    ast.LShift: ("<<", ">>"),
}


class Mutant(NamedTuple):
    """One change of one file: bytes [begin, end) become ``after``."""

    module: str
    line: int
    begin: int
    end: int
    before: str
    after: str

    def name(self) -> str:
        return f"{self.module}:{self.line} at {self.begin}: {self.before!r} -> {self.after!r}"


def mutants_of(module: str) -> Iterator[Mutant]:
    """Every change of a module of the package."""
    source = (PACKAGE / module).read_bytes()
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))

    def at(line: int, column: int) -> int:
        return starts[line - 1] + column

    def change(node: ast.AST, begin: int, end: int, after: str) -> Mutant:
        return Mutant(module, node.lineno, begin, end, source[begin:end].decode(), after)  # type: ignore[attr-defined]

    def swapped(left: ast.expr, right: ast.expr, signs: tuple[str, str]) -> Iterator[Mutant]:
        begin, end = at(left.end_lineno, left.end_col_offset), at(right.lineno, right.col_offset)
        place = source[begin:end].decode().find(signs[0])
        if place >= 0:
            yield change(left, begin + place, begin + place + len(signs[0]), signs[1])

    def visit(node: ast.AST) -> Iterator[Mutant]:
        if isinstance(node, ast.AnnAssign) and node.value is None:
            return
        if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _COMPARED:
            yield from swapped(node.left, node.comparators[0], _COMPARED[type(node.ops[0])])
        if isinstance(node, ast.BinOp) and type(node.op) in _COMPUTED:
            yield from swapped(node.left, node.right, _COMPUTED[type(node.op)])
        if isinstance(node, ast.BoolOp):
            signs = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
            for left, right in zip(node.values, node.values[1:], strict=False):
                yield from swapped(left, right, signs)
        if isinstance(node, (ast.If, ast.While)) and not isinstance(node.test, ast.Constant):
            test = node.test
            begin, end = at(test.lineno, test.col_offset), at(test.end_lineno, test.end_col_offset)
            yield change(test, begin, end, f"not ({source[begin:end].decode()})")
        if isinstance(node, ast.Constant) and type(node.value) in (int, float, bool):
            begin, end = at(node.lineno, node.col_offset), at(node.end_lineno, node.end_col_offset)
            value = node.value
            other = (
                (not value)
                if isinstance(value, bool)
                else value + 1
                if isinstance(value, int)
                else 2 * value + 1
            )
            yield change(node, begin, end, f"{other!r}")
        if isinstance(node, (ast.Assign, ast.AugAssign)) and not isinstance(
            node.value, (ast.Lambda, ast.Constant)
        ):
            first = node.targets[0] if isinstance(node, ast.Assign) else node.target
            if isinstance(node, ast.AugAssign) or isinstance(first, (ast.Subscript, ast.Attribute)):
                begin, end = at(node.lineno, node.col_offset), at(node.end_lineno, node.end_col_offset)
                yield change(node, begin, end, "pass")
        for name, child in ast.iter_fields(node):
            if name in ("annotation", "returns", "decorator_list"):
                continue
            for one in child if isinstance(child, list) else [child]:
                if isinstance(one, ast.AST):
                    yield from visit(one)

    for node in ast.parse(source).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.Assign, ast.AnnAssign)):
            yield from visit(node)


def drawn(seed: int, count: int) -> list[Mutant]:
    """Draw that number of all changes."""
    everything = [mutant for module in sorted(TESTS) for mutant in mutants_of(module)]
    return random.Random(seed).sample(everything, count)


def copy_of_the_repository(folder: Path) -> None:
    for name in ("pymoo_gpuaco", "tests", "cuda_src"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__", "*.nb[ic]"))
    shutil.copy(ROOT / "pyproject.toml", folder)


@contextmanager
def _timed(name: str) -> Iterator[None]:
    """End a test that takes too long; with a change in the code, or where its threads work on, the process."""
    seconds, times = float(os.environ[_SECONDS]), 0

    def too_long(*_: object) -> None:
        nonlocal times
        times += 1
        if seconds == SLOW and times == 1:
            raise TimeoutError
        Path(_TOO_LONG).write_text(name)
        os._exit(1)

    signal.signal(signal.SIGPROF, too_long)
    signal.setitimer(signal.ITIMER_PROF, seconds, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Iterator[None]:
    with _timed(item.nodeid):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    with _timed(item.nodeid):
        return (yield)


def run(folder: Path, test: str, seconds: float, options: list[str]) -> int:
    """Exit status of the tests of a file."""
    return subprocess.run(
        [*PYTEST, *options, f"tests/test_{test}.py"],
        cwd=folder,
        env={**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONDONTWRITEBYTECODE": "1", _SECONDS: str(seconds)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=False,
    ).returncode


def slow_ones(folder: Path, test: str) -> list[str]:
    """Options that leave out those tests of a file that are slow without compiling, or need it."""
    report, slow = folder / "report.xml", folder / _TOO_LONG
    options: list[str] = []
    report.unlink(missing_ok=True)
    while not report.exists():
        run(folder, test, SLOW, [f"--junitxml={report}", *options])
        if slow.exists():
            options.append(f"--deselect={slow.read_text()}")
            slow.unlink()
    failed = (
        # a class of tests comes behind the module's name: tests.test_eax.TestBlocks
        "::".join([f"tests/test_{test}.py", *case.get("classname", "").split(".")[2:], case.get("name", "")])
        for case in ElementTree.parse(report).iter("testcase")
        if any(child.tag in ("failure", "error") for child in case)
    )
    return [*options, *(f"--deselect={name}" for name in failed)]


def noticed(folder: Path, mutant: Mutant, left_out: dict[str, list[str]]) -> str:
    """Return the test file that fails with this change, or takes too long; "" if none does."""
    for test in TESTS[mutant.module]:
        if test not in left_out:
            left_out[test] = slow_ones(folder, test)
    target = folder / "pymoo_gpuaco" / mutant.module
    source = target.read_bytes()
    target.write_bytes(source[: mutant.begin] + mutant.after.encode() + source[mutant.end :])
    try:
        for test in TESTS[mutant.module]:
            status = run(folder, test, ENDLESS, ["-x", *left_out[test]])
            if status not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
                return test
    finally:
        target.write_bytes(source)
    return ""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=150)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="end after so long")
    parser.add_argument("--only", default="", help="module, of those that are drawn")
    arguments = parser.parse_args()
    kept = ROOT / "build" / f"mutants-{arguments.seed}.json"
    kept.parent.mkdir(exist_ok=True)
    state = json.loads(kept.read_text()) if kept.exists() else {"left out": {}, "noticed": {}}
    mutants = [one for one in drawn(arguments.seed, arguments.count) if arguments.only in one.module]
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        copy_of_the_repository(folder)
        for mutant in mutants:
            if mutant.name() in state["noticed"]:
                continue
            if time.monotonic() - began > arguments.seconds:
                break
            by = noticed(folder, mutant, state["left out"])
            state["noticed"][mutant.name()] = by
            print(f"{mutant.name()}  {by or 'SURVIVES'}", flush=True)
            kept.write_text(json.dumps(state, indent=1))
    names = [mutant.name() for mutant in mutants]
    done = [mutant for mutant in names if mutant in state["noticed"]]
    survivors = [mutant for mutant in done if not state["noticed"][mutant]]
    print(
        f"{len(done)} of {len(names)} changes made, {len(survivors)} noticed by no test", *survivors, sep="\n"
    )


if __name__ == "__main__":
    main()
