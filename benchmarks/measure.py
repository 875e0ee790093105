"""Measure the headline tables on this machine, the most important ones first, within a time limit.

    python benchmarks/measure.py FOLDER --minutes 28                 # one GPU
    python benchmarks/measure.py FOLDER --minutes 8 --plan gpus      # two GPUs or more: their tables
    python benchmarks/measure.py FOLDER --minutes 75 --plan cpu --acotsp acotsp --acotspqap acoqap

FOLDER contains TSPLIB files (.tsp) and QAPLIB files (.dat). A step is skipped if no commit after its results changed
what it measures, so that another call continues. A step starts only if its planned time is left, and is ended after
twice that time. Results are preserved as each script writes them. ``--acotsp`` and ``--acotspqap`` are Stuetzle's
programs, which are compared with the package; without them these steps are left out. fast-tsp is compared if it is
installed.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

from harness import RESULTS, ROOT, holds, parser_for


class Step(NamedTuple):
    """One command of a plan."""

    minutes: float  # planned; on GPUs with H200s and 16 cores each
    results: tuple[str, ...]  # that it writes; the last one is complete when the command ends
    script: str
    arguments: tuple[str, ...] = ()


def _gaps(minutes: float, seeds: int, *instances: str) -> Step:
    arguments = ("--seeds", str(seeds), "--instances", *instances)
    return Step(minutes, ("gpu_gap_over_time_runs",), "gpu_gap_over_time", arguments)


_QAP_STARTS = ("--starts", "trails", "perturbed", "--only", "tai80a", "tai100a", "tai150b")
ONE_GPU = (
    _gaps(0.9, 5, "pr2392"),
    _gaps(3.1, 5, "d18512"),
    _gaps(3.1, 5, "rl11849"),
    _gaps(1.6, 3, "pla85900"),
    _gaps(1.1, 2, "random:1000000"),
    Step(1.0, ("gpu_variants_lists", "gpu_variants_all"), "gpu_variants"),
    Step(1.0, ("gpu_as_construction", "gpu_as_update", "gpu_as_total"), "gpu_ant_system", ("--no-cpu",)),
    Step(0.5, ("gpu_acs_time",), "gpu_acs", ("--only", "time")),
    Step(0.8, ("gpu_climbers", "gpu_climbers_moves", "gpu_climbers_quality"), "gpu_climbers"),
    Step(2.7, ("gpu_assignment",), "assignment", ("--seeds", "2", "--seconds", "5")),
    Step(
        7.0,
        ("gpu_family_time", "gpu_family_tours"),
        "family",
        ("--backend", "cuda", "--minutes", "7", "--seeds", "3"),
    ),
    Step(2.2, ("gpu_cores",), "cores_beside_gpu", ("--seeds", "2")),
    _gaps(1.6, 3, "random:100000"),
    _gaps(3.1, 5, "pr1002", "fnl4461"),
    Step(1.1, ("gpu_assignment_starts",), "assignment", ("--seeds", "1", "--seconds", "5", *_QAP_STARTS)),
    _gaps(2.8, 5, "pla7397"),
)
SEVERAL_GPUS = (
    Step(4.0, ("several_gpus",), "several_gpus", ("--devices", "1", "2", "--instances", "random:100000")),
    Step(4.0, ("record_run_pla85900",), "record_run", ("--seconds", "220", "--instances", "pla85900")),
)
CPU = (
    Step(40.0, ("cpu_gap_over_time",), "cpu_gap_over_time", ("--seeds", "5")),
    Step(13.0, ("family_time", "family_tours"), "family", ("--minutes", "15")),
    Step(
        3.5,
        ("cpu_assignment_beside",),
        "assignment",
        ("--beside", "--backend", "cpu", "--seeds", "3", "--seconds", "5", "--acotspqap", "PROGRAM"),
    ),
    Step(1.0, ("cpu_acotsp",), "acotsp", ("--tours", "5000", "--program", "PROGRAM")),
    Step(2.0, ("cpu_first_run",), "cpu_first_run"),
    Step(3.0, ("cpu_rate", "cpu_overhead"), "cpu_speed"),
    Step(1.5, ("cpu_threads", "cpu_memory"), "cpu_scaling"),
    Step(0.5, ("cpu_vs_c",), "cpu_vs_c"),
    Step(1.5, ("cpu_kicks",), "cpu_kicks"),
    Step(6.0, ("cpu_time_limits",), "time_limits", ("--backend", "cpu")),
)
PLANS = {"gpu": ONE_GPU, "gpus": SEVERAL_GPUS, "cpu": CPU}
WITHOUT_FOLDER = ("cpu_first_run", "cpu_speed", "cpu_scaling", "time_limits")


def measured(step: Step) -> list[list[Any]] | None:
    """Return the rows of the results of a step, or None if one of them is missing or stale."""
    files = [RESULTS / f"{name}.json" for name in step.results]
    results = [json.loads(file.read_text(encoding="utf-8")) for file in files if file.is_file()]
    if len(results) < len(files) or not all(holds(result["commit"], step.script) for result in results):
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


def plan_of(arguments: Any) -> list[Step]:
    """Return the steps of the chosen plan, with the paths of the given programs; without a program not its step."""
    programs: dict[str, Path | None] = {"acotsp": arguments.acotsp, "assignment": arguments.acotspqap}
    steps = []
    for step in PLANS[arguments.plan]:
        program = programs.get(step.script)
        if "PROGRAM" in step.arguments and program is None:
            print(f"== {step.script}: no program to compare with")
            continue
        given = (str(program) if argument == "PROGRAM" else argument for argument in step.arguments)
        steps.append(step._replace(arguments=tuple(given)))
    return steps


def main() -> int:
    """Run the steps that are left and fit; return 1 if one of them failed."""
    parser = parser_for(__doc__)
    parser.add_argument("--minutes", type=float, default=28.0, help="time limit")
    parser.add_argument("--plan", choices=PLANS, default="gpu")
    parser.add_argument("--acotsp", type=Path, help="program of ACOTSP 1.03")
    parser.add_argument("--acotspqap", type=Path, help="program acoqap of ACOTSPQAP")
    arguments = parser.parse_args()
    end, late, failed = time.monotonic() + 60.0 * arguments.minutes, [], []
    for step in plan_of(arguments):
        name = " ".join([step.script, *step.arguments])
        left = end - time.monotonic()
        todo = command_of(step)
        if todo is None:
            print(f"== {name}: measured", flush=True)
            continue
        if left < 60.0 * step.minutes:
            print(f"== {name}: needs {step.minutes:g} minutes, {left / 60.0:.1f} are left", flush=True)
            late.append(step.script)
            continue
        print(f"== {name}", flush=True)
        script, *options = todo
        folder = () if script in WITHOUT_FOLDER else (str(arguments.folder),)
        started = time.monotonic()
        try:
            code = subprocess.run(
                [sys.executable, str(ROOT / "benchmarks" / f"{script}.py"), *folder, *options],
                timeout=min(left, 120.0 * step.minutes),
                check=False,
            ).returncode
        except subprocess.TimeoutExpired:
            code = 124
        print(f"== {name}: status {code}, {(time.monotonic() - started) / 60.0:.1f} minutes", flush=True)
        failed += [step.script] if code else []
    for title, scripts in {"without time": late, "failed": failed}.items():
        if scripts:
            print(f"{title}: {', '.join(scripts)}")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
