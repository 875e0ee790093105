"""Colonies whose tours meet those of others at the end of their annealing, without any worker."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from pymoo_gpuaco.backends import Meets
from pymoo_gpuaco.exchange import EvolvingTours, evolve
from pymoo_gpuaco.islands import topology
from pymoo_gpuaco.islands.member import Member, Tour
from pymoo_gpuaco.problems import OpenPath
from pymoo_gpuaco.search import focused as search_module
from pymoo_gpuaco.search import pace
from pymoo_gpuaco.search.meeting import Meeting
from pymoo_gpuaco.search.parameters import FEWEST_TO_EVOLVE
from tests.eax_cases import good_tours, graph_of
from tests.engine_cases import BACKENDS, asymmetric, cloud, memetic
from tests.test_eax_evolve import assert_counted
from tests.tour_cases import random_tours


class TestMates:
    def test_they_stay_as_they_are_and_their_edges_count(self):
        problem, graph = cloud(100, 3), graph_of(cloud(100, 3))
        tours = random_tours(100, 9)
        population = EvolvingTours(graph, tours, graph.neighbours, parents=4)
        for key in range(6):
            before = population.lengths.copy()
            assert population.generation(key, 30, False) == (before - population.lengths).sum()
            assert np.array_equal(population.lengths, problem.tour_lengths(population.tours))
            assert_counted(population)
        assert np.array_equal(population.tours[4:], tours[4:])
        assert np.all(population.lengths[:4] < problem.tour_lengths(tours[:4]))

    def test_few_tours_become_among_mates_what_they_do_not_alone(self):
        """Four of twelve good tours, some 5 % too long."""
        problem = cloud(100, 8)
        tours = good_tours(problem, 12, 2)
        graph = graph_of(problem)
        found = evolve(graph, tours[:4], graph.neighbours, 1, mates=tours[4:])
        assert found.tours.shape == (4, 100)
        alone, nobody = (evolve(graph, tours[:4], graph.neighbours, 1, mates=no) for no in (None, tours[:0]))
        assert np.array_equal(alone.tours, nobody.tours)
        shortest = [problem.tour_lengths(some).min() for some in (found.tours, alone.tours, tours)]
        assert shortest[0] < min(shortest[1:])

    @pytest.mark.parametrize("parents", [0, 10])
    def test_parents_are_some_of_the_tours(self, parents):
        graph = graph_of(cloud(100, 3))
        with pytest.raises(ValueError, match=rf"parents must be an integer in \[1, 9\], got {parents}"):
            EvolvingTours(graph, random_tours(100, 9), graph.neighbours, parents=parents)

    def test_a_stage_of_blocks_alone_takes_blocks_from_the_start(self, monkeypatch):
        problem, kinds = cloud(100, 8), []
        generation = EvolvingTours.generation

        def note(self, key, children, blocks, until=None):
            kinds.append(blocks)
            return generation(self, key, children, blocks, until)

        monkeypatch.setattr(EvolvingTours, "generation", note)
        graph, tours = graph_of(problem), good_tours(problem, 8, 2)
        for stages in ((False,), (True,), (False, True)):
            kinds.clear()
            evolve(graph, tours, graph.neighbours, 1, stages=stages)
            assert sorted(set(kinds)) == list(stages)


def sharing(problem, backend="cpu", m=FEWEST_TO_EVOLVE):
    engine = memetic(problem, backend, m)
    engine.share(True)
    return engine


def annealed(engine, rounds=20):
    """Searches until the colony waits for others."""
    for key in range(rounds):
        engine.expect(key / rounds)
        engine.search(key)
        if engine.meeting > Meeting.CYCLE:
            return engine
        if engine.meeting == Meeting.CYCLE:
            engine.meet(np.empty((0, engine.instance.n), np.int32), 100 + key)
    raise AssertionError("it never waited")


@pytest.mark.usefixtures("few_kicks")
class TestColonies:
    @pytest.mark.parametrize("backend", BACKENDS)
    def test_many_tours_meet_others_twice_when_all_annealing_is_over(self, backend):
        problem = cloud(300, 4)
        engine, other = (annealed(sharing(problem, backend, None if backend == "cuda" else 8)) for _ in "ab")
        assert isinstance(engine, Meets)
        assert engine.meeting == Meeting.FIRST_STAGE
        before, made = engine.best_tours(200), engine.n_trials
        engine.expect(0.8)
        engine.search(50)  # nothing happens until they have met
        assert (engine.meeting, engine.n_trials) == (Meeting.FIRST_STAGE, made)
        assert all(np.array_equal(old, new) for old, new in zip(before, engine.best_tours(200), strict=True))
        for meeting in (Meeting.FIRST_STAGE, Meeting.SECOND_STAGE):
            assert engine.meeting == meeting
            engine.meet(other.best_tours(200)[0], 60 + meeting)
        assert engine.meeting == Meeting.OVER
        lengths = engine.best_tours(200)[1]
        assert lengths.max() <= before[1].max()
        assert lengths[0] <= before[1][0]
        engine.expect(0.9)
        engine.search(51)  # and goes on without heat
        assert engine.n_trials > made
        assert engine.meeting == Meeting.OVER

    def test_the_pace_of_rounds_counts_those_that_were_made_until_a_meeting(self, monkeypatch):
        """A clock that only rounds put forward; a cycle of five rounds, of which four are launched at a time."""
        clock, engine = [100.0], sharing(cloud(120, 7))
        engine.device.plan = replace(
            engine.device.plan, rounds=8, rounds_between_checks=4, whole_rounds=True, first_cycle=5
        )
        monkeypatch.setattr(engine.device, "allocate", lambda m: None)
        monkeypatch.setattr(pace, "time", SimpleNamespace(monotonic=lambda: clock[0]))
        anneal, made = engine.device.anneal, []

        def slow(*arguments):
            clock[0] += 2.0
            made.append(0)
            return anneal(*arguments)

        monkeypatch.setattr(engine.device, "anneal", slow)
        engine.search(1)
        assert (len(made), engine.meeting) == (5, Meeting.CYCLE)
        assert (
            engine._pace.seconds(search_module._ROUND) == 2.0
        )  # and not a fourth of it, though one was left for the last batch

    def test_few_tours_meet_others_once(self):
        engine = annealed(sharing(cloud(200, 6), m=3))
        assert engine.meeting == Meeting.SECOND_STAGE
        engine.meet(annealed(sharing(cloud(200, 6), m=3)).best_tours(3)[0], 1)
        assert engine.meeting == Meeting.OVER

    @pytest.mark.parametrize(
        ("m", "end", "expected"),
        [(2, None, {0, 1}), (8, None, {0, 1}), (2, 4000, {0, 1}), (8, 4000, {0})],
    )
    def test_between_cycles_a_colony_goes_on_after_its_meeting(self, m, end, expected):
        """Many tours, of which it is known when they will evolve, meet nobody before."""
        engine, seen = sharing(cloud(60, 7), m=m), []
        for key in range(40):
            engine.expect(np.nan if end is None else key / end)
            engine.search(key)
            seen.append(engine.meeting)
            if engine.meeting:
                engine.meet(engine.best_tours()[0], key)
                assert engine.meeting == Meeting.NONE
        assert engine._schedule.cycle > 1
        assert set(seen) == expected

    def test_a_colony_that_does_not_share_waits_for_nobody(self):
        engine = memetic(cloud(120, 7), n=8)
        for key in range(20):
            engine.expect(key / 20)
            engine.search(key)
            assert engine.meeting in (Meeting.NONE, Meeting.OVER)
        assert engine.meeting == Meeting.OVER
        waiting = annealed(sharing(cloud(120, 7)))
        waiting.share(False)
        assert waiting.meeting == Meeting.OVER

    def test_a_state_goes_on_to_the_same_meeting(self):
        problem = cloud(200, 8)
        engine, mates = annealed(sharing(problem)), annealed(sharing(problem)).best_tours(9)[0]
        twin = sharing(problem)
        twin.import_state(engine.export_state())
        assert twin.meeting == Meeting.FIRST_STAGE
        for one in (engine, twin):
            one.meet(mates, 7)
        first, second = engine.export_state(), twin.export_state()
        assert all(np.array_equal(first[name], second[name]) for name in first)

    def test_under_another_budget_it_anneals_again(self):
        engine = annealed(sharing(cloud(120, 7)))
        engine.expect(0.2)
        assert engine.meeting == Meeting.NONE
        made = engine.n_trials
        engine.search(99)
        assert engine.n_trials > made

    @pytest.mark.parametrize("problem", [asymmetric(30), OpenPath(np.random.default_rng(1).random((40, 2)))])
    def test_other_kinds_of_tours_are_shared_as_tours_of_the_problem(self, problem):
        engine, other = (annealed(sharing(problem)) for _ in "ab")
        while engine.meeting != Meeting.OVER:
            engine.meet(other.best_tours(9)[0], 5)
        tours, lengths = engine.best_tours(9)
        assert lengths == pytest.approx([problem.tour_length(tour) for tour in tours])

    def test_mates_are_tours(self):
        engine = annealed(sharing(cloud(60, 7)))
        with pytest.raises(ValueError, match="mates"):
            engine.meet(np.zeros((1, 60), np.int32), 1)


def test_a_long_tour_that_is_alone_meets_nobody():
    from pymoo_gpuaco.backends.cpu.focused import CpuWindows
    from pymoo_gpuaco.candidates.lists import listed_instance
    from pymoo_gpuaco.search.focused import MemeticSearch
    from pymoo_gpuaco.search.parameters import MemeticParameters

    told = MemeticParameters(whole_up_to=100, window=64)
    engine = MemeticSearch(CpuWindows(listed_instance(cloud(200, 1), 8), told))
    engine.share(True)
    for key in range(10):
        engine.expect(key / 10)
        engine.search(key)
        assert engine.meeting is None
    assert engine.best_tours()[1][0] > 0


class TestTopology:
    """Three islands; each has three tours, the first of them its best."""

    def islands(self, meeting=Meeting.FIRST_STAGE):
        rng = np.random.default_rng(3)
        members = [Member(number) for number in range(3)]
        for member in members:
            member.tours = np.array([rng.permutation(9) for _ in range(3)], np.int32)
            member.best, member.meeting = Tour(member.tours[0], 1.0), meeting
        return members

    def sent(self, name, members):
        """Which tours of which islands the first one meets, as (island, row)."""
        rows = topology.mates(name, members[0], members, 9)
        known = {tour.tobytes(): (m.number, i) for m in members for i, tour in enumerate(m.tours)}
        return sorted(known[row.tobytes()] for row in rows)

    @pytest.mark.parametrize(
        ("name", "islands"), [("all", (1, 2)), ("ring", (2,)), ("none", ())], ids=lambda told: str(told)
    )
    def test_when_annealing_is_over_all_tours_of_the_givers_come(self, name, islands):
        for meeting in (Meeting.FIRST_STAGE, Meeting.SECOND_STAGE):
            wanted = [(island, row) for island in islands for row in range(3)]
            assert self.sent(name, self.islands(meeting)) == wanted

    def test_between_cycles_their_best_come_and_else_nothing(self):
        assert self.sent("all", self.islands(Meeting.CYCLE)) == [(1, 0), (2, 0)]
        for meeting in (Meeting.NONE, Meeting.OVER, None):
            assert self.sent("all", self.islands(meeting)) == []

    def test_each_comes_once_and_the_shortest_where_there_are_many(self, monkeypatch):
        members = self.islands()
        members[2].tours = members[1].tours.copy()
        assert len(topology.mates("all", members[0], members, 9)) == 3
        monkeypatch.setattr(topology, "MOST_MATES", 5)
        assert self.sent("all", self.islands()) == [(1, 0), (1, 1), (2, 0), (2, 1)]

    def test_who_has_not_reported_gives_nothing(self):
        members = self.islands()
        members[1].tours = members[2].tours = None
        assert topology.mates("all", members[0], members, 9).shape == (0, 9)

    def test_one_island_is_no_ring(self):
        alone = Member(0)
        assert topology.givers("ring", alone, [alone]) == []
