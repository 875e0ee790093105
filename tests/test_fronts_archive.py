"""The archive of a front against the plainest filter there is, of two objectives and of more."""

from __future__ import annotations

import moocore
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pymoo_gpuaco import TSP, MultiObjectiveTSP
from pymoo_gpuaco.pareto import nd_tree
from pymoo_gpuaco.pareto.archive import MOST_RANK, Archive, Seen, archive_state, restored_archive
from pymoo_gpuaco.pareto.front_2d import hypervolume, nondominated
from pymoo_gpuaco.pareto.nd_tree import make_tree, tree_covers, undominated, update
from tests.instances import front_instance


def front_of(lengths: np.ndarray) -> np.ndarray:
    """Rows that no other dominates, each once, in order."""
    rows = np.unique(lengths, axis=0)
    dominated = ((rows[None] <= rows[:, None]).all(axis=2) & (rows[None] < rows[:, None]).any(axis=2)).any(
        axis=1
    )
    return rows[~dominated]


def archive_of(k: int, size: int = 100_000, n: int = 5) -> Archive:
    return Archive(n, k, np.ones(k), size)


def filled(archive: Archive, batches: list[np.ndarray]) -> list[np.ndarray]:
    """Add batches of lengths; each tour says which it belongs to. Return the lengths that joined, by batch."""
    joined, number = [], 0
    for lengths in batches:
        tours = np.full((len(lengths), archive.n), 0)
        tours[:, 0] = np.arange(number, number + len(lengths)) % 60_000
        number += len(lengths)
        rows = archive.add(tours, lengths)
        joined.append(archive.lengths[rows])
    return joined


@st.composite
def batches(draw: st.DrawFn) -> list[np.ndarray]:
    k, extent = draw(st.integers(2, 5)), draw(st.integers(1, 40))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    sizes = draw(st.lists(st.integers(0, 60), min_size=1, max_size=6))
    return [rng.integers(0, extent, (m, k)).astype(float) for m in sizes]


@settings(max_examples=150, deadline=None)
@given(batches())
def test_the_front_is_what_nothing_else_dominates(lengths):
    archive = archive_of(lengths[0].shape[1])
    everything = np.concatenate(lengths)
    joined, so_far = filled(archive, lengths), 0
    for batch, new in zip(lengths, joined, strict=True):
        so_far += len(batch)
        front = {tuple(row) for row in front_of(everything[:so_far])}
        before = {tuple(row) for row in everything[: so_far - len(batch)]}
        assert {tuple(row) for row in new} == {row for row in front if row not in before}
    assert np.array_equal(archive.points, front_of(everything))
    # every tour has kept its own lengths: the first that had them
    for row in archive.front:
        assert np.array_equal(everything[archive.tours[row, 0]], archive.lengths[row])
    assert not archive.explored[: archive.count].any()


@settings(max_examples=50, deadline=None)
@given(batches(), st.sampled_from([5, 301]))
def test_worth_taking_in_is_what_stays_once_all_are_there(lengths, n):
    """Of few cities up to 8 members may dominate a tour, of many none."""
    first, second = (np.concatenate(part or [lengths[0][:0]])[:, :2] for part in (lengths[:-1], lengths[-1:]))
    archive = archive_of(2, n=n)
    filled(archive, [first])
    worth = archive.worth(second)
    front, met = front_of(np.concatenate([first, second])), {tuple(row) for row in first}
    most = MOST_RANK if n == 5 else 0
    for at, row in enumerate(second):
        dominators = ((front <= row).all(axis=1) & (front < row).any(axis=1)).sum()
        if tuple(row) not in met:  # else it is passed over
            assert worth[at] == (dominators <= most)
        met.add(tuple(row))


@pytest.mark.parametrize("k", [3, 4, 6])
def test_a_large_tree_knows_what_a_plain_filter_does(k):
    rng = np.random.default_rng(k)
    points = rng.random((3000, k))
    points /= np.linalg.norm(points, axis=1, keepdims=True) * rng.uniform(0.95, 1.0, (3000, 1))
    kept = undominated(points)
    assert np.array_equal(np.unique(points[kept], axis=0), front_of(points))
    archive = archive_of(k)
    archive.seen.unit[:] = 1e-12
    filled(archive, [points[i : i + 700] for i in range(0, 3000, 700)])
    assert np.array_equal(archive.points, front_of(points))


