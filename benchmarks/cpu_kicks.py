"""Kicks per second of the CPU's window search, compared with the same kicks in C, on one thread.

    python benchmarks/cpu_kicks.py [FOLDER]

FOLDER contains pr1002.tsp, pr2392.tsp and d18512.tsp of TSPLIB; without it pcb442 and random cities are measured. The C
compiler is ``cc``. Takes about a minute.

Both sides start from the same repaired window with the same candidates, costs and random numbers. ``c_reference.c`` has
the same kicks, repairs and decisions as ``pymoo_gpuaco/backends/cpu/windows``. A row shows if they end with the same
tour, and both gains.
"""

from __future__ import annotations

import ctypes
import statistics
import tempfile
import time
from typing import Any

import numpy as np
from cpu_vs_c import address, compile_reference, compiler
from harness import Table, parser_for, problems_of, spread
from numpy.typing import NDArray

from pymoo_gpuaco import TSP
from pymoo_gpuaco.backends.cpu.windows.cut import cut_windows
from pymoo_gpuaco.backends.cpu.windows.trials import search_window
from pymoo_gpuaco.backends.cpu.windows.window import Units, Window, load, make_units, make_window
from pymoo_gpuaco.candidates.listed import make_graph
from pymoo_gpuaco.candidates.lists import with_lists
from pymoo_gpuaco.candidates.start import greedy_tour
from pymoo_gpuaco.memetic.parameters import LONG_STRETCH, MemeticParameters
from pymoo_gpuaco.problems.metrics import EUC

REPEATS = 7
KICKS = 5000
KEY = 0x0123456789ABCDEF
TEMPERATURE = 0.1  # of the second row, in mean edge lengths
PLACE = np.dtype([("x", "f8"), ("y", "f8"), ("pi", "i4"), ("mate", "i4")])
HEADER = (
    "instance | cities of the window | temperature | compiled, 1000 kicks/s:1 | C, 1000 kicks/s:1 | "
    "spread of compiled | spread of C | compiled over C:2 | spread | same tour | gain of compiled | gain of C"
)
NOTES = (
    "Both sides start from the same repaired window (the whole tour up to 25,000 cities) with the same candidates, "
    "costs and random numbers. Times are processor times of the one thread.",
    "Ten consecutive kicks are close to each other. "
    f"A kick, in C as in the engine: a double bridge of three stretches of at most {LONG_STRETCH} cities; "
    "repair by 3-opt moves over the candidates, two basis moves deeper, from a queue of the "
    "changed cities; accepted by Metropolis' rule, else undone. Tours are arrays with positions.",
    "The C code has integer costs and two coordinates: EUC_2D only.",
)


def repaired_window(problem: TSP) -> tuple[Units, Window, int]:
    """Return a locally optimal window: the whole tour if the search does not cut windows, else the first window."""
    instance, parameters = with_lists(problem.instance, 8), MemeticParameters()
    graph = make_graph(instance)
    units, near = make_units(instance, graph, parameters)
    assert (graph.metric, units.scale) == (EUC, 1.0)
    n, tour = instance.n, greedy_tour(instance, near.ids, near.distances)
    positions = np.arange(n, dtype=np.int32)
    if not parameters.whole(n):
        where = np.empty(n, np.int32)
        where[tour] = positions
        size = parameters.cities_per_window(n, 1)
        positions = cut_windows(units.candidates, size, tour, where, 0, 1, np.zeros(n, np.uint8))[0]
    m = len(positions)
    w = make_window(m, units.candidates.shape[1])
    load(units, tour, positions, m, np.full(n, -1, np.int32), w)
    search_window(units, w, m, np.ones(n, np.uint8), 0, 0.0, 0.0, 1, KEY, 0)
    return units, w, m


class CompiledSide:
    """Kicks by ``search_window``."""

    def __init__(self, units: Units, window: Window, m: int) -> None:
        self.units, self.window, self.m = units, window, m
        self.begin = window.order[:m].copy()
        self.gain = 0

    def restart(self) -> None:
        self.window.order[: self.m] = self.begin
        self.window.position[self.begin] = np.arange(self.m)

    def kick(self, count: int, hot: float) -> None:
        clean = np.zeros(len(self.units.candidates), np.uint8)
        self.gain = int(
            search_window(self.units, self.window, self.m, clean, count, hot, 0.0, LONG_STRETCH, KEY, 0)
        )

    @property
    def order(self) -> NDArray[np.int32]:
        return self.window.order[: self.m]


