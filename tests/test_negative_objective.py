"""Custom objectives that are 0 or negative: deposits are relative to the best F, wherever its origin is."""

import logging
import pickle

import numpy as np
import pytest
from pymoo.core.problem import Problem
from pymoo.optimize import minimize

from pymoo_gpuaco import ALL_ALGORITHMS, GPUAS, GPUMMAS, TSP, GPUMemetic
from pymoo_gpuaco.algorithms.individuals import Permutations
from pymoo_gpuaco.colony.trails import trail_limits
from tests.algorithm_cases import (
    BACKEND,
    assert_same,
    cities,
    every_builder,
    every_colony,
    shorten_climbs,
    small,
    snapshot,
)

pytestmark = pytest.mark.filterwarnings("ignore:the problem's objective")


class Tolls(Problem):
    """Whole lengths and tolls of a tour, of which ``factor`` times their difference to ``off`` is F."""

    def __init__(self, off=0, factor=1.0, n=16):
        rng = np.random.default_rng(1)
        self.D = cities(n).D
        self.cost = self.D + 30 * np.triu(rng.random((n, n)) < 0.3, 1)
        self.off, self.factor = off, factor
        super().__init__(n_var=n, n_obj=1, xl=0, xu=n - 1, vtype=int)

    def value(self, tour):
        pairs = np.sort(np.stack([tour, np.roll(tour, -1)]), axis=0)
        return float(self.cost[pairs[0], pairs[1]].sum())

    def _evaluate(self, x, out, *args, **kwargs):
        out["F"] = np.array([[self.factor * (self.value(tour) - self.off)] for tour in x])


def tours_of(problem, cls, generations=8, **arguments):
    """All tours of all generations."""
    algorithm = small(cls, **arguments).setup(problem, termination=("n_gen", generations), seed=1)
    tours = []
    while algorithm.has_next():
        algorithm.next()
        tours.append(algorithm.pop.get("X"))
    return algorithm, np.concatenate(tours)


@every_colony
def test_a_constant_or_another_unit_changes_no_tour(cls):
    """All F are negative; 100 and 1000 times the cost of 16 edges, in whole numbers, and in units of a half."""
    first = tours_of(Tolls(off=10_000), cls)[1]
    assert np.array_equal(tours_of(Tolls(off=100_000), cls)[1], first)
    assert np.array_equal(tours_of(Tolls(off=10_000, factor=0.5), cls)[1], first)


@every_colony
@pytest.mark.parametrize("local_search", [False, True])
def test_colonies_learn_from_negative_values(cls, local_search):
    """The trails of the best tour are stronger than the others, as they are for positive values."""
    for off in (0, 10_000):
        algorithm = tours_of(Tolls(off), cls, 30, local_search=local_search)[0]
        trails, best = algorithm.trails(), algorithm._best_tour
        along = trails[best, np.roll(best, -1)].mean()
        assert along > 1.5 * trails[~np.eye(16, dtype=bool)].mean(), off


def test_amounts_and_limits_by_hand():
    """F of the first generation are -9, -5 and -3: s = 6. Later the best is -10, and -4 is F' = -4 + 10 + 6 = 12."""
    algorithm = small(GPUMMAS, rho=0.5).setup(Tolls(10_000), seed=1)
    algorithm._begin_once()
    tours = np.array([np.roll(np.arange(16), i) for i in range(3)])
    algorithm._note_best(Permutations(tours, np.array([-5.0, -9.0, -3.0])))
    assert [algorithm._amount(value) for value in (-9.0, -3.0)] == pytest.approx([1.0, 6.0 / 12.0])
    algorithm._note_best(Permutations(tours, np.array([-4.0, -10.0, -10.0])))
    assert [algorithm._amount(value) for value in (-10.0, -4.0)] == pytest.approx([1.0, 6.0 / 12.0])
    expected = trail_limits(1.0, 16, 32.0, 0.5, 0.05)
    assert algorithm._limits(algorithm._cost(algorithm._best_length)) == pytest.approx(expected)


def test_in_ant_system_every_tour_deposits_relative_to_the_best():
    problem = Tolls(10_000, n=10)
    algorithm = GPUAS(2, rho=0.5, local_search=False, backend="cpu", candidate_list_size=None)
    algorithm.setup(problem, seed=1)
    algorithm.next()
    first = algorithm.pop.get("F")
    spread = float(np.ptp(first))
    best, before = float(first.min()), algorithm.engine.export_state()["tau"].astype(float)
    algorithm.next()
    best = min(best, float(algorithm.pop.get("F").min()))
    expected = 0.5 * before
    for one in algorithm.pop:  # tau_ij <- (1 - rho) tau_ij + s / (F - b + s)
        for a, b in zip(one.X, np.roll(one.X, -1), strict=True):
            expected[a, b] += spread / (one.F[0] - best + spread)
            expected[b, a] += spread / (one.F[0] - best + spread)
    np.testing.assert_allclose(algorithm.engine.export_state()["tau"], expected, rtol=1e-5)


