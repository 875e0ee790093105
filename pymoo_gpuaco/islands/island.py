"""An island on its worker: a colony that stays in memory between rounds."""

from __future__ import annotations

import math
import pickle
import threading
import time
from collections.abc import Container
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pymoo.core.population import Population

from pymoo_gpuaco.algorithms.termination import ColonyTermination
from pymoo_gpuaco.algorithms.told import canonical
from pymoo_gpuaco.backends import Meets
from pymoo_gpuaco.islands.messages import Order, Report
from pymoo_gpuaco.islands.topology import MOST_MATES, distinct
from pymoo_gpuaco.search.meeting import AFTER_ANNEALING, Meeting

_AWAITED = (Meeting.CYCLE, *AFTER_ANNEALING)


class RoundTermination(ColonyTermination):
    """Gives an island's colony the progress of the whole run; a round never ends a colony's run."""

    of_one_length = False

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

    def __init__(self, colony: Any, problem: Any, state: bytes | None, round_number: int) -> None:
        # a worker of several threads may start a round while another one ends
        self.lock = threading.Lock()
        self.round = round_number
        self.used = time.monotonic()
        self.problem = problem
        if state is None:
            colony.setup(problem, termination=RoundTermination(), seed=0)
            self.colony = colony
        else:
            self._restore(state)
        _ = self.colony.engine  # built here, before the round's time begins

    def search(self, order: Order, stopped: Container[str]) -> Report:
        """Run a round; it ends early once the order's session is among ``stopped``."""
        started = time.monotonic()
        colony = self.colony
        if order["stream"] is not None:
            seed = [order["key"], order["island"], order["stream"]]
            colony.random_state = np.random.default_rng(np.random.SeedSequence(seed))
        termination = colony.termination
        termination.until = math.inf if order["left"] is None else started + order["left"]
        before = colony.evaluator.n_eval
        self._meet(order)
        migrants = self._migrants(order)
        generations = 0
        while not self._is_over(order, started, generations, stopped):
            steps = generations if order["seconds"] is None else time.monotonic() - started
            progress = order["progress"] + order["pace"] * steps
            termination.spent = 1.0 if progress > 1.0 else progress  # NaN, for unknown, stays
            tours = colony.ask()
            colony.evaluator.eval(self.problem, tours, algorithm=colony)
            if migrants is not None:
                tours, migrants = Population.merge(tours, migrants), None
            colony.advance(
                infills=tours
            )  # what ``tell`` returns besides takes long to put together for a front
            generations += 1
        if order["generations"] != 0:
            self.round += 1
        self.used = time.monotonic()
        return self._report(order, generations, colony.evaluator.n_eval - before, self.used - started)

    def _meet(self, order: Order) -> None:
        """Let the colony's tours meet those that the order brings, where they wait for them."""
        engine = self.colony.engine
        if not isinstance(engine, Meets):
            return
        engine.share(order["shares"])
        if order["generations"] != 0 and self._meeting() in _AWAITED:
            self.colony._limit_time()
            engine.meet(order["mates"], self.colony._draw_key())

    def _meeting(self) -> Meeting | None:
        """Where the colony is among its meetings with others; None where it has no tours to share."""
        engine = self.colony.engine
        return engine.meeting if isinstance(engine, Meets) else None

    def _migrants(self, order: Order) -> Population | None:
        if not order["migrants"]:
            return None
        rows = np.array([migrant["cities"] for migrant in order["migrants"]], np.int64)
        values = np.array([[migrant["value"]] for migrant in order["migrants"]])
        return Population.new("X", rows, "F", values)

    def _is_over(self, order: Order, started: float, generations: int, stopped: Container[str]) -> bool:
        if generations == order["generations"]:
            return True
        if generations == 0:
            return False  # a round has at least one generation
        now = time.monotonic()
        return (
            order["session"] in stopped
            or self._meeting() in _AWAITED
            or (order["seconds"] is not None and now - started >= order["seconds"])
            or (order["left"] is not None and now - started >= order["left"])
            or (order["target"] is not None and self._value() <= order["target"])
        )

    def _value(self) -> float:
        return math.inf if self.colony.opt is None else float(self.colony.opt[0].F[0])

    def _report(self, order: Order, generations: int, built: int, seconds: float) -> Report:
        colony, meeting = self.colony, self._meeting()
        return {
            "island": order["island"],
            "kind": colony.engine.kind,
            "patience": colony.patience,
            "cities": None if colony.opt is None else np.asarray(colony.opt[0].X, np.int32),
            "value": self._value(),
            "other_objective": colony._other_objective,
            "built": int(built),
            "generations": generations,
            "seconds": seconds,
            "meeting": None if meeting is None else int(meeting),
            "tours": self._tours_to_tell(meeting),
            "sums": 0,
            "state": self._state() if order["export"] else None,
        }

    def _tours_to_tell(self, meeting: Meeting | None) -> NDArray[np.int32] | None:
        """Tours (m, n) that are to meet those of others."""
        if meeting not in AFTER_ANNEALING:
            return None
        colony = self.colony
        rows = canonical(
            colony.engine.best_tours(MOST_MATES)[0], colony.instance.symmetric, colony.instance.demands
        )
        return distinct(rows.astype(np.int32))  # the shortest first

    def _state(self) -> bytes:
        """Pickle the colony without the problem, which every worker has."""
        colony = self.colony
        colony.problem = None
        try:
            return pickle.dumps(colony)
        finally:
            colony.problem = self.problem

    def _restore(self, state: bytes) -> None:
        self.colony = pickle.loads(state)
        self.colony.problem = self.problem
