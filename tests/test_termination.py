"""When runs end: pymoo's terminations in every form and place, and ``ColonyTermination``."""

from __future__ import annotations

import pickle
from types import SimpleNamespace

import numpy as np
import pytest
from pymoo.core.termination import NoTermination, TerminateIfAll, TerminateIfAny
from pymoo.optimize import minimize
from pymoo.termination import get_termination
from pymoo.termination.ftol import SingleObjectiveSpaceTermination
from pymoo.termination.max_gen import MaximumGenerationTermination
from pymoo.termination.robust import RobustTermination

from pymoo_gpuaco import GPUAS, GPUMMAS, TSP, ColonyTermination, GPU2OptIHC, GPUMemetic, load_tsp
from pymoo_gpuaco.algorithms.termination import progress
from pymoo_gpuaco.runtime.clock import CLOCK
from tests.algorithm_cases import (
    M,
    assert_same,
    cities,
    every_algorithm,
    every_base,
    every_builder,
    generations,
    run_to_end,
    small,
    snapshot,
    solved,
)

pytestmark = pytest.mark.usefixtures("short_climbs")


# ---- pymoo's forms, in all places -----------------------------------------------------------------------------------

FORMS = {
    "tuple": lambda: ("n_gen", 3),
    "n_iter": lambda: ("n_iter", 3),
    "list": lambda: ["n_gen", 3],
    "get_termination": lambda: get_termination("n_gen", 3),
    "object": lambda: MaximumGenerationTermination(3),
    "any of two": lambda: TerminateIfAny(NoTermination(), MaximumGenerationTermination(3)),
    "both of two": lambda: TerminateIfAll(MaximumGenerationTermination(2), MaximumGenerationTermination(3)),
    "own": lambda: ColonyTermination(n_max_gen=3),
}


@every_base
@pytest.mark.parametrize("form", FORMS)
def test_every_form_ends_the_run_from_every_place(cls, form):
    problem, make = cities(9), FORMS[form]
    assert generations(minimize(problem, small(cls), make(), seed=1)) == 3
    assert generations(minimize(problem, small(cls, termination=make()), seed=1)) == 3
    algorithm = small(cls).setup(problem, termination=make(), seed=1)
    assert run_to_end(algorithm).n_gen == 4
    algorithm = small(cls, termination=make()).setup(problem, seed=1)
    assert run_to_end(algorithm).n_gen == 4
    algorithm = small(cls)
    algorithm.termination = make()  # as people do with pymoo's own
    assert run_to_end(algorithm.setup(problem, seed=1)).n_gen == 4


@every_base
def test_termination_of_minimize_wins_over_the_one_of_the_constructor(cls):
    assert generations(minimize(cities(9), small(cls, termination=("n_gen", 2)), ("n_gen", 4), seed=1)) == 4


@every_builder
@pytest.mark.parametrize("name", ["n_eval", "n_evals"])
def test_n_eval_stops_at_the_first_generation_that_reaches_it(cls, name):
    problem = cities(9)
    limit = 3 * M if cls is not GPU2OptIHC else 1000
    algorithm = small(cls).setup(problem, termination=(name, limit), seed=1)
    counts = []
    while algorithm.has_next():
        algorithm.next()
        counts.append(algorithm.evaluator.n_eval)
    assert counts[-2] < limit <= counts[-1]
    if cls is not GPU2OptIHC:
        assert counts == [M, 2 * M, 3 * M]


# ---- none given, used ones, and stopping by hand --------------------------------------------------------------------


@every_base
def test_without_a_termination_the_colony_stops_by_itself_and_says_why(cls, clock, unproven):
    problem = solved(4)
    res = minimize(problem, small(cls), seed=1)
    assert isinstance(res.algorithm.termination, ColonyTermination)
    assert res.algorithm.termination.reason == "stagnation: no shorter tour in 1000 generations"
    assert generations(res) == 1001  # found in the first, then a thousand without a shorter one


