"""The primary context of a device: retained once per process, and current while an engine uses the device.

PyTorch, CuPy and others use the same primary context; all of them can share one process.

This module also shuts CUDA down. An interrupted set-up continues in a background thread, and a thread that is in the
driver while the process exits crashes it. Therefore, before the interpreter exits, all threads leave the driver; then
engines release their resources.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import sys
import threading
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from pymoo_gpuaco.backends.errors import BackendUnavailable, DeviceFailed
from pymoo_gpuaco.runtime import background
from pymoo_gpuaco.runtime.background import fork_safe
from pymoo_gpuaco.runtime.clock import CLOCK
from pymoo_gpuaco.runtime.notices import how_to_install

_contexts: dict[int, Any] = {}
_lost: dict[int, str] = {}  # devices with a failed context, and the driver's message
_pid: int | None = None  # the process that has initialised CUDA
# Why the driver did not start. It is not asked again, because it crashes in a child of a process in which it failed.
_no_start: str | None = None
_LONGEST_EXIT = 10.0  # s; at exit, maximum wait for other threads to leave the driver
_driver_lock = threading.RLock()  # held while CUDA is initialised or queried, see ``query``

P = ParamSpec("P")
T = TypeVar("T")


def query(work: Callable[P, T]) -> Callable[P, T]:
    """Decorate a function that calls the driver without holding ``EngineContext.lock``; see `fork_safe`."""

    @functools.wraps(work)
    def locked(*args: P.args, **kwargs: P.kwargs) -> T:
        def call() -> T:
            with _driver_lock:
                background.check_not_exiting()
                return work(*args, **kwargs)

        return fork_safe(call)

    return locked


class EngineContext:
    """The context of one engine: current, and locked against other threads, within a with block. It is re-entrant.

    A class, because it is faster than a generator.

    Parameters
    ----------
    index : device.
    free : frees the engine's resources, within the context.
    """

    def __init__(self, index: int, free: Callable[[], None]) -> None:
        self.handle = retain(index)
        self.advice = ""  # end of memory errors: how to need less memory
        self.lock = threading.RLock()
        self._cuda, self._index, self._free = driver(), index, free
        self._pid = os.getpid()
        _engines.append(self)

    def __enter__(self) -> None:
        if os.getpid() != self._pid:
            raise RuntimeError(
                "this CUDA engine belongs to the process that this one was forked from; start workers with "
                "multiprocessing's 'spawn' or 'forkserver' method, or make a new engine in the child"
            )
        lost = why_lost(self._index)
        if lost is not None:
            raise DeviceFailed(lost)
        self.lock.acquire()
        try:
            background.check_not_exiting()
            self.handle.push()
        except BaseException:
            self.lock.release()
            raise

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        explained = None
        try:
            if isinstance(error, self._cuda.Error):
                explained = self._explained(error)
            self.handle.pop()
        finally:
            self.lock.release()
        if explained is not None:
            raise explained from error

    def _explained(self, error: Any) -> Exception:
        """Return the exception for an error of the driver; record a failed context."""
        if isinstance(error, self._cuda.MemoryError):
            return MemoryError(f"the device ran out of memory; {self.advice}")
        return DeviceFailed(self.why_lost(error) or f"CUDA device {self._index} failed: {error}")

    def why_lost(self, error: Exception) -> str | None:
        """Return why the context has failed, or None if it still works after an error of the driver."""
        try:
            self.handle.synchronize()
        except self._cuda.Error:  # all further calls fail
            _lost.setdefault(self._index, str(error))
        return why_lost(self._index)

    def release(self) -> None:
        """Free everything once, from any thread; a no-op in a forked child."""
        if os.getpid() != self._pid:
            return
        with self.lock:
            if self in _engines:
                self.handle.push()
                try:
                    self._free()
                finally:
                    self.handle.pop()
                _engines.remove(self)


_engines: list[EngineContext] = []


@background.at_exit
def _exit() -> None:
    """Wait until other threads have left the driver, lock them out, and release all resources."""
    if _pid not in (None, os.getpid()):
        return
    until = CLOCK.monotonic() + _LONGEST_EXIT
    while CLOCK.monotonic() < until:
        with contextlib.suppress(KeyboardInterrupt):  # the process exits anyway
            if not _driver_lock.acquire(timeout=max(0.0, until - CLOCK.monotonic())):
                return
            _driver_lock.release()
            for engine in list(_engines):  # no more can be added
                if engine.lock.acquire(timeout=max(0.0, until - CLOCK.monotonic())):
                    engine.release()
                    engine.lock.release()
            break
    # an interrupt directly after a push leaves a context on PyCUDA's stack, which would abort the process
    while _pid is not None and _start().Context.get_current() in _contexts.values():
        _start().Context.pop()


@query
def driver() -> Any:
    """Return the initialised module pycuda.driver. Raises BackendUnavailable with the missing requirement."""
    return _start()


def _start() -> Any:
    global _pid, _no_start
    if _no_start is not None:
        raise BackendUnavailable(_no_start)
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
            where = hidden_devices()
            _no_start = (
                f"the NVIDIA driver does not start ({error}){where}; check that nvidia-smi lists a device"
            )
            raise BackendUnavailable(_no_start) from error
        _pid = os.getpid()
    return cuda


def hidden_devices() -> str:
    """Return a note on CUDA_VISIBLE_DEVICES for errors about missing devices."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    return f" (CUDA_VISIBLE_DEVICES is {visible!r})" if visible is not None else ""


@query
def device_count() -> int:
    """Return the number of visible CUDA devices. Raises BackendUnavailable without PyCUDA or a driver."""
    return int(_start().Device.count())


@query
def describe(index: int) -> str:
    """Return name, compute capability and memory of a device."""
    device = _start().Device(index)
    major, minor = device.compute_capability()
    memory = device.total_memory() / 2**30
    return f"{device.name()}, compute capability {major}.{minor}, {memory:.0f} GiB"


@query
def retain(index: int) -> Any:
    """Return the primary context of a device.

    Raises ValueError for a missing device, BackendUnavailable for one whose context has failed.
    """
    cuda = _start()
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
    """Create the primary context without the GIL, which PyCUDA would hold for about a second.

    Errors are ignored: PyCUDA raises them with an explanation.
    """
    device, created = ctypes.c_int(), ctypes.c_void_p()
    with contextlib.suppress(OSError):
        library = ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
        if library.cuDeviceGet(ctypes.byref(device), index) == 0:
            library.cuDevicePrimaryCtxRetain(ctypes.byref(created), device)


def why_lost(index: int) -> str | None:
    """Return why a device is no longer usable, or None.

    After a kernel has failed, every call in its context fails, and in new contexts as well: "To continue using CUDA,
    the process must be terminated and relaunched" (CUDA driver API, CUDA_ERROR_ILLEGAL_ADDRESS and others).
    """
    if index not in _lost:
        return None
    return (
        f"CUDA device {index} has failed in this process ({_lost[index]}); start a new process or "
        "use backend='cpu'; the best tour so far is in algorithm.opt"
    )
