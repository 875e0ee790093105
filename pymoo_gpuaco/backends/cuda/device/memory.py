"""Device memory of one engine, owned by one object."""

from __future__ import annotations

import contextlib
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class _Array(NamedTuple):
    memory: Any  # has ``free()``
    address: int  # as an integer, which is faster in launches than PyCUDA's object
    size: int  # bytes of device memory; -1: page-locked host memory


class Arrays:
    """Named device arrays and loaded kernels. Use within an active context."""

    def __init__(self, cuda: Any) -> None:
        self._cuda = cuda
        self._held: dict[str, _Array] = {}
        self.kernels: dict[str, Any] = {}  # by name; each references its module
        self.events: list[Any] = []
        self.streams: list[Any] = []

    def allocate(self, name: str, size: int) -> None:
        """Allocate ``size`` zero bytes; no array has this name."""
        memory = self._cuda.mem_alloc(max(16, size))
        self._held[name] = _Array(memory, int(memory), size)
        self.zero(name, size)

    def size(self, name: str) -> int:
        """Return the allocated bytes of an array, or -1 if it does not exist."""
        return self._held[name].size if name in self._held else -1

    def free_array(self, name: str) -> None:
        """Free one array, if it exists."""
        if name in self._held:
            self._held.pop(name).memory.free()

    def share(self, name: str, size: int) -> NDArray[np.uint8]:
        """Allocate ``size`` bytes of page-locked host memory, which kernels write and asynchronous copies read.

        An earlier allocation of the same name is freed: no view of it may be used, and no kernel may write to it.
        """
        flags = self._cuda.host_alloc_flags.DEVICEMAP
        view: NDArray[np.uint8] = self._cuda.pagelocked_empty(size, np.uint8, mem_flags=flags)
        memory: Any = view.base
        self.free_array(name)
        self._held[name] = _Array(memory, int(memory.get_device_pointer()), -1)
        return view

    def zero(self, name: str, size: int) -> None:
        """Set the first ``size`` bytes to 0."""
        most = 1 << 31
        for first in range(0, size, most):
            self._cuda.memset_d8(self[name] + first, 0, min(most, size - first))

    def swap(self, *pairs: tuple[str, str]) -> None:
        """Swap the names, and thereby the addresses, of each pair of arrays."""
        held = self._held
        held.update({name: held[other] for pair in pairs for name, other in (pair, pair[::-1])})

    def __contains__(self, name: str) -> bool:
        return name in self._held

    def __getitem__(self, name: str) -> int:
        """Return the address, a kernel argument."""
        return self._held[name].address

    def optional(self, name: str) -> int:
        """Return the address, or 0 for a missing array."""
        return self._held[name].address if name in self._held else 0

    def free(self) -> None:
        """Wait for all kernels, then free everything.

        Errors are ignored: a failed context cannot free its memory, which is freed with the process.
        """
        for event in self.events:
            with contextlib.suppress(self._cuda.Error):
                event.synchronize()
        while self._held:
            with contextlib.suppress(self._cuda.Error):
                self._held.popitem()[1].memory.free()
        self.events.clear()
        self.streams.clear()
        self.kernels.clear()
