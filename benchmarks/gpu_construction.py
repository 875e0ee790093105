"""Tour construction of GPUMMAS on a GPU: its variants over candidate lists and over all cities.

    python benchmarks/gpu_construction.py FOLDER

FOLDER holds the TSPLIB files. As paper 001 sets it: m = n ants, alpha 1, beta 2, rho 0.5, p_best 0.01. CUDA events lie
around the weights and the walk of each iteration; medians and spread are over the last 90 % of the iterations. The
author's code was measured on the same kind of GPU, built for it; his figure is that of his best variant.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
from record import write

from pymoo_gpuaco import GPUMMAS, load_tsp

INSTANCES = ("d198", "pcb442", "rat783", "pr1002", "pr2392", "fl3795")
#: milliseconds an iteration
AUTHOR_LISTS = dict(zip(INSTANCES, (0.129, 0.240, 0.455, 0.628, 1.82, 4.43), strict=True))
AUTHOR_ALL = dict(zip(INSTANCES, (0.145, 0.409, 0.978, 1.53, 14.4, 53.4), strict=True))
VARIANTS = [(s, t, 32) for s in ("wrs", "rwm") for t in ("list", "compact", "bitmask")]
VARIANTS += [("auto", "auto", None), ("wrs", "compact", None), ("rwm", "compact", None)]
COLUMNS = (
    "instance",
    "cities weighed",
    "selection",
    "tabu",
    "construction, ms",
    "10 % .. 90 %",
    "whole iteration, ms",
    "author's best, ms",
    "times faster",
)


class Clock:
    """CUDA events around one part of an iteration."""

    def __init__(self, engine: object, part: str) -> None:
        import pycuda.driver as cuda

        self.times: list[float] = []
        inner = getattr(engine, part)

        def timed(key: int) -> None:
            first, last = cuda.Event(), cuda.Event()
            first.record()
            inner(key)
            last.record()
            last.synchronize()
            self.times.append(last.time_since(first))

        setattr(engine, part, timed)


def iterations(algorithm: GPUMMAS, count: int) -> float:
    """Run the engine and the trail updates of the algorithm; seconds an iteration."""
    algorithm._begin()
    keys = np.random.default_rng(1).integers(0, 2**64, count, dtype=np.uint64)
    before = time.perf_counter()
    for key in keys:
        lengths = algorithm.engine.construct(int(key))
        best = int(lengths.argmin())
        algorithm._learn(algorithm.engine.tours([best])[0], float(lengths[best]))
    return (time.perf_counter() - before) / count


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    rows = []
    for name in INSTANCES:
        problem = load_tsp(folder / f"{name}.tsp")
        for selection, tabu, k in VARIANTS:
            algorithm = GPUMMAS(
                problem.n_cities,
                rho=0.5,
                p_best=0.01,
                candidate_list_size=k,
                local_search=False,
                selection=selection,
                tabu=tabu,
                deposit="iteration_best",
                backend="cuda",
            ).setup(problem, seed=1)
            whole = 1000.0 * iterations(algorithm, 100 if k else 30)
            clock = Clock(algorithm.engine, "_build")
            iterations(algorithm, 100 if k else 30)
            kept = np.array(clock.times[len(clock.times) // 10 :])
            median = float(np.median(kept))
            author = (AUTHOR_LISTS if k else AUTHOR_ALL)[name]
            rows.append(
                [
                    name,
                    f"list of {k}" if k else "all",
                    selection,
                    tabu,
                    round(median, 3),
                    f"{np.quantile(kept, 0.1):.3f} .. {np.quantile(kept, 0.9):.3f}",
                    round(whole, 3),
                    author,
                    round(author / median, 2),
                ]
            )
            print(rows[-1], flush=True)
    path = write(
        "gpu_construction",
        "Tour construction of GPUMMAS on a GPU, ants = n, milliseconds an iteration",
        COLUMNS,
        rows,
        {"alpha": 1, "beta": 2, "rho": 0.5, "p_best": 0.01, "ants": "n"},
        [
            "The author's figures are constants here: "
            "the code of Skinderowicz 2020, built for and run on an H200; his best variant each."
        ],
    )
    print(path)


if __name__ == "__main__":
    main()