@every_base
@pytest.mark.parametrize("form", [*FORMS, "robust"])
def test_a_run_begins_again_with_the_termination_as_it_was_given(cls, form):
    problem = cities(9)
    make = FORMS.get(form, lambda: RobustTermination(SingleObjectiveSpaceTermination(1e9), period=3))
    algorithm = small(cls).setup(problem, termination=make(), seed=1)
    first, used = snapshot(run_to_end(algorithm)), algorithm.termination
    for again in (algorithm.setup(problem), small(cls, termination=make()).setup(problem, seed=1)):
        assert_same(first, snapshot(run_to_end(again)))
    with pytest.raises(ValueError, match=f"termination must be new, got a used {type(used).__name__}"):
        minimize(problem, small(cls), used, seed=1)


def test_a_termination_that_was_ended_by_hand_is_not_new():
    termination = MaximumGenerationTermination(3)
    termination.terminate()
    with pytest.raises(ValueError, match="termination must be new, got a used MaximumGenerationTermination"):
        small(GPU2OptIHC).setup(cities(9), termination=termination, seed=1)


def test_fresh_object_given_to_setup_is_the_one_that_runs():
    termination = MaximumGenerationTermination(50)
    algorithm = small(GPU2OptIHC).setup(cities(9), termination=termination, seed=1)
    assert algorithm.termination is termination
    algorithm.next()
    termination.terminate()  # from outside, as a signal handler would
    run_to_end(algorithm)
    assert algorithm.n_gen == 3
    own = ColonyTermination(n_max_gen=2)
    minimize(cities(9), small(GPU2OptIHC), own, copy_termination=False)
    assert own.reason == "budget: 2 generations"


@every_base
def test_terminate_in_a_callback_ends_one_generation_later_as_in_pymoo(cls, unproven):
    def stop(algorithm):
        if algorithm.n_gen == 3:
            algorithm.termination.terminate()

    assert generations(minimize(cities(9), small(cls), ("n_gen", 50), seed=1, callback=stop)) == 4
    assert generations(minimize(cities(9), small(cls), seed=1, callback=stop)) == 4


class Watched:
    """An algorithm as a termination sees it."""

    def __init__(self, best_known=None):
        self.problem = SimpleNamespace(best_known=best_known)
        self.evaluator = SimpleNamespace(n_eval=0)
        self.n_iter = 0
        self.start_time = CLOCK.wall()

    def after(self, generation, best, tours=0, broken=0.0):
        self.n_iter = self.n_gen = generation
        self.evaluator.n_eval = tours
        self.opt = type("O", (), {"get": lambda self, key: np.array([[broken if key == "CV" else best]])})()
        return self


def test_stagnation_counts_generations_since_the_last_shorter_tour():
    termination, watched = ColonyTermination(stagnation=3, n_max_gen=100), Watched()
    lengths = [9.0, 9.0, 9.0, 8.0, 8.0, 8.0]  # shorter in generations 1 and 4
    for generation, best in enumerate(lengths, start=1):
        termination.update(watched.after(generation, best))
        assert not termination.has_terminated()
    # two of the three idle generations are over
    assert termination.perc == pytest.approx(2 / 3)
    termination.update(watched.after(7, 8.0))
    assert termination.has_terminated()
    assert termination.reason == "stagnation: no shorter tour in 3 generations"


@pytest.mark.parametrize(
    ("target", "best_known", "enough", "too_long"),
    [
        (10, None, 10.0, 10.5),
        (None, 7, 7.0, 7.5),
        (10, 7, 9.0, 11.0),
        (0, None, 0.0, 1.0),
        (-5, None, -6.0, -4.0),
    ],
)
def test_target_ends_the_run_and_wins_over_best_known(target, best_known, enough, too_long):
    termination = ColonyTermination(target=target)
    watched = Watched(best_known)
    termination.update(watched.after(1, too_long))
    assert not termination.has_terminated()
    assert termination.reason is None
    termination.update(watched.after(2, enough))
    assert termination.has_terminated()
    wanted = best_known if target is None else target
    assert termination.reason == f"reached target {wanted} with length {enough:.10g}"


