"""Command ``pymoo-gpuaco solve`` for quadratic assignment: placements instead of tours."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

from pymoo_gpuaco._version import __version__
from pymoo_gpuaco.algorithms import GPUMMASQAP
from pymoo_gpuaco.algorithms.display import gap_percent
from pymoo_gpuaco.cli.job import INSTANCE_PLACE, SEED_PLACE, STANDARD, file_of
from pymoo_gpuaco.cli.options import COMMANDS, DEFAULT_SECONDS, parameters
from pymoo_gpuaco.cli.outputs import Progress
from pymoo_gpuaco.problems.qaplib import is_qap, load_qap, placement_text
from pymoo_gpuaco.problems.writing import csv_text, write_whole
from pymoo_gpuaco.runtime.clock import CLOCK
from pymoo_gpuaco.solving import limits, table_of_runs

_OPTIONS = "instance --set --seed --seeds --backend --device --time --target --generations --stagnation --tour --stats"
_OPTIONS += " --json --quiet"


def are_assignments(instances: list[str]) -> bool:
    """Return True if the instances are of quadratic assignment. Raises ValueError if some are and others are not."""
    found = [is_qap(name) for name in instances]
    if any(found) and not all(found):
        raise ValueError(f"instances must be all of quadratic assignment or none, got {' '.join(instances)}")
    return any(found)


def solve_assignments(arguments: argparse.Namespace) -> int:
    """Solve instances of quadratic assignment; return the exit status: 130 after an interrupt."""
    for group in COMMANDS["solve"][1].values():
        for option in group:
            if option.flags.split()[0] not in _OPTIONS.split() and option.is_given(arguments):
                raise ValueError(
                    f"{option.flags.split()[0]} has no effect on quadratic assignment: leave it out"
                )
    given = {"backend": arguments.backend, "device": arguments.device or 0, **parameters(arguments.set)}
    GPUMMASQAP(**given)  # validates the parameters
    for place, count in ((INSTANCE_PLACE, len(arguments.instance)), (SEED_PLACE, arguments.seeds)):
        if arguments.tour and arguments.tour != STANDARD and count > 1 and place not in arguments.tour:
            raise ValueError(
                f"--tour {arguments.tour}: several results require a file each; put {place} into the name"
            )
    to = (
        None
        if arguments.json or arguments.quiet
        else sys.stderr
        if STANDARD in (arguments.tour, arguments.stats)
        else sys.stdout
    )
    problems = {name: load_qap(name) for name in arguments.instance}
    rows: list[dict[str, Any]] = []
    interrupted = False
    for given_name, problem in problems.items():
        name, first = problem.label or Path(given_name).stem, len(rows)
        for seed in range(arguments.seed, arguments.seed + arguments.seeds):
            if interrupted:
                break
            others = (arguments.target, arguments.stagnation, arguments.generations)
            seconds = DEFAULT_SECONDS if arguments.time is None and not any(others[1:]) else arguments.time
            algorithm, progress = GPUMMASQAP(**given), Progress(to)
            algorithm.setup(
                problem, termination=limits(problem, seconds, *others), seed=seed, callback=progress
            )
            if to and len(rows) == first:
                print(problem, file=to)
            try:
                result = algorithm.run()
            except KeyboardInterrupt:
                if algorithm.opt is None:
                    raise
                interrupted, result = True, algorithm.result()
            found = problem.solution(result.X)
            known = problem.best_known
            rows.append(
                {
                    "instance": name,
                    "items": problem.n_items,
                    "seed": seed,
                    "backend": algorithm.engine.kind,
                    "length": found.cost,
                    "violations": 0,
                    "best_known": known,
                    "lower_bound": algorithm.lower_bound,
                    "gap_percent": gap_percent(float(result.F[0]), known) if known else None,
                    "generations": progress.generation,
                    "tours": int(algorithm.evaluator.n_eval),
                    "seconds": round(CLOCK.wall() - algorithm.start_time, 3),
                    "stopped_by": "interrupted" if interrupted else algorithm.termination.reason,
                    "placement": (found.placement + 1).tolist(),  # locations from 1 on, as in QAPLIB
                }
            )
            progress.print(algorithm)
            if arguments.tour:
                text = placement_text(problem, found)
                if arguments.tour == STANDARD:
                    print(text, end="")
                else:
                    write_whole(file_of(arguments.tour, name, seed), text.encode())
        if to and rows[first:]:
            print("\n".join(["", *table_of_runs(rows[first:])]), file=to, flush=True)
    _write(arguments, rows)
    return 130 if interrupted else 0


def _write(arguments: argparse.Namespace, rows: list[dict[str, Any]]) -> None:
    """Write --stats and --json."""
    if arguments.stats and rows:
        columns = [name for name in rows[0] if name != "placement"]
        text = csv_text([columns, *([row[name] for name in columns] for row in rows)])
        if arguments.stats == STANDARD:
            print(text, end="", flush=True)
        else:
            write_whole(os.fspath(arguments.stats), text.encode())
    if arguments.json:
        about = {"version": __version__, "algorithm": GPUMMASQAP.__name__, "runs": rows}
        print(json.dumps(about))
