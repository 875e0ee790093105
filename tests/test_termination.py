"""When runs end: pymoo's terminations in every form and place, and ColonyTermination."""

import pytest
from pymoo.core.termination import NoTermination, TerminateIfAll, TerminateIfAny
from pymoo.optimize import minimize
from pymoo.termination import get_termination
from pymoo.termination.ftol import SingleObjectiveSpaceTermination
from pymoo.termination.max_gen import MaximumGenerationTermination
from pymoo.termination.robust import RobustTermination

from pymoo_gpuaco import ColonyTermination, GPU2OptIHC
from tests.algorithm_cases import (
    M,
    assert_same,
    cities,
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
def test_without_a_termination_the_colony_stops_by_itself_and_says_why(cls, unproven):
    problem = solved(4)
    res = minimize(problem, small(cls), seed=1)
    assert isinstance(res.algorithm.termination, ColonyTermination)
    assert res.algorithm.termination.reason == "stagnation: no shorter tour in 1000 generations"
    assert generations(res) == 1001  # found in the first, then a thousand without a shorter one


@every_base
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