def test_a_tour_that_breaks_a_constraint_reaches_no_target():
    """However long the target is: a violation counts as much as 1e30 in the length."""
    termination, watched = ColonyTermination(target=1e35), Watched()
    termination.update(watched.after(1, 5.0, broken=1.0))
    assert not termination.has_terminated()
    termination.update(watched.after(2, 5.0))
    assert termination.reason == "reached target 1e+35 with length 5"


@pytest.mark.parametrize(
    ("n", "custom", "bound", "proven"),
    [
        (12, False, None, True),
        (12, False, 7.0, False),  # there is a feasible tour
        (13, False, None, False),  # no bound was found, for whatever reason
        (12, True, None, False),  # the bound is of lengths
    ],
)
def test_no_feasible_tour_is_proven_for_the_lengths_of_few_cities(n, custom, bound, proven):
    algorithm = SimpleNamespace(
        instance=SimpleNamespace(n=n), _custom_objective=custom, lower_bound=bound, opt=None
    )
    assert ColonyTermination(proven=True)._is_proven(algorithm, 1000.0, False) == proven


def test_many_tours_without_a_shorter_one_are_stagnation():
    termination, watched = ColonyTermination(stagnation_tours=100), Watched()
    for generation, (best, tours) in enumerate([(9.0, 60), (8.0, 120), (8.0, 219)], start=1):
        termination.update(watched.after(generation, best, tours))
        assert not termination.has_terminated()
    termination.update(watched.after(4, 8.0, 220))
    assert termination.reason == "stagnation: no shorter tour among 100"


@every_algorithm
def test_the_default_budget_is_a_minute(cls, clock, unproven):
    algorithm = small(cls).setup(cities(14), seed=1)
    algorithm.termination.stagnation = algorithm.termination.stagnation_tours = None
    algorithm.next()
    clock.step(59.0)
    algorithm.next()
    assert algorithm.has_next()
    clock.step(1.0)
    algorithm.next()
    assert not algorithm.has_next()
    assert algorithm.termination.reason == "budget: 60 s"


def test_seconds_are_those_of_the_run_without_a_pause_in_a_file(clock):
    algorithm = GPUMMAS(n_ants=2, backend="cpu").setup(
        cities(14), termination=ColonyTermination(seconds=10.0), seed=1
    )
    algorithm.next()
    clock.step(3.0)
    algorithm.next()
    data = pickle.dumps(algorithm)
    clock.step(500.0)
    later = pickle.loads(data)
    later.next()
    assert later.has_next()
    assert later.termination.seconds_left(later.start_time) == 7.0
    clock.step(7.0)
    later.next()
    assert later.termination.reason == "budget: 10 s"


def test_progress_is_what_is_spent():
    termination, watched = ColonyTermination(n_max_gen=8, stagnation=2, seconds=None), Watched()
    assert progress(termination, 0.0) == 0.0
    for generation in (1, 2):
        termination.update(watched.after(generation, 5.0))
    assert termination.perc == 0.5  # one idle generation of two
    assert progress(termination, 0.0) == 0.25
    never, third = NoTermination(), MaximumGenerationTermination(6)
    third.update(watched)
    assert progress(third, 0.0) == pytest.approx(1 / 3)
    assert np.isnan(progress(never, 0.0))
    assert progress(TerminateIfAny(never, third, termination), 0.0) == pytest.approx(1 / 3)
    assert np.isnan(progress(TerminateIfAny(never), 0.0))
    assert np.isnan(progress(TerminateIfAll(third, termination), 0.0))


