"""Hashes of the tours of every algorithm: a refactoring shows with them that no tour has changed.

    python -m tests.tour_hashes --record    # write tests/tour_hashes.json (one section an engine)
    python -m tests.tour_hashes             # run the cells again and compare; exit status 1 where one differs
    python -m tests.tour_hashes --cuda      # the same on a GPU
    python -m tests.tour_hashes --emulate   # the same with the kernels on the host

A cell is a run by ``n_gen`` of one algorithm on one problem. Its hash covers the best tour, its length and the tours
of the last generation; ``n_eval`` stands beside it. Timed cells run under a clock that each generation advances by a
fixed step. Hashes hold for one kind of processor and one version of numba and NumPy: record them on the machine that
compares them.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pymoo.algorithms.soo.nonconvex.ga import GA
from pymoo.core.problem import Problem
from pymoo.optimize import minimize

from pymoo_gpuaco import (
    GPU2PPLS,
    GPUACS,
    GPUAS,
    GPUBWAS,
    GPUEAS,
    GPUFACO,
    GPUMMAS,
    GPURAS,
    TSP,
    GPU2OptIHC,
    GPUMemetic,
    MultiObjectiveTSP,
    OpenPath,
    load_tsp,
    operators,
)
from tests.false_clock import FalseClock

RESULTS = Path(__file__).with_suffix(".json")


def _plane(n: int, seed: int = 0) -> TSP:
    return TSP(np.random.default_rng(seed).random((n, 2)) * 1000.0)


def _matrix(n: int, symmetric: bool) -> Any:
    values = np.random.default_rng(1).integers(1, 1000, (n, n)).astype(float)
    matrix = np.triu(values, 1) + np.triu(values, 1).T if symmetric else values
    np.fill_diagonal(matrix, 0.0)
    return matrix


def _problems(n: int) -> dict[str, Callable[[], Problem]]:
    """Problems of about n cities, by kind."""
    return {
        "plane": lambda: _plane(n),
        "matrix": lambda: TSP(matrix=_matrix(n // 2, True)),
        "asymmetric": lambda: TSP(matrix=_matrix(n // 2, False)),
        "path": lambda: OpenPath(_plane(n).coords, start=3, end=7),
        "fixed edges": lambda: TSP(_plane(n).coords, fixed_edges=[(0, 5), (9, 2)], forbidden_edges=[(1, 4)]),
        "small": lambda: TSP(_plane(10).coords),
        "two objectives": lambda: MultiObjectiveTSP([_plane(n // 4, 1).coords, _plane(n // 4, 2).coords]),
    }


_COLONIES: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {
    **{
        f"as {rule}": (
            lambda rule=rule, **k: GPUAS(n_ants=24, selection=rule, **k),
            ("plane", "matrix", "asymmetric"),
        )
        for rule in ("roulette", "compressed", "stochastic_trial", "hybrid", "acceptance_tournament")
    },
    "eas": (lambda **k: GPUEAS(n_ants=24, **k), ("plane", "asymmetric")),
    "ras": (lambda **k: GPURAS(n_ants=24, **k), ("plane", "asymmetric")),
    "bwas": (lambda **k: GPUBWAS(n_ants=24, **k), ("plane", "asymmetric")),
    "mmas wrs": (lambda **k: _mmas(selection="wrs", **k), ("plane", "matrix", "asymmetric")),
    "mmas rwm": (lambda **k: _mmas(selection="rwm", **k), ("plane",)),
    "mmas bitmask": (lambda **k: _mmas(tabu="bitmask", local_search=False, **k), ("plane",)),
    "mmas all cities": (lambda **k: _mmas(candidate_list_size=None, **k), ("plane", "asymmetric")),
    "mmas candidate edges": (lambda **k: _mmas(pheromone="candidate", local_search=False, **k), ("plane",)),
    "mmas no search": (lambda **k: _mmas(local_search=False, **k), ("plane", "asymmetric")),
    "mmas windows": (lambda **k: _mmas(local_search="windows", **k), ("plane",)),
    "acs sync": (
        lambda **k: GPUACS(variant="sync", local_search=False, n_ants=24, **k),
        ("plane", "matrix", "asymmetric"),
    ),
    "acs selective": (
        lambda **k: GPUACS(variant="selective", local_search=False, n_ants=24, deterministic=True, **k),
        ("plane",),
    ),
    "acs relaxed": (
        lambda **k: GPUACS(variant="relaxed", local_search=False, n_ants=24, deterministic=True, **k),
        ("plane",),
    ),
    "faco": (lambda **k: GPUFACO(n_ants=24, **k), ("plane", "matrix")),
    "climbers": (lambda **k: GPU2OptIHC(n_climbers=8, **k), ("plane", "matrix")),
}
_KINDS = ("plane", "matrix", "asymmetric", "path", "fixed edges", "small")
_TIMED = ("plane", "asymmetric", "path", "fixed edges")


def _mmas(**arguments: Any) -> Any:
    return GPUMMAS(n_ants=24, **arguments)


def _memetic(**arguments: Any) -> Any:
    return GPUMemetic(**arguments)


def _hash(result: Any) -> str:
    algorithm, digest = result.algorithm, hashlib.sha256()
    for values in (result.X, result.F, algorithm.pop.get("X")):
        array = np.ascontiguousarray(values)
        digest.update(str(array.shape).encode() + array.astype(np.float64).tobytes())
    return f"{digest.hexdigest()[:16]} {int(algorithm.evaluator.n_eval)}"


def _timed(problem: Problem, algorithm: Any) -> Any:
    """Run for 1000 s under a clock that each generation advances by 250 s."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        clock = FalseClock(monkeypatch)
        return minimize(problem, algorithm, ("time", 1000), seed=1, callback=lambda _: clock.step(250.0))


