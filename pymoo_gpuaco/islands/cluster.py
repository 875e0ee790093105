"""Where islands live: a cluster of Dask that is given, or processes of this machine that are started for one run."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import subprocess
import sys
from concurrent.futures import Future as Concurrent
from pathlib import Path
from typing import Any

from pymoo_gpuaco._install import how_to_install
from pymoo_gpuaco._version import __version__
from pymoo_gpuaco.backends import cuda_devices, why_no_cuda
from pymoo_gpuaco.backends.cpu.threads import thread_count
from pymoo_gpuaco.islands import island

_log = logging.getLogger("pymoo_gpuaco")

# Seconds in which a first worker must have joined.
PATIENCE = 60
# Islands of a machine without a GPU: one for so many cores, and two where there are two cores.
CORES_AN_ISLAND = 4
HOST = "127.0.0.1"


def dask() -> Any:
    """Return the module ``distributed``. Raises ImportError that says how to install it."""
    try:
        import distributed
    except ImportError as error:
        raise ImportError(
            f"Islands need Dask ({error}); install it with: pip install 'dask[distributed]', or "
            f"{how_to_install('islands')}"
        ) from error
    return distributed


class Connection:
    """A client of Dask, or the address of a scheduler. Copies share it, and a pickle keeps the address.

    It has slots because pymoo's ``get_params`` walks every ``__dict__``, and a client's has no end.
    """

    __slots__ = ("address", "client")

    def __init__(self, given: Any) -> None:
        self.client: Any = None
        if isinstance(given, str):
            self.address = given
            return
        client_class = getattr(sys.modules.get("distributed"), "Client", ())
        if not isinstance(given, client_class):
            raise TypeError(
                "client must be a dask.distributed.Client, the address of a scheduler such as "
                f"'tcp://10.0.0.1:8786', or None, got {given!r}"
            )
        if given.asynchronous:
            raise TypeError("client must not be asynchronous: pymoo waits for every generation")
        self.client = given
        self.address = str(given.scheduler.address) if given.scheduler else ""

    def __deepcopy__(self, memo: dict[int, Any]) -> Connection:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return Connection, (self.address,)

    def __repr__(self) -> str:
        return f"<{self.address}>"


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
            host=HOST,
            dashboard_address=f"{HOST}:0",
            silence_logs=logging.ERROR,
        )
        for number in range(workers):
            self._processes.append(_start_worker(self._local.scheduler_address, number, workers, gpus))
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
        answers = self.client.run(island.version, on_error="return")
        for address, answer in answers.items():
            if isinstance(answer, ImportError):
                raise RuntimeError(
                    f"the worker {address} has no pymoo_gpuaco ({answer}): install {__version__} on all hosts"
                )
            if isinstance(answer, BaseException):
                raise answer
            if answer != __version__:
                raise island.VersionMismatch(
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
            _kill(process)
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


def packed(thing: Any) -> bytes:
    """Pickle for a worker; also what a script or a notebook has defined itself."""
    dask()
    import cloudpickle  # which comes with Dask

    pickled: bytes = cloudpickle.dumps(thing)
    return pickled


def host(address: str) -> str:
    """A worker's host, as its address names it."""
    return address.rpartition(":")[0]


def shape(n_islands: int | None, backend: str) -> tuple[int, int, bool]:
    """Islands, local workers and whether these have GPUs, for colonies of a backend on this machine."""
    gpus = _gpus() if backend != "cpu" else []
    if gpus:
        islands = len(gpus) if n_islands is None else n_islands
        return islands, min(islands, len(gpus)), True
    cores = thread_count()
    islands = min(cores, max(2, cores // CORES_AN_ISLAND)) if n_islands is None else n_islands
    return islands, islands, False


def _gpus() -> list[str]:
    """What CUDA_VISIBLE_DEVICES calls each GPU that this process sees."""
    if why_no_cuda() is not None:
        return []
    count = len(cuda_devices())
    told = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    names = [name.strip() for name in told.split(",") if name.strip()]
    return names[:count] if len(names) >= count else [str(number) for number in range(count)]


def _start_worker(scheduler: str, number: int, workers: int, gpus: bool) -> subprocess.Popen[bytes]:
    """Start one worker, with a nanny that starts it again if it dies.

    It is a program of its own, not a child that imports ``__main__`` again: a script needs no guard. In a session of
    its own it hears no Ctrl-C, which is for the process that leads the run.
    """
    environment = {
        **os.environ,
        # what can be imported here can be imported there
        "PYTHONPATH": os.pathsep.join(str(Path(place or ".").resolve()) for place in sys.path),
        "PYMOO_GPUACO_THREADS": str(max(1, thread_count() // workers)),
        "DASK_LOGGING__DISTRIBUTED": "error",
    }
    if gpus:
        environment["CUDA_VISIBLE_DEVICES"] = _gpus()[number]
    command = [sys.executable, "-m", "distributed.cli.dask_worker", scheduler]
    command += ["--nthreads", "1", "--host", HOST, "--name", str(number)]
    command += ["--dashboard-address", f"{HOST}:0"]  # without it the worker's status is served to the network
    command += ["--memory-limit", "0"]  # a colony takes what it needs; to kill it would not help
    return subprocess.Popen(
        command, env=environment, stdin=subprocess.DEVNULL, start_new_session=os.name == "posix"
    )


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a worker's nanny and the worker."""
    import psutil  # which comes with distributed

    with contextlib.suppress(psutil.NoSuchProcess):
        family = psutil.Process(process.pid)
        for one in (family, *family.children(recursive=True)):  # the nanny first, or it would start another
            with contextlib.suppress(psutil.NoSuchProcess):
                one.kill()
    process.wait()
