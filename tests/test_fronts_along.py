"""Along a front of two objectives: which sides, tours on the way, weights all over it, and what pays."""

from __future__ import annotations

import numpy as np
import pytest

from pymoo_gpuaco.pareto.archive import Archive
from pymoo_gpuaco.pareto.device import MOST_ON_THE_WAY
from pymoo_gpuaco.pareto.search import EXPLORE, KICKS, PAIRS, PATHS, OperatorSelection
from pymoo_gpuaco.pareto.weights import corner_pairs, side_paths, single_objective_weights, spread
from tests.engine_cases import BACKENDS
from tests.test_fronts_chains import device_of


def archive_of(points: list[list[float]]) -> Archive:
    archive = Archive(5, 2, np.ones(2), 100)
    tours = np.stack([np.random.default_rng(i).permutation(5) for i in range(len(points))])
    archive.add(tours.astype(np.int32), np.array(points, np.float64))
    return archive


def test_the_longest_side_is_gone_along_from_both_ends_under_its_weights_and_those_beyond():
    # (4, 4) is no corner: the sides are (0, 8)-(1, 4), (1, 4)-(4, 1) and (4, 1)-(8, 0)
    archive = archive_of([[0, 8], [1, 4], [3.5, 3.5], [4, 1], [8, 0]])
    paths = side_paths(archive, set(), 1)
    assert archive.lengths[paths.rows].tolist() == [[1, 4], [4, 1]]
    # steps of (3, -3) are equal under (1/2, 1/2), of (4, -1) under (1/5, 4/5), of (1, -4) under (4/5, 1/5)
    assert paths.first == pytest.approx(np.full((2, 2), 0.5))
    assert paths.last == pytest.approx(np.array([[0.2, 0.8], [0.8, 0.2]]))
    others = side_paths(archive, set(paths.keys), 9)
    assert [archive.lengths[row].tolist() for row in others.rows] in (
        [[0, 8], [1, 4], [4, 1], [8, 0]],
        [[4, 1], [8, 0], [0, 8], [1, 4]],
    )
    ends = single_objective_weights(2)
    assert {tuple(row) for row in others.last} >= {tuple(ends[0]), tuple(ends[1])}
    assert not len(side_paths(archive, set(paths.keys + others.keys), 9).rows)


def test_corners_up_to_four_steps_apart_are_pairs_those_next_to_each_other_first():
    # a parabola, all of it corners, and (4, 30), which is none
    points = [[i, (6 - i) ** 2] for i in range(7)]
    archive = archive_of([*points, [4, 30]])
    pairs = corner_pairs(archive, set(), 99)
    found = list(zip(archive.lengths[pairs.rows, 0], archive.lengths[pairs.others, 0], strict=True))
    assert found == [(i, i + step) for step in range(1, 5) for i in range(7 - step)]
    lengths, others = archive.lengths[pairs.rows], archive.lengths[pairs.others]
    assert (pairs.weights * lengths).sum(axis=1) == pytest.approx((pairs.weights * others).sum(axis=1))
    assert pairs.weights.sum(axis=1) == pytest.approx(1.0)
    some = corner_pairs(archive, set(), 4)
    left = corner_pairs(archive, set(some.keys), 99)
    assert some.keys + left.keys == pairs.keys
    # a side that was gone along is not a pair that was assembled
    assert corner_pairs(archive, set(side_paths(archive, set(), 99).keys), 99).keys == pairs.keys


@pytest.mark.parametrize("kind", BACKENDS)
def test_tours_on_the_way_lead_from_one_end_to_the_other_and_only_what_is_new_is_left(kind):
    device = device_of(20, kind=kind)
    tours = device.descend(
        np.stack([np.arange(20)] * 2).astype(np.int32), single_objective_weights(2), 100, 1
    )
    ends = device.instance.lengths(tours)
    nothing = np.empty((0, 2))
    left = device.slide(tours[:1], single_objective_weights(2)[:1], single_objective_weights(2)[1:], nothing)
    lengths = device.instance.lengths(left)
    assert (np.sort(left, axis=1) == np.arange(20)).all()
    assert 10 < len(left) < MOST_ON_THE_WAY
    # from a tour that is short by the first to ones that are shorter by the second, and no jump between
    assert lengths[-1, 1] < ends[0, 1] - 0.5 * (ends[0, 1] - ends[1, 1])
    assert (np.diff(lengths[:, 1]) < 0).mean() > 0.5
    known = lengths[len(left) // 2][None]
    fewer = device.instance.lengths(
        device.slide(tours[:1], single_objective_weights(2)[:1], single_objective_weights(2)[1:], known)
    )
    assert {tuple(row) for row in fewer} == {tuple(row) for row in lengths if not (row >= known).all()}


def test_weights_are_spread_evenly_and_begin_with_the_best_tours():
    archive = archive_of([[0, 8], [1, 4], [4, 1], [8, 0]])
    sums = spread(archive, 1, 3)  # 1/2, 1/4, 3/4 of the first; both objectives extend over 8
    assert sums.weights == pytest.approx(np.array([[0.5, 0.5], [0.25, 0.75], [0.75, 0.25]]))
    # under (1/2, 1/2) the sums are 4, 2.5, 2.5, 4; under (1/4, 3/4) 6, 3.25, 1.75, 2; under (3/4, 1/4) the other way
    assert archive.lengths[sums.rows].tolist() == [[1, 4], [4, 1], [1, 4]]
    assert spread(archive, 2, 2).weights == pytest.approx(sums.weights[1:])


def test_what_paid_most_goes_on_and_what_has_waited_gets_its_turn():
    pays, able = OperatorSelection(), np.ones(4, bool)
    one, two = np.array([[0.0, 10], [10, 0]]), np.array([[0.0, 10], [5, 5], [10, 0]])
    begun = []
    for _ in range(4):
        begun.append(pays.choose(able))
        pays.note(begun[-1], one, two if begun[-1] == PATHS else one)
    assert begun == [PATHS, EXPLORE, KICKS, PAIRS]
    assert pays.gains.tolist() == [0, 0.25, 0, 0]  # 5 x 5 of a box of 10 x 10
    assert pays.choose(able) == PATHS
    assert pays.choose(np.array([True, False, True, True])) == EXPLORE
    pays.gains[KICKS] = 0.1
    turns = []
    for _ in range(20):
        turns.append(pays.choose(able))
        pays.note(turns[-1], one, two if turns[-1] == PATHS else one)
    assert turns.index(KICKS) == 7  # pairs have had their turn since its own
    assert turns.count(EXPLORE) == 0  # what has paid nothing waits for longer
