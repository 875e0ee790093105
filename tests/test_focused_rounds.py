"""Which rounds a focused colony asks of its device, on one that only notes what it is asked for."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import astuple

import numpy as np
import pytest

from pymoo_gpuaco.candidates import greedy_tour
from pymoo_gpuaco.candidates.graph import make_graph
from pymoo_gpuaco.candidates.lists import listed_instance
from pymoo_gpuaco.host.stop import Stop
from pymoo_gpuaco.search.focused import FocusedSearch
from pymoo_gpuaco.search.plan import Plan
from tests.engine_cases import cloud


class Penalties:
    """Due before the first round, and found in time or not."""

    def __init__(self, found: bool) -> None:
        self.found, self.taken, self.until = found, False, 0

    def begin(self, until: float | None) -> None:
        """Nothing is to be found."""

    def count_round(self) -> None:
        """Rounds make no difference."""

    def are_due(self, until: float | None) -> bool:
        return not self.taken

    def wait(self, until: float | None) -> bool:
        self.taken = self.found
        return self.found


class Device:
    """Two tours that stay as they are, five rounds of repair, rounds of four a generation."""

    kind, n_ants, n_tours, scale = "none", 2, 2, 1.0
    plan = Plan(
        rounds=4,
        rounds_between_looks=2,
        first_cycle=100,
        cycles_in_one=3,
        later_in_one=3,
        kicks=3,
        end=0.97,
        heat=1.0,
        kicks_for_heat=1.0,
        least_heat=0.0,
        most_heat=1.0,
    )

    def __init__(self, penalties: Penalties | None = None) -> None:
        self.instance = listed_instance(cloud(20), 8)
        self.graph, self.stop, self.penalties = make_graph(self.instance), Stop(), penalties
        self.repairs_left, self.asked = 5, []

    def tours_in(self, seconds):
        return self.n_tours

    def hold(self, m):
        assert m == self.n_tours

    def first_tour(self):
        return greedy_tour(self.instance)

    def load(self, tours, repaired):
        self.tours = tours

    def measure(self):
        return np.array([self.instance.tour_length(tour) for tour in self.tours])

    def shortest(self):
        return self.tours[0]

    def snapshot(self):
        return {}

    def repair(self, key):
        self.repairs_left -= 1
        self.asked.append("repair")
        return 2

    def anneal(self, key, heat):
        self.heat = heat
        self.asked.append("anneal")
        return 2

    def use_penalties(self, repaired):
        self.asked.append("penalties")

    def working(self):
        return nullcontext()

    def weigh(self):
        pass

    wait = weigh


def asked(engine: FocusedSearch, key: int) -> list[str]:
    """What the device is asked for in a generation."""
    engine.device.asked.clear()
    engine.search(key)
    return list(engine.device.asked)


def test_a_round_is_as_hot_as_its_cycle_is_long_and_tours_have_long_edges():
    engine, hot = FocusedSearch(Device()), []
    while len(hot) < 4:
        if "anneal" in asked(engine, 1):
            hot.append(engine.device.heat)
    # the 16th of 100 rounds, of three kicks for 20 cities each
    heat, edge = hot[-1], engine.best_tours()[1][0] / 20
    first = engine.device.plan.first_heat(100 * 3 / 20) * edge
    assert astuple(heat) == pytest.approx((0.85 * first, 0.84 * first, edge, 15.0))


def test_tours_are_repaired_in_generations_of_their_own_which_say_nothing_of_those_that_anneal():
    engine = FocusedSearch(Device())
    assert asked(engine, 1) == ["repair"] * 4
    assert engine._annealed == 0
    assert asked(engine, 2) == ["repair"]
    assert engine._annealed == 0
    assert asked(engine, 3) == ["anneal"] * 4
    assert engine._annealed == 4
    assert engine.n_searched == 8


def test_penalties_that_are_due_come_before_the_rounds_that_are_to_have_them():
    engine = FocusedSearch(Device(Penalties(found=True)))
    assert asked(engine, 1) == ["penalties", *["repair"] * 4]
    assert asked(engine, 2) == ["repair"]
    assert asked(FocusedSearch(Device(Penalties(found=False))), 1) == []  # time is over before
