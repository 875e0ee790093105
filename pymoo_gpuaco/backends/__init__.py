"""Engines, and the choice between them: the only door through which the algorithms reach a device."""

from __future__ import annotations

import logging
from typing import Any

from pymoo_gpuaco.backends.protocol import AheadEngine, ClimberEngine, ColonyEngine, State
from pymoo_gpuaco.colony import checks
from pymoo_gpuaco.colony.parameters import ClimberParameters, ColonyParameters
from pymoo_gpuaco.problems.instance import Instance

__all__ = [
    "BACKENDS",
    "AheadEngine",
    "BackendUnavailable",
    "ClimberEngine",
    "ColonyEngine",
    "State",
    "backend_of",
    "check_backend",
    "cuda_devices",
    "make_climbers",
    "make_colony",
    "why_no_cuda",
]

BACKENDS = ("auto", "cpu", "cuda")
_log = logging.getLogger("pymoo_gpuaco")
_told: set[str] = set()


class BackendUnavailable(RuntimeError):
    """The backend that was asked for cannot run here; the message says what is missing."""


def check_backend(backend: Any, device: Any) -> None:
    """Validate the two arguments that choose an engine."""
    checks.choice("backend", backend, BACKENDS)
    checks.integer("device", device, 0)


def why_no_cuda() -> str | None:
    """Say what the CUDA backend lacks here and how to get it, or None if it can run."""
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


def backend_of(engine: ColonyEngine | ClimberEngine) -> str:
    """Return "cpu" or "cuda": the backend that an engine belongs to."""
    return "cuda" if type(engine).__module__.startswith(f"{__name__}.cuda") else "cpu"


def make_colony(
    instance: Instance, parameters: ColonyParameters, backend: str = "auto", device: int = 0
) -> ColonyEngine:
    """Build a colony's engine: on CUDA where that is asked for, or usable and able, else on the CPU.

    Raises ``BackendUnavailable`` if ``backend="cuda"`` cannot run here or has not got what the parameters ask for.
    """
    if _cuda_runs(backend):
        from pymoo_gpuaco.backends.cuda.engine import CudaColony, lacks

        missing = lacks(instance, parameters)
        if missing is None:
            return CudaColony(instance, parameters, device)
        _settle_for_cpu(backend, missing)
    from pymoo_gpuaco.backends.cpu.engine import CpuColony, warm_up

    warm_up(parameters, instance.symmetric)
    return CpuColony(instance, parameters)


def make_climbers(
    instance: Instance, parameters: ClimberParameters, backend: str = "auto", device: int = 0
) -> ClimberEngine:
    """Build the hill climbers' engine: on CUDA where that is asked for or usable, else on the CPU.

    Raises ``BackendUnavailable`` if ``backend="cuda"`` cannot run here.
    """
    if _cuda_runs(backend):
        from pymoo_gpuaco.backends.cuda.climbers import CudaClimbers

        return CudaClimbers(instance, parameters, device)
    from pymoo_gpuaco.backends.cpu.engine import CpuClimbers, warm_up_climbers

    warm_up_climbers()
    return CpuClimbers(instance, parameters)


def _cuda_runs(backend: str) -> bool:
    """Whether to try CUDA first."""
    if backend == "cpu":
        return False
    missing = why_no_cuda()
    if missing is not None:
        _settle_for_cpu(backend, missing)
    return missing is None


def _settle_for_cpu(backend: str, missing: str) -> None:
    """Refuse if CUDA was asked for; else say once what runs on the CPU, and why."""
    if backend == "cuda":
        raise BackendUnavailable(f"backend='cuda' cannot run this: {missing}. backend='cpu' can")
    if missing not in _told:
        _told.add(missing)
        _log.warning("pymoo_gpuaco runs on the CPU: %s", missing)
