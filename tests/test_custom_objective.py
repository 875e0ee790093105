"""Custom objectives, also of positions and directions: all tours are evaluated as they were built, and F decides."""

from __future__ import annotations

import pickle
from itertools import permutations

import numpy as np
import pytest
from pymoo.core.problem import Problem
from pymoo.optimize import minimize

from pymoo_gpuaco import GPUACS, GPUAS, GPUMMAS, TSP, GPU2OptIHC, LocalSearch
from pymoo_gpuaco.problems.pymoo_problems import evaluates_length
from tests.algorithm_cases import (
    BACKEND,
    COLONIES,
    M,
    assert_same,
    cities,
    every_builder,
    every_colony,
    shorten_climbs,
    small,
    snapshot,
)
from tests.fuzz import SEED, TIMES
from tests.interrupts import needs_timer

pytestmark = pytest.mark.filterwarnings("ignore:the problem's objective")


class Tolls(Problem):
    """Some edges cost more than their length, and D does not say which."""

    def __init__(self, n=40, seed=1):
        rng = np.random.default_rng(seed)
        self.D = cities(n).D
        self.cost = self.D + 30.0 * np.triu(rng.random((n, n)) < 0.3, 1)
        super().__init__(n_var=n, n_obj=1, xl=0, xu=n - 1, vtype=int)

    def _evaluate(self, x, out, *args, **kwargs):
        out["F"] = np.array([self.value(tour) for tour in x])[:, None]

    def value(self, tour):
        pairs = np.sort(np.stack([tour, np.roll(tour, -1)]), axis=0)
        return self.cost[pairs[0], pairs[1]].sum()

    def length(self, tour):
        return self.D[tour, np.roll(tour, -1)].sum()


@every_colony
def test_every_tour_is_evaluated_before_and_after_the_search(cls):
    problem = Tolls()
    algorithm = small(cls, local_search=True).setup(problem, seed=1)
    sizes = []
    for _ in range(3):
        infills = algorithm.ask()
        algorithm.evaluator.eval(problem, infills)
        sizes.append(len(infills))
        algorithm.tell(infills=infills)
    assert sizes == [2 * M] * 3
    tours = infills.get("X")
    built = [problem.length(tour) for tour in tours[:M]]
    searched = [problem.length(tour) for tour in tours[M:]]
    assert all(after <= before for before, after in zip(built, searched, strict=True))
    assert sum(searched) < sum(built)
    assert algorithm.evaluator.n_eval == 3 * 2 * M


class TolledMap(TSP):
    """A map of coordinates whose tours cost more than their length."""

    def _evaluate(self, x, out, *args, **kwargs):
        super()._evaluate(x, out)
        out["F"] = out["F"] + 100.0 * np.abs(np.diff(x, axis=1) % 2).sum(axis=1)[:, None]


class PricedWhenShort(Tolls):
    """The length of long tours, which random tours are, and 1000 more of short ones."""

    def value(self, tour):
        length = self.length(tour)
        return length + 1000.0 * (length < 1500.0)


@pytest.mark.parametrize("stop", [1, 2])
def test_an_objective_that_is_noticed_late_decides_from_then_on(stop):
    problem = PricedWhenShort()
    assert evaluates_length(problem)
    whole = small(GPUMMAS).setup(problem, termination=("n_gen", 4), seed=1)
    parted = small(GPUMMAS).setup(problem, termination=("n_gen", 4), seed=1)
    sizes = []
    for generation in range(4):
        if generation == stop:
            parted = pickle.loads(pickle.dumps(parted))
        whole.next()
        parted.next()
        sizes.append(len(whole.pop))
    assert sizes == [1] + 3 * [2 * M]
    assert len(set(whole.pop.get("X")[:, 0])) > 1
    assert_same(snapshot(whole), snapshot(parted))


@pytest.mark.parametrize(
    ("algorithm", "words"),
    [
        (GPUMMAS(M, backend=BACKEND), "All tours of a generation are evaluated"),
        (
            GPUMMAS(M, backend=BACKEND, n_elites=2),
            "the shortest tours of each generation are evaluated, n_elites=2",
        ),
        (GPU2OptIHC(M, backend=BACKEND), "the shortest tour of each generation is evaluated"),
    ],
    ids=repr,
)
@pytest.mark.filterwarnings("default:the problem's objective")
def test_it_is_reported_once_and_what_follows_from_it(algorithm, words):
    with pytest.warns(UserWarning, match="objective") as warned:
        minimize(Tolls(), algorithm, ("n_gen", 3), seed=1)
    (warning,) = [w for w in warned if "objective" in str(w.message)]
    assert words in str(warning.message)


