"""Custom objectives: the colony notices before a run, hands out all tours as they were built, and F decides."""

import pickle

import numpy as np
import pytest
from pymoo.core.problem import Problem
from pymoo.optimize import minimize

from pymoo_gpuaco import GPUAS, GPUMMAS, TSP, GPU2OptIHC, LocalSearch
from pymoo_gpuaco.problems.instance import is_tour_length
from tests.algorithm_cases import BACKEND, COLONIES, M, assert_same, cities, small, snapshot
from tests.interrupts import needs_timer, timed_interrupts

pytestmark = pytest.mark.filterwarnings("ignore:the problem's objective")
every_colony = pytest.mark.parametrize("cls", COLONIES.values(), ids=list(COLONIES))


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
    assert is_tour_length(problem)
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


def test_the_colony_has_as_many_ants_as_one_whose_engine_searches():
    """Local search follows the construction; one ant a city made 1,677 tours of 20,000 cities a generation."""
    problem = TolledMap(np.random.default_rng(1).random((60, 2)))
    algorithm = GPUMMAS(backend="cpu").setup(problem, termination=("n_gen", 2), seed=1)
    algorithm.run()
    assert algorithm.engine.n_ants == 24
    without = GPUMMAS(local_search=False, backend="cpu").setup(problem, termination=("n_gen", 2), seed=1)
    without.run()
    assert without.engine.n_ants == 60


@pytest.mark.parametrize(
    ("algorithm", "words"),
    [
        (GPUMMAS(M, backend=BACKEND), "All tours of a generation are evaluated"),
        (GPUMMAS(M, backend=BACKEND, n_elites=2), "only the shortest are evaluated, n_elites=2"),
        (GPU2OptIHC(M, backend=BACKEND), "only the shortest tour is evaluated"),
    ],
    ids=repr,
)
@pytest.mark.filterwarnings("default:the problem's objective")
def test_it_is_told_once_and_what_follows_from_it(algorithm, words):
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


def test_in_ant_system_every_tour_deposits_by_what_was_told_of_it():
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
def test_a_generation_of_all_tours_ends_when_time_is_over():
    """Their local search would take minutes; the engine is another one than the first, which got the deadline."""
    problem = TolledMap(np.random.default_rng(1).random((3000, 2)), metric="EXACT")
    algorithm = GPUMMAS(24, local_search=LocalSearch(kicks=1000.0), backend="cpu")
    algorithm.setup(problem, termination=("time", 3.0), seed=1)
    with timed_interrupts() as strike_after:
        strike_after(60.0)
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
