"""The functions that Dask calls on a worker, and the islands that the worker holds.

An order names the last round that the island has finished. A worker that does not hold the island at that round returns
None, and is then sent the island's start.
"""

from __future__ import annotations

import os
import pickle
import threading
import time
from collections import deque

from pymoo_gpuaco._version import __version__
from pymoo_gpuaco.algorithms.front_algorithm import FrontAlgorithm
from pymoo_gpuaco.host.threads import thread_count
from pymoo_gpuaco.islands.front_island import FrontIsland
from pymoo_gpuaco.islands.island import Island
from pymoo_gpuaco.islands.messages import Order, Report, Start

# Seconds after which an unused island is dropped: its run was killed. If not, it is sent again.
IDLE = 600.0
_THREADS = "PYMOO_GPUACO_THREADS"

_held: dict[tuple[str, int], Island] = {}  # by run and number
_lock = threading.Lock()  # of ``_held``
_stopped: deque[str] = deque(maxlen=1000)  # sessions
_threads: str | None = None  # environment variable as the last run has set it


class VersionMismatch(RuntimeError):
    """A worker runs another version of this package than the run that it works for."""


def run_round(order: Order, start: Start | None = None) -> Report | None:
    """Run a round of an island, with ``start`` a new one; return None where it is not here, or not at this round.

    Raises VersionMismatch where the run's package is of another version, and the errors of the colony.
    """
    if order["version"] != __version__:
        raise VersionMismatch(
            f"this worker has pymoo_gpuaco {__version__}, and the run has {order['version']}: "
            "install the same version on all hosts"
        )
    key = (order["run"], order["island"])
    _drop_idle()
    if start is None:
        island = _held.get(key)
    else:
        forget(*key)  # frees memory of the device first
        _share_cores(order["neighbours"])
        colony, problem = pickle.loads(start["colony"])
        kind = FrontIsland if isinstance(colony, FrontAlgorithm) else Island
        island = kind(colony, problem, start["state"], order["round"])
        with _lock:
            _held[key] = island
    if island is None:
        return None
    with island.lock:
        return island.search(order, _stopped) if island.round == order["round"] else None


def stop(session: str) -> None:
    """End the rounds of a session after their present generation."""
    _stopped.append(session)


def forget(run: str, number: int) -> None:
    """Drop an island, which frees its memory on the device."""
    with _lock:
        _held.pop((run, number), None)


def version() -> str:
    """Return the version of this package on the worker."""
    return __version__


def _drop_idle() -> None:
    now = time.monotonic()
    with _lock:
        for key, island in list(_held.items()):
            if now - island.used > IDLE and not island.lock.locked():
                del _held[key]


def _share_cores(islands: int) -> None:
    """Give each island here its share of the cores, unless the environment sets the number of threads."""
    global _threads
    if os.environ.get(_THREADS) == _threads:
        os.environ.pop(_THREADS, None)
        _threads = os.environ[_THREADS] = str(max(1, thread_count() // islands))
