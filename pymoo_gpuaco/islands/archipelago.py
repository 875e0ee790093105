"""The islands as the run's own process sees them: who is where, which rounds are on their way, what is best."""

from __future__ import annotations

import logging
import math
import queue
import threading
import time
import uuid
import weakref
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pymoo_gpuaco._version import __version__
from pymoo_gpuaco.backends.protocol import Kind
from pymoo_gpuaco.backends.state import State, stored, stored_integers, stored_tours
from pymoo_gpuaco.colony import checks, immigrants
from pymoo_gpuaco.exchange.merge import merge
from pymoo_gpuaco.islands import island
from pymoo_gpuaco.islands.cluster import Cluster, dask, host
from pymoo_gpuaco.islands.island import Guest, Order, Report
from pymoo_gpuaco.islands.travel import pack, unpack
from pymoo_gpuaco.problems.instance import Instance

_log = logging.getLogger("pymoo_gpuaco")

LOOK = 0.25  # seconds between looks at the workers
# A round that would have less time than SHORTEST is not begun. Rounds end MARGIN before the run's time is over, and are
# waited for until GRACE after it.
SHORTEST, MARGIN, GRACE = 0.1, 0.03, 0.25
MOST_FAILURES = 3  # of an island in a row: then its error ends the run
FETCH = 10.0  # seconds within which a report that is finished must have come
TELLING = 0.3  # seconds that are given to the news of an end


class Tour(NamedTuple):
    """A tour and its objective."""

    cities: NDArray[np.int32]  # (n,)
    value: float


@dataclass(frozen=True)
class Rules:
    """How islands exchange tours, see ``Islands``."""

    exchange_every: float
    topology: str
    deterministic: bool


@dataclass
class Place:
    """What is known of one island."""

    number: int
    worker: str = ""  # address, "" where it is on none
    sent: bool = False  # whether the worker was sent the island
    fresh: bool = True  # whether its stream of random numbers has not begun
    lives: int = 0  # streams that it has begun
    round: int = 0  # the last that was reported
    tour: NDArray[np.int32] | None = None  # its best, as last reported
    value: float = math.inf
    state: bytes | None = None  # everything that it was after its last round, where that was asked for
    guests: list[Tour] = field(default_factory=list)  # from outside, to be sent
    known: NDArray[np.int32] | None = None  # what it was sent last of the others'
    order: Order | None = None  # of the round on its way, or waiting for a worker
    future: Any = None
    failures: int = 0
    moving: bool = False  # to a worker that has fewer islands