class CSide:
    """Kicks by ``kick_window`` of c_reference.c, with the same data in its layout."""

    def __init__(self, library: ctypes.CDLL, window: Window, m: int) -> None:
        self.library, self.m = library, m
        self.begin = window.order[:m].copy()
        self.order, self.where = np.empty(m, np.int32), np.empty(m, np.int32)
        self.place = np.empty(m, PLACE)
        self.place["x"], self.place["y"] = window.coords[:m, 0], window.coords[:m, 1]
        self.place["pi"], self.place["mate"] = window.coords[:m, 3], window.mate[:m]
        assert not window.coords[:m, 2].any()
        self.near = window.near[:m].copy()
        self.cost = window.cost[:m].astype(np.int32)
        self.gain = 0

    def restart(self) -> None:
        self.order[:] = self.begin
        self.where[self.begin] = np.arange(self.m)

    def kick(self, count: int, hot: float) -> None:
        gain = ctypes.c_int64()
        failed = self.library.kick_window(
            ctypes.c_int32(self.m),
            ctypes.c_int32(self.near.shape[1]),
            address(self.place),
            address(self.near),
            address(self.cost),
            ctypes.c_int32(count),
            ctypes.c_double(hot),
            ctypes.c_double(0.0),
            ctypes.c_int32(LONG_STRETCH),
            ctypes.c_uint64(KEY),
            address(self.order),
            address(self.where),
            ctypes.byref(gain),
        )
        assert not failed
        self.gain = gain.value


def seconds(side: CompiledSide | CSide, count: int, hot: float) -> float:
    """Return the processor time of ``count`` kicks from the initial tour."""
    side.restart()
    before = time.thread_time()
    side.kick(count, hot)
    return time.thread_time() - before


def measure(
    library: ctypes.CDLL, name: str, problem: TSP, kicks: int = KICKS, repeats: int = REPEATS
) -> list[list[Any]]:
    """Return the rows at temperature 0 and at ``TEMPERATURE``."""
    units, window, m = repaired_window(problem)
    ours, theirs = CompiledSide(units, window, m), CSide(library, window, m)
    mean = float(window.cost[:m, 0].mean())
    rows = []
    for hot in (0.0, TEMPERATURE * mean):
        times = []
        for repeat in range(repeats + 1):
            # alternating, so that other load on the machine affects both sides equally
            pair = seconds(ours, kicks, hot), seconds(theirs, kicks, hot)
            if repeat > 0:  # the first one fills the processor's caches
                times.append(pair)
        compiled, c = ([kicks / t / 1000 for t in side] for side in zip(*times, strict=True))
        ratios = [a / b for a, b in zip(compiled, c, strict=True)]
        same = np.array_equal(ours.order, theirs.order) and ours.gain == theirs.gain
        row = [name, m, "falling" if hot else "none", statistics.median(compiled), statistics.median(c)]
        row += [spread(compiled), spread(c), statistics.median(ratios), spread(ratios)]
        rows.append([*row, "yes" if same else "no", ours.gain, theirs.gain])
    return rows


def main() -> None:
    arguments = parser_for(__doc__, folder="optional").parse_args()
    names = ["pcb442", "pr1002", "pr2392", "d18512"]
    if not (arguments.folder / "pr1002.tsp").exists():
        names = ["pcb442", "random:2000", "random:20000"]
    temperature = f"{TEMPERATURE} mean lengths of a city's first candidate edge, falling to 0"
    parameters = {
        "repeats": REPEATS,
        "kicks": KICKS,
        "temperature": temperature,
        "threads measured": 1,
        **compiler(),
    }
    title = "Kicks a second of the CPU engine beside the same in C, one thread"
    table = Table("cpu_kicks", title, HEADER, parameters, NOTES)
    with tempfile.TemporaryDirectory() as folder:
        library = compile_reference(folder)
        for name, problem in problems_of(arguments.folder, names).items():
            for row in measure(library, name, problem):
                table.add(*row)
    table.write()


if __name__ == "__main__":
    main()
