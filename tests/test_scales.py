"""No unit, no mixture of lengths and no rounding keeps a search from its end or from its optimum."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pymoo_gpuaco.backends.cpu.windows.window import load, make_units, make_window
from pymoo_gpuaco.backends.cuda.instance import point_unit, points_of
from pymoo_gpuaco.candidates.lists import with_lists
from pymoo_gpuaco.colony.parameters import LocalSearch
from pymoo_gpuaco.memetic.parameters import MemeticParameters
from pymoo_gpuaco.problems import TSP, OpenPath
from pymoo_gpuaco.problems.symmetric import form_to_search
from tests.engine_cases import BACKENDS, COLONIES, climbers, colony, memetic
from tests.instances import listed_instance

on_both_engines = pytest.mark.parametrize("backend", BACKENDS)
PAIRS = {
    "cpu": 20_000,
    "cuda": 1 << 26,
}  # of a call: some climbs of a dozen cities; a scan costs more on the device

B = 1e18
FORBIDDEN = TSP(matrix=[[0, 0, B, B], [0, 0, 4, 4], [B, 4, 0, 4], [B, 4, 4, 0]])


def mixed_matrix(n, seed, symmetric):
    """Small weights, and a third of the edges forbidden by huge ones."""
    rng = np.random.default_rng(seed)
    matrix = rng.choice([0.0, 1.0, 4.0, 1e16, 1e18], (n, n), p=[0.1, 0.2, 0.4, 0.2, 0.1])
    if symmetric:
        matrix = np.triu(matrix, 1)
        matrix = matrix + matrix.T
    np.fill_diagonal(matrix, 0.0)
    return TSP(matrix=matrix)


def two_groups(seed):
    """Half the cities 10^12.5 units from the other half."""
    points = np.random.default_rng(seed).random((20, 2))
    points[10:] += 10**12.5
    return TSP(points, metric="EXACT")


def test_a_search_among_forbidden_edges_ends():
    engine = colony(FORBIDDEN, n_ants=2, local_search=LocalSearch())
    for key in range(20):
        engine.construct(key)
    # every tour uses exactly one of the edges 0-2 and 0-3, or both
    assert engine.construct(20).min() == FORBIDDEN.tour_length([0, 1, 2, 3])


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("symmetric", [True, False])
def test_searches_over_mixed_weights_end_with_exact_lengths(seed, symmetric):
    problem = mixed_matrix(12, seed, symmetric)
    engine = colony(problem, local_search=LocalSearch(kicks=2.0))
    lengths = engine.construct(seed)
    assert np.array_equal(lengths, problem.tour_lengths(engine.tours(np.arange(6))))


@on_both_engines
@pytest.mark.parametrize("seed", range(2))
def test_climbs_over_far_groups_and_mixed_weights_end(seed, backend):
    for problem in (two_groups(seed), mixed_matrix(20, seed, True)):
        engine = climbers(problem, backend)
        assert engine.climb(seed, pairs=20 * PAIRS[backend]) > 0  # climbs that came to an end


@on_both_engines
def test_a_climb_passes_over_moves_that_only_rounding_makes(backend):
    # with two edges of 1e15 in the tour, moves among the short ones must still be found: to the optimum of ten
    # cities on a line that two forbidden edges join to an eleventh
    n = 11
    matrix = np.abs(np.subtract.outer(np.arange(n), np.arange(n))).astype(float)
    matrix[10, :10] = matrix[:10, 10] = 1e15
    engine = climbers(TSP(matrix=matrix), backend, n_climbers=2)
    shortest = np.inf
    for _ in range(10):
        engine.climb(3, pairs=PAIRS[backend])
        tour, _ = engine.best()
        line = np.delete(np.roll(tour, -int(np.argmax(tour == 10))), 0)
        shortest = min(shortest, np.abs(np.diff(line)).sum())
    assert shortest == 9


# ---- the unit ---------------------------------------------------------------------------------------------------


def scaled(points, factor):
    return TSP(points * factor, metric="EXACT")


SCALED_COLONIES = {name: COLONIES[name] for name in ("kicks", "2opt", "all cities", "acs sync", "hybrid")}


@pytest.mark.parametrize("parameters", SCALED_COLONIES.values(), ids=list(SCALED_COLONIES))
@settings(max_examples=25, deadline=None)
@given(power=st.integers(-40, 40), seed=st.integers(0, 1000), beta=st.sampled_from([1.0, 2.0, 2.7, 5.0]))
def test_a_unit_that_is_a_power_of_two_changes_no_bit(parameters, power, seed, beta):
    points = np.random.default_rng(seed).random((30, 2))
    both = []
    for factor in (1.0, 2.0**power):
        engine = colony(scaled(points, factor), **{**parameters, "beta": beta})
        engine.reset_trails(1.0)
        lengths = engine.construct(seed)
        both.append((engine.tours(np.arange(6)), lengths / factor))
    assert np.array_equal(both[0][0], both[1][0])
    assert np.array_equal(both[0][1], both[1][1])


@pytest.mark.parametrize("power", [-100, -99, -31, -30, 0, 40])
def test_points_of_a_device_are_numbers_that_single_precision_can_square(power):
    points = np.random.default_rng(1).random((300, 2))
    points[0], points[1] = 0.0, 0.99
    instance = listed_instance(scaled(points, 2.0**power), 8)
    unit, held = point_unit(instance), points_of(instance).astype(np.float32)
    assert unit == (2.0**power if power <= -30 else 1.0)
    assert unit == 1.0 or 0.9 < held.max() <= 1.0
    steps = held[instance.neighbours[:, 0], :2] - held[:, :2]
    lengths = np.float32(unit) * np.sqrt((steps * steps).sum(axis=1))
    np.testing.assert_allclose(lengths, instance.neighbour_distances[:, 0], rtol=1e-4)


def test_only_exact_distances_have_points_of_another_unit():
    coords = np.random.default_rng(1).random((30, 2)) * 2.0**-40
    assert point_unit(listed_instance(TSP(coords, metric="EUC_2D"), 8)) == 1.0
    assert point_unit(listed_instance(TSP(np.zeros((30, 2)), metric="EXACT"), 8)) == 1.0


@pytest.mark.gpu
def test_the_memetic_search_makes_the_same_tours_of_cities_within_one_and_within_a_ten_to_the_thirtieth():
    points = np.random.default_rng(2).random((60, 2))
    points[0], points[1] = 0.0, 0.99
    both = []
    for factor in (1.0, 2.0**-100):
        engine = memetic(scaled(points, factor), "cuda")
        for key in range(2):
            engine.search(key)
        tours, lengths = engine.best_tours()
        both.append((tours, lengths / factor))
    assert np.array_equal(both[0][0], both[1][0])
    assert np.array_equal(both[0][1], both[1][1])


@on_both_engines
@settings(max_examples=25, deadline=None)
@given(power=st.integers(-40, 40), seed=st.integers(0, 1000))
def test_climbers_make_the_same_moves_in_any_power_of_two(backend, power, seed):
    points = np.random.default_rng(seed).random((30, 2))
    both = []
    for factor in (1.0, 2.0**power):
        engine = climbers(scaled(points, factor), backend)
        engine.climb(seed, pairs=PAIRS[backend] // 5)
        tour, length = engine.best()
        both.append((tour, length / factor))
    assert np.array_equal(both[0][0], both[1][0])
    assert both[0][1] == both[1][1]


@on_both_engines
@pytest.mark.parametrize("unit", [2.0**-40, 1.0, 2.0**40])
@pytest.mark.parametrize(("gain", "counts"), [(2.0**-30, True), (2.0**-45, False)])
def test_a_climber_makes_a_move_by_its_gain_relative_to_the_lengths(gain, counts, unit, backend):
    # A tour of four cities goes round two of the pairs of edges 01+23, 02+13, 03+12, here of lengths 1, 1 + g, 1 + 2 g
    # each. 0 1 2 3 has the first and the last; the one move that shortens it takes out 03+12 for 02+13 and gains 2 g
    # of 2 + 4 g: more than 1e-12 of it for g = 2**-30, less for 2**-45 = 2.8e-14.
    matrix = np.zeros((4, 4))
    for length, edges in ((1.0, "01 23"), (1.0 + gain, "02 13"), (1.0 + 2 * gain, "03 12")):
        for a, b in edges.split():
            matrix[int(a), int(b)] = matrix[int(b), int(a)] = length * unit
    engine = climbers(TSP(matrix=matrix), backend, n_climbers=1)
    engine.start_from([[0, 1, 2, 3]])
    # one scan; on the CPU a call of so few pairs looks at one of its two rows
    ended = sum(engine.climb(1, pairs=1) for _ in range(2 if backend == "cpu" else 1))
    assert ended == (0 if counts else 1)
    assert not counts or engine.best()[1] == (4.0 + 2.0 * gain) * unit


@pytest.mark.parametrize("exponent", [-12, -3, 3, 12])
def test_tours_are_as_good_in_every_unit(exponent):
    points = np.random.default_rng(4).random((200, 2))
    factor = 10.0**exponent
    here = colony(scaled(points, 1.0), local_search=LocalSearch(kicks=1.0)).construct(1).min()
    there = colony(scaled(points, factor), local_search=LocalSearch(kicks=1.0)).construct(1).min()
    assert there / factor == pytest.approx(here, rel=0.02)


# ---- rounded and exact distances at every scale


def tour_at(scale, metric, backend, n, rounds, problem=TSP):
    """The tour of a memetic search of random cities in a square of side ``scale``, measured in a square of side 1."""
    points = np.random.default_rng(7).random((n, 2))
    engine = memetic(problem(points * scale, metric=metric), backend, 1)
    for number in range(rounds):
        engine.expect(number / rounds)
        engine.search(number)
    return problem(points).tour_length(engine.best_tours()[0][0])


# To whole units, distances of a square of side 1e9 and more are the same numbers rounded or not.
@pytest.mark.parametrize("problem", [TSP, OpenPath])
def test_annealing_makes_the_same_tour_at_every_scale_rounded_or_not(problem):
    lengths = {
        (metric, exponent): tour_at(10.0**exponent, metric, "cpu", 300, 8, problem)
        for metric, exponents in (("EXACT", (-12, 0, 9, 13, 14.9)), ("EUC_2D", (9, 13, 14, 14.9)))
        for exponent in exponents
    }
    assert max(lengths.values()) <= (1.0 + 1e-6) * min(lengths.values()), lengths


def compare_scales(n, rounds, most):
    lengths = {
        (metric, exponent): tour_at(10.0**exponent, metric, "cuda", n, rounds)
        for metric, exponents in (("EXACT", (-12, 0, 14.9)), ("EUC_2D", (5, 9, 14, 14.9)))
        for exponent in exponents
    }
    assert max(lengths.values()) <= (1.0 + most) * min(lengths.values()), lengths


@pytest.mark.gpu
def test_windows_of_a_device_are_as_good_at_every_scale():
    compare_scales(2000, 30, 0.005)


@pytest.mark.parametrize("metric", ["EXACT", "EUC_2D", "CEIL_2D", "MAN_2D", "ATT"])
@pytest.mark.parametrize("scale", [1e3, 1e14])
@pytest.mark.parametrize("problem", [TSP, OpenPath])
def test_costs_of_a_window_are_distances_in_whole_units(problem, scale, metric):
    problem = problem(np.random.default_rng(1).random((40, 2)) * scale, metric=metric)
    instance = listed_instance(problem, 8)
    form = form_to_search(instance)
    listed = instance if form is None else with_lists(form.instance, 8)
    units, _ = make_units(listed, listed.graph, MemeticParameters())
    n, k = units.candidates.shape
    window = make_window(n, k)
    tour = np.random.default_rng(2).permutation(n).astype(np.int32)
    load(units, tour, np.arange(n, dtype=np.int32), n, np.full(n, -1, np.int32), window)
    i = np.broadcast_to(tour[:, None], (n, k))
    expected = np.floor(listed.distance(i, tour[window.near]) * units.scale + 0.5)
    assert np.array_equal(window.cost, expected + units.pi[i] + units.pi[tour[window.near]])
