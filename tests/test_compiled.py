"""Calls of compiled functions, and the library that is built again after an edit."""

from __future__ import annotations

import ast
import copy
import importlib
import math
import os
import pickle
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pytest

import pymoo_gpuaco
from pymoo_gpuaco.backends.cpu.improver import improve_tours
from pymoo_gpuaco.backends.cpu.workspace import make_workspace
from pymoo_gpuaco.candidates.points import _fill_rows
from pymoo_gpuaco.candidates.start import take_edges
from pymoo_gpuaco.problems.metrics import Graph
from pymoo_gpuaco.problems.summation import tour_length
from pymoo_gpuaco.runtime import compiled as calls
from pymoo_gpuaco.runtime.compiled import Callee, Compiled, sources
from tests.compiled_callees import begin_stream, quotient

PACKAGE = Path(pymoo_gpuaco.__file__).parent
SQUARE = Graph(1, np.array([[0.0, 0.0, 0.0], [0.0, 3.0, 0.0], [4.0, 3.0, 0.0], [4.0, 0.0, 0.0]]))
TOUR = np.arange(4, dtype=np.int32)
NEAR = np.array([[1, 3, 2], [0, 2, 3], [3, 1, 0], [2, 0, 1]], np.int32)
SQUARE_GRAPH = SQUARE._replace(neighbours=NEAR, neighbour_distances=np.tile([3.0, 4.0, 5.0], (4, 1)))
REFERENCE = np.full((4, 2), -1, np.int32)


def test_every_compiled_function_of_the_package_is_in_the_library():
    library, found = calls.library(PACKAGE.name), 0
    for path in sources(PACKAGE.name):
        if "\n@compiled\n" in path.read_text(encoding="utf-8"):
            name = ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
            for value in vars(importlib.import_module(name)).values():
                if isinstance(value, Compiled):
                    assert hasattr(library, value.symbol)
                    found += 1
    assert found > 50


def test_the_library_exports_no_names_of_numba():
    """They were a third of its size."""
    assert b"NumbaEnv" not in calls.library_path(PACKAGE.name).read_bytes()


def test_a_function_that_the_library_lacks_is_an_error_not_slow_python():
    def missing(n: int) -> int:
        return n

    with pytest.raises(RuntimeError, match=r"missing\(\) is missing in the library; reinstall"):
        Compiled(missing)(3)


def test_a_callee_has_no_machine_code_of_its_own():
    callee = Callee(math.floor, is_inlined=False)
    with pytest.raises(TypeError, match=r"only compiled functions can call floor\(\)"):
        callee(1.0)


read_only = TOUR.copy()
read_only.flags.writeable = False


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((SQUARE, TOUR.astype(np.int64)), "tour must be .* array of int32 .*, got int64 with 1 dimensions"),
        ((SQUARE, TOUR[None]), "tour must be .*, got int32 with 2 dimensions"),
        ((SQUARE, np.arange(8, dtype=np.int32)[::2]), "tour must be .*, not c_contiguous"),
        ((SQUARE, read_only), "tour must be .*, not writeable"),
        ((SQUARE, [0, 1, 2, 3]), "tour must be .*, got list"),
        ((tuple(SQUARE), TOUR), "graph must be of type Graph, got tuple"),
        ((SQUARE._replace(coords=np.zeros((4, 3), "f4")), TOUR), r"graph.coords must be .*, got float32"),
        ((SQUARE._replace(metric=1.0), TOUR), r"graph.metric must be of type int, got 1.0"),
        ((SQUARE,), "takes 2 positional arguments, got 1"),
    ],
)  # fmt: skip
def test_a_wrong_argument_is_named(arguments, message):
    with pytest.raises(TypeError, match=rf"tour_length\(\).*{message}"):
        tour_length(*arguments)


def test_another_struct_is_refused_although_compiled_code_has_read_it():
    w = make_workspace(4)
    tour_length(SQUARE, TOUR)
    assert improve_tours(SQUARE_GRAPH, w, False, 0, REFERENCE, 0, 1, 0, 0, 0, TOUR[None], np.empty(1))
    with pytest.raises(TypeError, match=r"tour_length\(\): graph must be of type Graph, got Workspace"):
        tour_length(w, TOUR)


def test_threads_that_use_a_struct_first_share_its_words():
    for _ in range(50):
        graph = SQUARE._replace(coords=SQUARE.coords.copy())
        with ThreadPoolExecutor(8) as pool:
            assert set(pool.map(lambda _, g=graph: tour_length(g, TOUR), range(16))) == {14.0}


@pytest.mark.parametrize("value", [1.0, np.float64(1.0), "1", None, 2**63, -(2**63) - 1])
def test_an_integer_is_not_made_of_something_else(value):
    with pytest.raises(TypeError, match=r"quotient\(\): a must be of type int, got"):
        quotient(value, 1)


def test_integers_of_numpy_are_integers():
    assert quotient(np.int64(7), np.int32(2)) == 3


def test_another_status_than_that_of_a_returned_value_is_an_error():
    with pytest.raises(RuntimeError, match=r"compiled function quotient\(\) failed with status"):
        quotient(1, 0)


def test_a_struct_with_another_array_has_words_of_its_own():
    assert tour_length(SQUARE, TOUR) == 14.0
    other = SQUARE._replace(coords=2.0 * SQUARE.coords)
    assert tour_length(other, TOUR) == 28.0
    assert tour_length(SQUARE, TOUR) == 14.0


