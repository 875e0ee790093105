"""GPUMMAS's six variants and "auto", over all cities and candidate lists, as in Tables 3 to 7 of Skinderowicz 2020.

    python benchmarks/gpu_variants.py FOLDER [--only d198 pr2392] [--iterations 100]

FOLDER contains the TSPLIB files; missing instances are skipped. It takes about 40 seconds on an H200. Parameters are
those of the paper (section 5): m = n ants, alpha 1, beta 2, rho 0.5, p_best 0.01, 100 iterations, the iteration's best
deposits. CUDA events measure every launch; figures are medians over the last 90 % of the iterations. *Construction* is
the computation of the weights and the walk, in the paper the walk alone. The last table has the parts of a whole
iteration, also with local search, 800 ants and 500 iterations.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np
from harness import Table, parser_for, problems_of, values
from kernel_clock import PARTS, KernelClock, iterations

from pymoo_gpuaco import GPUMMAS, TSP
from pymoo_gpuaco.backends import cuda_devices

INSTANCES = ("d198", "pcb442", "rat783", "pr1002", "pcb1173", "rl1889", "pr2392", "fl3795")
NAMES = {"list": "LC", "bitmask": "BT", "compact": "CT"}  # names of the tabus in the paper
VARIANTS = [(s, t) for s in ("rwm", "wrs") for t in NAMES]
PAPER_PARAMETERS: dict[str, Any] = {
    "rho": 0.5,
    "p_best": 0.01,
    "deposit": "iteration_best",
    "local_search": False,
}

#: milliseconds in the paper: rows as VARIANTS, columns as INSTANCES
TABLE_3 = values("skinderowicz_2020", "table_3")
TABLE_4 = values("skinderowicz_2020", "table_4")
TABLE_5 = values("skinderowicz_2020", "table_5")
TABLE_6 = values("skinderowicz_2020", "table_6")
#: all kernels except the construction, RWM-LC with candidate lists: P100, V100
TABLE_7 = values("skinderowicz_2020", "table_7")
#: the author's code compiled for and run on an H200, the best variant of each instance
AUTHOR = values("skinderowicz_2020_code", "construction")
LOCAL_SEARCH_ANTS = 800
#: number of cities from which a fifth of the iterations is measured over all cities: each takes tens of ms
LARGE = 1500


def colony(problem: TSP, **arguments: Any) -> GPUMMAS:
    """Create and set up a GPUMMAS with the paper's parameters."""
    algorithm = GPUMMAS(problem.n_cities, **PAPER_PARAMETERS, **arguments, backend="cuda")
    return algorithm.setup(problem, seed=1)


