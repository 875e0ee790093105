"""Functions are compiled once, for all callers; Python may call those that are meant for compiled functions."""

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import pymoo_gpuaco
from pymoo_gpuaco.runtime.compiled import compiled, compiled_callee, inlined

VERSIONS = """
import gc
import json
import sys
from numba.core.dispatcher import Dispatcher

def versions():
    made = [f for f in gc.get_objects() if isinstance(f, Dispatcher) and f.__module__.startswith("pymoo_gpuaco.")]
    return {f"{f.__module__}.{f.__name__}": len(f.signatures) for f in made if f.signatures}

import numpy as np
from pymoo.optimize import minimize
import pymoo_gpuaco
from pymoo_gpuaco import GPUAS, GPUMMAS, GPUMemetic, GPU2PPLS, MultiObjectiveTSP, TSP
from pymoo_gpuaco.backends.cpu.engines import warm_up_memetic

n, kind = int(sys.argv[1]), sys.argv[2]
def cities(seed):
    return TSP(np.random.default_rng(seed).integers(0, 1000, (n, 2)), "EUC_2D")
"""

FOCUSED = """
warm_up_memetic(n, by_quadrant=kind == "plane")
before = versions()
problem = cities(0)
if kind == "matrix":
    problem = TSP(matrix=problem.D)
minimize(problem, GPUMemetic(backend="cpu"), ("n_gen", 6), seed=1)
print(json.dumps([before, versions()]))
"""

PROOF = """
problem = cities(0)
if kind == "two-way":
    problem = TSP(matrix=np.random.default_rng(0).random((n, n)))
elif kind == "space":
    problem = TSP(np.random.default_rng(0).random((n, 3)))
algorithm = GPUAS(n_ants=2, local_search=False, backend="cpu").setup(problem, seed=1, verbose=True)
before = versions()
for _ in range(3):
    algorithm.next()
assert algorithm._lower_bound > 0.0
print(json.dumps([before, versions()]))
"""

LONG = """
algorithm = getattr(pymoo_gpuaco, kind)()
algorithm.setup(TSP(np.random.default_rng(0).random((n, 2))), termination=("time", 0.5), seed=1)
before = versions()
algorithm.run()
print(json.dumps([before, versions()]))
"""

OTHER_OBJECTIVE = """
class Tolls(TSP):
    def _evaluate(self, x, out, *args, **kwargs):
        super()._evaluate(x, out)
        out["F"] = out["F"] + 100.0 * np.abs(np.diff(x, axis=1) % 2).sum(axis=1)[:, None]

problem = Tolls(np.random.default_rng(0).random((n, 2)))
if kind == "GPUACS":  # by a matrix that knows directions
    problem = Tolls(matrix=np.random.default_rng(0).random((n, n)))
algorithm = getattr(pymoo_gpuaco, kind)().setup(problem, termination=("n_gen", 4), seed=1)
before = versions()
algorithm.run()
assert len(algorithm.pop) > 1  # it has taken over
print(json.dumps([before, versions()]))
"""

FRONT = """
problem = MultiObjectiveTSP([cities(seed) for seed in range(int(kind))])
n_gen = 18 if kind == "2" else 12  # of two objectives, assembly comes first
algorithm = GPU2PPLS(n_weights=8, backend="cpu").setup(problem, termination=("n_gen", n_gen), seed=1)
before = versions()
algorithm.run()
assert len(algorithm.opt) > 20
assert len(algorithm.engine.archive.seen.slots) > 1 << 12  # it has grown
print(json.dumps([before, versions()]))
"""


def versions_of(script, *arguments):
    """Versions of each function that are there before a run, and after it."""
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", VERSIONS + script, *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        env=os.environ,
    )
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout.splitlines()[-1])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("script", "n", "kind"),
    [
        ("FOCUSED", 300, "plane"),
        ("FOCUSED", 12_500, "plane"),
        ("FOCUSED", 300, "matrix"),
        *[("PROOF", 20, kind) for kind in ("plane", "space", "two-way")],
        *[("LONG", 100_000, name) for name in ("GPUMMAS", "GPUACS")],  # tours are measured by threads
        *[("OTHER_OBJECTIVE", 60, name) for name in ("GPUMMAS", "GPUAS", "GPUACS")],
        ("FRONT", 60, "2"),
        ("FRONT", 18, "3"),
    ],
)
def test_every_function_is_compiled_before_a_run(script, n, kind):
    before, after = versions_of(globals()[script], str(n), kind)
    assert before == after
    if script == "FOCUSED":
        assert set(after.values()) == {1}
    if script == "LONG":
        assert "pymoo_gpuaco.problems.summation._add_blocks" in before


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


ROWS = """
from numba.core import event
import numpy as np
from pymoo_gpuaco.runtime.philox import new_streams

with event.install_recorder("numba:compile") as seen:
    new_streams(np.uint64(7), 3, 1)
names = [event.data["dispatcher"].py_func.__qualname__ for _, event in seen.buffer]
assert names
assert not [name for name in names if "shape_context" in name], names
"""


def test_no_row_is_assigned_an_array(tmp_path):
    """numba compiles the same words for ``rows[i] = array``, where no slice shows."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", ROWS],
        capture_output=True,
        text=True,
        timeout=300,
        env=environment,
    )
    assert run.returncode == 0, run.stderr


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