@pytest.mark.parametrize("k", [2, 3])
def test_beyond_its_size_those_go_that_are_missed_least_and_the_best_of_each_stay(k):
    rng = np.random.default_rng(0)
    points = rng.random((400, k))
    points = np.round(1e6 * points / np.linalg.norm(points, axis=1, keepdims=True))
    front = front_of(2e6 - points)
    archive = archive_of(k, size=50)
    filled(archive, [2e6 - points])
    assert len(archive.front) == len(archive.members()[0]) == 50
    assert archive.dropped == len(front) - 50
    assert np.array_equal(archive.points.min(axis=0), front.min(axis=0))
    assert {tuple(row) for row in archive.points} <= {tuple(row) for row in front}


def test_a_tree_that_has_no_room_is_planted_again(monkeypatch):
    """All on a plane, so that none dominates another; then one that dominates some."""
    rng = np.random.default_rng(7)
    points = rng.integers(100, 900, (300, 3)).astype(float)
    points[:, 2] = 2000 - points[:, 0] - points[:, 1]
    points = np.unique(points, axis=0)
    planted = []

    def small(rows, nodes, k):
        planted.append(nodes)
        return make_tree(rows, 8 if len(planted) == 1 else nodes, k)

    monkeypatch.setattr(nd_tree, "make_tree", small)
    assert undominated(points).all()
    assert planted[:3] == [64 + len(points), 16, 32]
    monkeypatch.setattr("pymoo_gpuaco.pareto.archive.make_tree", small)
    planted.clear()
    archive = archive_of(3)
    filled(archive, [points])
    assert planted[:3] == [1024, 16, 32]
    assert np.array_equal(archive.points, points)
    better = points[:1] - 40.0
    filled(archive, [better])
    assert np.array_equal(archive.points, front_of(np.concatenate([points, better])))


def test_the_unit_is_of_the_lengths_where_a_greedy_tour_costs_nothing():
    ring = np.full((12, 12), 0.5)
    i = np.arange(12)
    ring[i, i] = ring[i, i - 1] = ring[i - 1, i] = 0.0
    places = np.random.default_rng(0).random((12, 2))
    instance = front_instance(MultiObjectiveTSP([TSP(matrix=ring), TSP(places, metric="EXACT")]), 5)
    free, other = instance.lengths(instance.starts)
    assert free[0] == 0.0
    assert other[0] > 0.0
    assert 1e-12 * other[0] < instance.unit[0] < 1e-6 * other[0]


def test_a_front_a_little_beyond_its_size_is_kept_and_handed_out_without_what_is_missed_least():
    points = np.stack([np.arange(53.0) ** 2, (52.0 - np.arange(53)) ** 2], axis=1)
    archive = archive_of(2, size=50)
    filled(archive, [points[::-1]])
    assert len(archive.front) == 53
    assert archive.dropped == 0
    out = archive.members()[1]
    assert len(out) == 50
    assert np.all(np.diff(out[:, 0]) > 0.0)
    assert np.array_equal(out.min(axis=0), points.min(axis=0))


def test_of_equally_short_tours_by_one_objective_the_best_is_shortest_by_the_others():
    # by the second 3: (4, 3, 8) and (5, 3, 6), of which the third decides; by the third 2: the first decides
    points = np.array([[1.0, 9, 2], [1, 8, 7], [4, 3, 8], [5, 3, 6], [4, 7, 2]])
    archive = archive_of(3)
    filled(archive, [points])
    assert len(archive.front) == 5
    assert archive.lengths[archive.best()].tolist() == [[1, 8, 7], [5, 3, 6], [1, 9, 2]]


def test_lengths_are_met_once_however_often_the_set_has_grown():
    rng = np.random.default_rng(3)
    rows = np.unique(rng.integers(0, 9, (200, 2)), axis=0).astype(float)
    seen = Seen(np.ones(2), np.zeros(4, np.uint64))
    sizes = []
    for row in rows:
        assert seen.add(row[None]).tolist() == [True]
        sizes.append(len(seen.slots))
    assert sizes[:9] == [4, 4, 8, 8, 16, 16, 16, 16, 32]  # half of them are free
    assert np.count_nonzero(seen.slots) == seen._count == len(rows)
    assert not seen.add(rows[rng.permutation(len(rows))]).any()
    assert not seen.add(rows + rng.uniform(-0.49, 0.49, rows.shape)).any()  # less than half a unit away
    assert seen.add(rows[:2, ::-1] + [[0.51, 10.0], [20.0, 0.51]]).all()


