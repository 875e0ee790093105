"""Rounds that a memetic search requests from its device, on a device that records the requests."""

from __future__ import annotations

import time
from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest

from pymoo_gpuaco.candidates.graph import make_graph
from pymoo_gpuaco.candidates.lists import listed_instance
from pymoo_gpuaco.candidates.start import greedy_tour
from pymoo_gpuaco.memetic import evolution, population
from pymoo_gpuaco.memetic.eax import Evolved
from pymoo_gpuaco.memetic.parameters import MemeticParameters
from pymoo_gpuaco.memetic.population import Population
from pymoo_gpuaco.memetic.schedule import Plan
from pymoo_gpuaco.memetic.search import MemeticSearch
from pymoo_gpuaco.runtime.stop import Stop
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
        return self.found

    def take(self) -> None:
        self.taken = True


class Device:
    """Two tours that stay as they are, five rounds of repair, rounds of four a generation."""

    kind, n_tours, scale, parameters = "none", 2, 1.0, MemeticParameters()
    plan = Plan(
        rounds=4,
        rounds_without_limit=4,
        rounds_between_checks=2,
        first_cycle=100,
        cycles_in_one=3,
        later_in_one=3,
        kicks=3,
        end=0.97,
        temperature=1.0,
        kicks_for_temperature=1.0,
        least_temperature=0.0,
        most_temperature=1.0,
    )

    def __init__(self, penalties: Penalties | None = None) -> None:
        self.instance = listed_instance(cloud(20), 8)
        self.graph, self.stop, self.penalties = make_graph(self.instance), Stop(), penalties
        self.repairs_left, self.asked = 5, []

    def tours_in(self, seconds):
        return self.n_tours

    def allocate(self, m):
        assert m == self.n_tours

    def first_tour(self):
        return greedy_tour(self.instance)

    def load(self, tours, repaired):
        self.tours = tours

    def measure(self):
        return np.array([self.instance.tour_length(tour) for tour in self.tours])

    def shortest(self):
        return self.tours[self.measure().argmin()]

    def read(self):
        return self.tours.copy()

    def snapshot(self):
        return {}

    def repair(self, key):
        self.repairs_left -= 1
        self.asked.append("repair")

    def anneal(self, key, temperature):
        self.temperature = temperature
        self.asked.append("anneal")

    def use_penalties(self, repaired):
        self.asked.append("penalties of before" if repaired else "penalties")

    def working(self):
        return nullcontext()

    def wait(self):
        pass


def asked(engine: MemeticSearch, key: int) -> list[str]:
    """Calls to the device in a generation."""
    engine.device.asked.clear()
    engine.search(key)
    return list(engine.device.asked)


def test_annealing_ends_when_it_should_though_its_last_rounds_take_three_times_as_long(monkeypatch):
    device, now, heated = Device(), [0.0], []
    device.plan = replace(device.plan, rounds=1000, cycles_in_one=1000, end=0.5)
    monkeypatch.setattr(time, "monotonic", lambda: now[0])

    def anneal(key, temperature):
        now[0] += 1.0 if now[0] < 50.0 else 3.0
        if temperature.start > 0.0:
            heated.append(now[0])
        return 2

    device.anneal = anneal
    engine = MemeticSearch(device)
    engine.stop_at(200.0)
    while now[0] < 190.0:
        engine.expect(now[0] / 200.0)
        engine.search(1)
    assert 85.0 <= heated[-1] <= 106.0  # half of 200 s, and two rounds between looks at the clock


def test_tours_are_repaired_in_generations_of_their_own_which_say_nothing_of_those_that_anneal():
    engine = MemeticSearch(Device())
    assert asked(engine, 1) == ["repair"] * 4
    assert engine._annealed == 0
    assert asked(engine, 2) == ["repair"]
    assert engine._annealed == 0
    assert asked(engine, 3) == ["anneal"] * 4
    assert engine._annealed == 4
    assert engine.n_built == 8


def test_penalties_that_are_due_come_before_the_rounds_that_are_to_have_them():
    engine = MemeticSearch(Device(Penalties(found=True)))
    assert asked(engine, 1) == ["penalties", *["repair"] * 4]
    assert asked(engine, 2) == ["repair"]
    assert asked(MemeticSearch(Device(Penalties(found=False))), 1) == []  # time is over before
    resumed = Penalties(found=True)
    resumed.until = -1  # tours that a state holds were repaired with them
    assert asked(MemeticSearch(Device(resumed)), 1) == ["penalties of before", *["repair"] * 4]


def shortened(instance, tour):
    """The tour after its best exchange of two edges."""
    turned = [
        np.concatenate([tour[:i], tour[i:j][::-1], tour[j:]]) for i in range(1, 20) for j in range(i + 2, 21)
    ]
    return min(turned, key=instance.tour_length)


