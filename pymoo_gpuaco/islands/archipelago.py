"""The engine of ``Islands``: it collects the islands' reports and sends each island its next round."""

from __future__ import annotations

import math
import time
import uuid
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pymoo_gpuaco import checks
from pymoo_gpuaco.colony import immigrants
from pymoo_gpuaco.host.state import State
from pymoo_gpuaco.islands import topology
from pymoo_gpuaco.islands.best import BestTour
from pymoo_gpuaco.islands.clock import Clock
from pymoo_gpuaco.islands.cluster import PATIENCE, Cluster
from pymoo_gpuaco.islands.member import Member, Tour
from pymoo_gpuaco.islands.messages import Report, Task
from pymoo_gpuaco.islands.rounds import Rounds
from pymoo_gpuaco.islands.state import exported, restored
from pymoo_gpuaco.problems.instance import Instance
from pymoo_gpuaco.search.meeting import Meeting

WAITING = 0.3  # share of the time left that an island waits for others at most


@dataclass(frozen=True)
class Rules:
    """How islands exchange tours, see ``Islands``."""

    exchange_every: float
    topology: str
    deterministic: bool

    @property
    def generations(self) -> int | None:
        """Of a round, where islands wait for each other."""
        return int(self.exchange_every) if self.deterministic else None


