"""Constructors of the CPU engines."""

from __future__ import annotations

from typing import Any

from pymoo_gpuaco.assignment.model import AssignmentModel
from pymoo_gpuaco.assignment.parameters import AssignmentParameters
from pymoo_gpuaco.assignment.search import AssignmentSearch
from pymoo_gpuaco.backends.cpu.assignment import CpuAssignment
from pymoo_gpuaco.backends.cpu.climbers import CpuClimbers
from pymoo_gpuaco.backends.cpu.colony import CpuColony
from pymoo_gpuaco.backends.cpu.faco import CpuFaco
from pymoo_gpuaco.backends.cpu.improver import CpuImprover
from pymoo_gpuaco.backends.cpu.pareto.engine import CpuFronts
from pymoo_gpuaco.backends.cpu.precedence import CpuChains
from pymoo_gpuaco.backends.cpu.search_device import CpuWindows
from pymoo_gpuaco.backends.protocol import Devices
from pymoo_gpuaco.candidates.listed import ListedInstance
from pymoo_gpuaco.colony.faco import FacoParameters
from pymoo_gpuaco.colony.parameters import ClimberParameters, ColonyParameters, LocalSearch
from pymoo_gpuaco.memetic.parameters import MemeticParameters
from pymoo_gpuaco.memetic.search import MemeticSearch
from pymoo_gpuaco.pareto.instance import FrontInstance
from pymoo_gpuaco.pareto.parameters import FrontParameters
from pymoo_gpuaco.pareto.search import FrontSearch
from pymoo_gpuaco.precedence.model import make_model
from pymoo_gpuaco.precedence.search import PrecedenceSearch, check_arguments


def why_unavailable() -> str | None:
    """Return None: the CPU engines run anywhere."""
    return None


def make_colony(instance: ListedInstance, parameters: ColonyParameters, device: int) -> CpuColony:
    """Create the engine of an ant colony; ``device`` is ignored, here and below."""
    return CpuColony(instance, parameters)


def make_faco(instance: ListedInstance, parameters: FacoParameters, device: int) -> CpuFaco:
    """Create the engine of Focused ACO."""
    return CpuFaco(instance, parameters)


def make_search(instance: ListedInstance, parameters: MemeticParameters, device: Devices) -> MemeticSearch:
    """Create the engine of a memetic search."""
    windows = CpuWindows(instance, parameters)
    return MemeticSearch(windows)


def make_precedence(instance: ListedInstance, parameters: MemeticParameters, device: Any) -> PrecedenceSearch:
    """Create the engine of a search with precedence."""
    check_arguments(parameters, device)
    model = make_model(instance, parameters.candidate_list_size)
    return PrecedenceSearch(CpuChains(model, parameters.population_size), parameters)


def make_climbers(instance: ListedInstance, parameters: ClimberParameters, device: int) -> CpuClimbers:
    """Create the engine of hill climbers."""
    return CpuClimbers(instance, parameters)


def make_improver(instance: ListedInstance, search: LocalSearch, device: int, candidates: str) -> CpuImprover:
    """Create the local search of given tours."""
    return CpuImprover(instance, search, candidates=candidates)


def make_front(instance: FrontInstance, parameters: FrontParameters, device: int) -> FrontSearch:
    """Create the engine of a multi-objective search."""
    return FrontSearch(CpuFronts(instance), parameters)


def make_assignment(
    model: AssignmentModel, parameters: AssignmentParameters, device: int
) -> AssignmentSearch:
    """Create the engine of quadratic assignment."""
    return AssignmentSearch(CpuAssignment(model, parameters))