@pytest.mark.parametrize("goal", ["fmin", "soo"])
def test_how_near_a_target_or_a_tolerance_is_is_no_progress(goal, monkeypatch):
    """The first tour is at 90 % of the target, and the search anneals from the beginning all the same."""
    problem, expected = cities(60), []
    monkeypatch.setattr(
        "pymoo_gpuaco.memetic.search.MemeticSearch.expect",
        lambda search, progress: expected.append(progress),
    )
    first = minimize(problem, GPUMemetic(backend="cpu"), ("n_gen", 1), seed=1).F[0]
    expected.clear()
    ends = get_termination("fmin", 0.9 * first) if goal == "fmin" else get_termination("soo", n_max_gen=4)
    minimize(problem, GPUMemetic(backend="cpu"), TerminateIfAny(ends, get_termination("n_gen", 4)), seed=1)
    assert expected == [0.0, 0.25, 0.5, 0.75]


def test_best_known_of_the_problem_is_the_target():
    square = TSP(100.0 * np.array([[0, 0], [0, 1], [1, 1], [1, 0]]), "EUC_2D", best_known=400)
    res = minimize(square, small(GPU2OptIHC), seed=1)
    assert res.algorithm.termination.reason == "reached target 400 with length 400"
    assert generations(res) == 1


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"target": "x"}, TypeError, "target must be a number"),
        ({"target": np.nan}, ValueError, "target must be in"),
        ({"stagnation": 0}, ValueError, "stagnation must be an integer >= 1, got 0"),
        ({"stagnation": 2.5}, TypeError, "stagnation must be an integer >= 1, got 2.5"),
        ({"n_max_gen": -1}, ValueError, "n_max_gen must be an integer >= 1, got -1"),
        ({"seconds": 0}, ValueError, r"seconds must be in \(0, inf\), got 0"),
        ({"seconds": "60"}, TypeError, "seconds must be a number"),
        ({"stagnation_tours": 0}, ValueError, "stagnation_tours must be an integer >= 1, got 0"),
    ],
)
def test_arguments_out_of_range_are_named(arguments, error, words):
    with pytest.raises(error, match=words):
        ColonyTermination(**arguments)


@pytest.mark.parametrize(
    ("termination", "words"),
    [
        (("n_gen", -5), r"'n_gen' must be in \[1, inf\), got -5"),
        (("n_eval", 0), r"'n_eval' must be in \[1, inf\), got 0"),
        (("time", 0), r"'time' must be in \(0, inf\), got 0"),
        (("fmin", np.nan), r"'fmin' must be in \(-inf, inf\), got nan"),
        (("fmin", np.inf), r"'fmin' must be in \(-inf, inf\), got inf"),
        (("n_gne", 5), "must be one of 'n_gen', .*, got 'n_gne'; did you mean 'n_gen'"),
        (("n_gen", "ten"), "'n_gen' must be a number"),
        ("n_gen", r"'n_gen' must come with one number, as in \('n_gen', 200\), got 'n_gen'"),
        (("time",), "'time' must come with one number"),
        (("n_gen", 5, "time", 3), "'n_gen' must come with one number"),
        (("time", "90s"), "'time' must be seconds or 'HH:MM:SS', got '90s'"),
        (200, r"short form, such as \('n_gen', 200\) or \('time', 10\), got 200"),
        ("200", "must be one of 'n_gen', .*, got '200'"),
        (("n_gen", 2.5), "'n_gen' must be a whole number, got 2.5"),
        (("n_eval", 100.1), "'n_eval' must be a whole number, got 100.1"),
    ],
)
def test_a_budget_that_is_none_is_refused_before_the_run(termination, words):
    with pytest.raises((ValueError, TypeError), match=words):
        minimize(load_tsp("gr17"), GPUMMAS(n_ants=2), termination)


def ring(n, **more):
    """Cities on a circle: the ring is a shortest tour, and a 1-tree of the same length proves it."""
    angle = np.random.default_rng(1).permutation(n) * 2 * np.pi / n
    return TSP(100 * np.column_stack([np.cos(angle), np.sin(angle)]), **more)


