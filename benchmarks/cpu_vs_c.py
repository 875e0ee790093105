"""Inner loops of the CPU engine, compared with the same work in C, on one thread.

    python benchmarks/cpu_vs_c.py [FOLDER]

FOLDER contains pr1002.tsp and pr2392.tsp of TSPLIB; without it only pcb442 is measured. The C compiler is ``cc``.

Both sides get the same candidate lists, weights, trails and key, and must build the same tours: a difference ends the
benchmark. Local search is 2-opt + Or-opt without kicks. It is measured with the trails of the first generation, where
tours are long and every city is searched, and with those of a later generation.
"""

from __future__ import annotations

import ctypes
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from harness import Table, parser_for, problems_of
from numpy.typing import NDArray
from pymoo.optimize import minimize

from pymoo_gpuaco import GPUMMAS, TSP, LocalSearch
from pymoo_gpuaco.backends.cpu import construct, improver, workspace
from pymoo_gpuaco.backends.cpu.colony import CpuColony
from pymoo_gpuaco.problems.metrics import EUC

REPEATS = 7
ANTS = 100
CANDIDATES = 32
LATER = 50  # the later generation
KEY = 0x0123456789ABCDEF
# -fno-math-errno: fast square roots; -ffp-contract=off: fused operations would round differently from the engine.
FLAGS = ["-std=c11", "-O3", "-march=native", "-fno-math-errno", "-ffp-contract=off", "-shared", "-fPIC"]
HEADER = "instance | generation | part | compiled, us a tour:1 | C, us a tour:1 | ratio:2 | spread"


def compile_reference(folder: str) -> ctypes.CDLL:
    """Compile c_reference.c into ``folder`` for this processor, and load it."""
    library = Path(folder) / "c_reference.so"
    source = Path(__file__).with_name("c_reference.c")
    subprocess.run(["cc", *FLAGS, "-o", str(library), str(source), "-lm"], check=True)
    return ctypes.CDLL(str(library))


def compiler() -> dict[str, str]:
    """Return the C compiler and its flags."""
    version = subprocess.run(["cc", "--version"], capture_output=True, text=True, check=True).stdout
    return {"compiler": version.splitlines()[0], "flags": " ".join(FLAGS)}


def address(array: NDArray[Any]) -> ctypes.c_void_p:
    assert array.flags.c_contiguous
    return ctypes.c_void_p(array.ctypes.data)


class CompiledSide:
    """Compiled functions of the engine, on its arrays."""

    def __init__(self, engine: CpuColony) -> None:
        n = engine.instance.n
        self.engine = engine
        self.walk_workspace = construct.make_walk_workspace(n, CANDIDATES, engine._rule.tournament_size)
        self.workspace = workspace.make_workspace(n)
        self.tours = np.zeros((ANTS, n), np.int32)
        self.stop = np.zeros(1, np.uint8)
        self.lengths = np.zeros(ANTS)

    def build(self) -> None:
        e = self.engine
        construct.build_tours_from_candidates(
            e._graph,
            e._trails.arrays,
            e._weights,
            e._rule,
            self.walk_workspace,
            KEY,
            0,
            ANTS,
            self.tours,
            self.stop,
        )

    def improve(self) -> None:
        e = self.engine
        improver.improve_tours(
            e._graph,
            self.workspace,
            False,
            LocalSearch().number,
            e._reference,
            0,
            1,
            KEY,
            0,
            ANTS,
            self.tours,
            self.lengths,
        )


