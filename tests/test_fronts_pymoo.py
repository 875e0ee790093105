"""GPU2PPLS as pymoo's users use it, and what it hands over to them."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from pymoo.core.termination import TerminateIfAny
from pymoo.indicators.hv import HV
from pymoo.optimize import minimize
from pymoo.termination import get_termination
from pymoo.termination.default import DefaultMultiObjectiveTermination
from pymoo.termination.delta import DeltaToleranceTermination

from pymoo_gpuaco import GPU2PPLS, ColonyTermination, MultiObjectiveTSP
from pymoo_gpuaco.algorithms.display import ColonyOutput


def problem_of(n: int = 20, k: int = 2) -> MultiObjectiveTSP:
    return MultiObjectiveTSP(list(np.random.default_rng(0).random((k, n, 2))))


class HypervolumeStagnates(DeltaToleranceTermination):
    """Stop when the hypervolume has grown by less than ``tol``."""

    def _delta(self, previous, current):
        return current - previous

    def _data(self, algorithm):
        return HV(ref_point=np.array([20.0, 20.0]))(algorithm.opt.get("F"))


def test_loops_copies_pickles_and_seeds_go_the_same_way():
    problem = problem_of()
    whole = minimize(problem, GPU2PPLS(), ("n_gen", 8), seed=7).F
    algorithm = GPU2PPLS().setup(problem, termination=("n_gen", 8), seed=np.int64(7))
    for _ in range(4):
        algorithm.next()
    others = [copy.deepcopy(algorithm), pickle.loads(pickle.dumps(algorithm))]
    for one in (algorithm, *others):
        while one.has_next():
            one.next()
        assert np.array_equal(one.result().F, whole)
    drawn = [minimize(problem, GPU2PPLS(), ("n_gen", 8), seed=np.random.default_rng(7)).F for _ in range(2)]
    assert np.array_equal(*drawn)


@pytest.mark.parametrize(
    "termination",
    [DefaultMultiObjectiveTermination(n_max_gen=9), HypervolumeStagnates(1e-3), ("n_eval", 300)],
    ids=["default", "hypervolume", "n_eval"],
)
def test_pymoos_terminations_of_several_objectives_end_a_run(termination):
    result = minimize(problem_of(), GPU2PPLS(), termination, seed=1)
    assert 2 <= result.algorithm.n_iter <= 100
    if isinstance(termination, tuple):
        assert result.algorithm.evaluator.n_eval >= 300


@pytest.mark.parametrize("k", [2, 3, 6])
def test_the_display_is_of_any_number_of_objectives(k, capsys):
    minimize(problem_of(12, k), GPU2PPLS(), ("n_gen", 2), seed=1, verbose=True)
    *_, last = capsys.readouterr().out.strip().splitlines()
    shown = [cell.strip() for cell in last.split("|")]
    assert (shown[3] == "-") == (k == 6)  # a hypervolume that would take long
    assert (shown[4] == "-") == (k > 2)


def test_what_is_of_one_length_is_refused_or_left_out_of_a_run():
    of_one_length = TerminateIfAny(get_termination("n_gen", 2), ColonyTermination(proven=True))
    with pytest.raises(TypeError, match="ColonyTermination is of one length"):
        GPU2PPLS(backend="cpu").setup(problem_of(20), termination=of_one_length, seed=1)
    shown = minimize(
        problem_of(20), GPU2PPLS(backend="cpu"), ("n_gen", 2), verbose=True, output=ColonyOutput()
    )
    assert shown.algorithm.bound_in_time() is None
