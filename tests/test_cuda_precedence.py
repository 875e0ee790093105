"""Annealing with precedence on CUDA: the same paths as on the CPU, bit by bit. Needs a CUDA device."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from pymoo.optimize import minimize

from pymoo_gpuaco import GPUMemetic, OpenPath
from pymoo_gpuaco.backends.cpu.precedence import CpuChains
from pymoo_gpuaco.backends.cuda.precedence import CudaChains
from pymoo_gpuaco.memetic.parameters import MemeticParameters
from pymoo_gpuaco.precedence.model import Round, make_model
from pymoo_gpuaco.precedence.search import PrecedenceSearch
from pymoo_gpuaco.runtime.stop import Stop
from tests.instances import listed_instance
from tests.test_precedence import PROBLEMS, matrix_of, pairs_of

pytestmark = pytest.mark.gpu

SHAPES = [("path", 40), ("round trip", 33), ("fractions", 70), ("forbidden", 20), ("both ends", 90)]
FIXED = [("fixed", 30), ("fixed either way", 25)]


@pytest.mark.parametrize(("kind", "n"), SHAPES + FIXED)
def test_chains_are_those_of_the_cpu(kind, n):
    compare_chains(kind, n, 1500, 3)


def compare_chains(kind, n, trials, chains):
    model = make_model(listed_instance(PROBLEMS[kind](n, n), 5))
    around = Round(
        2**40 + 7, trials, np.linspace(2.0 * model.excess(model.greedy_path()).usual, 0.0, -(-trials // 256))
    )
    ours, theirs = (model.chains(np.tile(model.greedy_path(), (chains, 1))) for _ in range(2))
    CpuChains(model, chains).anneal(ours, around, Stop())
    CudaChains(model, chains, 0).anneal(theirs, around, Stop())
    for one, other in zip(ours, theirs, strict=True):
        assert np.array_equal(one, other)
    assert (ours.lengths[:, 1] < model.lengths(model.greedy_path()[None])).all()


def test_run_on_the_device_keeps_precedence_and_resumes():
    problem = OpenPath(matrix=matrix_of(24, 3), precedence=pairs_of(24, 20, 3))
    algorithm = GPUMemetic(4, backend="cuda").setup(problem, termination=("n_gen", 3), seed=1)
    algorithm.next()
    resumed = pickle.loads(pickle.dumps(algorithm))
    algorithm.next()
    resumed.next()
    assert np.array_equal(algorithm.opt[0].X, resumed.opt[0].X)
    assert algorithm.opt[0].G[0] == 0
    res = minimize(problem, GPUMemetic(4, backend="cpu"), ("n_gen", 3), seed=1)
    assert res.G[0] == 0


def compare_wide_runs(trials, generations):
    """Equal runs on both, in which the costs become finer: distances range over twelve decades."""
    matrix = 10.0 ** np.random.default_rng(3).uniform(0, 12, (20, 20))
    problem = OpenPath(matrix=matrix, precedence=pairs_of(20, 6, 3), fixed_edges=[(2, 5)])
    states = []
    for chains in (CpuChains, lambda model, n: CudaChains(model, n, 0)):
        device = chains(make_model(listed_instance(problem, 5)), 4)
        device.trials = trials
        coarse, engine = device.model.unit, PrecedenceSearch(device, MemeticParameters())
        for number in range(generations):
            engine.expect(number / generations)
            engine.search(number)
        assert engine.model.unit > 4.0 * coarse
        states.append(engine.export_state())
    assert all(np.array_equal(states[0][name], states[1][name]) for name in states[0])


def test_costs_become_finer_on_the_device_as_on_the_cpu():
    compare_wide_runs(5000, 6)
