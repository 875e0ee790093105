"""The CUDA engines, and whether they can run here. Importing this package imports no PyCUDA and starts no CUDA."""

from __future__ import annotations

from typing import Any

__all__ = ["devices", "why_unavailable"]


def why_unavailable() -> str | None:
    """Return None if CUDA engines can run in this process, else what is missing and how to get it."""
    from pymoo_gpuaco.backends.cuda.device import compile as compiler
    from pymoo_gpuaco.backends.cuda.device import context, sources

    try:
        count = context.device_count()
    except RuntimeError as error:
        return str(error)
    if count == 0:
        return f"the driver sees no CUDA device{context.hidden_devices()}; backend='cpu' needs none"
    try:
        compiler.nvcc_path()
        sources.folder()
    except (RuntimeError, FileNotFoundError) as error:
        return str(error)
    return None


def devices() -> list[dict[str, Any]]:
    """List the CUDA devices: index, name, compute_capability, memory (bytes), multiprocessors and driver.

    The list is empty where there is no driver, no PyCUDA or no device; ``why_unavailable`` says which.
    """
    from pymoo_gpuaco.backends.cuda.device import context

    try:
        return [context.describe(index) for index in range(context.device_count())]
    except RuntimeError:
        return []
