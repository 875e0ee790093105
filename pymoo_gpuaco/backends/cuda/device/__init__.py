"""A CUDA device of one engine: context, arrays, kernels and launches."""

from __future__ import annotations

import contextlib
import functools
import os
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.backends.cuda.device import compile as compiler
from pymoo_gpuaco.backends.cuda.device import context, sources
from pymoo_gpuaco.backends.cuda.device.memory import Arrays
from pymoo_gpuaco.backends.errors import BackendUnavailable, DeviceFailed
from pymoo_gpuaco.runtime import background
from pymoo_gpuaco.runtime.clock import CLOCK
from pymoo_gpuaco.runtime.stop import Stop

_THREADS = 256
# sleep(0), the fallback, takes as long as a short kernel
_yield_to_threads = getattr(os, "sched_yield", functools.partial(CLOCK.sleep, 0))
CU_STREAM_NON_BLOCKING = 1
RESERVE = 256 << 20  # bytes of device memory left to the driver, other libraries and kernels
MIN_SECONDS_BEFORE_HALT = 0.1  # s; shorter kernels are not halted, so that short generations are complete


@dataclass(frozen=True)
class Source:
    """A file of kernels and its definitions in one engine.

    ``kernels``: those that the engine launches; their parameters are read from the file, see ``sources``.
    ``shared``: bytes of dynamic shared memory per block, by kernel; default 0.
    """

    file: str
    definitions: Mapping[str, object]
    kernels: Sequence[str]
    shared: Mapping[str, int] = field(default_factory=dict)


class KernelGroup:
    """A part of an engine: arrays on the device and the kernels that use them."""

    sources: Sequence[Source] = ()
    needed: Mapping[str, int] = {}  # bytes of every array; names are unique in an engine

    def prepare(self) -> None:
        """Fill the arrays, initially zero; called after the ``prepare`` of the preceding parts."""


@dataclass(frozen=True)
class DeviceLimits:
    """Limits of a device."""

    multiprocessors: int
    warps: int  # maximum resident warps per multiprocessor
    shared_bytes: int  # maximum dynamic shared memory per block
    registers: int  # per multiprocessor
    shared_in_all: int  # shared memory of all blocks of a multiprocessor


# Allocation of devices from compute capability 5.0 on: registers of a warp, parts of a multiprocessor that share its
# registers equally, shared memory that the driver takes per block, and the range of the maximum of blocks per
# multiprocessor.
_REGISTER_UNIT, _PARTITIONS, _DRIVER_SHARED, _BLOCKS, _MOST_BLOCKS = 256, 4, 1024, 16, 32


