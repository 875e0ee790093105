"""Constructors of the CPU engines, which compile an engine's functions first."""

from __future__ import annotations

from pymoo_gpuaco.backends.cpu import warm_up
from pymoo_gpuaco.backends.cpu.climbers import CpuClimbers
from pymoo_gpuaco.backends.cpu.colony import CpuColony
from pymoo_gpuaco.backends.cpu.faco import CpuFaco
from pymoo_gpuaco.backends.cpu.improver import CpuImprover
from pymoo_gpuaco.backends.cpu.pareto.engine import CpuFronts
from pymoo_gpuaco.backends.cpu.precedence import CpuChains
from pymoo_gpuaco.backends.cpu.search_device import CpuWindows
from pymoo_gpuaco.backends.protocol import Devices
from pymoo_gpuaco.candidates.listed import ListedInstance
from pymoo_gpuaco.candidates.quadrant import has_quadrants
from pymoo_gpuaco.colony.faco import FacoParameters
from pymoo_gpuaco.colony.parameters import ClimberParameters, ColonyParameters
from pymoo_gpuaco.memetic.parameters import MemeticParameters
from pymoo_gpuaco.memetic.precedence import PrecedenceSearch
from pymoo_gpuaco.memetic.precedence_model import make_model
from pymoo_gpuaco.memetic.search import MemeticSearch
from pymoo_gpuaco.pareto.instance import FrontInstance
from pymoo_gpuaco.pareto.parameters import FrontParameters
from pymoo_gpuaco.pareto.search import FrontSearch

READS_NEAREST = False  # besides quadrant lists; see `backends.reads_nearest`


def why_unavailable() -> str | None:
    """Return None: the CPU engines run anywhere."""
    return None


def make_colony(instance: ListedInstance, parameters: ColonyParameters, device: int) -> CpuColony:
    """Create the engine of an ant colony; ``device`` is ignored, here and below."""
    warm_up.warm_up(parameters, instance.symmetric)
    return CpuColony(instance, parameters)


def make_faco(instance: ListedInstance, parameters: FacoParameters, device: int) -> CpuFaco:
    """Create the engine of Focused ACO."""
    warm_up.warm_up_faco()
    return CpuFaco(instance, parameters)


def make_search(instance: ListedInstance, parameters: MemeticParameters, device: Devices) -> MemeticSearch:
    """Create the engine of a memetic search."""
    windows = CpuWindows(instance, parameters)
    warm_up.warm_up_memetic(instance.n, has_quadrants(instance.metric, instance.coords))
    return MemeticSearch(windows)


def make_precedence(instance: ListedInstance, parameters: MemeticParameters, device: int) -> PrecedenceSearch:
    """Make the engine of a search with precedence."""
    warm_up.warm_up_precedence()
    model = make_model(instance, parameters.candidate_list_size)
    return PrecedenceSearch(CpuChains(model, parameters.population_size), parameters)


def make_climbers(instance: ListedInstance, parameters: ClimberParameters, device: int) -> CpuClimbers:
    """Create the engine of hill climbers."""
    warm_up.warm_up_climbers()
    return CpuClimbers(instance, parameters)


def make_improver(instance: ListedInstance, parameters: ColonyParameters, device: int) -> CpuImprover:
    """Create the improver of given tours by ``parameters.local_search``."""
    search = parameters.local_search
    assert search is not None
    warm_up.warm_up_improver(search, instance.symmetric)
    return CpuImprover(instance, search, candidates=parameters.candidates)


def make_front(instance: FrontInstance, parameters: FrontParameters, device: int) -> FrontSearch:
    """Create the engine of a multi-objective search."""
    warm_up.warm_up_front(instance.k)
    return FrontSearch(CpuFronts(instance), parameters)
