"""Operators for pymoo's own algorithms: sampling, crossover, mutation, and local search as a repair."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray
from pymoo.core.crossover import Crossover
from pymoo.core.mutation import Mutation
from pymoo.core.problem import Problem
from pymoo.core.repair import Repair
from pymoo.core.sampling import Sampling

from pymoo_gpuaco import checks
from pymoo_gpuaco.backends import check_backend, make_colony, make_improver
from pymoo_gpuaco.candidates.listed import ListedInstance, make_graph
from pymoo_gpuaco.candidates.lists import with_lists
from pymoo_gpuaco.colony.parameters import MOVES, ColonyParameters, LocalSearch
from pymoo_gpuaco.memetic.assembly import assemble
from pymoo_gpuaco.memetic.partition_crossover import merge_all
from pymoo_gpuaco.memetic.units import whole_units
from pymoo_gpuaco.problems.metrics import Graph
from pymoo_gpuaco.problems.multi_objective import as_multi_objective
from pymoo_gpuaco.problems.pymoo_problems import as_instance
from pymoo_gpuaco.problems.symmetric import SymmetricForm, form_to_search
from pymoo_gpuaco.runtime.stop import end_on_interrupt

__all__ = [
    "AntColonySampling",
    "AssemblyCrossover",
    "DoubleBridgeMutation",
    "InsertionMutation",
    "LocalSearchRepair",
    "MergeCrossover",
    "NearestNeighbourSampling",
    "SwapMutation",
]

T = TypeVar("T")

_LEVELS = 8  # parts of [0, 1]; tours whose weights round to the same parts share one weighted sum
_TOURS = 16  # random tours for the typical length of each objective
_KEPT_BYTES = 1 << 28  # of distance matrices of weighted sums, whose engines an operator keeps

_Levels: TypeAlias = tuple[float, ...]  # parts of each objective in a weighted sum; () of one objective


class EngineCache:
    """Cache of what an operator made for its last problem, by weights; left out of copies and pickles."""

    _cache: tuple[Problem, dict[_Levels, Any]] | None = None

    def _cached(self, problem: Problem, levels: _Levels, make: Callable[[], T]) -> T:
        """Return the cached result of ``make`` for the same problem and weights, or call it."""
        if self._cache is None or self._cache[0] is not problem:
            self._cache = problem, {}
        cache = self._cache[1]
        if levels not in cache:
            if len(cache) >= max(1, _KEPT_BYTES // (8 * problem.n_var**2)):
                del cache[next(iter(cache))]  # the oldest
            cache[levels] = make()
        made: T = cache[levels]
        return made

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_cache"}


def _problems(
    problem: Problem, m: int, random_state: Any, tours: NDArray[Any] | None = None
) -> Iterator[tuple[_Levels, Callable[[], Problem], NDArray[np.int64]]]:
    """Yield the weights and a function that makes a problem of one objective, with its indices of m tours.

    With several objectives, each is a weighted sum for a group of tours with similar lengths. Weights are larger for
    objectives in which one of ``tours`` (.., m, n) is short, in ``_LEVELS`` steps. They are random without tours, and
    for a single tour, as in steady-state algorithms.
    """
    if getattr(problem, "n_obj", 1) == 1:
        yield (), lambda: problem, np.arange(m)
        return
    several, random = as_multi_objective(problem), np.random.default_rng(1)
    typical = several.tour_lengths([random.permutation(several.n_cities) for _ in range(_TOURS)]).mean(axis=0)
    if tours is None or (m == 1 and random_state is not None):
        weights = random_state.dirichlet(np.ones(several.n_obj), m)
    else:
        lengths = several.tour_lengths(tours.reshape(-1, tours.shape[-1]))
        weights = own_weights(lengths.reshape(-1, m, several.n_obj).mean(axis=0))
    levels = np.rint(weights * _LEVELS)
    for level in np.unique(levels, axis=0):
        rows = np.flatnonzero((levels == level).all(axis=1))
        in_lengths = level / np.where(typical > 0.0, typical, 1.0)
        yield tuple(level.tolist()), partial(several.weighted, in_lengths), rows


def own_weights(lengths: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return weights (m, k) of tours with lengths (m, k), larger for objectives in which a tour is short."""
    span = np.ptp(lengths, axis=0)
    best = (lengths.max(axis=0) - lengths) / np.where(span > 0.0, span, 1.0)
    total = best.sum(axis=1, keepdims=True)
    # like pymoo's pseudo weights, with equal weights for a population of equal members
    return np.where(total > 0.0, best / np.where(total > 0.0, total, 1.0), 1.0 / lengths.shape[1])