@pytest.mark.parametrize("n", [3, 5, 10, 40])
def test_the_default_run_ends_with_a_tour_that_is_proven_to_be_shortest(n):
    result = minimize(ring(n), GPUMemetic(), seed=1)
    assert result.algorithm.termination.reason == f"proof: no tour is shorter than {result.F[0]:.10g}"
    assert result.F[0] == pytest.approx(200 * n * np.sin(np.pi / n))


def test_the_default_run_ends_at_once_where_no_tour_of_few_cities_keeps_to_its_constraints():
    """Six cities in a row: the way back is missing."""
    row = np.full((6, 6), np.inf)
    row[range(5), range(1, 6)] = row[range(1, 6), range(5)] = 1.0
    result = minimize(TSP(matrix=row), GPUMemetic(), seed=1)
    assert result.algorithm.termination.reason == "proof: every tour violates a constraint"
    kept = minimize(TSP(matrix=row), GPUMemetic(), ("n_gen", 3), seed=1)
    assert kept.algorithm.n_iter - 1 == 3


@pytest.mark.parametrize(
    ("n", "off", "made"),
    [(8, 5e-4, 4), (8, 1e-13, 4), (8, 5e-15, 1), (8, 0.0, 1), (14, 1e-8, 4), (14, 1e-10, 1)],
)
@pytest.mark.parametrize("sign", [-1, 1])
def test_a_run_goes_on_unless_its_best_tour_is_as_long_as_the_bound(n, off, made, sign, monkeypatch):
    """A bound a little below the optimum proves nothing, and one above it is no bound of these lengths.

    A proof holds within 1e-9 of the length, up to 12 cities within 8 n rounding errors, 1.4e-14 for 8 cities.
    """
    optimum = 200 * n * np.sin(np.pi / n)
    bound = (1 + sign * off) * optimum
    monkeypatch.setattr(GPUAS, "bound_in_time", lambda self: bound)
    monkeypatch.setattr("pymoo_gpuaco.algorithms.termination._PROOF_AFTER", 0.0)  # after any time of search
    termination = ColonyTermination(n_max_gen=4, proven=True)
    result = minimize(ring(n), GPUAS(40, beta=5.0, backend="cpu"), termination, seed=1)
    assert result.F[0] == pytest.approx(optimum, rel=1e-14)
    assert result.algorithm.n_iter - 1 == made
    assert ("proof" in result.algorithm.termination.reason) == (made == 1)


def test_a_proof_ends_no_run_whose_user_said_when_it_ends():
    for termination, made in ((("n_gen", 4), 4), (ColonyTermination(n_max_gen=3), 3)):
        assert minimize(ring(8), GPUMemetic(), termination, seed=1).algorithm.n_iter - 1 == made
    own = ColonyTermination(n_max_gen=50, proven=True)
    assert minimize(ring(8), GPUMemetic(), own, seed=1).algorithm.n_iter - 1 < 50


class Fee(TSP):
    """Each tour costs 1 more than its length, and those that begin 0, 1 cost nothing at all."""

    def _evaluate(self, x, out, *args, **kwargs):
        super()._evaluate(x, out)
        out["F"] = np.where(x[:, 1:2] == 1, 0.0, out["F"] + 1.0)


class Doubled(TSP):
    """Each tour costs twice its length: the cheapest one is also the shortest."""

    def _evaluate(self, x, out, *args, **kwargs):
        super()._evaluate(x, out)
        out["F"] = 2.0 * out["F"]


@pytest.mark.parametrize("kind", [Fee, Doubled])
def test_a_proof_of_lengths_ends_no_run_of_another_objective(kind):
    problem = kind(ring(8).positions)
    termination = ColonyTermination(n_max_gen=5, proven=True)
    with pytest.warns(UserWarning, match="not the tour's length"):
        result = minimize(problem, GPUMMAS(), termination, seed=1)
    assert result.algorithm.n_iter - 1 == 5
    with pytest.raises(TypeError, match="proven must be"):
        ColonyTermination(proven=1)
