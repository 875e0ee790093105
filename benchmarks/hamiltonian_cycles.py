"""Hamiltonian cycles of sparse graphs: how often does a run find one, and how soon? GPUMMAS on either engine.

    python benchmarks/hamiltonian_cycles.py [--graphs cubic knight] [--sizes 1000 10000] [--first-seed 1] [--seeds 10]
        [--seconds 60] [--add] [--backend cpu]

A cycle is a tour without forbidden edges, where every edge that the graph lacks is forbidden. Knight's graphs are those
of chessboards, 1,000 squares are 32 by 32 and 10,000 are 100 by 100; cubic graphs are random, and have a cycle almost
surely (Robinson and Wormald 1992). A run ends where it finds one; set-up counts. With --add what is written stays, so
that runs of one graph may be made in parts, by --first-seed.
"""

from __future__ import annotations

import statistics
import time
from typing import Any

import networkx as nx
from options import parser_for
from pymoo.optimize import minimize
from record import rows_of_others, write

from pymoo_gpuaco import TSP, GPUMemetic, read_cities
from pymoo_gpuaco.algorithms.termination import ColonyTermination

COLUMNS = (
    "graph",
    "vertices",
    "runs",
    "found",
    "median s",
    "longest s of those found",
    "fewest edges lacking",
)


def knight(n: int) -> nx.Graph:
    """Squares of a chessboard of about n, an even number of each side, joined where a knight may jump."""
    side = 2 * round(n**0.5 / 2)
    graph = nx.Graph()
    for x in range(side):
        for y in range(side):
            for dx, dy in ((1, 2), (2, 1), (2, -1), (1, -2)):
                if x + dx < side and 0 <= y + dy < side:
                    graph.add_edge((x, y), (x + dx, y + dy))
    return graph


def cubic(n: int) -> nx.Graph:
    """A random graph in which every vertex has three edges."""
    return nx.random_regular_graph(3, n, seed=n)


GRAPHS = {"knight": knight, "cubic": cubic}


def run(problem: TSP, seconds: float, seed: int, backend: str) -> tuple[int, float]:
    """Edges of the best tour that the graph lacks, and the seconds of the call; it ends where there are none."""
    before = time.perf_counter()
    ends = ColonyTermination(
        float(problem.n_var), stagnation=None, n_max_gen=None, seconds=seconds, stagnation_tours=None
    )
    result = minimize(problem, GPUMemetic(backend=backend), ends, seed=seed, return_least_infeasible=True)
    return int(problem.violations(result.X[None])[0]), time.perf_counter() - before


def main() -> None:
    parser = parser_for(__doc__, folder="none", seeds=10, add=True, backend="cuda")
    parser.add_argument("--graphs", nargs="+", choices=list(GRAPHS), default=list(GRAPHS))
    parser.add_argument("--sizes", type=int, nargs="+", default=[1000, 10_000])
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=60.0)
    arguments = parser.parse_args()
    name = "gpu_hamiltonian_cycles" if arguments.backend == "cuda" else "cpu_hamiltonian_cycles"
    parameters: dict[str, Any] = {"algorithm": "GPUMemetic()", "seconds": arguments.seconds}
    rows = rows_of_others(name, (), parameters) if arguments.add else []
    for n in arguments.sizes:
        for graph in arguments.graphs:
            problem = read_cities(GRAPHS[graph](n))
            run(problem, 0.1, 0, arguments.backend)  # compiles
            runs = [
                run(problem, arguments.seconds, seed, arguments.backend)
                for seed in range(arguments.first_seed, arguments.first_seed + arguments.seeds)
            ]
            times = [seconds for lacking, seconds in runs if lacking == 0]
            rows.append(
                [
                    graph,
                    problem.n_var,
                    len(runs),
                    len(times),
                    round(statistics.median(times), 2) if times else None,
                    round(max(times), 2) if times else None,
                    min(lacking for lacking, _ in runs),
                ]
            )
            print(dict(zip(COLUMNS, rows[-1], strict=True)), flush=True)
    rows.sort(key=lambda row: (row[0], row[1]))
    notes = ["A run ends where it has found a cycle; set-up counts. Medians are of the runs that found one."]
    write(name, "Hamiltonian cycles of sparse graphs", COLUMNS, rows, parameters, notes)


if __name__ == "__main__":
    main()
