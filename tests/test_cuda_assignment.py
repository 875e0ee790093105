"""Quadratic assignment on CUDA: for whole numbers the placements of the CPU, bit by bit. Needs a CUDA device."""

from __future__ import annotations

import numpy as np
import pytest

from pymoo_gpuaco.assignment.model import make_model
from pymoo_gpuaco.assignment.parameters import AssignmentParameters
from pymoo_gpuaco.assignment.search import AssignmentSearch
from pymoo_gpuaco.backends.cpu.assignment import CpuAssignment
from pymoo_gpuaco.backends.cuda.assignment import CudaAssignment
from tests.assignment_cases import matrices

pytestmark = pytest.mark.gpu

#: with several tiles of a thread in registers, doubles, two pairs of matrices, and all in global memory
SIZES = [
    ("symmetric", 2),
    ("one-sided", 3),
    ("symmetric", 47),
    ("asymmetric", 30),
    ("large", 21),
    ("twins", 66),
]
SIZES += [("symmetric", 87), ("one-sided", 99), ("symmetric", 150), ("symmetric", 170), ("asymmetric", 200)]


def compare(kind, n, start, iterations, generations, **parameters):
    """Run both engines with equal keys."""
    model = make_model(*matrices(kind, n))
    ours = AssignmentParameters(n_colonies=2, start=start, tabu_iterations=iterations, **parameters)
    engines = [AssignmentSearch(CpuAssignment(model, ours)), AssignmentSearch(CudaAssignment(model, ours, 0))]
    for number in range(generations):
        for engine in engines:
            engine.search(2**63 + number)
        assert np.array_equal(engines[0].costs, engines[1].costs)
    one, other = (engine.export_state() for engine in engines)
    assert all(np.array_equal(one[name], other[name]) for name in one)
    return engines


@pytest.mark.parametrize("start", ["trails", "perturbed"])
@pytest.mark.parametrize(("kind", "n"), SIZES)
def test_placements_are_those_of_the_cpu(kind, n, start):
    compare(kind, n, start, 300, 3, n_ants=5, restart_after=1)


def test_real_costs_are_those_of_the_placements():
    model = make_model(*matrices("real", 40))
    engine = AssignmentSearch(
        CudaAssignment(model, AssignmentParameters(n_colonies=2, tabu_iterations=1000), 0)
    )
    engine.search(1)
    placement, cost = engine.best
    assert model.costs(placement[None])[0] == pytest.approx(cost, rel=1e-12)
    found = np.array([engine.device.placement(ant) for ant in range(16)])
    np.testing.assert_allclose(model.costs(found), engine.costs, rtol=1e-12)
