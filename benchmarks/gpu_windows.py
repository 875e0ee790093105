"""How fast focused ants work on a GPU: trials a second, and what a round of windows consists of, by number of cities.

    python benchmarks/gpu_windows.py FOLDER [--instances random:1000 pla85900 ..]

Maps are random:N, which are made, and files of FOLDER; those that it lacks are left out. Measured is the second cycle
of annealing. It takes about two minutes.
"""

from __future__ import annotations

import gc
import time
from typing import Any

import numpy as np
from folder import problems_of
from kernel_clock import KernelClock, iterations
from numpy.typing import NDArray
from options import parser_for
from record import write

from pymoo_gpuaco import TSP, GPUMemetic
from pymoo_gpuaco.backends.cuda.search_device import ROUNDS

INSTANCES = [
    *(
        f"random:{n}"
        for n in (1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 200_000, 500_000, 1_000_000)
    ),
    "pr2392",
    "fnl4461",
    "d18512",
    "pla85900",
]
MOST = 10_000  # generations of two cycles
KERNELS = ("search_windows", "commit_exchanges", "lay_out")
COLUMNS = (
    "instance",
    "cities",
    "tours",
    "windows of each",
    "cities a window",
    "10^6 trials a second",
    "looks a trial",
    *(f"{kernel}, us a round" for kernel in KERNELS),
    "other kernels, us a round",
    "wall, us a round",
)


def cycle(problem: TSP, clocked: bool) -> tuple[Any, NDArray[np.float64], float, dict[str, float]]:
    """The second cycle: the engine, and a round's counts, microseconds of wall time and of every kernel."""
    algorithm = GPUMemetic(backend="cuda").setup(problem, seed=1)
    engine: Any = algorithm.engine
    generations = iterations(algorithm, MOST, seed=1)
    while engine._schedule.cycle < 1:  # tours are repaired, lists by alpha-nearness of few cities are there
        next(generations)
    clock = KernelClock(engine.device, str) if clocked else None
    before = counted(engine)
    began = time.perf_counter()
    rounds = 0
    while engine._schedule.cycle < 2:
        next(generations)
        rounds += ROUNDS
    wall = 1e6 * (time.perf_counter() - began) / rounds
    times = {} if clock is None else {name: 1e3 * ms / rounds for name, ms in clock.read().items()}
    return engine, (counted(engine) - before) / rounds, wall, times


def row_for(problem: TSP) -> list[Any]:
    """Measure one map, once by the host's clock and once with events around the kernels, which take time themselves."""
    engine, count, wall, _ = cycle(problem, clocked=False)
    tours, windows_of_each = engine.device.n_tours, engine.device.windows.windows
    del engine
    gc.collect()
    _, _, _, times = cycle(problem, clocked=True)
    trials, looks, cities, windows = (float(number) for number in count)
    kernels = [times.pop(kernel) for kernel in KERNELS]
    return [
        problem.n_cities,
        tours,
        windows_of_each,
        round(cities / windows, 1),
        round(trials / wall, 3),
        round(looks / trials, 1),
        *(round(microseconds, 1) for microseconds in kernels),
        round(sum(times.values()), 1),
        round(wall, 1),
    ]


def counted(engine: Any) -> NDArray[np.uint64]:
    """What the engine's windows have counted so far."""
    with engine.device.working():
        return engine.device.windows.statistics()


def main() -> None:
    parser = parser_for(__doc__)
    parser.add_argument("--instances", nargs="+", default=INSTANCES)
    arguments = parser.parse_args()
    rows: list[list[Any]] = []
    for name, problem in problems_of(arguments.folder, arguments.instances).items():
        rows.append([name, *row_for(problem)])
        print(dict(zip(COLUMNS, rows[-1], strict=True)), flush=True)
    write(
        "gpu_windows",
        "Rounds of window search",
        COLUMNS,
        rows,
        {"algorithm": "GPUMemetic()"},
        [
            "Means over the rounds of the second cycle of annealing. Kernels by CUDA events, in a second run that does "
            "the same; the wall time has the merge of the tours at the end of the cycle in it, which the host does.",
            "A trial is a kick and its repair; a look is a city whose neighbours are tried.",
        ],
    )


if __name__ == "__main__":
    main()
