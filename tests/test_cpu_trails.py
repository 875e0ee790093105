"""Pheromone memories: updates worked out by hand on four cities, and one meaning for all memories."""

import numpy as np
import pytest

from pymoo_gpuaco.backends.cpu import trails
from pymoo_gpuaco.candidates.listed import make_graph
from pymoo_gpuaco.colony.trails import (
    TrailUpdate,
    best_so_far_deposits,
    branching_factor,
    candidate_trails,
    trail_limits,
)
from pymoo_gpuaco.problems import TSP
from pymoo_gpuaco.runtime.stop import Stop
from tests.instances import listed_instance

KINDS = {"dense": trails.DENSE, "candidate": trails.CANDIDATE, "selective": trails.SELECTIVE}
TOUR = np.array([0, 1, 2, 3], np.int32)


@pytest.fixture
def graph():
    """A unit square: 0 (0,0), 1 (1,0), 2 (1,1), 3 (0,1)."""
    return make_graph(listed_instance(TSP([[0, 0], [1, 0], [1, 1], [0, 1]], metric="EXACT"), 3))


def memory(kind, graph, value):
    t = trails.make_trails(KINDS[kind], graph.neighbours, 3)
    trails.fill(t, np.float32(value))
    return t


@pytest.mark.parametrize("kind", list(KINDS))
def test_acs_update_by_hand(kind, graph):
    # tau <- 0.9 * 1.0 + 0.1 * 3.0 = 1.2 on one edge, both ways
    t = memory(kind, graph, 1.0)
    trails.blend_edge(t, 0, 1, 0.1, 3.0, True)
    assert trails.read_trail(t, 0, 1) == pytest.approx(1.2)
    assert trails.read_trail(t, 1, 0) == pytest.approx(1.2)
    assert trails.read_trail(t, 0, 2) == pytest.approx(1.0)


def test_selective_memory_overwrites_its_oldest_trail():
    graph = make_graph(listed_instance(TSP(np.random.default_rng(0).random((9, 2)), metric="EXACT"), 8))
    t = trails.make_trails(trails.SELECTIVE, graph.neighbours, 3)
    trails.fill(t, np.float32(0.1))
    for j in (1, 2, 3):
        trails.write_trail(t, 0, j, np.float32(j))
    trails.write_trail(t, 0, 1, np.float32(10.0))  # known already: changes in place, stays the oldest
    trails.write_trail(t, 0, 4, np.float32(4.0))
    assert [float(trails.read_trail(t, 0, j)) for j in (1, 2, 3, 4)] == pytest.approx([0.1, 2.0, 3.0, 4.0])


@pytest.mark.parametrize("kind", ["dense", "candidate"])
def test_branching_factor_of_converged_and_of_even_trails(kind, graph):
    t = trails.ColonyTrails(kind, graph, 3, True, Stop())
    t.reset(1.0)

    def factor() -> float:
        return branching_factor(candidate_trails(t.export_state(), graph.neighbours))

    assert factor() == 0.0
    t.update(TrailUpdate(0.0, ((TOUR, 100.0),)))
    # every city has its two tour edges above 1 + 0.05 * 100, and one diagonal below
    assert factor() == 2.0


def test_trail_limits_by_hand():
    # L = 50, rho = 0.5: tau_max = 1 / 25. n = 2, p_best = 0.25: p = 0.5; c = 10 / 2 = 5: tau_min = tau_max / 4
    assert trail_limits(50.0, 2, 10.0, 0.5, 0.25) == pytest.approx((0.01, 0.04))


def test_deposit_schedule():
    # once in the first 25, ten times in the next 50, every third up to 125, every second up to 250, then always
    chosen = [best_so_far_deposits(i) for i in range(300)]
    assert sum(chosen[:25]) == 1
    assert sum(chosen[25:75]) == 10
    assert sum(chosen[75:125]) == 16
    assert sum(chosen[125:250]) == 63
    assert all(chosen[250:])
