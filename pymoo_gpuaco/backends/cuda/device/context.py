"""The device's primary context: retained once a process, pushed for as long as an engine works, then popped.

PyTorch, CuPy and others use the same primary context, so all of them can live in one process.

This file owns the end of CUDA in a process, too. A set-up that an interrupt has left goes on in a background thread,
and a thread that is in the driver while the process exits ends it with a signal. So before the interpreter exits, all
threads leave the driver for good, and then engines release what they hold.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from pymoo_gpuaco.backends.errors import BackendUnavailable
from pymoo_gpuaco.runtime import background
from pymoo_gpuaco.runtime.background import fork_safe
from pymoo_gpuaco.runtime.notices import how_to_install

_contexts: dict[int, Any] = {}
_lost: dict[int, str] = {}  # devices whose context no longer works, and what the driver said
_pid: int | None = None  # the process in which CUDA was started
_LONGEST_EXIT = 10.0  # s that the exit of the process waits for other threads to leave the driver
_asking = threading.RLock()  # held while CUDA starts or is asked about devices, see ``ask``

T = TypeVar("T")


def ask(work: Callable[[], T]) -> T:
    """Return ``work()``, which calls the driver outside of ``Holding.lock``, as `fork_safe` does."""

    def locked() -> T:
        with _asking:
            background.check_goes_on()
            return work()

    return fork_safe(locked)


class Holding:
    """What one engine holds on a device; to be made within ``ask``. The thread that uses it holds ``lock``."""

    def __init__(self, retained: Any, free: Callable[[], None]) -> None:
        self.lock = threading.RLock()
        self._pid = os.getpid()
        self._retained = retained
        self._free = free
        _holdings.append(self)

    def release(self) -> None:
        """Free everything, once, in whichever thread; a forked child has nothing to free."""
        if os.getpid() != self._pid:
            return
        with self.lock:
            if self in _holdings:
                with active(self._retained):
                    self._free()
                _holdings.remove(self)


_holdings: list[Holding] = []


@background.at_exit
def _exit() -> None:
    """Wait until other threads have left the driver, let none in again, and release what engines hold."""
    if _pid not in (None, os.getpid()):
        return
    until = time.monotonic() + _LONGEST_EXIT
    while time.monotonic() < until:
        with contextlib.suppress(KeyboardInterrupt):  # a second one: the process ends anyway
            if not _asking.acquire(timeout=max(0.0, until - time.monotonic())):
                return
            _asking.release()
            for holding in list(_holdings):  # there will be no others
                if holding.lock.acquire(timeout=max(0.0, until - time.monotonic())):
                    holding.release()
                    holding.lock.release()
            break
    # an interrupt just behind a push leaves a context on PyCUDA's stack, which then aborts the process
    while _pid is not None and _start().Context.get_current() in _contexts.values():
        _start().Context.pop()


def driver() -> Any:
    """Return pycuda.driver, started. Raises BackendUnavailable that says what is missing."""
    return ask(_start)


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
    return ask(lambda: int(_start().Device.count()))


def describe(index: int) -> dict[str, Any]:
    """Name, compute capability, memory, multiprocessors and driver of a device."""
    return ask(lambda: _describe(_start(), index))


def _describe(cuda: Any, index: int) -> dict[str, Any]:
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
    return ask(lambda: _retain(_start(), index))


def _retain(cuda: Any, index: int) -> Any:
    if index in _lost:
        raise BackendUnavailable(why_lost(index))
    if index not in _contexts:
        count = int(cuda.Device.count())
        if not 0 <= index < count:
            there = f"0 to {count - 1}" if count else "none"
            raise ValueError(f"device must be one of the CUDA devices ({there}), got {index}")
        _create(index)
        try:
            _contexts[index] = cuda.Device(index).retain_primary_context()
        except cuda.Error as error:
            raise BackendUnavailable(f"CUDA device {index} cannot be used ({error})") from error
    return _contexts[index]


def _create(index: int) -> None:
    """Create the primary context without the interpreter's lock: PyCUDA holds it for the second or so that this takes.

    A failure is left to PyCUDA, which explains it.
    """
    device, created = ctypes.c_int(), ctypes.c_void_p()
    with contextlib.suppress(OSError):
        library = ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
        if library.cuDeviceGet(ctypes.byref(device), index) == 0:
            library.cuDevicePrimaryCtxRetain(ctypes.byref(created), device)


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


@contextlib.contextmanager
def active(context: Any) -> Iterator[None]:
    """Make a context current in this thread for the length of a with block."""
    context.push()
    try:
        yield
    finally:
        context.pop()
