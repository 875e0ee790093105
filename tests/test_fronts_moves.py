"""Chains of exchanges in both directions, paths along a front of two objectives, and costs of edges."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from pymoo.optimize import minimize

from pymoo_gpuaco import GPU2PPLS, TSP, MultiObjectiveTSP, solve
from pymoo_gpuaco.backends import BackendUnavailable
from pymoo_gpuaco.backends.cpu.pareto.engine import CpuFronts
from pymoo_gpuaco.pareto import instance as module
from pymoo_gpuaco.pareto import search
from pymoo_gpuaco.pareto.archive import Archive
from pymoo_gpuaco.pareto.device import Front, FrontDevice, Members
from pymoo_gpuaco.pareto.instance import (
    FrontInstance,
    add_up_table,
    all_tours,
    cost,
    edges_of,
    make_costs,
    union_of,
)
from pymoo_gpuaco.pareto.nd_tree import make_tree
from pymoo_gpuaco.pareto.search import EXPLORE, KICKS, PAIRS, OperatorSelection
from pymoo_gpuaco.pareto.weights import corner_pairs, single_objective_weights, spread
from tests.engine_cases import BACKENDS
from tests.front_cases import exact_front
from tests.instances import front_instance
from tests.tour_cases import random_tours


def instance_of(n: int, k: int = 2, metric: str = "EUC_2D", near: int = 0) -> FrontInstance:
    places = np.random.default_rng(n).integers(0, 1000, (k, n, 2))
    return front_instance(MultiObjectiveTSP([TSP(part, metric) for part in places]), near or n - 1)


def device_of(n: int, k: int = 2, kind: str = "cpu") -> FrontDevice:
    if kind == "cpu":
        return CpuFronts(instance_of(n, k))
    from pymoo_gpuaco.backends.cuda.pareto import CudaFronts

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
def test_every_tour_that_several_exchanges_in_a_row_lead_to_is_found(exchanges, kind):
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


def archive_of(points: list[list[float]]) -> Archive:
    archive = Archive(5, 2, np.ones(2), 100)
    tours = np.stack([np.random.default_rng(i).permutation(5) for i in range(len(points))])
    archive.add(tours.astype(np.int32), np.array(points, np.float64))
    return archive


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


def test_weights_are_spread_evenly_and_begin_with_the_best_tours():
    archive = archive_of([[0, 8], [1, 4], [4, 1], [8, 0]])
    sums = spread(archive, 1, 3)  # 1/2, 1/4, 3/4 of the first; both objectives extend over 8
    assert sums.weights == pytest.approx(np.array([[0.5, 0.5], [0.25, 0.75], [0.75, 0.25]]))
    # under (1/2, 1/2) the sums are 4, 2.5, 2.5, 4; under (1/4, 3/4) 6, 3.25, 1.75, 2; under (3/4, 1/4) the other way
    assert archive.lengths[sums.rows].tolist() == [[1, 4], [4, 1], [1, 4]]
    assert spread(archive, 2, 2).weights == pytest.approx(sums.weights[1:])


N = 7
NEAR = np.array([[1, 2], [0, 3], [4, 2], [3, 3], [5, 6], [6, 0], [2, 1]], np.int32)  # 2 and 3 have fewer


def parts_of(*, matrix: bool) -> tuple[TSP, ...]:
    rng = np.random.default_rng(5)
    places = rng.integers(0, 90, (N, 2))
    other = rng.integers(1, 99, (N, N)) if matrix else rng.random((N, 3))
    problem = MultiObjectiveTSP([TSP(places, "GEO"), TSP(matrix=other) if matrix else TSP(other)])
    return problem.parts


@pytest.mark.parametrize(("most", "matrix", "tabled"), [(7, False, True), (6, False, False), (6, True, True)])
def test_edges_cost_what_the_problems_say(most, matrix, tabled, monkeypatch):
    monkeypatch.setattr(module, "MOST_FOR_TABLE", most)
    parts = parts_of(matrix=matrix)
    instances = [part.instance for part in parts]
    costs = make_costs(instances, NEAR)
    assert costs.table.shape == ((N, N, 2) if tabled else (0, 0, 2))
    assert costs.coords.shape == ((2, 0, 3) if tabled else (2, N, 3))
    assert costs.directed == matrix
    for q, part in enumerate(parts):
        for i, j in np.ndindex(N, N):
            assert cost(costs, q, i, j) == (part.D[i, j] if i != j else 0.0)
        real = np.arange(N)[:, None] != NEAR
        assert np.array_equal(costs.near[..., q][real], part.D[np.arange(N)[:, None], NEAR][real])
        assert np.isinf(costs.near[..., q][~real]).all()
    again = make_costs(instances, NEAR[:, :1], costs.table)
    assert again.table is costs.table
    assert again.near.shape == (N, 1, 2)


@pytest.mark.parametrize("n", [3, 4, 511, 512, 513, 1025])
@pytest.mark.parametrize("symmetric", [False, True])
def test_tours_are_added_up_as_the_problem_does_it_to_the_last_bit(n, symmetric):
    """512 edges at a time, from city 0 towards its smaller neighbour."""
    rng = np.random.default_rng(n)
    matrices = rng.random((2, n, n))
    if symmetric:
        matrices = np.triu(matrices, 1) + np.triu(matrices, 1).swapaxes(1, 2)
    problem = MultiObjectiveTSP([TSP(matrix=matrix) for matrix in matrices])
    tours = random_tours(n, 4, n)
    tours = np.concatenate([tours, tours[:, ::-1], np.roll(tours, 1, axis=1)])
    lengths = np.empty((len(tours), 2))
    add_up_table(np.ascontiguousarray(problem.D.transpose(1, 2, 0)), tours, lengths)
    assert np.array_equal(lengths, problem.tour_lengths(tours))
    assert np.array_equal(lengths[:4], lengths[8:])
    assert np.array_equal(lengths[:4], lengths[4:8]) == symmetric


def directed_problem(n: int, k: int = 2, seed: int = 0, symmetric: int = 0) -> MultiObjectiveTSP:
    """Random whole matrices, the first ``symmetric`` of them symmetric."""
    matrices = np.random.default_rng(seed).integers(1, 1000, (k, n, n)).astype(float)
    matrices[:symmetric] += matrices[:symmetric].transpose(0, 2, 1)
    matrices[:, np.arange(n), np.arange(n)] = 0.0
    return MultiObjectiveTSP(list(matrices))


def directed_instance(n: int, k: int = 2, near: int = 0) -> FrontInstance:
    return front_instance(directed_problem(n, k), near or n - 1)


def arcs(tour: np.ndarray) -> frozenset[tuple[int, int]]:
    return frozenset(zip(tour.tolist(), np.roll(tour, -1).tolist(), strict=True))


def permutations_of(n: int) -> np.ndarray:
    return np.array([(0, *rest) for rest in permutations(range(1, n))])


def no_front(k: int = 2) -> Front:
    return Front(np.empty((0, k)), make_tree(0, 1, k), 0, np.zeros(2, np.uint64))


@pytest.mark.parametrize("exchanges", [2, 3, 4, 5])
def test_every_tour_that_several_arcs_make_is_found_and_no_other(exchanges):
    # what replaces three or five arcs is one chain; of four it is a double bridge, which is two chains
    n = 7
    device = CpuFronts(directed_instance(n))
    tour = np.random.default_rng(1).permutation(n)
    given = members(device, tour[None], exchanges, 1e9)
    children = device.explore(given, no_front())
    tours = device.follow(given, children)
    assert np.array_equal(device.instance.lengths(tours), children.lengths)
    changed = {r: [row for row in permutations_of(n) if n - len(arcs(row) & arcs(tour)) == r] for r in (3, 5)}
    expected = [row for r, rows in changed.items() if r <= exchanges for row in rows]
    assert {arcs(row) for row in tours} == {arcs(row) for row in expected}
    assert len(tours) == len(expected) == {2: 0, 3: 35, 4: 35, 5: 35 + len(changed[5])}[exchanges]


@pytest.mark.parametrize(("k", "symmetric"), [(2, 0), (2, 1), (3, 0)])
def test_the_search_finds_the_exact_front_without_looking_at_every_tour(k, symmetric, monkeypatch):
    monkeypatch.setattr(search, "MOST_FOR_ALL_TOURS", 3)
    problem = directed_problem(7, k, seed=2, symmetric=symmetric)
    result = minimize(problem, GPU2PPLS(backend="cpu"), ("n_gen", 40), seed=1)
    assert np.array_equal(problem.tour_lengths(result.X), result.F)
    assert np.array_equal(np.unique(result.F, axis=0), exact_front(problem, True))


def test_of_few_cities_the_front_is_exact_and_solutions_keep_their_direction():
    problem = directed_problem(6)
    front = solve(problem)
    assert np.array_equal(front.lengths, exact_front(problem, True))
    assert np.array_equal(problem.tour_lengths(front.tours), front.lengths)
    assert (front.tours[:, 0] == 0).all()
    assert len(all_tours(6, True)) == 120
    assert len(all_tours(6, False)) == 60


def test_kicks_keep_lengths_and_do_not_depend_on_threads(monkeypatch):
    tours = np.stack([np.random.default_rng(i).permutation(40) for i in range(4)]).astype(np.int32)
    weights = np.repeat(single_objective_weights(2), 2, axis=0)
    found = []
    for threads in ("1", "3"):
        monkeypatch.setenv("PYMOO_GPUACO_THREADS", threads)
        device = CpuFronts(directed_instance(40, near=8))
        found.append(device.descend(tours, weights, 30, 5))
    assert (np.sort(found[0], axis=1) == np.arange(40)).all()
    assert np.array_equal(*found)
    before, after = device.instance.lengths(tours), device.instance.lengths(found[0])
    assert (after[:2, 0] < 0.4 * before[:2, 0]).all()
    assert (after[2:, 1] < 0.4 * before[2:, 1]).all()


def test_cuda_says_that_it_knows_no_asymmetric_fronts():
    from pymoo_gpuaco.backends.cuda.pareto import CudaFronts

    with pytest.raises(BackendUnavailable, match="need symmetric distances"):
        CudaFronts(directed_instance(12))


@pytest.mark.parametrize(("credit", "turn"), [(0.1, 7), (0.0, None)])
def test_what_paid_most_goes_on_and_what_has_waited_gets_its_turn(credit, turn):
    pays, able = OperatorSelection(), np.ones(3, bool)
    one, two = np.array([[0.0, 10], [10, 0]]), np.array([[0.0, 10], [5, 5], [10, 0]])
    begun = []
    for _ in range(3):
        begun.append(pays.choose(able))
        pays.note(begun[-1], one, two if begun[-1] == EXPLORE else one)
    assert begun == [EXPLORE, KICKS, PAIRS]
    assert pays.gains.tolist() == [0.25, 0, 0]  # 5 x 5 of a box of 10 x 10
    assert pays.choose(able) == EXPLORE
    assert pays.choose(np.array([False, True, True])) == KICKS
    pays.gains[KICKS] = credit
    turns = []
    for _ in range(20):
        turns.append(pays.choose(able))
        pays.note(turns[-1], one, two if turns[-1] == EXPLORE else one)
    # pairs have had their turn since kicks had theirs; what has paid nothing waits for longer
    assert (turns.index(KICKS) if KICKS in turns else None) == turn
    assert turns.index(PAIRS) == 8