class Archipelago:
    """Engine of ``Islands``: a construction collects reports of some islands, or in lock step of all.

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
        self.instance = instance
        self.rules = rules
        self.members = [Member(number) for number in range(n_islands or 0)]
        self.best = BestTour(instance)
        self.clock = Clock(rules.generations)
        self.kind: str = "cpu"
        self.patience = 0  # of a colony, in its tours
        self.mean = math.nan  # of the objectives of the islands that reported last
        self.busy = 0.0  # seconds that the islands have spent in rounds, together
        self.target: float | None = None  # objective at which a round ends
        self._colony = colony
        self._run = uuid.uuid4().hex
        self._rounds: Rounds | None = None  # while there is a cluster to search on
        self._key = 0  # of the run's random numbers
        self._built = 0
        self._interrupted = False

    @property
    def n_islands(self) -> int:
        """Number of islands; 0 while it is not known how many workers there are."""
        return len(self.members)

    @property
    def values(self) -> list[float]:
        """Objective of each island's best tour, as last reported."""
        return [member.value for member in self.members]

    # ---- the cluster

    @property
    def is_open(self) -> bool:
        """Whether there is a cluster to search on."""
        return self._rounds is not None

    def open(self, cluster: Cluster) -> None:
        """Prepare the islands on a cluster, so that compiling and building take no time from the search."""
        self.members = self.members or [Member(number) for number in range(len(cluster.workers))]
        rounds = self._rounds = Rounds(cluster, self.members, self._colony, self._run)
        try:
            for member in self.members:
                rounds.send(member, self._task(member, 0))
            self.best.prepare()
            while rounds.are_underway:
                self._check_hope(rounds)
                for report in rounds.wait(None):
                    self._note_engine(report)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Leave the cluster: end running rounds, and close the processes started for this run."""
        rounds, self._rounds = self._rounds, None
        if rounds is not None:
            rounds.close()

    # ---- one generation

    def begin(self, key: int) -> None:
        """Begin a run, whose random numbers follow from ``key`` in [0, 2**64)."""
        self._key = key

    def expect(self, progress: float, rounds: int, seconds: float) -> None:
        """Set the progress of the run, see ``Clock.expect``."""
        self.clock.expect(progress, rounds, seconds)

    def stop_at(self, moment: float | None) -> None:
        """End constructions soon after ``time.monotonic()`` shows ``moment``; None sets no limit."""
        self.clock.end = moment

    def construct(self) -> NDArray[np.float64]:
        """Wait for reports; return the length (1,) of the best tour so far.

        Raises ConnectionError if the scheduler is gone. It does so, too, if no island is left to report while there is
        no tour yet or no time limit. Raises the error of an island that has failed several times in a row.
        """
        assert self._rounds is not None
        self._interrupted = True
        self._built = 0
        if self.rules.deterministic:
            reports = self._lock_step(self._rounds)
        else:
            reports = self._as_they_come(self._rounds)
        if reports:
            self.mean = float(np.mean([report["value"] for report in reports]))
        self._interrupted = False
        assert self.best.tour is not None
        return np.array([self.instance.tour_length(self.best.tour.cities)])

    def _lock_step(self, rounds: Rounds) -> list[Report]:
        """Run one round of every island; their tours are merged in the order of the islands."""
        self._send_idle(rounds)
        reports: list[Report] = []
        while rounds.are_underway and not self._is_late(rounds):
            reports += rounds.wait(self._latest)
        reports.sort(key=lambda one: one["island"])
        for report in reports:
            self._note(report)
            self._offer(report)
        return reports

    def _as_they_come(self, rounds: Rounds) -> list[Report]:
        """Collect the rounds that have ended, at least one; their islands continue at once."""
        reports: list[Report] = []
        while not self._is_late(rounds):
            if self._has_time:
                self._send_idle(rounds)
            if reports and self._has_time and not rounds.has_ended:
                break
            if not rounds.are_underway:  # there is no time for another round
                assert self.clock.end is not None
                time.sleep(max(0.0, self.clock.end - time.monotonic()))
                break
            for report in rounds.wait(self._next_moment()):
                self._note(report)
                member = self.members[report["island"]]
                if self.best.tour is not None and self._has_time and self._may_go_on(member):
                    # merging may take a while: the island goes on with what the others had before
                    self._send_next(rounds, member)
                self._offer(report)
                reports.append(report)
        return reports

    # a run returns a tour, however long the first takes: until then there is no time limit

    @property
    def _has_time(self) -> bool:
        return self.best.tour is None or self.clock.has_time

    @property
    def _latest(self) -> float | None:
        return None if self.best.tour is None else self.clock.latest

    def _next_moment(self) -> float | None:
        """When no report is awaited any more, or an island has waited long enough for others."""
        moments = [one.waits_until for one in self.members if one.order is None and not self._may_go_on(one)]
        if self._latest is not None:
            moments.append(self._latest)
        return min(moments, default=None)

    def _is_late(self, rounds: Rounds) -> bool:
        self._check_hope(rounds)
        return self._latest is not None and time.monotonic() >= self._latest

    def _check_hope(self, rounds: Rounds) -> None:
        """Raise ConnectionError where waiting would never end, or end without a tour."""
        has_tour, end = self.best.tour is not None, self.clock.end
        if has_tour and end is not None:
            return  # the run ends then, with its best tour
        why = rounds.cluster.why_hopeless
        if why is not None:
            raise ConnectionError(why)
        if has_tour or rounds.without_workers == 0.0:
            return
        if end is not None and time.monotonic() >= end:
            raise ConnectionError("the time is over, and there was no worker to build a tour")
        if end is None and rounds.without_workers > PATIENCE:
            raise ConnectionError(f"there has been no worker for {PATIENCE} s, and there is no tour yet")

    # ---- what islands do next

    def _send_idle(self, rounds: Rounds) -> None:
        for member in self.members:
            if member.order is None and self._may_go_on(member):
                self._send_next(rounds, member)

    def _may_go_on(self, member: Member) -> bool:
        """Whether an island waits for no other: all that it meets are as far, or it has waited long enough."""
        if self.rules.deterministic or member.meeting not in (Meeting.FIRST, Meeting.LAST):
            return True
        givers = topology.givers(self.rules.topology, member, self.members)
        are_there = all(giver.meeting is None or giver.meeting >= member.meeting for giver in givers)
        return are_there or time.monotonic() >= member.waits_until

    def _patience_of(self, report: Report) -> float:
        """Seconds that an island waits for others: as long as its round was, in the time that is left for its work."""
        patience = max(self.rules.exchange_every, report["seconds"])
        left = self.clock.left
        return patience if left is None else min(patience, WAITING * left)

    def _send_next(self, rounds: Rounds, member: Member) -> None:
        """Send the next round with its migrants; first move the island if its worker is crowded."""
        if rounds.is_crowded(member) and member.state is not None:
            rounds.move(member)
        member.is_moving = rounds.is_crowded(member)  # its state comes with the report of this round
        task = self._task(member, self.rules.generations)
        migrants, member.migrants = member.migrants, []
        task["mates"] = topology.mates(self.rules.topology, member, self.members, self.instance.n)
        tour = topology.incoming(self.rules.topology, member, self.members, self.best.tour)
        if tour is not None:
            member.last_sent = tour.cities
            migrants.append(tour)
        task["migrants"] = [migrant.as_migrant() for migrant in migrants]
        rounds.send(member, task)

    def _task(self, member: Member, generations: int | None) -> Task:
        return {
            "key": self._key,
            "stream": None,
            "migrants": [],
            "shares": self.rules.topology != "none" and self.n_islands > 1,
            "mates": np.empty((0, self.instance.n), np.int32),
            "generations": generations,
            "seconds": None if self.rules.deterministic else self.rules.exchange_every,
            "left": self.clock.left,
            "progress": self.clock.progress,
            "pace": self.clock.pace,
            "target": self.target,
            "export": self.rules.deterministic or member.is_moving,
        }

    # ---- what islands report

    def _note_engine(self, report: Report) -> None:
        self.kind, self.patience = report["kind"], report["patience"]
        member = self.members[report["island"]]
        member.meeting = report["meeting"]
        if report["members"] is not None:
            rows = checks.permutations("the tours that have come", report["members"], self.instance.n)
            member.members = rows.astype(np.int32)
        elif not member.meeting:  # it anneals, again or still
            member.members = None

    def _note(self, report: Report) -> None:
        """Record the report of an island."""
        self._note_engine(report)
        member = self.members[report["island"]]
        assert report["cities"] is not None
        rows = checks.permutations("the tour that has come", report["cities"][None], self.instance.n)
        member.best = Tour(rows[0].astype(np.int32), report["value"])
        member.state = report["state"]
        member.round += 1
        self._built += report["built"]
        member.waits_until = time.monotonic() + self._patience_of(report)
        self.busy += report["seconds"]

    def _offer(self, report: Report) -> None:
        """Merge the island's tour into the best one, which the other islands are sent."""
        if report["other_objective"] and not self.best.by_objective:
            self.best.judge_by_objective(one.best for one in self.members if one.best is not None)
        tour = self.members[report["island"]].best
        assert tour is not None
        self.best.offer(tour)

    # ---- what an algorithm asks its engine

    @property
    def n_built(self) -> int:
        """Tours that the islands have built in the rounds of the last construction."""
        return self._built

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
        """Return the best tour and its length if the last ``construct`` was interrupted."""
        if not self._interrupted or self.best.tour is None:
            return None
        cities = self.best.tour.cities
        return cities.copy(), self.instance.tour_length(cities)

    def export_state(self) -> State:
        """Export the islands after their last rounds: tours and, in lock step, their whole states."""
        return exported(self._key, self.best, self.members, whole=self.rules.deterministic)

    def import_state(self, state: State) -> None:
        """Continue from an exported state of as many islands on the same instance; before ``open``."""
        self._key = restored(state, self.best, self.members)
