"""Edge assembly and kicks of tours of a front: what they are made of, and when it is whose turn."""

from __future__ import annotations

import numpy as np
import pytest

from pymoo_gpuaco.pareto.archive import Archive, Seen
from pymoo_gpuaco.pareto.assembly import ParentPairs, assemble_pairs
from pymoo_gpuaco.pareto.device import Front
from pymoo_gpuaco.pareto.front_2d import nondominated
from pymoo_gpuaco.pareto.instance import shuffled
from pymoo_gpuaco.pareto.nd_tree import make_tree
from pymoo_gpuaco.runtime.stop import Stop
from tests.front_cases import dominated, engine_of, problem_of
from tests.test_fronts_moves import edges, instance_of


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
    tours, _ = engine.archive.members()
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