def test_how_many_dominate_what_stays_is_right_after_every_batch():
    random, archive = np.random.default_rng(0), archive_of(2)
    for batch in range(60):  # each a little shorter, with few or no members of the front
        lengths = random.integers(0, 300, (int(random.integers(0, 20)), 2)) + 3.0 * (60 - batch)
        rows = archive.add(np.zeros((len(lengths), 5), int), lengths)
        known, front = archive.lengths[: archive.count], archive.points
        dominators = (front[None] <= known[:, None]).all(axis=2).sum(axis=1)
        dominators[archive.front] = 0
        assert archive.rank[: archive.count].tolist() == np.minimum(dominators, MOST_RANK + 1).tolist()
        assert set(rows) <= set(archive.front)
    assert len(archive.front) > 3


@pytest.mark.parametrize("k", [3, 5])
def test_what_covers_a_tour_is_as_long_as_a_member_and_no_longer_than_the_tour(k):
    points = np.random.default_rng(k).random((3000, k))
    tree, kept = make_tree(len(points), 9000, k), np.zeros(len(points), bool)
    assert update(tree, points, 0, len(points), np.ones(len(points), bool), kept) == len(points)
    members, cover, covered = points[kept], np.empty(k), 0
    for lengths in np.random.default_rng(9).random((300, k)) ** 2:
        cover[:] = np.nan
        found = tree_covers(tree, points, lengths, tree.stack, cover)
        assert found == (members <= lengths).all(axis=1).any()
        if found:
            covered += 1
            assert (cover <= lengths).all()
            assert (members <= cover).all(axis=1).any()
    assert 30 < covered < 270


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=30))
@settings(deadline=None)
def test_of_two_objectives_the_front_and_its_area_are_those_of_moocore(pairs):
    points = np.array(pairs, float)
    rows = nondominated(points)
    assert np.array_equal(points[rows], front_of(points))
    assert all(row == np.flatnonzero((points == points[row]).all(axis=1))[0] for row in rows)
    assert hypervolume(points[rows], np.array([9.0, 9.5])) == moocore.hypervolume(points, ref=[9.0, 9.5])


@pytest.mark.parametrize(("n", "kind"), [(65_536, np.uint16), (65_537, np.int32)])
def test_tours_have_16_bits_a_city_as_long_as_all_cities_fit(n, kind, monkeypatch):
    monkeypatch.setattr("pymoo_gpuaco.pareto.archive._FIRST_CAPACITY", 2)
    archive = archive_of(2, n=n)
    archive.add(np.arange(n)[None], np.ones((1, 2)))
    assert archive.tours.dtype == kind
    assert np.array_equal(archive.members()[0], [np.arange(n)])


def test_an_archive_is_restored_from_its_state():
    archive = archive_of(2)
    archive.add(
        np.array([np.roll(np.arange(5), i) for i in range(4)]), np.array([[1.0, 9], [5, 5], [6, 6], [9, 1]])
    )
    state = archive_state(archive)
    again = restored_archive(state, archive_of(2), 3)
    assert again.lengths[again.front].tolist() == [[1, 9], [5, 5], [9, 1]]
    assert again.rank[:4].tolist() == [0, 0, 1, 0]
    assert (again.added, again.dropped, again.joined.tolist()) == (3, 0, [])
    assert not again.seen.add(archive.lengths[:4]).any()


@pytest.mark.parametrize(
    ("slots", "message"),
    [
        ([7, 0], None),
        ([7, 8, 0, 0], None),
        ([0], "power of two"),
        ([7, 0, 0], "power of two"),
        ([7, 8, 9, 0], "half empty"),
    ],
)
def test_a_stored_set_of_lengths_is_a_power_of_two_and_half_empty(slots, message):
    state = archive_state(archive_of(2)) | {"archive_seen": np.array(slots, np.uint64)}
    if message is None:
        assert restored_archive(state, archive_of(2), 3).seen._count == np.count_nonzero(slots)
    else:
        with pytest.raises(ValueError, match=message):
            restored_archive(state, archive_of(2), 3)


@pytest.mark.parametrize("numbers", [[2**62 + 1, 0], [0, -1], [0], [0, 0, 0]])
def test_stored_numbers_of_members_leave_room_to_count_on(numbers):
    state = archive_state(archive_of(2))
    most = restored_archive(state | {"archive_numbers": np.array([2**62, 0])}, archive_of(2), 3)
    assert (most.added, most.dropped) == (2**62, 0)
    with pytest.raises(ValueError, match=r"state\['archive_numbers'\]"):
        restored_archive(state | {"archive_numbers": np.array(numbers)}, archive_of(2), 3)
