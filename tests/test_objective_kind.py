"""Objectives that are the tour length: what a class says, else three random tours."""

import numpy as np
import pytest
from pymoo.core.problem import ElementwiseProblem, Problem
from pymoo.problems.single.traveling_salesman import create_random_tsp_problem

from pymoo_gpuaco import TSP, OpenPath
from pymoo_gpuaco.problems.pymoo_problems import differ, evaluates_length

SQUARE = np.array([[0, 1, 2, 1], [1, 0, 1, 2], [2, 1, 0, 1], [1, 2, 1, 0]])


class Own(Problem):
    """Counts what it evaluates; F is whatever a function of one tour says."""

    def __init__(self, D, value):
        self.D, self.value, self.seen = D, value, []
        super().__init__(n_var=len(D), n_obj=1, xl=0, xu=len(D) - 1, vtype=int)

    def _evaluate(self, x, out, *args, **kwargs):
        self.seen += [row.copy() for row in x]
        out["F"] = np.array([[self.value(row)] for row in x], float)


def length(D):
    return lambda tour: D[tour, np.roll(tour, -1)].sum()


@pytest.mark.parametrize(
    "problem",
    [
        TSP([[0, 0], [0, 1], [1, 1], [1, 0]]),
        OpenPath([[0, 0], [0, 1], [1, 1], [1, 0]]),
        create_random_tsp_problem(5),
    ],
    ids=lambda problem: type(problem).__name__,
)
def test_a_class_that_says_so_is_not_evaluated(problem, monkeypatch):
    monkeypatch.setattr(type(problem), "evaluate", lambda *_, **__: pytest.fail("evaluated"))
    assert evaluates_length(problem)


def test_three_random_tours_are_compared_and_the_same_each_time():
    problem = Own(SQUARE, length(SQUARE))
    assert evaluates_length(problem)
    assert len(problem.seen) == 3
    assert evaluates_length(problem)
    assert np.array_equal(problem.seen[:3], problem.seen[3:])
    assert all(sorted(row) == [0, 1, 2, 3] for row in problem.seen)


@pytest.mark.parametrize(
    "value",
    [
        lambda tour: (np.arange(6) * tour).sum(),  # by position
        lambda tour: sum(tour[i] < tour[i + 1] for i in range(5)),  # by direction
        lambda tour: length(np.abs(np.subtract.outer(np.arange(6), np.arange(6))))(tour) + 1e-3,
        lambda tour: np.inf,  # of what is not allowed
        lambda tour: np.nan,
    ],
    ids=["position", "direction", "price", "inf", "nan"],
)
def test_other_objectives_take_one_evaluation(value):
    problem = Own(np.abs(np.subtract.outer(np.arange(6), np.arange(6))), value)
    assert not evaluates_length(problem)
    assert len(problem.seen) == 1


def test_an_asymmetric_length_is_one_and_its_reverse_is_none():
    D = np.random.default_rng(1).random((7, 7))
    assert evaluates_length(Own(D, length(D)))
    assert not evaluates_length(Own(D, length(D.T)))


def test_a_subclass_that_only_counts_keeps_the_length_and_one_with_tolls_does_not():
    class Counted(TSP):
        def _evaluate(self, x, out, *args, **kwargs):
            super()._evaluate(x, out)

    class Tolled(TSP):
        def _evaluate(self, x, out, *args, **kwargs):
            super()._evaluate(x, out)
            out["F"] = out["F"] + x[:, :1]

    matrix = np.where(SQUARE == 2, np.inf, SQUARE)  # forbidden edges count in G, not in F
    assert evaluates_length(Counted(matrix=matrix))
    assert not evaluates_length(Tolled(matrix=matrix))


def test_a_problem_that_does_not_evaluate_itself_has_a_custom_objective():
    problem = Problem(n_var=4, n_obj=1, xl=0, xu=3, vtype=int)
    problem.D = SQUARE
    assert not evaluates_length(problem)


def test_elementwise_problems_are_evaluated_too():
    class Tour(ElementwiseProblem):
        D = SQUARE

        def __init__(self):
            super().__init__(n_var=4, n_obj=1, xl=0, xu=3, vtype=int)

        def _evaluate(self, x, out, *args, **kwargs):
            out["F"] = length(SQUARE)(x)

    assert evaluates_length(Tour())


@pytest.mark.parametrize("scale", [1e-290, 1e-9, 1.0, 1e30])
def test_values_differ_by_more_than_rounding_at_any_scale(scale):
    assert differ(2.0 * scale, scale)
    assert differ(scale * (1 + 2e-6), scale)
    assert not differ(scale * (1 + 5e-7), scale)
    assert differ(-scale, scale)
    assert not differ(0.0, 0.0)
