"""A stand-in for pycuda.driver on machines without a GPU: memory is real, kernels do nothing.

It sees what the engines tell a driver: every kernel that is launched exists in its source, gets the arguments that it
takes, and addresses that are null or in memory that was taken; every definition is one that the source reads.

And it fails on demand: ``refuse`` names the allocation for which there is no memory, ``fail`` the launch that fails.
"""

from __future__ import annotations

import ctypes
import functools
import json
import re
import struct
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

from pymoo_gpuaco.backends.cuda.device import compile as compiler
from pymoo_gpuaco.backends.cuda.device import context, sources
from pymoo_gpuaco.backends.cuda.device.sources import parameters as read_parameters

MEMORY = 4 << 30
LIMITS = {
    "MULTIPROCESSOR_COUNT": 132,
    "MAX_THREADS_PER_MULTIPROCESSOR": 2048,
    "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN": 232_448,
    "MAX_REGISTERS_PER_MULTIPROCESSOR": 1 << 16,
    "MAX_SHARED_MEMORY_PER_MULTIPROCESSOR": 228 << 10,
}


class Allocation(int):
    """An address, and the memory there."""

    memory: np.ndarray
    owner: FakeDriver

    def free(self) -> None:
        del self.owner.taken[int(self)]


class Pagelocked:
    """Memory behind an array of page-locked memory."""

    written = False  # by a kernel that no call has waited for

    def __init__(self, memory: Allocation, size: int) -> None:
        self._memory = memory
        self.__array_interface__ = {
            "data": (int(memory), False),
            "shape": (size,),
            "typestr": "|u1",
            "version": 3,
        }

    def get_device_pointer(self) -> int:
        return int(self._memory)

    def free(self) -> None:
        assert not self.written or self._memory.owner.broken
        del self._memory.owner.shared[int(self._memory)]
        self._memory.free()


class Handle:
    """An event or a stream. PyCUDA gives it up in its context or, where that is not current, hangs in other threads."""

    def __init__(self, driver: FakeDriver, **calls: Callable[[], Any]) -> None:
        self._driver = driver
        self.__dict__.update(calls)

    def __del__(self) -> None:
        self._driver.given_up_outside += not self._driver.current


class PrimaryContext:
    """Result of ``retain_primary_context``."""

    def __init__(self, driver: FakeDriver, index: int = 0) -> None:
        self._driver = driver
        self._index = index
        self.depth = 0

    def push(self) -> None:
        self.depth += 1
        self._driver.current.append(self._index)

    def pop(self) -> None:
        self.depth -= 1
        assert self.depth >= 0
        assert self._driver.current.pop() == self._index

    def synchronize(self) -> None:
        self._driver.alive()


class FakeDevice:
    """One of the devices."""

    def __init__(self, driver: FakeDriver, index: int) -> None:
        self.retain_primary_context = lambda: driver.contexts[index]
        self.get_attribute = driver.limits.__getitem__
        self.can_access_peer = lambda other: True

    def compute_capability(self) -> tuple[int, int]:
        return 9, 0


class Devices:
    """``pycuda.driver.Device``: as many as the driver has, all alike."""

    def __init__(self, driver: FakeDriver) -> None:
        self._driver = driver

    def count(self) -> int:
        return len(self._driver.contexts)

    def __call__(self, index: int) -> FakeDevice:
        return FakeDevice(self._driver, index)


