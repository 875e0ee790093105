"""The engine of multi-objective search on all cores."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.backends.cpu.pareto.chains import Walker, make_walker
from pymoo_gpuaco.backends.cpu.pareto.descent import WorkQueue, descend, make_way, make_work_queue, slide
from pymoo_gpuaco.backends.cpu.pareto.look import Finds, follow, look, make_finds
from pymoo_gpuaco.pareto.costs import make_costs
from pymoo_gpuaco.pareto.device import MOST_CHILDREN, MOST_ON_THE_WAY, Children, Front, Members
from pymoo_gpuaco.pareto.instance import FrontInstance
from pymoo_gpuaco.runtime.philox import STREAM_KICKS, new_streams
from pymoo_gpuaco.runtime.stop import Stop
from pymoo_gpuaco.runtime.threads import thread_count

_MOST_FOR_WEIGHTED = 500  # cities up to which weighted costs of all edges are computed for every tour


class CpuFronts:
    """``FrontDevice`` on all cores."""

    kind: str = "cpu"
    times = 1

    def __init__(self, instance: FrontInstance) -> None:
        self.instance = instance
        self.stop = Stop()
        self._costs = instance.costs
        self._threads = thread_count()
        self._workspaces: list[tuple[Walker, WorkQueue, Finds]] = []

    def use(self, candidates: NDArray[np.int32]) -> None:
        """Replace the candidates (n, ..)."""
        self._costs = make_costs(self.instance.parts, candidates, self.instance.costs.table)
        self._workspaces = []

    def _allocate_workspaces(self, threads: int) -> None:
        """Allocate workspaces for threads."""
        n, c, k = self._costs.near.shape
        while len(self._workspaces) < threads:
            walker = make_walker(n, k, c, n <= _MOST_FOR_WEIGHTED)
            self._workspaces.append((walker, make_work_queue(n), make_finds(MOST_CHILDREN, k)))

    def _share(self, work: Callable[[int, Iterator[int]], None], items: int) -> None:
        """Call ``work(thread, numbers)`` on all threads, see ``Stop.share``."""
        self._allocate_workspaces(self._threads)
        self.stop.share(work, items, self._threads)

    def descend(
        self, tours: NDArray[np.int32], weights: NDArray[np.float64], kicks: int, key: int
    ) -> NDArray[np.int32]:
        """Return tours (m, n) improved by ``kicks`` kicks, each under its weights (m, k)."""
        found = np.array(tours, np.int32)
        streams = new_streams(np.uint64(key), len(found), STREAM_KICKS)

        def work(thread: int, rows: Iterator[int]) -> None:
            walker, work_queue, _ = self._workspaces[thread]
            for i in rows:
                descend(
                    self._costs, walker, work_queue, weights, found, kicks, streams, i, i + 1, self.stop.flag
                )

        self._share(work, len(found))
        return found

    def slide(
        self,
        tours: NDArray[np.int32],
        first: NDArray[np.float64],
        last: NDArray[np.float64],
        points: NDArray[np.float64],
    ) -> NDArray[np.int32]:
        """Return tours (e, n) found from tours (m, n) while weights (m, 2) change from ``first`` to ``last``."""
        parts: dict[int, NDArray[np.int32]] = {}

        def work(thread: int, rows: Iterator[int]) -> None:
            walker, work_queue, _ = self._workspaces[thread]
            way = make_way(MOST_ON_THE_WAY, self.instance.n, self.instance.k)
            for i in rows:
                left = slide(
                    self._costs, walker, work_queue, way, tours[i], first[i], last[i], points, self.stop.flag
                )
                parts[i] = way.tours[:left].copy()

        self._share(work, len(tours))
        return np.concatenate([np.empty((0, self.instance.n), np.int32), *(parts[i] for i in sorted(parts))])

    def explore(self, members: Members, front: Front) -> Children:
        """Return the children of members."""
        parts: dict[int, Children] = {}

        def work(thread: int, rows: Iterator[int]) -> None:
            walker, _, finds = self._workspaces[thread]
            way = np.empty(len(front.tree.held), np.int32)
            for i in rows:
                look(self._costs, walker, members, front, self.instance.unit, finds, way, i, self.stop.flag)
                parts[i] = _taken(finds, i)

        self._share(work, len(members.tours))
        found = [parts[i] for i in sorted(parts)] or [_taken(make_finds(1, self.instance.k), 0)]
        return Children(*(np.concatenate(arrays) for arrays in zip(*found, strict=True)))

    def follow(self, members: Members, children: Children) -> NDArray[np.int32]:
        """Return the tours (e, n) of children."""
        tours = np.empty((len(children.owner), self.instance.n), np.int32)
        self._allocate_workspaces(1)
        follow(self._workspaces[0][0], members.tours, *children[:3], tours, 0, len(tours))
        return tours


def _taken(finds: Finds, member: int) -> Children:
    """Return copies of the children found."""
    e = int(finds.found[0])
    owner = np.full(e, member, np.int32)
    return Children(owner, finds.exchanges[:e].copy(), finds.chain[:e].copy(), finds.lengths[:e].copy())
