"""Engines, and the choice between them: the only door through which the algorithms reach a device."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, TypeVar

from pymoo_gpuaco import checks
from pymoo_gpuaco.backends.errors import BackendUnavailable, DeviceFailed
from pymoo_gpuaco.backends.protocol import (
    Accepts,
    AheadEngine,
    Builder,
    ClimberEngine,
    ColonyEngine,
    CountsTrials,
    EditsTrails,
    Engine,
    FollowsProgress,
    Improver,
    Stateful,
    Stoppable,
    Trails,
)
from pymoo_gpuaco.candidates.listed import ListedInstance
from pymoo_gpuaco.colony.parameters import ClimberParameters, ColonyParameters, LocalSearch
from pymoo_gpuaco.host.forks import undivided
from pymoo_gpuaco.host.state import State

__all__ = [
    "BACKENDS",
    "Accepts",
    "AheadEngine",
    "BackendUnavailable",
    "Builder",
    "ClimberEngine",
    "ColonyEngine",
    "CountsTrials",
    "DeviceFailed",
    "EditsTrails",
    "Engine",
    "FollowsProgress",
    "Improver",
    "State",
    "Stateful",
    "Stoppable",
    "Trails",
    "check_backend",
    "cuda_devices",
    "make_climbers",
    "make_colony",
    "make_improver",
    "why_no_cuda",
]

BACKENDS = ("auto", "cpu", "cuda")
_log = logging.getLogger("pymoo_gpuaco")
_told: set[str] = set()

E = TypeVar("E")


def check_backend(backend: Any, device: Any) -> None:
    """Validate the two arguments that choose an engine."""
    checks.choice("backend", backend, BACKENDS)
    checks.integer("device", device, 0)


def why_no_cuda() -> str | None:
    """Say what the CUDA backend lacks here and how to get it, or None if it can run."""
    with undivided:
        from pymoo_gpuaco.backends import cuda

        return cuda.why_unavailable()


def cuda_devices() -> list[str]:
    """One line for each CUDA device."""
    from pymoo_gpuaco.backends import cuda

    lines = []
    for device in cuda.devices():
        major, minor = device["compute_capability"]
        lines.append(
            f"{device['name']}, compute capability {major}.{minor}, {device['memory'] / 2**30:.0f} GiB"
        )
    return lines


def make_colony(
    instance: ListedInstance, parameters: ColonyParameters, backend: str = "auto", device: int = 0
) -> ColonyEngine:
    """Build a colony's engine: on CUDA where that is asked for, or usable and able, else on the CPU.

    Raises ``BackendUnavailable`` if ``backend="cuda"`` cannot run here or has not got what the parameters ask for.
    """

    def on_cuda() -> ColonyEngine:
        if parameters.construction == "focused":
            from pymoo_gpuaco.backends.cuda.focused import CudaFocused

            return CudaFocused(instance, parameters, device)
        from pymoo_gpuaco.backends.cuda.engine import CudaColony, lacks

        missing = lacks(instance, parameters)
        if missing is not None:
            raise BackendUnavailable(missing)
        return CudaColony(instance, parameters, device)

    def on_cpu() -> ColonyEngine:
        if parameters.construction == "focused":
            with undivided:
                from pymoo_gpuaco.backends.cpu.windows.engine import CpuFocused, warm_up_focused

            warm_up_focused(instance.n)
            return CpuFocused(instance, parameters)
        with undivided:
            from pymoo_gpuaco.backends.cpu.engine import CpuColony, warm_up

        warm_up(parameters, instance.symmetric)
        return CpuColony(instance, parameters)

    return _first_able(backend, on_cuda, on_cpu)


def make_climbers(
    instance: ListedInstance, parameters: ClimberParameters, backend: str = "auto", device: int = 0
) -> ClimberEngine:
    """Build the hill climbers' engine: on CUDA where that is asked for or usable, else on the CPU.

    Raises ``BackendUnavailable`` if ``backend="cuda"`` cannot run here.
    """

    def on_cuda() -> ClimberEngine:
        from pymoo_gpuaco.backends.cuda.climbers import CudaClimbers

        return CudaClimbers(instance, parameters, device)

    def on_cpu() -> ClimberEngine:
        with undivided:
            from pymoo_gpuaco.backends.cpu.engine import CpuClimbers, warm_up_climbers

        warm_up_climbers()
        return CpuClimbers(instance, parameters)

    return _first_able(backend, on_cuda, on_cpu)


def make_improver(
    instance: ListedInstance,
    search: LocalSearch,
    backend: str = "auto",
    device: int = 0,
    candidates: str = "auto",
) -> Improver:
    """Build what improves tours at hand: on CUDA where that is asked for, or usable and able, else on the CPU.

    The search looks at the instance's candidate lists; windows look at ``candidates``, see ``ColonyParameters``.
    Raises ``BackendUnavailable`` as ``make_colony`` does.
    """
    parameters = ColonyParameters(local_search=search, candidates=candidates)

    def on_cuda() -> Improver:
        from pymoo_gpuaco.backends.cuda.improver import CudaImprover

        return CudaImprover(instance, search, device, parameters.candidates)

    def on_cpu() -> Improver:
        with undivided:
            from pymoo_gpuaco.backends.cpu.engine import warm_up
            from pymoo_gpuaco.backends.cpu.improver import CpuImprover

        warm_up(parameters, instance.symmetric)
        return CpuImprover(instance, search, candidates=parameters.candidates)

    return _first_able(backend, on_cuda, on_cpu)


def _first_able(backend: str, on_cuda: Callable[[], E], on_cpu: Callable[[], E]) -> E:
    """What CUDA makes, unless the CPU is asked for or "auto" finds that CUDA cannot, which it says once."""
    if backend == "cpu":
        return on_cpu()
    try:
        missing = why_no_cuda()
        if missing is not None:
            raise BackendUnavailable(missing)
        return on_cuda()
    except BackendUnavailable as error:
        missing = str(error)
        if backend == "cuda":
            raise BackendUnavailable(
                f"backend='cuda' cannot run this: {missing}. backend='cpu' can"
            ) from error
    if missing not in _told:
        _told.add(missing)
        _log.warning("pymoo_gpuaco runs on the CPU: %s", missing)
    return on_cpu()
