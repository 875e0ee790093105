"""Client loop of a run with islands: it requests rounds, collects reports and forwards migrants."""

from __future__ import annotations

import concurrent.futures
import logging
import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pymoo_gpuaco import checks
from pymoo_gpuaco.islands.cluster import JOIN_TIMEOUT, Cluster, dask
from pymoo_gpuaco.islands.island import (
    Island,
    Migrants,
    RoundReport,
    RoundRequest,
    SetUpRequest,
    no_migrants,
    receivers,
    shortest,
)
from pymoo_gpuaco.pareto.archive import Archive, archive_state, restored_archive
from pymoo_gpuaco.runtime.clock import CLOCK
from pymoo_gpuaco.runtime.state import State, stored, stored_integers, stored_tours
from pymoo_gpuaco.runtime.stop import Stop, StoppableEngine

_log = logging.getLogger("pymoo_gpuaco")

MOST_FAILURES = 3  # consecutive failures of an island; the next one ends the run
# Times in seconds. A round shorter than MIN_ROUND_SECONDS does not begin. Rounds end ROUND_MARGIN before the end of the
# run, and the client waits for their reports until REPORT_GRACE after it.
MIN_ROUND_SECONDS, ROUND_MARGIN, REPORT_GRACE = 0.1, 0.03, 0.25
# An island that has annealed waits for the annealed tours of others, for the duration of its last round, but at most
# for this share of the remaining time.
MAX_WAIT_SHARE = 0.3
POLL_SECONDS = 0.05  # seconds between two checks of workers and waiting islands


@dataclass
class Member:
    """One island on the client: its last report, and the current call."""

    number: int
    inbox: Migrants  # tours to send with the next round
    # as last reported
    round: int = 0
    best: NDArray[np.int32] | None = None  # (n,)
    value: float = math.inf  # objective of the best tour, or size of the front
    annealed: bool = False
    may_stagnate: bool = True
    waits_until: float = 0.0  # deadline of its wait for others, by CLOCK.monotonic()
    # on a worker
    worker: str = ""  # address, "" without a worker
    actor: Any = None  # None until it is set up
    call: concurrent.futures.Future[Any] | None = None
    begun: int = 0  # number of restarts, each with other random numbers
    failures: int = 0  # consecutive


async def _set_up(client: Any, worker: str, start: SetUpRequest) -> tuple[Any, str]:
    """Create an island on a worker; return its actor and the kind of its engine.

    Arguments of an actor's methods are messages to its worker and not part of Dask's graph.
    """
    with client.as_current():
        actor = await client.submit(Island, workers=[worker], actor=True, pure=False)
        return actor, await actor.call("set_up", start)


async def _search(actor: Any, request: RoundRequest) -> Any:
    return await actor.call("search", request)


