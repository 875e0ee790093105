"""Times tour construction and whole runs of the CUDA colony and writes results/gpu_construction.json.

Construction: m = n ants, k = 32 or all cities, 100 iterations of MMAS as paper 001 sets them (rho = 0.5, p_best = 0.01,
alpha = 1, beta = 2); CUDA events around the weights and the walk of each iteration; medians over the last 90.
Search: 800 ants with 2-opt and Or-opt, 2000 iterations; wall time of the whole loop, and the gap to the best known.

    python benchmarks/gpu_construction.py [folder of .tsp files] [--quick] [--no-search]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import time
from pathlib import Path

import numpy as np

from pymoo_gpuaco.backends.cuda import devices
from pymoo_gpuaco.backends.cuda.engine import CudaColony
from pymoo_gpuaco.colony.parameters import ColonyParameters, LocalSearch
from pymoo_gpuaco.colony.trails import TrailUpdate, best_so_far_deposits, trail_limits
from pymoo_gpuaco.problems import load_tsp
from pymoo_gpuaco.problems.instance import as_instance

RESULT = Path(__file__).parent / "results" / "gpu_construction.json"
INSTANCES = ("d198", "pcb442", "rat783", "pr1002", "pr2392", "fl3795")
# The author's code of paper 001 built for sm_90 on an H200, m = n, milliseconds an iteration: best variant each.
AUTHOR_LISTS = dict(zip(INSTANCES, (0.129, 0.240, 0.455, 0.628, 1.82, 4.43), strict=True))
AUTHOR_ALL = dict(zip(INSTANCES, (0.145, 0.409, 0.978, 1.53, 14.4, 53.4), strict=True))
AUTHOR_SEARCH = {"pr1002": (2.6, 0.23), "pr2392": (5.5, 0.33)}  # seconds, mean error in percent
BEST_KNOWN = {"pr1002": 259045, "pr2392": 378032}


class Clock:
    """CUDA events around one part of an iteration."""

    def __init__(self, engine: CudaColony, part: str) -> None:
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


def run(engine: CudaColony, iterations: int, rho: float, p_best: float, seed: int, scheduled: bool) -> tuple:
    """MMAS on the engine alone; return (best length, seconds)."""
    instance = engine.instance
    choices = float(engine.parameters.candidate_list_size or instance.n)
    best_tour, best = engine.greedy_tour()
    unit = best
    engine.reset_trails(trail_limits(best / unit, instance.n, choices, rho, p_best)[1])
    start = time.perf_counter()
    for iteration in range(iterations):
        lengths = engine.construct(seed << 32 | iteration)
        ant = int(lengths.argmin())
        length = float(lengths[ant])
        tour = engine.tours([ant])[0]
        if length < best:
            best_tour, best = tour, length
        if scheduled and best_so_far_deposits(iteration):
            tour, length = best_tour, best
        low, high = trail_limits(best / unit, instance.n, choices, rho, p_best)
        engine.update_trails(TrailUpdate(rho, ((tour, unit / length),), tau_min=low, tau_max=high))
    return best, time.perf_counter() - start


def summary(times: list[float]) -> dict[str, float]:
    kept = np.array(times[len(times) // 10 :])
    return {
        "median_ms": float(np.median(kept)),
        "p10_ms": float(np.quantile(kept, 0.1)),
        "p90_ms": float(np.quantile(kept, 0.9)),
    }


def construction(folder: Path, quick: bool) -> list[dict]:
    rows = []
    variants = [(s, t, 32) for s in ("wrs", "rwm") for t in ("list", "compact", "bitmask")]
    variants += [("hybrid", "bitmask", None), ("wrs", "compact", None), ("rwm", "compact", None)]
    for name in INSTANCES:
        instance = as_instance(load_tsp(str(folder / f"{name}.tsp")), 32)
        for selection, tabu, k in variants:
            parameters = ColonyParameters(
                n_ants=instance.n, candidate_list_size=k, selection=selection, tabu=tabu
            )
            engine = CudaColony(instance, parameters)
            clock = Clock(engine, "_build")
            iterations = 30 if quick or k is None else 100
            _, seconds = run(engine, iterations, 0.5, 0.01, 1, False)
            author = (AUTHOR_LISTS if k else AUTHOR_ALL)[name]
            row = {"instance": name, "k": k, "selection": selection, "tabu": tabu, **summary(clock.times)}
            row["iteration_ms"] = 1e3 * seconds / iterations
            row["author_best_variant_ms"] = author
            row["times_faster"] = author / row["median_ms"]
            rows.append(row)
            print(
                f"{name:8} k={k!s:4} {selection:6} {tabu:8} {row['median_ms']:8.3f} ms "
                f"(author {author:6.3f}, x{row['times_faster']:.2f}), iteration {row['iteration_ms']:.3f} ms",
                flush=True,
            )
    return rows


def search(folder: Path, iterations: int, seeds: int) -> list[dict]:
    rows = []
    for name, (author_seconds, author_error) in AUTHOR_SEARCH.items():
        instance = as_instance(load_tsp(str(folder / f"{name}.tsp")), 32)
        errors, seconds = [], []
        for seed in range(1, seeds + 1):
            parameters = ColonyParameters(n_ants=800, local_search=LocalSearch(kicks=0.0))
            engine = CudaColony(instance, parameters)
            best, taken = run(engine, iterations, 0.2, 0.05, seed, True)
            errors.append(100 * (best / BEST_KNOWN[name] - 1))
            seconds.append(taken)
        row = {
            "instance": name,
            "ants": 800,
            "iterations": iterations,
            "seeds": seeds,
            "mean_error_percent": float(np.mean(errors)),
            "errors_percent": errors,
            "median_seconds": float(np.median(seconds)),
            "author_seconds": author_seconds,
            "author_mean_error_percent": author_error,
        }
        rows.append(row)
        print(
            f"{name}: {row['median_seconds']:.2f} s (author {author_seconds}), error "
            f"{row['mean_error_percent']:.3f} % (author {author_error})",
            flush=True,
        )
    return rows


def commit() -> str:
    shown = subprocess.run(
        ["git", "rev-parse", "HEAD"], capture_output=True, text=True, cwd=Path(__file__).parent
    )
    return shown.stdout.strip() if shown.returncode == 0 else "unknown"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", nargs="?", default=".", type=Path)
    parser.add_argument("--quick", action="store_true", help="fewer iterations and seeds")
    parser.add_argument("--no-search", action="store_true")
    parser.add_argument("--output", type=Path, default=RESULT)
    options = parser.parse_args()
    from pymoo_gpuaco.backends.cuda.compile import nvcc_path, nvcc_version

    result = {
        "date": time.strftime("%Y-%m-%d"),
        "commit": commit(),
        "gpu": devices()[0],
        "nvcc": nvcc_version(nvcc_path()).strip().splitlines()[-1],
        "parameters": "m = n, alpha 1, beta 2, rho 0.5, p_best 0.01; search: rho 0.2, p_best 0.05, kicks 0",
        "author": "figures labelled author: code of paper 001 built for sm_90, measured on an H200",
        "construction": construction(options.folder, options.quick),
    }
    if not options.no_search:
        result["search"] = search(options.folder, 500 if options.quick else 2000, 1 if options.quick else 5)
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps(result, indent=1) + "\n")
    print(f"written: {options.output}")


if __name__ == "__main__":
    main()
