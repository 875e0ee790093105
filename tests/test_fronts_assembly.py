"""Edge assembly of members of a front: what its children are made of, and when it is its turn."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from pymoo_gpuaco import TSP, MultiObjectiveTSP
from pymoo_gpuaco.backends.cpu.fronts.engine import CpuFronts
from pymoo_gpuaco.fronts import search
from pymoo_gpuaco.fronts.assembly import assembled
from pymoo_gpuaco.fronts.parameters import FrontParameters
from pymoo_gpuaco.fronts.pays import PAIRS
from pymoo_gpuaco.fronts.weights import corner_pairs
from pymoo_gpuaco.host.stop import Stop
from tests.front_cases import engine_of, problem_of
from tests.test_fronts_chains import edges, instance_of


def children_of(costs, a, b, weights=(0.5, 0.5), key: int = 1) -> np.ndarray:
    pair = (np.array([tour], np.int32) for tour in (a, b))
    return assembled(costs, *pair, np.array([weights]), key, Stop())


def test_tours_that_differ_by_one_exchange_lead_to_each_other():
    costs = instance_of(8).costs
    a, b = np.arange(8), np.array([0, 1, 5, 4, 3, 2, 6, 7])
    assert [edges(child) for child in children_of(costs, a, b)] == [edges(b)]
    assert not len(children_of(costs, a, a[::-1]))


def test_no_pairs_have_no_children():
    # mates are drawn along the front: of a short one all may lie beyond its ends
    empty = np.empty((0, 8), np.int32)
    children = assembled(instance_of(8).costs, empty, empty, np.empty((0, 2)), 1, Stop())
    assert children.shape == (0, 8)


def test_a_front_too_short_for_mates_is_searched_on():
    # both objectives are the same, so the front is one tour
    tsp = TSP(np.random.default_rng(0).integers(0, 1000, (12, 2)), "EUC_2D")
    engine = engine_of(MultiObjectiveTSP([tsp, tsp]))
    for key in range(60):
        engine.search(key)
    assert len(engine.front()[0]) == 1


def test_every_difference_alone_makes_a_tour():
    # of b, the stretches 1 2 3 and 6 7 8 are turned round, each by an exchange of its own
    costs = instance_of(10).costs
    a, b = np.arange(10), np.array([0, 3, 2, 1, 4, 5, 8, 7, 6, 9])
    one, other = np.array([0, 3, 2, 1, 4, 5, 6, 7, 8, 9]), np.array([0, 1, 2, 3, 4, 5, 8, 7, 6, 9])
    assert {edges(child) for child in children_of(costs, a, b)} == {edges(one), edges(other)}


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
    assert {edges(child) for child in children_of(instance.costs, a, b, weights)} == expected


def test_children_are_tours_of_edges_of_both_and_of_few_others_however_they_are_made(monkeypatch):
    problem = problem_of(60)
    engine = engine_of(problem)
    for key in range(6):
        engine.search(key)
    tours, _ = engine.front()
    weights = np.full((len(tours) - 1, 2), 0.5)
    found = []
    for threads in ("1", "3"):
        monkeypatch.setenv("PYMOO_GPUACO_THREADS", threads)
        costs = engine.instance.costs
        found.append(assembled(costs, tours[:-1], tours[1:], weights, 7, Stop()))
    assert len(found[0]) >= len(weights) // 2
    assert np.array_equal(*found)
    assert (np.sort(found[0], axis=1) == np.arange(60)).all()
    other = assembled(costs, tours[:-1], tours[1:], weights, 8, Stop())
    assert not np.array_equal(found[0], other)


def test_no_pair_has_children_where_the_flag_is_up():
    stop, costs = Stop(), instance_of(8).costs
    stop.flag[0] = 1
    pair = np.array([np.arange(8)], np.int32), np.array([[0, 1, 5, 4, 3, 2, 6, 7]], np.int32)
    assert not len(assembled(costs, *pair, np.full((1, 2), 0.5), 1, stop))


def test_members_are_assembled_once_the_front_has_been_looked_at_by_all_its_chains(monkeypatch):
    engine = engine_of(problem_of(10))
    look, turns, looks = engine._device.look, [], []

    def noted(members, front):
        _, slack = engine._slopes(members.lengths)
        looks.append((int(members.exchanges[0]), front.rank, members.slack == pytest.approx(slack)))
        return look(members, front)

    monkeypatch.setattr(engine._device, "look", noted)
    for key in range(46):
        engine.search(key)
        if engine._pays.waits[PAIRS] == 0 and not any(turns):
            assert {exchanges for exchanges, *_ in looks} >= {3, 4, 5}
        turns.append(int(engine._pays.waits[PAIRS]) == 0)
    assert turns.index(True) > 5
    # nothing is left to look at: they take turns with kicks
    assert turns[-6:] in ([True, False] * 3, [False, True] * 3)
    # in between, chains of four are looked at once more, with four times the slack
    farther = [look for look in looks if not look[2]]
    assert farther
    assert {look[:2] for look in farther} == {(4, 0)}


@pytest.mark.parametrize("times", [1, 8])
def test_few_cities_are_kicked_under_weights_all_over_once_chains_of_five_were_looked_at_but_not_side_by_side(
    times, monkeypatch
):
    monkeypatch.setattr(CpuFronts, "times", times)
    engine = engine_of(problem_of(12))
    stages, kick = [], engine._kick_all_over
    monkeypatch.setattr(engine, "_kick_all_over", lambda key: (stages.append(engine._stage), kick(key)))
    for key in range(60):
        engine.search(key)
    assert bool(stages) == (times == 1)
    assert min(stages, default=2) == 2


@pytest.mark.parametrize("times", [1, 8])
def test_corners_are_assembled_before_the_first_look_and_after_the_sums_but_not_side_by_side(
    times, monkeypatch
):
    monkeypatch.setattr(CpuFronts, "times", times)
    engine = engine_of(problem_of(30))
    assembled_of, unsolved, looks = [], [], []

    def noted(pairs, key):
        assembled_of.extend(pairs.keys)
        unsolved.append(len(engine._unsolved_sums().rows))
        assemble(pairs, key)

    assemble = engine._assemble_corners
    monkeypatch.setattr(engine, "_assemble_corners", noted)
    monkeypatch.setattr(engine, "_look", lambda *given: looks.append(given))
    for key in range(40):
        engine.search(key)
        if looks:
            break
    assert looks
    assert not any(unsolved)
    assert (len(assembled_of) > 20) == (times == 1)
    assert len(set(assembled_of)) == len(assembled_of)
    assert (len(corner_pairs(engine.archive, set(assembled_of), 99).keys) == 0) == (times == 1)


def test_a_device_that_looks_side_by_side_waits_for_no_assembly_while_there_is_something_to_look_at(
    monkeypatch,
):
    monkeypatch.setattr(CpuFronts, "times", 8)
    engine = engine_of(problem_of(10))
    following, turns, stages = engine._next, [], []

    def noted(key):
        stage, rows = following(key)
        stages.append(engine._stages[stage])
        turns.append((len(rows) > 0, int(engine._pays.waits[PAIRS])))
        return stage, rows

    monkeypatch.setattr(engine, "_next", noted)
    for key in range(60):
        engine.search(key)
    assembled_at = [i for i in range(len(turns) - 1) if turns[i + 1][1] == 0 and turns[i][1] > 0]
    assert assembled_at
    assert not any(turns[i][0] for i in assembled_at)


def test_side_by_side_the_chains_of_a_stage_are_among_those_of_the_next():
    # members go on to the last stage that has begun: what they skip must not be lost
    stages = FrontParameters().stages_of(2, False, side_by_side=True)
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
    tours, points = engine.front()
    some = [(i, j) for i in range(19) for j in range(i + 1, 20)]
    children = np.array([exchanged(tour, i, j) for tour in tours for i, j in some])
    lengths = engine.instance.lengths(children)
    ranks = [int((points <= length).all(axis=1).sum()) for length in lengths]
    assert {0, 1, 2, 3} <= set(ranks)
    given, kept = [], []

    def stand_in(costs, given_tours, *_):
        given.append(len(given_tours))
        return children

    monkeypatch.setattr(search, "assembled", stand_in)
    monkeypatch.setattr(engine, "_take", lambda taken, _: kept.append(len(taken)))
    engine._assemble(1)
    assert kept == [sum(rank <= most for rank in ranks)]
    assert given[0] <= FrontParameters().pairs_of(20)


def exchanged(tour: np.ndarray, i: int, j: int) -> np.ndarray:
    """A tour whose cities from position i to j stand the other way round."""
    return np.concatenate([tour[:i], tour[i : j + 1][::-1], tour[j + 1 :]])