@every_colony
@pytest.mark.parametrize("stop", [1, 4])
def test_a_run_that_was_saved_goes_on_as_one_that_was_not(cls, stop):
    problem = Tolls()
    whole = small(cls, local_search=True).setup(problem, termination=("n_gen", 6), seed=2)
    parted = small(cls, local_search=True).setup(problem, termination=("n_gen", 6), seed=2)
    for generation in range(6):
        if generation == stop:
            parted = pickle.loads(pickle.dumps(parted))
        whole.next()
        parted.next()
    assert_same(snapshot(whole), snapshot(parted))


def test_in_ant_system_every_tour_deposits_by_what_was_given_for_it():
    problem = Tolls(n=10)
    algorithm = GPUAS(2, rho=0.5, local_search=False, backend="cpu", candidate_list_size=None).setup(
        problem, seed=1
    )
    algorithm.next()
    before = algorithm.engine.export_state()["tau"].astype(float)
    unit = algorithm._unit
    algorithm.next()
    tours = algorithm.pop.get("X")
    expected = 0.5 * before
    for tour in tours:  # tau_ij <- (1 - rho) tau_ij + C_g / C_k for both directions of the tour's edges
        for a, b in zip(tour, np.roll(tour, -1), strict=True):
            expected[a, b] += unit / problem.value(tour)
            expected[b, a] += unit / problem.value(tour)
    np.testing.assert_allclose(algorithm.engine.export_state()["tau"], expected, rtol=1e-5)


@needs_timer
def test_a_generation_of_all_tours_ends_when_time_is_over(clock):
    """Their local search would take minutes; the engine is another one than the first, which got the deadline."""
    problem = TolledMap(np.random.default_rng(1).random((3000, 2)), metric="EXACT")
    algorithm = GPUMMAS(24, local_search=LocalSearch(kicks=1000.0), backend="cpu")
    algorithm.setup(problem, termination=("time", 3.0), seed=1)
    clock.per_look = 0.25
    algorithm.next()
    algorithm.next()
    assert algorithm.engine.stop.until is not None
    assert len(algorithm.pop) in range(2, 49, 2)  # those that were built, before and after
    assert np.array_equal(algorithm.pop.get("F"), problem.evaluate(algorithm.pop.get("X")))


@pytest.mark.parametrize("cls", [GPUAS, GPUMMAS])
def test_tours_that_were_not_built_in_time_are_not_evaluated(cls):
    """They are copies of the greedy one: of 20,000 cities thousands, which took ten seconds."""
    problem = TolledMap(np.random.default_rng(1).random((60, 2)))
    algorithm = cls(backend="cpu").setup(problem, termination=("time", 1000.0), seed=1)
    algorithm.next()
    algorithm.start_time -= 2000.0
    algorithm.next()
    assert algorithm.engine.n_ants > 1
    assert len(algorithm.pop) == (1 if cls is GPUAS else 2)  # before and after the local search


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
@pytest.mark.parametrize(
    ("cls", "lists"),
    [
        (cls, lists)
        for name, cls in COLONIES.items()
        for lists in (None, 1)
        if name != "GPUFACO" and (cls is not GPUACS or lists)  # GPUACS needs candidate lists
    ],
)
def test_every_permutation_of_four_is_handed_out(cls, lists, local_search):
    """Ants that know neither trails nor distances build all 24 alike, also where one candidate is asked for.

    All items are as near as the first candidate, so lists have all. One of 24 is missing from 960 with a probability
    of 24 (23 / 24)^960 < 1e-16.
    """
    problem = Jobs(4, seed=1)
    given = {"q0": 0.0} if cls is GPUACS else {}
    colony = small(
        cls, n_ants=24, alpha=0.0, beta=0.0, candidate_list_size=lists, local_search=local_search, **given
    )
    result = minimize(problem, colony, ("n_gen", 40), seed=1)
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
    engine._tours[5:], engine.n_built = built[0], 5  # as for ants that were not finished
    tours, lengths, n_built = algorithm._all_tours(1, np.full(8, 7.0))
    np.testing.assert_array_equal(tours, built[:5])
    assert (len(lengths), n_built) == (5, 5)