@pytest.fixture(scope="module")
def good():
    """A tour that no colony finds in two generations without local search."""
    return minimize(Tolls(), small(GPUMMAS, n_ants=24), ("n_gen", 20), seed=1).X


@every_colony
def test_a_change_of_sign_restarts_the_trails_once_and_is_logged_once(cls, good, caplog):
    """F is positive for two generations; in the third one tour has F = 0."""
    problem = Tolls(off=Tolls().value(good))
    algorithm = small(cls, local_search=False).setup(problem, termination=("n_gen", 9), seed=1)
    with caplog.at_level(logging.INFO, "pymoo_gpuaco"):
        for generation in range(1, 6):
            infills = algorithm.ask()
            if generation >= 3:
                infills[0].X = good.copy()
            algorithm.evaluator.eval(problem, infills)
            algorithm.tell(infills=infills)
            assert algorithm._relative == (generation >= 3)
    said = [words for words in caplog.messages if "deposits are relative to the best F" in words]
    assert len(said) == 1
    trails = algorithm.trails()
    assert trails[good, np.roll(good, -1)].mean() > trails[~np.eye(16, dtype=bool)].mean()


@every_colony
@pytest.mark.parametrize("stop", [1, 3])
def test_a_saved_run_goes_on_as_it_would_have(cls, stop):
    whole = small(cls).setup(Tolls(10_000), termination=("n_gen", 5), seed=2)
    parted = small(cls).setup(Tolls(10_000), termination=("n_gen", 5), seed=2)
    for generation in range(5):
        if generation == stop:
            parted = pickle.loads(pickle.dumps(parted))
        whole.next()
        parted.next()
    assert_same(snapshot(whole), snapshot(parted))


@every_colony
def test_a_first_generation_of_equal_values_has_a_spread_of_one(cls):
    """With one evaluated tour the worst is the best."""
    algorithm = small(cls, n_elites=1).setup(Tolls(10_000), termination=("n_gen", 3), seed=1)
    algorithm.run()
    assert (algorithm._spread, algorithm._relative) == (1.0, True)
    assert np.isfinite(algorithm.trails()).all()


def test_a_tour_length_of_zero_is_no_custom_objective():
    problem = TSP(np.zeros((12, 2)), "EUC_2D")
    algorithm = minimize(problem, small(GPUMMAS), ("n_gen", 3), seed=1).algorithm
    assert not algorithm._relative
    assert np.isfinite(algorithm.trails()).all()


class Profit(Problem):
    """A profit of each step, to be maximised: F = -profit."""

    def __init__(self, n=12):
        rng = np.random.default_rng(2)
        self.profit = rng.integers(1, 100, (n, n)).astype(float)
        self.D = cities(n).D
        super().__init__(n_var=n, n_obj=1, xl=0, xu=n - 1, vtype=int)

    def _evaluate(self, x, out, *args, **kwargs):
        out["F"] = -self.profit[x, np.roll(x, -1, axis=1)].sum(axis=1)[:, None]


def test_a_profit_is_maximised():
    """The trails make up for what distances do not know: without them (alpha = 0) the profit is smaller."""
    means = [
        np.mean(
            [
                -minimize(
                    Profit(),
                    GPUMMAS(24, alpha=alpha, beta=0.0, local_search=False, backend=BACKEND),
                    ("n_gen", 60),
                    seed=seed,
                ).F[0]
                for seed in range(1, 6)
            ]
        )
        for alpha in (0.0, 1.0)
    ]
    assert means[1] > 1.05 * means[0]


@every_builder
def test_every_class_ends_level_with_positive_values(cls, monkeypatch):
    """Means of five seeds differ by less than the largest difference of two seeds of either."""
    shorten_climbs(monkeypatch)
    values = {
        off: np.array(
            [
                minimize(Tolls(off, n=24), small(cls), ("n_gen", 20), seed=seed).F[0] + off
                for seed in range(1, 6)
            ]
        )
        for off in (0, 10_000)
    }
    spread = max(np.ptp(values[0]), np.ptp(values[10_000]), 1.0)
    assert abs(values[10_000].mean() - values[0].mean()) <= spread


def test_the_error_of_the_memetic_search_names_all_that_take_any_objective():
    with pytest.raises(ValueError, match="take any objective") as error:
        minimize(Tolls(), GPUMemetic(backend="cpu"), ("n_gen", 1))
    others = [name for name in ALL_ALGORITHMS if name != "GPUMemetic"]
    assert len(others) == 8
    assert all(name in str(error.value) for name in others)
