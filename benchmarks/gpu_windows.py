"""How fast focused ants work on a GPU: trials a second, and what a round of windows consists of, by number of cities.

    python benchmarks/gpu_windows.py [FOLDER] [--cities 1000 10000 ..]

The maps are random and made here; FOLDER is not read. Measured is one cycle of annealing after the tours have been
repaired. It takes about a minute.
"""

from __future__ import annotations

import argparse
import gc
import time
from pathlib import Path
from typing import Any

import numpy as np
from kernel_clock import KernelClock
from numpy.typing import NDArray
from record import write

from pymoo_gpuaco import GPUMMAS
from pymoo_gpuaco.backends.cuda.focused import FIRST_CYCLE, ROUNDS
from pymoo_gpuaco.problems import random_map

CITIES = (1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 200_000, 500_000, 1_000_000)
KERNELS = ("search_windows", "commit_exchanges", "lay_out")
COLUMNS = (
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


def cycle(n: int, clocked: bool) -> tuple[Any, NDArray[np.uint64], float, dict[str, float]]:
    """One cycle: the engine, what its windows counted, microseconds a round of wall time and of every kernel."""
    engine: Any = GPUMMAS(backend="cuda").setup(random_map(n), seed=1).engine
    key = 0
    while key == 0 or engine._descent > 0:
        engine.construct(key)
        key += 1
    clock = KernelClock(engine, str) if clocked else None
    before = counted(engine)
    began = time.perf_counter()
    for _ in range(FIRST_CYCLE // ROUNDS):
        engine.construct(key)
        key += 1
    wall = 1e6 * (time.perf_counter() - began) / FIRST_CYCLE
    times = {} if clock is None else {name: 1e3 * ms / FIRST_CYCLE for name, ms in clock.read().items()}
    return engine, counted(engine) - before, wall, times


def row_for(n: int) -> list[Any]:
    """Measure one map, once by the host's clock and once with events around the kernels, which take time themselves."""
    engine, count, wall, _ = cycle(n, clocked=False)
    tours, windows_of_each = engine.windows.tours, engine.windows.windows
    del engine
    gc.collect()
    _, _, _, times = cycle(n, clocked=True)
    trials, looks, cities, windows = (int(number) for number in count)
    kernels = [times.pop(kernel) for kernel in KERNELS]
    return [
        n,
        tours,
        windows_of_each,
        round(cities / windows, 1),
        round(trials / (wall * FIRST_CYCLE), 3),
        round(looks / trials, 1),
        *(round(microseconds, 1) for microseconds in kernels),
        round(sum(times.values()), 1),
        round(wall, 1),
    ]


def counted(engine: Any) -> NDArray[np.uint64]:
    """What the engine's windows have counted so far."""
    with engine.device.working():
        return engine.windows.statistics()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", nargs="?", type=Path, help="not read: for `make bench-gpu`")
    parser.add_argument("--cities", nargs="+", type=int, default=list(CITIES))
    arguments = parser.parse_args()
    rows: list[list[Any]] = []
    for n in arguments.cities:
        rows.append(row_for(n))
        print(dict(zip(COLUMNS, rows[-1], strict=True)), flush=True)
    write(
        "gpu_windows",
        "Rounds of window search",
        COLUMNS,
        rows,
        {"algorithm": "GPUMMAS()", "rounds": FIRST_CYCLE, "maps": "random:N"},
        [
            "Means over the rounds of one cycle of annealing. Kernels by CUDA events, in a second run that does the "
            "same; the wall time has the merge of the tours at the end of the cycle in it, which the host does.",
            "A trial is a kick and its repair; a look is a city whose neighbours are tried.",
        ],
    )


if __name__ == "__main__":
    main()
