"""When runs end: pymoo's terminations in every form and place, and ColonyTermination."""

import copy

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

from pymoo_gpuaco import ColonyTermination, GPU2OptIHC
from pymoo_gpuaco.algorithms.termination import as_new
from tests.algorithm_cases import (
    M,
    assert_same,
    cities,
    every_algorithm,
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
