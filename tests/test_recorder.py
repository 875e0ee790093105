"""A recorder keeps what happened in every generation, and little more."""

import pickle

import numpy as np
import pytest
from pymoo.optimize import minimize

from pymoo_gpuaco import GPUMMAS, GPU2OptIHC, Recorder
from pymoo_gpuaco.colony.trails import branching_factor
from pymoo_gpuaco.visualization import plot_convergence
from tests.algorithm_cases import BACKEND, cities, every_base, shorten_climbs, small


@every_base
def test_records_are_those_of_the_run(cls, monkeypatch):
    shorten_climbs(monkeypatch)
    recorder, seen = Recorder(), []

    def both(algorithm):
        recorder(algorithm)
        seen.append((algorithm.evaluator.n_eval, algorithm.opt[0].F[0], algorithm.pop.get("F").min()))

    minimize(cities(20), small(cls), ("n_gen", 5), seed=1, callback=both)
    records = recorder.records
    assert list(records) == list(Recorder.COLUMNS)
    assert records["generation"].tolist() == [1, 2, 3, 4, 5]
    np.testing.assert_array_equal(
        np.transpose(seen), [records[c] for c in ("tours", "best", "iteration_best")]
    )
    assert np.all(np.diff(records["seconds"]) >= 0)
    if cls is GPU2OptIHC:
        assert np.isnan(records["iteration_mean"]).all()
    else:
        assert np.all(records["iteration_mean"] >= records["iteration_best"])


def test_the_branching_factor_is_taken_every_so_often():
    recorder = Recorder(branching=2)
    result = minimize(cities(30), small(GPUMMAS), ("n_gen", 5), seed=1, callback=recorder)
    factor = recorder.records["branching_factor"]
    assert factor[0] == factor[1]
    assert factor[2] == factor[3]
    assert factor[4] == branching_factor(result.algorithm.trails("candidates"))
    assert np.isnan(Recorder().records["branching_factor"]).all()


def test_another_run_begins_anew_and_a_pickle_keeps_the_records():
    recorder = Recorder()
    for generations in (4, 2):
        minimize(cities(9), small(GPUMMAS), ("n_gen", generations), seed=1, callback=recorder)
    assert len(recorder.records["best"]) == 2
    copied = pickle.loads(pickle.dumps(recorder))
    np.testing.assert_array_equal(copied.records["best"], recorder.records["best"])


def test_convergence_is_drawn_from_a_recorder_over_what_is_asked_for():
    recorder = Recorder()
    minimize(cities(30), GPUMMAS(2, backend=BACKEND), ("n_gen", 6), seed=1, callback=recorder)
    for over in ("generation", "seconds", "tours"):
        axes = plot_convergence(recorder, over=over).axes[0]
        np.testing.assert_array_equal(axes.lines[0].get_xdata(), recorder.records[over])
        np.testing.assert_array_equal(axes.lines[0].get_ydata(), recorder.records["best"])
        assert axes.get_xlabel() == over
    with pytest.raises(ValueError, match="over must be one of 'generation'"):
        plot_convergence(recorder, over="years")
    with pytest.raises(ValueError, match="requires the Recorder of"):
        plot_convergence(Recorder())
