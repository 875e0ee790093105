"""What the process that leads a run does with tours, without any worker."""

import math

import numpy as np
import pytest

from pymoo_gpuaco import TSP
from pymoo_gpuaco.candidates.lists import listed_instance
from pymoo_gpuaco.islands import placement
from pymoo_gpuaco.islands.archipelago import Archipelago
from pymoo_gpuaco.islands.clock import Clock
from pymoo_gpuaco.islands.leader import Rules
from pymoo_gpuaco.islands.member import Member, Tour

ANGLE = 2.0 * np.pi * np.arange(12) / 12
CIRCLE = TSP(np.column_stack((np.cos(ANGLE), np.sin(ANGLE))), metric="EXACT")
ROUND = np.arange(12, dtype=np.int32)
SIDE = 2.0 * math.sin(math.pi / 12)  # between neighbours on the circle; the best tour has twelve of them


def archipelago(problem=CIRCLE, n_islands=2, **rules):
    told = {"exchange_every": 1.0, "topology": "all", "deterministic": False, **rules}
    return Archipelago(listed_instance(problem, 1), b"", Rules(**told), n_islands)


def swapped(*pairs):
    """The round with neighbours exchanged, and its length."""
    tour = ROUND.copy()
    for i in pairs:
        tour[[i, i + 1]] = tour[[i + 1, i]]
    return Tour(tour, CIRCLE.tour_length(tour))


def test_the_best_takes_over_what_is_better_in_another():
    islands = archipelago()
    islands.best.offer(swapped(1))
    assert islands.best.tour.value > 12 * SIDE
    islands.best.offer(swapped(6))  # as long, and better where the first is worse
    assert islands.best.tour.value == pytest.approx(12 * SIDE)
    assert np.array_equal(np.sort(islands.best.tour.cities), ROUND)


def test_what_is_worse_everywhere_changes_nothing():
    islands = archipelago()
    islands.best.offer(Tour(ROUND, 12 * SIDE))
    best = islands.best.tour
    islands.best.offer(swapped(1, 6))
    assert islands.best.tour is best


def test_where_direction_counts_the_best_takes_over_too():
    matrix = CIRCLE.D + np.triu(np.ones((12, 12)), 1) * 1e-3
    problem = TSP(matrix=matrix)
    islands = archipelago(problem)
    for tour in (swapped(1), swapped(6, 9)):
        islands.best.offer(Tour(tour.cities, problem.tour_length(tour.cities)))
    # all the way round, eleven of twelve edges the way that is longer
    assert islands.best.tour.value == pytest.approx(12 * SIDE + 11e-3)
    assert islands.best.tour.value == problem.tour_length(islands.best.tour.cities)


def test_to_prepare_a_merge_offers_nothing():
    islands = archipelago()
    islands.best.prepare()
    assert islands.best.tour is None


@pytest.mark.parametrize(
    ("workers", "where", "expected", "crowded"),
    [
        ({}, "", "", False),
        ({"a": 1, "b": 1}, "", "b", False),  # "a" has two islands already
        ({"a": 4, "b": 1}, "", "a", False),  # two for four threads are fewer than one for one
        ({"a": 1, "b": 1}, "a", "b", True),
        ({"a": 1, "b": 1}, "b", "b", False),
        ({"a": 1}, "a", "a", False),  # there is no other
        ({"a": 3, "b": 1}, "a", "a", False),  # 2/3 of an island for a thread are fewer than 1 for one
    ],
)
def test_an_island_goes_where_there_are_the_fewest(workers, where, expected, crowded):
    others = [Member(1, worker="a"), Member(2, worker="a"), Member(3, worker="b")]
    member = Member(0, worker=where)
    members = [member, *others]
    assert placement.emptiest(member, members, workers) == expected
    assert placement.is_crowded(member, members, workers) == crowded


def test_an_island_does_not_move_where_it_gains_nothing():
    members = [Member(0, worker="a"), Member(1, worker="a")]
    assert not placement.is_crowded(members[0], members, {"a": 2, "b": 1})  # each has a thread of its own


def test_neighbours_are_the_islands_of_a_host():
    members = [Member(i, worker=f"tcp://{host}") for i, host in enumerate(("a:1", "a:2", "b:1"))]
    assert [placement.neighbours(member, members) for member in members] == [2, 2, 1]


def test_given_tours_are_shared_out_and_the_best_goes_to_all():
    islands = archipelago(n_islands=2)
    tours = [swapped(1, 6, 9), Tour(ROUND, 12 * SIDE), swapped(1, 6), swapped(1)]
    islands.accept([tour.cities for tour in tours], [tour.value for tour in tours])
    sent = [[round(tour.value / SIDE, 3) for tour in member.migrants] for member in islands.members]
    two, three, one = (round(tours[i].value / SIDE, 3) for i in (2, 0, 3))
    assert sent == [[12.0, two], [12.0, one, three]]


def test_a_state_comes_back():
    islands = archipelago(n_islands=3, deterministic=True)
    islands.begin(2**63 + 5)
    islands.best.offer(swapped(1))
    member = islands.members[1]
    member.best, member.round, member.streams = Tour(swapped(2).cities, 1.5), 7, 2
    member.state = b"everything"
    other = archipelago(n_islands=3, deterministic=True)
    other.import_state(islands.export_state())
    for name, array in islands.export_state().items():
        assert np.array_equal(array, other.export_state()[name]), name
    assert other._key == 2**63 + 5
    assert other.members[1].state == b"everything"
    assert other.members[0].best is None


