"""GPU2PPLS with objectives that are no lengths: its front is that of the evaluated values."""

from __future__ import annotations

import numpy as np
import pytest
from pymoo.optimize import minimize

from pymoo_gpuaco import GPU2PPLS, TSP, MultiObjectiveTSP
from pymoo_gpuaco.pareto.instance import front_instance
from tests.front_cases import problem_of


def test_an_objective_that_is_no_length_is_told_and_evaluated():
    class Priced(MultiObjectiveTSP):
        def _evaluate(self, x, out, *args, **kwargs):
            super()._evaluate(x, out)
            out["F"] = out["F"] + 5.0

    parts = problem_of(20).parts
    with pytest.warns(UserWarning, match="are not the tour's lengths"):
        result = minimize(Priced(parts), GPU2PPLS(), ("n_gen", 6), seed=1)
    assert (problem_of(20).tour_lengths(result.X) + 5.0 == result.F).all()


def test_under_other_objectives_the_front_is_what_no_other_dominates():
    class Flat(MultiObjectiveTSP):
        def _evaluate(self, x, out, *args, **kwargs):
            super()._evaluate(x, out)
            out["F"][:, 1] = 7.0

    with pytest.warns(UserWarning, match="are not the tour's lengths"):
        result = minimize(Flat(problem_of(20).parts), GPU2PPLS(), ("n_gen", 3), seed=1)
    same = minimize(problem_of(20), GPU2PPLS(), ("n_gen", 3), seed=1)
    assert result.F.tolist() == [[same.F[0, 0], 7.0]]


def test_another_objective_of_any_tour_is_told():
    class Surcharged(MultiObjectiveTSP):
        def _evaluate(self, x, out, *args, **kwargs):
            super()._evaluate(x, out)
            out["F"][x[:, 1] == 2] += 1e5

    tours = np.array([np.arange(20), [0, 2, 1, *range(3, 20)]])
    problem = Surcharged(problem_of(20).parts)
    with pytest.warns(UserWarning, match="are not the tour's lengths"):
        result = minimize(problem, GPU2PPLS(sampling=tours), ("n_gen", 1), seed=1)
    assert result.X.tolist() == tours[:1].tolist()  # the other one is longer by both


def matrices(n: int, scale: float) -> list[np.ndarray]:
    """Two symmetric matrices of costs between .002 and 2 of a unit."""
    costs = np.random.default_rng(1).integers(1, 1000, (2, n, n)) / 1000
    return list((costs + costs.transpose(0, 2, 1)) * scale)


@pytest.mark.parametrize("scale", [1e-130, 1e17, 1e29])
def test_the_unit_of_lengths_changes_no_front(scale):
    """From 2^53 on every number is whole, but not every sum of them."""
    usual = minimize(MultiObjectiveTSP(matrices(10, 1.0)), GPU2PPLS(backend="cpu"), ("n_gen", 30), seed=1)
    problem = MultiObjectiveTSP(matrices(10, scale))
    result = minimize(problem, GPU2PPLS(backend="cpu"), ("n_gen", 30), seed=1)
    assert np.array_equal(problem.tour_lengths(result.X), result.F)
    assert result.F.shape == usual.F.shape
    assert np.allclose(result.F, usual.F * scale, rtol=1e-9, atol=0.0)


def test_lengths_whose_products_vanish_are_refused():
    problem = MultiObjectiveTSP(matrices(10, 1e-200), names=["hours", "euros"])
    with pytest.raises(ValueError, match="lengths by 'hours' must be 0 or at least 1e-140, got"):
        minimize(problem, GPU2PPLS(), ("n_gen", 1))


@pytest.mark.parametrize(("longest", "exact"), [(2.0**49, True), (2.0**50, False)])
def test_lengths_are_whole_numbers_as_long_as_double_precision_holds_them(longest, exact):
    matrix = np.full((8, 8), 3.0)
    matrix[2, 5] = matrix[5, 2] = longest
    instance = front_instance(MultiObjectiveTSP([TSP(matrix=matrix), TSP(np.eye(8, 2), "EUC_2D")]), 5)
    assert instance.integral == exact
    assert instance.unit[1] == 1.0
    assert (instance.unit[0] == 1.0) == exact
