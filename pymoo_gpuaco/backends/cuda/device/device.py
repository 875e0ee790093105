"""One engine's hold on a CUDA device: its context, arrays and kernels, and how they are set up."""

from __future__ import annotations

import functools
import os
import threading
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.backends.cuda.device import compile as compiler
from pymoo_gpuaco.backends.cuda.device import context, signatures
from pymoo_gpuaco.backends.cuda.device.memory import Arrays, check
from pymoo_gpuaco.backends.cuda.device.parts import DeviceLimits, Part, Source, by_file, together
from pymoo_gpuaco.backends.errors import BackendUnavailable, DeviceFailed
from pymoo_gpuaco.runtime import background
from pymoo_gpuaco.runtime.stop import Stop

_THREADS = 256
# lets other threads go on; a sleep of no time takes as long as a short kernel
_give_way = getattr(os, "sched_yield", functools.partial(time.sleep, 0))
_WAITS_FOR_NOBODY = 1  # CU_STREAM_NON_BLOCKING
LONG = 0.1  # s; kernels that take no longer are not ended early, so that short generations are whole


class _Working:
    """What ``Device.working`` gives; a with block may lie within another. No generator: it is entered in every call."""

    def __init__(self, cuda: Any, index: int, retained: Any, lock: threading.RLock) -> None:
        self._cuda = cuda
        self._index = index
        self.context = retained
        self._pid = os.getpid()
        self.advice = ""  # what to ask for where memory is short
        self._lock = lock

    def __enter__(self) -> None:
        if os.getpid() != self._pid:
            raise RuntimeError(
                "this CUDA engine belongs to the process that this one was forked from; start workers with "
                "multiprocessing's 'spawn' or 'forkserver' method, or make a new engine in the child"
            )
        lost = context.why_lost(self._index)
        if lost is not None:
            raise DeviceFailed(lost)
        self._lock.acquire()
        try:
            background.check_goes_on()
            self.context.push()
        except BaseException:
            self._lock.release()
            raise

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        told = None
        try:
            if isinstance(error, self._cuda.Error):
                told = self._explained(error)
            self.context.pop()
        finally:
            self._lock.release()
        if told is not None:
            raise told from error

    def _explained(self, error: Any) -> Exception:
        """Return the exception that a user gets for an error of the driver; note whether the context is lost."""
        if isinstance(error, self._cuda.MemoryError):
            return MemoryError(f"the device ran out of memory; {self.advice}")
        return DeviceFailed(self.why_lost(error) or f"CUDA device {self._index} failed: {error}")

    def why_lost(self, error: Exception) -> str | None:
        """Say that the context works no longer, if that is what an error of the driver means."""
        try:
            self.context.synchronize()
        except self._cuda.Error:  # every call fails from now on
            context.lose(self._index, error)
        return context.why_lost(self._index)


