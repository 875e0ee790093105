"""Workers of this machine: their number, and the processes that are started for one run."""

from __future__ import annotations

import contextlib
import logging
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from pymoo_gpuaco.backends import cuda_devices, why_no_cuda
from pymoo_gpuaco.host.threads import thread_count

# Islands of a machine without a GPU: one for so many cores, and two where there are two cores.
CORES_AN_ISLAND = 4
HOST = "127.0.0.1"


class Layout(NamedTuple):
    """The islands and workers of a run on this machine."""

    islands: int
    workers: int
    gpus: bool  # whether every worker has a GPU of its own


def layout(n_islands: int | None, backend: str) -> Layout:
    """Return the layout of so many islands, or of as many as suit this machine, for colonies on ``backend``."""
    gpus = _gpus() if backend != "cpu" else []
    if gpus:
        islands = len(gpus) if n_islands is None else n_islands
        return Layout(islands, min(islands, len(gpus)), True)
    cores = thread_count()
    islands = min(cores, max(2, cores // CORES_AN_ISLAND)) if n_islands is None else n_islands
    return Layout(islands, islands, False)


def start(scheduler: str, keys: list[str], number: int, workers: int, gpus: bool) -> subprocess.Popen[bytes]:
    """Start worker ``number`` of so many, with a nanny that starts it again if it dies; ``keys`` are its options.

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
    if not logging.getLogger("pymoo_gpuaco").isEnabledFor(logging.WARNING):
        environment["DASK_LOGGING__PYMOO_GPUACO"] = "error"
    if gpus:
        environment["CUDA_VISIBLE_DEVICES"] = _gpus()[number]
    command = [sys.executable, "-m", "distributed.cli.dask_worker", scheduler]
    command += keys
    command += ["--nthreads", "1", "--host", HOST, "--name", str(number)]
    command += ["--dashboard-address", f"{HOST}:0"]  # without it the worker's status is served to the network
    command += ["--memory-limit", "0"]  # a colony takes what it needs; to kill it would not help
    return subprocess.Popen(
        command, env=environment, stdin=subprocess.DEVNULL, start_new_session=os.name == "posix"
    )


def kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a worker's nanny and the worker."""
    import psutil  # which comes with distributed

    with contextlib.suppress(psutil.NoSuchProcess):
        family = psutil.Process(process.pid)
        for one in (family, *family.children(recursive=True)):  # the nanny first, or it would start another
            with contextlib.suppress(psutil.NoSuchProcess):
                one.kill()
    process.wait()


def _gpus() -> list[str]:
    """Return the name in CUDA_VISIBLE_DEVICES of each GPU that this process sees."""
    if why_no_cuda() is not None:
        return []
    count = len(cuda_devices())
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    names = [name.strip() for name in visible.split(",") if name.strip()]
    return names[:count] if len(names) >= count else [str(number) for number in range(count)]
