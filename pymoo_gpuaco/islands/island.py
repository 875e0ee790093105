"""What runs on a worker: a colony that stays in the worker's memory between rounds.

A round is one task of Dask. Its order tells how long to search and which tours have come from other islands; its report
holds the best tour and what was built. Between rounds nothing is sent: an order names the round that it expects the
island to have finished, and a worker that has no such island says so, whereupon it is sent again.

Orders and reports are dictionaries of numbers, strings, arrays and bytes, so that two versions of this package can tell
each other that they differ before anything is unpickled.
"""

from __future__ import annotations

import math
import os
import pickle
import threading
import time
from collections import deque
from typing import Any, TypedDict

import numpy as np
from numpy.typing import NDArray
from pymoo.core.population import Population

from pymoo_gpuaco._version import __version__
from pymoo_gpuaco.backends.cpu.threads import thread_count
from pymoo_gpuaco.backends.protocol import Kind
from pymoo_gpuaco.islands.travel import Parcel, pack, unpack
from pymoo_gpuaco.termination import ColonyTermination

# Seconds after which an island that nobody asks for is dropped: its run was killed. One that is asked for later is sent
# again.
IDLE = 600.0
_THREADS = "PYMOO_GPUACO_THREADS"


class VersionMismatch(RuntimeError):
    """A worker runs another version of this package than the run that it works for."""


class Guest(TypedDict):
    """A tour from another island."""

    parcel: Parcel
    value: float  # objective


class Order(TypedDict):
    """What an island does next."""

    version: str
    run: str
    sitting: str  # name under which rounds are told to stop
    island: int
    neighbours: int  # islands on this host, itself among them
    round: int  # the last that the island has finished
    seed: list[int] | None  # of a stream that begins
    state: bytes | None  # of an island that goes on where another worker left it
    base: NDArray[np.int32] | None  # the tour that parcels differ from, for an island that begins here
    guests: list[Guest]
    generations: int | None  # after which the round ends, 0 to prepare alone
    seconds: float | None  # after which no generation begins
    left: float | None  # seconds after which a generation is cut short: the run's time is over
    progress: float  # of the whole run, in [0, 1] or NaN
    pace: float  # how much progress a second adds, or a generation where ``seconds`` is None
    target: float | None  # objective at which the round ends
    export: bool  # report everything that the island is


class Report(TypedDict):
    """What an island has done."""

    island: int
    missing: bool  # the island is not here
    kind: Kind  # of engine
    patience: int  # see ``TourAlgorithm.patience``
    parcel: Parcel | None  # best tour so far
    value: float  # its objective
    other_objective: bool  # whether that is something else than the length
    built: int  # tours of this round
    generations: int
    seconds: float  # that the round took on the worker
    state: bytes | None


class RoundTermination(ColonyTermination):
    """Tells an island's colony how far the whole run is; a round never ends a colony's run."""

    def __init__(self) -> None:
        super().__init__(None, None, None, None, None)
        self.until = math.inf  # by time.monotonic()

    def _update(self, algorithm: Any) -> float:
        return 0.0

    def seconds_left(self, started: float, n_iter: int) -> float | None:
        """Seconds until the whole run's time is over."""
        return None if math.isinf(self.until) else self.until - time.monotonic()


