"""Promises of pymoo about every algorithm: ask and tell, callbacks, interrupts, and tours given by ``sampling``."""

from __future__ import annotations

import _thread
import copy
from contextlib import nullcontext

import numpy as np
import pytest
from pymoo.core.callback import Callback
from pymoo.core.evaluator import Evaluator
from pymoo.core.population import Population
from pymoo.core.sampling import Sampling
from pymoo.operators.sampling.rnd import PermutationRandomSampling
from pymoo.optimize import minimize
from pymoo.problems.static import StaticProblem

from pymoo_gpuaco import GPUMMAS, TSP, GPU2OptIHC
from pymoo_gpuaco.algorithms.tour import canonical
from tests.algorithm_cases import (
    COLONIES,
    M,
    assert_same,
    cities,
    every_algorithm,
    every_base,
    every_builder,
    every_colony,
    is_canonical,
    length,
    run_to_end,
    shorten_climbs,
    small,
    snapshot,
)

pytestmark = pytest.mark.usefixtures("short_climbs")


# ---- ask and tell ---------------------------------------------------------------------------------------------------


@every_algorithm
def test_ask_and_tell_equals_minimize(cls):
    problem = cities(14)
    algorithm = small(cls).setup(problem, termination=("n_gen", 4), seed=3)
    while algorithm.has_next():
        pop = algorithm.ask()
        assert pop.get("F").size == 0  # handed out without F
        algorithm.evaluator.eval(problem, pop)
        _ = algorithm.tell(infills=pop) if algorithm.n_iter > 1 else algorithm.tell(pop)
    res = minimize(problem, small(cls), ("n_gen", 4), seed=3)
    assert_same(snapshot(algorithm), snapshot(res.algorithm))


@every_builder
def test_given_values_of_the_user_are_learned_and_counted(cls):
    problem = cities(14)
    algorithm = small(cls).setup(problem, termination=("n_gen", 3), seed=3)
    counts = []

    def documented_loop():
        while algorithm.has_next():
            pop = algorithm.ask()
            F = np.full((len(pop), 1), 7.0 + algorithm.n_gen)  # 8, 9, 10: the first stays best
            Evaluator().eval(StaticProblem(problem, F=F), pop)
            algorithm.tell(infills=pop)
            counts.append(algorithm.evaluator.n_eval)

    with pytest.warns(UserWarning, match="objective"):
        documented_loop()
    assert algorithm.opt[0].F[0] == algorithm.result().F[0] == 8.0
    if cls is not GPU2OptIHC:
        # the objective is not the length, so tours are evaluated before and after the local search
        each = M if algorithm.local_search is False else 2 * M
        assert counts == [M, M + each, M + 2 * each]
        assert algorithm._best_length == 8.0
    else:
        assert counts == sorted(set(counts))  # every generation counts


@every_colony
def test_given_fewer_and_reordered_individuals_are_learned(cls):
    problem = cities(14)
    algorithm = small(cls, n_elites=4, local_search=False).setup(problem, termination=("n_gen", 9), seed=3)
    pop = algorithm.ask()
    algorithm.evaluator.eval(problem, pop)
    shortest = pop[0]
    algorithm.tell(pop[[3, 0, 1]])
    assert algorithm.opt[0] is shortest
    assert np.array_equal(canonical(algorithm._best_tour[None], True)[0], shortest.X)
    assert len(algorithm.pop) == 3
    pop = algorithm.ask()
    algorithm.evaluator.eval(problem, pop)
    algorithm.tell(infills=pop[[2]])
    assert len(algorithm.pop) == 1
    assert algorithm.evaluator.n_eval == 2 * M


@every_builder
def test_given_altered_tour_is_taken_as_the_user_made_it(cls):
    problem = cities(14)
    algorithm = small(cls).setup(problem, termination=("n_gen", 9), seed=3)
    algorithm.ask()
    mine = np.roll(np.arange(14), 5)  # not in canonical form
    pop = Population.new("X", mine[None])
    algorithm.evaluator.eval(problem, pop)
    algorithm.tell(infills=pop)
    assert np.array_equal(algorithm.opt[0].X, mine)
    assert algorithm.opt[0].F[0] == length(problem, mine)
    if cls is not GPU2OptIHC:
        assert np.array_equal(algorithm._best_tour, mine)
    algorithm.next()
    assert algorithm.opt[0].F[0] <= length(problem, mine)