class _TourSampling(Sampling):
    """Sampling of tours for one objective, or for weighted sums of several."""

    def _do(
        self, problem: Problem, n_samples: int, *args: Any, random_state: Any = None, **kwargs: Any
    ) -> NDArray[np.int64]:
        made: NDArray[np.int64] = np.empty((n_samples, problem.n_var), np.int64)
        for _, make, rows in _problems(problem, n_samples, random_state):
            made[rows] = self._sample(make(), len(rows), random_state)
        return made

    @abstractmethod
    def _sample(self, problem: Problem, n_samples: int, random_state: Any) -> NDArray[np.int64]:
        """Return tours (n_samples, n) of a problem of one objective."""


class NearestNeighbourSampling(_TourSampling):
    """Nearest-neighbour tours from different random start cities, which repeat with more samples than cities.

    With several objectives, distances are weighted sums with random weights.

    Parameters
    ----------
    candidate_list_size : candidate cities per city, in [1, 1024]. Default 32. It affects speed, not tours.
    """

    def __init__(self, candidate_list_size: int = 32) -> None:
        super().__init__()
        self.candidate_list_size = checks.integer("candidate_list_size", candidate_list_size, 1, 1024)

    def _sample(self, problem: Problem, n_samples: int, random_state: Any) -> NDArray[np.int64]:
        k = self.candidate_list_size
        instance = with_lists(as_instance(problem), k)
        colony = make_colony(
            instance, ColonyParameters(n_ants=1, candidate_list_size=k, memory="candidate"), "cpu"
        )
        starts = random_state.permutation(np.resize(random_state.permutation(instance.n), n_samples))
        return np.array([colony.greedy_tour(int(start))[0] for start in starts], dtype=np.int64)


class AntColonySampling(_TourSampling):
    """Tours of ants with equal trails: random, with a preference for short edges (beta).

    With several objectives lengths are weighted sums with random weights.

    Parameters
    ----------
    beta : exponent of 1 / distance in [0, 20]. Default 3.
    candidate_list_size : nearest cities that an ant considers first, in [1, 1024]. Default 32.
    local_search : as in ``GPUMMAS``; default False.
    backend, device : as in ``GPUMMAS``.
    """

    def __init__(
        self,
        beta: float = 3.0,
        candidate_list_size: int = 32,
        local_search: Any = False,
        backend: str = "auto",
        device: int = 0,
    ) -> None:
        super().__init__()
        check_backend(backend, device)
        self.beta = checks.real("beta", beta, 0.0, 20.0)
        self.candidate_list_size = checks.integer("candidate_list_size", candidate_list_size, 1, 1024)
        self.local_search = LocalSearch.of(local_search)
        self.backend = backend
        self.device = device

    def _sample(self, problem: Problem, n_samples: int, random_state: Any) -> NDArray[np.int64]:
        instance = with_lists(as_instance(problem), self.candidate_list_size)
        parameters = ColonyParameters(
            n_ants=int(n_samples),
            beta=self.beta,
            candidate_list_size=self.candidate_list_size,
            local_search=self.local_search,
            memory="candidate",
        )
        colony = make_colony(instance, parameters, self.backend, self.device)
        colony.reset_trails(1.0)
        colony.construct(int(random_state.integers(0, 2**64, dtype=np.uint64)))
        return colony.tours(np.arange(n_samples)).astype(np.int64)


class _Form(NamedTuple):
    """The symmetric form of a problem with k candidates per city, and the translation of tours."""

    symmetric: SymmetricForm | None
    listed: ListedInstance
    graph: Graph
    scale: float  # whole units per unit of distance

    def to_form(self, tours: NDArray) -> NDArray[np.int32]:
        """Translate tours (m, n) of the problem to tours of the form."""
        if self.symmetric is None:
            return tours.astype(np.int32)
        return np.array([self.symmetric.to_instance(tour) for tour in tours], np.int32)

    def to_problem(self, tours: NDArray[np.int32]) -> NDArray[np.int64]:
        """Translate tours (m, s) of the form to tours of the problem."""
        rows = tours if self.symmetric is None else [self.symmetric.to_problem(tour) for tour in tours]
        return np.array(rows, np.int64)


