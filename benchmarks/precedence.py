"""Sequential ordering problems (TSPLIB, SOPLIB): gaps to the best known length after 1 and 10 seconds.

    python benchmarks/precedence.py FOLDER [FOLDER] [--seeds 5] [--seconds 1 10] [--backend cpu]

FOLDER holds .sop files of TSPLIB or of SOPLIB (Montemanni, Smith and Gambardella 2008); files whose best known length
is not listed below are left out. 18 instances take about 17 minutes.
"""

from __future__ import annotations

import statistics
from pathlib import Path

from options import parser_for
from record import write
from timed_runs import gap, run_for

from pymoo_gpuaco import load_tsp

BEST_KNOWN = {
    "ESC07": 2125, "ESC11": 2075, "ESC12": 1675, "ESC25": 1681, "ESC47": 1288, "br17.10": 55, "br17.12": 55,
    "ft53.1": 7531, "ft70.1": 39313, "kro124p.1": 39420, "p43.1": 28140, "prob.42": 243, "rbg109a": 1038,
    "ry48p.1": 15805, "R.200.1000.15": 20481, "R.300.100.1": 26, "R.400.1000.30": 85128, "R.500.100.15": 5361,
    "R.700.1000.15": 66837,
}  # fmt: skip


def main() -> None:
    parser = parser_for(__doc__, folder="none", seeds=5, backend="cpu")
    parser.add_argument("folder", type=Path, nargs="+")
    parser.add_argument("--seconds", type=float, nargs="+", default=[1.0, 10.0])
    arguments = parser.parse_args()
    files = {
        file.name.removesuffix(".sop"): file for f in arguments.folder for file in sorted(f.glob("*.sop"))
    }
    columns = ["instance", "cities", "best known"]
    columns += [f"{what}, {s:g} s" for s in arguments.seconds for what in ("gap %", "best known reached")]
    rows = []
    for name, best in BEST_KNOWN.items():
        if name not in files:
            continue
        problem = load_tsp(files[name])
        run_for(problem, 0.1, 0, arguments.backend)  # compiles
        row: list[object] = [name, problem.n_cities, best]
        for seconds in arguments.seconds:
            lengths = [
                run_for(problem, seconds, seed, arguments.backend).length
                for seed in range(1, arguments.seeds + 1)
            ]
            mean = round(statistics.mean(gap(length, best) for length in lengths), 3)
            row += [mean, f"{sum(length == best for length in lengths)} of {len(lengths)}"]
        rows.append(row)
        print(dict(zip(columns, row, strict=True)), flush=True)
    write(
        "cpu_precedence" if arguments.backend == "cpu" else "gpu_precedence",
        "Sequential ordering: gap to the best known length",
        columns,
        rows,
        {"algorithm": "GPUMemetic()", "runs of each cell": arguments.seeds},
        ["R.*: SOPLIB, others TSPLIB. R.300.100.1 has no precedence and is searched as an asymmetric path."],
    )


if __name__ == "__main__":
    main()