class Archipelago:
    """Engine of ``Islands``: a construction is what some islands report, or in lock step all of them.

    Parameters
    ----------
    instance : distances, for lengths and merging.
    cargo : pickled (colony, problem), to be sent to workers.
    rules : validated.
    n_islands : >= 1, or None for one a worker.

    Raises
    ------
    ConnectionError : by ``construct``, when the scheduler is gone.
    """

    def __init__(self, instance: Instance, cargo: bytes, rules: Rules, n_islands: int | None) -> None:
        self.instance = instance
        self.rules = rules
        self.places = [Place(number) for number in range(n_islands or 0)]
        self.kind: Kind = "cpu"
        self.patience = 0  # of a colony, in its tours
        self.mean = math.nan  # of the objectives of the islands that reported last
        self.busy = 0.0  # seconds that the islands have spent in rounds, together
        self.target: float | None = None  # objective at which a round ends
        self._cargo = cargo
        self._run = uuid.uuid4().hex
        self._sitting = ""
        self._cluster: Cluster | None = None
        self._news: queue.SimpleQueue[tuple[int, Any]] = queue.SimpleQueue()
        self._looked = -math.inf
        self._lonely = False  # whether it was told that there is no worker
        self._key = 0  # of the run's random numbers
        self._by_objective = False  # whether that is something else than the length
        self._best: Tour | None = None
        self._built = 0
        self._moment: float | None = None
        self._progress, self._pace = math.nan, 0.0
        self._interrupted = False

    @property
    def n_islands(self) -> int:
        """Number of islands; 0 while it is not known how many workers there are."""
        return len(self.places)

    @property
    def values(self) -> list[float]:
        """Objective of each island's best tour, as last reported."""
        return [place.value for place in self.places]

    # ---- where islands are

    @property
    def is_open(self) -> bool:
        """Whether there is a cluster to search on."""
        return self._cluster is not None

    def open(self, cluster: Cluster) -> None:
        """Take a cluster and prepare the islands there: what is compiled and built now costs the search no time."""
        self._cluster = cluster
        self.places = self.places or [Place(number) for number in range(len(cluster.workers))]
        self._close = weakref.finalize(self, cluster.close)
        self._sitting = uuid.uuid4().hex
        self._news = queue.SimpleQueue()
        try:
            for place in self.places:
                place.sent, place.moving, place.known = False, False, None
                place.fresh = place.state is None
                self._settle(place)
            for place in self.places:
                self._send(place, self._order(place, 0))
            while any(place.order is not None for place in self.places):
                self._wait(None)
        except BaseException:
            self.rest()
            raise

    def rest(self) -> None:
        """Leave the cluster: rounds on their way end, and what was started for this run is closed."""
        cluster, self._cluster = self._cluster, None
        if cluster is None:
            return
        try:
            if cluster.client.status == "running" and not cluster.is_own:
                self._leave(cluster.client)
        finally:
            self._close()
            for place in self.places:
                place.future, place.order, place.worker = None, None, ""

    def _leave(self, client: Any) -> None:
        """Let workers that live on end their rounds soon, and drop the islands."""
        telling = threading.Thread(
            target=client.run, args=(island.stop, self._sitting), kwargs={"on_error": "ignore"}, daemon=True
        )
        telling.start()
        telling.join(TELLING)  # a worker that does not answer keeps nobody
        for place in self.places:
            if place.sent:
                self._drop(client, place)

    def _drop(self, client: Any, place: Place) -> None:
        """Behind whatever the worker is doing."""
        task = client.submit(island.forget, self._run, place.number, workers=[place.worker], pure=False)
        dask().fire_and_forget(task)

    def _load(self, worker: str, without: Place) -> float:
        """Islands for each thread of a worker."""
        assert self._cluster is not None
        islands = sum(place.worker == worker for place in self.places if place is not without)
        return islands / max(1, self._cluster.workers[worker])

    def _settle(self, place: Place) -> None:
        """Choose the worker with the fewest islands, "" where there is none."""
        assert self._cluster is not None
        place.worker = min(self._cluster.workers, key=lambda one: self._load(one, place), default="")
        place.sent = False

    def _is_crowded(self, place: Place) -> bool:
        """Whether an island would do better on another worker, such as one that has just come."""
        assert self._cluster is not None
        workers = self._cluster.workers
        if place.worker not in workers:
            return False
        here = self._load(place.worker, place)
        return any(self._load(one, place) + 0.5 / max(1, workers[one]) < here for one in workers)

    # ---- one generation

    def begin(self, key: int) -> None:
        """Begin a run, whose random numbers follow from ``key`` in [0, 2**64)."""
        self._key = key

    def expect(self, progress: float, generation: int, seconds: float) -> None:
        """Be told how far the run is, in [0, 1] or NaN, after so many generations and seconds.

        The islands reckon that what is left goes on likewise.
        """
        self._progress, self._pace = progress, 0.0
        if math.isnan(progress):
            return
        if self.rules.deterministic:
            if generation > 0:
                self._pace = progress / (generation * self.rules.exchange_every)
        elif self._moment is not None:
            self._pace = (1.0 - progress) / max(1e-3, self._moment - time.monotonic())
        elif seconds > 0.0:
            self._pace = progress / seconds

    def stop_at(self, moment: float | None) -> None:
        """Let constructions end soon after ``time.monotonic()`` shows ``moment``; None: as late as they like."""
        self._moment = moment

    def construct(self) -> NDArray[np.float64]:
        """Wait for reports; return the length (1,) of the best tour so far.

        Raises ConnectionError if the scheduler is gone or no worker was there in all the time, and the error of an
        island that has failed several times in a row.
        """
        self._interrupted = True
        self._built = 0
        reports = self._lock_step() if self.rules.deterministic else self._as_they_come()
        if reports:
            self.mean = float(np.mean([report["value"] for report in reports]))
        self._interrupted = False
        assert self._best is not None
        return np.array([self.instance.tour_length(self._best.cities)])

    def _lock_step(self) -> list[Report]:
        """One round of every island; what they bring counts in the islands' order."""
        self._send_those_at_rest()
        reports: list[Report] = []
        while any(place.order is not None for place in self.places) and not self._is_late():
            reports += self._wait(self._latest())
        reports.sort(key=lambda one: one["island"])
        for report in reports:
            self._note(report)
            self._learn(report)
        return reports

    def _as_they_come(self) -> list[Report]:
        """The rounds that have ended, at least one; their islands go on at once."""
        reports: list[Report] = []
        while not self._is_late():
            if self._has_time():
                self._send_those_at_rest()
            if reports and self._has_time() and self._news.empty():
                break
            if all(place.order is None for place in self.places):  # there is no time for another round
                assert self._moment is not None
                time.sleep(max(0.0, self._moment - time.monotonic()))
                break
            for report in self._wait(self._latest()):
                self._note(report)
                if self._best is not None and self._has_time():
                    # merging may take a while: the island goes on with what the others had before
                    place = self.places[report["island"]]
                    self._send(place, self._next_order(place))
                self._learn(report)
                reports.append(report)
        return reports

    def _has_time(self) -> bool:
        return self._moment is None or self._best is None or self._moment - time.monotonic() >= SHORTEST

    def _latest(self) -> float | None:
        """Until when reports are waited for; there must be one."""
        return None if self._moment is None or self._best is None else self._moment + GRACE

    def _is_late(self) -> bool:
        if self._best is None:
            if self._lonely and self._moment is not None and time.monotonic() >= self._moment:
                raise ConnectionError("the time is over, and there was no worker to build a tour")
            return False
        return self._moment is not None and time.monotonic() >= self._moment + GRACE

    # ---- orders

    def _send_those_at_rest(self) -> None:
        for place in self.places:
            if place.order is None:
                self._send(place, self._next_order(place))

    def _next_order(self, place: Place) -> Order:
        assert self._cluster is not None
        if self._is_crowded(place) and place.state is not None:
            _log.info("islands: island %d moves away from %s", place.number, place.worker)
            self._drop(self._cluster.client, place)
            self._settle(place)
        place.moving = self._is_crowded(place)
        order = self._order(place, int(self.rules.exchange_every) if self.rules.deterministic else None)
        order["guests"] += [self._guest(place, tour) for tour in (*place.guests, *self._from_others(place))]
        place.guests = []
        return order

    def _order(self, place: Place, generations: int | None) -> Order:
        return {
            "version": __version__,
            "run": self._run,
            "sitting": self._sitting,
            "island": place.number,
            "neighbours": sum(host(one.worker) == host(place.worker) for one in self.places),
            "round": place.round,
            "seed": None,
            "state": None,
            "base": None,
            "guests": [],
            "generations": generations,
            "seconds": None if self.rules.deterministic else self.rules.exchange_every,
            "left": None if self._moment is None else max(0.0, self._moment - MARGIN - time.monotonic()),
            "progress": self._progress,
            "pace": self._pace,
            "target": self.target,
            "export": self.rules.deterministic or place.moving,
        }

    def _guest(self, place: Place, tour: Tour) -> Guest:
        return {"parcel": pack(tour.cities, place.tour), "value": tour.value}

    def _from_others(self, place: Place) -> list[Tour]:
        """What an island is sent by the topology, unless it knows it."""
        if self.rules.topology == "ring":
            before = self.places[place.number - 1]
            tour = None if before.tour is None else Tour(before.tour, before.value)
        else:
            tour = self._best if self.rules.topology == "all" else None
        if tour is None or tour.cities is place.known:
            return []
        if place.tour is not None and np.array_equal(tour.cities, place.tour):
            return []
        place.known = tour.cities
        return [tour]

    def _send(self, place: Place, order: Order) -> None:
        """Submit a round to the island's worker; one that has not got the island is sent it too."""
        assert self._cluster is not None
        place.order, place.future = order, None
        if not place.worker:
            return  # until one is there
        if place.fresh and order["generations"] != 0 and order["seed"] is None:
            place.lives += 1  # a stream that began again would make the same search again
            order["seed"] = [self._key, place.number, place.lives]
            if place.tour is not None:
                order["guests"].insert(0, self._guest(place, Tour(place.tour, place.value)))
        client, cargo = self._cluster.client, None
        if not place.sent:
            order["state"], order["base"] = place.state, place.tour
            cargo = client.scatter(self._cargo, workers=[place.worker], hash=False)
            place.sent = True
        place.future = client.submit(
            island.play,
            order,
            cargo,
            workers=[place.worker],
            pure=False,
            key=f"island-{place.number}-{uuid.uuid4().hex}",
        )
        place.future.add_done_callback(_Post(self._news, place.number))

    def _send_again(self, place: Place) -> None:
        """The round on its way is lost: the island begins it again, as it was before."""
        assert place.order is not None
        place.sent = False
        place.fresh = place.state is None
        self._send(place, place.order)

    # ---- reports

    def _wait(self, until: float | None) -> list[Report]:
        """Wait for a report for a moment, and look after the workers."""
        if time.monotonic() - self._looked >= LOOK:
            self._look()
        timeout = LOOK if until is None else min(LOOK, max(0.0, until - time.monotonic()))
        try:
            number, future = self._news.get(timeout=timeout)
        except queue.Empty:
            return []
        place = self.places[number]
        if future is not place.future:
            return []  # of a round that was given up
        try:
            report: Report = future.result(timeout=FETCH)
        except Exception as error:
            self._failed(place, error)
            return []
        if report["missing"]:
            self._send_again(place)
            return []
        assert place.order is not None
        prepared = place.order["generations"] == 0
        place.order = place.future = None
        self.kind, self.patience = report["kind"], report["patience"]
        if prepared:
            return []
        place.failures = 0
        place.fresh = False
        return [report]

    def _look(self) -> None:
        """Find islands whose workers are gone other ones."""
        assert self._cluster is not None
        self._looked = time.monotonic()
        workers = self._cluster.look()
        if not workers and not self._lonely:
            _log.warning("islands: there is no worker; the run waits for one")
        self._lonely = not workers
        for place in self.places:
            if place.worker in workers or (not place.worker and not workers):
                continue
            lost, place.sent = place.worker, False
            self._settle(place)
            if lost:
                _log.warning(
                    "islands: worker %s is gone; island %d goes on from round %d %s",
                    lost,
                    place.number,
                    place.round,
                    f"on {place.worker}" if place.worker else "when there is a worker",
                )
            if place.order is not None:
                self._send_again(place)

    def _failed(self, place: Place, error: Exception) -> None:
        """A round has raised, or its report is lost: try again, some times."""
        assert self._cluster is not None
        workers = self._cluster.look()  # raises if the scheduler is gone
        if place.worker not in workers:
            self._look()
            return
        place.failures += 1
        assert place.order is not None
        if place.order["generations"] == 0 or place.failures > MOST_FAILURES:
            raise error
        _log.warning(
            "islands: island %d has failed on %s and goes on from round %d: %s: %s",
            place.number,
            place.worker,
            place.round,
            type(error).__name__,
            error,
        )
        self._send_again(place)

    def _note(self, report: Report) -> None:
        """Take down what an island is now."""
        place = self.places[report["island"]]
        assert report["parcel"] is not None
        place.tour = unpack(report["parcel"], place.tour, self.instance.n)
        place.value = report["value"]
        place.state = report["state"]
        place.round += 1
        self._built += report["built"]
        self.busy += report["seconds"]

    def _learn(self, report: Report) -> None:
        """Let the best tour take over what the island has found; afterwards the others are sent it."""
        place = self.places[report["island"]]
        assert place.tour is not None
        if report["other_objective"] and not self._by_objective:
            self._by_objective, self._best = True, None  # which was found by lengths
            for other in self.places:
                if other.tour is not None:
                    self._welcome(Tour(other.tour, other.value))
        self._welcome(Tour(place.tour, place.value))

    def _welcome(self, tour: Tour) -> None:
        """Let the best tour take over what is better in another one, or be it."""
        if self._best is None:
            self._best = tour
        elif self._by_objective or not self.instance.symmetric:
            self._best = min(self._best, tour, key=lambda one: one.value)
        elif not np.array_equal(tour.cities, self._best.cities):
            cities, _ = merge(self._best.cities, tour.cities, self.instance.distance)
            merged = Tour(cities, self.instance.tour_length(cities))
            self._best = min(self._best, tour, merged, key=lambda one: one.value)

    # ---- what an algorithm asks its engine

    @property
    def n_built(self) -> int:
        """Tours that the islands have built in the rounds of the last construction."""
        return self._built

    def tours(self, ants: ArrayLike) -> NDArray[np.int32]:
        """Copy the best tour for each of ``ants``, which are all 0."""
        assert self._best is not None
        return self._best.cities[None][np.asarray(ants, dtype=np.intp)]

    def accept(self, tours: ArrayLike, values: ArrayLike) -> None:
        """Send tours (m, n) to the islands, the best to all and the others to one each; see ``Accepts``."""
        rows = immigrants.in_order(tours, values, self.instance.n)
        ordered = np.sort(np.asarray(values, np.float64))
        given = [Tour(row, float(value)) for row, value in zip(rows, ordered, strict=True)]
        for tour in given:
            self._welcome(tour)
        for place in self.places:
            place.guests += [
                tour for i, tour in enumerate(given) if i % self.n_islands == place.number or i == 0
            ]

    def rescued(self) -> tuple[NDArray[np.int32], float] | None:
        """Return the best tour and its length if the last ``construct`` was interrupted."""
        if not self._interrupted or self._best is None:
            return None
        return self._best.cities.copy(), self.instance.tour_length(self._best.cities)

    def export_state(self) -> State:
        """The islands after their last rounds: tours and, in lock step, everything that they are."""
        n = self.instance.n
        none = np.zeros(n, np.int32)
        best = self._best or Tour(none, math.inf)
        state: State = {
            "key": np.array([self._key], np.uint64),
            "best": best.cities[None],
            "tours": np.array([none if one.tour is None else one.tour for one in self.places]),
            "values": np.array([best.value, *self.values]),
            "rounds": np.array([[one.round, one.lives] for one in self.places], np.int64),
            "by_objective": np.array([self._by_objective], np.int64),
        }
        for place in self.places:
            if place.state is not None and self.rules.deterministic:
                state[f"island {place.number}"] = np.frombuffer(place.state, np.uint8)
        return state

    def import_state(self, state: State) -> None:
        """Continue from an exported state of as many islands on the same instance; before ``open``."""
        n, k = self.instance.n, self.n_islands
        key = stored(state, "key", (1,))
        best = stored_tours(state, "best", 1, n)[0]
        tours = stored_tours(state, "tours", k, n)
        values = checks.finite("state['values']", stored(state, "values", (k + 1,)), infinity=True)
        rounds = stored_integers(state, "rounds", (k, 2), 0, 2**62, np.int64)
        by_objective = stored_integers(state, "by_objective", (1,), 0, 1)
        self._key, self._by_objective = int(key[0]), bool(by_objective[0])
        self._best = Tour(best, float(values[0])) if best.any() else None
        for place in self.places:
            number = place.number
            place.tour = tours[number] if tours[number].any() else None
            place.value = float(values[number + 1])
            place.round, place.lives = int(rounds[number, 0]), int(rounds[number, 1])
            everything = state.get(f"island {number}")
            place.state = None if everything is None else np.asarray(everything, np.uint8).tobytes()


class _Post:
    """Told by Dask's own thread that a round has ended."""

    def __init__(self, news: queue.SimpleQueue[tuple[int, Any]], number: int) -> None:
        self.news = news
        self.number = number

    def __call__(self, future: Any) -> None:
        self.news.put((self.number, future))
