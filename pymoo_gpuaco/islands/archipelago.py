"""The engine of ``Islands`` for one objective: islands exchange tours, and the best of all is merged from theirs."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pymoo_gpuaco import checks
from pymoo_gpuaco.colony import immigrants
from pymoo_gpuaco.host.state import State
from pymoo_gpuaco.islands import topology
from pymoo_gpuaco.islands.best import BestTour
from pymoo_gpuaco.islands.leader import Leader, Rules
from pymoo_gpuaco.islands.member import Member, Tour
from pymoo_gpuaco.islands.messages import Report, Task
from pymoo_gpuaco.islands.state import exported, restored
from pymoo_gpuaco.problems.instance import Instance


class Archipelago(Leader):
    """Engine of ``Islands`` for one objective: a construction collects reports of some islands, or in lock step of all.

    Parameters
    ----------
    instance : distances, for lengths and merging.
    colony : pickled (colony, problem), to be sent to workers.
    rules : validated.
    n_islands : >= 1, or None for one a worker.

    Raises
    ------
    ConnectionError : by ``construct``, when the scheduler is gone.
    """

    def __init__(self, instance: Instance, colony: bytes, rules: Rules, n_islands: int | None) -> None:
        super().__init__(instance.n, colony, rules, n_islands)
        self.instance = instance
        self.best = BestTour(instance)

    @property
    def _has_tour(self) -> bool:
        return self.best.tour is not None

    def _prepare(self) -> None:
        self.best.prepare()

    def construct(self) -> NDArray[np.float64]:
        """Wait for reports; return the length (1,) of the best tour so far. Raises what ``collect`` does."""
        self.collect()
        assert self.best.tour is not None
        return np.array([self.instance.tour_length(self.best.tour.cities)])

    def _load(self, member: Member, task: Task) -> None:
        migrants, member.migrants = member.migrants, []
        task["mates"] = topology.mates(self.rules.topology, member, self.members, self.instance.n)
        tour = topology.incoming(self.rules.topology, member, self.members, self.best.tour)
        if tour is not None:
            member.last_sent = tour.cities
            migrants.append(tour)
        task["migrants"] = [migrant.as_migrant() for migrant in migrants]

    def _note(self, report: Report) -> None:
        super()._note(report)
        assert report["cities"] is not None
        rows = checks.permutations("the tour that has come", report["cities"][None], self.instance.n)
        self.members[report["island"]].best = Tour(rows[0].astype(np.int32), report["value"])

    def _offer(self, report: Report) -> None:
        """Merge the island's tour into the best one, which the other islands are sent."""
        if report["other_objective"] and not self.best.by_objective:
            self.best.judge_by_objective(one.best for one in self.members if one.best is not None)
        tour = self.members[report["island"]].best
        assert tour is not None
        self.best.offer(tour)

    # ---- what an algorithm asks its engine

    def tours(self, ants: ArrayLike) -> NDArray[np.int32]:
        """Copy the best tour for each of ``ants``, which are all 0."""
        assert self.best.tour is not None
        return self.best.tour.cities[None][np.asarray(ants, dtype=np.intp)]

    def accept(self, tours: ArrayLike, values: ArrayLike) -> None:
        """Send tours (m, n) to the islands, the best to all and the others to one each; see ``Accepts``."""
        rows = immigrants.in_order(tours, values, self.instance.n)
        ordered = np.sort(np.asarray(values, np.float64))
        given = [Tour(row, float(value)) for row, value in zip(rows, ordered, strict=True)]
        for tour in given:
            self.best.offer(tour)
        for member in self.members:
            member.migrants += [
                tour for i, tour in enumerate(given) if i % self.n_islands == member.number or i == 0
            ]

    def rescued(self) -> tuple[NDArray[np.int32], float] | None:
        """The best tour that has come and its length, see ``Stoppable``."""
        if self.best.tour is None:
            return None
        cities = self.best.tour.cities
        return cities.copy(), self.instance.tour_length(cities)

    def export_state(self) -> State:
        """Export the islands after their last rounds: tours and, in lock step, their whole states."""
        return exported(self._key, self.best, self.members, whole=self.rules.deterministic)

    def import_state(self, state: State) -> None:
        """Continue from an exported state of as many islands on the same instance; before ``open``."""
        self._key = restored(state, self.best, self.members)
