"""What a device does for a search for fronts: it shortens tours under weights, and looks at what tours lead to."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.pareto.instance import FrontInstance
from pymoo_gpuaco.pareto.nd_tree import NDTree
from pymoo_gpuaco.runtime.stop import Stop

MOST_EXCHANGES = 5  # of a chain
MOST_CHILDREN = 1 << 13  # of one member that are handed back, the first in the order of its chains
MOST_ON_THE_WAY = 64  # tours that are left on the way from one weighted sum to another


class Front(NamedTuple):
    """The front and all lengths seen so far: a device hands back only tours that are new to both; k objectives."""

    #: (f, 2) the front in order, of two objectives; of more, the rows that the tree's numbers mean, (.., k)
    points: NDArray[np.float64]
    tree: NDTree  # of more than two objectives
    rank: int  # of two objectives: how many members may dominate what is handed back
    met: NDArray[np.uint64]  # keys of lengths that have been met, see `seen`


class Members(NamedTuple):
    """m tours to look at, and how."""

    tours: NDArray[np.int32]  # (m, n)
    lengths: NDArray[np.float64]  # (m, k)
    weights: NDArray[np.float64]  # (m, k) under which most chains are cut off
    slack: NDArray[np.float64]  # (m,) by how much a chain may lengthen the weighted sum, > 0
    exchanges: NDArray[np.int64]  # (m,) most exchanges of a chain
    begin: NDArray[np.int64]  # (m,) city from which chains are looked for first


class Children(NamedTuple):
    """e tours that members lead to; most are handed back in the order of members."""

    owner: NDArray[np.int32]  # (e,) member
    exchanges: NDArray[np.int32]  # (e,) of the chain
    chain: NDArray[np.int32]  # (e, ..) its cities
    lengths: NDArray[np.float64]  # (e, k)


class FrontDevice(Protocol):
    """The parts of a search for fronts that differ from device to device."""

    kind: str
    times: int  # as much as ``FrontParameters`` says in a generation, for a device that does many things side by side
    instance: FrontInstance
    stop: Stop

    def use(self, candidates: NDArray[np.int32]) -> None:
        """Look at other candidates (n, ..) from now on."""
        ...

    def descend(
        self, tours: NDArray[np.int32], weights: NDArray[np.float64], kicks: int, key: int
    ) -> NDArray[np.int32]:
        """Shorten tours (m, n), each under its weights (m, k), by so many kicks; row i depends on it and (key, i)."""
        ...

    def slide(
        self,
        tours: NDArray[np.int32],
        first: NDArray[np.float64],
        last: NDArray[np.float64],
        points: NDArray[np.float64],
    ) -> NDArray[np.int32]:
        """Return tours (e, n) on the way from tours (m, n), while weights (m, 2) go from ``first`` to ``last``.

        Each tour is shortened under the weights of the moment. Every change leaves a tour, unless one of points (f, 2)
        is as short; of one way ``MOST_ON_THE_WAY`` at most, with which it ends. They come in the order of rows.
        """
        ...

    def look(self, members: Members, front: Front) -> Children:
        """Look at the chains of members; their number and order do not depend on how work is spread.

        The flag of ``stop`` is up where it has ended early.
        """
        ...

    def follow(self, members: Members, children: Children) -> NDArray[np.int32]:
        """Return the tours (e, n) of children."""
        ...
