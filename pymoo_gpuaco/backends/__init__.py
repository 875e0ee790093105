"""Creation of engines and choice of the device; algorithms use devices only through this module."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pymoo_gpuaco import checks
from pymoo_gpuaco.assignment.model import AssignmentModel
from pymoo_gpuaco.assignment.parameters import AssignmentParameters
from pymoo_gpuaco.assignment.search import AssignmentSearch
from pymoo_gpuaco.backends.cpu import engines as cpu_engines
from pymoo_gpuaco.backends.cuda import engines as cuda_engines
from pymoo_gpuaco.backends.errors import BackendUnavailable
from pymoo_gpuaco.backends.protocol import (
    ClimberEngine,
    ColonyEngine,
    Devices,
    FocusedColony,
    FrontEngine,
    Improver,
    SearchEngine,
)
from pymoo_gpuaco.candidates.exact import optimal_tour
from pymoo_gpuaco.candidates.listed import ListedInstance
from pymoo_gpuaco.candidates.lists import with_lists
from pymoo_gpuaco.colony.faco import FacoParameters
from pymoo_gpuaco.colony.parameters import ClimberParameters, ColonyParameters, LocalSearch
from pymoo_gpuaco.memetic.exact import ExactSearch
from pymoo_gpuaco.memetic.parameters import MemeticParameters
from pymoo_gpuaco.memetic.translated import TranslatedSearch
from pymoo_gpuaco.pareto.instance import FrontInstance
from pymoo_gpuaco.pareto.parameters import FrontParameters
from pymoo_gpuaco.problems.symmetric import SymmetricForm, form_to_search
from pymoo_gpuaco.runtime.background import interruptible
from pymoo_gpuaco.runtime.notices import warn_once
from pymoo_gpuaco.runtime.stop import Stop

# Constructors of each kind of device, in the order in which "auto" tries them; the last runs everywhere.
_ENGINES: dict[str, Any] = {"cuda": cuda_engines, "cpu": cpu_engines}
DEVICES = tuple(_ENGINES)
BACKENDS = ("auto", *sorted(DEVICES))
_MIN_CANDIDATES_OF_FORM = 16  # minimum candidates per city of a symmetric form with doubled cities
SEVERAL_DEVICES_FROM = 20_000  # cities

E = TypeVar("E")


class FunctionSearch:
    """An ``Improver`` by a function of the user, which takes tours (m, n) and returns improved ones."""

    def __init__(self, function: Callable[..., Any], instance: ListedInstance) -> None:
        self._function, self._instance = function, instance
        self.stop = Stop()

    def stop_at(self, moment: float | None) -> None:
        """Ignore the deadline: the function of the user runs to its end."""

    def improve(self, tours: ArrayLike, key: int) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Return the function's tours and their exact lengths (m,). Raises ValueError for what are no tours."""
        rows = np.array(tours, np.int32)
        better = checks.permutations("tours of local_search", self._function(rows.copy()), self._instance.n)
        if better.shape != rows.shape:
            raise ValueError(f"local_search must return {len(rows)} tours, got {len(better)}")
        return better.astype(np.int32), self._instance.tour_lengths(better)


def check_backend(backend: Any, device: Any, several: bool = False) -> None:
    """Validate the two arguments that choose an engine; ``several``: it may use several devices."""
    checks.choice("backend", backend, BACKENDS)
    if several and isinstance(device, str):
        checks.choice("device", device, ("all",))
    elif several and isinstance(device, Sequence):
        numbers = [checks.integer(f"device[{i}]", number, 0) for i, number in enumerate(device)]
        if not numbers or len(set(numbers)) < len(numbers):
            raise ValueError(f"device must be a number, 'all' or a list of different numbers, got {device!r}")
    else:
        checks.integer("device", device, 0)


def devices_for(n: int) -> Devices:
    """Return the fastest devices for a search of n cities: "all" from 20,000 cities on, otherwise the first."""
    several = n >= SEVERAL_DEVICES_FROM and why_no_cuda() is None and len(cuda_engines.devices()) > 1
    return "all" if several else 0


def why_no_cuda() -> str | None:
    """Return what CUDA lacks on this machine and how to install it, or None if it can run."""
    return cuda_engines.why_unavailable()


def cuda_devices() -> list[str]:
    """Return one line for each CUDA device."""
    return cuda_engines.devices()


def make_colony(
    instance: ListedInstance, parameters: ColonyParameters, backend: str = "auto", device: int = 0
) -> ColonyEngine:
    """Create the engine of an ant colony.

    "auto" uses CUDA if it can run and supports the parameters, otherwise the CPU. Raises ``BackendUnavailable`` if
    ``backend="cuda"`` cannot run, and ValueError for paths and for fixed or forbidden edges.
    """
    _refuse_constraints(instance, "ants that build whole tours")
    return _first_usable(backend, lambda engines: engines.make_colony(instance, parameters, device))


