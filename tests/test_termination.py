"""When runs end: pymoo's terminations in every form and place, and ColonyTermination."""

import copy
import pickle
import time
from types import SimpleNamespace

import numpy as np
import pytest
from pymoo.core.termination import NoTermination, TerminateIfAll, TerminateIfAny, Termination
from pymoo.optimize import minimize
from pymoo.termination import get_termination
from pymoo.termination.default import DefaultSingleObjectiveTermination
from pymoo.termination.ftol import SingleObjectiveSpaceTermination
from pymoo.termination.max_gen import MaximumGenerationTermination
from pymoo.termination.robust import RobustTermination
from pymoo.termination.xtol import DesignSpaceTermination

from pymoo_gpuaco import GPUMMAS, TSP, ColonyTermination, GPU2OptIHC, load_tsp
from pymoo_gpuaco.algorithms import termination as termination_module
from pymoo_gpuaco.algorithms.termination import as_new, progress
from pymoo_gpuaco.candidates.exact import shortest_tour
from tests.algorithm_cases import (
    M,
    assert_same,
    cities,
    every_algorithm,
    run_to_end,
    shorten_climbs,
    small,
    snapshot,
)


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    shorten_climbs(monkeypatch)


def generations(res):
    return res.algorithm.n_gen - 1


def solved(n=8):
    """A problem whose optimum every colony finds at once: cities on a circle of about 5 a step."""
    angle = 2 * np.pi * np.arange(n) / n
    return TSP(1000 * np.column_stack([np.cos(angle), np.sin(angle)]), "EXACT")


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


@every_algorithm
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


@every_algorithm
def test_termination_of_minimize_wins_over_the_one_of_the_constructor(cls):
    assert generations(minimize(cities(9), small(cls, termination=("n_gen", 2)), ("n_gen", 4), seed=1)) == 4


@every_algorithm
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


@every_algorithm
def test_fmin_stops_at_the_target(cls):
    problem = solved()
    best = problem.tour_length(np.arange(8))
    res = minimize(problem, small(cls), ("fmin", best * 1.0001), seed=1)
    assert res.F[0] == pytest.approx(best)


@every_algorithm
@pytest.mark.parametrize("limit", [1, 0.01, "00:00:01", np.float64(0.01)], ids=str)
def test_time_is_counted_from_the_first_generation(cls, limit):
    algorithm = small(cls).setup(cities(9), termination=("time", limit), seed=1)
    algorithm.next()
    algorithm.start_time -= 1.5  # as if it had begun so long ago
    algorithm.next()
    assert not algorithm.has_next()
    assert algorithm.n_gen == 3


@every_algorithm
def test_pymoo_default_by_name_and_object_ends_a_run_that_stands_still(cls):
    # the optimum is found at once, after which nothing moves for 30 generations
    for termination in ("soo", DefaultSingleObjectiveTermination(period=30)):
        assert 30 <= generations(minimize(solved(4), small(cls), termination, seed=1)) <= 32


@every_algorithm
def test_tolerance_objects_see_no_move_in_a_tour_that_stays(cls):
    for tolerance in (SingleObjectiveSpaceTermination(1e-6), DesignSpaceTermination(1e-8)):
        res = minimize(solved(4), small(cls), RobustTermination(tolerance, period=4), seed=1)
        assert 4 <= generations(res) <= 6


def test_unknown_name_raises_and_leaves_the_algorithm_unused():
    algorithm = small(GPU2OptIHC)
    with pytest.raises(Exception, match="termination must be one of 'n_gen', "):
        algorithm.setup(cities(9), termination=("ftol", 1e-3))
    assert algorithm.problem is None


@pytest.fixture
def unproven(monkeypatch):
    """No run ends since its tour is proven to be the shortest."""
    monkeypatch.setattr(termination_module, "MOST_CITIES_TO_PROVE", 0)


# ---- none given, used ones, and stopping by hand --------------------------------------------------------------------


@every_algorithm
def test_without_a_termination_the_colony_stops_by_itself_and_says_why(cls, unproven):
    problem = solved(4)
    res = minimize(problem, small(cls), seed=1)
    assert isinstance(res.algorithm.termination, ColonyTermination)
    assert res.algorithm.termination.reason == "stagnation: no shorter tour in 1000 generations"
    assert generations(res) == 1001  # found in the first, then a thousand without a shorter one


@every_algorithm
@pytest.mark.parametrize("form", [*FORMS, "robust"])
def test_used_termination_object_serves_a_second_run(cls, form):
    problem = cities(9)
    if form == "robust":
        termination = RobustTermination(SingleObjectiveSpaceTermination(1e9), period=3)
    else:
        termination = FORMS[form]()
    first = snapshot(run_to_end(small(cls).setup(problem, termination=termination, seed=1)))
    assert_same(first, snapshot(run_to_end(small(cls).setup(problem, termination=termination, seed=1))))
    assert_same(first, snapshot(minimize(problem, small(cls), termination, seed=1).algorithm))
    constructed = small(cls, termination=termination)
    for _ in range(2):
        assert_same(first, snapshot(run_to_end(constructed.setup(problem, seed=1))))