@pytest.mark.parametrize("way", [copy.copy, copy.deepcopy, lambda graph: pickle.loads(pickle.dumps(graph))])
def test_a_copy_of_a_struct_reads_its_own_arrays(way):
    graph = SQUARE._replace(coords=SQUARE.coords.copy())
    assert tour_length(graph, TOUR) == 14.0
    made = way(graph)
    assert not hasattr(made, "_words")
    made.coords[:] *= 3.0
    assert tour_length(made, TOUR) == 42.0


def test_compiled_functions_are_pickled_by_name():
    assert pickle.loads(pickle.dumps(_fill_rows)) is _fill_rows


def test_types_of_arrays_do_not_depend_on_how_numpy_defines_ndarray():
    """NumPy 2.5 has a ``TypeAliasType``, whose arguments are others than those of a generic class."""
    assert calls.array_type(Annotated[Any, np.float32, 2]) == (np.dtype(np.float32), 2)
    assert calls.array_type(calls.Int32_1d) == (np.dtype(np.int32), 1)


def test_an_old_processor_is_named(monkeypatch, tmp_path):
    info = tmp_path / "cpuinfo"
    info.write_text("processor: 0\nflags : fpu sse sse2 ssse3 cx16\n")
    monkeypatch.setattr(calls, "_PROCESSOR_INFO", info)
    monkeypatch.setattr(calls.platform, "machine", lambda: "x86_64")
    with pytest.raises(RuntimeError, match="x86-64-v2"):
        calls._check_processor()


def test_no_compiled_function_assigns_to_a_slice():
    """numba would compile the words of an error about shapes: 25 functions, a tenth of a build."""
    found, makers = [], {"compiled", "compiled_callee", "inlined"}
    for path in PACKAGE.rglob("*.py"):
        for function in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            decorators = getattr(function, "decorator_list", [])
            if not makers & {one.id for one in decorators if isinstance(one, ast.Name)}:
                continue
            for node in ast.walk(function):
                if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
                    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
                    if any(isinstance(part, ast.Slice) for part in parts):
                        found.append(f"{path.relative_to(PACKAGE)}:{node.lineno}")
    assert found == []


IN_PYTHON = """
from pymoo.optimize import minimize
from pymoo_gpuaco import GPUAS, TSP
from pymoo_gpuaco.problems.summation import tour_length
cities = [[0, 0], [5, 1], [9, 3], [2, 8], [7, 7], [1, 4]]
result = minimize(TSP(cities), GPUAS(n_ants=3, candidate_list_size=3, backend="cpu"), ("n_gen", 2), seed=1)
print(type(tour_length).__name__, result.X.tolist(), result.F[0])
"""


def test_python_source_gives_the_tours_of_machine_code():
    said = [
        subprocess.run(
            [sys.executable, "-W", "ignore", "-c", IN_PYTHON],
            env={**os.environ, "PYMOO_GPUACO_PYTHON": switch},
            capture_output=True, text=True, check=True,
        ).stdout.split(maxsplit=1)
        for switch in ("0", "1")
    ]  # fmt: skip
    assert [kind for kind, _ in said] == ["Compiled", "function"]
    assert said[0][1] == said[1][1]


HULL = """
import numpy as np
from pymoo_gpuaco.pareto.front_2d import find_hull
hull = np.empty(3, np.int64)
print(find_hull(np.array([[0.0, 2.0], [1.0, 1.5], [2.0, 0.0]]), hull))
"""


@pytest.mark.slow
@pytest.mark.needs_build
@pytest.mark.skipif(calls.IN_PYTHON, reason="nothing is compiled")
def test_an_edit_is_built_once_by_processes_that_import_at_once(tmp_path):
    """In a copy of the checkout with its object files: the only function edited is the only one compiled."""
    for name in ("pymoo_gpuaco", "cuda_src"):
        shutil.copytree(PACKAGE.parent / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(PACKAGE.parent / "pyproject.toml", tmp_path)
    objects = "build/compiled-pymoo_gpuaco"
    shutil.copytree(PACKAGE.parent / objects, tmp_path / objects)

    def start():
        command = [sys.executable, "-c", HULL]
        return subprocess.Popen(
            command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**os.environ, "PYTHONPATH": str(tmp_path)},
        )  # fmt: skip

    assert start().communicate()[0] == "2\n"
    source = tmp_path / "pymoo_gpuaco/pareto/front_2d.py"
    text = source.read_text(encoding="utf-8")
    at = text.index("    return", text.index("def find_hull"))
    source.write_text(text[:at] + "    return 7\n" + text[at:], encoding="utf-8")
    ended = [process.communicate() for process in [start() for _ in range(4)]]
    assert [out for out, _ in ended] == ["7\n"] * 4
    built = [line for _, err in ended for line in err.splitlines() if "compiled" in line]
    assert len(built) == 1
    assert built[0].startswith("pymoo_gpuaco: compiled 1 of ")


@pytest.mark.parametrize("key", [-1, 2**64])
def test_a_key_out_of_range_is_refused(key):
    with pytest.raises(TypeError, match=r"begin_stream\(\): key must be of type uint64, got"):
        begin_stream(np.zeros(10, np.uint64), key, 0, 0)


@pytest.mark.parametrize("value", [1, "yes", None, 2.5])
def test_a_bool_is_not_made_of_something_else(value):
    edges = np.zeros((0, 2), np.int32)
    with pytest.raises(TypeError, match=r"take_edges\(\): directed must be of type bool, got"):
        take_edges(edges, 0, 0, edges, value)
