"""Measure the headline tables on this machine's GPUs, the most important ones first, within a time limit.

    python benchmarks/measure_card.py FOLDER --minutes 28              # one GPU: all tables
    python benchmarks/measure_card.py FOLDER --minutes 8 --several     # two GPUs or more: their tables

A step whose results have the commit of this checkout is skipped, so that another call continues. A step starts only if
its planned time is left, and is ended after twice that time. Results are preserved as each script writes them.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from typing import Any, NamedTuple

from harness import RESULTS, ROOT, commit, parser_for


class Step(NamedTuple):
    """One command of the plan."""

    minutes: float  # planned on an H200 with 16 cores
    results: tuple[str, ...]  # that it writes; the last one is complete when the command ends
    script: str
    arguments: tuple[str, ...]


def _gaps(minutes: float, seeds: int, *instances: str) -> Step:
    arguments = ("--seeds", str(seeds), "--no-fast-tsp", "--instances", *instances)
    return Step(minutes, ("gpu_gap_over_time_runs",), "gpu_gap_over_time", arguments)


ONE_GPU = (
    _gaps(6.0, 5, "pr2392", "rl11849", "d18512"),
    _gaps(1.5, 3, "pla85900"),
    _gaps(1.5, 2, "random:1000000"),
    Step(2.0, ("gpu_variants_lists", "gpu_variants_all"), "gpu_variants", ()),
    Step(1.5, ("gpu_as_construction", "gpu_as_update", "gpu_as_total"), "gpu_ant_system", ("--no-cpu",)),
    Step(1.0, ("gpu_acs_time",), "gpu_acs", ("--only", "time")),
    Step(1.5, ("gpu_climbers", "gpu_climbers_moves", "gpu_climbers_quality"), "gpu_climbers", ()),
    Step(8.0, ("gpu_assignment",), "assignment", ("--seeds", "2", "--seconds", "4")),
    Step(7.0, ("gpu_family_time", "gpu_family_tours"), "family", ("--backend", "cuda", "--minutes", "6")),
    Step(2.5, ("gpu_cores",), "cores_beside_gpu", ("--seeds", "2")),
    _gaps(3.0, 5, "pr1002", "fnl4461", "pla7397"),
    _gaps(3.0, 3, "random:100000", "d15112"),
)
SEVERAL_GPUS = (
    Step(4.0, ("several_gpus",), "several_gpus", ("--devices", "1", "2", "--instances", "random:100000")),
    Step(4.0, ("record_run_pla85900",), "record_run", ("--seconds", "220", "--instances", "pla85900")),
)


def measured(step: Step) -> list[list[Any]] | None:
    """Return the rows that this checkout has measured of the results of a step, or None if one of them is missing."""
    files = [RESULTS / f"{name}.json" for name in step.results]
    results = [json.loads(file.read_text(encoding="utf-8")) for file in files if file.is_file()]
    if len(results) < len(files) or any(result["commit"] != commit() for result in results):
        return None
    return [row for result in results for row in result["rows"]]


def command_of(step: Step) -> list[str] | None:
    """Return the script and arguments of a step, which preserve rows of this checkout; None if it is measured."""
    rows = measured(step)
    if "--instances" not in step.arguments:
        return None if rows is not None else [step.script, *step.arguments]
    wanted = step.arguments[step.arguments.index("--instances") + 1 :]
    if rows is None:
        return [step.script, *step.arguments]
    return None if {row[0] for row in rows} >= set(wanted) else [step.script, "--add", *step.arguments]


def main() -> int:
    """Run the steps that are left and fit."""
    parser = parser_for(__doc__)
    parser.add_argument("--minutes", type=float, default=28.0, help="time limit")
    parser.add_argument("--several", action="store_true", help="tables of several GPUs")
    arguments = parser.parse_args()
    end, failed = time.monotonic() + 60.0 * arguments.minutes, []
    for step in SEVERAL_GPUS if arguments.several else ONE_GPU:
        name = " ".join([step.script, *step.arguments])
        left = end - time.monotonic()
        todo = command_of(step)
        if todo is None:
            print(f"== {name}: measured", flush=True)
            continue
        if left < 60.0 * step.minutes:
            print(f"== {name}: needs {step.minutes:g} minutes, {left / 60.0:.1f} are left", flush=True)
            failed.append(step.script)
            continue
        print(f"== {name}", flush=True)
        script, *options = todo
        started = time.monotonic()
        try:
            code = subprocess.run(
                [sys.executable, str(ROOT / "benchmarks" / f"{script}.py"), str(arguments.folder), *options],
                timeout=min(left, 120.0 * step.minutes),
                check=False,
            ).returncode
        except subprocess.TimeoutExpired:
            code = 124
        print(f"== {name}: status {code}, {(time.monotonic() - started) / 60.0:.1f} minutes", flush=True)
        failed += [step.script] if code else []
    if failed:
        print(f"not measured: {', '.join(failed)}")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
