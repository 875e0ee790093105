"""Chains of exchanges: which close, what tours they leave, and that all there are get explored."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from pymoo_gpuaco import TSP, MultiObjectiveTSP
from pymoo_gpuaco.backends.cpu.pareto.engine import CpuFronts
from pymoo_gpuaco.pareto.device import Front, FrontDevice, Members
from pymoo_gpuaco.pareto.instance import FrontInstance, edges_of, front_instance, union_of
from pymoo_gpuaco.pareto.nd_tree import make_tree
from pymoo_gpuaco.pareto.weights import single_objective_weights
from tests.engine_cases import BACKENDS


def instance_of(n: int, k: int = 2, metric: str = "EUC_2D", near: int = 0) -> FrontInstance:
    places = np.random.default_rng(n).integers(0, 1000, (k, n, 2))
    return front_instance(MultiObjectiveTSP([TSP(part, metric) for part in places]), near or n - 1)


def device_of(n: int, k: int = 2, kind: str = "cpu") -> FrontDevice:
    if kind == "cpu":
        return CpuFronts(instance_of(n, k))
    from pymoo_gpuaco.backends.cuda.pareto.engine import CudaFronts

    return CudaFronts(instance_of(n, k))


def edges(tour: np.ndarray) -> frozenset[tuple[int, int]]:
    return frozenset(
        (min(a, b), max(a, b)) for a, b in zip(tour.tolist(), np.roll(tour, -1).tolist(), strict=True)
    )


def members(device: FrontDevice, tours: np.ndarray, exchanges: int, slack: float) -> Members:
    m, k = len(tours), device.instance.k
    return Members(
        tours.astype(np.int32),
        device.instance.lengths(tours),
        np.full((m, k), 1.0 / k),
        np.full(m, slack),
        np.full(m, exchanges),
        np.zeros(m, np.int64),
    )


@pytest.mark.parametrize("kind", BACKENDS)
@pytest.mark.parametrize("exchanges", [2, 3, 4])
def test_every_tour_that_so_many_exchanges_in_a_row_lead_to_is_found(exchanges, kind):
    n = 8
    device = device_of(n, kind=kind)
    tour = np.random.default_rng(1).permutation(n)
    own = edges(tour)
    front = Front(np.empty((0, 2)), make_tree(0, 1, 2), 0, np.zeros(2, np.uint64))
    given = members(device, tour[None], exchanges, 1e9)
    children = device.explore(given, front)
    found = device.follow(given, children)
    assert np.array_equal(device.instance.lengths(found), children.lengths)
    every = np.array([(0, *rest) for rest in permutations(range(1, n)) if rest[0] < rest[-1]])
    near = [row for row in every if 0 < n - len(edges(row) & own) <= exchanges]
    lengths = {tuple(row) for row in device.instance.lengths(np.array(near))}
    got = {tuple(row) for row in children.lengths}
    assert got <= lengths
    # of two or three edges all are chains; of four those are not that join two pairs apart, a double bridge
    assert len(got) == len(lengths) if exchanges < 4 else len(got) > 0.8 * len(lengths)


@pytest.mark.parametrize("kind", BACKENDS)
def test_what_more_members_dominate_and_what_was_met_is_passed_over(kind):
    device = device_of(10, kind=kind)
    tour = np.arange(10)[None]
    given = members(device, tour, 3, 1e9)
    nothing = Front(np.empty((0, 2)), make_tree(0, 1, 2), 0, np.zeros(2, np.uint64))
    everything = device.explore(given, nothing).lengths
    best = np.array([[everything[:, 0].min(), everything[:, 1].max()]])
    left = device.explore(given, nothing._replace(points=best)).lengths
    expected = everything[~(everything >= best).all(axis=1)]
    assert {tuple(row) for row in left} == {tuple(row) for row in expected}
    assert len(device.explore(given, nothing._replace(points=best, rank=1)).lengths) == len(everything)


@pytest.mark.parametrize("k", [2, 3])
def test_work_is_spread_without_changing_what_is_found(monkeypatch, k):
    tours = np.stack([np.random.default_rng(i).permutation(40) for i in range(6)])
    found = []
    for threads in ("1", "3"):
        monkeypatch.setenv("PYMOO_GPUACO_THREADS", threads)
        device = device_of(40, k)
        shorter = device.descend(
            tours.astype(np.int32), np.repeat(single_objective_weights(k), 6 // k, axis=0), 30, 5
        )
        given = members(device, shorter, 3, 300.0)
        front = Front(np.empty((0, k)), make_tree(0, 1, k), 0, np.zeros(2, np.uint64))
        children = device.explore(given, front)
        found.append((shorter, children.owner, children.lengths, device.follow(given, children)))
    for one, three in zip(*found, strict=True):
        assert np.array_equal(one, three)


@pytest.mark.parametrize("kind", BACKENDS)
def test_kicks_shorten_tours_under_their_own_weights(kind):
    device = device_of(60, kind=kind)
    tours = np.stack([np.random.default_rng(0).permutation(60)] * 2).astype(np.int32)
    lengths = device.instance.lengths(device.descend(tours, single_objective_weights(2), 100, 1))
    assert (np.sort(device.descend(tours, single_objective_weights(2), 10, 1), axis=1) == np.arange(60)).all()
    assert lengths[0, 0] < 0.5 * lengths[1, 0]
    assert lengths[1, 1] < 0.5 * lengths[0, 1]
    assert np.array_equal(tours[0], np.random.default_rng(0).permutation(60))


@pytest.mark.parametrize("at_once", [1, 1000])
def test_candidates_are_those_of_all_lists_and_the_edges_of_tours(monkeypatch, at_once):
    monkeypatch.setattr("pymoo_gpuaco.pareto.instance._AT_ONCE", at_once)
    first, second = np.array([[1], [0], [1]], np.int32), np.array([[1], [2], [0]], np.int32)
    assert union_of([first, second]).tolist() == [
        [1, 0],
        [0, 2],
        [1, 0],
    ]  # the first city's row ends with itself
    # 0-1-2-3-4 has 01 12 23 34 40; 0-2-1-3-4 has 02 21 13 34 40: 0 is beside 4 twice
    tours = np.array([[0, 1, 2, 3, 4], [0, 2, 1, 3, 4]])
    assert edges_of(tours, False).tolist() == [[4, 1, 2], [2, 0, 3], [1, 0, 3], [4, 1, 2], [0, 3, 4]]
    # behind 0 come 1 and 2, behind 1 come 2 and 3, behind 3 comes 4 twice; rows end with the city itself
    assert edges_of(tours, True).tolist() == [[1, 2], [2, 3], [1, 3], [4, 3], [0, 4]]