class FakeDriver:
    """The part of pycuda.driver that the engines use."""

    Error = type("Error", (Exception,), {})
    MemoryError = type("MemoryError", (Error,), {})
    LaunchError = type("LaunchError", (Error,), {})
    limits = LIMITS

    def __init__(self) -> None:
        self.contexts = [PrimaryContext(self)]  # one a device
        self.current: list[int] = []  # devices whose contexts are pushed
        self.broken_devices: set[int] = set()  # those on which every call fails
        self.Device = Devices(self)
        self.allocations = 0  # so far: of memory, events, streams and modules
        self.refuse: int | None = None  # the allocation, counted from 0, that does not fit
        self.launches = 0  # so far
        self.fail: int | None = None  # the launch, counted from 0, that fails
        self.fails_for_good = False  # whether the context is of no use from then on
        self.broken = False
        self.given_up_outside = 0  # events and streams, while the context was not current
        self.on_wait: Callable[[], None] = lambda: None  # called where the host waits for the device
        self.taken: dict[int, np.ndarray] = {}
        self.shared: dict[int, Pagelocked] = {}
        self.compiled: list[tuple[str, dict[str, object]]] = []
        self.loaded: list[tuple[str, dict[str, object], str]] = []  # files, definitions, kernels
        self.launched: set[str] = set()
        names = SimpleNamespace(**{name: name for name in self.limits})
        self.device_attribute = names
        self.function_attribute = SimpleNamespace(
            MAX_DYNAMIC_SHARED_SIZE_BYTES="MAX_DYNAMIC_SHARED_SIZE_BYTES"
        )
        self.host_alloc_flags = SimpleNamespace(DEVICEMAP=2)
        self.event_flags = SimpleNamespace(DISABLE_TIMING=2)
        self.Context = SimpleNamespace(
            get_current=lambda: self.contexts[self.current[-1]] if self.current else None,
            pop=lambda: self.contexts[self.current[-1]].pop(),
            enable_peer_access=self.enable_peer_access,
        )
        self.peers: set[tuple[int, int]] = set()  # devices, and those whose memory they access

    @property
    def primary(self) -> PrimaryContext:
        """The context of the first device."""
        return self.contexts[0]

    def add_devices(self, count: int) -> None:
        """Replace the devices by ``count`` new ones."""
        self.contexts = [PrimaryContext(self, index) for index in range(count)]

    def enable_peer_access(self, context: PrimaryContext) -> None:
        self.alive()
        pair = self.current[-1], self.contexts.index(context)
        if pair in self.peers:
            raise self.Error("cuCtxEnablePeerAccess failed: peer access is already enabled")
        self.peers.add(pair)

    def alive(self) -> None:
        """Fail as every call of a driver does once a kernel has failed for good."""
        if self.broken or self.broken_devices.intersection(self.current[-1:]):
            raise self.LaunchError("cuCtxSynchronize failed: an illegal memory access was encountered")

    def take(self) -> None:
        """Count an allocation, and refuse the one that was asked for."""
        self.alive()
        self.allocations += 1
        if self.allocations - 1 == self.refuse:
            raise self.MemoryError("cuMemAlloc failed: out of memory")

    def launch(self) -> None:
        """Count a launch, and let the one that was asked for fail: at once, or as soon as somebody waits for it."""
        self.alive()
        self.launches += 1
        if self.launches - 1 == self.fail:
            self.broken = self.fails_for_good
            if not self.broken:
                raise self.LaunchError("cuLaunchKernel failed: too many resources requested for launch")

    def mem_get_info(self) -> tuple[int, int]:
        return MEMORY - sum(memory.nbytes for memory in [*self.taken.values()]), MEMORY

    def mem_alloc(self, size: int) -> Allocation:
        self.take()
        memory = np.zeros(size + 256, np.uint8)
        address = Allocation(memory.ctypes.data + -memory.ctypes.data % 256)
        address.memory, address.owner = memory, self
        self.taken[int(address)] = np.lib.stride_tricks.as_strided(memory, (size,), (1,))
        return address

    def pagelocked_empty(self, size: int, kind: type, mem_flags: int) -> np.ndarray:
        assert kind is np.uint8
        assert mem_flags == self.host_alloc_flags.DEVICEMAP
        memory = self.mem_alloc(size)
        self.shared[int(memory)] = Pagelocked(memory, size)
        return np.asarray(self.shared[int(memory)])

    def Event(self, flags: int) -> Any:
        assert flags == self.event_flags.DISABLE_TIMING
        self.take()
        return Handle(self, record=lambda: None, query=self._query, synchronize=self._wait)

    def Stream(self, flags: int) -> Any:
        assert flags == 1  # CU_STREAM_NON_BLOCKING
        self.take()
        return Handle(self)

    def memcpy_htod_async(self, target: Any, source: np.ndarray, stream: Any) -> None:
        assert any(start == source.ctypes.data for start in self.shared), (
            "the host's memory is not page-locked"
        )
        self.memcpy_htod(target, source)

    def _query(self) -> bool:
        self._wait()
        return True

    def _wait(self) -> None:
        self.on_wait()
        self.alive()
        for memory in self.shared.values():
            memory.written = False

    def check(self, address: int, size: int = 1) -> None:
        """Fail unless the bytes lie in memory that was taken."""
        for start, memory in self.taken.items():
            if start <= address and address + size <= start + memory.nbytes:
                return
        raise AssertionError(f"{size} bytes at an address that was not taken")

    def memcpy_htod(self, target: Any, source: np.ndarray) -> None:
        assert source.flags.c_contiguous
        self.alive()
        self.check(int(target), source.nbytes)
        ctypes.memmove(int(target), source.ctypes.data, source.nbytes)

    def memcpy_dtoh(self, target: np.ndarray, source: Any) -> None:
        assert target.flags.c_contiguous
        self.alive()
        self.check(int(source), target.nbytes)
        ctypes.memmove(target.ctypes.data, int(source), target.nbytes)

    def memcpy_dtod_async(self, target: Any, source: Any, size: int) -> None:
        self.check(int(target), size)
        self.check(int(source), size)
        ctypes.memmove(int(target), int(source), size)

    def memcpy_peer_async(
        self, target: Any, source: Any, size: int, target_context: Any, source_context: Any
    ) -> None:
        assert target_context is self.contexts[self.current[-1]]
        assert source_context in self.contexts
        self.memcpy_dtod_async(target, source, size)

    def memset_d8(self, start: Any, value: int, size: int) -> None:
        self.check(int(start), size)
        ctypes.memset(int(start), value, size)

    def module_from_buffer(self, code: bytes) -> Any:
        self.take()
        file, definitions = json.loads(code)
        return SimpleNamespace(get_function=lambda name: self.load(file, definitions, name))

    def load(self, file: str, definitions: dict[str, object], name: str) -> FakeKernel:
        return FakeKernel(self, file, definitions, name)


