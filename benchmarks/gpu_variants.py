"""Tables 3 to 7 of paper 001 on this GPU: GPUMMAS's six variants and "auto", over all cities and over candidate lists.

    python benchmarks/gpu_variants.py FOLDER [--only d198 pr2392] [--iterations 100]

FOLDER holds the TSPLIB files; instances that it lacks are left out. It takes about 40 seconds on an H200. Parameters
are the paper's (section 5): m = n ants, alpha 1, beta 2, rho 0.5, p_best 0.01, 100 iterations, the iteration's best
deposits. CUDA events lie around every launch; figures are medians over the last 90 % of the iterations. *Construction*
is the preparation of the weights and the walk; the paper's is the walk alone. A last table tells what a whole iteration
consists of, also with local search, 800 ants and 500 iterations.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from folder import problems_of
from kernel_clock import PARTS, KernelClock, iterations
from options import parser_for
from record import write
from references import values

from pymoo_gpuaco import GPUMMAS, TSP
from pymoo_gpuaco.backends import cuda_devices

INSTANCES = ("d198", "pcb442", "rat783", "pr1002", "pcb1173", "rl1889", "pr2392", "fl3795")
NAMES = {"list": "LC", "bitmask": "BT", "compact": "CT"}  # the paper's names of the tabus
VARIANTS = [(s, t) for s in ("rwm", "wrs") for t in NAMES]
PAPER_PARAMETERS: dict[str, Any] = {
    "rho": 0.5,
    "p_best": 0.01,
    "deposit": "iteration_best",
    "local_search": False,
}

#: milliseconds, as printed in the paper: rows as VARIANTS, columns as INSTANCES
TABLE_3 = values("skinderowicz_2020", "table_3")
TABLE_4 = values("skinderowicz_2020", "table_4")
TABLE_5 = values("skinderowicz_2020", "table_5")
TABLE_6 = values("skinderowicz_2020", "table_6")
#: all kernels but the construction, RWM-LC with candidate lists: P100, V100
TABLE_7 = values("skinderowicz_2020", "table_7")
#: the author's code built for and run on an H200, his best variant each
AUTHOR = values("skinderowicz_2020_code", "construction")
LOCAL_SEARCH_ANTS = 800
#: cities from which on a fifth of the iterations is enough where all cities are weighed: each takes tens of ms
LARGE = 1500


def colony(problem: TSP, **arguments: Any) -> GPUMMAS:
    """A set-up GPUMMAS with the paper's parameters."""
    algorithm = GPUMMAS(problem.n_cities, **PAPER_PARAMETERS, **arguments, backend="cuda")
    return algorithm.setup(problem, seed=1)