class Island:
    """One colony on its worker."""

    def __init__(self, colony: Any, problem: Any, order: Order) -> None:
        self.lock = (
            threading.Lock()
        )  # workers of several threads may be told to search while a round is ending
        self.round = order["round"]
        self.base = order["base"]
        self.used = time.monotonic()
        self.problem = problem
        state = order["state"]
        if state is None:
            colony.setup(problem, termination=RoundTermination(), seed=0)
            self.colony = colony
        else:
            self.colony = pickle.loads(state)
            self.colony.problem = problem
        _ = self.colony.engine  # built here, before the round's time begins

    def search(self, order: Order) -> Report:
        """Make a round."""
        begun = time.monotonic()
        colony = self.colony
        if order["seed"] is not None:
            colony.random_state = np.random.default_rng(np.random.SeedSequence(order["seed"]))
        termination = colony.termination
        termination.until = math.inf if order["left"] is None else begun + order["left"]
        before = colony.evaluator.n_eval
        guests = self._guests(order)
        generations = 0
        while not self._is_over(order, begun, generations):
            steps = generations if order["seconds"] is None else time.monotonic() - begun
            progress = order["progress"] + order["pace"] * steps
            termination.spent = 1.0 if progress > 1.0 else progress  # NaN stays: nobody knows
            tours = colony.ask()
            colony.evaluator.eval(self.problem, tours, algorithm=colony)
            if guests is not None:
                tours, guests = Population.merge(tours, guests), None
            colony.tell(tours)
            generations += 1
        if order["generations"] != 0:
            self.round += 1
        self.used = time.monotonic()
        return self._report(order, generations, colony.evaluator.n_eval - before, self.used - begun)

    def _guests(self, order: Order) -> Population | None:
        n = self.problem.n_var
        rows = [unpack(guest["parcel"], self.base, n) for guest in order["guests"]]
        if not rows:
            return None
        values = np.array([[guest["value"]] for guest in order["guests"]])
        return Population.new("X", np.array(rows, np.int64), "F", values)

    def _is_over(self, order: Order, begun: float, generations: int) -> bool:
        if generations == order["generations"]:
            return True
        if generations == 0:
            return False  # a round always brings something
        now = time.monotonic()
        return (
            order["sitting"] in _stopped
            or (order["seconds"] is not None and now - begun >= order["seconds"])
            or (order["left"] is not None and now - begun >= order["left"])
            or (order["target"] is not None and self._value() <= order["target"])
        )

    def _value(self) -> float:
        return math.inf if self.colony.opt is None else float(self.colony.opt[0].F[0])

    def _report(self, order: Order, generations: int, built: int, seconds: float) -> Report:
        colony = self.colony
        parcel = None
        if colony.opt is not None:
            tour = np.asarray(colony.opt[0].X, np.int32)
            parcel = pack(tour, self.base)
            self.base = tour
        return {
            "island": order["island"],
            "missing": False,
            "kind": colony.engine.kind,
            "patience": colony.patience,
            "parcel": parcel,
            "value": self._value(),
            "other_objective": colony._other_objective,
            "built": int(built),
            "generations": generations,
            "seconds": seconds,
            "state": self._state() if order["export"] else None,
        }

    def _state(self) -> bytes:
        """The colony without the problem, which every worker has been sent."""
        colony = self.colony
        colony.problem = None
        try:
            return pickle.dumps(colony)
        finally:
            colony.problem = self.problem


_held: dict[tuple[str, int], Island] = {}  # of this worker, by run and number
_lock = threading.Lock()
_threads: str | None = None  # what the last run has set
_stopped: deque[str] = deque(maxlen=1000)  # sittings


def play(order: Order, cargo: bytes | None = None) -> Report:
    """Make a round of an island; ``cargo``, a pickled (colony, problem), begins it here.

    Raises VersionMismatch where the run's package is of another version, and what the colony raises.
    """
    if order["version"] != __version__:
        raise VersionMismatch(
            f"this worker has pymoo_gpuaco {__version__}, and the run has {order['version']}: "
            "install the same version on all hosts"
        )
    key = (order["run"], order["island"])
    with _lock:
        for other in [k for k, island in _held.items() if time.monotonic() - island.used > IDLE]:
            if not _held[other].lock.locked():
                del _held[other]
        if cargo is not None:
            _held.pop(key, None)
        island = _held.get(key)
    if cargo is not None:
        _share_cores(order["neighbours"])
        colony, problem = pickle.loads(cargo)
        island = Island(colony, problem, order)
        with _lock:
            _held[key] = island
    if island is None:
        return _missing(order)
    with island.lock:
        if island.round != order["round"]:
            return _missing(order)
        return island.search(order)


def _missing(order: Order) -> Report:
    return {
        "island": order["island"],
        "missing": True,
        "kind": "cpu",
        "patience": 0,
        "parcel": None,
        "value": math.inf,
        "other_objective": False,
        "built": 0,
        "generations": 0,
        "seconds": 0.0,
        "state": None,
    }


def stop(sitting: str) -> None:
    """Let the rounds of a sitting end after the generation that they are in."""
    _stopped.append(sitting)


def forget(run: str, number: int) -> None:
    """Drop an island, and the memory of its device with it."""
    with _lock:
        _held.pop((run, number), None)


def version() -> str:
    """The version of this package where this is called."""
    return __version__


def _share_cores(islands: int) -> None:
    """Let islands here use their share of the cores, unless this process's environment says how many threads."""
    global _threads
    if os.environ.get(_THREADS) == _threads:
        os.environ.pop(_THREADS, None)
        _threads = os.environ[_THREADS] = str(max(1, thread_count() // islands))
