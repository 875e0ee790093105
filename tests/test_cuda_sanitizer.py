"""compute-sanitizer finds nothing in a small run of every kernel. Needs a CUDA device and the toolkit.

``python tests/test_cuda_sanitizer.py [PART ..]`` is the run itself, of all parts or of those named.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from unittest import mock

import numpy as np
import pytest

from pymoo_gpuaco import checks
from pymoo_gpuaco.assignment.model import make_model as make_assignment_model
from pymoo_gpuaco.assignment.parameters import AssignmentParameters
from pymoo_gpuaco.assignment.search import AssignmentSearch
from pymoo_gpuaco.backends.cuda import assignment as cuda_assignment
from pymoo_gpuaco.backends.cuda import climbers as climber_layout
from pymoo_gpuaco.backends.cuda import engines, search_device, windows
from pymoo_gpuaco.backends.cuda.climbers import CudaClimbers
from pymoo_gpuaco.backends.cuda.device import sources
from pymoo_gpuaco.backends.cuda.engine import CudaColony
from pymoo_gpuaco.backends.cuda.faco import CudaFaco
from pymoo_gpuaco.backends.cuda.pareto import CudaFronts
from pymoo_gpuaco.backends.cuda.precedence import CudaChains
from pymoo_gpuaco.colony.faco import FacoParameters
from pymoo_gpuaco.colony.parameters import ClimberParameters, ColonyParameters, LocalSearch
from pymoo_gpuaco.colony.selection import offered_by
from pymoo_gpuaco.colony.trails import TrailUpdate
from pymoo_gpuaco.memetic import population
from pymoo_gpuaco.memetic.parameters import MemeticParameters
from pymoo_gpuaco.memetic.search import MemeticSearch
from pymoo_gpuaco.pareto.parameters import FrontParameters
from pymoo_gpuaco.pareto.search import FrontSearch
from pymoo_gpuaco.precedence.model import Round, make_model
from pymoo_gpuaco.problems import TSP, MultiObjectiveTSP, OpenPath
from pymoo_gpuaco.runtime.stop import Stop
from tests.instances import front_instance, listed_instance

TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
_ERRORS_FOUND = 9  # exit code of a run in which the tool found something


def colonies() -> None:
    coords = np.random.default_rng(0).uniform(0, 1000, (75, 2))
    search = LocalSearch(kicks=0.3)
    cases = [
        {"selection": s, "tabu": t, "candidate_list_size": k}
        for s in ("rwm", "wrs")
        for t in ("list", "compact", "bitmask")
        for k in (10, None)
    ]
    cases += [
        *({"selection": s, "candidate_list_size": None} for s in offered_by("GPUAS")[1:]),
        {
            "selection": "acceptance_tournament",
            "candidate_list_size": None,
            "switch": 0.3,
            "tournament_size": 5,
        },
        {"selection": "auto", "candidate_list_size": None},
        {"candidate_list_size": 40},
        {"candidate_list_size": 10, "memory": "candidate", "local_search": search},
        {"candidate_list_size": 10, "local_search": LocalSearch("2opt", kicks=0.0)},
    ]
    acs = {"selection": "pseudo_random_proportional", "candidate_list_size": 10, "q0": 0.8, "xi": 0.2}
    cases += [
        acs,  # two blocks, which meet after every step
        {**acs, "memory": "candidate", "local_update_period": 3, "candidate_list_size": 40},
        {**acs, "together": False, "local_search": search},
        {**acs, "together": False, "deterministic": True, "alpha": 2.0},
        {**acs, "together": False, "memory": "selective", "trails_per_node": 3},
        {**acs, "together": False, "memory": "selective", "trails_per_node": 40},
    ]
    for case in cases:
        instance = listed_instance(TSP(coords, "EUC_2D"), case["candidate_list_size"] or 10)
        engine = CudaColony(instance, ColonyParameters(n_ants=9, **case))
        engine.greedy_tour(3)
        engine.reset_trails(1.0)
        for key in range(2):
            engine.construct(key)
            tour = engine.tours([key])[0]
            if case.get("xi"):
                engine.update_trails(TrailUpdate(0.1, ((tour, 5.0),), on_tours_only=True))
            else:
                engine.update_trails(TrailUpdate(0.1, ((tour, 0.1),), colony_amount=5.0, tau_max=2.0))
                engine.update_trails(TrailUpdate(0.1, colony_amount=5.0, ranked=(3.0, 2.0, -1.0)))
        if case.get("memory") != "selective":
            engine.set_trails([[0, 1], [1, 2]], [1.0, 2.0])
            engine.trails_of([[0, 1], [2, 3]])
        engine.import_state(engine.export_state())
        engine.improve(np.tile(tour, (9, 1)), 1)


def asymmetric_tours() -> None:
    problem = TSP(matrix=np.random.default_rng(1).uniform(1, 1000, (75, 75)))
    parameters = ColonyParameters(n_ants=9, candidate_list_size=10, local_search=LocalSearch(kicks=0.3))
    engine = CudaColony(listed_instance(problem, 10), parameters)
    engine.reset_trails(1.0)
    for key in range(2):
        engine.construct(key)
    engine.improve(np.tile(np.arange(75), (9, 1)), 1)


def memetic_search() -> None:
    """As few searches for a move as reach every line: racecheck makes each some hundred times as long."""
    few = {
        "ROUNDS": 4,
        "FIRST_CYCLE": 6,
        "MOVE_SEARCHES_PER_TRIAL": 8,
        "rounds_of_repair": lambda *_: 1,
    }
    repair = [windows.Trials(trials=1, all_queued=True), windows.Trials(trials=2)]
    random = np.random.default_rng(0)
    problems = [
        (TSP(random.integers(0, 1000, (300, 2)), metric="EUC_2D"), 6),  # windows of a part, several of a tour
        (TSP(random.uniform(0, 1, (40, 3)), metric="EXACT"), 3),  # all cities in each; scaled
        (TSP(random.uniform(-80, 80, (30, 2)), metric="GEO"), 3),
    ]
    with mock.patch.multiple(search_device, **few), mock.patch.object(windows, "_IMPROVEMENT", repair):
        for problem, n_windows in problems:
            parameters = MemeticParameters(n_windows=n_windows)
            engine = MemeticSearch(search_device.CudaWindows(listed_instance(problem, 8), parameters))
            start, (length,) = engine.best_tours()
            engine.improve(start, 1)
            for key in range(2):
                engine.search(key)
            engine.import_state(engine.export_state())
            engine.accept(start, [length])
            engine.search(5)


def every_way_to_climb() -> None:
    coords = np.random.default_rng(0).uniform(0, 1000, (75, 2))
    instance = listed_instance(TSP(coords, metric="EUC_2D"), 1)
    ways = [{"kernel": "tuned"}, {"kernel": "intra"}, {"kernel": "tiled"}]
    layout = climber_layout.spans_layout
    for parameters in ways + ways[:1]:
        engine = CudaClimbers(instance, ClimberParameters(3, **parameters))
        engine.start_from(np.arange(75)[None])
        engine.climb(1, pairs=1 << 26)
        engine.climb(1, pairs=1 << 26)
        if parameters == ways[-1]:  # the rest with the tour in global memory, as that of many cities is
            climber_layout.spans_layout = lambda base, limits, resident: layout(base, limits, False)
    climber_layout.spans_layout = layout


def focused_aco() -> None:
    problem = TSP(np.random.default_rng(0).integers(0, 1000, (60, 2)), metric="EUC_2D")
    engine = CudaFaco(listed_instance(problem, 10), FacoParameters(n_ants=6, candidate_list_size=10))
    engine.begin()
    engine.construct(0)
    engine.iterate(1, 2)


def fronts() -> None:
    for k, metric in ((2, "EUC_2D"), (3, "EXACT")):
        places = np.random.default_rng(0).uniform(0, 1000, (k, 25, 2)).round()
        parameters = FrontParameters(n_weights=2, directions=None if k == 2 else np.eye(3))
        instance = front_instance(MultiObjectiveTSP([TSP(part, metric) for part in places]), 5)
        engine = FrontSearch(CudaFronts(instance), parameters)
        for key in range(8):
            engine.search(key)


def precedence() -> None:
    matrix = np.random.default_rng(3).integers(1, 100, (45, 45)).astype(float)
    np.fill_diagonal(matrix, 0.0)
    pairs = [(3, 9), (4, 9), (9, 20), (30, 2)]
    model = make_model(listed_instance(OpenPath(matrix=matrix, precedence=pairs), 5))
    chains = model.chains(np.tile(model.greedy_path(), (3, 1)))
    CudaChains(model, 3, 0).anneal(chains, Round(7, 1024, np.linspace(50.0, 0.0, 4)), Stop())


def assignments() -> None:
    # one tile and several tiles a thread, in registers and in global memory, numbers of both types
    for flows, n, tiers in ((1.0, 20, None), (0.7, 9, None), (1.0, 50, None), (1.0, 30, ())):
        flow, distance = np.random.default_rng(n).integers(1, 50, (2, n, n)).astype(float)
        parameters = AssignmentParameters(n_ants=2, n_colonies=2, start="perturbed", tabu_iterations=40)
        with pytest.MonkeyPatch.context() as patch:
            if tiers is not None:
                patch.setattr(cuda_assignment, "_TIERS", tiers)
            model = make_assignment_model(flows * flow, distance, np.zeros((n, n)))
            engine = AssignmentSearch(cuda_assignment.CudaAssignment(model, parameters, 0))
        for key in range(2):
            engine.search(key)


_PARTS = (
    colonies,
    asymmetric_tours,
    every_way_to_climb,
    memetic_search,
    focused_aco,
    fronts,
    precedence,
    assignments,
)
PARTS = {part.__name__: part for part in _PARTS}


@pytest.fixture(scope="module")
def launched():
    """A device whose kernels do nothing, after all parts have run on it."""
    from tests import fake_device  # here: the run itself is a program, which has no package of tests

    with pytest.MonkeyPatch.context() as patch:
        driver = fake_device.install(patch)
        # what is read back is no tour: it is neither checked nor merged
        patch.setattr(checks, "permutations", lambda name, tours, n, **_: np.asarray(tours))
        patch.setattr(population, "merge", lambda tour, other, distance: (other, 0))
        patch.setattr(population, "assemble", lambda graph, tours, *_, **__: tours)
        for part in PARTS.values():
            part()
    return driver


def test_the_run_launches_every_kernel(launched):
    files = {p.relative_to(sources.folder()).as_posix() for p in sources.folder().rglob("*.cu")}
    assert {file for file, *_ in launched.loaded} == files
    kernels = [name for file in files for name, _ in sources.KERNEL.findall(sources.read(file))]
    assert len(kernels) == sum(sources.read(file).count("__global__") for file in files)
    assert launched.launched == set(kernels)  # the device has compared their arguments


def does_not_run(code: int, output: str) -> bool:
    """Return True if the tool itself says that it cannot run here: it found no error, and the run did not end well."""
    return code not in (0, _ERRORS_FOUND) and "not supported" in output


@pytest.mark.gpu
@pytest.mark.slow
@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("tool", TOOLS)
def test_the_sanitizer_finds_nothing(tool, part):
    missing = engines.why_unavailable()
    sanitizer = shutil.which("compute-sanitizer") or shutil.which(
        "compute-sanitizer", path="/usr/local/cuda/bin"
    )
    if missing is not None or sanitizer is None:
        pytest.skip(missing or "compute-sanitizer of the CUDA toolkit was not found")
    options = ["--tool", tool, "--error-exitcode", str(_ERRORS_FOUND)]
    result = subprocess.run(
        [sanitizer, *options, sys.executable, __file__, part], capture_output=True, text=True
    )
    output = result.stdout + result.stderr
    if does_not_run(result.returncode, output):
        pytest.skip(f"compute-sanitizer does not run here: {output[-300:]}")
    assert result.returncode == 0, output[-4000:]
    assert "0 errors" in output or "0 hazards" in output


if __name__ == "__main__":
    for name in sys.argv[1:] or PARTS:
        PARTS[name]()
        print(f"{name}: done", flush=True)