@every_algorithm
def test_termination_class_of_the_user_is_as_it_was_given_in_every_run(cls):
    class Third(Termination):
        seen = 0

        def _update(self, algorithm):
            self.seen += 1
            return self.seen / 3

    by_setup, by_constructor = small(cls), small(cls, termination=Third())
    by_setup.setup(cities(9), termination=Third(), seed=1).run()
    by_constructor.setup(cities(9), seed=1).run()
    for algorithm in (by_setup, by_constructor):
        assert algorithm.n_gen == 4
        assert run_to_end(algorithm.setup(cities(9))).n_gen == 4


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


@every_algorithm
def test_terminate_in_a_callback_ends_one_generation_later_as_in_pymoo(cls, unproven):
    def stop(algorithm):
        if algorithm.n_gen == 3:
            algorithm.termination.terminate()

    assert generations(minimize(cities(9), small(cls), ("n_gen", 50), seed=1, callback=stop)) == 4
    assert generations(minimize(cities(9), small(cls), seed=1, callback=stop)) == 4


def test_as_new_undoes_a_run_in_every_part():
    default = DefaultSingleObjectiveTermination(period=4)
    used = copy.deepcopy(default)
    minimize(cities(9), small(GPU2OptIHC), used, copy_termination=False, seed=1)
    assert used.has_terminated()
    assert len(used.f.history) == 4
    assert used.f.termination.data is not None
    fresh = as_new(used)
    assert fresh is not used
    assert used.has_terminated()  # the user's object stays as it is
    for part in (fresh, *fresh.criteria, fresh.x.termination, fresh.f.termination):
        assert part.perc == 0.0
    assert len(fresh.f.history) == 0
    assert fresh.f.termination.data is None
    assert fresh.f.termination.counter == 0
    assert as_new(default, keep=True) is default
    assert as_new(default) is not default
    assert as_new(("n_gen", 3)) == ("n_gen", 3)


# ---- ColonyTermination ----------------------------------------------------------------------------------------------


class Watched:
    """An algorithm as a termination sees it."""

    def __init__(self, best_known=None):
        self.problem = SimpleNamespace(best_known=best_known)
        self.evaluator = SimpleNamespace(n_eval=0)
        self.n_iter = 0
        self.start_time = time.time()

    def after(self, generation, best, tours=0):
        self.n_iter = self.n_gen = generation
        self.evaluator.n_eval = tours
        self.opt = type("O", (), {"get": lambda self, key: np.array([[0.0 if key == "CV" else best]])})()
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
    assert termination.reason == f"target: a tour of length {enough:.10g}, wanted {wanted} or less"


def test_budget_ends_the_run():
    termination, watched = ColonyTermination(n_max_gen=2), Watched()
    termination.update(watched.after(1, 5.0))
    assert termination.perc == 0.5
    termination.update(watched.after(2, 4.0))
    assert termination.reason == "budget: 2 generations"
    termination.start_again()
    assert termination.reason is None


def test_many_tours_without_a_shorter_one_are_stagnation():
    termination, watched = ColonyTermination(stagnation_tours=100), Watched()
    for generation, (best, tours) in enumerate([(9.0, 60), (8.0, 120), (8.0, 219)], start=1):
        termination.update(watched.after(generation, best, tours))
        assert not termination.has_terminated()
    termination.update(watched.after(4, 8.0, 220))
    assert termination.reason == "stagnation: no shorter tour among 100"


def test_few_cities_stagnate_after_many_climbs_not_after_a_thousand_slices_of_time(unproven):
    algorithm = small(GPU2OptIHC, n_climbers=32).setup(cities(8), seed=1)
    algorithm.termination.stagnation_tours = 3000
    run_to_end(algorithm)
    assert algorithm.n_gen < 1000
    assert algorithm.termination.reason.startswith("stagnation: no shorter tour among 3")


@pytest.fixture
def clock(monkeypatch):
    """Seconds that a test sets."""
    now = SimpleNamespace(seconds=1000.0)
    monkeypatch.setattr(termination_module, "time", SimpleNamespace(time=lambda: now.seconds))
    return now


@every_algorithm
def test_the_default_budget_is_a_minute(cls, clock, unproven):
    algorithm = small(cls).setup(cities(14), seed=1)
    algorithm.termination.stagnation = algorithm.termination.stagnation_tours = None
    algorithm.next()
    clock.seconds += 59.0
    algorithm.next()
    assert algorithm.has_next()
    clock.seconds += 1.0
    algorithm.next()
    assert not algorithm.has_next()
    assert algorithm.termination.reason == "budget: 60 s"


