"""GPUMOACO with objectives that are no lengths: its front is that of what was told."""

from __future__ import annotations

import numpy as np
import pytest
from pymoo.optimize import minimize

from pymoo_gpuaco import (
    GPUMOACO,
    MultiObjectiveTSP,
)
from tests.front_cases import problem_of


def test_an_objective_that_is_no_length_is_told_and_evaluated():
    class Priced(MultiObjectiveTSP):
        def _evaluate(self, x, out, *args, **kwargs):
            super()._evaluate(x, out)
            out["F"] = out["F"] + 5.0

    parts = problem_of(20).parts
    with pytest.warns(UserWarning, match="are not the tour's lengths"):
        result = minimize(Priced(parts), GPUMOACO(), ("n_gen", 6), seed=1)
    assert (problem_of(20).tour_lengths(result.X) + 5.0 == result.F).all()


def test_under_other_objectives_the_front_is_what_no_other_dominates():
    class Flat(MultiObjectiveTSP):
        def _evaluate(self, x, out, *args, **kwargs):
            super()._evaluate(x, out)
            out["F"][:, 1] = 7.0

    with pytest.warns(UserWarning, match="are not the tour's lengths"):
        result = minimize(Flat(problem_of(20).parts), GPUMOACO(), ("n_gen", 3), seed=1)
    same = minimize(problem_of(20), GPUMOACO(), ("n_gen", 3), seed=1)
    assert result.F.tolist() == [[same.F[0, 0], 7.0]]


def test_another_objective_of_any_tour_is_told():
    class Surcharged(MultiObjectiveTSP):
        def _evaluate(self, x, out, *args, **kwargs):
            super()._evaluate(x, out)
            out["F"][x[:, 1] == 2] += 1e5

    tours = np.array([np.arange(20), [0, 2, 1, *range(3, 20)]])
    problem = Surcharged(problem_of(20).parts)
    with pytest.warns(UserWarning, match="are not the tour's lengths"):
        result = minimize(problem, GPUMOACO(sampling=tours), ("n_gen", 1), seed=1)
    assert result.X.tolist() == tours[:1].tolist()  # the other one is longer by both
