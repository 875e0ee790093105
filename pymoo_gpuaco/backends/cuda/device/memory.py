"""Device memory of one engine, owned by one object."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
from numpy.typing import NDArray


class Shared:
    """Page-locked host memory, which kernels write and asynchronous copies read."""

    def __init__(self, cuda: Any, size: int) -> None:
        flags = cuda.host_alloc_flags.DEVICEMAP
        self.bytes = cuda.pagelocked_empty(size, np.uint8, mem_flags=flags)

    def __int__(self) -> int:
        return int(self.bytes.base.get_device_pointer())

    def free(self) -> None:
        """Free the memory; ``bytes`` must not be used afterwards."""
        self.bytes.base.free()


class Arrays:
    """Named device arrays and loaded kernels. Use within an active context."""

    def __init__(self, cuda: Any) -> None:
        self._cuda = cuda
        self._held: dict[str, Any] = {}
        self._sizes: dict[str, int] = {}  # bytes of device memory
        self.modules: dict[str, Any] = {}
        self.kernels: dict[str, Any] = {}  # by name; each references its module
        self.events: list[Any] = []
        self.streams: list[Any] = []

    def allocate(self, name: str, size: int) -> Any:
        """Allocate ``size`` zero bytes; no array has this name."""
        self._held[name] = self._cuda.mem_alloc(max(16, size))
        self._sizes[name] = size
        self.zero(name, size)
        return self._held[name]

    def size(self, name: str) -> int:
        """Return the allocated bytes of an array, or -1 if it does not exist."""
        return self._sizes.get(name, -1)

    def give_back(self, name: str) -> None:
        """Free one array, if it exists."""
        if name in self._held:
            self._sizes.pop(name, None)
            self._held.pop(name).free()

    def share(self, name: str, size: int) -> NDArray[np.uint8]:
        """Allocate ``size`` bytes of host memory for kernels, and free an earlier allocation of the same name.

        Afterwards no view of the earlier one may be used, and no kernel may write to it.
        """
        shared = Shared(self._cuda, size)
        self.give_back(name)
        self._held[name] = shared
        return shared.bytes

    def zero(self, name: str, size: int) -> None:
        """Set the first ``size`` bytes to 0."""
        start, most = int(self._held[name]), 1 << 31
        for first in range(0, size, most):
            self._cuda.memset_d8(start + first, 0, min(most, size - first))

    def swap(self, *pairs: tuple[str, str]) -> None:
        """Swap the names of each pair of arrays."""
        for table in (self._held, self._sizes):
            table.update({name: table[other] for pair in pairs for name, other in (pair, pair[::-1])})

    def __contains__(self, name: str) -> bool:
        return name in self._held

    def __getitem__(self, name: str) -> Any:
        """Return the allocation, a kernel argument."""
        return self._held[name]

    def address(self, name: str) -> int:
        """Return the address as an integer, which is faster in launches. ``swap`` exchanges addresses."""
        return int(self[name])

    def optional(self, name: str) -> int:
        """Return the address, or 0 for a missing array."""
        return int(self._held[name]) if name in self._held else 0

    def free(self) -> None:
        """Wait for all kernels, then free everything.

        Errors are ignored: a failed context cannot free its memory, which is freed with the process.
        """
        for event in self.events:
            with contextlib.suppress(self._cuda.Error):
                event.synchronize()
        self._sizes.clear()
        while self._held:
            with contextlib.suppress(self._cuda.Error):
                self._held.popitem()[1].free()
        self.events.clear()
        self.streams.clear()
        self.kernels.clear()
        self.modules.clear()
