"""Memetic search: annealed window search, then edge assembly crossover."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from pymoo.core.variable import get

from pymoo_gpuaco import checks
from pymoo_gpuaco.algorithms.arguments import Count, Number, Word, as_parameters
from pymoo_gpuaco.algorithms.tour import TourAlgorithm
from pymoo_gpuaco.backends import Devices, SearchEngine, make_search
from pymoo_gpuaco.candidates.exact import MOST_CITIES
from pymoo_gpuaco.candidates.listed import ListedInstance
from pymoo_gpuaco.memetic.parameters import MOST_CANDIDATES, MemeticParameters


@dataclass(eq=False, repr=False)
class GPUMemetic(TourAlgorithm):
    """Memetic search for short tours: a population is annealed by window search and recombined; no pheromone.

    Takes every `TSP`: closed tours, `OpenPath`, asymmetric distances, fixed and forbidden edges, precedence. Takes
    other problems too if their objective is the tour length; a custom objective raises ValueError. Up to 12 cities the
    optimum is found at once. ``evaluator.n_eval`` counts tours annealed (once per round) and offspring measured;
    ``engine.n_trials`` counts kicks, or exchanges tried by chains.

    Parameters
    ----------
    population_size : tours that are annealed and recombined, in [1, 1000]. None: by the time limit, the number of
        cities and threads. Without a time limit: one a thread, at least 2; on CUDA the number that occupies the device.
    n_offspring : offspring of a pair of parents in a generation of edge assembly crossover, in [1, 1000].
    candidate_list_size : candidate edges a city, in [4, 8]. None: 8; on the CPU 5 by alpha-nearness, and 7 above 25,000
        cities.
    candidates : selection of candidate edges: "nearest", "quadrant" (some of the nearest in every quadrant), "alpha"
        (least alpha by minimum 1-trees, Helsgaun 2000; symmetric distances, up to 200,000 cities), or "auto": "alpha"
        up to 100,000 cities, otherwise "quadrant".
    initial_temperature : temperature at which each annealing cycle starts, in mean edge lengths of the tour, in
        [0, 100]; 0 accepts no longer tour. None: 0.5 to 1.5 on CUDA (a single tour: 0.7), up to 1.1 on the CPU, by the
        length of the cycle.
    annealing_share : share of annealing in a run of known length, in (0, 1]; the rest is recombination. None: 0.7 for
        populations of 8 tours or more, otherwise 0.97.
    n_elites : best tours of each generation that pymoo evaluates, >= 1. None (default): one.
    device : number of a CUDA device, a list of numbers, or "all". Several devices share the population, or one tour of
        very many cities; without CUDA it has no effect. A run is reproducible on the same number of equal devices.

    All arguments of ``PermutationAlgorithm`` are also available.

    Sources: O. Martin, S. Otto, E. Felten, "Large-step Markov chains for the traveling salesman problem", Complex
    Systems 5 (1991). Y. Nagata, S. Kobayashi, "A powerful genetic algorithm using edge assembly crossover for the
    traveling salesman problem", INFORMS Journal on Computing 25 (2013). M. Held, R. Karp, "The traveling-salesman
    problem and minimum spanning trees", Operations Research 18 (1970). Windows of a good tour: R. Skinderowicz,
    "Improving Ant Colony Optimization efficiency for solving large TSP instances", Applied Soft Computing 120 (2022).
    """

    _aliases: ClassVar[Mapping[str, str]] = {
        **TourAlgorithm._aliases,
        **dict.fromkeys(("pop_size", "n_ants", "n_tours"), "population_size"),
        "n_offsprings": "n_offspring",
        "temperature": "initial_temperature",
    }

    population_size: Count | None = None
    _: KW_ONLY
    n_offspring: Count = MemeticParameters.n_offspring
    candidate_list_size: Count | None = None
    candidates: Word = "auto"
    initial_temperature: Number | None = None
    annealing_share: Number | None = None
    n_elites: Count | None = None
    device: Devices = 0  # type: ignore[assignment]

    _several_devices = True
    _make_engine = staticmethod(make_search)

    def _check(self) -> None:
        super()._check()
        checks.optional_integer("n_elites", get(self.n_elites), 1)
        self._parameters()

    def _parameters(self) -> MemeticParameters:
        return as_parameters(self, MemeticParameters)

    def _adapt_to_custom_objective(self, value: float, length: float) -> None:
        raise ValueError(
            f"GPUMemetic minimises the tour length, but the objective of {type(self.problem).__name__} is not the "
            f"tour length (a tour of length {length:.10g} has F = {value:.10g}): GPUMMAS, GPUACS, GPUAS, GPUEAS, "
            "GPURAS, GPUBWAS, GPUFACO and GPU2OptIHC take any objective"
        )

    def _candidates(self) -> tuple[int, str]:
        k, kind = int(get(self.candidate_list_size) or MOST_CANDIDATES), str(get(self.candidates))
        if self.problem.n_var <= MOST_CITIES:
            return k, "nearest"  # dynamic programming needs no candidates
        # the engine selects the edges of least alpha among these
        return k, "quadrant" if kind in ("auto", "alpha") else kind

    def _engine_maker(self) -> Callable[[ListedInstance], SearchEngine]:
        return partial(super()._engine_maker(), stop=self._set_up_stop())

    def _adopt(self, engine: SearchEngine) -> None:
        self._size = engine.n_tours

    @property
    def may_stagnate(self) -> bool:
        """True if a complete annealing cycle has found no shorter tour, or the last cycle has ended."""
        return bool(self.engine.may_stagnate)

    def describe(self) -> str:
        """Return name, population size and kind of recombination."""
        return f"{type(self).__name__}: {self.engine.describe()}"

    def _build(self, key: int) -> tuple[NDArray[np.int32], NDArray[np.float64], int]:
        engine = self.engine
        engine.expect(self._progress())
        engine.search(key)
        tours, lengths = engine.best_tours(int(get(self.n_elites) or 1))
        self.iteration_mean = float((engine.lengths if len(engine.lengths) else lengths).mean())
        return tours, lengths, engine.n_built