def test_only_tours_from_outside_are_given_to_the_engine(monkeypatch):
    problem, accepted = cities(14), []
    algorithm = small(GPUMMAS, n_elites=3).setup(problem, termination=("n_gen", 9), seed=3)
    pop = algorithm.ask()
    assert len(pop) == 3
    mine = np.arange(14)
    pop[1].X = mine
    algorithm.evaluator.eval(problem, pop, evaluate_values_of=["F"], skip_already_evaluated=False)
    accept = algorithm.engine.accept
    monkeypatch.setattr(
        algorithm.engine,
        "accept",
        lambda rows, lengths: (accepted.append((rows, lengths)), accept(rows, lengths)),
    )
    algorithm.tell(infills=pop)
    ((rows, lengths),) = accepted
    assert rows.tolist() == [mine.tolist()]
    assert lengths.tolist() == [length(problem, mine)]


def _replaced(pop, X):
    pop[0].X = X
    pop.set("F", np.ones((len(pop), 1)))


@every_base
@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda pop: None, "must be evaluated"),
        (lambda pop: pop.set("F", None), "must be evaluated"),
        (lambda pop: pop.set("F", np.full((len(pop), 1), np.nan)), "finite, got nan"),
        (lambda pop: pop.set("F", np.full((len(pop), 1), -np.inf)), "finite, got -inf"),
        (lambda pop: pop.set("F", np.ones((len(pop), 2))), "one value"),
        (lambda pop: _replaced(pop, np.zeros(14, dtype=int)), "infills: row 0"),
        (lambda pop: _replaced(pop, np.arange(5)), "infills"),
    ],
    ids=["no F", "F is None", "NaN", "infinite", "two values", "no permutation", "wrong length"],
)
def test_tell_refuses_what_it_cannot_learn_from_and_the_run_goes_on(cls, spoil, words):
    problem = cities(14)
    algorithm = small(cls).setup(problem, termination=("n_gen", 3), seed=3)
    algorithm.next()
    pop = algorithm.ask()
    good = copy.deepcopy(pop)
    spoil(pop)
    with pytest.raises(ValueError, match=words):
        algorithm.tell(infills=pop)
    algorithm.evaluator.eval(problem, good)
    algorithm.tell(infills=good)
    run_to_end(algorithm)
    assert_same(snapshot(algorithm), snapshot(minimize(problem, small(cls), ("n_gen", 3), seed=3).algorithm))


@every_base
def test_tell_refuses_nothing_at_all(cls):
    algorithm = small(cls).setup(cities(9), seed=3)
    with pytest.raises(ValueError, match="ask"):
        algorithm.tell(infills=Population.new("X", np.arange(9)[None], "F", np.ones((1, 1))))
    algorithm.ask()
    with pytest.raises(ValueError, match="got none"):
        algorithm.tell(infills=None)
    with pytest.raises(ValueError, match="got none"):
        algorithm.tell(infills=Population.empty())
    with pytest.raises(TypeError, match="Population"):
        algorithm.tell(infills=np.arange(9)[None])


@every_builder
def test_ask_twice_before_tell_builds_twice_and_counts_both(cls):
    problem = cities(14)
    algorithm = small(cls).setup(problem, termination=("n_gen", 3), seed=3)
    for _ in range(3):
        before = algorithm.evaluator.n_eval
        algorithm.ask()
        key = getattr(algorithm, "_run_key", None)
        pop = algorithm.ask()
        assert getattr(algorithm, "_run_key", None) == key  # the run has begun once
        algorithm.evaluator.eval(problem, pop)
        algorithm.tell(infills=pop)
        built = algorithm.evaluator.n_eval - before
        assert built >= 2 if cls is GPU2OptIHC else built == 2 * M
    assert not algorithm.has_next()
    assert algorithm.opt[0].F[0] == length(problem, algorithm.opt[0].X)


