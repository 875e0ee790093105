"""Lists of near cities on the device: the candidates, and what is read when all of those are visited."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pymoo_gpuaco.backends.cuda.device import Device, Source
from pymoo_gpuaco.candidates.listed import ListedInstance
from pymoo_gpuaco.candidates.near import near_cities

# Near cities that are listed beyond the candidates, a multiple of 128. A longer list saves a look at all open cities,
# and takes time to make that grows with it.
NEAR, NEAR_OF_MANY, MANY = 512, 128, 8192
MOST_PLACES = 2**31 - 1  # of the padded rows of all cities: kernels count them in 32 bits


def node_bytes(n: int) -> int:
    """Bytes of a city's number where n cities are told apart."""
    return 2 if n < 1 << 16 else 4


def node_type(n: int) -> str:
    """C type of a city's number (NODE)."""
    return "unsigned short" if node_bytes(n) == 2 else "unsigned int"


@dataclass(frozen=True)
class ListPlan:
    """Shapes of the lists of n cities with k candidates each."""

    n: int
    k: int

    @property
    def slots(self) -> int:
        """Candidates a lane of a warp."""
        return -(-self.k // 32)

    @property
    def stride(self) -> int:
        """Places of a padded candidate row."""
        return 32 * self.slots

    @property
    def countable(self) -> bool:
        """Whether kernels can count the places of all rows."""
        return self.n * self.stride <= MOST_PLACES

    @property
    def near(self) -> int:
        """Length of the list of near cities that is read when all candidates are visited."""
        return NEAR if self.n <= MANY else NEAR_OF_MANY

    def definitions(self) -> dict[str, object]:
        """What kernels that read padded rows are compiled with."""
        return {"SLOTS": self.slots, "NODE": node_type(self.n)}


class Lists:
    """``candidates`` (n, stride), the neighbours padded, and ``near_cities`` (n, near)."""

    def __init__(self, device: Device, instance: ListedInstance) -> None:
        self._device = device
        self._instance = instance
        self.plan = ListPlan(instance.n, instance.k)

    def sources(self) -> list[Source]:
        """Return the kernel of padded rows."""
        return [Source("instance/lists.cu", self.plan.definitions(), ["pad_candidates"])]

    def needed(self) -> dict[str, int]:
        """Return the bytes of every array."""
        plan, each = self.plan, node_bytes(self.plan.n)
        return {"candidates": each * plan.n * plan.stride, "near_cities": each * plan.n * plan.near}

    def prepare(self) -> None:
        """Pad and upload."""
        device, plan = self._device, self.plan
        a = device.arrays
        node = np.uint16 if node_bytes(plan.n) == 2 else np.uint32
        device.write("near_cities", near_cities(self._instance, plan.near).astype(node))
        device.call("pad_candidates", plan.n * plan.stride, a["neighbours"], plan.n, plan.k, a["candidates"])
