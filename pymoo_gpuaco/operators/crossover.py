"""Crossovers of tours: partition crossover and edge assembly."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pymoo.core.crossover import Crossover
from pymoo.core.problem import Problem

from pymoo_gpuaco import checks
from pymoo_gpuaco.candidates.graph import Graph, make_graph
from pymoo_gpuaco.candidates.listed import ListedInstance
from pymoo_gpuaco.candidates.lists import with_lists
from pymoo_gpuaco.memetic.assembly import assemble
from pymoo_gpuaco.memetic.partition_crossover import merge_all
from pymoo_gpuaco.memetic.population import whole_units
from pymoo_gpuaco.operators.instances import KeepsInstance
from pymoo_gpuaco.problems.symmetric import SymmetricForm, form_to_search


class _Exchange(NamedTuple):
    """The symmetric form of a problem with k candidates per city, and the translation of tours."""

    form: SymmetricForm | None
    listed: ListedInstance
    graph: Graph
    scale: float  # whole units per unit of distance

    def given(self, tours: NDArray) -> NDArray[np.int32]:
        """Translate tours (m, n) of the problem to tours of the form."""
        if self.form is None:
            return tours.astype(np.int32)
        return np.array([self.form.to_instance(tour) for tour in tours], np.int32)

    def made(self, tours: NDArray[np.int32]) -> NDArray[np.int64]:
        """Translate tours (m, s) of the form to tours of the problem."""
        rows = tours if self.form is None else [self.form.to_problem(tour) for tour in tours]
        return np.array(rows, np.int64)


def _exchange_of(crossover: KeepsInstance, problem: Problem, k: int) -> _Exchange:
    """Return the arrays for the crossover of tours of a problem, built once."""
    instance = crossover._instance(problem, k)

    def make() -> _Exchange:
        form = form_to_search(instance)
        listed = instance if form is None else with_lists(form.instance, k)
        return _Exchange(form, listed, make_graph(listed), whole_units(listed))

    return crossover._engine(k, make)


class MergeCrossover(KeepsInstance, Crossover):
    """Merge tours by the components of their difference, as ``crossover=`` of pymoo's ``GA``.

    The only child is at most as long as the shortest parent and has only edges of its parents. Parents with most edges
    in common (locally optimal tours) merge best: combine it with ``LocalSearchRepair`` and a mutation. With several
    objectives lengths are weighted sums, as in ``LocalSearchRepair``.

    Parameters
    ----------
    n_parents : tours to merge, in [2, 1024]. Default 2.
    """

    def __init__(self, n_parents: int = 2, **kwargs: Any) -> None:
        super().__init__(checks.integer("n_parents", n_parents, 2, 1024), 1, **kwargs)

    def _do(
        self, problem: Problem, X: NDArray, *args: Any, random_state: Any = None, **kwargs: Any
    ) -> NDArray[np.int64]:
        children = np.empty((1, *X.shape[1:]), np.int64)
        for one, matings in self._problems(problem, X, random_state):
            exchange = _exchange_of(self, one, 1)
            for mating in np.arange(X.shape[1])[matings]:
                merged = merge_all(exchange.given(X[:, mating]), exchange.listed.distance)[0]
                children[0, mating] = exchange.made(merged[None])[0]
        return children


class AssemblyCrossover(KeepsInstance, Crossover):
    """Recombine tours by edge assembly (EAX), as ``crossover=`` of pymoo's ``GA``.

    There are as many children as parents: each is a parent with the AB-cycles that shorten it, and is at most as long
    as that parent. Its edges are those of its parents, and few others that join subtours. With several objectives
    lengths are weighted sums, as in ``LocalSearchRepair``.

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

    def _do(
        self, problem: Problem, X: NDArray, *args: Any, random_state: Any = None, **kwargs: Any
    ) -> NDArray[np.int64]:
        children = np.empty(X.shape, np.int64)
        for one, matings in self._problems(problem, X, random_state):
            exchange = _exchange_of(self, one, self.candidate_list_size)
            for mating in np.arange(X.shape[1])[matings]:
                key = int(random_state.integers(0, 2**64, dtype=np.uint64))
                children[:, mating] = exchange.made(
                    assemble(exchange.graph, exchange.given(X[:, mating]), key, scale=exchange.scale)
                )
        return children
