"""Objectives that depend on where a tour begins or on its direction, against enumeration of all permutations."""

import pickle
from itertools import permutations

import numpy as np
import pytest
from pymoo.core.problem import Problem
from pymoo.optimize import minimize

from pymoo_gpuaco import GPUACS, GPUAS
from tests.algorithm_cases import (
    COLONIES,
    every_builder,
    every_colony,
    shorten_climbs,
    small,
)
from tests.fuzz import SEED, TIMES

pytestmark = pytest.mark.filterwarnings("ignore:the problem's objective")


class Jobs(Problem):
    """A single machine: weighted tardiness of jobs in order, all at distance 1 from each other."""

    def __init__(self, n, seed):
        rng = np.random.default_rng(seed)
        self.time, self.weight = rng.integers(1, 20, n), rng.integers(1, 10, n)
        self.due = rng.integers(1, self.time.sum() + 1, n)
        self.D = 1.0 - np.eye(n)
        self.seen = []
        super().__init__(n_var=n, n_obj=1, xl=0, xu=n - 1, vtype=int)

    def value(self, tour):
        late = np.cumsum(self.time[tour]) - self.due[tour]
        return 1.0 + (self.weight[tour] * np.maximum(late, 0)).sum()

    def _evaluate(self, x, out, *args, **kwargs):
        self.seen += [tuple(map(int, row)) for row in x]
        out["F"] = np.array([[self.value(row)] for row in x])

    def enumerated(self):
        """Value of the best permutation of all."""
        return min(self.value(list(tour)) for tour in permutations(range(self.n_var)))


class Layout(Jobs):
    """Items on a line, those with much flow near each other: it knows positions but no direction."""

    def __init__(self, n, seed):
        super().__init__(n, seed)
        points = np.random.default_rng([seed, 1]).random((n, 2))
        self.D = np.linalg.norm(points[:, None] - points, axis=2)

    def value(self, tour):
        position = np.argsort(tour)
        return 1.0 + ((1.5 - self.D) * np.abs(position[:, None] - position)).sum()


class Wind(Layout):
    """The length of a round trip by a matrix that knows directions; ``D`` is the mean of both."""

    def __init__(self, n, seed):
        super().__init__(n, seed)
        self.cost = self.D + np.random.default_rng([seed, 2]).random((n, n))
        self.D = 0.5 * (self.cost + self.cost.T) * (1 - np.eye(n))

    def value(self, tour):
        return self.cost[tour, np.roll(tour, -1)].sum()


class Depot(Layout):
    """The length of a round trip and a price of the city where it begins."""

    def value(self, tour):
        return self.D[tour, np.roll(tour, -1)].sum() + self.weight[tour[0]]


KINDS = (Jobs, Layout, Wind, Depot)


def check(problem, result):
    """Assert that a result is the best of what was evaluated, as it was evaluated, and no better than the optimum."""
    assert result.F[0] == problem.value(result.X) == min(problem.value(list(tour)) for tour in problem.seen)
    assert tuple(result.X.tolist()) in problem.seen
    assert result.F[0] >= problem.enumerated()


@every_colony
@pytest.mark.parametrize("kind", KINDS)
def test_the_best_permutation_of_five_is_found(cls, kind):
    problem = kind(5, seed=3)
    result = minimize(
        problem,
        small(cls, n_ants=24, q0=0.5) if cls is GPUACS else small(cls, n_ants=24),
        ("n_gen", 60),
        seed=1,
    )
    check(problem, result)
    assert result.F[0] == problem.enumerated()


@pytest.mark.parametrize("local_search", [False, True, "windows"])
@pytest.mark.parametrize("lists", [None, 1])
@pytest.mark.parametrize("cls", [cls for name, cls in COLONIES.items() if name != "GPUFACO"])
def test_every_permutation_of_four_is_handed_out(cls, lists, local_search):
    """Ants that know neither trails nor distances build all 24 alike, also where one candidate is asked for.

    All items are as near as the first candidate, so lists have all. One of 24 is missing from 1,920 with a probability
    of 24 (23 / 24)^1920 < 1e-33.
    """
    if cls is GPUACS and lists is None:
        pytest.skip("GPUACS needs candidate lists")
    problem = Jobs(4, seed=1)
    given = {"q0": 0.0} if cls is GPUACS else {}
    colony = small(
        cls, n_ants=24, alpha=0.0, beta=0.0, candidate_list_size=lists, local_search=local_search, **given
    )
    result = minimize(problem, colony, ("n_gen", 80), seed=1)
    assert set(problem.seen) == set(permutations(range(4)))
    assert result.F[0] == problem.enumerated()


@pytest.mark.parametrize("case", range(12 * TIMES))
def test_random_problems_of_any_kind(case):
    rng = np.random.default_rng([SEED, case])
    kind, n = KINDS[rng.integers(len(KINDS))], int(rng.integers(4, 7))
    colonies = [cls for name, cls in COLONIES.items() if name != "GPUFACO"]
    cls = colonies[rng.integers(len(colonies))]
    search = [False, True][rng.integers(2)]
    elites = [None, None, 1, 3][rng.integers(4)]
    problem = kind(n, seed=case)
    colony = small(cls, n_ants=int(rng.integers(1, 30)), local_search=search, n_elites=elites)
    algorithm = colony.setup(problem, termination=("n_gen", 12), seed=case)
    while algorithm.has_next():
        if rng.random() < 0.2:
            seen, algorithm = problem.seen, pickle.loads(pickle.dumps(algorithm))
            problem = algorithm.problem
            problem.seen = seen
        algorithm.next()
    compared = problem.seen[:1]  # in set-up, by no evaluator
    problem.seen = problem.seen[1:]
    check(problem, algorithm.result())
    assert len(compared) == 1
    if elites is None:
        assert algorithm.evaluator.n_eval == len(problem.seen)


@every_builder
def test_given_tours_are_evaluated_as_they_are(cls, monkeypatch):
    shorten_climbs(monkeypatch)
    problem = Jobs(6, seed=2)
    given = np.array([[3, 1, 0, 2, 5, 4], [5, 4, 3, 2, 1, 0]])
    algorithm = small(cls, sampling=given).setup(problem, termination=("n_gen", 2), seed=1)
    algorithm.next()
    np.testing.assert_array_equal(algorithm.pop.get("X"), given)
    assert not np.shares_memory(algorithm.pop[0].X, given)


def test_time_that_is_over_hands_out_what_was_built_though_all_are_as_long():
    algorithm = GPUAS(8, backend="cpu").setup(Jobs(7, seed=1), termination=("n_gen", 1), seed=1)
    algorithm._begin()
    engine = algorithm.engine
    engine.construct(1)
    built = engine.tours(range(8))
    assert len(np.unique(built, axis=0)) == 8
    engine._tours[5:], engine._n_built = built[0], 5  # as for ants that were not finished
    tours, lengths, n_built = algorithm._all_tours(1, np.full(8, 7.0))
    np.testing.assert_array_equal(tours, built[:5])
    assert (len(lengths), n_built) == (5, 5)