def test_seconds_begin_with_the_first_generation_and_stop_where_the_run_does(clock):
    termination, watched = ColonyTermination(seconds=10.0), Watched()
    watched.start_time = 997.0
    termination.update(watched.after(1, 5.0))
    assert termination.perc == pytest.approx(0.3)
    clock.seconds += 4.0
    termination.update(watched.after(2, 5.0))
    assert termination.perc == pytest.approx(0.7)
    clock.seconds += 500.0
    later = pickle.loads(pickle.dumps(termination))
    clock.seconds += 500.0
    later.update(watched.after(3, 5.0))  # the first after a pause: nobody knows when it began
    assert later.perc == pytest.approx(0.7)
    clock.seconds += 3.0
    later.update(watched.after(4, 5.0))
    assert later.reason == "budget: 10 s"


def test_none_is_no_limit(clock):
    termination = ColonyTermination(stagnation=None, n_max_gen=None, seconds=None, stagnation_tours=None)
    watched = Watched()
    for generation in (1, 10**9):
        clock.seconds += 1e9
        termination.update(watched.after(generation, 5.0, 10**12))
    assert termination.perc == 0.0
    assert np.isnan(termination.spent)


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
    assert progress(TerminateIfAll(third, termination), 0.0) == 0.25
    assert np.isnan(progress(TerminateIfAll(never, third), 0.0))


def test_best_known_of_the_problem_is_the_target():
    square = TSP(100.0 * np.array([[0, 0], [0, 1], [1, 1], [1, 0]]), "EUC_2D", best_known=400)
    res = minimize(square, small(GPU2OptIHC), seed=1)
    assert res.algorithm.termination.reason == "target: a tour of length 400, wanted 400 or less"
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
        (("n_gne", 5), "must be one of 'n_gen', .*, got 'n_gne'; did you mean 'n_gen'"),
        (("n_gen", "ten"), "'n_gen' must be a number"),
    ],
)
def test_a_budget_that_is_none_is_refused_before_the_run(termination, words):
    with pytest.raises((ValueError, TypeError), match=words):
        minimize(load_tsp("gr17"), GPUMMAS(n_ants=2), termination)


def test_a_budget_may_be_written_as_a_float():
    assert minimize(load_tsp("gr17"), GPUMMAS(n_ants=2), ("n_eval", 1e1), seed=1).F[0] >= 2085


def ring(n, **more):
    """Cities on a circle: the ring is a shortest tour, and a 1-tree of the same length proves it."""
    angle = np.random.default_rng(1).permutation(n) * 2 * np.pi / n
    return TSP(100 * np.column_stack([np.cos(angle), np.sin(angle)]), **more)


@pytest.mark.parametrize("n", [3, 5, 10, 40])
def test_the_default_run_ends_with_a_tour_that_is_proven_to_be_shortest(n):
    result = minimize(ring(n), GPUMMAS(), seed=1)
    assert result.algorithm.termination.reason == f"proof: no tour is shorter than {result.F[0]:.10g}"
    assert result.F[0] == pytest.approx(200 * n * np.sin(np.pi / n))
    assert result.exec_time < 20  # of the minute that it might take


def test_ten_asymmetric_cities_end_with_their_optimum_too():
    problem = TSP(matrix=np.random.default_rng(4).random((10, 10)))
    result = minimize(problem, GPUMMAS(), seed=1)
    assert result.F[0] == pytest.approx(problem.tour_length(shortest_tour(problem.D)), rel=1e-12)
    assert "proof" in result.algorithm.termination.reason


def test_a_proof_ends_no_run_whose_user_said_when_it_ends():
    for termination, generations in ((("n_gen", 4), 4), (ColonyTermination(n_max_gen=3), 3)):
        assert minimize(ring(8), GPUMMAS(), termination, seed=1).algorithm.n_iter - 1 == generations
    own = ColonyTermination(n_max_gen=50, proven=True)
    assert minimize(ring(8), GPUMMAS(), own, seed=1).algorithm.n_iter - 1 < 50


class Fee(TSP):
    """Each tour costs 1 more than its length, and those that begin 0, 1 cost nothing at all."""

    def _evaluate(self, x, out, *args, **kwargs):
        super()._evaluate(x, out)
        out["F"] = np.where(x[:, 1:2] == 1, 0.0, out["F"] + 1.0)


def test_a_proof_of_lengths_ends_no_run_of_another_objective():
    problem = Fee(ring(8).positions)
    termination = ColonyTermination(n_max_gen=5, proven=True)
    with pytest.warns(UserWarning, match="not the tour's length"):
        result = minimize(problem, GPUMMAS(), termination, seed=1)
    assert result.algorithm.n_iter - 1 == 5
    with pytest.raises(TypeError, match="proven must be"):
        ColonyTermination(proven=1)
