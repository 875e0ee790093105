"""Messages between the process that leads a run and its workers.

Messages are dictionaries of numbers, strings, arrays and bytes, so that two versions of this package can notice that
they differ before anything is unpickled. An order says how long to search and brings tours of other islands;
its report brings the island's best tour, or all of them where they are to meet others, and what was built. Between
rounds nothing is sent.
"""

from __future__ import annotations

from typing import TypedDict

import numpy as np
from numpy.typing import NDArray


class Migrant(TypedDict):
    """A tour from another island."""

    cities: NDArray[np.int32]  # (n,)
    value: float  # objective


class Task(TypedDict):
    """One round of an island: how long to search, and with what."""

    key: int  # of the run's random numbers, in [0, 2**64)
    stream: int | None  # number of the island's stream of random numbers, where one begins
    migrants: list[Migrant]
    shares: bool  # the tours of a colony that has several meet those of other islands, see ``Meets``
    # (e, n) tours of other islands: for the meeting that the island has reported, or what is new to their fronts
    mates: NDArray[np.int32]
    parts: int  # islands that divide a front between them; 1 where each looks at the whole
    generations: int | None  # after which the round ends, 0 to prepare alone
    seconds: float | None  # after which no generation begins
    left: float | None  # seconds after which a generation is cut short: the run's time is over
    progress: float  # of the whole run, in [0, 1] or NaN
    pace: float  # how much progress a second adds, or a generation where ``seconds`` is None
    target: float | None  # objective at which the round ends
    export: bool  # report everything that the island is


class Order(Task):
    """A task, and the names by which a worker finds the island."""

    version: str
    run: str
    session: str  # name by which rounds are stopped
    island: int
    neighbours: int  # islands on this host, itself among them
    round: int  # the last that the island has finished


class Start(TypedDict):
    """The start of an island on a worker; it is sent beside the order, as it may be large."""

    colony: bytes  # pickled (colony, problem)
    state: bytes | None  # pickled colony of an island that another worker had


class Report(TypedDict):
    """The result of a round."""

    island: int
    kind: str  # of engine
    patience: int  # see ``TourAlgorithm.patience``
    cities: NDArray[np.int32] | None  # (n,) best tour so far, of one objective
    value: float  # its objective, or how many tours the island's front has
    other_objective: bool  # whether that is something else than the length
    built: int  # tours of this round
    generations: int
    seconds: float  # that the round took on the worker
    meeting: int | None  # see ``Meeting``; None where its colony has no tours to share
    # (m, n) all its tours, the best first, where they are to meet all of others; of a front those that are new
    tours: NDArray[np.int32] | None
    sums: int  # weighted sums that it has solved, of several objectives
    state: bytes | None