def resident_blocks(
    limits: DeviceLimits, threads: int, registers: int, shared: int, at_least: bool = True
) -> int:
    """Return how many blocks of a kernel are at least on a multiprocessor at the same time, or at most.

    ``registers`` of a thread; ``shared`` bytes of a block, static and dynamic.
    """
    warps = round_up(-(-threads // 32), _PARTITIONS if at_least else 1)
    by_warps = limits.warps // -(-threads // 32)
    per_warp = round_up(32 * max(1, registers), _REGISTER_UNIT)
    by_registers = limits.registers // _PARTITIONS // per_warp * _PARTITIONS // warps
    by_shared = limits.shared_in_all // (shared + _DRIVER_SHARED)
    return min(_BLOCKS if at_least else _MOST_BLOCKS, by_warps, by_registers, by_shared)


def round_up(value: int, unit: int) -> int:
    """Round ``value`` up to a multiple of ``unit``."""
    return -(-value // unit) * unit


def words(key: int) -> tuple[np.uint32, np.uint32]:
    """Return the low and the high word of a key."""
    return np.uint32(int(key) & 0xFFFFFFFF), np.uint32(int(key) >> 32)


# Increments of the key's words by round.
_ROUNDS = [(0x9E3779B9 * r & 0xFFFFFFFF, 0xBB67AE85 * r & 0xFFFFFFFF) for r in range(10)]


def round_keys(key: int) -> list[int]:
    """Return ``RoundKeys`` of philox.cuh: the low and the high word of each of ten rounds."""
    low, high = int(key) & 0xFFFFFFFF, int(key) >> 32
    return [word for a, b in _ROUNDS for word in ((low + a) & 0xFFFFFFFF, (high + b) & 0xFFFFFFFF)]


class Device:
    """A context and the resources of one engine in it.

    Raises
    ------
    BackendUnavailable : without a driver, PyCUDA or nvcc; the message says what to install.
    ValueError : for a missing device.
    MemoryError : in ``set_up`` and later, if arrays do not fit; the message says how to need less.
    """

    def __init__(self, index: int) -> None:
        self.index = index
        self._open(index)
        self._kernels = self.arrays.kernels
        self._shared: dict[str, int] = {}
        self._resident: dict[tuple[str, int], int] = {}  # by kernel and threads
        self.stop = Stop()
        # If True, `wait` halts kernels at the deadline, after at least MIN_SECONDS_BEFORE_HALT. It polls, which costs
        # some 20 us: for long kernels only.
        self.ends_early = False
        self.halted = False  # True after ``wait`` has halted kernels; callers reset it

    @context.query
    def _open(self, index: int) -> None:
        self.cuda = context.driver()
        self.arrays = Arrays(self.cuda)
        self._context = context.EngineContext(index, self.arrays.free)
        weakref.finalize(self, self._context.release).atexit = False  # see context._exit
        attribute = self.cuda.device_attribute
        hardware = self.cuda.Device(index)
        self.limits = DeviceLimits(
            int(hardware.get_attribute(attribute.MULTIPROCESSOR_COUNT)),
            int(hardware.get_attribute(attribute.MAX_THREADS_PER_MULTIPROCESSOR)) // 32,
            int(hardware.get_attribute(attribute.MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)),
            int(hardware.get_attribute(attribute.MAX_REGISTERS_PER_MULTIPROCESSOR)),
            int(hardware.get_attribute(attribute.MAX_SHARED_MEMORY_PER_MULTIPROCESSOR)),
        )
        major, minor = hardware.compute_capability()
        self.architecture = f"sm_{major}{minor}"

    def working(self) -> context.EngineContext:
        """Make the context current and exclude other threads, within a with block."""
        return self._context

    def set_up(self, parts: Sequence[KernelGroup], advice: str) -> None:
        """Compile and load the kernels of all parts, allocate their arrays and prepare them.

        ``advice`` is the end of all memory errors.
        """
        self._context.advice = advice
        files = [source for part in parts for source in part.sources]
        needed = {name: size for part in parts for name, size in part.needed.items()}
        if len(needed) < sum(len(part.needed) for part in parts):
            raise ValueError("two parts have an array of the same name")
        wanted = {source.file: source.definitions for source in files}
        code = compiler.compile_files(self.architecture, wanted)
        with self.working():
            try:
                self.check(needed)
                for source in files:
                    background.check_not_exiting()
                    self._load(source, code[source.file])
                for name, size in needed.items():
                    self.arrays.allocate(name, size)
                # no timing, and busy waiting: the host waits only for short times
                self.arrays.events.append(self.cuda.Event(self.cuda.event_flags.DISABLE_TIMING))
                self._fault = self.arrays.share("fault", 4).view(np.int32)
                self._fault[0] = 0
                # A value other than 0 halts kernels that check it. It is in device memory, because polling host memory
                # slows a search of many tours. It is written while a kernel runs, from page-locked memory by a
                # non-blocking stream.
                self.arrays.allocate("halt", 4)
                self._one = self.arrays.share("one", 4).view(np.int32)
                self._one[0] = 1
                self.arrays.streams.append(self.cuda.Stream(CU_STREAM_NON_BLOCKING))
                for part in parts:
                    background.check_not_exiting()
                    part.prepare()
            except BaseException as error:
                self.arrays.free()
                if isinstance(error, self.cuda.Error) and not isinstance(error, self.cuda.MemoryError):
                    raise BackendUnavailable(
                        self._context.why_lost(error)
                        or f"the device cannot be set up ({error}); the driver may be older than the CUDA toolkit"
                    ) from error
                raise

    def take(self, needed: Mapping[str, int]) -> None:
        """Allocate arrays, replacing those of the same names. Raises MemoryError if they do not fit."""
        for name in needed:
            self.arrays.free_array(name)
        self.check(needed)
        for name, size in needed.items():
            self.arrays.allocate(name, size)

    def grow(self, needed: Mapping[str, int]) -> None:
        """Enlarge arrays to at least these sizes. If one is smaller, all are replaced and their content is lost.

        Raises MemoryError.
        """
        if any(self.arrays.size(name) < size for name, size in needed.items()):
            self.take(needed)

    def put(self, name: str, array: NDArray[Any]) -> Any:
        """Copy an array of any size to the device array ``name``, which is enlarged if needed; return its address."""
        if self.arrays.size(name) < array.nbytes:
            self.take({name: array.nbytes * 3 // 2})
        self.write(name, array)
        return self.arrays[name]

    def check(self, needed: Mapping[str, int]) -> None:
        """Raise MemoryError if arrays of these bytes do not fit into free memory."""
        total, free = sum(needed.values()), self.free_memory()
        if total + RESERVE > free:
            largest = sorted(needed, key=lambda name: -needed[name])[:3]
            parts = ", ".join(f"{name} {needed[name] / 1e9:.2f} GB" for name in largest)
            raise MemoryError(
                f"the engine needs {total / 1e9:.2f} GB of device memory ({parts}), {free / 1e9:.2f} GB are free; "
                f"{self._context.advice}"
            )

    def free_memory(self) -> int:
        """Return the free bytes of device memory."""
        return int(self.cuda.mem_get_info()[0])

    def _load(self, source: Source, code: bytes) -> None:
        module = self.cuda.module_from_buffer(code)
        for name, letters in sources.parameters(source.file, source.kernels).items():
            self._kernels[name] = module.get_function(name)
            self._kernels[name].prepare(letters)
            self._shared[name] = shared = source.shared.get(name, 0)
            if shared > 48 << 10:
                attribute = self.cuda.function_attribute.MAX_DYNAMIC_SHARED_SIZE_BYTES
                self._kernels[name].set_attribute(attribute, shared)

    def launch(self, name: str, blocks: int, threads: int, *arguments: Any) -> None:
        """Launch ``blocks`` blocks of ``threads`` threads."""
        shared = self._shared[name]
        self._kernels[name].prepared_call((blocks, 1), (threads, 1, 1), *arguments, shared_size=shared)

    def launch_together(self, name: str, blocks: int, threads: int, *arguments: Any) -> None:
        """Launch blocks that wait for each other. Raises DeviceFailed unless the device holds all at the same time."""
        most = self.resident(name, threads)
        if blocks > most:
            raise DeviceFailed(
                f"the {blocks} blocks of {name} wait for each other, and the device holds {most} of them at the same "
                "time: use backend='cpu'"
            )
        self.launch(name, blocks, threads, *arguments)

    def resident(self, name: str, threads: int) -> int:
        """Return how many blocks of a kernel the device holds at the same time, if no other kernel runs."""
        if (name, threads) not in self._resident:
            self._resident[name, threads] = self._blocks(name, threads, at_least=True)
        return self._resident[name, threads]

    def occupying(self, name: str, threads: int) -> int:
        """Return how many blocks of a kernel occupy the device; some may wait for the end of others."""
        return max(1, self._blocks(name, threads, at_least=False))

    def _blocks(self, name: str, threads: int, at_least: bool) -> int:
        kernel = self._kernels[name]
        shared = int(kernel.shared_size_bytes) + self._shared[name]
        blocks = resident_blocks(self.limits, threads, int(kernel.num_regs), shared, at_least)
        return blocks * self.limits.multiprocessors

    def call(self, name: str, threads: int, *arguments: Any) -> None:
        """Launch at least ``threads`` threads in blocks of 256."""
        self.launch(name, max(1, -(-threads // _THREADS)), _THREADS, *arguments)

    def grid_threads(self, items: int) -> int:
        """Return the number of threads for a grid-stride loop over ``items`` items."""
        return min(items, 2048 * self.limits.multiprocessors)

    def write(self, name: str, array: Any) -> None:
        """Copy a host array to the start of a device array."""
        source = np.ascontiguousarray(array)
        if source.nbytes:
            self.cuda.memcpy_htod(self.arrays[name], source)

    def read(self, array: Any, name: str, offset: int = 0) -> None:
        """Fill a contiguous host array from a device array, from byte ``offset`` on."""
        self.cuda.memcpy_dtoh(array, self.arrays[name] + offset)

    def wait(self, early: bool = False) -> None:
        """Wait for all launches; ``early``: like ``ends_early``, for this call.

        Raises DeviceFailed after a barrier timeout, which kernels report in ``fault``.
        """
        # no local variable for the event: the traceback of an error would keep it after its context
        events = self.arrays.events
        events[0].record()
        if early or self.ends_early:
            whole = CLOCK.monotonic() + MIN_SECONDS_BEFORE_HALT
            while not events[0].query():
                _yield_to_threads()
                if self.stop.passed() and CLOCK.monotonic() >= whole:
                    self._end()
        else:
            events[0].synchronize()
        if self._fault[0]:
            self._fault[0] = 0
            raise DeviceFailed(
                "blocks of a kernel were not on the device at the same time: another process uses it. Run again later, "
                "on another device, with backend='cpu', or GPUACS with variant='relaxed'"
            )

    def wait_and_check_deadline(self, early: bool = False) -> bool:
        """Wait for all launches (``early``: see `wait`); return True if the deadline has passed."""
        self.wait(early)
        return self.stop.passed()

    def wait_or_stop(self) -> None:
        """Wait for all launches; if kernels were halted, raise the flag of ``stop``."""
        self.wait(early=True)
        if self.halted:
            self.halted = False
            self.stop.flag[0] = 1

    def _end(self) -> None:
        """Halt kernels that check ``halt``, and wait for all."""
        self.halted = True
        try:
            self.cuda.memcpy_htod_async(self.arrays["halt"], self._one, self.arrays.streams[0])
            self.arrays.events[0].synchronize()
        finally:
            self.arrays.zero("halt", 4)

    def enable_copies_from(self, other: Device) -> None:
        """Read the memory of another device directly if the hardware can; else copies go by the host."""
        if self.cuda.Device(self.index).can_access_peer(self.cuda.Device(other.index)):
            with contextlib.suppress(self.cuda.Error):  # an earlier engine has done it
                self.cuda.Context.enable_peer_access(other._context.handle)

    def copy_from(self, other: Device, name: str, target: int, source: int, size: int) -> None:
        """Launch a copy of ``size`` bytes of array ``name`` from another device, between two offsets."""
        if size:
            self.cuda.memcpy_peer_async(
                self.arrays[name] + target,
                other.arrays[name] + source,
                size,
                self._context.handle,
                other._context.handle,
            )

    def repeat(self, name: str, size: int, source: int, first: int, end: int) -> None:
        """Copy row ``source`` of an array to rows first .. end-1; rows have ``size`` bytes."""
        start, done = self.arrays[name], 1
        if first < end:
            self.cuda.memcpy_dtod_async(start + size * first, start + size * source, size)
        while done < end - first:  # the number of copied rows doubles
            copied = min(done, end - first - done)
            self.cuda.memcpy_dtod_async(start + size * (first + done), start + size * first, size * copied)
            done += copied
