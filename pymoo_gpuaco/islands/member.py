"""One island in the records of the process that leads the run."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.islands.messages import Migrant, Order, Task


class Tour(NamedTuple):
    """A tour and its objective."""

    cities: NDArray[np.int32]  # (n,)
    value: float

    def as_migrant(self) -> Migrant:
        """Return the tour as a message."""
        return {"cities": self.cities, "value": self.value}


@dataclass
class Member:
    """The record of one island: its last report, its worker, and its present round."""

    number: int
    # as last reported
    round: int = 0
    best: Tour | None = None
    state: bytes | None = None  # pickled colony after its last round, where the order asked for it
    # its meetings with others, see ``Meeting``
    meeting: int | None = None  # None where it has no tours to share
    # (m, n) its tours when all of its annealing was over, the best first
    tours: NDArray[np.int32] | None = None
    waits_until: float = 0.0  # for others, by time.monotonic()
    # tours from other islands or from outside
    migrants: list[Tour] = field(default_factory=list)  # to be sent with the next round
    last_sent: NDArray[np.int32] | None = None
    # streams of random numbers that it has begun, and whether the next round begins one
    streams: int = 0
    needs_stream: bool = True
    # on a worker
    worker: str = ""  # address, "" where it is on none
    is_on_worker: bool = False  # whether the worker was sent the island
    is_moving: bool = False  # to a worker that has fewer islands
    order: Order | None = None  # of the round on its way, or waiting for a worker
    future: Any = None
    failures: int = 0  # in a row

    def begun_again(self, task: Task) -> Task:
        """Return the task of an island that begins without its colony's state: its best tour is among the migrants."""
        if self.best is None:
            return task
        return {**task, "migrants": [self.best.as_migrant(), *task["migrants"]]}

    @property
    def value(self) -> float:
        """Objective of its best tour."""
        return math.inf if self.best is None else self.best.value
