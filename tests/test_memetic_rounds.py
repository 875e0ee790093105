"""Rounds that a memetic search requests from its device, on a device that records the requests."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import astuple, replace

import numpy as np
import pytest

from pymoo_gpuaco import TSP
from pymoo_gpuaco.candidates.listed import make_graph
from pymoo_gpuaco.candidates.start import greedy_tour
from pymoo_gpuaco.memetic import evolution, population
from pymoo_gpuaco.memetic.eax import Evolved
from pymoo_gpuaco.memetic.parameters import MemeticParameters
from pymoo_gpuaco.memetic.population import Population
from pymoo_gpuaco.memetic.schedule import Plan
from pymoo_gpuaco.memetic.search import MemeticSearch
from pymoo_gpuaco.runtime.stop import Stop
from tests.engine_cases import cloud
from tests.false_clock import FalseClock
from tests.instances import listed_instance


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


def test_annealing_ends_when_it_should_though_its_last_rounds_take_three_times_as_long(monkeypatch, clock):
    device, heated = Device(), []
    device.plan = replace(device.plan, rounds=1000, cycles_in_one=1000, end=0.5)
    clock.now = 0.0

    def anneal(key, temperature):
        clock.now += 1.0 if clock.now < 50.0 else 3.0
        if temperature.start > 0.0:
            heated.append(clock.now)
        return 2

    device.anneal = anneal
    engine = MemeticSearch(device)
    engine.stop_at(200.0)
    while clock.now < 190.0:
        engine.expect(clock.now / 200.0)
        engine.search(1)
    assert 85.0 <= heated[-1] <= 106.0  # half of 200 s, and two rounds between looks at the clock


def test_temperature_grows_with_the_cycle_and_the_mean_edge():
    engine, hot = MemeticSearch(Device()), []
    while len(hot) < 4:
        if "anneal" in asked(engine, 1):
            hot.append(engine.device.temperature)
    # the 16th of 100 rounds, of three kicks for 20 cities each
    temperature, edge = hot[-1], engine.best_tours()[1][0] / 20
    first = engine.device.plan.first_temperature(100 * 3 / 20) * edge
    assert astuple(temperature) == pytest.approx((0.85 * first, 0.84 * first, edge, 15.0))


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


class ChangingDevice(Device):
    """Whose tours are others after each round: the second becomes the shorter one."""

    plan = replace(Device.plan, rounds=1, merged_while_annealing=1, merged_at_zero=1)

    def anneal(self, key, temperature):
        rng = np.random.default_rng(key % 2**32)
        self.tours = np.array([rng.permutation(20), shortened(self.instance, self.tours[1])], np.int32)
        return super().anneal(key, temperature)


def shortened(instance, tour):
    """The tour after its best exchange of two edges."""
    turned = [
        np.concatenate([tour[:i], tour[i:j][::-1], tour[j:]]) for i in range(1, 20) for j in range(i + 2, 21)
    ]
    return min(turned, key=instance.tour_length)


def test_the_best_tour_is_merged_with_the_shortest_current_tour():
    device = ChangingDevice()
    device.repairs_left = 0
    engine, merged = MemeticSearch(device), []
    engine.search(1)  # begins, and anneals
    merge = engine._tours.population.merge
    engine._tours.population.merge = lambda tour: (merged.append(tour.tolist()), merge(tour))
    engine._measure_and_merge()
    for key in (2, 3):
        merged.clear()
        engine.search(key)
        assert engine.lengths.tolist() == device.measure().tolist()
        assert merged == [device.tours[device.measure().argmin()].tolist()]
        best, length = engine.best_tours()
        assert length[0] == device.instance.tour_length(best[0]) <= device.measure().min()


class SlowDevice(Device):
    """One tour; rounds of a second that nothing ends, after which measuring takes half a second."""

    n_tours = 1

    def __init__(self, clock: FalseClock) -> None:
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
def test_no_round_is_launched_that_ends_too_late(seconds, rounds, clock):
    """A round takes 1 s, of which half may be late, and measuring .5 s."""
    device = SlowDevice(clock)
    device.plan = replace(device.plan, first_cycle=100)
    engine = MemeticSearch(device)
    engine.search(1)
    engine.stop_at(clock.now + seconds)
    assert asked(engine, 2) == ["anneal"] * rounds
    assert clock.now <= device.stop.until + 0.5


@pytest.mark.parametrize(("seconds", "merges"), [(4.4, 0), (4.6, 1)])
def test_one_tour_is_merged_with_the_best_where_there_is_time(monkeypatch, seconds, merges, clock):
    """After two rounds and a measurement, 2.5 s; a merge is taken to last as long as the first tour, 2 s."""
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
    left, expected, monkeypatch, clock
):
    """The first takes six seconds, the others three; of the next one .7 of the last must fit."""
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


class CircleDevice(EvolvingDevice):
    """Twenty cities on a circle; a round turns a copy of a tour around at one place, another at a second place."""

    def __init__(self, clock: FalseClock) -> None:
        super().__init__(clock)
        angle = np.linspace(0.0, 2.0 * np.pi, 20, endpoint=False)
        self.instance = listed_instance(TSP(np.stack([np.cos(angle), np.sin(angle)], 1), metric="EXACT"), 8)
        self.graph = make_graph(self.instance)

    def anneal(self, key, temperature):
        self.tours[3, 4:6] = self.tours[3, 5:3:-1]
        self.tours[6, 14:17] = self.tours[6, 16:13:-1]
        return super().anneal(key, temperature)


def test_gains_of_kicks_on_copies_of_the_best_tour_are_merged(monkeypatch, clock):
    device = CircleDevice(clock)
    device.plan = replace(device.plan, rounds=1)
    engine, merged = MemeticSearch(device), []
    tour = np.arange(20, dtype=np.int32)
    tour[4:6], tour[14:17] = [5, 4], [16, 15, 14]
    monkeypatch.setattr(population, "evolve", lambda _, tours, *a, **b: Evolved(tours, 1, 1, 1, 1))
    engine._tours.load(np.tile(tour, (8, 1)), repaired=True)
    engine._schedule.first, engine._schedule.finished = 1000, True
    engine.stop_at(clock.now + 100.0)
    engine._tours.population.best, engine._tours.population.length = tour, device.instance.tour_length(tour)
    engine._recombine(1)
    engine._evolution._due_at = np.inf
    merge = Population.merge
    monkeypatch.setattr(Population, "merge", lambda self, other: (merged.append(1), merge(self, other)))
    engine.search(1)
    assert len(merged) == 2  # of eight copies two are shorter
    assert engine.best_tours()[1][0] == pytest.approx(20 * 2.0 * np.sin(np.pi / 20))
    assert device.tours.tolist() == [engine.best_tours()[0][0].tolist()] * 8
    assert engine.lengths.tolist() == [engine.best_tours()[1][0]] * 8


def evolved(monkeypatch, clock):
    """An engine that has annealed and evolved in limited time, without a round of kicks so far."""
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
def test_rounds_of_evolution_end_where_the_run_does_not_end_with_them(change, monkeypatch, clock):
    """Else the tours that are annealed next would be taken for copies of the best, and become copies."""
    engine = evolved(monkeypatch, clock)
    assert engine._evolution.is_running
    engine.stop_at(engine.stop.until + 1.0)
    engine.expect(0.95)
    assert engine._evolution.is_running
    if change == "no limit":
        engine.stop_at(None)
    else:
        engine.expect(0.4)
    assert not engine._evolution.is_running
    tours = engine.device.tours
    tours[1] = np.random.default_rng(1).permutation(20)
    tours[2] = shortened(engine.device.instance, engine.best_tours()[0][0])
    before = tours.copy()
    engine.search(2)
    assert np.array_equal(engine.device.tours, before)


@pytest.mark.parametrize(
    ("seconds", "reported", "expected"),
    [(1.0, 0.2, 0.68), (1.0, 0.6, 0.84), (0.05, 0.2, 0.97), (10.0, 0.2, 0.6), (1.0, np.nan, 0.97)],
)
def test_annealing_ends_earlier_if_the_host_assembles_slowly(seconds, reported, expected, monkeypatch, clock):
    """Of eight tours in a second: a round of evolution takes sixteen, .32 of a run whose last 40 s are .8 of it.

    Only after the first cycle: later ones are assembled for longer.
    """
    engine = MemeticSearch(EvolvingDevice(clock))

    def assemble(graph, tours, *_, least_gain, **__):
        clock.now += seconds if least_gain else 9.0
        return tours

    monkeypatch.setattr(population, "assemble", assemble)
    engine.search(1)
    engine.search(2)
    engine.stop_at(clock.now + 40.0)
    engine._schedule.reported = reported
    monkeypatch.setattr(engine, "_search_rounds", lambda key: None)
    engine.search(3)
    assert engine._schedule.end == pytest.approx(expected)
    engine.stop_at(None)
    engine.search(4)
    assert engine._schedule.end == 0.97
