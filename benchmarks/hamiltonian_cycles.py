"""Hamiltonian cycles of sparse graphs: number of runs of GPUMemetic() that find one, and their time.

    python benchmarks/hamiltonian_cycles.py [--graphs cubic knight] [--sizes 1000 10000] [--seeds 10] [--seconds 60]
        [--add] [--backend cpu]

A cycle is a tour without forbidden edges, where every edge that is not in the graph is forbidden. Knight's graphs are
those of square chessboards: 1,000 stands for 32 by 32 squares, 10,000 for 100 by 100. Cubic graphs are random, and have
a cycle almost surely (Robinson and Wormald 1992). A run ends at a cycle; set-up is included. --add preserves the other
rows.
"""

from __future__ import annotations

import statistics
import time

import networkx as nx
from harness import Table, parser_for
from pymoo.optimize import minimize

from pymoo_gpuaco import TSP, GPUMemetic, read_cities
from pymoo_gpuaco.algorithms.termination import ColonyTermination

HEADER = "graph | vertices | runs | found | median s:2 | longest s of those found:2 | fewest edges lacking"
NOTE = "A run ends at a cycle; set-up is included. Medians are of the runs that found one."


def knight(n: int) -> nx.Graph:
    """Return the knight's graph of a chessboard of about n squares with an even side."""
    side = 2 * round(n**0.5 / 2)
    graph = nx.Graph()
    for x in range(side):
        for y in range(side):
            for dx, dy in ((1, 2), (2, 1), (2, -1), (1, -2)):
                if x + dx < side and 0 <= y + dy < side:
                    graph.add_edge((x, y), (x + dx, y + dy))
    return graph


GRAPHS = {"knight": knight, "cubic": lambda n: nx.random_regular_graph(3, n, seed=n)}


def run(problem: TSP, seconds: float, seed: int, backend: str) -> tuple[int, float]:
    """Return the number of edges of the best tour that are not in the graph, and the seconds of the call."""
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
    parser.add_argument("--seconds", type=float, default=60.0)
    arguments = parser.parse_args()
    seconds, backend = arguments.seconds, arguments.backend
    name = "gpu_hamiltonian_cycles" if backend == "cuda" else "cpu_hamiltonian_cycles"
    parameters = {"algorithm": "GPUMemetic()", "seconds": seconds}
    table = Table(name, "Hamiltonian cycles of sparse graphs", HEADER, parameters, [NOTE])
    problems = [(graph, read_cities(GRAPHS[graph](n))) for n in arguments.sizes for graph in arguments.graphs]
    if arguments.add:
        table.keep_others({(graph, problem.n_var) for graph, problem in problems}, keys=2)
    for graph, problem in problems:
        run(problem, 0.1, 0, backend)  # compiles kernels
        runs = [run(problem, seconds, seed, backend) for seed in range(1, arguments.seeds + 1)]
        times = [took for lacking, took in runs if lacking == 0]
        median_and_longest = (statistics.median(times), max(times)) if times else (None, None)
        fewest = min(lacking for lacking, _ in runs)
        table.add(graph, problem.n_var, len(runs), len(times), *median_and_longest, fewest)
    table.write(lambda row: (row[0], row[1]))


if __name__ == "__main__":
    main()
