"""Do ants that follow the trails kick better than chance? Equal time, focused ants on a GPU.

    python benchmarks/gpu_kicks.py FOLDER [--seeds 3] [--seconds 1] [--only pr2392 ..]

FOLDER holds the TSPLIB files; instances that it lacks are left out. In a share of the windows ants choose where to kick
by pheromone and distance, in the others kicks are uniform; the share is what differs. Three seeds of a second each on
ten instances take about three minutes.
"""

from __future__ import annotations

import statistics
from typing import Any

from folder import problems_of
from options import parser_for
from record import write
from timed_runs import gap, reference, run_for, set_up_seconds

from pymoo_gpuaco.backends.cuda import focused

INSTANCES = (
    "pr1002", "nrw1379", "u2152", "pr2392", "pcb3038", "fl3795", "fnl4461", "rl5915", "rl11849", "d18512",
)  # fmt: skip
#: windows of a hundred whose ants follow the trails
SHARES = (0, 10, 50, 100)
CLEAR = 0.001  # percent: gaps that differ by less are called equal


def main() -> None:
    parser = parser_for(__doc__, seeds=3, only=INSTANCES, backend="cuda")
    parser.add_argument("--seconds", type=float, default=1.0)
    arguments = parser.parse_args()
    default, rows = focused.GUIDED, []
    for name, problem in problems_of(arguments.folder, arguments.only).items():
        set_up_seconds(problem, arguments.backend)  # compiles
        to, _ = reference(problem)
        gaps: dict[int, list[float]] = {share: [] for share in SHARES}
        for seed in range(1, arguments.seeds + 1):
            for share in SHARES:  # in turns: a device that slows down does so for all
                focused.GUIDED = share
                run = run_for(problem, arguments.seconds, seed, arguments.backend)
                gaps[share].append(gap(run.length, to))
        means = {share: statistics.mean(gaps[share]) for share in SHARES}
        best = min(means.values())
        winners = [f"{share} %" for share in SHARES if means[share] <= best + CLEAR]
        row: list[Any] = [name, problem.n_cities, *(round(mean, 3) for mean in means.values())]
        rows.append([*row, "all" if len(winners) == len(SHARES) else ", ".join(winners)])
        print(rows[-1], flush=True)
        focused.GUIDED = default
        write(
            "gpu_kicks",
            "Kicks by ants and kicks by chance, in equal time",
            ("instance", "cities", *(f"gap %, {share} % by ants" for share in SHARES), "best"),
            [
                *rows,
                [
                    "mean",
                    None,
                    *(round(statistics.mean(row[2 + c] for row in rows), 3) for c in range(len(SHARES))),
                    "-",
                ],
            ],
            {"algorithm": "GPUMMAS()", "seeds": arguments.seeds, "seconds": arguments.seconds},
            [
                "Mean gaps to the best known; the share of windows whose ants follow the trails, the rest kick by "
                f"chance. The default is {default} %.",
                "The time counts set-up, the same for all.",
            ],
        )


if __name__ == "__main__":
    main()
