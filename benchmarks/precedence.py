"""Sequential ordering problems (TSPLIB, SOPLIB): gaps to the best known length after 1 and 10 seconds.

    python benchmarks/precedence.py FOLDER [FOLDER] [--seeds 5] [--seconds 1 10] [--backend cpu]

FOLDER holds .sop files of TSPLIB or of SOPLIB (Montemanni, Smith and Gambardella 2008); files whose best known length
is not listed below are left out. 18 instances take about 17 minutes.
"""

from __future__ import annotations

import statistics
from pathlib import Path

from harness import Table, gap, parser_for, runs_for

from pymoo_gpuaco import load_tsp

BEST_KNOWN = {
    "ESC07": 2125, "ESC11": 2075, "ESC12": 1675, "ESC25": 1681, "ESC47": 1288, "br17.10": 55, "br17.12": 55,
    "ft53.1": 7531, "ft70.1": 39313, "kro124p.1": 39420, "p43.1": 28140, "prob.42": 243, "rbg109a": 1038,
    "ry48p.1": 15805, "R.200.1000.15": 20481, "R.300.100.1": 26, "R.400.1000.30": 85128, "R.500.100.15": 5361,
    "R.700.1000.15": 66837,
}  # fmt: skip
NOTE = "R.*: SOPLIB, others TSPLIB. R.300.100.1 has no precedence and is searched as an asymmetric path."


def main() -> None:
    parser = parser_for(__doc__, folder="none", seeds=5, backend="cpu")
    parser.add_argument("folder", type=Path, nargs="+")
    parser.add_argument("--seconds", type=float, nargs="+", default=[1.0, 10.0])
    arguments = parser.parse_args()
    files = {
        file.name.removesuffix(".sop"): file for f in arguments.folder for file in sorted(f.glob("*.sop"))
    }
    header = "instance | cities | best known"
    header += "".join(f" | gap %, {s:g} s:3 | best known reached, {s:g} s" for s in arguments.seconds)
    table = Table(
        f"{'gpu' if arguments.backend == 'cuda' else 'cpu'}_precedence",
        "Sequential ordering: gap to the best known length",
        header,
        {"algorithm": "GPUMemetic()", "runs of each cell": arguments.seeds},
        [NOTE],
    )
    for name, best in BEST_KNOWN.items():
        if name not in files:
            continue
        problem, cells = load_tsp(files[name]), []
        for seconds in arguments.seconds:
            runs = runs_for(problem, seconds, arguments.seeds, arguments.backend)
            reached = sum(run.length == best for run in runs)
            cells += [statistics.mean(gap(run.length, best) for run in runs), f"{reached} of {len(runs)}"]
        table.add(name, problem.n_cities, best, *cells)
    table.write()


if __name__ == "__main__":
    main()