class FakeKernel:
    """A kernel that only looks at how it is launched."""

    num_regs = 64
    shared_size_bytes = 0

    def __init__(self, driver: FakeDriver, file: str, definitions: dict[str, object], name: str) -> None:
        self._driver, self._name = driver, name
        self._takes = sources.parameters(file, [name])[name]
        driver.loaded.append((file, definitions, name))
        self._shared = 48 << 10

    def prepare(self, types: str) -> None:
        assert types == self._takes, f"{self._name} takes {self._takes}, prepared with {types}"

    def set_attribute(self, attribute: str, value: int) -> None:
        assert attribute == "MAX_DYNAMIC_SHARED_SIZE_BYTES"
        assert value <= self._driver.limits["MAX_SHARED_MEMORY_PER_BLOCK_OPTIN"]
        self._shared = value

    def prepared_call(self, grid: tuple, block: tuple, *arguments: Any, shared_size: int = 0) -> None:
        # fails as PyCUDA does: numbers must be integers where these are taken
        struct.pack(self._takes, *arguments)
        assert min(*grid, *block) >= 1
        assert block[0] <= 1024
        assert shared_size <= self._shared, (
            f"{self._name}: {shared_size} bytes of shared memory were not allowed"
        )
        for letter, argument in zip(self._takes, arguments, strict=True):
            if letter == "P" and int(argument):
                self._driver.check(int(argument))
                if int(argument) in self._driver.shared:
                    self._driver.shared[int(argument)].written = True
        self._driver.launched.add(self._name)
        self._driver.launch()


@functools.cache
def _words(file: str) -> frozenset[str]:
    """The words of a source and of all that it includes."""
    return frozenset(re.findall(r"\w+", sources.with_includes(file).decode()))


@functools.cache
def _asked(file: str) -> frozenset[str]:
    """The names that a source asks for in #if and defines nowhere."""
    text = sources.with_includes(file).decode()
    conditions = " ".join(re.findall(r"^#(?:el)?if (.*)", text, re.MULTILINE))
    own = {*re.findall(r"^#define (\w+)", text, re.MULTILINE), "__CUDA_ARCH__"}
    return frozenset(re.findall(r"[A-Z_]\w+", conditions)) - own


@functools.cache
def _parameters(file: str, kernels: tuple[str, ...]) -> dict[str, str]:
    """``sources.parameters``, once: hundreds of engines are made of the same sources."""
    return read_parameters(file, kernels)


def install(monkeypatch: Any, driver: Any = None) -> Any:
    """Make the CUDA engines use ``driver``: unless one is given, a device whose kernels do nothing."""
    driver = FakeDriver() if driver is None else driver

    def compile_files(architecture: str, wanted: dict[str, dict[str, object]]) -> dict[str, bytes]:
        for file, definitions in wanted.items():
            unread = sorted(definitions.keys() - _words(file))
            assert not unread, f"{file} does not read {unread}"
            undefined = sorted(_asked(file) - definitions.keys())
            assert not undefined, f"{file} asks for {undefined}, which are not defined"
            driver.compiled.append((file, dict(definitions)))
        return {file: json.dumps([file, definitions]).encode() for file, definitions in wanted.items()}

    monkeypatch.setattr(
        sources,
        "parameters",
        lambda file, kernels: _parameters(file, tuple(kernels)),
    )
    monkeypatch.setattr(context, "_start", lambda: driver)
    monkeypatch.setattr(context, "_contexts", {})
    monkeypatch.setattr(context, "_lost", {})
    monkeypatch.setattr(context, "_create", lambda index: None)
    monkeypatch.setattr(compiler, "compile_files", compile_files)
    return driver
