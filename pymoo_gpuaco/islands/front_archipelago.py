"""The engine of ``Islands`` for several objectives: islands exchange what is new to their fronts."""

from __future__ import annotations

import weakref
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pymoo_gpuaco import checks
from pymoo_gpuaco.fronts.archive import Archive
from pymoo_gpuaco.fronts.instance import FrontInstance
from pymoo_gpuaco.fronts.state import archive_state, restored_archive
from pymoo_gpuaco.host.background import uninterrupted
from pymoo_gpuaco.host.state import State, stored, stored_integers, stored_tours
from pymoo_gpuaco.islands import topology
from pymoo_gpuaco.islands.front_island import most_tours
from pymoo_gpuaco.islands.leader import Leader, Rules
from pymoo_gpuaco.islands.member import Member
from pymoo_gpuaco.islands.messages import Report, Task
from pymoo_gpuaco.islands.state import restore_colonies, whole_colonies

_GROWS = 1200  # lengths by each objective of which the archive has met more than it first has room for


@dataclass
class FrontMember(Member):
    """The record of an island whose colony searches for a front."""

    size: int = 0  # of its front
    sums: int = 0  # that it has solved
    # (e, n) tours that it is yet to be sent, those that have come first first
    unsent: NDArray[Any] = field(default_factory=lambda: np.empty((0, 0), np.int32))
    archipelago: Any = None  # its `FrontArchipelago`, weakly: a run that is deleted ends its workers at once

    def begun_again(self, task: Task) -> Task:
        """Return the task of an island that begins without its colony's state: it is sent the front of all."""
        if self.archipelago.rules.topology != "all":
            return task
        front, most = self.archipelago.front()[0], most_tours(self.archipelago.instance.n)
        self.unsent = front[most:]  # more than a message brings come with the next rounds
        return {**task, "mates": front[:most]}

    @property
    def value(self) -> float:
        """Tours of its front."""
        return float(self.size)


class FrontArchipelago(Leader):
    """Engine of ``Islands`` for several objectives, a ``FrontEngine``.

    Parameters
    ----------
    instance : distances.
    colony, rules, n_islands : as of ``Archipelago``.
    size : members that the front of all islands holds, >= 2 k.

    Raises
    ------
    ConnectionError : by ``search``, when the scheduler is gone.
    """

    def __init__(
        self, instance: FrontInstance, colony: bytes, rules: Rules, n_islands: int | None, size: int
    ) -> None:
        super().__init__(instance.n, colony, rules, n_islands)
        self.instance = instance
        self.archive = Archive(instance.n, instance.k, instance.unit, size)
        self.joined = np.empty(0, np.intp)
        self.n_tours = 0
        self._joined: list[NDArray[np.float64]] = []  # lengths of what has joined in this generation

    def _new_member(self, number: int) -> FrontMember:
        return FrontMember(number, unsent=np.empty((0, self._n), np.int32), archipelago=weakref.proxy(self))

    @property
    def n_sums(self) -> int:
        """Weighted sums that the islands have solved."""
        return sum(member.sums for member in self.members)

    @property
    def _has_tour(self) -> bool:
        return len(self.archive.front) > 0

    def _prepare(self) -> None:
        lengths = np.repeat(self.instance.lengths(self.instance.starts), _GROWS, axis=0)
        lengths += np.arange(len(lengths))[:, None]  # so many that its set of them grows
        # what is compiled looks at no tour, and so many whole ones would fill the memory
        tours = np.zeros((len(lengths), 1), np.int32)
        Archive(1, self.instance.k, self.instance.unit, self.archive.size).add(tours, lengths)

    # ---- a generation

    def search(self, key: int) -> None:
        """Wait for reports and take in what is new; random numbers follow from the key of ``begin``, not from this."""
        self._joined = []
        self.collect()
        self.n_tours += self.n_built
        points = np.concatenate(self._joined) if self._joined else np.empty((0, self.instance.k))
        self.joined = self.archive.rows_of(points)

    def _load(self, member: FrontMember, task: Task) -> None:
        if self.rules.topology == "all":
            task["parts"] = self.n_islands
        unsent = member.unsent
        left = unsent[self.archive.on_front(self.instance.lengths(unsent))]
        most = most_tours(self.instance.n)
        task["mates"], member.unsent = left[:most], left[most:]

    def _note(self, report: Report) -> None:
        super()._note(report)
        member = self.members[report["island"]]
        member.size, member.sums = int(report["value"]), report["sums"]

    def _offer(self, report: Report) -> None:
        """Take in an island's new members; those that join the front of all go to the islands that are to have them."""
        giver = self.members[report["island"]]
        tours, giver.tours = giver.tours, None
        if tours is None or not len(tours):
            return
        uninterrupted(lambda: self._take_in(giver, tours))

    def _take_in(self, giver: FrontMember, tours: NDArray[np.int32]) -> None:
        rows = self.archive.add(tours, self.instance.lengths(tours))
        joined = self.archive.tours[rows].astype(np.int32)
        self._joined.append(self.archive.lengths[rows])
        for member in self.members:
            if giver in topology.givers(self.rules.topology, member, self.members):
                member.unsent = np.concatenate([member.unsent, joined])

    # ---- what an algorithm asks its engine

    def accept(self, tours: ArrayLike) -> None:
        """Take in tours (m, n) from outside, and send them to all islands.

        Raises ValueError unless rows are permutations of 0 .. n-1.
        """
        given = checks.permutations("tours", tours, self.instance.n).astype(np.int32)
        lengths = self.instance.lengths(given)
        uninterrupted(lambda: self.archive.add(given, lengths))
        for member in self.members:
            member.unsent = np.concatenate([member.unsent, given])

    def front(self) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Tours (f, n) of the front, and their lengths (f, k), in order of the first objective."""
        rows = self.archive.members()
        return self.archive.tours[rows].astype(np.int32), self.archive.lengths[rows]

    def rescued(self) -> None:
        """Return None: what islands have reported is in the archive."""
        return

    def export_state(self) -> State:
        """Export the islands after their last rounds: the front and, in lock step, their whole states."""
        unsent = {f"unsent {member.number}": member.unsent.copy() for member in self.members}
        counts = [[one.round, one.streams, one.size, one.sums] for one in self.members]
        return {
            **archive_state(self.archive),
            **unsent,
            "key": np.array([self._key], np.uint64),
            "rounds": np.array(counts, np.int64).reshape(-1, 4),
            "built": np.array([self.n_tours], np.int64),
            **whole_colonies(self.members, self.rules.deterministic),
        }

    def import_state(self, state: State) -> None:
        """Continue from an exported state of as many islands on the same instance; before ``open``."""
        n, members = self.instance.n, self.members
        key = stored(state, "key", (1,))
        rounds = stored_integers(state, "rounds", (len(members), 4), 0, 2**62, np.int64)
        built = stored_integers(state, "built", (1,), 0, 2**62, np.int64)
        names = [f"unsent {member.number}" for member in members]
        unsent = [stored_tours(state, name, len(state.get(name, ())), n) for name in names]
        empty = Archive(n, self.instance.k, self.instance.unit, self.archive.size)
        self.archive = restored_archive(state, empty, 0)
        self._key, self.n_tours = int(key[0]), int(built[0])
        for member in members:
            member.unsent = unsent[member.number]
            member.round, member.streams, member.size, member.sums = map(int, rounds[member.number])
        restore_colonies(state, members)
