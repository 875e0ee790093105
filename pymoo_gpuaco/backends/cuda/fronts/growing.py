"""Device arrays of the host's, as large as the largest so far."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from pymoo_gpuaco.backends.cuda.device import Device


class GrowingArrays:
    """Arrays by name, whose sizes change from call to call."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._rooms: dict[str, int] = {}

    def make_room(self, name: str, size: int) -> Any:
        """Return an array of at least ``size`` bytes; what was in it may be lost."""
        if size > self._rooms.get(name, -1):
            self._rooms.pop(name, None)
            room = size + size // 2
            self._device.take({name: room})
            self._rooms[name] = room
        return self._device.arrays[name]

    def put(self, name: str, array: NDArray[Any]) -> Any:
        """Copy an array of the host to the device; return where it is."""
        self.make_room(name, array.nbytes)
        self._device.write(name, array)
        return self._device.arrays[name]