def _form_of(make: Callable[[], Problem], k: int) -> _Form:
    instance = with_lists(as_instance(make()), k)
    symmetric = form_to_search(instance)
    listed = instance if symmetric is None else with_lists(symmetric.instance, k)
    return _Form(symmetric, listed, make_graph(listed), whole_units(listed))


class _TourCrossover(EngineCache, Crossover):
    """Crossover of the edges of tours, under a weighted sum if there are several objectives."""

    candidate_list_size = 1

    @abstractmethod
    def _children(self, form: _Form, parents: NDArray[np.int32], random_state: Any) -> NDArray[np.int32]:
        """Return the children (c, s) of parents (p, s), tours of the form."""

    def _do(
        self, problem: Problem, X: NDArray, *args: Any, random_state: Any = None, **kwargs: Any
    ) -> NDArray[np.int64]:
        children = np.empty((self.n_offsprings, *X.shape[1:]), np.int64)
        for levels, make, matings in _problems(problem, X.shape[1], random_state, X):
            form = self._cached(problem, levels, partial(_form_of, make, self.candidate_list_size))
            for mating in matings:
                made = self._children(form, form.to_form(X[:, mating]), random_state)
                children[:, mating] = form.to_problem(made)
        return children


class MergeCrossover(_TourCrossover):
    """Partition crossover of the components of the parents' difference, as ``crossover=`` of pymoo's ``GA``.

    A merged child is at most as long as the shortest parent and has only edges of its parents. It works best if the
    parents share most edges, as local optima do: combine it with ``LocalSearchRepair`` and a mutation. With several
    objectives lengths are weighted sums, as in ``LocalSearchRepair``.

    Parameters
    ----------
    n_parents : tours to merge, in [2, 1024]. Default 2.
    prob : probability that parents are merged; otherwise the child is the first parent. Default 1.
    """

    def __init__(self, n_parents: int = 2, prob: float = 1.0, **kwargs: Any) -> None:
        super().__init__(checks.integer("n_parents", n_parents, 2, 1024), 1, prob=prob, **kwargs)

    def _children(self, form: _Form, parents: NDArray[np.int32], random_state: Any) -> NDArray[np.int32]:
        return merge_all(parents, form.listed.distance)[0][None]


class AssemblyCrossover(_TourCrossover):
    """Edge assembly crossover (EAX) of tours, as ``crossover=`` of pymoo's ``GA``.

    Each parent has one child: the parent after the AB-cycles that shorten it, at most as long as the parent. The edges
    of a child are those of the parents, and few others that join subtours. With several objectives lengths are weighted
    sums, as in ``LocalSearchRepair``.

    Parameters
    ----------
    n_parents : tours to recombine, in [2, 64]. Default 2.
    candidate_list_size : nearest cities of each city to join subtours, >= 1. Default 10.

    Source: Y. Nagata and S. Kobayashi, "A powerful genetic algorithm using edge assembly crossover for the traveling
    salesman problem", INFORMS Journal on Computing 25 (2013); here all AB-cycles that shorten a parent are applied.
    """

    def __init__(self, n_parents: int = 2, candidate_list_size: int = 10, **kwargs: Any) -> None:
        parents = checks.integer("n_parents", n_parents, 2, 64)
        super().__init__(parents, parents, **kwargs)
        self.candidate_list_size = checks.integer("candidate_list_size", candidate_list_size, 1)

    def _children(self, form: _Form, parents: NDArray[np.int32], random_state: Any) -> NDArray[np.int32]:
        key = int(random_state.integers(0, 2**64, dtype=np.uint64))
        return assemble(form.graph, parents, key, scale=form.scale)


class _TourMutation(Mutation):
    """Mutation of each permutation with a probability, not passed to pymoo, which would apply ``prob`` again."""

    def __init__(self, prob: float = 1.0) -> None:
        super().__init__()
        self.probability = checks.real("prob", prob, 0.0, 1.0)

    _least = 2  # minimum items of a permutation

    @abstractmethod
    def _changed(self, row: NDArray[Any], random_state: Any) -> NDArray[Any]:
        """Return a changed copy of a permutation (n,)."""

    def _do(
        self, problem: Problem, X: NDArray, *args: Any, random_state: Any = None, **kwargs: Any
    ) -> NDArray:
        mutated = X.copy()
        for row in mutated if self._least <= X.shape[1] else ():
            if random_state.random() < self.probability:
                row[:] = self._changed(row, random_state)
        return mutated


