"""An island on its worker, a Dask actor that stores an algorithm between rounds, and its migrants."""

from __future__ import annotations

import asyncio
import math
import os
import pickle
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pymoo.core.population import Population

from pymoo_gpuaco.algorithms.ppls import FrontAlgorithm
from pymoo_gpuaco.algorithms.termination import ColonyTermination
from pymoo_gpuaco.backends.protocol import Migrates
from pymoo_gpuaco.islands.cluster import dask
from pymoo_gpuaco.runtime.clock import CLOCK
from pymoo_gpuaco.runtime.threads import thread_count

TOPOLOGIES = ("all", "ring", "none")
CITIES_A_MESSAGE = 1 << 21  # total cities of one message: 8 MB
# Maximum waiting migrants of an island with one objective: more of them cost memory and transfer.
MOST_MIGRANTS = 200
_THREADS = "PYMOO_GPUACO_THREADS"
_shared: str | None = None  # the number of threads set by an island of this worker


# ---- migration


class Migrants(NamedTuple):
    """Tours (e, n) on their way between islands, and their objectives (e, k)."""

    tours: NDArray[np.int32]
    values: NDArray[np.float64]

    def __add__(self, other: Any) -> Migrants:
        """Concatenate both."""
        return Migrants(
            np.concatenate([self.tours, other.tours]), np.concatenate([self.values, other.values])
        )


def no_migrants(n: int, k: int = 1) -> Migrants:
    """Return no tours of n cities with k objectives."""
    return Migrants(np.empty((0, n), np.int32), np.empty((0, k)))


def receivers(topology: str, sender: int, n_islands: int) -> list[int]:
    """Return the islands that receive the tours of island ``sender``."""
    furthest = {"all": n_islands - 1, "ring": min(1, n_islands - 1), "none": 0}[topology]
    return [(sender + step) % n_islands for step in range(1, furthest + 1)]


