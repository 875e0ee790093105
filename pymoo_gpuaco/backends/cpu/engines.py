"""Constructors of the CPU engines. Each first compiles its functions by a short run on a few cities.

Later processes load the compiled code from disk.
"""

from __future__ import annotations

import functools
from dataclasses import replace

import numpy as np

from pymoo_gpuaco.backends.cpu.climbers import CpuClimbers
from pymoo_gpuaco.backends.cpu.colony import CpuColony
from pymoo_gpuaco.backends.cpu.faco import CpuFaco
from pymoo_gpuaco.backends.cpu.improver import CpuImprover
from pymoo_gpuaco.backends.cpu.pareto.engine import CpuFronts
from pymoo_gpuaco.backends.cpu.precedence import CpuChains
from pymoo_gpuaco.backends.cpu.search_device import CpuWindows
from pymoo_gpuaco.backends.protocol import Devices
from pymoo_gpuaco.candidates.listed import ListedInstance
from pymoo_gpuaco.candidates.lists import with_lists
from pymoo_gpuaco.candidates.quadrant import has_quadrants
from pymoo_gpuaco.colony.faco import FacoParameters
from pymoo_gpuaco.colony.parameters import WINDOWS, ClimberParameters, ColonyParameters, LocalSearch
from pymoo_gpuaco.colony.selection import ACS
from pymoo_gpuaco.colony.trails import TrailUpdate
from pymoo_gpuaco.memetic.parameters import WHOLE_IN_TIME_UP_TO, MemeticParameters
from pymoo_gpuaco.memetic.precedence import PrecedenceSearch
from pymoo_gpuaco.memetic.precedence_model import make_model
from pymoo_gpuaco.memetic.search import MemeticSearch
from pymoo_gpuaco.memetic.warm_up import warm_up_host
from pymoo_gpuaco.pareto.archive import Seen
from pymoo_gpuaco.pareto.instance import FrontInstance, front_instance
from pymoo_gpuaco.pareto.parameters import FrontParameters
from pymoo_gpuaco.pareto.search import FrontSearch
from pymoo_gpuaco.problems.constraints import NO_EDGES, TourConstraints
from pymoo_gpuaco.problems.instance import of_coordinates, of_matrix


def why_unavailable() -> str | None:
    """Return None: the CPU engines run anywhere."""
    return None


def make_colony(instance: ListedInstance, parameters: ColonyParameters, device: int) -> CpuColony:
    """Create the engine of an ant colony; ``device`` is ignored, here and below."""
    search, symmetric = parameters.local_search, instance.symmetric
    stand_in = None if search is None else _stand_in(search, symmetric)
    _warm_up(parameters.candidate_list_size is None, parameters.selection == ACS, symmetric, stand_in)
    return CpuColony(instance, parameters)


def make_faco(instance: ListedInstance, parameters: FacoParameters, device: int) -> CpuFaco:
    """Create the engine of Focused ACO."""
    warm_up_faco()
    return CpuFaco(instance, parameters)


def make_search(instance: ListedInstance, parameters: MemeticParameters, device: Devices) -> MemeticSearch:
    """Create the engine of a memetic search."""
    windows = CpuWindows(instance, parameters)
    warm_up_memetic(instance.n, has_quadrants(instance.metric, instance.coords))
    return MemeticSearch(windows)


def make_precedence(instance: ListedInstance, parameters: MemeticParameters, device: int) -> PrecedenceSearch:
    """Create the engine of a search with precedence."""
    warm_up_precedence()
    model = make_model(instance, parameters.candidate_list_size)
    return PrecedenceSearch(CpuChains(model, parameters.population_size), parameters)


def make_climbers(instance: ListedInstance, parameters: ClimberParameters, device: int) -> CpuClimbers:
    """Create the engine of hill climbers."""
    warm_up_climbers()
    return CpuClimbers(instance, parameters)


def make_improver(instance: ListedInstance, search: LocalSearch, device: int, candidates: str) -> CpuImprover:
    """Create the local search of given tours."""
    warm_up_improver(_stand_in(search, instance.symmetric), instance.symmetric)
    return CpuImprover(instance, search, candidates=candidates)


def make_front(instance: FrontInstance, parameters: FrontParameters, device: int) -> FrontSearch:
    """Create the engine of a multi-objective search."""
    _warm_up_front(min(instance.k, 3))
    return FrontSearch(CpuFronts(instance), parameters)


def _stand_in(search: LocalSearch, symmetric: bool) -> LocalSearch:
    """Return a valid local search that compiles the same functions; an invalid one raises an error later."""
    return LocalSearch(WINDOWS) if search.in_windows and symmetric else LocalSearch(kicks=1.0)


