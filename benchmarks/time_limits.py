"""How late do a time limit and Ctrl-C end a run? Every algorithm, on 20,000 cities and more.

    python benchmarks/time_limits.py [--backend cpu|cuda] [--only GPUACS]

Instances are made, so no folder is needed. A run may take LIMIT seconds; another one, which could go on, is interrupted
after INTERRUPT. What is late counts from there until ``run`` is back, and the tour must be valid and its length
exact. Takes some four minutes.
"""

from __future__ import annotations

import argparse
import signal
import time
from collections.abc import Callable
from typing import Any

from record import write

from pymoo_gpuaco import GPUACS, GPUAS, GPUMMAS, TSP, GPU2OptIHC, load_tsp

LIMIT, INTERRUPT = 1.5, 0.8  # s
LONG = 60.0  # s, more than the interrupt needs
_CASES: tuple[tuple[Callable[..., Any], dict[str, Any], tuple[int, ...]], ...] = (
    (GPUMMAS, {}, (20_000, 100_000, 1_000_000)),
    (GPUMMAS, {"construction": "full"}, (20_000, 100_000)),
    (GPUMMAS, {"n_ants": 3000}, (100_000,)),
    (GPUMMAS, {"construction": "full", "local_search": "windows"}, (100_000,)),
    (GPUMMAS, {"local_search": False}, (100_000,)),
    (GPUAS, {"candidate_list_size": 32}, (100_000,)),
    (GPUACS, {}, (20_000, 100_000)),
    (GPUACS, {"variant": "relaxed"}, (100_000,)),
    (GPUACS, {"variant": "selective"}, (100_000,)),
    (GPU2OptIHC, {}, (20_000, 100_000)),
    (GPU2OptIHC, {"moves": "batch"}, (20_000,)),
)


def typed(algorithm: Callable[..., Any], options: dict[str, Any]) -> str:
    """What is typed for it."""
    arguments = ", ".join(f"{name}={value!r}" for name, value in options.items())
    return f"{algorithm.__name__}({arguments})".replace("'", '"')


#: what is typed but for the backend: the algorithm, its arguments, and instances by their cities
CASES = {typed(algorithm, options): (algorithm, options, sizes) for algorithm, options, sizes in _CASES}


def late(problem: TSP, algorithm: Any, limit: float, interrupt: float | None) -> float:
    """Seconds from the end that a run is told, or from its interrupt, until it is back with its tour."""
    # compiles, and is no part of the run
    algorithm = algorithm.setup(problem, termination=("time", limit), seed=1)
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
    took = time.perf_counter() - began
    result = algorithm.result()
    if result.X is not None:  # an interrupt may come before there is a first tour
        assert problem.tour_length(result.X) == result.F[0]
    return took - (limit if interrupt is None else interrupt)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--backend", choices=("cpu", "cuda"), default="cuda")
    parser.add_argument("--only", default="", help="of the cases, those that begin so")
    arguments = parser.parse_args()
    rows = []
    for text, (algorithm, options, sizes) in CASES.items():
        for n in sizes if text.startswith(arguments.only) else ():
            problem = load_tsp(f"random:{n}")
            row = [
                round(late(problem, algorithm(backend=arguments.backend, **options), limit, interrupt), 2)
                for limit, interrupt in ((LIMIT, None), (LONG, INTERRUPT))
            ]
            rows.append([text, n, *row])
            print(rows[-1], flush=True)
    where = "gpu" if arguments.backend == "cuda" else "cpu"
    path = write(
        f"{where}_time_limits",
        f"How late a time limit and Ctrl-C end a run, on a {where.upper()}",
        (
            "algorithm",
            "cities",
            f"late after a limit of {LIMIT} s, s",
            f"late after Ctrl-C at {INTERRUPT} s, s",
        ),
        rows,
        {"limit": LIMIT, "interrupt": INTERRUPT},
        ["Random cities, one run each. Set-up, which compiles, comes before the run and ends it nowhere."],
    )
    print(path)


if __name__ == "__main__":
    main()