class Clock:
    """A clock that shows what it is set to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        monkeypatch.setattr(time, "monotonic", lambda: self.now)


class SlowDevice(Device):
    """One tour; rounds of a second that nothing ends, after which measuring takes half a second."""

    n_tours = 1

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self.clock, self.repairs_left = clock, 0
        self.plan = replace(self.plan, whole_rounds=True, first_cycle=2)

    def first_tour(self):
        self.clock.now += 2.0
        return super().first_tour()

    def measure(self):
        self.clock.now += 0.5
        return super().measure()

    def shortest(self):
        return self.tours[0]

    def anneal(self, key, temperature):
        self.clock.now += 1.0
        return super().anneal(key, temperature)


@pytest.mark.parametrize(
    ("seconds", "rounds"), [(0.9, 0), (1.1, 1), (1.9, 1), (2.1, 2), (3.1, 3), (100.0, 4)]
)
def test_no_round_is_launched_that_ends_too_late(monkeypatch, seconds, rounds):
    """A round takes 1 s, of which half may be late, and measuring .5 s."""
    clock = Clock(monkeypatch)
    device = SlowDevice(clock)
    device.plan = replace(device.plan, first_cycle=100)
    engine = MemeticSearch(device)
    engine.search(1)
    engine.stop_at(clock.now + seconds)
    assert asked(engine, 2) == ["anneal"] * rounds
    assert clock.now <= device.stop.until + 0.5


@pytest.mark.parametrize(("seconds", "merges"), [(4.4, 0), (4.6, 1)])
def test_one_tour_is_merged_with_the_best_where_there_is_time(monkeypatch, seconds, merges):
    """After two rounds and a measurement, 2.5 s; a merge is taken to last as long as the first tour, 2 s."""
    clock = Clock(monkeypatch)
    engine, merged = MemeticSearch(SlowDevice(clock)), []
    monkeypatch.setattr(Population, "merge", lambda _, tour: merged.append(tour))
    engine._begin(1)
    engine.stop_at(clock.now + seconds)
    engine._budget._seconds |= {"a round": 1.0}
    assert asked(engine, 1) == ["anneal"] * 2
    assert len(merged) == merges


class EvolvingDevice(SlowDevice):
    """Eight tours, which take no time to measure."""

    n_tours = 8

    def measure(self):
        return Device.measure(self)


@pytest.mark.parametrize(
    ("left", "expected"),
    [
        (15.5, "kkkk kkE kkkkE"),
        (10.3, "kkkk kkE k"),
        (10.1, "kkkk kkkk kk"),
        (None, "kkkk kkkk kkkk"),
    ],
)
def test_between_rounds_of_evolution_the_best_is_kicked_in_proportion_to_their_time(
    left, expected, monkeypatch
):
    """The first takes six seconds, the others three; of the next one .7 of the last must fit."""
    clock = Clock(monkeypatch)
    device = EvolvingDevice(clock)
    engine, done = MemeticSearch(device), device.asked

    def evolve(graph, tours, *_, **__):
        done.append("evolve")
        clock.now += 3.0 if clock.now > 1000.0 else 6.0
        return Evolved(tours, 1, 1, 1, 1)

    monkeypatch.setattr(population, "evolve", evolve)
    monkeypatch.setattr(evolution, "KICKED", 1.0)
    engine._begin(1)
    schedule = engine._schedule
    schedule.first, schedule.rounds, schedule.finished = 1000, 50, True
    engine.stop_at(None if left is None else 1000.0 + left)
    clock.now = 994.0
    engine._recombine(1)
    assert done.count("evolve") == 1
    generations = []
    while len(generations) < 3 and not device.stop.passed():
        given = asked(engine, len(generations))
        generations.append("".join("E" if each == "evolve" else "k" for each in given))
    assert generations == expected.split()


def evolved(monkeypatch):
    """An engine that has annealed and evolved in limited time, without a round of kicks so far."""
    clock = Clock(monkeypatch)
    engine = MemeticSearch(EvolvingDevice(clock))
    monkeypatch.setattr(population, "evolve", lambda _, tours, *a, **b: Evolved(tours, 1, 1, 1, 1))
    engine._begin(1)
    engine.expect(0.9)
    schedule = engine._schedule
    schedule.first, schedule.rounds, schedule.last, schedule.finished = 1000, 50, True, True
    engine.stop_at(clock.now + 100.0)
    engine._recombine(1)
    return engine


@pytest.mark.parametrize("change", ["no limit", "another budget"])
def test_rounds_of_evolution_end_where_the_run_does_not_end_with_them(change, monkeypatch):
    """Else the tours that are annealed next would be taken for copies of the best, and become copies."""
    engine = evolved(monkeypatch)
    assert engine._evolution.goes_on
    engine.stop_at(engine.stop.until + 1.0)
    engine.expect(0.95)
    assert engine._evolution.goes_on
    if change == "no limit":
        engine.stop_at(None)
    else:
        engine.expect(0.4)
    assert not engine._evolution.goes_on
    tours = engine.device.tours
    tours[1] = np.random.default_rng(1).permutation(20)
    tours[2] = shortened(engine.device.instance, engine.best_tours()[0][0])
    before = tours.copy()
    engine.search(2)
    assert np.array_equal(engine.device.tours, before)