def _instance(symmetric: bool) -> ListedInstance:
    """Return an instance of a few cities with a matrix and complete candidate lists."""
    n = 8
    places = np.random.default_rng(0).random((n, n)) + 1.0
    matrix = np.triu(places, 1) + np.triu(places, 1).T if symmetric else places
    np.fill_diagonal(matrix, 0.0)
    return with_lists(of_matrix(matrix, symmetric), n - 1)


@functools.cache
def warm_up_improver(search: LocalSearch, symmetric: bool) -> None:
    """Compile the functions of the local search of given tours."""
    instance = _instance(symmetric)
    CpuImprover(instance, search).improve(np.arange(instance.n)[None], 0)


@functools.cache
def _warm_up(all_cities: bool, acs: bool, symmetric: bool, search: LocalSearch | None) -> None:
    """Compile the functions of ant colonies."""
    instance = _instance(symmetric)
    parameters = ColonyParameters(
        n_ants=1,
        candidate_list_size=None if all_cities else instance.k,
        selection=ACS if acs else "auto",
        local_search=search,
    )
    colony = CpuColony(instance, parameters)
    tour, _ = colony.greedy_tour()
    colony.reset_trails(1.0)
    colony.construct(0)
    colony.update_trails(TrailUpdate(0.5, ((tour, 1.0),), on_tours_only=acs))


@functools.cache
def warm_up_faco() -> None:
    """Compile the functions of Focused ACO."""
    instance = _instance(True)
    colony = CpuFaco(instance, FacoParameters(n_ants=1, candidate_list_size=3, local_search=LocalSearch()))
    colony.begin()
    colony.iterate(0, 1)


@functools.cache
def warm_up_climbers() -> None:
    """Compile the functions of hill climbers."""
    places = np.random.default_rng(0).random((8, 2))
    climbers = CpuClimbers(
        with_lists(of_coordinates(places), 1), ClimberParameters(n_climbers=1, moves="batch")
    )
    climbers.start_from(np.arange(8)[None])
    climbers.climb(0, pairs=100)


def warm_up_memetic(n: int, by_quadrant: bool) -> None:
    """Compile the functions of the memetic search for n cities, with or without quadrant lists."""
    usual, whole = MemeticParameters(), n <= WHOLE_IN_TIME_UP_TO
    if not usual.whole(n):
        _warm_up_memetic(False, usual.iterations(n) > 0, by_quadrant)
    if whole:  # used only in long runs
        _warm_up_memetic(True, usual.iterations(n) > 0, by_quadrant)
    warm_up_host(penalised=False, evolves=whole)


@functools.cache
def _warm_up_memetic(whole: bool, ascends: bool, by_quadrant: bool) -> None:
    """Compile the search of whole tours or of windows, with or without penalties."""
    coords = np.random.default_rng(0).random((80, 2))
    coords[1] = coords[0]  # duplicate cities use another function
    instance = of_coordinates(coords)
    if not by_quadrant:
        matrix = np.empty((80, 80))
        instance.write_distances(matrix)
        instance = of_matrix(matrix, True)
    candidates = "auto" if ascends else "quadrant"
    parameters = MemeticParameters(whole_up_to=80 if whole else 8, candidates=candidates)
    windows = CpuWindows(with_lists(instance, 8), parameters)
    engine = MemeticSearch(windows)
    for key in range(3):
        engine.search(key)
    own = windows.export_own()
    windows.import_own({**own, "dirty": np.zeros(80, np.uint8)})  # so that kicks begin
    engine.search(3)


@functools.cache
def _warm_up_front(k: int) -> None:
    """Compile the functions of a search with k objectives; k = 3 also covers more."""
    places = np.random.default_rng(0).random((k, 12, 2))
    instance = front_instance([of_coordinates(part) for part in places], [""] * k, 5)
    parameters = FrontParameters(n_weights=k, directions=None if k == 2 else np.eye(k))
    engine = FrontSearch(CpuFronts(instance), parameters)
    for key in range(100):
        engine.search(key)
        # exploration is the last phase
        if key >= 7 and engine.archive.explored[: engine.archive.count].any():
            break
    Seen(np.ones(k)).add(np.random.default_rng(1).random((5000, k)))  # enough points to grow the table


@functools.cache
def warm_up_precedence() -> None:
    """Compile the functions of a search with precedence."""
    first = TourConstraints(NO_EDGES, True, True, None, None, precedence=np.array([[1, 2]]))
    instance = with_lists(replace(of_matrix(_instance(symmetric=False).matrix, False), constraints=first), 1)
    chains = CpuChains(make_model(instance), 1)
    PrecedenceSearch(chains, MemeticParameters()).improve(np.arange(instance.n)[None], 0)
