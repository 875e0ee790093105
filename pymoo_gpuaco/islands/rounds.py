"""Rounds of islands: sent to workers, awaited, and sent again where a worker or a report is lost."""

from __future__ import annotations

import concurrent.futures
import logging
import queue
import time
import uuid
import weakref
from collections.abc import Sequence
from functools import partial
from typing import Any

from pymoo_gpuaco._version import __version__
from pymoo_gpuaco.islands import placement, worker
from pymoo_gpuaco.islands.cluster import Cluster
from pymoo_gpuaco.islands.connection import dask
from pymoo_gpuaco.islands.member import Member
from pymoo_gpuaco.islands.messages import Order, Report, Start, Task

_log = logging.getLogger("pymoo_gpuaco")

CHECK_EVERY = 0.25  # seconds between checks of the workers
MOST_FAILURES = 3  # of an island in a row: then its error ends the run
TRANSFER = 10.0  # seconds that the transfer of a finished report, or of an island's start, may take
STOP_NOTICE = 0.3  # seconds that closing waits for workers to hear that the run has ended


class Rounds:
    """The rounds of all islands on one cluster.

    Parameters
    ----------
    cluster : closed with this object.
    members : the islands; each is put on a worker.
    colony : pickled (colony, problem).
    run : name of the run, under which workers hold its islands.
    """

    def __init__(self, cluster: Cluster, members: Sequence[Member], colony: bytes, run: str) -> None:
        self.cluster = cluster
        self.members = members
        self._no_worker_since: float | None = None
        self._colony = colony
        self._run = run
        self._session = uuid.uuid4().hex
        # numbers of islands whose rounds have ended, well or not, and the rounds' futures
        self._ended: queue.SimpleQueue[tuple[int, Any]] = queue.SimpleQueue()
        self._checked = time.monotonic()
        self._close = weakref.finalize(self, cluster.close)
        for member in members:
            member.is_moving, member.last_sent = False, None
            self._place(member)

    @property
    def are_underway(self) -> bool:
        """Whether a round is running, or waits for a worker."""
        return any(member.order is not None for member in self.members)

    @property
    def has_ended(self) -> bool:
        """Whether the report of an ended round is waiting."""
        return not self._ended.empty()

    @property
    def without_workers(self) -> float:
        """Seconds for which there has been no worker."""
        return 0.0 if self._no_worker_since is None else time.monotonic() - self._no_worker_since

    # ---- to workers

    def send(self, member: Member, task: Task) -> None:
        """Submit a round to the island's worker, with the island itself where the worker lacks it.

        Raises ConnectionError if the scheduler is gone.
        """
        self.cluster.live_workers()
        member.future, member.order = None, self._order(member, task)
        start = None
        if member.worker and not member.is_on_worker:
            start = self._send_start(member)
        if not member.worker:
            return  # until one is there
        member.future = self.cluster.client.submit(
            worker.run_round,
            member.order,
            start,
            workers=[member.worker],
            pure=False,
            key=f"island-{member.number}-{uuid.uuid4().hex}",
        )
        # Dask's own thread calls it; it holds no reference to the run, which may be deleted
        member.future.add_done_callback(partial(_note_end, self._ended, member.number))

    def _order(self, member: Member, task: Task) -> Order:
        stream = task["stream"]
        if member.needs_stream and task["generations"] != 0 and stream is None:
            member.streams += 1  # a stream that began again would make the same search again
            stream = member.streams
            task = member.begun_again(task)
        return {
            **task,
            "stream": stream,
            "version": __version__,
            "run": self._run,
            "session": self._session,
            "island": member.number,
            "neighbours": placement.neighbours(member, self.members),
            "round": member.round,
        }

    def _send_start(self, member: Member) -> Any:
        """Send the worker the start of an island; where that fails, the island is on no worker."""
        start: Start = {"colony": self._colony, "state": member.state}
        sending = self.cluster.call_async(
            self.cluster.client.scatter, [start], workers=[member.worker], hash=False, timeout=TRANSFER
        )
        while member.worker in self.cluster.live_workers() and self.cluster.why_hopeless is None:
            if concurrent.futures.wait([sending], CHECK_EVERY).done:
                break
        try:
            (sent,) = sending.result(timeout=0)
        except (KeyError, OSError, concurrent.futures.TimeoutError, dask().TimeoutError) as error:
            # `_check_workers` chooses another worker
            _log.info("islands: %s could not be sent island %d: %r", member.worker, member.number, error)
            sending.cancel()
            member.worker = ""
            return None
        member.is_on_worker = True
        return sent

    def _send_again(self, member: Member) -> None:
        """Send a lost round again, from the island's state before it."""
        assert member.order is not None
        _restart_island(member)
        self.send(member, member.order)

    # ---- reports

    def wait(self, until: float | None) -> list[Report]:
        """Wait shortly for a report, at most until ``time.monotonic()`` shows ``until``; check the workers.

        Raises ConnectionError if the scheduler is gone, and the error of an island that fails again and again.
        """
        if time.monotonic() - self._checked >= CHECK_EVERY:
            self._check_workers()
        timeout = CHECK_EVERY if until is None else min(CHECK_EVERY, max(0.0, until - time.monotonic()))
        try:
            number, future = self._ended.get(timeout=timeout)
        except queue.Empty:
            return []
        member = self.members[number]
        if future is not member.future:
            return []  # the round was given up
        try:
            report: Report | None = future.result(timeout=TRANSFER)
        except Exception as error:
            self._failed(member, error)
            return []
        if report is None:  # the worker lacks the island, or has it at another round
            self._send_again(member)
            return []
        member.order = member.future = None
        member.failures = 0
        if report["generations"] > 0:
            member.needs_stream = False
        return [report]

    def _check_workers(self) -> None:
        """Check the workers, and find others for islands whose workers are gone."""
        self._checked = time.monotonic()
        workers = self.cluster.live_workers()
        if workers:
            self._no_worker_since = None
        elif self._no_worker_since is None:
            self._no_worker_since = self._checked
            _log.warning("islands: there is no worker; the run waits for one")
        for member in self.members:
            if member.worker in workers or (not member.worker and not workers):
                continue
            lost = member.worker
            self._place(member)
            if lost:
                _log.warning(
                    "islands: worker %s is gone; island %d goes on from round %d %s",
                    lost,
                    member.number,
                    member.round,
                    f"on {member.worker}" if member.worker else "when there is a worker",
                )
            if member.order is not None:
                self._send_again(member)

    def _failed(self, member: Member, error: Exception) -> None:
        """Repeat a round that has raised or whose report is lost, a few times."""
        if member.worker not in self.cluster.live_workers():
            self._check_workers()
            return
        member.failures += 1
        assert member.order is not None
        is_lost = member.future.status == "finished"  # the report alone: the worker may stand still
        if member.failures > MOST_FAILURES or (member.order["generations"] == 0 and not is_lost):
            raise error
        _log.warning(
            "islands: island %d has failed on %s and goes on from round %d: %s: %s",
            member.number,
            member.worker,
            member.round,
            type(error).__name__,
            error,
        )
        self._send_again(member)

    # ---- where islands are

    def _place(self, member: Member) -> None:
        member.worker = placement.emptiest(member, self.members, self.cluster.workers)
        _restart_island(member)

    def is_crowded(self, member: Member) -> bool:
        """Whether the island would do better on another worker."""
        return placement.is_crowded(member, self.members, self.cluster.workers)

    def move(self, member: Member) -> None:
        """Put an island, between two rounds, on the worker that has the fewest."""
        _log.info("islands: island %d moves away from %s", member.number, member.worker)
        self._drop(member)
        self._place(member)

    def _drop(self, member: Member) -> None:
        """Let the worker drop an island after its present work."""
        client = self.cluster.client
        task = client.submit(worker.forget, self._run, member.number, workers=[member.worker], pure=False)
        dask().fire_and_forget(task)

    # ---- the end

    def close(self) -> None:
        """Leave the cluster: end running rounds, and close the processes started for this run."""
        try:
            if self.cluster.client.status == "running" and not self.cluster.is_own:
                self._leave()
        finally:
            self._close()
            for member in self.members:
                member.future, member.order, member.worker = None, None, ""

    def _leave(self) -> None:
        """Make the workers of the user's cluster end their rounds soon, and drop the islands."""
        telling = self.cluster.call_async(
            self.cluster.client.run, worker.stop, self._session, on_error="ignore"
        )
        concurrent.futures.wait([telling], STOP_NOTICE)  # a worker that does not answer keeps nobody
        for member in self.members:
            if member.is_on_worker:
                self._drop(member)


def _restart_island(member: Member) -> None:
    """Make the next round start the island on its worker, from its state or, without one, from its best tour."""
    member.is_on_worker = False
    member.needs_stream = member.state is None


def _note_end(ended: queue.SimpleQueue[tuple[int, Any]], number: int, future: Any) -> None:
    ended.put((number, future))