def timed(algorithm: GPUMMAS, count: int) -> list[dict[str, float]]:
    """Return the milliseconds by part (``PARTS``) in each of the last 90 % of ``count`` iterations."""
    clock = KernelClock(algorithm.engine)
    times = [clock.read() for _ in iterations(algorithm, count, seed=1)]
    return times[count // 10 :]


def searching(problem: TSP) -> GPUMMAS:
    """Create and set up a GPUMMAS with default arguments and local search."""
    return GPUMMAS(LOCAL_SEARCH_ANTS, backend="cuda").setup(problem, seed=1)


def build(make: Callable[[], GPUMMAS]) -> None:
    """Create and discard a colony, to compile its kernels."""
    make()


def compile_all(problems: dict[str, TSP]) -> None:
    """Compile the kernels of all colonies in parallel: each nvcc takes seconds on one core."""
    makes = [partial(make, problem) for problem in problems.values() for make in (searching, colony)]
    makes += [
        partial(colony, problem, candidate_list_size=k, selection=s, tabu=t)
        for problem in problems.values()
        for k in (32, None)
        for s, t in [*VARIANTS, ("auto", "auto")]
    ]
    with ThreadPoolExecutor(min(16, os.cpu_count() or 1)) as pool:
        list(pool.map(build, makes))


def tables_of_variants(problems: dict[str, TSP], k: int | None, count: int) -> None:
    """Measure and write Tables 3 and 4 (``k`` None) or 5 and 6."""
    mode = "all" if k is None else "lists"
    v100, p100 = (TABLE_4, TABLE_3) if k is None else (TABLE_6, TABLE_5)
    v100_name, p100_name = ("Table 4", "Table 3") if k is None else ("Table 6", "Table 5")
    names, fewer = list(problems), max(10, count // 5)
    weighed = "all cities" if k is None else f"candidate lists of {k}"
    table = Table(
        f"gpu_variants_{mode}",
        f"Construction with {weighed}: milliseconds an iteration, ants = n",
        " | ".join(["GPU | variant", *(f"{name}:3" for name in names), "spread %:1"]),
        {
            "alpha": 1,
            "beta": 2,
            "rho": 0.5,
            "p_best": 0.01,
            "ants": "n",
            "iterations": count if k else f"{count}, from {LARGE} cities on {fewer}",
        },
        [
            "RWM roulette wheel, WRS weighted reservoir sampling; LC list, BT bitmask, CT compact tabu.",
            "Here: medians, including the computation of the weights; spread: 10 % to 90 % quantile relative to the "
            "median, at the instance where it is widest.",
            f"V100 and P100: constants, from {v100_name} and {p100_name} of Skinderowicz 2020, the walk alone. "
            "The figures of his code, compiled for and run on an H200, are constants as well.",
        ],
    )
    gpu = cuda_devices()[0].split(",")[0].removeprefix("NVIDIA ")
    for selection, tabu in [*VARIANTS, ("auto", "auto")]:
        medians, spread = [], 0.0
        for problem in problems.values():
            algorithm = colony(problem, candidate_list_size=k, selection=selection, tabu=tabu)
            times = timed(algorithm, count if k or problem.n_cities < LARGE else fewer)
            walks = [t["weights"] + t["walk"] for t in times]
            low, median, high = np.quantile(walks, (0.1, 0.5, 0.9))
            medians.append(float(median))
            spread = max(spread, 100.0 * (high - low) / median)
        label = "auto" if tabu == "auto" else f"{selection.upper()}-{NAMES[tabu]}"
        table.add(f"{gpu}, here", label, *medians, spread)
    here = table.rows[-1][2:-1]
    columns_of = [INSTANCES.index(name) for name in names]
    for name, published in ((f"V100, {v100_name}", v100), (f"P100, {p100_name}", p100)):
        for (selection, tabu), row in zip(VARIANTS, published, strict=True):
            table.add(name, f"{selection.upper()}-{NAMES[tabu]}", *(row[c] for c in columns_of), None)
    author = [AUTHOR[mode].get(name) for name in names]
    table.add("H200, author's code", "his best", *author, None)
    best = [min(row[c] for row in v100) for c in columns_of]
    for name, others, digits in (("the V100's best", best, 1), ("his best on an H200", author, 2)):
        ratios = [None if o is None else round(o / h, digits) for o, h in zip(others, here, strict=True)]
        table.add("times faster", f"auto than {name}", *ratios, None)
    table.write()


def table_of_iterations(problems: dict[str, TSP], count: int) -> None:
    """Measure and write Table 7: the parts of an iteration, without and with local search."""
    table = Table(
        "gpu_iteration",
        "What an iteration consists of, milliseconds",
        "instance | ants | whole iteration:3 | 10 % .. 90 % | walk:3 | local search:3 | weights:3 | measuring:3 | "
        "trails:3 | copies and host:3 | beside walk and search %:1 | V100, Table 7 | P100, Table 7",
        {
            "without local search": "rho 0.5, p_best 0.01, ants = n",
            "with local search": f"GPUMMAS({LOCAL_SEARCH_ANTS})",
            "iterations": f"{count}, {5 * count} with local search",
        },
        [
            "Medians. Whole iteration: wall time of the bare engine loop. Parts: kernel times by CUDA events in a "
            "second run of the same iterations. Copies and host: the rest of each iteration, such as copies of lengths "
            "and best tour, launches, and work of the host. Waiting for a launch counts to its kernel.",
            "V100 and P100: constants, from Table 7 of Skinderowicz 2020: all kernels except the walk.",
        ],
    )
    for name, problem in problems.items():
        for searches in (False, True):
            make = searching if searches else colony
            ants = LOCAL_SEARCH_ANTS if searches else problem.n_cities
            # in the first iterations the search takes longer
            total = 5 * count if searches else count
            whole = []
            before = time.perf_counter()
            for _ in iterations(make(problem), total, seed=1):
                now = time.perf_counter()
                whole.append(1000.0 * (now - before))
                before = now
            whole = whole[total // 10 :]
            # the same iterations again, by the same seed: parts and whole are compared one by one
            parts = timed(make(problem), total)
            part = {p: float(np.median([t[p] for t in parts])) for p in PARTS}
            others = np.median([w - sum(t.values()) for w, t in zip(whole, parts, strict=True)])
            walked = [(t["walk"] + t["local search"]) / w for w, t in zip(whole, parts, strict=True)]
            low, median, high = np.quantile(whole, (0.1, 0.5, 0.9))
            search = part["local search"] if searches else None
            cells = [part["walk"], search, part["weights"], part["measuring"], part["trails"], others]
            published = [None if searches else row[INSTANCES.index(name)] for row in TABLE_7[::-1]]
            beside = 100.0 * (1.0 - float(np.median(walked)))
            table.add(name, ants, median, f"{low:.3f} .. {high:.3f}", *cells, beside, *published)
    table.write()


def main() -> None:
    parser = parser_for(__doc__, only=INSTANCES)
    parser.add_argument("--iterations", type=int, default=100)
    arguments = parser.parse_args()
    problems = problems_of(arguments.folder, arguments.only)
    compile_all(problems)
    tables_of_variants(problems, 32, arguments.iterations)
    tables_of_variants(problems, None, arguments.iterations)
    table_of_iterations(problems, arguments.iterations)


if __name__ == "__main__":
    main()
