"""The workers of a run: a cluster of Dask that is given, or processes of this machine that are started for it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import subprocess
from concurrent.futures import Future as Concurrent
from typing import Any

from pymoo_gpuaco._version import __version__
from pymoo_gpuaco.islands import local_workers, worker
from pymoo_gpuaco.islands.connection import Connection, dask

_log = logging.getLogger("pymoo_gpuaco")

PATIENCE = 60  # seconds in which a first worker must have joined


class Cluster:
    """A client and, where they were started for it, the processes behind it.

    Parameters
    ----------
    connection : what the user gave, or None for processes of this machine.
    workers : how many of them; of a cluster that is given, how many there must be.
    gpus : whether each has a GPU of its own.
    """

    def __init__(self, connection: Connection | None, workers: int = 1, gpus: bool = False) -> None:
        distributed = dask()
        self._processes: list[subprocess.Popen[bytes]] = []
        self._local: Any = None
        self._process = os.getpid()  # a forked child has a copy of this object, and of nothing behind it
        self.is_own = connection is None  # its processes end with it
        self._own_client = connection is None or connection.client is None
        self._watch: Concurrent[dict[str, int]] | None = None
        try:
            if connection is None:
                self._start(distributed, workers, gpus)
                self.client = distributed.Client(self._local, set_as_default=False)
            elif connection.client is not None:
                self.client = connection.client
            else:
                self.client = distributed.Client(connection.address, set_as_default=False)
            self._wait_for_workers(workers)
            self.workers: dict[str, int] = self.client.nthreads()  # address: threads, when last looked
            self._check_versions()
        except BaseException:
            self.close()
            raise

    def _start(self, distributed: Any, workers: int, gpus: bool) -> None:
        """Start a scheduler in this process and each worker in one of its own; all listen to this machine alone."""
        self._local = distributed.LocalCluster(
            n_workers=0,
            processes=True,
            host=local_workers.HOST,
            dashboard_address=f"{local_workers.HOST}:0",
            silence_logs=logging.ERROR,
        )
        for number in range(workers):
            process = local_workers.start(self._local.scheduler_address, number, workers, gpus)
            self._processes.append(process)
        _log.info("islands: %d local workers, dashboard at %s", workers, self._local.dashboard_link)

    def _wait_for_workers(self, wanted: int) -> None:
        distributed = dask()
        try:
            self.client.wait_for_workers(wanted, timeout=PATIENCE)
        except (TimeoutError, distributed.TimeoutError) as error:
            found = len(self.client.nthreads())
            raise TimeoutError(
                f"{found} of {wanted} workers have joined the scheduler {self.client.scheduler.address} "
                f"within {PATIENCE} s"
            ) from error

    def _check_versions(self) -> None:
        """Raise RuntimeError unless every worker has this package in this version."""
        answers = self.client.run(worker.version, on_error="return")
        for address, answer in answers.items():
            if isinstance(answer, ImportError):
                raise RuntimeError(
                    f"the worker {address} has no pymoo_gpuaco ({answer}): install {__version__} on all hosts"
                )
            if isinstance(answer, BaseException):
                raise answer
            if answer != __version__:
                raise worker.VersionMismatch(
                    f"the worker {address} has pymoo_gpuaco {answer}, and this process has {__version__}: "
                    "install the same version on all hosts"
                )

    def look(self) -> dict[str, int]:
        """Workers as the scheduler last told, address and threads; it is asked again without waiting.

        Raises ConnectionError if the scheduler is gone.
        """
        if self.client.status != "running":
            raise ConnectionError(
                f"the scheduler {self.client.scheduler.address if self.client.scheduler else ''} is gone"
            )
        if self._watch is not None and self._watch.done():
            with contextlib.suppress(Exception):  # an answer that was lost: the next one tells
                self.workers = dict(self._watch.result())
            self._watch = None
        if self._watch is None:
            self._watch = asyncio.run_coroutine_threadsafe(_ask(self.client), self.client.loop.asyncio_loop)
        return self.workers

    def close(self) -> None:
        """End what was started here; a client that was given stays open. To be called any number of times."""
        if os.getpid() != self._process:
            return
        processes, self._processes = self._processes, []
        for process in processes:
            local_workers.kill(process)
        local, self._local = self._local, None
        own, self._own_client = self._own_client, False
        client = getattr(self, "client", None)
        with contextlib.suppress(Exception):  # nothing is left to be told to anybody
            if own and client is not None:
                client.close(timeout=2)
            if local is not None:
                local.close(timeout=2)


async def _ask(client: Any) -> dict[str, int]:
    workers: dict[str, int] = await client.scheduler.ncores(workers=None)
    return workers
