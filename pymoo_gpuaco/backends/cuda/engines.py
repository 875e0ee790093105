"""Constructors of the CUDA engines, and their availability."""

from __future__ import annotations

from typing import Any

from pymoo_gpuaco.assignment.model import AssignmentModel
from pymoo_gpuaco.assignment.parameters import AssignmentParameters
from pymoo_gpuaco.assignment.search import AssignmentSearch
from pymoo_gpuaco.backends.cuda.assignment import CudaAssignment
from pymoo_gpuaco.backends.cuda.climbers import CudaClimbers
from pymoo_gpuaco.backends.cuda.device import compile as compiler
from pymoo_gpuaco.backends.cuda.device import context, sources
from pymoo_gpuaco.backends.cuda.engine import CudaColony
from pymoo_gpuaco.backends.cuda.faco import CudaFaco
from pymoo_gpuaco.backends.cuda.local_search import CudaImprover
from pymoo_gpuaco.backends.cuda.pareto import CudaFronts
from pymoo_gpuaco.backends.cuda.precedence import CudaChains
from pymoo_gpuaco.backends.cuda.search_device import CudaWindows
from pymoo_gpuaco.backends.cuda.several import MultiGpuDevice
from pymoo_gpuaco.backends.protocol import Devices
from pymoo_gpuaco.candidates.listed import ListedInstance
from pymoo_gpuaco.memetic.parameters import MemeticParameters
from pymoo_gpuaco.memetic.search import MemeticSearch
from pymoo_gpuaco.pareto.instance import FrontInstance
from pymoo_gpuaco.pareto.parameters import FrontParameters
from pymoo_gpuaco.pareto.search import FrontSearch
from pymoo_gpuaco.precedence.model import make_model
from pymoo_gpuaco.precedence.search import PrecedenceSearch, check_arguments

make_colony, make_faco, make_climbers, make_improver = CudaColony, CudaFaco, CudaClimbers, CudaImprover


def why_unavailable() -> str | None:
    """Return None if CUDA engines can run in this process, else the missing requirement and how to install it."""
    try:
        count = context.device_count()
    except RuntimeError as error:
        return str(error)
    if count == 0:
        return f"the driver sees no CUDA device{context.hidden_devices()}; backend='cpu' needs none"
    try:
        compiler.compiler_command()
        sources.folder()
    except (RuntimeError, FileNotFoundError) as error:
        return str(error)
    return None


def devices() -> list[str]:
    """Return one line for each CUDA device.

    The list is empty without a driver, PyCUDA or a device; ``why_unavailable`` gives the reason.
    """
    try:
        return [context.describe(index) for index in range(context.device_count())]
    except RuntimeError:
        return []


def make_search(instance: ListedInstance, parameters: MemeticParameters, device: Devices) -> MemeticSearch:
    """Create the engine of a memetic search, on one device or several."""
    if device == "all":
        device = range(context.device_count())
    indices = [int(device)] if isinstance(device, (str, int)) else list(device)
    if len(indices) == 1:
        return MemeticSearch(CudaWindows(instance, parameters, indices[0]))
    return MemeticSearch(MultiGpuDevice(instance, parameters, indices))


def make_precedence(instance: ListedInstance, parameters: MemeticParameters, device: Any) -> PrecedenceSearch:
    """Create the engine of a search with precedence."""
    check_arguments(parameters, device)
    model = make_model(instance, parameters.candidate_list_size)
    return PrecedenceSearch(CudaChains(model, parameters.population_size, device), parameters)


def make_front(instance: FrontInstance, parameters: FrontParameters, device: int) -> FrontSearch:
    """Create the engine of a multi-objective search."""
    return FrontSearch(CudaFronts(instance, device), parameters)


def make_assignment(
    model: AssignmentModel, parameters: AssignmentParameters, device: int
) -> AssignmentSearch:
    """Create the engine of quadratic assignment."""
    return AssignmentSearch(CudaAssignment(model, parameters, device))