def test_a_state_of_another_number_of_islands_is_refused():
    with pytest.raises(ValueError, match=r"state\['tours'\] must have shape"):
        archipelago(n_islands=3).import_state(archipelago(n_islands=2).export_state())


@pytest.mark.parametrize(
    ("deterministic", "left", "told", "pace"),
    [
        (True, None, (0.5, 4, 10.0), 0.5 / (4 * 3)),  # half of the run in 4 rounds of 3 generations
        (True, None, (0.0, 0, 0.0), 0.0),
        (False, None, (0.5, 4, 10.0), 0.05),  # and in 10 seconds
        (False, 20.0, (0.5, 4, 10.0), 0.025),  # the other half is known to take 20
        (False, None, (math.nan, 4, 10.0), 0.0),
    ],
)
def test_islands_are_told_how_fast_the_run_goes(monkeypatch, deterministic, left, told, pace):
    islands = archipelago(deterministic=deterministic, exchange_every=3)
    monkeypatch.setattr("pymoo_gpuaco.islands.clock.time.monotonic", lambda: 100.0)
    islands.stop_at(None if left is None else 100.0 + left)
    islands.expect(*told)
    assert islands.clock.pace == pytest.approx(pace)


def test_a_round_is_told_how_far_the_run_is_when_it_is_sent(monkeypatch):
    clock, lock_step = Clock(None), Clock(3)
    now = [100.0]
    monkeypatch.setattr("pymoo_gpuaco.islands.clock.time.monotonic", lambda: now[0])
    for one in (clock, lock_step):
        one.end = 110.0
        one.expect(0.5, 5, 10.0)  # the other half takes 10 seconds
    now[0] = 104.0
    assert clock.progress == pytest.approx(0.5 + 4 * 0.5 / 10)
    assert lock_step.progress == 0.5  # there a round begins with the telling, and clocks decide nothing
    now[0] = 111.0
    assert clock.progress == 1.0
    clock.expect(math.nan, 5, 10.0)
    assert math.isnan(clock.progress)


class TestMeetings:
    """An island whose annealing is over, and others that are not as far."""

    def islands(self, meetings, **rules):
        islands = archipelago(n_islands=len(meetings), **rules)
        for member, meeting in zip(islands.members, meetings, strict=True):
            member.meeting, member.waits_until = meeting, math.inf
        return islands

    def who_may_go_on(self, islands):
        return [member.number for member in islands.members if islands._may_go_on(member)]

    @pytest.mark.parametrize(
        ("topology", "meetings", "expected"),
        [
            ("all", (2, 0, 0), [1, 2]),  # one waits for those that still anneal
            ("all", (2, 2, 2), [0, 1, 2]),
            ("all", (3, 2, 4), [1, 2]),  # who is to meet for the last time waits for who meets for the first
            ("all", (2, None, 4), [0, 1, 2]),  # nobody waits for colonies without tours to share
            ("all", (1, 0, 0), [0, 1, 2]),  # nor between cycles
            ("ring", (2, 0, 2), [0, 1]),  # 0 meets 2, and 2 meets 1
            ("none", (2, 0, 0), [0, 1, 2]),
        ],
    )
    def test_it_waits_for_those_whose_tours_it_meets(self, topology, meetings, expected):
        assert self.who_may_go_on(self.islands(meetings, topology=topology)) == expected

    def test_in_lock_step_all_go_on_together(self):
        assert self.who_may_go_on(self.islands((2, 0), deterministic=True, exchange_every=3)) == [0, 1]

    def test_it_waits_no_longer_than_its_round_took(self, monkeypatch):
        now = [100.0]
        monkeypatch.setattr("pymoo_gpuaco.islands.leader.time.monotonic", lambda: now[0])
        monkeypatch.setattr("pymoo_gpuaco.islands.clock.time.monotonic", lambda: now[0])
        islands = self.islands((0, 0))
        report = {
            "island": 0,
            "kind": "cpu",
            "patience": 1,
            "cities": ROUND,
            "value": 12 * SIDE,
            "state": None,
            "built": 3,
            "seconds": 2.5,
            "meeting": 2,
            "tours": np.array([ROUND, ROUND[::-1]]),
        }
        islands._note(report)
        member = islands.members[0]
        assert member.tours.tolist() == [ROUND.tolist(), ROUND[::-1].tolist()]
        assert not islands._may_go_on(member)
        assert islands._next_moment() == 102.5
        islands.stop_at(104.0)
        islands._note(report)  # 3 tenths of the 3.97 seconds that a round may take
        assert islands._next_moment() == pytest.approx(100.0 + 0.3 * 3.97)
        now[0] = 101.2
        assert islands._may_go_on(member)
        assert islands._next_moment() is None  # there is no tour yet, so no time is over
        islands._note({**report, "tours": None, "meeting": 4})
        assert member.tours is not None  # others may still meet them
        islands._note({**report, "tours": None, "meeting": 0})
        assert member.tours is None
        with pytest.raises(ValueError, match="the tours that have come"):
            islands._note({**report, "tours": np.zeros((2, 12), np.int32)})
