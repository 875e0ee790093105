"""Engines, and the choice between them: the only door through which the algorithms reach a device."""

from __future__ import annotations

import logging
from typing import Any

from pymoo_gpuaco.backends.protocol import ClimberEngine, ColonyEngine, State
from pymoo_gpuaco.colony import checks
from pymoo_gpuaco.colony.parameters import ClimberParameters, ColonyParameters
from pymoo_gpuaco.problems.instance import Instance

__all__ = [
    "BACKENDS",
    "BackendUnavailable",
    "ClimberEngine",
    "ColonyEngine",
    "State",
    "check_backend",
    "make_climbers",
    "make_colony",
]

BACKENDS = ("auto", "cpu", "cuda")
_log = logging.getLogger("pymoo_gpuaco")
_told_about_cpu = False


class BackendUnavailable(RuntimeError):
    """The backend that was asked for cannot run here; the message says what is missing."""


def check_backend(backend: Any, device: Any) -> None:
    """Validate the two arguments that choose an engine."""
    checks.choice("backend", backend, BACKENDS)
    checks.integer("device", device, 0)


def make_colony(
    instance: Instance, parameters: ColonyParameters, backend: str = "auto", device: int = 0
) -> ColonyEngine:
    """Build a colony's engine. Raises ``BackendUnavailable`` if ``backend="cuda"`` cannot run."""
    from pymoo_gpuaco.backends.cpu.engine import CpuColony

    _choose(backend)
    return CpuColony(instance, parameters)


def make_climbers(
    instance: Instance, parameters: ClimberParameters, backend: str = "auto", device: int = 0
) -> ClimberEngine:
    """Build the hill climbers' engine. Raises ``BackendUnavailable`` if ``backend="cuda"`` cannot run."""
    from pymoo_gpuaco.backends.cpu.engine import CpuClimbers

    _choose(backend)
    return CpuClimbers(instance, parameters)


def _choose(backend: str) -> None:
    pass
