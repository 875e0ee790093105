"""Islands: copies of an algorithm on several GPUs or hosts, as one pymoo algorithm."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco import checks
from pymoo_gpuaco.algorithms.ppls import FrontAlgorithm
from pymoo_gpuaco.algorithms.termination import ColonyTermination
from pymoo_gpuaco.algorithms.tour import TourAlgorithm
from pymoo_gpuaco.islands.archipelago import Archipelago, FrontArchipelago
from pymoo_gpuaco.islands.cluster import Cluster, Connection, layout, pickled
from pymoo_gpuaco.islands.island import TOPOLOGIES
from pymoo_gpuaco.problems.multi_objective import as_multi_objective

SECONDS, GENERATIONS = 1.0, 10  # migration interval by default

_log = logging.getLogger("pymoo_gpuaco")


@dataclass(eq=False, repr=False)
class Islands(TourAlgorithm):
    """Copies of an algorithm that search one problem in parallel, each on a GPU or a share of the cores.

    After each migration interval an island reports its best tour and sends migrants to others. Islands are actors
    of Dask, on this machine or on a cluster. A generation collects the reports since the last one;
    ``evaluator.n_eval`` counts the tours of all islands.

    Parameters
    ----------
    algorithm : any algorithm of this package, such as ``GPUMemetic()``. Termination, seed and similar arguments belong
        to ``Islands``. The islands of ``GPU2PPLS()`` divide the front among them; the result is the front of all, at
        most ``archive_size`` tours.
    n_islands : >= 1. None: one for each worker of ``client``; without a client one for each GPU, or without a GPU one
        for every 4 cores, at least two with two cores or more.
    exchange_every : migration interval in seconds, in (0, 3600], default 1; with ``deterministic`` in generations,
        >= 1, default 10.
    topology : sources of the migrants of an island: "all" islands; "ring", the island before it; "none".
    deterministic : False: every island continues as soon as it has reported. True: reproducible mode; all islands wait
        for the slowest, and the same seed and number of islands give the same tours on any cluster.
    client : a ``dask.distributed.Client``, or the address of a scheduler. None starts one worker for each GPU, or for
        each island, on this machine, and ends them after the run.

    All arguments of ``PermutationAlgorithm`` but ``backend`` and ``device`` are also available.

    A run raises ImportError without Dask; local clusters also need cryptography. TimeoutError if no worker joins
    within a minute or within the time limit; ConnectionError if the scheduler or all workers disappear before the first
    tour. If a tour exists, the run ends with it, and can continue after ``client`` and ``termination`` are set.
    """

    algorithm: TourAlgorithm
    n_islands: int | None = None
    _: KW_ONLY
    exchange_every: float | None = None
    topology: str = "all"
    deterministic: bool = False
    client: Any = None
    # not arguments: those of ``algorithm`` count
    backend: str = field(default="auto", init=False)
    device: int = field(default=0, init=False)

    def __new__(cls, algorithm: Any = None, *args: Any, **kwargs: Any) -> Islands:
        """Choose the class by the number of objectives."""
        of_fronts = cls is Islands and isinstance(algorithm, FrontAlgorithm)
        return super().__new__(FrontIslands if of_fronts else cls, algorithm, *args, **kwargs)

    def _check(self) -> None:
        super()._check()
        algorithm = self.algorithm
        if not isinstance(algorithm, TourAlgorithm) or isinstance(algorithm, Islands):
            raise TypeError(f"algorithm must be one of this package, such as GPUMemetic(), got {algorithm!r}")
        if isinstance(algorithm, FrontAlgorithm) != isinstance(self, FrontAlgorithm):
            raise TypeError(f"{type(self).__name__} has no islands of {algorithm!r}: use Islands(..)")
        if algorithm.problem is not None:
            raise ValueError("algorithm must not be set up: create a new one for Islands")
        given = [name for name in ("termination", "seed", "archive") if getattr(algorithm, name) is not None]
        given += [name for name in ("save_history", "verbose") if getattr(algorithm, name)]
        if given:
            raise ValueError(f"algorithm must not have {', '.join(given)}: pass to Islands instead")
        if algorithm.device != 0:
            raise ValueError(
                f"device of algorithm must be 0, got {algorithm.device}: each worker has its GPU"
            )
        checks.optional_integer("n_islands", self.n_islands, 1)
        checks.choice("topology", self.topology, TOPOLOGIES)
        checks.flag("deterministic", self.deterministic)
        self._interval()
        if self.client is not None and not isinstance(self.client, str | Connection):
            self.client = Connection(self.client)

    def _interval(self) -> float:
        """Return the migration interval in seconds, or in generations of the reproducible mode."""
        if self.exchange_every is None:
            return GENERATIONS if self.deterministic else SECONDS
        if self.deterministic:
            return checks.integer("exchange_every", self.exchange_every, 1)
        return checks.real("exchange_every", self.exchange_every, 0.0, 3600.0, open_low=True)

    def _candidates(self) -> tuple[int, str]:
        return 1, "nearest"  # the client only measures tours

    @property
    def may_stagnate(self) -> bool:
        """True if all islands have reported that they may stagnate."""
        return all(member.may_stagnate for member in self.engine.members)

    def _engine_maker(self) -> Callable[[Any], Archipelago]:
        return partial(
            self._archipelago(),
            algorithm=pickled((self.algorithm, self.problem)),
            key=self._key,
            rules=(self._interval(), self.topology, self.deterministic),
            n_islands=self.n_islands,
        )

    def _archipelago(self) -> Callable[..., Archipelago]:
        return Archipelago

    def _adopt(self, engine: Archipelago) -> None:
        """Record nothing: the number of islands is known only after `prepare`."""

    def _setup(self, problem: Any, **kwargs: Any) -> None:
        self._key = self._draw_key()  # of the random numbers of all islands
        super()._setup(problem, **kwargs)
        self._setup_seconds = 0.0  # start and compilation of workers do not count as time of the run

    def prepare(self) -> None:
        """Find workers and set up the islands on them, unless they are set up.

        They are not set up before a run, after it, after an interrupt, and in a copy or a run from a file.
        """
        engine = self.engine
        if engine.cluster is not None:
            return
        if self.client is None:
            _, workers, gpus = layout(engine.n_islands, self.algorithm.backend)
            engine.open(Cluster(None, workers, gpus))
        else:
            self._check()  # a client may have been set since
            engine.open(Cluster(self.client, limit=self._seconds_left()))
        self._size = engine.n_islands

    # ---- the run

    def next(self) -> None:
        """Run one generation; an interrupt or an error releases the workers."""
        try:
            super().next()
        except BaseException:
            self._finalize()
            raise

    def _finalize(self) -> None:
        if self._engine is not None:
            self._engine.close()

    def _set_deadline(self) -> None:
        super()._set_deadline()
        try:
            self.prepare()
        except ConnectionError as error:
            self.engine.lost = error  # a run from a copy or a file ends with its tours

    def _generation(self) -> None:
        """Build the tours of a generation; end the run if the scheduler or all workers are lost."""
        engine, termination = self.engine, self.termination
        engine.target = None
        if isinstance(termination, ColonyTermination) and termination.single_objective:
            engine.target = termination.target_for(self.problem)
        engine.progress = self._progress()
        super()._generation()
        if engine.lost is not None:
            _log.warning("pymoo_gpuaco: %s; the run ends with the best tour so far", engine.lost)
            termination.force_termination = True
            if isinstance(termination, ColonyTermination):
                termination.reason = f"lost connection: {engine.lost}"

    def _build(self, key: int) -> tuple[NDArray[np.int32], NDArray[np.float64], int]:
        tours, lengths = self.engine.construct()
        self.iteration_mean = float(lengths.mean())
        return tours, lengths, max(len(tours), self.engine.n_built)

    def _response_to_custom_objective(self) -> str:
        return "Islands exchange the tours that the objective calls best"


@dataclass(eq=False, repr=False)
class FrontIslands(FrontAlgorithm, Islands):
    """``Islands`` of ``GPU2PPLS``, see `Islands`."""

    def _archipelago(self) -> Callable[..., Archipelago]:
        size = self.algorithm.size_of(as_multi_objective(self.problem).n_obj)
        return partial(FrontArchipelago, size=size)
