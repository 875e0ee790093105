"""The workers of a scheduler, asked for without waiting, so that a stopped process stops nobody else."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import Future as Promise
from typing import Any

# Seconds of silence after which a process counts as gone. A worker is silent while it imports this package for the
# first time.
SILENCE = 60.0
# The most seconds of silence that count between two calls: this process may have been stopped itself.
STEP = 1.0


class Watch:
    """Keeps track of the workers of a cluster.

    A scheduler that is stopped answers nothing, and a worker that is stopped sends no heartbeats. Dask's own thread
    sends them also during a round.

    Parameters
    ----------
    client : of Dask, connected.
    """

    def __init__(self, client: Any) -> None:
        self.client = client
        self.address = str(client.scheduler.address)
        self.workers: dict[str, int] = {}  # address: threads, of those with a recent heartbeat
        self._answer: Promise[Any] | None = None  # to the question that was asked last
        self._checked = self._answered = time.monotonic()
        self._silence = 0.0  # seconds of the scheduler, as calls have counted them
        self._age = 0.0  # seconds of this watch, as answers have counted them
        # worker: last heartbeat, and the age of this watch when it first heard of that
        self._heard: dict[str, tuple[float, float]] = {}

    @property
    def is_silent(self) -> bool:
        """Whether the scheduler does not answer."""
        return self._silence > SILENCE

    def live_workers(self) -> dict[str, int]:
        """Return address and threads of the workers by the last answer; ask again, without waiting.

        Raises ConnectionError if the connection to the scheduler is lost.
        """
        if self.client.status != "running":
            raise ConnectionError(f"the scheduler {self.address} is gone, or the client of it was closed")
        now = time.monotonic()
        self._silence += min(STEP, now - self._checked)
        self._checked = now
        if self._answer is not None and self._answer.done():
            if self._answer.exception() is None:  # else the answer was lost, and the next one counts
                self._take(self._answer.result(), now)
            self._answer = None
        if self._answer is None:
            self._answer = call_async(self.client, self.client.scheduler.identity)
        return self.workers

    def _take(self, answer: dict[str, Any], now: float) -> None:
        self._age += min(STEP, now - self._answered)
        self._answered, self._silence = now, 0.0
        known, self._heard = self._heard, {}
        for address, one in answer["workers"].items():
            before = known.get(address)
            is_new = before is None or before[0] != one["last_seen"]
            self._heard[address] = (one["last_seen"], self._age) if is_new else known[address]
        self.workers = {
            address: int(answer["workers"][address]["nthreads"])
            for address, (_, age) in self._heard.items()
            if self._age - age <= SILENCE
        }


def call_async(client: Any, call: Callable[[], Awaitable[Any]]) -> Promise[Any]:
    """Run ``call`` in the client's event loop; return a future at once."""

    async def answered() -> Any:
        return await call()

    return asyncio.run_coroutine_threadsafe(answered(), client.loop.asyncio_loop)
