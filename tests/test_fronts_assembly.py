"""Edge assembly and kicks of tours of a front: what they are made of, and when it is whose turn."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from pymoo_gpuaco import TSP, MultiObjectiveTSP
from pymoo_gpuaco.backends.cpu.pareto.engine import CpuFronts
from pymoo_gpuaco.pareto import search
from pymoo_gpuaco.pareto.archive import Archive
from pymoo_gpuaco.pareto.assembly import ParentPairs, assemble_pairs
from pymoo_gpuaco.pareto.device import Front
from pymoo_gpuaco.pareto.front_2d import nondominated
from pymoo_gpuaco.pareto.instance import shuffled
from pymoo_gpuaco.pareto.nd_tree import make_tree
from pymoo_gpuaco.pareto.operator_selection import EXPLORE, KICKS, PAIRS, PATHS
from pymoo_gpuaco.pareto.parameters import FrontParameters
from pymoo_gpuaco.pareto.seen import Seen
from pymoo_gpuaco.pareto.weights import corner_pairs
from pymoo_gpuaco.runtime.stop import Stop
from tests.front_cases import dominated, engine_of, problem_of
from tests.test_fronts_chains import edges, instance_of


def nothing_yet(k: int = 2) -> Front:
    """A front without members, when no lengths have been met."""
    return Front(np.empty((0, k)), make_tree(0, 64, k), 0, np.zeros(2, np.uint64))


def parent_pairs_of(instance, tours, others, weights=None) -> ParentPairs:
    tours, others = np.array(tours, np.int32), np.array(others, np.int32)
    even = np.full((len(tours), instance.k), 1.0 / instance.k)
    return ParentPairs(tours, others, instance.lengths(tours), even if weights is None else np.array(weights))


def children_of(instance, a, b, weights=(0.5, 0.5)) -> np.ndarray:
    return assemble_pairs(instance, parent_pairs_of(instance, [a], [b], [weights]), nothing_yet(), 1, Stop())[
        0
    ]


def test_tours_that_differ_by_one_exchange_lead_to_each_other():
    instance = instance_of(8)
    a, b = np.arange(8), np.array([0, 1, 5, 4, 3, 2, 6, 7])
    assert [edges(child) for child in children_of(instance, a, b)] == [edges(b)]
    assert not len(children_of(instance, a, a[::-1]))


def test_no_pairs_have_no_children():
    # mates are drawn along the front: of a short one all may lie beyond its ends
    instance, empty = instance_of(8), np.empty((0, 8), np.int32)
    children, lengths = assemble_pairs(
        instance, parent_pairs_of(instance, empty, empty), nothing_yet(), 1, Stop()
    )
    assert children.shape == (0, 8)
    assert lengths.shape == (0, 2)


def test_a_front_too_short_for_mates_is_searched_on():
    # both objectives are the same, so the front is one tour
    tsp = TSP(np.random.default_rng(0).integers(0, 1000, (12, 2)), "EUC_2D")
    engine = engine_of(MultiObjectiveTSP([tsp, tsp]))
    for key in range(60):
        engine.search(key)
    assert len(engine.front()[0]) == 1


def test_every_difference_alone_makes_a_tour():
    # of b, the stretches 1 2 3 and 6 7 8 are turned round, each by an exchange of its own
    instance = instance_of(10)
    a, b = np.arange(10), np.array([0, 3, 2, 1, 4, 5, 8, 7, 6, 9])
    one, other = np.array([0, 3, 2, 1, 4, 5, 6, 7, 8, 9]), np.array([0, 1, 2, 3, 4, 5, 8, 7, 6, 9])
    assert {edges(child) for child in children_of(instance, a, b)} == {edges(one), edges(other)}


@pytest.mark.parametrize("weights", [(1.0, 0.0), (0.0, 1.0)])
def test_subtours_are_joined_by_the_shortest_exchange_under_the_weights(weights):
    instance = instance_of(8)
    length = instance.costs.table @ np.array(weights)
    # a double bridge: either half of it alone, (0, 1) and (4, 5) or (2, 3) and (6, 7), leaves two subtours
    a, b = np.arange(8), np.array([0, 5, 6, 3, 4, 1, 2, 7])
    halves = [([1, 2, 3, 4], [5, 6, 7, 0]), ([7, 0, 1, 2], [3, 4, 5, 6])]
    expected = set()
    for one, other in halves:
        joined = []
        for i in range(4):
            for j in range(4):
                for way in (1, -1):
                    # open one behind i and the other behind j, and walk that one this way or the other
                    tour = np.array(one[i + 1 :] + one[: i + 1] + (other[j + 1 :] + other[: j + 1])[::way])
                    joined.append((length[tour, np.roll(tour, -1)].sum(), edges(tour)))
        expected.add(min(joined, key=lambda pair: pair[0])[1])
    assert len(expected) == 2
    assert {edges(child) for child in children_of(instance, a, b, weights)} == expected


def test_children_are_tours_of_edges_of_both_and_of_few_others_however_they_are_made(monkeypatch):
    problem = problem_of(60)
    engine = engine_of(problem)
    for key in range(6):
        engine.search(key)
    tours, _ = engine.front()
    pairs, found = parent_pairs_of(engine.instance, tours[:-1], tours[1:]), []
    for threads in ("1", "3"):
        monkeypatch.setenv("PYMOO_GPUACO_THREADS", threads)
        found.append(assemble_pairs(engine.instance, pairs, nothing_yet(), 7, Stop()))
    children, lengths = found[0]
    assert len(children) >= len(tours) // 2
    assert np.array_equal(children, found[1][0])
    assert np.array_equal(lengths, found[1][1])
    assert (np.sort(children, axis=1) == np.arange(60)).all()
    other, _ = assemble_pairs(engine.instance, pairs, nothing_yet(), 8, Stop())
    assert not np.array_equal(children, other)


@pytest.mark.parametrize(("n", "k", "metric"), [(60, 2, "EUC_2D"), (60, 3, "EUC_2D"), (2100, 2, "EUC_2D")])
def test_lengths_of_children_are_what_they_are_when_they_are_added_up(n, k, metric):
    instance, draw = instance_of(n, k, metric, near=8), np.random.default_rng(1)
    tours = np.array([instance.starts[0], instance.starts[1], draw.permutation(n)])
    pairs = parent_pairs_of(instance, tours, np.roll(tours, 1, axis=0))
    children, lengths = assemble_pairs(instance, pairs, nothing_yet(k), 1, Stop())
    assert len(children) >= 3
    assert np.array_equal(lengths, instance.lengths(children))
    assert (np.sort(children, axis=1) == np.arange(n)).all()


def test_only_children_that_the_front_lacks_are_made():
    instance, draw = instance_of(40), np.random.default_rng(1)
    tours = np.array([draw.permutation(40) for _ in range(40)])
    pairs = parent_pairs_of(instance, tours, np.roll(tours, 1, axis=0))
    everybody, all_lengths = assemble_pairs(instance, pairs, nothing_yet(), 1, Stop())
    points = np.unique(all_lengths, axis=0)
    points = points[nondominated(points)]
    # the members of this front, and lengths of a third of the children, have been met
    seen = Seen(instance.unit)
    seen.add(points)
    seen.add(all_lengths[::3])
    met = {tuple(one) for one in [*points, *all_lengths[::3]]}
    for rank in (0, 1, 3):
        front = Front(points, make_tree(0, 64, 2), rank, seen.slots)
        children, lengths = assemble_pairs(instance, pairs, front, 1, Stop())
        as_short = [(points <= one).all(axis=1).sum() for one in all_lengths]
        new = [i for i, one in enumerate(all_lengths) if as_short[i] <= rank and tuple(one) not in met]
        assert bool(new) == (rank > 0)
        assert np.array_equal(children, everybody[new])
        assert np.array_equal(lengths, all_lengths[new])


def test_of_three_objectives_only_children_that_no_member_dominates_are_made():
    instance, draw = instance_of(40, 3), np.random.default_rng(1)
    tours = np.array([draw.permutation(40) for _ in range(40)])
    pairs = parent_pairs_of(instance, tours, np.roll(tours, 1, axis=0))
    everybody, all_lengths = assemble_pairs(instance, pairs, nothing_yet(3), 1, Stop())
    points = all_lengths[::5][~dominated(all_lengths[::5])]
    archive = Archive(40, 3, instance.unit, 1000)
    archive.add(np.array([np.arange(40)] * len(points)), points)
    front = Front(archive.lengths, archive.tree, 0, archive.seen.slots)
    children, lengths = assemble_pairs(instance, pairs, front, 1, Stop())
    new = [not (points <= one).all(axis=1).any() for one in all_lengths]
    assert 0 < sum(new) < len(all_lengths)
    assert np.array_equal(children, everybody[new])
    assert np.array_equal(lengths, all_lengths[new])


def test_no_pair_has_children_where_the_flag_is_up():
    stop, instance = Stop(), instance_of(8)
    stop.flag[0] = 1
    pairs = parent_pairs_of(instance, [np.arange(8)], [[0, 1, 5, 4, 3, 2, 6, 7]])
    assert not len(assemble_pairs(instance, pairs, nothing_yet(), 1, stop)[0])


def test_of_many_cities_members_are_assembled_from_the_first_many_at_once(monkeypatch):
    monkeypatch.setattr(search, "_FEW_CITIES", 9)
    engine = engine_of(problem_of(20))
    engine._n_explored = 4
    assemble, stages, pairs = engine._assemble, [], []

    def assembling(key):
        stages.append(engine._stage)
        monkeypatch.setattr(engine, "_take_assembled", noted)
        assemble(key)
        monkeypatch.setattr(engine, "_take_assembled", take)

    def noted(rows, others, weights, key):
        pairs.append(len(rows))
        assert {*rows, *others} <= set(engine.archive.front)
        take(rows, others, weights, key)

    take = engine._take_assembled
    monkeypatch.setattr(engine, "_assemble", assembling)
    for key in range(30):
        engine.search(key)
    # at the second stage all members have been explored: until then there were only first looks
    assert stages[0] <= 0
    # a mate may lie beyond an end
    assert 16 < max(pairs) <= 32


def test_of_many_cities_chains_of_four_are_looked_at_once_more_with_four_times_the_slack(monkeypatch):
    monkeypatch.setattr(search, "_FEW_CITIES", 9)
    engine = engine_of(problem_of(10))
    look, looks = engine._device.explore, []

    def noted(members, front):
        _, slack = engine._slopes(members.lengths)
        looks.append((int(members.exchanges[0]), front.rank, members.slack == pytest.approx(slack)))
        return look(members, front)

    monkeypatch.setattr(engine._device, "explore", noted)
    for key in range(60):
        engine.search(key)
    farther = [look for look in looks if not look[2]]
    assert farther
    assert {look[:2] for look in farther} == {(4, 0)}


@pytest.mark.parametrize("times", [1, 8])
def test_of_few_cities_kicks_assembly_and_farther_looks_take_turns_after_first_looks(times, monkeypatch):
    monkeypatch.setattr(CpuFronts, "times", times)
    engine = engine_of(problem_of(30))
    following, first, kinds = engine._next, [], []

    def noted(key):
        stage, rows = following(key)
        first.append(stage == 0 and len(rows) > 0)
        return stage, rows

    monkeypatch.setattr(engine, "_next", noted)
    for key in range(120):
        before = len(first)
        engine.search(key)
        if len(first) > before and engine._operators.waits.min() == 0:
            kinds.append((int(engine._operators.waits.argmin()), first[-1]))
    assert {kind for kind, _ in kinds} == {EXPLORE, PATHS, KICKS, PAIRS}
    after = kinds[[kind for kind, _ in kinds].index(KICKS) :]
    assert all(kind == EXPLORE for kind, is_first in after if is_first)
    turns = [kind for kind, is_first in after if not is_first]
    assert all(one != next_ for one, next_ in pairwise(turns))
    assert min(turns.count(kind) for kind in (EXPLORE, KICKS, PAIRS)) > 10


def test_of_few_cities_a_stretch_of_a_member_is_shuffled_before_it_is_kicked(monkeypatch):
    given = []
    for few in (True, False):
        monkeypatch.setattr(search, "_FEW_CITIES", 150 if few else 9)
        monkeypatch.setattr(search, "_SHUFFLED", 5)
        engine = engine_of(problem_of(12))
        for key in range(8):
            engine.search(key)
        members = {edges(tour) for tour in engine.front()[0]}
        monkeypatch.setattr(engine._device, "descend", lambda tours, *_: (given.append(tours), tours)[1])
        engine._kick_members(1)
        assert all(edges(tour) in members for tour in given[-1]) == (not few)
    # five cities in a row elsewhere: six edges of twelve are others, at most
    for tour in given[0]:
        assert max(len(edges(tour) & member) for member in members) >= 6
    assert np.array_equal(np.sort(given[0], axis=1), np.tile(np.arange(12), (len(given[0]), 1)))


def test_every_second_time_tours_of_weights_all_over_the_front_are_kicked_with_a_stretch_shuffled(
    monkeypatch,
):
    monkeypatch.setattr(search, "_SHUFFLED", 5)
    engine, given = engine_of(problem_of(12)), []
    for key in range(8):
        engine.search(key)
    members = {edges(tour) for tour in engine.front()[0]}
    monkeypatch.setattr(engine._device, "descend", lambda tours, *_: (given.append(tours), tours)[1])
    for key in range(4):
        engine._kick_all_over(key)
    assert [all(edges(tour) in members for tour in tours) for tours in given] == [True, False, True, False]
    # five cities in a row elsewhere: six edges of twelve are others, at most
    for tour in given[1]:
        assert max(len(edges(tour) & member) for member in members) >= 6
    assert np.array_equal(np.sort(given[1], axis=1), np.tile(np.arange(12), (len(given[1]), 1)))


def test_shuffled_are_cities_in_a_row_and_of_a_shorter_tour_all():
    tours = np.stack([np.random.default_rng(i).permutation(40) for i in range(50)]).astype(np.int32)
    given = tours.copy()
    new = shuffled(tours, 7, np.random.default_rng(1))
    assert np.array_equal(tours, given)
    assert np.array_equal(np.sort(new, axis=1), np.sort(tours, axis=1))
    moved = [np.flatnonzero(row) for row in new != tours]
    # seen from some place, all that moved is in seven places in a row, on the ring
    assert all(min(((places - first) % 40).max() for first in range(40)) < 7 for places in moved)
    assert len({tuple(places) for places in moved}) > 20
    every = shuffled(tours, 99, np.random.default_rng(1))
    assert np.array_equal(np.sort(every, axis=1), np.sort(tours, axis=1))
    assert (every != tours).mean() > 0.9


def test_tours_of_the_archive_that_members_dominate_are_assembled_too(monkeypatch):
    engine = engine_of(problem_of(30))
    for key in range(30):
        engine.search(key)
    archive, parents = engine.archive, []
    assert (archive.rank[: archive.count][archive.present()] > 0).any()
    monkeypatch.setattr(engine, "_take_assembled", lambda rows, others, *_: parents.extend([*rows, *others]))
    for key in range(20):
        engine._assemble(key)
    ranks = archive.rank[parents]
    assert ranks.max() > 2
    assert ranks.min() == 0
    assert archive.present()[parents].all()


@pytest.mark.parametrize("times", [1, 8])
def test_corners_are_assembled_before_the_first_look_and_after_the_sums(times, monkeypatch):
    monkeypatch.setattr(CpuFronts, "times", times)
    engine = engine_of(problem_of(30))
    assembled_of, unsolved, looks = [], [], []

    def noted(pairs, key):
        assembled_of.extend(pairs.keys)
        unsolved.append(len(engine._unsolved_sums().rows))
        assemble(pairs, key)

    assemble = engine._assemble_corners
    monkeypatch.setattr(engine, "_assemble_corners", noted)
    monkeypatch.setattr(engine, "_explore", lambda *given: looks.append(given))
    for key in range(40):
        engine.search(key)
        if looks:
            break
    assert looks
    assert not any(unsolved)
    assert len(assembled_of) > 20
    assert len(set(assembled_of)) == len(assembled_of)
    assert not len(corner_pairs(engine.archive, set(assembled_of), 99).keys)


def test_a_device_that_looks_side_by_side_waits_for_no_assembly_while_there_is_something_to_look_at(
    monkeypatch,
):
    monkeypatch.setattr(CpuFronts, "times", 8)
    monkeypatch.setattr(search, "_FEW_CITIES", 9)
    engine = engine_of(problem_of(10))
    following, turns, stages = engine._next, [], []

    def noted(key):
        stage, rows = following(key)
        stages.append(engine._stages[stage])
        turns.append((len(rows) > 0, int(engine._operators.waits[PAIRS])))
        return stage, rows

    monkeypatch.setattr(engine, "_next", noted)
    for key in range(60):
        engine.search(key)
    assembled_at = [i for i in range(len(turns) - 1) if turns[i + 1][1] == 0 and turns[i][1] > 0]
    assert assembled_at
    assert not any(turns[i][0] for i in assembled_at)


def test_side_by_side_the_chains_of_a_stage_are_among_those_of_the_next():
    # members go on to the last stage that has begun: what they skip must not be lost
    stages = FrontParameters().stages_of(2, False, parallel=True)
    for stage, following in pairwise(stages):
        assert following.exchanges >= stage.exchanges
        assert following.rank >= stage.rank
        assert following.slack >= stage.slack


@pytest.mark.parametrize(("times", "most"), [(1, 2), (8, 0)])
def test_side_by_side_only_members_of_the_front_are_kept_of_what_is_assembled(monkeypatch, times, most):
    monkeypatch.setattr(CpuFronts, "times", times)
    engine = engine_of(problem_of(20))
    for key in range(4):
        engine.search(key)
    ranks = []

    def stand_in(instance, pairs, front, *_):
        ranks.append(front.rank)
        assert len(pairs.tours) <= 2 * FrontParameters().explored_of(20, 2) * times
        assert np.array_equal(pairs.lengths, engine.instance.lengths(pairs.tours))
        return pairs.tours[:0], pairs.lengths[:0]

    monkeypatch.setattr(search, "assemble_pairs", stand_in)
    engine._assemble(1)
    assert ranks == [most]
