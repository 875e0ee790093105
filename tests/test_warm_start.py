"""Beginning from given tours: every form of ``sampling``, what it changes, and what it refuses."""

import numpy as np
import pytest
from pymoo.core.evaluator import Evaluator
from pymoo.core.population import Population
from pymoo.core.sampling import Sampling
from pymoo.operators.sampling.rnd import PermutationRandomSampling
from pymoo.optimize import minimize

from pymoo_gpuaco import GPU2OptIHC
from pymoo_gpuaco.algorithms.ask_tell import canonical
from tests.algorithm_cases import (
    COLONIES,
    M,
    cities,
    every_base,
    every_builder,
    is_canonical,
    length,
    shorten_climbs,
    small,
)

N = 14


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    shorten_climbs(monkeypatch)


def tours(m=3, seed=0):
    generator = np.random.default_rng(seed)
    return np.array([generator.permutation(N) for _ in range(m)])


class TwoTours(Sampling):
    def _do(self, problem, n_samples, random_state=None, **kwargs):
        return tours(2)


FORMS = {
    "array": lambda: tours(3),
    "int32 array": lambda: tours(3).astype(np.int32),
    "float array": lambda: tours(3).astype(float),
    "list": lambda: tours(3).tolist(),
    "one tour": lambda: tours(1)[0],
    "population": lambda: Population.new("X", tours(3)),
    "own operator": TwoTours,
    "function": lambda: _two_tours,
}


def _two_tours(problem, n_samples, random_state=None, **kwargs):
    return Population.new("X", tours(2))


@every_builder
@pytest.mark.parametrize("form", FORMS)
def test_given_tours_are_generation_one(cls, form):
    problem = cities(N)
    expected = tours({"one tour": 1, "own operator": 2, "function": 2}.get(form, 3))
    first = {}

    def watch(algorithm):
        if algorithm.n_gen == 1:
            first["X"], first["F"] = algorithm.pop.get("X"), algorithm.pop.get("F")[:, 0]
            first["best"], first["count"] = algorithm.opt[0].F[0], algorithm.evaluator.n_eval

    res = minimize(problem, small(cls, sampling=FORMS[form]()), ("n_gen", 4), seed=1, callback=watch)
    assert np.array_equal(first["X"], canonical(expected, True))
    lengths = [length(problem, tour) for tour in expected]
    assert list(first["F"]) == lengths
    assert first["best"] == min(lengths)
    assert first["count"] == len(expected)
    if cls is not GPU2OptIHC:
        assert res.algorithm.evaluator.n_eval == len(expected) + 3 * M
    assert is_canonical(res.X)
    assert res.F[0] <= min(lengths)


@every_base
def test_random_operator_gives_a_tour_for_each_ant_from_the_seed(cls):
    def first(seed):
        kept = []
        minimize(
            cities(N),
            small(cls, sampling=PermutationRandomSampling()),
            ("n_gen", 1),
            seed=seed,
            callback=lambda algorithm: kept.append(algorithm.pop.get("X")),
        )
        return kept[0]

    assert len(first(1)) == M
    assert np.array_equal(first(1), first(1))
    assert not np.array_equal(first(1), first(2))


@every_base
def test_population_of_another_problem_is_evaluated_anew_and_left_alone(cls):
    old, new = cities(N, seed=1), cities(N, seed=2)
    found = minimize(old, small(cls), ("n_gen", 2), seed=1)
    stale = found.pop[0].F.copy()
    res = minimize(new, small(cls, sampling=found.pop), ("n_gen", 1), seed=1)
    assert res.F[0] == length(new, found.pop[0].X) != stale[0]
    assert np.array_equal(found.pop[0].F, stale)


@every_base
def test_evaluated_population_of_the_same_problem_is_counted_once(cls):
    problem = cities(N)
    population = Evaluator().eval(problem, Population.new("X", tours(5)))
    res = minimize(problem, small(cls, sampling=population), ("n_gen", 1), seed=1)
    assert res.algorithm.evaluator.n_eval == 5
    assert len(res.pop) == 5


@pytest.mark.parametrize("cls", COLONIES.values())
def test_colony_learns_the_best_given_tour(cls):
    problem = cities(N)
    best = minimize(problem, small(GPU2OptIHC), ("n_gen", 3), seed=1).X
    worst = np.roll(tours(1)[0], 2)
    algorithm = small(cls, sampling=np.array([worst, best])).setup(problem, termination=("n_gen", 9), seed=1)
    algorithm.next()
    assert np.array_equal(algorithm._best_tour, best)
    tau = algorithm.engine.export_state()["tau"]
    other = small(cls, sampling=worst).setup(problem, termination=("n_gen", 9), seed=1)
    other.next()
    assert not np.array_equal(tau, other.engine.export_state()["tau"])


def _ragged():
    return [[0, 1, 2], [0, 1]]


BAD_ROWS = {
    "twice the same city": lambda: np.zeros((1, N), dtype=int),
    "second row": lambda: np.vstack([np.arange(N), np.full(N, 3)]),
    "city N": lambda: np.arange(N) + 1,
    "negative": lambda: np.arange(N) - 1,
    "too short": lambda: np.arange(N - 1),
    "too long": lambda: np.arange(N + 1),
    "halves": lambda: np.arange(N) + 0.5,
    "NaN": lambda: np.full(N, np.nan),
    "infinite": lambda: np.full(N, np.inf),
    "strings": lambda: np.array([list("abcdefghijklmn")]),
    "booleans": lambda: np.ones(N, dtype=bool),
    "no rows": lambda: np.empty((0, N), dtype=int),
    "three dimensions": lambda: np.zeros((1, 1, N), dtype=int),
    "ragged list": _ragged,
    "empty population": Population.empty,
    "population without X": lambda: Population.empty(2),
    "operator of another size": lambda: lambda problem, n, **kwargs: Population.new("X", np.arange(5)[None]),
}


@every_base
@pytest.mark.parametrize("kind", BAD_ROWS)
@pytest.mark.filterwarnings("error")
def test_rows_that_are_no_tours_are_refused_by_name(cls, kind):
    with pytest.raises(ValueError, match="sampling"):
        minimize(cities(N), small(cls, sampling=BAD_ROWS[kind]()), ("n_gen", 1), seed=1)


@every_base
@pytest.mark.parametrize("wrong", [5, "random", 1.5, {1: 2}])
def test_things_that_are_no_sampling_are_refused_at_once(cls, wrong):
    with pytest.raises(TypeError, match="sampling must be"):
        small(cls, sampling=wrong)
