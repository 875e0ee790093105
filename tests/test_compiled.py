"""Functions are compiled once, for all callers; Python may call those that are meant for compiled functions."""

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pytest
from numba.core import event

import pymoo_gpuaco
from pymoo_gpuaco.runtime.compiled import compiled, compiled_callee, inlined
from pymoo_gpuaco.runtime.philox import new_streams

# Each case runs in a child of one process, which has imported everything and has compiled or loaded nothing.
VERSIONS = """
import gc
import json
import os
import sys
import numpy as np
from numba.core.dispatcher import Dispatcher
from pymoo.optimize import minimize
import pymoo_gpuaco
from pymoo_gpuaco import GPUAS, GPUMMAS, GPUMemetic, GPU2PPLS, MultiObjectiveTSP, TSP
from pymoo_gpuaco.backends.cpu.engines import warm_up_memetic

def versions():
    made = [f for f in gc.get_objects() if isinstance(f, Dispatcher) and f.__module__.startswith("pymoo_gpuaco.")]
    return {f"{f.__module__}.{f.__name__}": len(f.signatures) for f in made if f.signatures}

def random(seed, *shape):
    return np.random.default_rng(seed).random(shape)

class Tolls(TSP):
    def _evaluate(self, x, out, *args, **kwargs):
        super()._evaluate(x, out)
        out["F"] = out["F"] + 100.0 * np.abs(np.diff(x, axis=1) % 2).sum(axis=1)[:, None]

def cities(n, seed):
    return TSP(np.random.default_rng(seed).integers(0, 1000, (n, 2)), "EUC_2D")

def memetic(n, kind):
    warm_up_memetic(n, by_quadrant=kind == "plane")
    yield
    problem = cities(n, 0)
    minimize(TSP(matrix=problem.D) if kind == "matrix" else problem, GPUMemetic(backend="cpu"), ("n_gen", 6), seed=1)
    yield
    assert set(versions().values()) == {1}

def proof(n, kind):
    problem = {"plane": cities(n, 0), "two-way": TSP(matrix=random(0, n, n)), "space": TSP(random(0, n, 3))}[kind]
    algorithm = GPUAS(n_ants=2, local_search=False, backend="cpu").setup(problem, seed=1, verbose=True)
    yield
    for _ in range(3):
        algorithm.next()
    assert algorithm._lower_bound > 0.0
    yield

def long(n, kind):  # tours are measured by threads
    algorithm = getattr(pymoo_gpuaco, kind)()
    algorithm.setup(TSP(random(0, n, 2)), termination=("time", 0.5), seed=1)
    assert "pymoo_gpuaco.problems.summation._add_blocks" in versions()
    yield
    algorithm.run()
    yield

def custom_objective(n, kind):
    problem = Tolls(matrix=random(0, n, n)) if kind == "GPUACS" else Tolls(random(0, n, 2))  # or with directions
    algorithm = getattr(pymoo_gpuaco, kind)().setup(problem, termination=("n_gen", 4), seed=1)
    yield
    algorithm.run()
    assert len(algorithm.pop) > 1  # it has taken over
    yield

def front(n, k):
    problem = MultiObjectiveTSP([cities(n, seed) for seed in range(k)])
    n_gen = 18 if k == 2 else 12  # of two objectives, assembly comes first
    algorithm = GPU2PPLS(n_weights=8, backend="cpu").setup(problem, termination=("n_gen", n_gen), seed=1)
    yield
    algorithm.run()
    assert len(algorithm.opt) > 20
    assert len(algorithm.engine.archive.seen.slots) > 1 << 12  # it has grown
    yield

for case in json.loads(sys.argv[1]):
    child = os.fork()
    if child == 0:
        steps = globals()[case[0]](*case[1:])
        next(steps)
        before = versions()
        next(steps)
        after = versions()
        assert before == after, set(after.items()) - set(before.items())
        assert next(steps, True)
        os._exit(0)
    if os.waitpid(child, 0)[1] != 0:
        print(case)
"""
CASES = [
    *[("memetic", *case) for case in ((300, "plane"), (12_500, "plane"), (300, "matrix"))],
    *[("proof", 20, kind) for kind in ("plane", "space", "two-way")],
    ("long", 100_000, "GPUMMAS"),
    *[("custom_objective", 60, name) for name in ("GPUMMAS", "GPUACS")],
    *[("front", 60, 2), ("front", 18, 3)],
]


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_every_function_is_compiled_before_a_run():
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", VERSIONS, json.dumps(CASES)], capture_output=True, text=True
    )
    failed = [line for line in run.stdout.splitlines() if line.startswith("[")]
    assert (run.returncode, failed) == (0, []), run.stderr


def test_the_best_tour_of_a_few_cities_is_found_without_compiling():
    cities = "np.random.default_rng(0).random(({n}, 2))"
    script = (
        "import numpy as np\nfrom numba.core import event\nfrom pymoo_gpuaco import solve\n"
        "with event.install_recorder('numba:compile') as seen:\n"
        f"    for n in (4, 12):\n        assert solve({cities.format(n='n')}, seconds=5).length > 0\n"
        "assert not seen.buffer, seen.buffer\n"
    )
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script], capture_output=True, text=True, timeout=300
    )
    assert run.returncode == 0, run.stderr


def test_no_compiled_function_assigns_to_a_slice():
    """numba would compile the words of an error about shapes: 25 functions, a tenth of a first run."""
    package, found = Path(pymoo_gpuaco.__file__).parent, []
    makers = {"allocating", "compiled", "compiled_callee", "inlined"}
    for path in package.rglob("*.py"):
        for function in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            decorators = getattr(function, "decorator_list", [])
            if not makers & {one.id for one in decorators if isinstance(one, ast.Name)}:
                continue
            for node in ast.walk(function):
                if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
                    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
                    if any(isinstance(part, ast.Slice) for part in parts):
                        found.append(f"{path.relative_to(package)}:{node.lineno}")
    assert found == []


def test_no_row_is_assigned_an_array():
    """numba compiles the same words for ``rows[i] = array``, where no slice shows."""
    with event.install_recorder("numba:compile") as seen:
        numba.njit(new_streams.py_func)(np.uint64(7), 3, 1)
    names = [compilation.data["dispatcher"].py_func.__qualname__ for _, compilation in seen.buffer]
    assert "new_streams" in names
    assert not [name for name in names if "shape_context" in name], names


@pytest.mark.parametrize("way", [compiled_callee, inlined])
def test_python_may_call_what_is_compiled_for_compiled_functions(way):
    @way
    def twice(x):
        return 2 * x

    @compiled
    def four_times(x):
        return twice(twice(x))

    assert four_times(3) == 12
    assert twice(3) == 6
    assert twice(np.int32(4)) == 8
    assert twice(1.5) == 3.0


def test_compiled_callers_share_a_version():
    @compiled_callee
    def after(x):
        return x + 1

    @compiled
    def call(narrow, wide):
        return after(narrow[0]) + after(wide[0]) + after(1)

    assert call(np.array([1], np.int32), np.array([1], np.int64)) == 6
    assert len(after.signatures) == 1
