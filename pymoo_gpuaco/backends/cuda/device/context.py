"""The device's primary context: retained once a process, pushed for as long as an engine works, then popped.

PyTorch, CuPy and others use the same primary context, so all of them can live in one process.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pymoo_gpuaco.backends.errors import BackendUnavailable
from pymoo_gpuaco.host.background import fork_safe
from pymoo_gpuaco.host.notices import how_to_install

_contexts: dict[int, Any] = {}
_lost: dict[int, str] = {}  # devices whose context no longer works, and what the driver said
_pid: int | None = None  # the process in which CUDA was started


def driver() -> Any:
    """Return pycuda.driver, started. Raises BackendUnavailable that says what is missing."""
    return fork_safe(_start)


def _start() -> Any:
    global _pid
    if _pid is not None and _pid != os.getpid():
        raise BackendUnavailable(
            "CUDA was in use before this process was forked and cannot be used in the child; start workers with "
            "multiprocessing's 'spawn' or 'forkserver' method, or make the first CUDA engine in the child"
        )
    try:
        import pycuda.driver as cuda
    except ImportError as error:
        if "libcuda" in str(error):
            raise BackendUnavailable(
                f"the NVIDIA driver is missing ({error}); install it from https://www.nvidia.com/drivers"
            ) from error
        raise BackendUnavailable(
            f"PyCUDA is missing ({error}); install it with: pip install pycuda, or {how_to_install('cuda')}"
        ) from error
    if _pid is None:
        try:
            cuda.init()
        except cuda.Error as error:
            raise BackendUnavailable(
                f"the NVIDIA driver does not start ({error}){hidden_devices()}; check that nvidia-smi lists a device"
            ) from error
        _pid = os.getpid()
    return cuda


def hidden_devices() -> str:
    """What the environment hides, to be put behind the words that there is no device."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    return f" (CUDA_VISIBLE_DEVICES is {visible!r})" if visible is not None else ""


def device_count() -> int:
    """Number of CUDA devices that this process sees. Raises BackendUnavailable without PyCUDA or a driver."""
    cuda = driver()
    return int(cuda.Device.count())


def describe(index: int) -> dict[str, Any]:
    """Name, compute capability, memory, multiprocessors and driver of a device."""
    cuda = driver()
    device = cuda.Device(index)
    version = cuda.get_driver_version()
    return {
        "index": index,
        "name": device.name(),
        "compute_capability": tuple(device.compute_capability()),
        "memory": int(device.total_memory()),
        "multiprocessors": int(device.get_attribute(cuda.device_attribute.MULTIPROCESSOR_COUNT)),
        "driver": f"CUDA {version // 1000}.{version % 1000 // 10}",
    }


def retain(index: int) -> Any:
    """Return the primary context of a device.

    Raises ValueError for a device that is not there, BackendUnavailable for one that this process has lost.
    """
    cuda = driver()
    return fork_safe(lambda: _retain(cuda, index))


def _retain(cuda: Any, index: int) -> Any:
    if index in _lost:
        raise BackendUnavailable(why_lost(index))
    if index not in _contexts:
        count = int(cuda.Device.count())
        if not 0 <= index < count:
            there = f"0 to {count - 1}" if count else "none"
            raise ValueError(f"device must be one of the CUDA devices ({there}), got {index}")
        try:
            _contexts[index] = cuda.Device(index).retain_primary_context()
        except cuda.Error as error:
            raise BackendUnavailable(f"CUDA device {index} cannot be used ({error})") from error
    return _contexts[index]


def lose(index: int, error: Exception) -> None:
    """Note that a device's context works no longer."""
    _lost.setdefault(index, str(error))


def why_lost(index: int) -> str | None:
    """Say why a device cannot be used any more, or None if it can.

    After a kernel has failed in it, every call in a context fails. Another context helps no more: "To continue using
    CUDA, the process must be terminated and relaunched" (CUDA driver API, CUDA_ERROR_ILLEGAL_ADDRESS and others).
    """
    if index not in _lost:
        return None
    return (
        f"CUDA device {index} has failed in this process ({_lost[index]}) and works again only in a new one; tours "
        "found so far are still there (algorithm.opt), and backend='cpu' goes on in this process"
    )


@contextmanager
def active(context: Any) -> Iterator[None]:
    """Make a context current in this thread for the length of a with block."""
    context.push()
    try:
        yield
    finally:
        context.pop()