def _cells(engine: str) -> dict[str, Callable[[], str]]:
    """Cells of an engine, by name; the emulator takes seconds a round, so its problems are small."""
    tiny = engine == "emulator"
    backend = "cpu" if engine.startswith("cpu") else "cuda"
    problems, generations = _problems(60 if tiny else 240), 2 if tiny else 6
    cells: dict[str, Callable[[], str]] = {}

    def add(name: str, make: Callable[[], Problem], algorithm: Callable[[], Any], n_gen: int) -> None:
        cells[name] = lambda: _hash(minimize(make(), algorithm(), ("n_gen", n_gen), seed=1))

    for name, (make, kinds) in _COLONIES.items():
        for kind in kinds:
            add(f"{name}, {kind}", problems[kind], lambda make=make: make(backend=backend), generations)
    large = problems if tiny else _problems(1000)  # 240 cities converge to the optimum, which hides a change
    for kind in _KINDS:
        add(f"memetic, {kind}", large[kind], lambda: _memetic(backend=backend), generations if tiny else 40)
    add("front", problems["two objectives"], lambda: GPU2PPLS(backend=backend), 2)
    if tiny:
        return cells
    for name in ("pcb442", "gr17"):
        add(
            f"memetic, {name}",
            lambda name=name: load_tsp(name),
            lambda: _memetic(backend=backend),
            generations,
        )
    add("memetic, windows of one tour", lambda: _plane(30_000), lambda: _memetic(backend=backend), 3)
    search = {"repair": operators.LocalSearchRepair("windows", backend=backend)}
    for name, crossover in (("assembly", operators.AssemblyCrossover), ("merge", operators.MergeCrossover)):
        add(
            f"operators, {name}",
            problems["plane"],
            lambda crossover=crossover: GA(
                pop_size=6,
                sampling=operators.NearestNeighbourSampling(),
                crossover=crossover(),
                mutation=operators.DoubleBridgeMutation(),
                **search,
            ),
            3,
        )
    for kind in _TIMED:
        cells[f"timed memetic, {kind}"] = lambda kind=kind: _hash(
            _timed(large[kind](), _memetic(backend=backend))
        )
    cells["timed mmas, plane"] = lambda: _hash(
        _timed(_plane(700), _mmas(local_search=False, backend=backend))
    )
    cells["timed acs, plane"] = lambda: _hash(
        _timed(_plane(700), GPUACS(local_search=False, backend=backend))
    )
    return cells


def _run(engine: str, only: str) -> dict[str, str]:
    if engine == "emulator":
        from tests import emulator

        emulator.install(pytest.MonkeyPatch(), Path(tempfile.gettempdir()) / "pymoo_gpuaco_emulator")
        from pymoo_gpuaco.backends.cuda import search_device

        search_device.ROUNDS = search_device.ROUNDS_AT_ONCE = 2  # type: ignore[misc]
    found = {}
    for name, cell in _cells(engine).items():
        if only in name:
            began = time.perf_counter()
            try:
                found[name] = cell()
            except Exception as error:
                found[name] = f"{type(error).__name__}: {error}"[:100]
            print(f"{engine:10}  {time.perf_counter() - began:6.2f} s  {found[name]}  {name}", flush=True)
    return found


def main() -> int:
    """Record or compare."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--cuda", action="store_true")
    parser.add_argument("--emulate", action="store_true")
    parser.add_argument("--only", default="", help="cells whose name holds this")
    parser.add_argument("--file", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    engines = (
        ["cuda"]
        if arguments.cuda
        else ["emulator"]
        if arguments.emulate
        else ["cpu, 1 thread", "cpu, 2 threads"]
    )
    stored = json.loads(arguments.file.read_text()) if arguments.file.exists() else {}
    different = []
    for engine in engines:
        if engine.startswith("cpu"):
            os.environ["PYMOO_GPUACO_THREADS"] = engine[5]
        found = _run(engine, arguments.only)
        if arguments.record:
            machine = f"{platform.processor() or platform.machine()}, numpy {np.__version__}"
            stored[engine] = {
                "machine": machine,
                "cells": {**stored.get(engine, {}).get("cells", {}), **found},
            }
            arguments.file.write_text(json.dumps(stored, indent=1, sort_keys=True) + "\n")
            continue
        known = stored.get(engine, {}).get("cells", {})
        different += [f"{engine}: {name}" for name, value in found.items() if known.get(name) != value]
    print("\n".join(["different:", *different]) if different else "all equal")
    return bool(different)


if __name__ == "__main__":
    sys.exit(main())
