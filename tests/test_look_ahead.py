"""A colony over an engine that works beside its caller learns before it is told: nobody may notice."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from pymoo.core.evaluator import Evaluator
from pymoo.core.population import Population
from pymoo.core.problem import ElementwiseProblem

from pymoo_gpuaco import GPUAS, GPUBWAS, GPUMMAS
from pymoo_gpuaco.algorithms import colony as module
from pymoo_gpuaco.backends import AheadEngine, make_colony
from tests.engine_cases import cloud

GENERATIONS = 12
ALGORITHMS = {
    "GPUMMAS": lambda **more: GPUMMAS(6, restart_after=3, **more),
    "GPUAS": lambda **more: GPUAS(6, **more),
    "GPUBWAS": lambda **more: GPUBWAS(6, **more),
}


class Beside:
    """A CPU colony that begins early, as a device does: at once, on a copy."""

    works_ahead = True

    def __init__(self, instance, parameters, backend, device):
        self.made = instance, parameters
        self.inner = make_colony(instance, parameters, "cpu")
        self.n_ants = self.inner.n_ants
        self.begun = None
        self.begins = self.reused = 0

    def begin(self, key):
        self.begins += 1
        other = make_colony(*self.made, "cpu")
        other.import_state(self.inner.export_state())
        other.construct(key)
        self.begun = key, other

    def construct(self, key):
        if self.begun is not None and self.begun[0] == key:
            self.reused += 1
            self.inner, self.begun = self.begun[1], None
            return self.inner.export_state()["lengths"].copy()
        self.begun = None
        return self.inner.construct(key)

    def hold_trails(self):
        self.held = self.inner.export_state()

    def restore_trails(self):
        self.begun = None
        self.inner.import_state({**self.held, "tours": self.inner.export_state()["tours"]})

    def reset_trails(self, value):
        self.begun = None
        self.inner.reset_trails(value)

    def update_trails(self, update):
        self.begun = None
        self.inner.update_trails(update)

    def accept(self, tours, lengths):
        self.begun = None
        self.inner.accept(tours, lengths)

    def import_state(self, state):
        self.begun = None
        self.inner.import_state(state)

    def __getattr__(self, name):
        return getattr(self.inner, name)


@pytest.fixture(params=ALGORITHMS)
def make(request):
    return ALGORITHMS[request.param]


@pytest.fixture
def beside(monkeypatch):
    """Engines that were made, the last one last."""
    made = []

    def make_engine(*arguments):
        made.append(Beside(*arguments))
        return made[-1]

    monkeypatch.setattr(module, "make_colony", make_engine)
    return made


def started(algorithm, problem):
    algorithm.setup(problem, termination=("n_gen", GENERATIONS), seed=5)
    return algorithm


def run(algorithm, problem, evaluate=None):
    """Lengths of all generations, and the trails at the end."""
    started(algorithm, problem)
    lengths = []
    while algorithm.has_next():
        infills = algorithm.ask()
        (evaluate or Evaluator().eval)(problem, infills)
        algorithm.tell(infills=infills)
        lengths.append(float(algorithm.pop.get("F")[0, 0]))
    return lengths, algorithm.engine.export_state()["tau"]


def expected(make, problem, **more):
    """The same without looking ahead."""
    return run(make(backend="cpu"), problem, **more)


def assert_same(found, expected):
    assert found[0] == expected[0]
    assert np.array_equal(found[1], expected[1])


def test_long_constructions_are_not_begun_ahead(make, beside):
    algorithm = started(make(), cloud(30))
    algorithm.next()
    assert beside[-1].begins == 1
    beside[-1].works_ahead = False  # the engine has found how long they take
    algorithm.run()
    assert beside[-1].begins == 1
    assert algorithm.n_gen - 1 == GENERATIONS


def test_the_run_is_the_same_and_every_beginning_is_used(make, request):
    problem = cloud(30)
    plain = expected(make, problem)
    engines = request.getfixturevalue("beside")
    assert_same(run(make(), problem), plain)
    assert isinstance(engines[-1], AheadEngine)
    assert engines[-1].begins == GENERATIONS
    assert engines[-1].reused == GENERATIONS - 1


def test_what_is_told_counts_when_it_is_not_the_length(make, request):
    problem = cloud(30)

    def other(problem, infills):
        infills.set("F", np.array([[float(x[1])] for x in infills.get("X")]))

    def make_one(**more):
        # a number of elites that is given is kept; without one all tours would be handed out from generation 2 on
        return make(n_elites=1, **more)

    with pytest.warns(UserWarning, match="objective"):
        plain = expected(make_one, problem, evaluate=other)
    engines = request.getfixturevalue("beside")
    with pytest.warns(UserWarning, match="objective"):
        assert_same(run(make_one(), problem, evaluate=other), plain)
    # it is tried less and less: after 0, 1, 3 and 7 generations of rest, so in generations 1, 2, 4 and 8 of 12
    assert engines[-1].begins == 4


def test_guests_cost_one_generation_each(make, request):
    problem = cloud(30)
    guest = np.random.default_rng(1).permutation(30)

    def work(algorithm):
        started(algorithm, problem)
        generation = 0
        while algorithm.has_next():
            infills = algorithm.ask()
            if generation in (3, 7):
                infills = Population.merge(infills, Population.new("X", guest[None]))
            Evaluator().eval(problem, infills)
            algorithm.tell(infills=infills)
            generation += 1
        return algorithm.opt[0].F[0], algorithm.engine.export_state()["tau"]

    plain = work(make(backend="cpu"))
    engines = request.getfixturevalue("beside")
    assert_same(work(make()), plain)
    assert engines[-1].begins == GENERATIONS
    # nothing was begun for the first, and what was begun for those after the guests was dropped
    assert engines[-1].reused == GENERATIONS - 3


def test_asking_twice_forgets_what_was_not_told(make, request):
    problem = cloud(30)

    def work(algorithm):
        started(algorithm, problem)
        algorithm.ask()
        for _ in range(4):
            algorithm.ask()
            infills = algorithm.ask()
            Evaluator().eval(problem, infills)
            algorithm.tell(infills=infills)
        return infills.get("F")[0, 0], algorithm.engine.export_state()["tau"]

    plain = work(make(backend="cpu"))
    request.getfixturevalue("beside")
    assert_same(work(make()), plain)


def test_a_copy_between_ask_and_tell_goes_on_like_the_original(make, request):
    problem = cloud(30)
    plain = expected(make, problem)
    engines = request.getfixturevalue("beside")
    algorithm = started(make(), problem)
    lengths = []
    while algorithm.has_next():
        infills = algorithm.ask()
        other = copy.deepcopy(algorithm)
        Evaluator().eval(problem, infills)
        for each in (algorithm, other):
            each.tell(infills=infills)
        assert np.array_equal(algorithm.engine.export_state()["tau"], other.engine.export_state()["tau"])
        lengths.append(float(algorithm.pop.get("F")[0, 0]))
        algorithm = other
    assert_same((lengths, algorithm.engine.export_state()["tau"]), plain)
    assert sum(engine.begins for engine in engines) > 0


@pytest.mark.filterwarnings("ignore:the problem's objective")
def test_a_copy_between_ask_and_tell_may_be_told_something_else(make, request):
    problem = cloud(30)

    def trails(algorithm):
        started(algorithm, problem)
        algorithm.next()
        infills = algorithm.ask()
        other = copy.deepcopy(algorithm)
        infills.set("F", np.array([[1.0]]))
        other.tell(infills=infills)
        return other.engine.export_state()["tau"]

    plain = trails(make(backend="cpu"))
    request.getfixturevalue("beside")
    assert np.array_equal(trails(make()), plain)


class OwnLength(ElementwiseProblem):
    """A user's problem: distances that are not whole numbers."""

    def __init__(self):
        self.D = cloud(20, metric="EXACT").D
        super().__init__(n_var=20, n_obj=1, xl=0, xu=19, vtype=int)

    def _evaluate(self, x, out, *args, **kwargs):
        out["F"] = self.D[x, np.roll(x, -1)].sum()


def test_lengths_that_rounding_may_change_are_waited_for(make, beside):
    run(make(), OwnLength(), evaluate=Evaluator().eval)
    assert beside[-1].begins == 0