@every_base
def test_of_equally_long_tours_the_first_stays_the_best(cls):
    """All distances are 1, so all tours are as long."""
    algorithm = small(cls).setup(TSP(matrix=1.0 - np.eye(14)), termination=("n_gen", 4), seed=1)
    algorithm.next()
    first = algorithm.opt[0].X.copy()
    algorithm.run()
    assert np.array_equal(algorithm.opt[0].X, first)


# ---- callbacks ------------------------------------------------------------------------------------------------------


@every_base
@pytest.mark.parametrize("place", ["constructor", "minimize", "setup"])
@pytest.mark.parametrize("form", ["function", "notify", "update"])
def test_callback_is_called_once_a_generation_with_all_it_needs(cls, place, form):
    seen = []

    def watch(algorithm):
        seen.append(algorithm.n_gen)
        assert algorithm.opt[0].F[0] <= algorithm.pop[0].F[0]
        assert np.array_equal(algorithm.off[0].X, algorithm.pop[0].X)
        assert algorithm.evaluator.n_eval >= algorithm.n_gen

    class Notified(Callback):
        def notify(self, algorithm):
            watch(algorithm)

    class Updated(Callback):
        def _update(self, algorithm):
            watch(algorithm)

    callback = {"function": lambda: watch, "notify": Notified, "update": Updated}[form]()
    problem = cities(9)
    if place == "constructor":
        minimize(problem, small(cls, callback=callback), ("n_gen", 3), seed=1)
    elif place == "minimize":
        minimize(problem, small(cls), ("n_gen", 3), seed=1, callback=callback)
    else:
        small(cls).setup(problem, termination=("n_gen", 3), seed=1, callback=callback).run()
    assert seen == [1, 2, 3]


@every_builder
def test_an_interrupt_in_ask_leaves_what_was_given_and_the_next_ask_goes_on(cls, monkeypatch):
    """Lengths given by tell may be measured elsewhere: the engine evaluates nothing itself."""
    problem = cities(14)
    algorithm = small(cls).setup(problem, termination=("n_gen", 4), seed=3)
    monkeypatch.setattr(problem, "evaluate", lambda *args, **kwargs: pytest.fail("it was not asked for"))

    def tell(pop):
        pop.set("F", 2.0 * problem.tour_lengths(pop.get("X"))[:, None])
        for individual in pop:
            individual.evaluated.update(("F", "G", "H"))
        with (
            pytest.warns(UserWarning, match="is not the tour's length")
            if algorithm.n_iter == 1
            else nullcontext()
        ):
            algorithm.tell(pop)

    tell(algorithm.ask())
    evaluated, counted, build = algorithm.opt[0].F[0], algorithm.evaluator.n_eval, cls._build

    def interrupted(self, key):
        _thread.interrupt_main()
        return build(self, key)

    monkeypatch.setattr(cls, "_build", interrupted)
    with pytest.raises(KeyboardInterrupt):
        algorithm.ask()
    monkeypatch.setattr(cls, "_build", build)
    assert algorithm.opt[0].F[0] == evaluated
    assert algorithm.evaluator.n_eval >= counted
    while algorithm.has_next():
        tell(algorithm.ask())
    assert algorithm.opt[0].F[0] == 2.0 * length(problem, algorithm.opt[0].X) <= evaluated


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
def test_population_of_another_problem_is_evaluated_again_and_left_alone(cls):
    old, new = cities(N, seed=1), cities(N, seed=2)
    found = minimize(old, small(cls), ("n_gen", 2), seed=1)
    stale = found.pop[0].F.copy()
    res = minimize(new, small(cls, sampling=found.pop), ("n_gen", 1), seed=1)
    assert res.F[0] == length(new, found.pop[0].X) != stale[0]
    assert np.array_equal(found.pop[0].F, stale)


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
