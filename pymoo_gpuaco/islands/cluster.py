"""The workers of a run: the user's Dask cluster, or processes of this machine that are started for it."""

from __future__ import annotations

import concurrent.futures
import contextlib
import logging
import os
import subprocess
import time
from collections.abc import Mapping
from functools import partial
from typing import Any

from pymoo_gpuaco._version import __version__
from pymoo_gpuaco.islands import local_workers, watch, worker
from pymoo_gpuaco.islands.certificates import Certificates
from pymoo_gpuaco.islands.connection import Connection, client_of, dask

_log = logging.getLogger("pymoo_gpuaco")

PATIENCE = 60  # seconds in which a first worker must have joined
PAUSE = 0.05  # seconds between checks, while nothing else is done


class Cluster:
    """A client and, where they were started for it, the processes behind it.

    Parameters
    ----------
    connection : what the user gave, or None for processes of this machine.
    workers : how many of them; of a cluster that is given, how many there must be.
    gpus : whether each has a GPU of its own.

    Raises
    ------
    ConnectionError : where the client is closed, the scheduler or every worker stands still, or local workers have
        ended before they joined.
    TimeoutError : where too few workers join.
    """

    def __init__(self, connection: Connection | None, workers: int = 1, gpus: bool = False) -> None:
        distributed = dask()
        self._processes: list[subprocess.Popen[bytes]] = []
        self._certificates: Certificates | None = None
        self._local: Any = None
        self._process = os.getpid()  # a forked child must not close what its parent has started
        self.is_own = connection is None  # its processes end with it
        self._own_client = connection is None or connection.client is None
        try:
            if connection is None:
                self._start(distributed, workers, gpus)
                self.client = distributed.Client(self._local, set_as_default=False)
            elif connection.client is not None:
                self.client = connection.client
            else:
                self.client = client_of(connection.address, watch.SILENCE)
            if self.client.scheduler is None:
                raise ConnectionError(
                    f"the client that Islands were given, {self.client!r}, is closed: set client to an open one"
                )
            self._watch = watch.Watch(self.client)
            self._wait_for_workers(workers)
            self._check_versions()
        except BaseException:
            self.close()
            raise

    def _start(self, distributed: Any, workers: int, gpus: bool) -> None:
        """Start a scheduler in this process and each worker in one of its own.

        All listen to this machine alone, and accept only connections with the keys of this run.
        """
        self._certificates = Certificates()
        self._local = distributed.LocalCluster(
            n_workers=0,
            processes=True,
            host=local_workers.HOST,
            security=self._certificates.security,
            dashboard_address=f"{local_workers.HOST}:0",
            silence_logs=logging.ERROR,
        )
        for number in range(workers):
            self.add(number, workers, gpus)
        _log.info("islands: %d local workers, dashboard at %s", workers, self._local.dashboard_link)

    def add(self, number: int, workers: int, gpus: bool) -> None:
        """Start local worker ``number`` of so many."""
        assert self._certificates is not None
        process = local_workers.start(
            self._local.scheduler_address, self._certificates.options, number, workers, gpus
        )
        self._processes.append(process)

    def _wait_for_workers(self, wanted: int) -> None:
        end = time.monotonic() + PATIENCE
        while len(self.live_workers()) < wanted:
            codes = [process.poll() for process in self._processes]
            if any(code is not None for code in codes):
                ended = ", ".join(str(code) for code in codes if code is not None)
                raise ConnectionError(f"local workers have ended before they joined, with exit code {ended}")
            self._raise_if_hopeless()
            if time.monotonic() > end:
                raise TimeoutError(
                    f"{len(self.workers)} of {wanted} workers have joined the scheduler {self.address} "
                    f"within {PATIENCE} s"
                )
            time.sleep(PAUSE)

    def _check_versions(self) -> None:
        """Raise RuntimeError unless every worker has this package in this version."""
        answers = {
            address: self.call_async(self.client.run, worker.version, workers=[address], on_error="return")
            for address in self.workers
        }
        while any(not answer.done() for address, answer in answers.items() if address in self.live_workers()):
            self._raise_if_hopeless()
            time.sleep(PAUSE)
        for address, answer in answers.items():
            # a worker that does not answer is checked again in its first round
            if answer.done() and answer.exception() is None:
                _check_version(address, answer.result().get(address))
        if not self.live_workers():
            self._raise_if_hopeless()
            raise ConnectionError(f"no worker of the scheduler {self.address} answers")

    def _raise_if_hopeless(self) -> None:
        if self.why_hopeless is not None:
            raise ConnectionError(self.why_hopeless)

    # ---- during the run

    @property
    def address(self) -> str:
        """Address of the scheduler."""
        return self._watch.address

    @property
    def workers(self) -> Mapping[str, int]:
        """Address and threads of the workers by the scheduler's last answer."""
        return self._watch.workers

    def live_workers(self) -> Mapping[str, int]:
        """Return the workers by the scheduler's last answer, and ask again without waiting.

        Workers without a heartbeat for a minute are left out. Raises ConnectionError if the scheduler is gone.
        """
        return self._watch.live_workers()

    @property
    def why_hopeless(self) -> str | None:
        """Why no report will come: the scheduler is stopped, or all local workers have ended; else None."""
        if self._watch.is_silent:
            return f"the scheduler {self.address} has not answered for {watch.SILENCE:.0f} s"
        if self.is_own and all(process.poll() is not None for process in self._processes):
            return "all local workers have ended"
        return None

    def call_async(self, call: Any, *arguments: Any, **named: Any) -> concurrent.futures.Future[Any]:
        """Start an asynchronous call of the client, and return at once."""
        return watch.call_async(self.client, partial(call, *arguments, **named, asynchronous=True))

    def close(self) -> None:
        """End the processes started here; the user's client stays open. Further calls do nothing."""
        if os.getpid() != self._process:
            return
        processes, self._processes = self._processes, []
        for process in processes:
            local_workers.kill(process)
        local, self._local = self._local, None
        own, self._own_client = self._own_client, False
        client = getattr(self, "client", None)
        # each by itself, and there is nobody left to report errors to: a client may wait for an answer in vain
        with contextlib.suppress(Exception):
            if own and client is not None:
                client.close(timeout=2)
        with contextlib.suppress(Exception):
            if local is not None:
                local.close(timeout=2)
        certificates, self._certificates = self._certificates, None
        if certificates is not None:
            certificates.remove()


def _check_version(address: str, answer: Any) -> None:
    if isinstance(answer, ImportError):
        raise RuntimeError(
            f"the worker {address} has no pymoo_gpuaco ({answer}): install {__version__} on all hosts"
        )
    if isinstance(answer, OSError):
        return  # it has died since
    if isinstance(answer, BaseException):
        raise answer
    if answer != __version__:
        raise worker.VersionMismatch(
            f"the worker {address} has pymoo_gpuaco {answer}, and this process has {__version__}: "
            "install the same version on all hosts"
        )