class Archipelago(StoppableEngine):
    """Engine of ``Islands`` for one objective: a construction collects the reports of some islands, or of all.

    ``algorithm`` is a pickled (algorithm, problem) for workers, ``key`` in [0, 2**64) the key of the random numbers.
    ``rules`` are migration interval, topology and deterministic, see ``Islands``. A round is the search of an island
    during one migration interval. ``n_islands`` None: one per worker.
    """

    k = 1  # objectives

    def __init__(
        self, instance: Any, algorithm: bytes, key: int, rules: tuple[float, str, bool], n_islands: int | None
    ) -> None:
        self.instance = instance
        self.interval, self.topology, self.deterministic = rules
        self.kind: str = "cpu"
        self.busy = 0.0  # total seconds of the rounds of all islands
        self.n_built = 0  # tours of the rounds of the last collection
        self.target: float | None = None  # objective at which a round ends
        self._algorithm, self._key = algorithm, key
        self.cluster: Any = None  # a ``Cluster`` while it is open
        self.stop = Stop()
        self.lost: ConnectionError | None = None  # why the scheduler or all workers are lost
        self.progress = math.nan  # of the run, in [0, 1], or NaN
        self.members: list[Member] = []
        self._make_members(n_islands or 0)

    def _make_members(self, n_islands: int) -> None:
        none = no_migrants(self.instance.n, self.k)
        self.members = [Member(number, none) for number in range(n_islands)]

    @property
    def n_islands(self) -> int:
        """Number of islands; 0 while the number of workers is unknown."""
        return len(self.members)

    @property
    def values(self) -> list[float]:
        """Objective of the best tour of each island, or the size of its front, as last reported."""
        return [member.value for member in self.members]

    # ---- one objective

    @property
    def _has_tour(self) -> bool:
        return any(member.best is not None for member in self.members)

    def _best(self) -> Migrants:
        """Return the best tours of all islands, the best first, from which an island restarts."""
        known = sorted((one for one in self.members if one.best is not None), key=lambda one: one.value)
        tours = np.array([one.best for one in known], np.int32).reshape(-1, self.instance.n)
        return shortest(Migrants(tours, np.array([[one.value] for one in known]).reshape(-1, 1)))

    def _store_tours(self, member: Member, tours: Migrants) -> Migrants:
        """Store the best tour of an island, the first of its report; return the others, for other islands."""
        member.best = tours.tours[0].copy()
        return Migrants(tours.tours[1:], tours.values[1:])

    def construct(self) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Wait for reports; return the best tours (e, n) of their islands, or the best so far, and lengths (e,)."""
        reported = self.collect()
        tours = np.array([one.best for one in reported]) if reported else self._best().tours[:1]
        return tours, np.array([self.instance.tour_length(tour) for tour in tours])

    def accept(self, tours: ArrayLike, values: ArrayLike) -> None:
        """Send given tours (m, n) to all islands."""
        rows = checks.permutations("tours", tours, self.instance.n).astype(np.int32)
        self._send(Migrants(rows, np.asarray(values, np.float64)[:, None]), range(self.n_islands))

    # ---- the cluster

    def open(self, cluster: Cluster) -> None:
        """Set up the islands on a cluster, so that compilation and set-up take no time from the search."""
        if not self.members:
            self._make_members(len(cluster.workers))
        self.cluster, self._had_worker, self.lost = cluster, CLOCK.monotonic(), None
        try:
            for member in self.members:
                if member.round:  # in another process, or before an interrupt
                    self._restart(member)
            while any(member.actor is None for member in self.members):
                for member in self.members:
                    if member.actor is None and member.call is None:
                        self._ask(member)
                self._wait()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Leave the cluster: the islands end their rounds, and processes of this run end."""
        if self.cluster is not None:
            for member in self.members:
                self._leave_worker(member)
            cluster, self.cluster = self.cluster, None
            cluster.close()

    def _leave_worker(self, member: Member) -> None:
        """Release the island on its worker."""
        if member.call is not None:
            member.call.cancel()
        client = self.cluster.client
        if member.actor is not None and client.status == "running":
            # the answer of its current round would keep it alive, but that round ends soon
            future = dask().Future(member.actor.key, client)
            self.cluster.start(client.cancel([future], asynchronous=True))
        member.worker, member.actor, member.call = "", None, None

    # ---- one generation

    def collect(self) -> list[Member]:
        """Wait for the report of an island, or in the reproducible mode of all; return these islands.

        If the scheduler or all workers are lost, ``lost`` says why; without a tour that is raised. Raises the error of
        an island that has failed several times in a row.
        """
        reports: list[tuple[Member, RoundReport]] = []
        expected = self.n_islands if self.deterministic else 1
        self.n_built = 0
        try:
            while not self._is_overdue() and not (len(reports) >= expected and self._has_time):
                wait_for_others = {member.number for member, _ in reports} if self.deterministic else set()
                for member in self.members:
                    if member.number not in wait_for_others:
                        self._continue(member)
                for member, report in self._wait():
                    reports.append((member, report))
                    self._store(member, report)
                    if not self.deterministic:
                        self._continue(member)  # it searches while its tours are processed
        except ConnectionError as error:
            self.lost = error
        if not (reports or self._has_tour):
            raise self.lost or KeyboardInterrupt  # the latter has ended the wait
        reports.sort(key=lambda one: one[0].number)  # an order that does not depend on timing
        for member, report in reports:
            name = f"the tours of island {member.number}"
            rows = checks.permutations(name, report.tours.tours, self.instance.n).astype(np.int32)
            migrants = self._store_tours(member, Migrants(rows, report.tours.values))
            self._send(migrants, receivers(self.topology, member.number, self.n_islands))
        return [member for member, _ in reports]

    def _send(self, migrants: Migrants, numbers: Iterable[int]) -> None:
        """Add tours to those that islands are sent with their next round."""
        for member in (self.members[number] for number in numbers):
            inbox = member.inbox + migrants
            member.inbox = shortest(inbox) if self.k == 1 else inbox

    def _continue(self, member: Member) -> None:
        """Request the next round of an island that has none, unless it waits or the time is over."""
        if member.call is None and self._has_time and not self._waits(member):
            self._ask(member)

    def _seconds_left(self) -> float:
        """Return the seconds until the deadline of the run."""
        return math.inf if self.stop.until is None else self.stop.until - CLOCK.monotonic()

    @property
    def _has_time(self) -> bool:
        """True if another round ends in time, or there is no tour yet."""
        return not self._has_tour or self._seconds_left() >= MIN_ROUND_SECONDS

    def _is_overdue(self) -> bool:
        """Return True if the wait for reports is over."""
        grace = REPORT_GRACE if any(member.call is not None for member in self.members) else 0.0
        ended = self.stop.interrupted or self.lost is not None
        return ended or (self._has_tour and self._seconds_left() <= -grace)

    def _waits(self, member: Member) -> bool:
        """Return True if an island that has annealed waits for the tours of others."""
        return CLOCK.monotonic() < member.waits_until and not all(one.annealed for one in self.members)

    def _store(self, member: Member, report: RoundReport) -> None:
        member.failures, member.round, member.value = 0, member.round + 1, report.value
        member.annealed, member.may_stagnate = report.annealed, report.may_stagnate
        if report.awaits_migrants and not self.deterministic:
            waits = min(max(self.interval, report.seconds), MAX_WAIT_SHARE * self._seconds_left())
            member.waits_until = CLOCK.monotonic() + waits
        self.n_built += report.built
        self.busy += report.seconds

    def _request(self, member: Member) -> RoundRequest:
        """Return the next round of an island, with its waiting migrants."""
        migrants, member.inbox = member.inbox, no_migrants(self.instance.n, self.k)
        exchanges = self.topology != "none" and self.n_islands > 1
        parts = self.n_islands if self.topology == "all" else 1
        left = max(0.0, self._seconds_left() - ROUND_MARGIN)
        target = -math.inf if self.target is None else self.target
        done = self.interval * max(1, member.round)
        pace = self.progress / done if self.deterministic else (1.0 - self.progress) / max(1e-3, left)
        progress = self.progress, pace
        return RoundRequest(
            migrants, exchanges, parts, self.interval, self.deterministic, left, *progress, target
        )

    # ---- calls

    def _ask(self, member: Member) -> None:
        """Request the next round of an island; if it has no worker, set it up on one, if there is one."""
        if member.actor is not None:
            member.call = self.cluster.start(_search(member.actor, self._request(member)))
        elif workers := self.cluster.workers:
            for one in self.members:  # all, because islands of a host share its cores
                if not one.worker:
                    islands = Counter(other.worker for other in self.members)
                    one.worker = min(sorted(workers), key=islands.__getitem__)
            host = member.worker.rpartition(":")[0]
            neighbours = sum(one.worker.rpartition(":")[0] == host for one in self.members)
            seed = [self._key, member.number, member.begun]
            start = SetUpRequest(self._algorithm, member.number, seed, self.cluster.gpus, neighbours)
            member.call = self.cluster.start(_set_up(self.cluster.client, member.worker, start))

    def _wait(self) -> list[tuple[Member, RoundReport]]:
        """Wait briefly for a call to end; return the reports of rounds.

        An island that has failed or lost its worker restarts, at most ``MOST_FAILURES`` times in a row; the error of
        its first set-up is raised. Raises ConnectionError if the scheduler is gone, or if there is no worker for too
        long.
        """
        calls = [member.call for member in self.members if member.call is not None]
        if calls:
            concurrent.futures.wait(calls, POLL_SECONDS, concurrent.futures.FIRST_COMPLETED)
        else:
            CLOCK.sleep(POLL_SECONDS)
        workers, now = self.cluster.workers, CLOCK.monotonic()
        self._had_worker = now if workers else self._had_worker
        if now - self._had_worker > JOIN_TIMEOUT or (not workers and self._seconds_left() < 0.0):
            raise ConnectionError(f"no worker for {now - self._had_worker:.0f} s")
        reports = []
        for member in self.members:
            try:
                if member.worker and member.worker not in workers:
                    raise ConnectionError(f"its worker {member.worker} is gone")
                if member.call is not None and member.call.done():
                    answer, member.call = member.call.result(), None
                    if member.actor is None:
                        member.actor, self.kind = answer
                    else:
                        reports.append((member, answer))
            except Exception as error:
                self._failed(member, error)
        return reports

    def _failed(self, member: Member, error: Exception) -> None:
        """Restart an island from the best tours of all; raise the error of one that fails too often."""
        is_of_dask = isinstance(error, (OSError, concurrent.futures.CancelledError))
        member.failures += 1
        is_first_set_up = member.actor is None and not member.begun
        if member.failures > MOST_FAILURES or (is_first_set_up and not is_of_dask):
            raise error
        reason = f"{type(error).__name__}: {error}"
        _log.warning("islands: island %d restarts after round %d: %s", member.number, member.round, reason)
        self._restart(member)

    def _restart(self, member: Member) -> None:
        """Release an island; its next call starts again from the best tours of all, with other random numbers."""
        self._leave_worker(member)
        member.inbox, member.begun = self._best(), member.begun + 1

    # ---- copies and files

    def export_state(self) -> State:
        """Export the best tours of the islands, from which they restart."""
        none = np.zeros(self.instance.n, np.int32)
        tours = [none if member.best is None else member.best for member in self.members]
        counts = [[member.round, member.begun] for member in self.members]
        return {
            "tours": np.array(tours, np.int32).reshape(-1, self.instance.n),
            "values": np.array(self.values, np.float64),
            "counts": np.array(counts, np.int64).reshape(-1, 2),
        }

    def import_state(self, state: State) -> None:
        """Continue from an exported state of the same number of islands on the same instance; before ``open``."""
        m = self.n_islands or len(state.get("tours", ()))
        tours = stored_tours(state, "tours", m, self.instance.n, none=True)
        values = checks.finite("state['values']", stored(state, "values", (m,)), infinity=True)
        counts = stored_integers(state, "counts", (m, 2), 0, 2**62, np.int64)
        self._make_members(m)
        for i, member in enumerate(self.members):
            member.best, member.value = tours[i] if tours[i].any() else None, float(values[i])
            member.round, member.begun = map(int, counts[i])


