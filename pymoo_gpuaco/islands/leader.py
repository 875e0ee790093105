"""The process that leads a run of islands: it collects their reports and sends each island its next round."""

from __future__ import annotations

import math
import time
import uuid
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from pymoo_gpuaco import checks
from pymoo_gpuaco.islands import topology
from pymoo_gpuaco.islands.clock import Clock
from pymoo_gpuaco.islands.cluster import PATIENCE, Cluster
from pymoo_gpuaco.islands.member import Member
from pymoo_gpuaco.islands.messages import Report, Task
from pymoo_gpuaco.islands.rounds import Rounds
from pymoo_gpuaco.search.meeting import AFTER_ANNEALING

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


class Leader(ABC):
    """Engine of ``Islands``, but for what they exchange: a collection waits for reports of some islands, or of all.

    Parameters
    ----------
    n : cities.
    colony : pickled (colony, problem), to be sent to workers.
    rules : validated.
    n_islands : >= 1, or None for one a worker.
    """

    def __init__(self, n: int, colony: bytes, rules: Rules, n_islands: int | None) -> None:
        self.rules = rules
        self.clock = Clock(rules.generations)
        self.kind: str = "cpu"
        self.patience = 0  # of a colony, in its tours
        self.mean = math.nan  # of the objectives of the islands that reported last
        self.busy = 0.0  # seconds that the islands have spent in rounds, together
        self.target: float | None = None  # objective at which a round ends
        self._n = n
        self._colony = colony
        self._run = uuid.uuid4().hex
        self._rounds: Rounds | None = None  # while there is a cluster to search on
        self._key = 0  # of the run's random numbers
        self._built = 0
        self.members: list[Any] = [self._new_member(number) for number in range(n_islands or 0)]

    # ---- what a subclass knows of what islands exchange

    def _new_member(self, number: int) -> Member:
        """Return the record of an island."""
        return Member(number)

    @property
    @abstractmethod
    def _has_tour(self) -> bool:
        """Whether there is a tour that the run can return."""

    @abstractmethod
    def _prepare(self) -> None:
        """Compile what reports are taken in by."""

    @abstractmethod
    def _load(self, member: Any, task: Task) -> None:
        """Give a task the tours of others."""

    @abstractmethod
    def _offer(self, report: Report) -> None:
        """Take in what an island has found; `_note` has recorded the report."""

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
        self.members = self.members or [self._new_member(number) for number in range(len(cluster.workers))]
        rounds = self._rounds = Rounds(cluster, self.members, self._colony, self._run)
        try:
            for member in self.members:
                rounds.send(member, self._task(member, 0))
            self._prepare()
            while rounds.are_underway:
                self._raise_if_hopeless(rounds)
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

    def collect(self) -> list[Report]:
        """Wait for reports, and return them.

        Raises ConnectionError if the scheduler is gone. It does so, too, if no island is left to report while there is
        no tour yet or no time limit. Raises the error of an island that has failed several times in a row.
        """
        assert self._rounds is not None
        self._built = 0
        step = self._lock_step if self.rules.deterministic else self._as_they_come
        reports = step(self._rounds)
        if reports:
            self.mean = float(np.mean([report["value"] for report in reports]))
        return reports

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
                if self._has_tour and self._has_time and self._may_go_on(member):
                    # merging may take a while: the island goes on with what the others had before
                    self._send_next(rounds, member)
                self._offer(report)
                reports.append(report)
        return reports

    # a run returns a tour, however long the first takes: until then there is no time limit

    @property
    def _has_time(self) -> bool:
        return not self._has_tour or self.clock.has_time

    @property
    def _latest(self) -> float | None:
        return None if not self._has_tour else self.clock.latest

    def _next_moment(self) -> float | None:
        """When no report is awaited any more, or an island has waited long enough for others."""
        moments = [one.waits_until for one in self.members if one.order is None and not self._may_go_on(one)]
        if self._latest is not None:
            moments.append(self._latest)
        return min(moments, default=None)

    def _is_late(self, rounds: Rounds) -> bool:
        self._raise_if_hopeless(rounds)
        return self._latest is not None and time.monotonic() >= self._latest

    def _raise_if_hopeless(self, rounds: Rounds) -> None:
        """Raise ConnectionError where waiting would never end, or end without a tour."""
        has_tour, end = self._has_tour, self.clock.end
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
        if self.rules.deterministic or member.meeting not in AFTER_ANNEALING:
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
        self._load(member, task)
        rounds.send(member, task)

    def _task(self, member: Member, generations: int | None) -> Task:
        return {
            "key": self._key,
            "stream": None,
            "migrants": [],
            "shares": self.rules.topology != "none" and self.n_islands > 1,
            "mates": np.empty((0, self._n), np.int32),
            "parts": 1,
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
        if report["tours"] is not None:
            rows = checks.permutations("the tours that have come", report["tours"], self._n)
            member.tours = rows.astype(np.int32)
        elif not member.meeting:  # it anneals, again or still
            member.tours = None

    def _note(self, report: Report) -> None:
        """Record the report of an island."""
        self._note_engine(report)
        member = self.members[report["island"]]
        member.state = report["state"]
        member.round += 1
        self._built += report["built"]
        member.waits_until = time.monotonic() + self._patience_of(report)
        self.busy += report["seconds"]

    @property
    def n_built(self) -> int:
        """Tours that the islands have built in the rounds of the last collection."""
        return self._built
