"""Lists of near cities on the device: candidates, and a longer list for cities without open candidates."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pymoo_gpuaco.backends.cuda.device import Device, Source
from pymoo_gpuaco.candidates.listed import ListedInstance
from pymoo_gpuaco.candidates.nearest import near_cities

# Length of the list of near cities, a multiple of 128. Longer lists avoid scans of all open cities but take longer to
# build.
NEAR, NEAR_OF_MANY, MANY = 512, 128, 8192
MOST_PLACES = 2**31 - 1  # of the padded rows of all cities: kernels index them with 32 bits


def node_bytes(n: int) -> int:
    """Return the bytes of a city's index for n cities."""
    return 2 if n < 1 << 16 else 4


def node_type(n: int) -> str:
    """Return the C type of a city's index (NODE)."""
    return "unsigned short" if node_bytes(n) == 2 else "unsigned int"


@dataclass(frozen=True)
class ListPlan:
    """Shapes of the lists of n cities with k candidates each."""

    n: int
    k: int

    @property
    def slots(self) -> int:
        """Number of candidates of a lane."""
        return -(-self.k // 32)

    @property
    def stride(self) -> int:
        """Length of a padded candidate row."""
        return 32 * self.slots

    @property
    def countable(self) -> bool:
        """True if kernels can index all rows."""
        return self.n * self.stride <= MOST_PLACES

    @property
    def near(self) -> int:
        """Length of the list of near cities."""
        return NEAR if self.n <= MANY else NEAR_OF_MANY

    def definitions(self) -> dict[str, object]:
        """Return the definitions of kernels that read padded rows."""
        return {"SLOTS": self.slots, "NODE": node_type(self.n)}


class Lists:
    """Padded candidate rows ``candidates`` (n, stride), and ``near_cities`` (n, near)."""

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
        """Pad and upload the lists."""
        device, plan = self._device, self.plan
        a = device.arrays
        node = np.uint16 if node_bytes(plan.n) == 2 else np.uint32
        device.write("near_cities", near_cities(self._instance, plan.near).astype(node))
        device.call("pad_candidates", plan.n * plan.stride, a["neighbours"], plan.n, plan.k, a["candidates"])
