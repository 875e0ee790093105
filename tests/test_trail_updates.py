"""Deposits by rank and by weight of either sign, worked out by hand on four cities in a row."""

import numpy as np
import pytest

from pymoo_gpuaco.colony.trails import TrailUpdate, branching_factor, per_length
from pymoo_gpuaco.problems import TSP
from tests.engine_cases import BACKENDS, colony

# City i lies at (i, 0): the tours' lengths are 2 + 1 + 2 + 3, 1 + 1 + 1 + 3 and 1 + 2 + 1 + 2.
TOURS = np.array([[0, 2, 1, 3], [0, 1, 2, 3], [0, 1, 3, 2]], np.int32)
LENGTHS = np.array([8.0, 6.0, 6.0])
EDGES = [(0, 1), (1, 2), (2, 3), (0, 3), (1, 3), (0, 2)]


def engine_with_tours(backend, **parameters):
    """Three ants that have built ``TOURS``, and trails of 1."""
    problem = TSP([[0, 0], [1, 0], [2, 0], [3, 0]], "EUC_2D")
    engine = colony(problem, backend, n_ants=3, candidate_list_size=3, **parameters)
    engine.import_state({**engine.export_state(), "tours": TOURS, "lengths": LENGTHS})
    return engine


def trails(engine):
    """Trails of ``EDGES``, the same both ways."""
    tau = engine.export_state()["tau"]
    full = np.full((4, 4), np.nan)
    slots = np.arange(4)[None].repeat(4, 0) if tau.shape == (4, 4) else engine.instance.neighbours
    np.put_along_axis(full, slots.astype(int), tau, axis=1)
    assert all(full[i, j] == full[j, i] for i, j in EDGES)
    return [full[i, j] for i, j in EDGES]


@pytest.mark.parametrize("memory", ["dense", "candidate"])
@pytest.mark.parametrize("backend", BACKENDS)
class TestOnEngines:
    def test_ranks_that_add_and_take(self, memory, backend):
        # 1 evaporates to 0.5. Rank 0 is ant 1, of two ants of length 6 the lower number: 12 / 6 = 2 on 01 12 23 03.
        # Rank 1 is ant 2: 6 / 6 = 1 on 01 13 23 02. Rank 2 is ant 0: -4 / 8 = -0.5 on 02 12 13 03.
        engine = engine_with_tours(backend, memory=memory)
        engine.update_trails(TrailUpdate(0.5, ranked=(12.0, 6.0, -4.0)))
        assert trails(engine) == pytest.approx([3.5, 2.0, 3.5, 2.0, 1.0, 1.0])

    def test_what_is_added_is_cut_before_anything_is_taken(self, memory, backend):
        # 12: min(2, 0.5 + 2) - 0.5 = 1.5. 13 and 02: 0.5 + 1 - 0.5
        engine = engine_with_tours(backend, memory=memory)
        engine.update_trails(TrailUpdate(0.5, ranked=(12.0, 6.0, -4.0), tau_max=2.0))
        assert trails(engine) == pytest.approx([2.0, 1.5, 2.0, 1.5, 1.0, 1.0])

    def test_no_trail_falls_below_the_lower_limit(self, memory, backend):
        # the last of three takes 16 / 8 = 2 from 02 12 13 03: 0.5 - 2 is cut to 0, the default limit, and to 0.25
        for limit in (0.0, 0.25):
            engine = engine_with_tours(backend, memory=memory)
            engine.update_trails(TrailUpdate(0.5, ranked=(0.0, 0.0, -16.0), tau_min=limit))
            assert trails(engine) == pytest.approx([0.5, limit, 0.5, limit, limit, limit])

    def test_all_kinds_of_deposits_together(self, memory, backend):
        # given: 0.25 on 01 13 23 02 and -0.5 on 01 12 23 03; every ant 12 / its length: 1.5 on 02 12 13 03, 2 on
        # 01 12 23 03 and 2 on 01 13 23 02; rank 0: 6 / 6 = 1 on 01 12 23 03; all on 1
        engine = engine_with_tours(backend, memory=memory)
        deposits = ((TOURS[2], 0.25), (TOURS[1], -0.5))
        engine.update_trails(TrailUpdate(0.0, deposits, colony_amount=12.0, ranked=(6.0,)))
        assert trails(engine) == pytest.approx([5.75, 5.0, 5.75, 5.0, 4.75, 4.75])


def test_a_tour_of_length_zero_counts_one():
    assert per_length(7.0, 0.0) == 1.0
    assert per_length(-7.0, 0.0) == -1.0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"rho": 1.5}, "rho"),
        ({"rho": float("nan")}, "rho"),
        ({"rho": 0.5, "tau_min": -0.1}, "tau_min"),
        ({"rho": 0.5, "tau_min": 2.0, "tau_max": 1.0}, "tau_max"),
        ({"rho": 0.5, "colony_amount": -1.0}, "colony_amount"),
        ({"rho": 0.5, "ranked": (1.0, float("nan"))}, "finite"),
        ({"rho": 0.5, "ranked": (-float("inf"),)}, "finite"),
        ({"rho": 0.5, "deposits": ((TOURS[0], float("inf")),)}, "finite"),
        ({"rho": 0.5, "deposits": ((TOURS[0], -1.0),), "on_tours_only": True}, "on_tours_only"),
        ({"rho": 0.5, "ranked": (1.0,), "on_tours_only": True}, "on_tours_only"),
    ],
)
def test_numbers_out_of_range_are_refused(arguments, words):
    with pytest.raises(ValueError, match=words):
        TrailUpdate(**arguments)


def test_the_branching_factor_counts_the_trails_above_a_share_of_the_range_of_each_city():
    trails = np.array([[1.0, 1.25, 2.0], [5.0, 5.0, 5.0], [0.0, 0.5, 10.0]], np.float32)
    assert branching_factor(trails, 0.125) == (2 + 0 + 1) / 3  # above 1.125, 5 and 1.25
    assert branching_factor(trails, 0.25) == (1 + 0 + 1) / 3  # 1.25 is not above 1.25
