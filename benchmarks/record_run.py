"""Gap over time of one long run on all GPUs of a host.

    python benchmarks/record_run.py FOLDER [--instances pla85900 random:100000] [--seconds 240] [--seed 1]
        [--population-size 400] [--annealing-share 0.5] [--initial-temperature 0.65]
        [--save run.zip] [--from run.zip ..]

One run of ``minimize(problem, GPUMemetic(device="all"), ("time", seconds))`` per instance, set-up included, compilation
excluded. A row is the best tour at one of ``MARKS`` or at the end of annealing. Every instance has a result of its own,
``record_run_pla85900``. ``--save`` writes the state every minute and at the end; ``--from`` begins with the tours of
such states. The best tour is written to ``INSTANCE.tour``.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
from harness import Table, gap, parser_for, problems_of, reference
from pymoo.core.callback import Callback
from pymoo.optimize import minimize

from pymoo_gpuaco import GPUMemetic, checkpoint, write_tour
from pymoo_gpuaco.backends import cuda_devices

INSTANCES = ["pla85900", "random:100000"]
MARKS = (5, 10, 20, 40, 60, 90, 120, 180, 240, 360, 540, 720, 960, 1200)  # seconds
HEADER = "instance | cities | GPUs | seconds:1 | phase | length | gap %:4 | tours | gap to"


class Rows(Callback):
    """Seconds, phase and best length at each mark, and at the end of each phase."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[tuple[float, str, float]] = []
        self._latest: tuple[float, str, float] | None = None

    def _update(self, algorithm: Any) -> None:
        phase = "evolution" if algorithm.engine.annealed else "annealing"
        now = time.time() - algorithm.start_time, phase, float(algorithm.opt[0].F[0])
        if self._latest is not None:
            passed = any(self._latest[0] <= mark < now[0] for mark in MARKS)
            if passed or self._latest[1] != phase:
                self.rows.append(self._latest)
        self._latest = now

    def all(self) -> list[tuple[float, str, float]]:
        """Return the rows, the end of the run last."""
        return self.rows if self._latest is None else [*self.rows, self._latest]


def main() -> None:
    parser = parser_for(__doc__)
    parser.add_argument("--instances", nargs="+", default=INSTANCES)
    parser.add_argument("--seconds", type=float, default=240.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--population-size", type=int)
    parser.add_argument("--annealing-share", type=float)
    parser.add_argument("--initial-temperature", type=float)
    parser.add_argument("--save", type=Path)
    parser.add_argument("--from", nargs="*", type=Path, default=[], dest="states")
    arguments = parser.parse_args()
    names = "population_size", "annealing_share", "initial_temperature"
    of_search = {name: getattr(arguments, name) for name in names}
    parameters = {"seconds": arguments.seconds, "seed": arguments.seed, **of_search}
    for name, problem in problems_of(arguments.folder, arguments.instances).items():
        table = Table(
            f"record_run_{name.replace(':', '')}",
            f'GPUMemetic(device="all"), one long run of {name}',
            HEADER,
            parameters,
        )
        minimize(problem, GPUMemetic(device="all"), ("time", 0.5), seed=0)  # compiles
        if arguments.states:
            of_search["sampling"] = np.concatenate([tours_of(path) for path in arguments.states])
        rows, algorithm = Rows(), GPUMemetic(device="all", **of_search)
        watched = rows if arguments.save is None else checkpoint.Saver(arguments.save, callback=rows)
        result = minimize(
            problem, algorithm, ("time", arguments.seconds), seed=arguments.seed, callback=watched
        )
        algorithm = result.algorithm
        write_tour(f"{name.replace(':', '')}.tour", result.X)
        if arguments.save is not None:
            algorithm.callback = Callback()
            checkpoint.save(algorithm, arguments.save)
        (to, of), tours = reference(problem), algorithm.engine.n_tours
        for seconds, phase, length in rows.all():
            row = name, problem.n_cities, len(cuda_devices()), seconds, phase, round(length), gap(length, to)
            table.add(*row, tours, of)
        table.write()


def tours_of(path: Path) -> np.ndarray:
    """Return the different tours (m, n) of the state of a run: of its evolution, and the best one."""
    state = checkpoint.load(path)._engine_state
    held = [state[name] for name in ("paused", "annealed", "winners", "best") if len(state[name])]
    return np.unique(np.concatenate(held), axis=0)


if __name__ == "__main__":
    main()
