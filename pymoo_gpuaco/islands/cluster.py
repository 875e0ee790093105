"""The Dask client of a run, its workers, and the local processes of a run."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import pickle
import signal
import subprocess
import sys
import weakref
from collections.abc import Coroutine
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import Any

from pymoo_gpuaco.backends import cuda_devices, why_no_cuda
from pymoo_gpuaco.runtime.background import BackgroundTask
from pymoo_gpuaco.runtime.clock import CLOCK
from pymoo_gpuaco.runtime.notices import how_to_install
from pymoo_gpuaco.runtime.threads import thread_count

# Seconds without a heartbeat after which a worker is lost, or without an answer after which the scheduler is. A worker
# sends no heartbeat while it imports this package for the first time.
SILENCE_LIMIT = 60.0
HEARTBEAT_INTERVAL = 0.25  # seconds between two requests to the scheduler
ANSWER_TRIES = 4  # waits for an answer, of SILENCE_LIMIT in total
JOIN_TIMEOUT = 60.0  # seconds in which the first workers must join
CORES_PER_ISLAND = 4  # on a machine without a GPU
HOST = "127.0.0.1"

# The program of a local cluster. It reads its arguments, including keys, from stdin, and ends when stdin ends. It has
# no file, so its workers do not import the script of the user again. Output of workers goes to stderr.
_LOCAL_CLUSTER = """
import os, pickle, signal, sys
from distributed import LocalCluster
answer = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
cluster = LocalCluster(**pickle.load(sys.stdin.buffer))
print(cluster.scheduler_address, file=answer, flush=True)
sys.stdin.buffer.read()
os.killpg(0, signal.SIGKILL) if hasattr(os, "killpg") else os._exit(0)
"""


def dask() -> Any:
    """Return the module ``distributed``. Raises ImportError with instructions to install it."""
    try:
        import distributed
    except ImportError as error:
        raise ImportError(
            f"Islands require Dask ({error}); run: pip install 'dask[distributed]' cryptography, or "
            f"{how_to_install('islands')}"
        ) from error
    return distributed


def pickled(thing: Any) -> bytes:
    """Pickle for a worker, including classes and functions of a script or a notebook."""
    dask()
    import cloudpickle  # a dependency of Dask

    data: bytes = cloudpickle.dumps(thing)
    return data


class Connection:
    """The client of a user. Copies share it, and a pickle stores the address of its scheduler.

    The class has slots because pymoo's ``get_params`` walks every ``__dict__``.
    """

    __slots__ = ("address", "client")

    def __init__(self, client: Any) -> None:
        self.client = client
        if not isinstance(client, getattr(sys.modules.get("distributed"), "Client", ())):
            raise TypeError(
                "client must be a dask.distributed.Client, the address of a scheduler such as "
                f"'tcp://10.0.0.1:8786', or None, got {client!r}"
            )
        if self.client.asynchronous or self.client.scheduler is None:
            raise ValueError(f"client must be open and not asynchronous, got {client!r}")
        self.address = str(self.client.scheduler.address)

    def __deepcopy__(self, memo: dict[int, Any]) -> Connection:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return str, (self.address,)

    def __repr__(self) -> str:
        return f"<{self.address}>"


def layout(n_islands: int | None, backend: str) -> tuple[int, int, int]:
    """Return islands, worker processes and GPUs of this machine, for algorithms on ``backend``."""
    gpus = 0 if backend == "cpu" or why_no_cuda() is not None else len(cuda_devices())
    cores = thread_count()
    islands = n_islands or gpus or min(cores, max(2, cores // CORES_PER_ISLAND))
    return islands, min(islands, gpus or islands), gpus


def start_local(
    workers: int, security: Any, resources: contextlib.ExitStack
) -> tuple[subprocess.Popen[bytes], str]:
    """Start a LocalCluster in a process that ``resources`` end; return the process and the scheduler's address.

    The cluster listens only on this machine and accepts only connections with the keys of ``security``. The process has
    its own session, so that a Ctrl-C in the terminal interrupts only the run.
    """
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(str(Path(folder or ".").resolve()) for folder in sys.path),
        "PYMOO_GPUACO_THREADS": str(max(1, thread_count() // workers)),
        "DASK_LOGGING__DISTRIBUTED": "error",
    }
    if not logging.getLogger("pymoo_gpuaco").isEnabledFor(logging.WARNING):
        environment["DASK_LOGGING__PYMOO_GPUACO"] = "error"
    # without dashboard_address port 8787 would be open; an island killed because of its memory would only restart
    arguments = {"n_workers": workers, "threads_per_worker": 1, "host": HOST, "security": security}
    arguments |= {"dashboard_address": f"{HOST}:0", "memory_limit": 0, "silence_logs": logging.ERROR}
    command, pipe = [sys.executable, "-c", _LOCAL_CLUSTER], subprocess.PIPE
    process = subprocess.Popen(
        command, env=environment, stdin=pipe, stdout=pipe, start_new_session=os.name == "posix"
    )
    resources.callback(end_local, process)
    with contextlib.suppress(BrokenPipeError):  # it has ended already, see below
        process.stdin.write(pickle.dumps(arguments))  # type: ignore[union-attr]
        process.stdin.flush()  # type: ignore[union-attr]
    address = process.stdout.readline().decode().strip()  # type: ignore[union-attr]
    if not address:
        raise ConnectionError(f"the local cluster did not start: exit code {process.wait()}")
    return process, address


def end_local(process: subprocess.Popen[bytes]) -> None:
    """Kill a local cluster and its workers."""
    with contextlib.suppress(ProcessLookupError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()  # its workers end with it
    with contextlib.suppress(OSError):  # the last output may not have been read
        process.communicate()


def close_client(client: Any) -> None:
    """Close a client; a scheduler that is stopped does not answer."""
    with contextlib.suppress(Exception):
        client.close(timeout=2)


async def _watch(client: Any, workers: set[str]) -> None:
    """Update ``workers`` to the addresses of those that send heartbeats; end when the scheduler does not answer."""
    heard: dict[tuple[str, float], float] = {}  # last heartbeats, and when each was read first
    while True:
        answer = asyncio.ensure_future(client.scheduler.identity())
        answer.add_done_callback(lambda one: one.cancelled() or one.exception())  # else asyncio logs it
        for _ in range(ANSWER_TRIES):  # several, because this process itself may have been stopped
            await asyncio.wait([answer], timeout=SILENCE_LIMIT / ANSWER_TRIES)
        if not answer.done():
            return
        now, found = CLOCK.monotonic(), answer.result()["workers"]
        last = {(address, worker["last_seen"]) for address, worker in found.items()}
        heard = {heartbeat: heard.get(heartbeat, now) for heartbeat in last}
        present = {address for (address, _), read in heard.items() if now - read <= SILENCE_LIMIT}
        workers.update(present)
        workers.intersection_update(present)
        await asyncio.sleep(HEARTBEAT_INTERVAL)


def release(resources: contextlib.ExitStack, owner: int) -> None:
    """Release resources of process ``owner``; do nothing in its forks."""
    if os.getpid() == owner:
        resources.close()


class Cluster:
    """A client of Dask and its workers.

    ``given`` is the client of a user, the address of a scheduler, or None to start a local cluster on a machine with
    ``gpus``. ``n_workers`` are started, or must join within ``limit`` seconds. ``close()`` ends what was started here.

    Raises ConnectionError if the client is closed or the scheduler does not answer, and TimeoutError if too few workers
    join.
    """

    def __init__(
        self, given: Connection | str | None, n_workers: int = 1, gpus: int = 0, limit: float | None = None
    ) -> None:
        distributed = dask()
        self.gpus = gpus
        self._workers: set[str] = set()
        with contextlib.ExitStack() as resources:
            security = None  # that of Dask's configuration
            if given is None:
                try:
                    security = distributed.Security.temporary()
                except ImportError as error:
                    raise ImportError(
                        f"workers on this machine require certificates ({error}); run: "
                        f"pip install cryptography, or {how_to_install('islands')}"
                    ) from error
                self.process, given = start_local(n_workers, security, resources)
            if isinstance(given, str):
                make = partial(distributed.Client, given, security=security, set_as_default=False)
                made = BackgroundTask(make)  # because Dask waits without end for a scheduler that is stopped
                if not made.wait(CLOCK.monotonic() + SILENCE_LIMIT):
                    raise ConnectionError(f"the scheduler {given} does not answer")
                self.client, self.address = made.result(), given
                resources.callback(close_client, self.client)
            else:
                self.client, self.address = given.client, given.address
                if self.client.scheduler is None:
                    raise ConnectionError(f"the client {self.client!r} is closed: set client to an open one")
            self._watch = self.start(_watch(self.client, self._workers))
            resources.callback(self._watch.cancel)
            limit = JOIN_TIMEOUT if limit is None else min(limit, JOIN_TIMEOUT)
            end = CLOCK.monotonic() + limit
            while len(self.workers) < n_workers:
                if CLOCK.monotonic() > end:
                    raise TimeoutError(
                        f"{len(self.workers)} of {n_workers} workers have joined the scheduler {self.address} "
                        f"within {limit:.1f} s"
                    )
                CLOCK.sleep(HEARTBEAT_INTERVAL / 5)
            self.close = weakref.finalize(self, release, resources.pop_all(), os.getpid())

    @property
    def workers(self) -> set[str]:
        """Addresses of the workers that send heartbeats.

        Raises ConnectionError if the scheduler is gone or does not answer.
        """
        if self.client.status != "running":
            raise ConnectionError(f"the scheduler {self.address} is gone, or its client was closed")
        if self._watch.done():
            raise ConnectionError(f"the scheduler {self.address} does not answer")
        return set(self._workers)

    def start(self, work: Coroutine[Any, Any, Any]) -> Future[Any]:
        """Run a coroutine in the client's event loop; return at once."""
        return asyncio.run_coroutine_threadsafe(work, self.client.loop.asyncio_loop)