class FrontArchipelago(Archipelago):
    """Engine of ``Islands`` for several objectives, a ``FrontEngine``: migrants are members of the islands' fronts.

    ``size`` is the maximum number of members of the front that all islands share, >= 2 k.
    """

    def __init__(self, instance: Any, size: int, **arguments: Any) -> None:
        self.k, self.n_tours = instance.k, 0
        super().__init__(instance, **arguments)
        self._empty = partial(Archive, instance.n, instance.k, instance.unit, size)
        self.archive = self._empty()

    @property
    def n_sums(self) -> int:
        """Number of rounds: each has solved weighted sums or, of few cities, evaluated all tours."""
        return sum(member.round for member in self.members)

    @property
    def _has_tour(self) -> bool:
        return len(self.archive.front) > 0

    def search(self, key: int) -> None:
        """Wait for reports and add their tours; random numbers depend on the key of the run."""
        self.archive.mark()
        self.collect()
        self.n_tours += self.n_built

    def _best(self) -> Migrants:
        return Migrants(*self.archive.members())

    def _store_tours(self, member: Member, tours: Migrants) -> Migrants:
        """Add tours to the front of all islands; return the new members, for other islands."""
        rows = self.archive.add(tours.tours, self.instance.lengths(tours.tours))
        return Migrants(self.archive.tours[rows].astype(np.int32), self.archive.lengths[rows])

    def accept(self, tours: ArrayLike, values: ArrayLike | None = None) -> None:
        """Add given tours (m, n), and send them to all islands."""
        rows = checks.permutations("tours", tours, self.instance.n).astype(np.int32)
        lengths = self.instance.lengths(rows)
        self.archive.add(rows, lengths)
        self._send(Migrants(rows, lengths), range(self.n_islands))

    def export_state(self) -> State:
        """Export the front and the state of the islands."""
        built = np.array([self.n_tours], np.int64)
        return {**super().export_state(), "built": built, **archive_state(self.archive)}

    def import_state(self, state: State) -> None:
        """Continue from an exported state of the same number of islands on the same instance; before ``open``."""
        built = stored_integers(state, "built", (1,), 0, 2**62, np.int64)
        archive = restored_archive(state, self._empty(), 0)
        super().import_state(state)
        self.archive, self.n_tours = archive, int(built[0])
