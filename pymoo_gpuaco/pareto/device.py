"""Protocol of a device of the Pareto search: it shortens tours under weights and explores neighbourhoods."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.pareto.instance import FrontInstance
from pymoo_gpuaco.pareto.nd_tree import NDTree
from pymoo_gpuaco.runtime.compiled import Float64_1d, Float64_2d, Int32_2d, Int64_1d, UInt64_1d, struct
from pymoo_gpuaco.runtime.stop import Stop

MOST_EXCHANGES = 5  # of a chain
MOST_CHILDREN = 1 << 13  # of one member: the first ones in the order of its chains


@struct
class Front(NamedTuple):
    """The front of k objectives and all lengths seen so far; a device returns only tours that are new to both."""

    #: for two objectives (f, 2), the front in order; for more (.., k), the points of the tree's indices
    points: Float64_2d
    tree: NDTree  # for more than two objectives
    rank: int  # for two objectives: maximum members that dominate a returned tour
    seen: UInt64_1d  # keys of the lengths seen so far, see `archive.Seen`


@struct
class Members(NamedTuple):
    """m tours to explore, with the parameters of their exploration."""

    tours: Int32_2d  # (m, n)
    lengths: Float64_2d  # (m, k)
    weights: Float64_2d  # (m, k) of the sum that limits the chains
    slack: Float64_1d  # (m,) maximum increase of the weighted sum by a chain, > 0
    exchanges: Int64_1d  # (m,) maximum exchanges of a chain
    begin: Int64_1d  # (m,) first city of the chains


class Children(NamedTuple):
    """e tours from the exploration of members, in the order of members."""

    owner: NDArray[np.int32]  # (e,) member
    exchanges: NDArray[np.int32]  # (e,) number of exchanges of the chain
    chain: NDArray[np.int32]  # (e, ..) cities of the chain
    lengths: NDArray[np.float64]  # (e, k)


class FrontDevice(Protocol):
    """Device-dependent part of the Pareto search."""

    kind: str
    times: int  # factor on the work per generation of ``FrontParameters``, above 1 for parallel devices
    instance: FrontInstance
    stop: Stop

    def use(self, candidates: NDArray[np.int32]) -> None:
        """Explore by candidates (n, ..) from now on."""

    def descend(
        self, tours: NDArray[np.int32], weights: NDArray[np.float64], kicks: int, key: int
    ) -> NDArray[np.int32]:
        """Shorten tours (m, n) under weights (m, k) by ``kicks`` each; row i depends only on its tour and (key, i)."""

    def explore(self, members: Members, front: Front) -> Children:
        """Explore the chains of members; the children do not depend on the number of threads.

        The flag of ``stop`` is raised if the exploration has ended early.
        """

    def follow(self, members: Members, children: Children) -> NDArray[np.int32]:
        """Return the tours (e, n) of children."""
