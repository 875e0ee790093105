"""Layout of the selection rules over all cities on a device. Needs no device."""

from __future__ import annotations

import numpy as np
import pytest

from pymoo_gpuaco.backends.cuda.device import DeviceLimits
from pymoo_gpuaco.backends.cuda.walks.rules import rule_plan
from pymoo_gpuaco.candidates.lists import listed_instance
from pymoo_gpuaco.colony.parameters import ColonyParameters
from pymoo_gpuaco.problems import TSP

LIMITS = DeviceLimits(multiprocessors=100, warps=64, shared_bytes=200 << 10)


def of(n, limits=LIMITS, **parameters):
    problem = TSP(np.random.default_rng(0).random((n, 2)), metric="EXACT")
    chosen = ColonyParameters(candidate_list_size=None, **parameters)
    return rule_plan(listed_instance(problem, 8).n, chosen, limits)


@pytest.mark.parametrize(
    ("selection", "bytes_of_1000_cities"),
    [
        ("roulette", 128),  # a bit for each of 1024 places
        ("stochastic_trial", 128),
        ("compressed", 2000),  # two bytes a city
        ("hybrid", 128 + 304),  # bits, and a list of the last 150 rounded up to 16 bytes
        ("acceptance_tournament", 128 + 32),  # of the last 10
    ],
)
def test_an_ant_remembers_what_its_rule_needs(selection, bytes_of_1000_cities):
    assert of(1000, selection=selection).ant_bytes == bytes_of_1000_cities


@pytest.mark.parametrize(
    ("size", "lanes", "ants"),
    [(1, 1, 32), (2, 2, 16), (3, 4, 8), (4, 4, 8), (16, 16, 2), (33, 32, 1), (1024, 32, 1)],
)
def test_a_tournament_has_a_lane_for_every_city_drawn(size, lanes, ants):
    how = of(200, selection="acceptance_tournament", tournament_size=size)
    assert (how.lanes, how.shape(1000, LIMITS).ants_a_block) == (lanes, ants)


def test_fewer_ants_share_a_block_where_their_memory_does_not_fit():
    # 160 bytes an ant, see above: two fit into 400 bytes, not eight
    tight = DeviceLimits(multiprocessors=100, warps=64, shared_bytes=400)
    how = of(1000, tight, selection="acceptance_tournament", tournament_size=4)
    assert (how.lanes, how.shape(1000, tight).ants_a_block, how.in_shared) == (16, 2, True)
    assert not of(1000, tight, selection="compressed").in_shared
