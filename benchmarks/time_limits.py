"""How late do a time limit and Ctrl-C end a run? Every algorithm, its arguments, many cities and hard magnitudes.

    python benchmarks/time_limits.py [--backend cpu|cuda] [--only GPUACS] [--most 20000] [--seconds 200]

Instances are made, so no folder is needed. A run may take LIMIT seconds, of which set-up counts and compiling does not;
another one, which could go on, is interrupted INTERRUPT after its set-up. What is late counts from there until ``run``
is back, and the tour must be valid and its length exact. Where set-up alone takes longer than the limit, the run is to
end with its first tour, and what is late counts from the end of set-up; but of flow shops, whose lists of candidates
could take seconds, all of set-up counts. Takes some twenty minutes on a CPU.

What is measured is kept in .bench/ until all is there, and then written: with ``--seconds`` a call begins no instance
after so long, and the same call again goes on, if the commit is the same.
"""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from asymmetric_kinds import instance as asymmetric
from options import parser_for
from record import ROOT, commit, write

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
LONG = 60.0  # s, more than the interrupt needs
MOST = 2_000_000  # cities, unless more are asked for: ten million are for a GPU
SMALL, MAGNITUDES = 300, (1e-12, 1e-6, 1e6, 1e15)  # cities, in squares of such sides
FLOW_SHOPS = {"GPUMMAS()": (5_000,)}  # jobs, by what is typed
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
    (GPU2OptIHC, {"moves": "batch"}, (20_000,)),
)


def typed(algorithm: Callable[..., Any], options: dict[str, Any]) -> str:
    """What is typed for it."""
    arguments = ", ".join(f"{name}={value!r}" for name, value in options.items())
    return f"{algorithm.__name__}({arguments})".replace("'", '"')


#: what is typed but for the backend: the algorithm, its arguments, and instances by their cities
CASES = {typed(algorithm, options): (algorithm, options, sizes) for algorithm, options, sizes in _CASES}


def flow_shop(jobs: int) -> TSP:
    """Jobs that never wait between machines: which follows which."""
    return TSP(matrix=asymmetric("flow shop", jobs))


def instances(
    sizes: tuple[int, ...], most: int = MOST, jobs: tuple[int, ...] = ()
) -> dict[str, Callable[[], TSP]]:
    """Random cities of these numbers, few of them at hard magnitudes, and flow shops, each made when it is wanted."""
    unit = np.random.default_rng(3).random((SMALL, 2))
    hard = {f"{SMALL} at {side:g}": partial(TSP, unit * side) for side in MAGNITUDES}
    shops = {f"{n} jobs": partial(flow_shop, n) for n in jobs if n <= most}
    return {f"{n}": partial(load_tsp, f"random:{n}") for n in sizes if n <= most} | hard | shops


def late(problem: TSP, algorithm: Any, limit: float, interrupt: float | None, whole: bool = False) -> float:
    """Seconds from the end that a run is told, or from its interrupt, until it is back with its tour.

    whole : whether set-up counts where it takes longer than the limit, too.
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
    if result.X is not None:  # an interrupt may come before there is a first tour
        assert problem.tour_length(result.X) == result.F[0]
    if interrupt is not None:
        return ran - interrupt
    return ran - (limit - set_up if whole else max(0.0, limit - set_up))


def kept_rows(path: Path) -> dict[str, list[Any]]:
    """Rows that earlier calls have measured of this commit, by algorithm and cities."""
    if not path.is_file():
        return {}
    earlier = json.loads(path.read_text(encoding="utf-8"))
    return {f"{row[0]} on {row[1]}": row for row in earlier["rows"]} if earlier["commit"] == commit() else {}


def main() -> None:
    parser = parser_for(__doc__, folder="none", backend="cuda")
    parser.add_argument("--only", default="", help="of the cases, those that begin so; no file is written")
    parser.add_argument("--most", type=int, default=MOST, help="cities; below, no file is written")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin nothing after so long")
    arguments = parser.parse_args()
    where, began = "gpu" if arguments.backend == "cuda" else "cpu", time.monotonic()
    path = ROOT / ".bench" / f"{where}_time_limits.json"
    path.parent.mkdir(exist_ok=True)
    rows, left = kept_rows(path), 0
    for text, (algorithm, options, sizes) in CASES.items():
        ready = False
        jobs = FLOW_SHOPS.get(text, ())
        wanted = instances(sizes, arguments.most, jobs) if text.startswith(arguments.only) else {}
        for name, made in wanted.items():
            if f"{text} on {name}" in rows:
                continue
            if time.monotonic() - began > arguments.seconds:
                left += 1
                continue
            if not ready:  # compiled
                late(load_tsp("random:200"), algorithm(backend=arguments.backend, **options), 0.1, None)
                ready = True
            problem, whole = made(), name.endswith("jobs")
            row = [
                round(
                    late(problem, algorithm(backend=arguments.backend, **options), limit, interrupt, whole), 2
                )
                for limit, interrupt in ((LIMIT, None), (LONG, INTERRUPT))
            ]
            rows[f"{text} on {name}"] = [text, name, *row]
            print([text, name, *row], flush=True)
            path.write_text(json.dumps({"commit": commit(), "rows": list(rows.values())}), encoding="utf-8")
    print(f"{left} are left")
    if left or arguments.only or arguments.most < MOST:
        return
    ordered = [
        rows[f"{text} on {name}"]
        for text, (*_, sizes) in CASES.items()
        for name in instances(sizes, arguments.most, FLOW_SHOPS.get(text, ()))
    ]
    print(
        write(
            f"{where}_time_limits",
            f"How late a time limit and Ctrl-C end a run, on a {where.upper()}",
            (
                "algorithm",
                "cities",
                f"late after a limit of {LIMIT} s, s",
                f"late after Ctrl-C at {INTERRUPT} s, s",
            ),
            ordered,
            {"limit": LIMIT, "interrupt": INTERRUPT},
            [
                "Random cities and flow shops, one run each. Set-up counts in the limit but ends at it only where it "
                "makes candidates of flow shops; compiling does not count."
            ],
        )
    )
    path.unlink()


if __name__ == "__main__":
    main()