class CSide:
    """Functions of c_reference.c, with the same data in their layout."""

    def __init__(self, library: ctypes.CDLL, engine: CpuColony) -> None:
        graph = engine._graph
        assert (graph.metric, engine._rule.alpha, engine._rule.beta) == (EUC, 1.0, 2.0)
        assert not graph.coords[:, 2].any()
        self.library = library
        self.engine = engine
        self.n, self.k = graph.neighbours.shape
        self.points = graph.coords[:, :2].copy()
        self.near = graph.neighbour_distances.astype(np.int32)
        self.tours = np.zeros((ANTS, self.n), np.int32)
        self.lengths = np.zeros(ANTS, np.int64)

    def build(self) -> None:
        failed = self.library.build_tours(
            ctypes.c_int32(self.n),
            ctypes.c_int32(self.k),
            address(self.points),
            address(self.engine._graph.neighbours),
            address(self.engine._weights),
            address(self.engine._trails.arrays.tau),
            ctypes.c_double(self.engine._rule.shortest),
            ctypes.c_uint64(KEY),
            ctypes.c_int32(0),
            ctypes.c_int32(ANTS),
            address(self.tours),
        )
        assert not failed

    def improve(self) -> None:
        failed = self.library.improve_tours(
            ctypes.c_int32(self.n),
            ctypes.c_int32(self.k),
            address(self.points),
            address(self.engine._graph.neighbours),
            address(self.near),
            address(self.engine._reference),
            ctypes.c_int32(0),
            ctypes.c_int32(ANTS),
            address(self.tours),
            address(self.lengths),
        )
        assert not failed


def engine_at(problem: TSP, generation: int) -> CpuColony:
    """Return a colony in its state before the construction of ``generation``."""
    algorithm = GPUMMAS(backend="cpu", candidate_list_size=CANDIDATES, pheromone="dense")
    if generation == 1:
        algorithm.setup(problem, seed=1)
        algorithm._begin()
    else:
        algorithm = minimize(problem, algorithm, ("n_gen", generation - 1), seed=1).algorithm
    algorithm.engine._trails.fill()
    algorithm.engine._refresh_weights()
    return algorithm.engine


def microseconds(work: Callable[[], None]) -> float:
    """Return the time of ``work`` per ant."""
    before = time.perf_counter()
    work()
    return 1e6 * (time.perf_counter() - before) / ANTS


def check_equal(ours: CompiledSide, theirs: CSide, lengths: bool) -> None:
    """Raise SystemExit unless both sides have the same tours."""
    same = np.array_equal(ours.tours, theirs.tours)
    if not same or (lengths and not np.array_equal(ours.lengths, theirs.lengths)):
        raise SystemExit("the engine and C built different tours: their times cannot be compared")


def measure(library: ctypes.CDLL, name: str, problem: TSP, generation: int, table: Table) -> None:
    """Measure one generation of an instance; add two rows."""
    engine = engine_at(problem, generation)
    ours, theirs = CompiledSide(engine), CSide(library, engine)
    parts = ("construction", "construction + local search")
    times: dict[str, list[tuple[float, float]]] = {part: [] for part in parts}
    for repeat in range(REPEATS + 1):
        # alternating, so that other load on the machine affects both sides equally
        built = microseconds(ours.build), microseconds(theirs.build)
        check_equal(ours, theirs, lengths=False)
        improved = microseconds(ours.improve), microseconds(theirs.improve)
        check_equal(ours, theirs, lengths=True)
        if repeat > 0:  # the first one fills the processor's caches
            times[parts[0]].append(built)
            times[parts[1]].append((built[0] + improved[0], built[1] + improved[1]))
    for part in parts:
        ratios = [compiled / c for compiled, c in times[part]]
        medians = [statistics.median(side) for side in (*zip(*times[part], strict=True), ratios)]
        table.add(name, generation, part, *medians, f"{min(ratios):.2f} .. {max(ratios):.2f}")


def main() -> None:
    arguments = parser_for(__doc__, folder="optional").parse_args()
    parameters = {"repeats": REPEATS, "ants": ANTS, "candidates": CANDIDATES, "threads measured": 1}
    title = "Construction and local search of the CPU engine over the same in C, one thread"
    notes = ["Both sides built the same tours in every repeat."]
    table = Table("cpu_vs_c", title, HEADER, parameters | compiler(), notes)
    with tempfile.TemporaryDirectory() as folder:
        library = compile_reference(folder)
        for name, problem in problems_of(arguments.folder, ("pcb442", "pr1002", "pr2392")).items():
            for generation in (1, LATER):
                measure(library, name, problem, generation, table)
    table.write()


if __name__ == "__main__":
    main()
