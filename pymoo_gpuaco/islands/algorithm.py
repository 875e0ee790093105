"""Islands: several colonies on several GPUs or hosts, as one pymoo algorithm."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pymoo.util.display.output import Output

from pymoo_gpuaco import checks
from pymoo_gpuaco.algorithms.base import TourAlgorithm
from pymoo_gpuaco.algorithms.front_algorithm import FrontAlgorithm
from pymoo_gpuaco.algorithms.on_device import EngineAlgorithm
from pymoo_gpuaco.algorithms.termination import ColonyTermination
from pymoo_gpuaco.algorithms.told import Tours
from pymoo_gpuaco.islands.archipelago import Archipelago
from pymoo_gpuaco.islands.cluster import Cluster
from pymoo_gpuaco.islands.connection import Connection, pickled
from pymoo_gpuaco.islands.leader import Leader, Rules
from pymoo_gpuaco.islands.local_workers import layout
from pymoo_gpuaco.islands.output import IslandsOutput
from pymoo_gpuaco.islands.topology import TOPOLOGIES

SECONDS, GENERATIONS = 1.0, 10  # a round


@dataclass(eq=False, repr=False)
class Islands(TourAlgorithm):
    """Colonies that search one problem side by side, each on a GPU or a share of the cores, and exchange tours.

    Every island is a colony with random numbers of its own. Islands of focused ants share one population: each anneals
    its part, and when all annealing is over evolves it among the tours of the others. Other colonies report their best
    tour after each round and receive one of the others', which replaces their longest. Islands
    are tasks of Dask, on this machine or on a cluster. A generation collects the reports since the last one;
    ``evaluator.n_eval`` counts the tours of all islands.

    Parameters
    ----------
    colony : what an island is: any algorithm of this package, such as ``GPUMMAS()``. Termination, seed and the like are
        given to ``Islands``. Of ``GPU2PPLS()``, each island looks at a part of the front, and sends the others what is
        new to it; the result is the front of all, at most ``archive_size`` tours.
    n_islands : >= 1. None: one for each worker of ``client``; without a client one for each GPU, or on a machine
        without one for every 4 cores, and two where there are two cores.
    exchange_every : seconds of a round, in (0, 3600], default 1; with ``deterministic`` generations of a round, >= 1,
        default 10.
    topology : whose tours an island receives: "all", those of all islands; "ring", those of the island before it;
        "none".
    deterministic : False: every island continues as soon as it has reported, but waits a little where tours of all
        meet. True: all wait for the slowest, and the same seed and number of islands give the same tours wherever they
        run.
    client : a ``dask.distributed.Client``, or the address of a scheduler. None starts one worker for each GPU, or for
        each island, on this machine, and ends them after the run.

    All arguments of ``TourAlgorithm`` besides.

    Raises
    ------
    ImportError : where Dask is not installed, or on this machine cryptography, when a run begins.
    TimeoutError : when no worker joins within a minute.
    ConnectionError : when the scheduler is gone, or nobody is left to report and the run has no tour or no end in time.
        The best tour is in ``opt``, and the run goes on where ``client`` is set to another one.
    """

    colony: EngineAlgorithm | FrontAlgorithm
    n_islands: int | None = None
    _: KW_ONLY
    exchange_every: float | None = None
    topology: str = "all"
    deterministic: bool = False
    client: Any = None

    #: what islands of an algorithm for several objectives are
    of_fronts: ClassVar[type[Islands]]

    def __new__(cls, colony: Any = None, *args: Any, **kwargs: Any) -> Islands:
        """Islands of an algorithm for several objectives are of a class that has more of it."""
        of_fronts = cls is Islands and isinstance(colony, FrontAlgorithm)
        return super().__new__(cls.of_fronts if of_fronts else cls, colony, *args, **kwargs)

    def _usual_output(self) -> Output:
        return IslandsOutput()

    def _check(self) -> None:
        super()._check()
        _check_colony(self.colony)
        if isinstance(self.colony, FrontAlgorithm) != isinstance(self, FrontAlgorithm):
            kinds = "several objectives" if isinstance(self, FrontAlgorithm) else "one objective"
            raise TypeError(
                f"colony must be an algorithm for {kinds} in {type(self).__name__}, got {self.colony!r}"
            )
        checks.optional_integer("n_islands", self.n_islands, 1)
        checks.choice("topology", self.topology, TOPOLOGIES)
        checks.flag("deterministic", self.deterministic)
        self._round()
        if self.client is not None and not isinstance(self.client, Connection):
            self.client = Connection(self.client)

    def _round(self) -> float:
        """Seconds of a round, or generations."""
        wanted = self.exchange_every
        if self.deterministic:
            return GENERATIONS if wanted is None else checks.integer("exchange_every", wanted, 1)
        if wanted is None:
            return SECONDS
        return checks.real("exchange_every", wanted, 0.0, 3600.0, open_low=True)

    def _candidates(self) -> int:
        return 1  # candidates are the islands' own; here tours are measured and merged

    @property
    def patience(self) -> int:
        """Tours without a shorter one that are no stagnation yet: as many on each island as one colony may need."""
        return int(self.engine.patience) * int(self.engine.n_islands)

    def _maker(self) -> Callable[[Any], Leader]:
        wanted = self._size if self.n_islands is None else self.n_islands
        if wanted is None and self.client is None:
            wanted = layout(None, self.colony.backend).islands
        rules = Rules(self._round(), self.topology, self.deterministic)
        run = pickled((self.colony, self.problem))
        make = self._archipelago()
        return lambda instance: make(instance, run, rules, wanted)

    def _archipelago(self) -> Callable[[Any, bytes, Rules, int | None], Leader]:
        """Return what makes the engine; it holds copies of the arguments."""
        return Archipelago

    def _adopt(self, engine: Leader) -> None:
        """Record nothing: the number of islands is known only after `prepare`."""

    def _setup(self, problem: Any, **kwargs: Any) -> None:
        super()._setup(problem, **kwargs)
        self._setup_seconds = 0.0  # workers start and compile in it, which does not count as time of the run

    def prepare(self) -> None:
        """Find workers and send them the islands, unless they are there already.

        They are not there before a run, after it, after an interrupt, and in a copy or a run from a file.
        """
        engine = self.engine
        if engine.is_open:
            return
        if self.client is None:
            here = layout(engine.n_islands, self.colony.backend)
            engine.open(Cluster(None, here.workers, here.gpus))
        else:
            self._check()  # where a client was set since
            if not self.client.trusted:
                raise ValueError(
                    f"client is {self.client.address}, the scheduler that the file names: set it to that address if "
                    "you trust it, to another client, or to None for workers on this machine"
                )
            engine.open(Cluster(self.client))
        self._size = engine.n_islands

    # ---- the run

    def next(self) -> None:
        """Run one generation. An error or interrupt ends the work on the cluster; the best tour is in ``opt``."""
        try:
            super().next()
        except BaseException as error:
            if isinstance(error, ConnectionError):
                self._rescue()
            self._leave()
            raise

    def _finalize(self) -> None:
        self._leave()

    def _leave(self) -> None:
        if self._engine is not None:
            self._engine.close()

    def _begin(self) -> None:
        if self._other_objective:
            self.engine.best.by_objective = True
        self.engine.begin(self._draw_key())

    def _build(self, key: int) -> tuple[NDArray[np.int32], NDArray[np.float64], int]:
        # the islands' random numbers all follow from the key that the run began with; this one is not used
        self._expect()
        engine = self.engine
        lengths = engine.construct()
        self.iteration_mean = engine.mean
        return engine.tours([0]), lengths, engine.n_built

    def _expect(self) -> None:
        """Tell the islands what is left of the run."""
        self.prepare()
        engine, termination = self.engine, self.termination
        engine.target = None
        if isinstance(termination, ColonyTermination) and termination.of_one_length:
            known = getattr(self.problem, "best_known", None)
            engine.target = known if termination.target is None else termination.target
        engine.expect(self._progress(), int(self.n_iter or 1) - 1, time.time() - (self.start_time or 0.0))

    def _learn(self, told: Tours) -> None:
        """Islands have learnt from their tours themselves."""

    def _accept(self, outside: Tours) -> None:
        self.engine.accept(outside.rows, outside.lengths)

    def _start_from(self, told: Tours) -> None:
        self._accept(told)

    def _answer_to_other_objective(self) -> str:
        return "Islands then exchange the tours that the objective calls best, and do not merge them"


def _check_colony(colony: Any) -> None:
    if not isinstance(colony, (EngineAlgorithm, FrontAlgorithm)) or isinstance(colony, Islands):
        raise TypeError(f"colony must be an algorithm of this package, such as GPUMMAS(), got {colony!r}")
    if colony.problem is not None:
        raise ValueError("colony must be an algorithm that has not been set up: make a new one for Islands")
    told = [name for name in ("termination", "seed", "archive") if getattr(colony, name) is not None]
    told += [name for name in ("save_history", "verbose") if getattr(colony, name)]
    if told:
        raise ValueError(f"colony must leave {', '.join(told)} to Islands, which takes it for all islands")
    if int(colony.device) != 0:
        raise ValueError(
            f"colony must leave device at 0, got {colony.device}: every island sees the GPU of its worker alone"
        )