def make_faco(
    instance: ListedInstance, parameters: FacoParameters, backend: str = "auto", device: int = 0
) -> FocusedColony:
    """Create the engine of Focused ACO for symmetric instances, see ``make_colony``."""
    _refuse_constraints(instance, "ants that copy a tour")
    return _first_usable(backend, lambda engines: engines.make_faco(instance, parameters, device))


def make_search(
    instance: ListedInstance,
    parameters: MemeticParameters,
    backend: str = "auto",
    device: Devices = 0,
    stop: Stop | None = None,
) -> SearchEngine:
    """Create the engine of a memetic search on one device or several, see ``make_colony``.

    Asymmetric instances and those with constraints, except precedence, are searched in their symmetric form; ``stop``
    limits the construction of its candidate lists, see ``with_lists``. Up to 12 cities, dynamic programming finds the
    optimum.
    """

    def make(engines: Any) -> SearchEngine:
        ordered = instance.has_precedence
        form = None if ordered else form_to_search(instance)
        optimal = optimal_tour(instance, form)
        if optimal is not None:
            return ExactSearch(instance, optimal)
        if form is None:
            make_plain = engines.make_precedence if ordered else engines.make_search
            plain: SearchEngine = make_plain(instance, parameters, device)
            return plain
        listed = _listed(instance, form, stop)
        return TranslatedSearch(instance, form, engines.make_search(listed, parameters, device))

    return _first_usable(backend, make)


def make_climbers(
    instance: ListedInstance, parameters: ClimberParameters, backend: str = "auto", device: int = 0
) -> ClimberEngine:
    """Create the engine of hill climbers, see ``make_colony``."""
    _refuse_constraints(instance, "hill climbers")
    return _first_usable(backend, lambda engines: engines.make_climbers(instance, parameters, device))


def make_front(
    instance: FrontInstance, parameters: FrontParameters, backend: str = "auto", device: int = 0
) -> FrontEngine:
    """Create the engine of a multi-objective search, see ``make_colony``; on CUDA up to 2,000 cities, symmetric."""
    return _first_usable(backend, lambda engines: engines.make_front(instance, parameters, device))


def make_assignment(
    model: AssignmentModel, parameters: AssignmentParameters, backend: str = "auto", device: int = 0
) -> AssignmentSearch:
    """Create the engine of quadratic assignment, see ``make_colony``."""
    return _first_usable(backend, lambda engines: engines.make_assignment(model, parameters, device))


def make_improver(
    instance: ListedInstance,
    search: LocalSearch,
    backend: str = "auto",
    device: int = 0,
    candidates: str = "auto",
) -> Improver:
    """Create the local search of given tours, see ``make_colony``.

    The search uses the instance's candidate lists; window search uses ``candidates``, see ``ColonyParameters``.
    """
    constrained = instance.constraints is not None or form_to_search(instance) is not None
    if search.in_windows and constrained:  # window search of a memetic engine keeps constraints
        return make_search(instance, MemeticParameters(candidates=candidates), backend, device)
    _refuse_constraints(instance, f"local_search={search.moves!r}", "local_search='windows'")
    return _first_usable(backend, lambda engines: engines.make_improver(instance, search, device, candidates))


def _listed(instance: ListedInstance, form: SymmetricForm, stop: Stop | None) -> ListedInstance:
    """Return the form with candidate lists; of doubled cities they have the maximum length that engines use."""
    if instance.symmetric:
        return with_lists(form.instance, instance.k, instance.listed, stop=stop)
    return with_lists(form.instance, max(instance.k, _MIN_CANDIDATES_OF_FORM), stop=stop)


def _refuse_constraints(instance: ListedInstance, who: str, instead: str = "GPUMemetic()") -> None:
    """Raise ValueError for one city and for constraints."""
    if instance.n < 2:
        raise ValueError(f"{who} need at least 2 cities, got 1: use {instead}")
    if instance.constraints is not None:
        raise ValueError(f"{who} cannot use paths, precedence, fixed or forbidden edges: use {instead}")


def _first_usable(backend: str, make: Callable[[Any], E]) -> E:
    """Return the engine of the first kind of device that can run; "auto" logs once why an earlier one cannot.

    It is created in a background thread, so that an interrupt is raised at once.
    """
    for kind in DEVICES if backend == "auto" else (backend,):
        engines = _ENGINES[kind]
        missing = engines.why_unavailable()
        if missing is None:
            try:
                return interruptible(partial(make, engines))
            except BackendUnavailable as error:
                missing = str(error)
        if kind == DEVICES[-1] or backend != "auto":
            break
        warn_once(f"pymoo_gpuaco runs on the CPU: {missing}")
    raise BackendUnavailable(f"backend={backend!r} cannot run this: {missing}. Use backend='cpu'")
