"""`PermutationAlgorithm`, with an engine that orders jobs: it knows neither distances nor tours."""

from dataclasses import dataclass

import numpy as np
import pytest
from pymoo.core.algorithm import Algorithm
from pymoo.core.problem import Problem
from pymoo.optimize import minimize

from pymoo_gpuaco import GPUEAS, ColonyTermination, checkpoint, checks
from pymoo_gpuaco.algorithms.arguments import Count
from pymoo_gpuaco.algorithms.permutation import PermutationAlgorithm
from pymoo_gpuaco.runtime.stop import Stop, StoppableEngine

JOBS, ROWS = 7, 5


class Delays(Problem):
    """Total completion time of jobs: shortest first is best."""

    def __init__(self, times=range(1, JOBS + 1)):
        self.times = np.array(times, float)
        super().__init__(n_var=len(self.times), n_obj=1, xl=0, xu=len(self.times) - 1, vtype=int)

    def _evaluate(self, X, out, *args, **kwargs):
        out["F"] = self.times[X].cumsum(axis=1).sum(axis=1)


class SwapEngine(StoppableEngine):
    """Swaps two jobs of the best order; the instance is the times of the jobs."""

    kind = "cpu"

    def __init__(self, instance, parameters, backend, device):
        self.instance, self.n_rows, self.stop = instance, parameters["n_rows"], Stop()
        self.best = np.arange(len(instance))[::-1].copy()  # the longest first

    def construct(self, key):
        random = np.random.default_rng(key)
        rows = np.repeat(self.best[None], self.n_rows, axis=0)
        for row in rows:
            i, j = random.choice(len(row), 2, replace=False)
            row[[i, j]] = row[[j, i]]
        return rows, self.instance[rows].cumsum(axis=1).sum(axis=1)

    def accept(self, rows, values):
        self.best = np.array(rows[np.argmin(values)])

    def export_state(self):
        return {"best": self.best.copy()}

    def import_state(self, state):
        self.best = checks.tours("state['best']", state["best"], len(self.instance))[0]


@dataclass(kw_only=True, eq=False, repr=False)
class Swaps(PermutationAlgorithm):
    """Swaps of jobs, n_rows a generation."""

    n_rows: Count = ROWS
    _make_engine = staticmethod(SwapEngine)

    def _check(self):
        super()._check()
        checks.integer("n_rows", self.n_rows, 1)

    def _parameters(self):
        return {"n_rows": self.n_rows}

    def _inspect_problem(self):
        if not isinstance(self.problem, Delays):
            raise TypeError(f"problem must be Delays, got {type(self.problem).__name__}")

    def _instance_maker(self):
        return self.problem.times.copy

    def _adopt(self, engine):
        self._size = engine.n_rows

    def _build(self, key):
        rows, values = self.engine.construct(key)
        self.iteration_mean = float(values.mean())
        return rows, values, len(rows)

    def _learn(self, evaluated):
        if evaluated.values.min() <= self.opt_value():
            self._accept(evaluated)

    def opt_value(self):
        return np.inf if self.opt is None else self.opt[0].F[0]


# 7 jobs of 1 .. 7: the shortest first takes 1 * 7 + 2 * 6 + 3 * 5 + 4 * 4 + 5 * 3 + 6 * 2 + 7 * 1
BEST = 84


def test_minimize_finds_the_best_order_and_counts_every_row(capsys):
    result = minimize(Delays(), Swaps(), ("n_gen", 60), seed=1, verbose=True)
    assert result.F == [BEST]
    assert result.X.tolist() == list(range(JOBS))  # not rotated
    assert result.algorithm.evaluator.n_eval == 60 * ROWS
    assert capsys.readouterr().out.startswith("Swaps\n")
    assert repr(Swaps(n_rows=3)) == "Swaps(n_rows=3)"


def test_it_ends_by_the_default_termination_and_by_a_target():
    assert minimize(Delays(), Swaps(), ColonyTermination(stagnation=30), seed=1).F == [BEST]
    reached = minimize(Delays(), Swaps(), ColonyTermination(target=BEST, proven=True), seed=1)
    assert reached.algorithm.termination.reason.startswith("reached target 84")


def test_ask_and_tell_give_the_run_of_minimize_and_take_orders_of_the_user():
    problem = Delays()
    algorithm = Swaps().setup(problem, termination=("n_gen", 9), seed=4)
    while algorithm.has_next():
        rows = algorithm.ask()
        algorithm.evaluator.eval(problem, rows)
        algorithm.tell(infills=rows)
    assert np.array_equal(algorithm.result().X, minimize(problem, Swaps(), ("n_gen", 9), seed=4).X)

    algorithm = Swaps().setup(problem, seed=4)
    rows = algorithm.ask()
    rows[0].X = np.arange(JOBS)
    algorithm.evaluator.eval(problem, rows)
    algorithm.tell(infills=rows)
    assert algorithm.engine.best.tolist() == list(range(JOBS))
    rows = algorithm.ask()
    rows[0].X = np.zeros(JOBS, int)
    algorithm.evaluator.eval(problem, rows)
    with pytest.raises(ValueError, match="infills: row 0 is not a permutation"):
        algorithm.tell(infills=rows)


def test_a_run_starts_from_given_orders():
    given = np.array([[0, 1, 2, 3, 4, 6, 5]])
    algorithm = Swaps(sampling=given).setup(Delays(), seed=1)
    algorithm.next()
    assert algorithm.engine.best.tolist() == given[0].tolist()
    assert algorithm.opt[0].F == [BEST + 1]


def test_a_run_continues_from_a_file(tmp_path, monkeypatch):
    name = "pymoo_gpuaco.Swaps"
    monkeypatch.setitem(checkpoint._CLASSES, name, Swaps)
    monkeypatch.setitem(checkpoint.NAME_OF_CLASS, Swaps, name)
    monkeypatch.setattr(checkpoint, "NEW", checkpoint.NEW | {Swaps})
    problem = Delays()
    whole = minimize(problem, Swaps(), ("n_gen", 12), seed=2)
    algorithm = Swaps().setup(problem, termination=("n_gen", 12), seed=2)
    for _ in range(5):
        algorithm.next()
    checkpoint.save(algorithm, tmp_path / "run")
    loaded = checkpoint.load(tmp_path / "run", problem=problem)
    loaded.run()
    assert loaded.opt[0].F == whole.F
    assert np.array_equal(loaded.pop.get("X"), whole.pop.get("X"))

    algorithm._asked_permutations.rows[0] = 0
    checkpoint.save(algorithm, tmp_path / "run")
    with pytest.raises(ValueError, match="row 0 is not a permutation"):
        checkpoint.load(tmp_path / "run", problem=problem)


def test_other_problems_and_values_are_refused():
    other = Problem(n_var=4, n_obj=1, vtype=int)
    with pytest.raises(TypeError, match="problem must be Delays, got Problem"):
        Swaps().setup(other)
    with pytest.raises(ValueError, match=r"n_rows must be an integer >= 1, got 0"):
        Swaps(n_rows=0)
    with pytest.raises(TypeError, match="Swaps has no argument 'n_row'; did you mean n_rows"):
        Swaps(n_row=3)


def test_at_most_four_classes_are_between_a_colony_and_pymoo():
    names = [cls.__name__ for cls in GPUEAS.__mro__ if issubclass(cls, Algorithm)]
    assert names == ["GPUEAS", "AntColony", "TourAlgorithm", "PermutationAlgorithm", "Algorithm"]