def tours_a_message(n: int) -> int:
    """Return the maximum number of tours of n cities in a message."""
    return max(1, CITIES_A_MESSAGE // n)


def shortest(migrants: Migrants) -> Migrants:
    """Return the migrants with the least objectives, at most MOST_MIGRANTS and at most one message."""
    most = min(MOST_MIGRANTS, tours_a_message(migrants.tours.shape[1]))
    if len(migrants.tours) <= most:
        return migrants
    rows = np.sort(migrants.values[:, 0].argsort(kind="stable")[:most])
    return Migrants(migrants.tours[rows], migrants.values[rows])


def hashes(rows: Iterable[NDArray[Any]]) -> list[int]:
    """Return a number for each row, equal for equal rows of one process."""
    return [hash(row.tobytes()) for row in rows]


# ---- an island


class SetUpRequest(NamedTuple):
    """Set-up of an island on a worker."""

    algorithm: bytes  # pickled (algorithm, problem)
    number: int
    seed: list[int]  # of its random numbers
    gpus: int  # of this host, if local workers share them; else 0
    neighbours: int  # islands on this host, including itself


class RoundRequest(NamedTuple):
    """One round of an island."""

    migrants: Migrants
    exchanges: bool  # with other islands
    parts: int  # islands that divide the front among them; 1: each explores all of it
    interval: float  # seconds after which no generation begins, or generations
    deterministic: bool  # the interval is in generations
    left: float  # seconds until the deadline of the run
    progress: float  # of the whole run, in [0, 1] or NaN
    pace: float  # progress per second, or per generation
    target: float  # objective at which the round ends


class RoundReport(NamedTuple):
    """The result of a round."""

    tours: Migrants  # with one objective the best so far; then new tours for other islands
    value: float  # objective of the best tour, or size of the island's front
    awaits_migrants: bool  # annealing has ended in this round, and the evolution waits for migrants
    annealed: bool  # annealing has ended, or there is none
    may_stagnate: bool  # see ``TourAlgorithm``
    built: int  # tours of this round
    seconds: float  # duration of the round


class RoundTermination(ColonyTermination):
    """Termination that passes the progress of the whole run to the algorithm; a round never ends its run."""

    single_objective = False
    until = math.inf  # deadline of the whole run, by CLOCK.monotonic()

    def _update(self, algorithm: Any) -> float:
        return 0.0

    def seconds_left(self, started: float) -> float | None:
        """Return the seconds until the deadline of the whole run."""
        return self.until - CLOCK.monotonic()


class Island:
    """One algorithm on a worker. Its methods are called through Dask, one at a time."""

    def __init__(self) -> None:
        self._worker = dask().get_worker()
        self._key = self._worker.get_current_task()

    async def call(self, method: str, message: SetUpRequest | RoundRequest) -> Any:
        """Return the answer of a method. It works in a thread, so that islands of one worker run in parallel."""
        return await asyncio.to_thread(getattr(self, method), message)

    def set_up(self, start: SetUpRequest) -> str:
        """Build the engine; return its kind."""
        _share_cores(start.neighbours)
        algorithm, self._problem = pickle.loads(start.algorithm)
        if start.gpus:
            algorithm.device = int(self._worker.name) % start.gpus  # local workers have numbers as names
        seed = np.random.default_rng(start.seed)
        algorithm.setup(self._problem, termination=RoundTermination(n_max_gen=None, seconds=None), seed=seed)
        self.algorithm, self._number = algorithm, start.number
        self._of_front = isinstance(algorithm, FrontAlgorithm)
        self._known: set[int] = set()  # hashes of sent and received tours
        return str(algorithm.engine.kind)

    def search(self, request: RoundRequest) -> RoundReport:
        """Run a round; it ends early if the island is released."""
        started, algorithm, generations = CLOCK.monotonic(), self.algorithm, 0
        algorithm.termination.until, before = started + request.left, algorithm.evaluator.n_eval
        migrants = self._immigrants(request)
        is_over, steps = False, 0.0  # generations or seconds
        while not is_over:
            progress = request.progress + request.pace * steps
            algorithm.termination.spent = 1.0 if progress > 1.0 else progress  # NaN (unknown) stays NaN
            tours = algorithm.ask()
            algorithm.evaluator.eval(self._problem, tours, algorithm=algorithm)
            tours, migrants = Population.merge(tours, migrants), Population.empty()
            algorithm.advance(infills=tours)  # ``tell`` would assemble the whole front
            generations, seconds = generations + 1, CLOCK.monotonic() - started
            steps = generations if request.deterministic else seconds
            engine = algorithm.engine
            value = float(len(engine.archive.front) if self._of_front else algorithm.opt[0].F[0])
            awaits_migrants = isinstance(engine, Migrates) and engine.awaits_migrants
            reached = steps >= request.interval or seconds >= request.left or value <= request.target
            is_dropped = self._key not in self._worker.state.actors
            is_over = reached or awaits_migrants or is_dropped
        tours = self._emigrants()
        if not self._of_front:
            best = algorithm.opt
            tours = Migrants(np.asarray(best.get("X")[:1], np.int32), best.get("F")[:1]) + tours
        return RoundReport(
            tours=tours,
            value=value,
            awaits_migrants=awaits_migrants,
            annealed=engine.annealed if isinstance(engine, Migrates) else True,
            may_stagnate=bool(algorithm.may_stagnate),
            built=int(algorithm.evaluator.n_eval - before),
            seconds=CLOCK.monotonic() - started,
        )

    # ---- migration

    def _immigrants(self, request: RoundRequest) -> Population:
        """Pass tours of other islands to the engine; return those of an engine that accepts only evaluated ones."""
        (tours, values), engine = request.migrants, self.algorithm.engine
        self._known.update(hashes(values if self._of_front else tours))
        if self._of_front:
            engine.divide(self._number % request.parts, request.parts)
            engine.accept(tours)
        elif isinstance(engine, Migrates):
            engine.exchanges = request.exchanges
            engine.immigrate(tours, values[:, 0])
        else:
            return Population.new("X", tours.astype(np.int64), "F", values)
        return Population.empty()

    def _emigrants(self) -> Migrants:
        """Return new tours for other islands, at most one message.

        These are members evenly spaced along a front, or with one objective the emigrants of the engine or the best
        tour.
        """
        algorithm, engine = self.algorithm, self.algorithm.engine
        if self._of_front:
            tours, values = engine.archive.tours[engine.archive.front], engine.archive.points
        elif isinstance(engine, Migrates):
            rows, lengths = engine.emigrants(MOST_MIGRANTS)
            tours, values = algorithm.canonical(rows), lengths[:, None]
        else:
            tours, values = algorithm.opt.get("X")[:1], algorithm.opt.get("F")[:1]
        names = hashes(values if self._of_front else tours.astype(np.int32))
        new = np.array([i for i, name in enumerate(names) if name not in self._known], np.intp)
        most = tours_a_message(tours.shape[1])
        if len(new) > most:
            new = new[np.linspace(0, len(new) - 1, most).astype(np.intp)] if self._of_front else new[:most]
        self._known.update(names[i] for i in new)
        return Migrants(tours[new].astype(np.int32), values[new])


def _share_cores(islands: int) -> None:
    """Set each island's share of the cores of this host, unless the environment sets the number of threads."""
    global _shared
    if os.environ.get(_THREADS) == _shared:
        os.environ.pop(_THREADS, None)
        _shared = os.environ[_THREADS] = str(max(1, thread_count() // islands))