def timed(algorithm: GPUMMAS, count: int) -> list[dict[str, float]]:
    """Milliseconds by part (``PARTS``) in each of the last 90 % of ``count`` iterations."""
    clock = KernelClock(algorithm.engine)
    times = [clock.read() for _ in iterations(algorithm, count, seed=1)]
    return times[count // 10 :]


def short_gpu() -> str:
    """Name of the GPU without its maker."""
    return cuda_devices()[0].split(",")[0].removeprefix("NVIDIA ")


def searching(problem: TSP) -> GPUMMAS:
    """A set-up GPUMMAS with local search and its defaults."""
    return GPUMMAS(LOCAL_SEARCH_ANTS, backend="cuda").setup(problem, seed=1)


def compile_all(problems: dict[str, TSP]) -> None:
    """Compile what the timed colonies need, side by side: each nvcc takes seconds, and a core of its own."""

    def build(make: Callable[..., GPUMMAS], *arguments: Any, **options: Any) -> None:
        make(*arguments, **options)  # and drops it: only the compiled kernels are wanted

    with ThreadPoolExecutor(min(16, os.cpu_count() or 1)) as pool:
        jobs = []
        for problem in problems.values():
            jobs.append(pool.submit(build, searching, problem))
            jobs.append(pool.submit(build, colony, problem))
            for k in (32, None):
                for s, t in [*VARIANTS, ("auto", "auto")]:
                    jobs.append(
                        pool.submit(build, colony, problem, candidate_list_size=k, selection=s, tabu=t)
                    )
        for job in jobs:
            job.result()  # raises what the thread raised


def tables_of_variants(problems: dict[str, TSP], k: int | None, count: int) -> None:
    """Tables 3 and 4 (``k`` None) or 5 and 6."""
    mode = "all" if k is None else "lists"
    v100, p100 = (TABLE_4, TABLE_3) if k is None else (TABLE_6, TABLE_5)
    v100_name, p100_name = ("Table 4", "Table 3") if k is None else ("Table 6", "Table 5")
    names = list(problems)
    gpu = short_gpu()
    rows: list[list[Any]] = []
    for selection, tabu in [*VARIANTS, ("auto", "auto")]:
        medians, spread = [], 0.0
        for problem in problems.values():
            algorithm = colony(problem, candidate_list_size=k, selection=selection, tabu=tabu)
            times = timed(algorithm, count if k or problem.n_cities < LARGE else max(10, count // 5))
            walks = [t["weights"] + t["walk"] for t in times]
            median = float(np.median(walks))
            low, high = np.quantile(walks, (0.1, 0.9))
            medians.append(round(median, 3))
            spread = max(spread, 100.0 * (high - low) / median)
        label = "auto" if tabu == "auto" else f"{selection.upper()}-{NAMES[tabu]}"
        rows.append([f"{gpu}, here", label, *medians, round(spread, 1)])
        print(mode, dict(zip(names, medians, strict=True)), label, f"spread {spread:.1f} %", flush=True)
    here = rows[-1][2:-1]
    columns_of = [INSTANCES.index(name) for name in names]
    for name, table in ((f"V100, {v100_name}", v100), (f"P100, {p100_name}", p100)):
        for (selection, tabu), row in zip(VARIANTS, table, strict=True):
            rows.append([name, f"{selection.upper()}-{NAMES[tabu]}", *(row[c] for c in columns_of), None])
    author = [AUTHOR[mode].get(name) for name in names]
    rows.append(["H200, author's code", "his best", *author, None])
    best = [min(values[c] for values in v100) for c in columns_of]
    for name, others, digits in (("the V100's best", best, 1), ("his best on an H200", author, 2)):
        ratios = [None if o is None else round(o / h, digits) for o, h in zip(others, here, strict=True)]
        rows.append(["times faster", f"auto than {name}", *ratios, None])
    weighed = "all cities" if k is None else f"candidate lists of {k}"
    path = write(
        f"gpu_variants_{mode}",
        f"Construction with {weighed}: milliseconds an iteration, ants = n",
        ("GPU", "variant", *names, "spread %"),
        rows,
        {
            "alpha": 1,
            "beta": 2,
            "rho": 0.5,
            "p_best": 0.01,
            "ants": "n",
            "iterations": count if k else f"{count}, from {LARGE} cities on {max(10, count // 5)}",
        },
        [
            "RWM roulette wheel, WRS weighted reservoir sampling; LC list, BT bitmask, CT compact tabu.",
            "Here: medians, the preparation of the weights counted; spread is from the 10 % to the 90 % quantile, of "
            "the median, at the instance where it is widest.",
            f"V100 and P100: constants, from {v100_name} and {p100_name} of Skinderowicz 2020, the walk alone. "
            "His code built for an H200 and run on one is a constant too.",
        ],
    )
    print(path)


def table_of_iterations(problems: dict[str, TSP], count: int) -> None:
    """Table 7: what an iteration consists of, without and with local search."""
    rows = []
    for name, problem in problems.items():
        for searches in (False, True):
            make = searching if searches else colony
            ants = LOCAL_SEARCH_ANTS if searches else problem.n_cities
            # the search takes longer on the tours of a colony that has learnt little
            total = 5 * count if searches else count
            whole = []
            before = time.perf_counter()
            for _ in iterations(make(problem), total, seed=1):
                now = time.perf_counter()
                whole.append(1000.0 * (now - before))
                before = now
            whole = whole[total // 10 :]
            # the same iterations again, since the seed is the same: parts and whole are compared one by one
            parts = timed(make(problem), total)
            part = {p: float(np.median([t[p] for t in parts])) for p in PARTS}
            others = np.median([w - sum(t.values()) for w, t in zip(whole, parts, strict=True)])
            walked = [(t["walk"] + t["local search"]) / w for w, t in zip(whole, parts, strict=True)]
            index = INSTANCES.index(name)
            rows.append(
                [
                    name,
                    ants,
                    round(float(np.median(whole)), 3),
                    f"{np.quantile(whole, 0.1):.3f} .. {np.quantile(whole, 0.9):.3f}",
                    round(part["walk"], 3),
                    round(part["local search"], 3) if searches else None,
                    round(part["weights"], 3),
                    round(part["measuring"], 3),
                    round(part["trails"], 3),
                    round(float(others), 3),
                    round(100.0 * (1.0 - float(np.median(walked))), 1),
                    None if searches else TABLE_7[1][index],
                    None if searches else TABLE_7[0][index],
                ]
            )
            print(rows[-1], flush=True)
    path = write(
        "gpu_iteration",
        "What an iteration consists of, milliseconds",
        (
            "instance",
            "ants",
            "whole iteration",
            "10 % .. 90 %",
            "walk",
            "local search",
            "weights",
            "measuring",
            "trails",
            "copies and host",
            "beside walk and search %",
            "V100, Table 7",
            "P100, Table 7",
        ),
        rows,
        {
            "without local search": "rho 0.5, p_best 0.01, ants = n",
            "with local search": f"GPUMemetic({LOCAL_SEARCH_ANTS})",
            "iterations": f"{count}, {5 * count} with local search",
        },
        [
            "Medians. The whole is wall time of the bare engine loop; the parts are kernel times by CUDA events in the "
            "same iterations run again; copies and host are the rest of each iteration: the lengths and the best tour "
            "read back, launches, the host's own work. Launches that the device waits for count to their kernel.",
            "V100 and P100: constants, from Table 7 of Skinderowicz 2020: all kernels but the walk.",
        ],
    )
    print(path)


def main() -> None:
    parser = parser_for(__doc__, only=INSTANCES)
    parser.add_argument("--iterations", type=int, default=100)
    arguments = parser.parse_args()
    problems = problems_of(arguments.folder, arguments.only)
    before = time.perf_counter()
    compile_all(problems)
    print(f"compiled in {time.perf_counter() - before:.0f} s", flush=True)
    tables_of_variants(problems, 32, arguments.iterations)
    tables_of_variants(problems, None, arguments.iterations)
    table_of_iterations(problems, arguments.iterations)
    print(f"{time.perf_counter() - before:.0f} s in all")


if __name__ == "__main__":
    main()