class Device:
    """A context and what one engine holds in it.

    Raises
    ------
    BackendUnavailable : without a driver, PyCUDA or nvcc; the message says what to install.
    ValueError : if there is no device of this number.
    """

    def __init__(self, index: int) -> None:
        self.index = index
        context.query(lambda: self._open(index))
        self._kernels = self.arrays.kernels
        self._signatures: dict[str, signatures.Signature] = {}
        self.stop = Stop()
        # Whether ``wait`` ends kernels that look at ``halt`` when ``stop`` says so. To look at the clock costs some
        # 20 us, so it is for what takes long.
        self.ends_early = False
        self.halted = False  # whether it has done so; who wants to know sets it back
        self.faults = 0  # times that blocks of a kernel failed to meet

    def _open(self, index: int) -> None:
        self.cuda = context.driver()
        retained = context.retain(index)
        attribute = self.cuda.device_attribute
        hardware = self.cuda.Device(index)
        self.limits = DeviceLimits(
            int(hardware.get_attribute(attribute.MULTIPROCESSOR_COUNT)),
            int(hardware.get_attribute(attribute.MAX_THREADS_PER_MULTIPROCESSOR)) // 32,
            int(hardware.get_attribute(attribute.MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)),
        )
        major, minor = hardware.compute_capability()
        self.architecture = f"sm_{major}{minor}"
        self.arrays = Arrays(self.cuda)
        holding = context.Resources(retained, self.arrays.free)
        self._working = _Working(self.cuda, index, retained, holding.lock)
        weakref.finalize(self, holding.release).atexit = False  # the end of the process is context's

    def working(self) -> _Working:
        """Make the context current and keep other threads out, for as long as the device is used."""
        return self._working

    def set_up(
        self, parts: Sequence[Part], advice: str, meanwhile: Callable[[], object] = lambda: None
    ) -> None:
        """Compile and load the kernels of all parts, take their memory, and let them fill it.

        ``meanwhile`` is called while the kernels are compiled. Raises MemoryError that ends in ``advice`` when they do
        not fit, then or later, while the engine works.
        """
        self._working.advice = advice
        sources = [source for part in parts for source in part.sources()]
        needed = together(*(part.needed() for part in parts))
        wanted = by_file(sources)
        for source in sources:
            self._signatures.update(signatures.read(source.file, source.kernels, source.definitions))
        code = compiler.compile_files(self.architecture, wanted, meanwhile)
        with self.working():
            try:
                self.check(needed)
                for source in sources:
                    background.check_goes_on()
                    self._load(source, code[source.file])
                for name, size in needed.items():
                    self.arrays.allocate(name, size)
                # no timing, and no sleep: a launch is not far when the host waits
                self.arrays.events.append(self.cuda.Event(self.cuda.event_flags.DISABLE_TIMING))
                self._fault = self.arrays.share("fault", 4).view(np.int32)
                self._fault[0] = 0
                # Not 0 ends kernels that look at it. It lies on the device: to look at the host's memory takes so long
                # that a search of 792 tours was three times as slow. It is written while a kernel is at work, so by
                # a stream that waits for nobody, and from page-locked memory.
                self.arrays.allocate("halt", 4)
                self.arrays.zero("halt", 4)
                self._one = self.arrays.share("one", 4).view(np.int32)
                self._one[0] = 1
                self.arrays.streams.append(self.cuda.Stream(_WAITS_FOR_NOBODY))
                for part in parts:
                    background.check_goes_on()
                    part.prepare()
            except BaseException as error:
                self.arrays.free()
                if isinstance(error, self.cuda.Error) and not isinstance(error, self.cuda.MemoryError):
                    raise BackendUnavailable(
                        self._working.why_lost(error)
                        or f"the device cannot be set up ({error}); the driver may be older than the CUDA toolkit"
                    ) from error
                raise

    def take(self, needed: Mapping[str, int]) -> None:
        """Take memory besides that of the parts, in place of arrays of these names.

        Raises MemoryError if it does not fit.
        """
        for name in needed:
            self.arrays.give_back(name)
        self.check(needed)
        taken: list[str] = []
        try:
            for name, size in needed.items():
                self.arrays.allocate(name, size)
                taken.append(name)
        except BaseException:
            for name in taken:
                self.arrays.give_back(name)
            raise

    def grow(self, needed: Mapping[str, int], spare: float = 0.0) -> bool:
        """Make arrays at least so large; where one is smaller, all are taken anew and what was in them is lost.

        They are taken with ``spare`` times as much to spare. Returns whether they were. Raises MemoryError.
        """
        if all(self.arrays.size(name) >= size for name, size in needed.items()):
            return False
        self.take({name: size + int(spare * size) for name, size in needed.items()})
        return True

    def put(self, name: str, array: NDArray[Any]) -> Any:
        """Copy an array of any size to the device array ``name``, which grows; return where that is."""
        self.grow({name: array.nbytes}, spare=0.5)
        self.write(name, array)
        return self.arrays[name]

    def check(self, needed: Mapping[str, int]) -> None:
        """Raise MemoryError if arrays of these bytes do not fit what is free."""
        check(needed, self.free_memory(), self._working.advice)

    def free_memory(self) -> int:
        """Bytes that are free now."""
        return int(self.cuda.mem_get_info()[0])

    def _load(self, source: Source, code: bytes) -> None:
        module = self.cuda.module_from_buffer(code)
        self.arrays.modules[source.file] = module
        for name in source.kernels:
            self._kernels[name] = module.get_function(name)
            self._kernels[name].prepare(self._signatures[name].letters)

    def allow_shared(self, name: str, size: int) -> None:
        """Let blocks of a kernel take ``size`` bytes of shared memory."""
        if size > 48 << 10:
            attribute = self.cuda.function_attribute.MAX_DYNAMIC_SHARED_SIZE_BYTES
            self._kernels[name].set_attribute(attribute, size)

    def launch(self, name: str, blocks: int, threads: int, *arguments: Any, shared: int = 0) -> None:
        """Launch ``blocks`` blocks of ``threads`` threads with ``shared`` bytes of shared memory each.

        Raises TypeError that names the kernel and the argument where one is of the wrong kind, missing or too much.
        """
        kernel = self._kernels[name]
        try:
            kernel.prepared_call((blocks, 1), (threads, 1, 1), *arguments, shared_size=shared)
        except Exception:
            self._signatures[name].check(arguments)  # only now, as it takes longer than the launch
            raise

    def call(self, name: str, threads: int, *arguments: Any) -> None:
        """Launch at least ``threads`` threads in blocks of 256."""
        self.launch(name, max(1, -(-threads // _THREADS)), _THREADS, *arguments)

    def spread(self, items: int) -> int:
        """Threads of a kernel that loops over its items: enough for all, no more than fill the device."""
        return min(items, 2048 * self.limits.multiprocessors)

    def write(self, name: str, array: Any) -> None:
        """Copy an array of the host to the start of a device array."""
        source = np.ascontiguousarray(array)
        if source.nbytes:
            self.cuda.memcpy_htod(self.arrays[name], source)

    def read(self, array: Any, name: str, offset: int = 0) -> None:
        """Fill a contiguous array of the host from a device array, ``offset`` bytes in."""
        self.cuda.memcpy_dtoh(array, int(self.arrays[name]) + offset)

    def mark(self) -> None:
        """Let ``wait`` wait for what has been launched so far."""
        self.arrays.events[0].record()

    def wait(self, early: bool = False) -> None:
        """Wait for what had been launched when ``mark`` was called last; ``early``: as where ``ends_early`` is set.

        Raises DeviceFailed if blocks of a kernel failed to meet, which it writes to ``fault``.
        """
        if early or self.ends_early:
            self._wait_or_end()
        else:
            self.arrays.events[0].synchronize()
        if self._fault[0]:
            self._fault[0] = 0
            self.faults += 1
            raise DeviceFailed(
                "blocks of a kernel that wait for each other were not on the device at the same time: another process "
                "uses it. Run again when it is free, on another device, or with backend='cpu'; GPUACS needs no such "
                "wait with variant='relaxed' or 'selective'"
            )

    def late(self, early: bool = False) -> bool:
        """Wait for what has been launched, ``early`` as `wait` does; whether time is over then."""
        self.mark()
        self.wait(early)
        return self.stop.passed()

    def wait_or_stop(self) -> None:
        """Wait for what has been launched; where it was ended early, raise the flag of ``stop``."""
        self.mark()
        self.wait(early=True)
        if self.halted:
            self.halted = False
            self.stop.flag[0] = 1

    def _wait_or_end(self) -> None:
        marked, whole = self.arrays.events[0], time.monotonic() + LONG
        while not marked.query():
            _give_way()
            if self.stop.passed() and time.monotonic() >= whole:
                self._end()

    def _end(self) -> None:
        """Let kernels that look at ``halt`` end what they do, and wait for all."""
        self.halted = True
        try:
            self.cuda.memcpy_htod_async(self.arrays["halt"], self._one, self.arrays.streams[0])
            self.arrays.events[0].synchronize()
        finally:
            self.arrays.zero("halt", 4)

    def copy(self, target: str, source: str, size: int) -> None:
        """Copy the first ``size`` bytes of one device array to another; the host does not wait."""
        self.cuda.memcpy_dtod_async(self.arrays[target], self.arrays[source], size)

    def copy_from(self, other: Device, name: str, target: int, source: int, size: int) -> None:
        """Copy bytes of the array ``name`` of another device, from one offset to another; the host does not wait."""
        if size:
            self.cuda.memcpy_peer_async(
                self.arrays.address(name) + target,
                other.arrays.address(name) + source,
                size,
                self._working.context,
                other._working.context,
            )

    def repeat(self, name: str, size: int, source: int, first: int, end: int) -> None:
        """Copy row ``source`` of an array to the rows from ``first`` to ``end``; rows have ``size`` bytes."""
        start, done = self.arrays.address(name), 1
        if first < end:
            self.cuda.memcpy_dtod_async(start + size * first, start + size * source, size)
        while done < end - first:  # as many again as there are
            some = min(done, end - first - done)
            self.cuda.memcpy_dtod_async(start + size * (first + done), start + size * first, size * some)
            done += some