class DoubleBridgeMutation(_TourMutation):
    """Swap of two adjacent segments of a tour: a local double bridge.

    It changes three edges, preserves directions, and cannot be undone by one 2-opt or Or-opt move of few cities.
    Therefore it is the mutation to combine with `LocalSearchRepair` (Martin, Otto and Felten 1991).

    Parameters
    ----------
    prob : probability in [0, 1] that a tour is changed. Default 1.
    length : maximum length of a segment in cities, >= 1. Default 30.
    """

    _least = 3

    def __init__(self, prob: float = 1.0, length: int = 30) -> None:
        super().__init__(prob)
        self.length = checks.integer("length", length, 1)

    def _changed(self, row: NDArray[Any], random_state: Any) -> NDArray[Any]:
        n = len(row)
        longest = min(self.length, (n - 1) // 2)
        first, second = random_state.integers(1, longest + 1, size=2)
        turned = np.roll(row, -int(random_state.integers(n)))
        return np.concatenate((turned[first : first + second], turned[:first], turned[first + second :]))


class InsertionMutation(_TourMutation):
    """Move of one item of a permutation to another random position; the items between shift by one.

    It preserves the relative order of the other items, for flow shops, sequencing and linear ordering.

    Parameters
    ----------
    prob : probability in [0, 1] that a permutation is changed. Default 1.
    """

    def _changed(self, row: NDArray[Any], random_state: Any) -> NDArray[Any]:
        source, target = _two_positions(len(row), random_state)
        return np.insert(np.delete(row, source), target, row[source])


class SwapMutation(_TourMutation):
    """Exchange of two random items of a permutation; the other positions are unchanged.

    It is the mutation for objectives that depend on positions, such as quadratic assignment.

    Parameters
    ----------
    prob : probability in [0, 1] that a permutation is changed. Default 1.
    """

    def _changed(self, row: NDArray[Any], random_state: Any) -> NDArray[Any]:
        one, other = _two_positions(len(row), random_state)
        changed = row.copy()
        changed[[one, other]] = row[[other, one]]
        return changed


def _two_positions(n: int, random_state: Any) -> tuple[int, int]:
    """Draw two different positions of n >= 2."""
    one, other = int(random_state.integers(n)), int(random_state.integers(n - 1))
    return one, other + (other >= one)


class LocalSearchRepair(EngineCache, Repair):
    """Local search of every tour of a population, as ``repair=`` of pymoo's ``GA``: a memetic algorithm.

    Parameters
    ----------
    local_search : True, "2opt", "2opt+oropt" (default), "windows" or a ``LocalSearch``.
    candidate_list_size : candidate neighbours of the search, in [1, 1024]. Default 16.
    backend, device : as in ``GPUMMAS``.

    With several objectives each tour is improved under a weighted sum, with larger weights for objectives in which it
    is among the shortest of the population (Ishibuchi, Yoshida and Murata 2003).

    Raises ValueError if some X is not a permutation of the cities, for "2opt" on asymmetric distances, and for paths
    and fixed or forbidden edges. "windows" supports all of these and repairs tours that violate constraints.
    """

    def __init__(
        self,
        local_search: Any = "2opt+oropt",
        candidate_list_size: int = 16,
        backend: str = "auto",
        device: int = 0,
    ) -> None:
        super().__init__()
        check_backend(backend, device)
        search = LocalSearch.of(local_search)
        if search is None:
            raise ValueError(
                f"local_search must be True, {', '.join(map(repr, MOVES))} or a LocalSearch, got {local_search!r}"
            )
        self.local_search = search
        self.candidate_list_size = checks.integer("candidate_list_size", candidate_list_size, 1, 1024)
        self.backend = backend
        self.device = device

    def _do(self, problem: Problem, X: NDArray, random_state: Any = None, **kwargs: Any) -> NDArray[np.int64]:
        if len(X) == 0:
            return X
        improved = np.empty(X.shape, np.int64)
        for levels, make, rows in _problems(problem, X.shape[-2], random_state, X):
            improver = self._cached(problem, levels, partial(self._improver, make))
            key = 0 if random_state is None else int(random_state.integers(0, 2**64, dtype=np.uint64))
            found = end_on_interrupt(partial(improver.improve, X[rows], key), improver.stop)
            improved[rows] = found[0]
        return improved

    def _improver(self, make: Callable[[], Problem]) -> Any:
        instance = with_lists(as_instance(make()), self.candidate_list_size)
        return make_improver(instance, self.local_search, self.backend, self.device)
