"""Overrun of a time limit and of Ctrl-C: every algorithm, its arguments, many cities and extreme coordinates.

    python benchmarks/time_limits.py [--backend cpu|cuda] [--only GPUACS] [--most 20000] [--add]

Instances are generated. A run has a limit of LIMIT seconds, which includes set-up but no compilation of kernels; a
second, longer run is interrupted INTERRUPT seconds after its set-up. The overrun is the time from there until ``run``
returns; the tour must be valid and its length exact. If set-up alone takes longer than the limit, the run must end with
its first tour, and the overrun is that after set-up; for flow shops, whose candidate lists could take seconds, it
includes set-up. Takes five minutes on a CPU; ``--only`` and ``--add`` measure parts of it.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
from asymmetric_kinds import instance as asymmetric
from harness import Table, parser_for

from pymoo_gpuaco import (
    GPUACS,
    GPUAS,
    GPUBWAS,
    GPUEAS,
    GPUMMAS,
    GPURAS,
    TSP,
    GPU2OptIHC,
    GPUMemetic,
    LocalSearch,
    load_tsp,
)
from pymoo_gpuaco.runtime import compiling

LIMIT, INTERRUPT = 1.5, 0.8  # s
LONG = 60.0  # s, limit of the interrupted run
MOST = 2_000_000  # default maximum of cities: ten million are for a GPU
SMALL, MAGNITUDES = 300, (1e-12, 1e-6, 1e6, 1e15)  # number of cities, and sides of their squares
FLOW_SHOPS = {"GPUMMAS()": (5_000,)}  # numbers of jobs, by case
_LISTS = {"candidate_list_size": 32}
_CASES: tuple[tuple[Callable[..., Any], dict[str, Any], tuple[int, ...]], ...] = (
    (GPUMemetic, {}, (20_000, 100_000, 1_000_000, 2_000_000, 10_000_000)),
    (GPUMemetic, {"population_size": 64}, (20_000,)),
    (GPUMemetic, {"candidates": "alpha"}, (20_000, 100_000)),
    (GPUMMAS, {}, (20_000, 200_000)),
    (GPUMMAS, {"candidate_list_size": None}, (5_000, 20_000)),
    (GPUMMAS, {"pheromone": "dense"}, (20_000,)),
    (GPUMMAS, {"n_ants": 3000}, (100_000,)),
    (GPUMMAS, {"local_search": "windows"}, (20_000, 100_000)),
    (GPUMMAS, {"local_search": "2opt"}, (100_000,)),
    (GPUMMAS, {"local_search": LocalSearch(kicks=5.0)}, (20_000,)),
    (GPUMMAS, {"local_search": False}, (100_000,)),
    (GPUAS, {}, (5_000, 20_000)),
    (GPUAS, _LISTS, (100_000,)),
    (GPUEAS, {}, (20_000,)),
    (GPUEAS, _LISTS, (100_000,)),
    (GPURAS, _LISTS, (100_000,)),
    (GPUBWAS, {}, (20_000, 100_000)),
    (GPUACS, {}, (20_000, 200_000)),
    (GPUACS, {"variant": "relaxed"}, (100_000,)),
    (GPUACS, {"variant": "selective"}, (100_000,)),
    (GPU2OptIHC, {}, (20_000, 100_000)),
)


def typed(algorithm: Callable[..., Any], options: dict[str, Any]) -> str:
    """Format the call that creates an algorithm."""
    arguments = ", ".join(f"{name}={value!r}" for name, value in options.items())
    return f"{algorithm.__name__}({arguments})".replace("'", '"')


#: by the call without the backend: algorithm, arguments, and numbers of cities
CASES = {typed(algorithm, options): (algorithm, options, sizes) for algorithm, options, sizes in _CASES}


def flow_shop(jobs: int) -> TSP:
    """Return the order of jobs without waiting as a TSP."""
    return TSP(matrix=asymmetric("flow shop", jobs))


def instances(
    sizes: tuple[int, ...], most: int = MOST, jobs: tuple[int, ...] = ()
) -> Mapping[str, Callable[[], TSP]]:
    """Return constructors of random cities, a few cities with extreme coordinates, and flow shops, by name."""
    unit = np.random.default_rng(3).random((SMALL, 2))
    hard = {f"{SMALL} at {side:g}": partial(TSP, unit * side) for side in MAGNITUDES}
    shops = {f"{n} jobs": partial(flow_shop, n) for n in jobs if n <= most}
    return {f"{n}": partial(load_tsp, f"random:{n}") for n in sizes if n <= most} | hard | shops


def late(problem: TSP, algorithm: Any, limit: float, interrupt: float | None, whole: bool = False) -> float:
    """Return the seconds from the time limit of a run, or from its interrupt, until it returns its tour.

    whole : True: set-up counts even if it takes longer than the limit.
    """
    with compiling.timed() as took:
        algorithm = algorithm.setup(problem, termination=("time", limit), seed=1)
    set_up = took.seconds
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    began = time.perf_counter()
    signal.setitimer(signal.ITIMER_REAL, interrupt or 0.0)
    try:
        algorithm.run()
    except KeyboardInterrupt:
        pass
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
    ran = time.perf_counter() - began
    result = algorithm.result()
    if result.X is not None:  # an interrupt may precede the first tour
        assert problem.tour_length(result.X) == result.F[0]
    if interrupt is not None:
        return ran - interrupt
    return ran - (limit - set_up if whole else max(0.0, limit - set_up))


def main() -> None:
    parser = parser_for(__doc__, folder="none", add=True, backend="cuda")
    parser.add_argument("--only", default="", help="prefix of the cases")
    parser.add_argument("--most", type=int, default=MOST, help="maximum number of cities")
    arguments = parser.parse_args()
    where, backend = "gpu" if arguments.backend == "cuda" else "cpu", arguments.backend
    table = Table(
        f"{where}_time_limits",
        f"Overrun of a time limit and of Ctrl-C, on a {where.upper()}",
        f"algorithm | cities | late after a limit of {LIMIT} s, s:2 | late after Ctrl-C at {INTERRUPT} s, s:2",
        {"limit": LIMIT, "interrupt": INTERRUPT},
        [
            "Random cities and flow shops, one run each. The limit includes set-up, which obeys it only for candidates "
            "of flow shops; compilation of kernels is excluded."
        ],
    )
    wanted = [text for text in CASES if text.startswith(arguments.only)]
    if arguments.add:
        table.keep_others(wanted)
    for text in wanted:
        algorithm, options, sizes = CASES[text]
        late(load_tsp("random:200"), algorithm(backend=backend, **options), 0.1, None)  # compiles kernels
        for name, made in instances(sizes, arguments.most, FLOW_SHOPS.get(text, ())).items():
            problem, whole = made(), name.endswith("jobs")
            overruns = [
                late(problem, algorithm(backend=backend, **options), limit, interrupt, whole)
                for limit, interrupt in ((LIMIT, None), (LONG, INTERRUPT))
            ]
            table.add(text, name, *overruns)
        table.write(lambda row: list(CASES).index(row[0]))


if __name__ == "__main__":
    main()
