"""Run the tests that depend on time or on other threads many times, in random order, beside two busy loops.

    python -m tests.stress                             # 20 rounds, of at most 40 minutes in all
    python -m tests.stress --rounds 3 --seed 7         # the rounds have the seeds 7, 8 and 9
    python -m tests.stress --list                      # the tests, and why each is one of them

A test is one of them if its source, or what it uses of its own file, matches one of ``KINDS``, or if it is marked
``stress``. One line a round says its seed; ``pytest --shuffle SEED`` with the names of `--list` repeats its order. The
exit status is 1 if a test failed, and 2 if the time was over before the last round.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import re
import secrets
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
KINDS = {
    "waits": r"\bsleep\(|\bwait_until\(|\.wait\(|\.join\((?:\d|\))|Timer\(",
    "reads a clock": r"perf_counter|\bmonotonic\(|\btime\.time\(|process_time|thread_time",
    "has a time limit": r"\(\"time\", |\bseconds=\d|\"--time\"|\bstop_at\(",
    "forks": r"\bfork\(|multiprocessing",
    "signals": r"\bsignal\.|os\.kill|interrupt_main|is_interrupted|timed_interrupts|send_signal|\.kill\(",
    "uses threads": r"\bthreading\.|_thread\b|BackgroundTask|ThreadPool|_THREADS\b|\bspread\(|interruptible\(",
    "uses a cluster": r"\btwo_workers\b|\bclient\b",
    "collects garbage": r"\bgc\.collect\(",
    "steps the clock": r"\bclock\.",
    "is marked": r"pytest\.mark\.stress\b",
}
#: tests of these need a GPU, or are long and of texts
LEFT_OUT = (
    "test_cuda_trust",
    "test_cuda_sanitizer",
    "test_docs",
    "test_words",
    "test_names",
    "test_promises",
)


def tests_of(path: Path) -> dict[str, list[str]]:
    """Names of the tests of a file that are of a kind, and their kinds."""
    text = path.read_text(encoding="utf-8")
    parts: dict[str, list[ast.stmt]] = {}
    tree = ast.parse(text)
    for node in tree.body:
        named = [node.name] if isinstance(node, (ast.FunctionDef, ast.ClassDef)) else []
        if isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            named = [one.id for target in targets for one in ast.walk(target) if isinstance(one, ast.Name)]
        for name in named:
            parts.setdefault(name, []).append(node)

    def source(node: ast.AST) -> str:
        lines = [ast.get_source_segment(text, one) or "" for one in getattr(node, "decorator_list", [])]
        return "\n".join([*lines, ast.get_source_segment(text, node) or ""])

    def uses(node: ast.AST) -> set[str]:
        found = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
        return found | {one.arg for one in ast.walk(node) if isinstance(one, ast.arg)}

    def whole(node: ast.AST) -> str:
        """Return the source of a test, and of what it uses of its file."""
        seen: set[str] = set()
        sources, names = [source(node)], uses(node)
        while names := (names & parts.keys()) - seen:
            seen |= names
            nodes = [one for name in sorted(names) for one in parts[name]]
            sources += [source(one) for one in nodes]
            names = {name for one in nodes for name in uses(one)}
        return "\n".join(sources)

    found = {}
    for node in tree.body:
        is_class = isinstance(node, ast.ClassDef) and node.name.startswith("Test")
        for inner in node.body if isinstance(node, ast.ClassDef) and is_class else [node]:
            if isinstance(inner, ast.FunctionDef) and inner.name.startswith("test_"):
                taken = whole(inner)
                kinds = [kind for kind, pattern in KINDS.items() if re.search(pattern, taken)]
                if kinds:
                    found[f"{node.name}::{inner.name}" if is_class else inner.name] = kinds
    return found


def chosen() -> dict[str, list[str]]:
    """Node ids of all tests of a kind, and their kinds."""
    return {
        f"tests/{path.name}::{name}": kinds
        for path in sorted((ROOT / "tests").glob("test_*.py"))
        if path.stem not in LEFT_OUT
        for name, kinds in tests_of(path).items()
    }


@contextlib.contextmanager
def busy_loops(count: int) -> Iterator[None]:
    """Keep processes busy in the meantime."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def main(arguments: list[str] | None = None) -> int:
    """Run the rounds; return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seed", type=int, help="of the first round; default: drawn")
    parser.add_argument("--minutes", type=float, default=40.0, help="no round begins that would end later")
    parser.add_argument("--loops", type=int, default=2, help="busy loops beside the tests")
    parser.add_argument("--workers", type=int, default=2, help="processes that run tests")
    parser.add_argument("--only", default="", help="part of the names of the tests to run")
    parser.add_argument("--list", action="store_true", help="list the tests and end")
    given = parser.parse_args(arguments)
    tests = {name: kinds for name, kinds in chosen().items() if given.only in name}
    if given.list:
        for name, kinds in tests.items():
            print(f"{name}  # {', '.join(kinds)}")
        return 0
    first = secrets.randbelow(10**6) if given.seed is None else given.seed
    files = len({name.split("::")[0] for name in tests})
    print(
        f"{len(tests)} test functions of {files} files, {given.rounds} rounds, seeds from {first}", flush=True
    )
    begun, longest, failed, seed = time.monotonic(), 0.0, [], first
    command = [sys.executable, "-m", "pytest", "-q", "-m", "not gpu", "-p", "no:cacheprovider"]
    command += ["-n", str(given.workers), "--dist", "loadfile"]
    with busy_loops(given.loops):
        for seed in range(first, first + given.rounds):
            started = time.monotonic()
            if started + longest > begun + 60.0 * given.minutes:
                print(f"the time is over after {seed - first} rounds", flush=True)
                break
            run = subprocess.run(
                [*command, "--shuffle", str(seed), *tests], cwd=ROOT, capture_output=True, text=True
            )
            longest = max(longest, time.monotonic() - started)
            last = (run.stdout.strip().splitlines() or [run.stderr[-2000:]])[-1]
            print(f"seed {seed}: {last}", flush=True)
            if run.returncode != 0:
                failed.append(seed)
                print(run.stdout, run.stderr, flush=True)
        else:
            seed += 1
    done = seed - first
    print(f"{done} rounds in {(time.monotonic() - begun) / 60.0:.1f} min; failed: {failed or 'none'}")
    return 1 if failed else 2 if done < given.rounds else 0


if __name__ == "__main__":
    sys.exit(main())
