"""Launch parameters of the CUDA walks of ACS, worked out without a device."""

from __future__ import annotations

import numpy as np
import pytest

from pymoo_gpuaco.backends.cuda.walks.acs import heuristic
from pymoo_gpuaco.candidates.lists import listed_instance
from pymoo_gpuaco.problems import TSP


def test_the_heuristic_is_relative_to_the_nearest_candidate():
    # from city 0 the others are at 1, 2 and 4: 1 / d^2 over its largest
    instance = listed_instance(TSP([[0, 0], [1, 0], [2, 0], [4, 0]], "EUC_2D"), 3)
    table = heuristic(instance, 2.0, 0.5, 32)
    assert table.shape == (4, 32)
    assert list(table[0, :3]) == [1.0, 0.25, 0.0625]
    assert not table[:, 3:].any()


@pytest.mark.parametrize("beta", [0.0, 1.0, 20.0])
@pytest.mark.parametrize("scale", [1.0, 1e-100])
def test_the_heuristic_stays_within_a_float(beta, scale):
    # cities at one place count as `shortest` apart; the furthest keeps a weight above zero
    instance = listed_instance(TSP(np.array([[0, 0], [0, 0], [1, 0], [1e7, 0]]) * scale, "EXACT"), 3)
    table = heuristic(instance, beta, 0.5 * scale, 32)
    assert np.isfinite(table).all()
    assert (table[:, :3] > 0.0).all()
    assert table.max() == 1.0
