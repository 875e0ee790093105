"""Precedence: which problems are taken, and that the search finds the shortest tour that keeps it."""

import copy
import itertools
import math
import pickle

import numpy as np
import pytest
from pymoo.optimize import minimize

from pymoo_gpuaco import (
    GPUFACO,
    GPUMMAS,
    TSP,
    ColonyTermination,
    GPU2OptIHC,
    GPUMemetic,
    OpenPath,
    checkpoint,
    load_tsp,
    solve,
)
from pymoo_gpuaco.backends.cpu.precedence import CpuChains
from pymoo_gpuaco.candidates.exact import shortest_with_constraints
from pymoo_gpuaco.memetic.parameters import MemeticParameters
from pymoo_gpuaco.precedence.model import make_model
from pymoo_gpuaco.precedence.search import PrecedenceSearch
from pymoo_gpuaco.problems.constraints import TourConstraints, order_of
from tests.instances import listed_instance
from tests.test_fuzz_constraints import shortest


def matrix_of(n, seed, whole=True):
    rng = np.random.default_rng(seed)
    return rng.integers(1, 60, (n, n)).astype(float) if whole else rng.random((n, n))


def pairs_of(n, count, seed, first=None, last=None):
    """Random pairs that agree with a hidden order of the cities."""
    rng = np.random.default_rng(seed)
    order = [city for city in rng.permutation(n).tolist() if city not in (first, last)]
    order = [first] * (first is not None) + order + [last] * (last is not None)
    chosen = [sorted(rng.choice(n, 2, replace=False).tolist()) for _ in range(count)]
    return [(order[a], order[b]) for a, b in chosen]


def shortest_by_enumeration(problem):
    """Least (broken constraints, length) of all permutations."""
    tours = np.array(list(itertools.permutations(range(problem.n_cities))))
    return min(zip(problem.violations(tours), problem.tour_lengths(tours), strict=True))


def engine_of(problem, chains=2, **parameters):
    instance = listed_instance(problem, 5)
    return PrecedenceSearch(CpuChains(make_model(instance), chains), MemeticParameters(**parameters))


def searched(problem, generations=3):
    """The best tour of the search itself, also where so few cities are solved by dynamic programming."""
    engine = engine_of(problem)
    for number in range(generations):
        engine.expect(number / generations)
        engine.search(number)
    tours, lengths = engine.best_tours()
    return tours[0], lengths[0]


def shortest_path(matrix, pairs):
    """Length of the shortest path with precedence, over sets of visited cities (Held and Karp)."""
    n = len(matrix)
    needed = [0] * n
    for i, j in pairs:
        needed[j] |= 1 << i
    best = {(1 << c, c): 0.0 for c in range(n) if not needed[c]}
    for _ in range(n - 1):
        longer = {}
        for (seen, last), length in best.items():
            for c in range(n):
                if seen >> c & 1 or needed[c] & ~seen:
                    continue
                key, new = (seen | 1 << c, c), length + matrix[last, c]
                longer[key] = min(new, longer.get(key, math.inf))
        best = longer
    return min(best.values())


PROBLEMS = {
    "path": lambda n, seed: OpenPath(matrix=matrix_of(n, seed), precedence=pairs_of(n, n, seed)),
    "from a start": lambda n, seed: OpenPath(
        matrix=matrix_of(n, seed), start=2, precedence=pairs_of(n, n, seed, first=2)
    ),
    "to an end": lambda n, seed: OpenPath(
        matrix=matrix_of(n, seed), end=1, precedence=pairs_of(n, n, seed, last=1)
    ),
    "both ends": lambda n, seed: OpenPath(
        matrix=matrix_of(n, seed), start=3, end=0, precedence=pairs_of(n, n, seed, 3, 0)
    ),
    "round trip": lambda n, seed: TSP(matrix=matrix_of(n, seed), precedence=pairs_of(n, n, seed, first=0)),
    "round trip from 2": lambda n, seed: TSP(
        matrix=matrix_of(n, seed), start=2, precedence=pairs_of(n, n, seed, first=2)
    ),
    "fractions": lambda n, seed: OpenPath(
        matrix=matrix_of(n, seed, whole=False), precedence=pairs_of(n, n, seed)
    ),
    "coordinates": lambda n, seed: TSP(
        np.random.default_rng(seed).random((n, 2)), precedence=pairs_of(n, n, seed, first=0)
    ),
    "forbidden": lambda n, seed: OpenPath(
        matrix=matrix_of(n, seed),
        precedence=pairs_of(n, 3, seed),
        forbidden_edges=[(0, 1), (1, 2), (2, 3), (3, 4), (4, 0)],
    ),
    "fixed": lambda n, seed: OpenPath(
        matrix=matrix_of(n, seed), precedence=[(3, 1), (4, 2)], fixed_edges=[(0, 3), (1, 2)]
    ),
    "fixed either way": lambda n, seed: TSP(
        np.random.default_rng(seed).random((n, 2)), precedence=[(3, 1), (4, 2)], fixed_edges=[(0, 3), (1, 2)]
    ),
}


@pytest.mark.parametrize("kind", PROBLEMS)
@pytest.mark.parametrize("n", [5, 7])
@pytest.mark.parametrize("seed", [0, 1])
def test_search_and_dynamic_programming_find_what_enumeration_finds(kind, n, seed):
    problem = PROBLEMS[kind](n, seed)
    broken, length = shortest_by_enumeration(problem)
    for tour in (shortest_with_constraints(listed_instance(problem, 3)), searched(problem)[0]):
        assert problem.violations(tour[None])[0] == broken
        assert problem.tour_length(tour) == pytest.approx(length, rel=1e-9)


@pytest.mark.parametrize(("n", "count"), [(9, 3), (11, 8), (13, 6), (13, 25)])
def test_search_finds_the_optimum_of_dynamic_programming(n, count):
    matrix, pairs = matrix_of(n, count), pairs_of(n, count, n)
    problem = OpenPath(matrix=matrix, precedence=pairs)
    tour, length = searched(problem)
    assert length == shortest_path(matrix, pairs)
    assert problem.violations(tour[None])[0] == 0


@pytest.mark.parametrize("n", [8, 13, 40])
def test_total_order_has_one_tour(n):
    order = np.random.default_rng(n).permutation(n)
    pairs = np.stack([order[:-1], order[1:]], axis=1)
    problem = OpenPath(matrix=matrix_of(n, 0), precedence=pairs)
    res = minimize(problem, GPUMemetic(backend="cpu"), ("n_gen", 3), seed=1)
    assert np.array_equal(res.X, order)


@pytest.mark.parametrize("n", [10, 60])
def test_problem_without_precedence_is_searched_as_before(n):
    matrix = matrix_of(n, 1)
    plain, empty = (
        OpenPath(matrix=matrix, start=0, **more) for more in ({}, {"precedence": np.zeros((0, 2), int)})
    )
    runs = [minimize(one, GPUMemetic(backend="cpu"), ("n_gen", 4), seed=3) for one in (plain, empty)]
    assert np.array_equal(runs[0].X, runs[1].X)
    assert not isinstance(runs[1].algorithm.engine, PrecedenceSearch)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"precedence": [(0, 1), (1, 2), (2, 0)]},
            r"cycle (0 -> 1 -> 2 -> 0|1 -> 2 -> 0 -> 1|2 -> 0 -> 1 -> 2)",
        ),
        ({"precedence": [(3, 4), (4, 3), (0, 1)]}, r"cycle (3 -> 4 -> 3|4 -> 3 -> 4)"),
        ({"precedence": [(1, 0)], "start": 0}, r"\(1, 0\) contradicts start=0"),
        ({"precedence": [(2, 1)], "end": 2}, r"\(2, 1\) contradicts end=2"),
        ({"precedence": [(1, 1)]}, r"precedence must be pairs of different cities in \[0, 5\], got \(1, 1\)"),
        ({"precedence": [(1, 6)]}, r"in \[0, 5\], got \(1, 6\)"),
        ({"precedence": [(1, 2)], "fixed_edges": [(2, 1)]}, "precedence with fixed_edges has the cycle"),
        ({"precedence": [("b", "c"), ("c", "b")], "names": list("abcdef")}, "has the cycle"),
    ],
)
def test_precedence_that_no_path_keeps_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        OpenPath(matrix=matrix_of(6, 0), **arguments)


def test_round_trip_counts_precedence_from_its_start():
    problem = TSP(matrix=matrix_of(5, 0), start=2, precedence=[(3, 1), (4, 3)])
    tours = np.array([[2, 4, 3, 1, 0], [1, 0, 2, 4, 3], [2, 3, 1, 4, 0], [2, 1, 3, 4, 0]])
    assert problem.violations(tours).tolist() == [0, 0, 1, 2]
    out = problem.evaluate(tours, return_as_dictionary=True)
    assert out["G"].ravel().tolist() == [0, 0, 1, 2]
    assert out["F"].ravel().tolist() == problem.tour_lengths(tours).tolist()
    last = TSP(matrix=matrix_of(5, 0), start=2, precedence=[(2, 1)], fixed_edges=[(1, 2)])
    assert last.violations([[2, 4, 3, 0, 1]]).tolist() == [0]  # the fixed edge ends the round trip
    with pytest.raises(ValueError, match=r"\(1, 2\) contradicts start=2"):
        TSP(matrix=matrix_of(5, 0), start=2, precedence=[(1, 2)])
    res = minimize(problem, GPUMemetic(backend="cpu"), ("n_gen", 1), seed=1)
    assert res.X[0] == 2
    assert res.G[0] == 0


def test_names_stand_for_cities_and_pairs_count_once():
    problem = OpenPath(
        matrix=matrix_of(4, 0),
        names=["depot", "a", "b", "c"],
        precedence=[("b", "a"), ("b", "a"), ("c", "a")],
    )
    assert problem.precedence.tolist() == [[2, 1], [3, 1]]
    assert "2 precedence pairs" in str(problem)
    assert OpenPath(problem, start="b").precedence.tolist() == [[2, 1], [3, 1]]


@pytest.mark.parametrize("seed", range(5))
def test_closure_and_reduction_are_those_of_all_paths(seed):
    n = 12
    pairs = np.array(pairs_of(n, 3 * seed + 2, seed))
    given = np.zeros((n, n), bool)
    given[pairs[:, 0], pairs[:, 1]] = True
    closure = given.copy()
    for k in range(n):  # Warshall
        closure |= closure[:, k, None] & closure[k]
    order = order_of(pairs, n)
    assert np.array_equal(order.before, closure)
    longer = (closure.astype(int) @ closure.astype(int)) > 0
    assert np.array_equal(order.direct, closure & ~longer)


@pytest.mark.parametrize("seed", range(6))
def test_every_path_of_a_run_keeps_precedence_and_its_length(seed):
    n = 40
    kind = list(PROBLEMS)[seed]
    problem = PROBLEMS[kind](n, seed)
    engine = engine_of(problem, chains=3)
    model = engine.model
    for number in range(5):
        engine.expect(number / 5)
        engine.search(number)
        paths, best, lengths = engine._chains
        assert not problem.violations(np.array([model.tour(path) for path in paths])).any()
        for path in paths:
            assert np.array_equal(np.sort(path), np.arange(model.m))
            assert np.array_equal(model.path(model.tour(path)), path)
        assert np.array_equal(lengths[:, 0], model.lengths(paths))
        assert np.array_equal(lengths[:, 1], model.lengths(best))
        exact = problem.tour_lengths(np.array([model.tour(path) for path in paths]))
        np.testing.assert_allclose(engine.lengths, exact, rtol=1e-6)


FIXED = {
    "round trip": (TSP, {"precedence": [(3, 1), (4, 5)]}),
    "round trip, no pair beside the home city": (TSP, {"precedence": [(4, 5)]}),
    "path": (OpenPath, {"precedence": [(3, 1), (4, 5)]}),
    "path from 2": (OpenPath, {"start": 2, "precedence": [(3, 1)]}),
    "path to 2": (OpenPath, {"end": 2, "precedence": [(3, 1)]}),
}
CHAINS = [[(0, 1)], [(1, 0), (0, 3)], [(0, 1), (1, 2)], [(3, 4), (5, 1)], [(2, 5), (4, 3), (3, 0)]]


@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("edges", CHAINS)
@pytest.mark.parametrize("kind", FIXED)
def test_paths_of_chains_stand_for_all_tours_that_keep_the_constraints(kind, edges, symmetric):
    """A path of a tour gives the tour back, with its length; every path keeps fixed edges and precedence."""
    matrix = matrix_of(6, len(edges))
    matrix = np.triu(matrix, 1) + np.triu(matrix, 1).T if symmetric else matrix
    cls, arguments = FIXED[kind]
    tours = np.array(list(itertools.permutations(range(6))))
    if cls is TSP:
        tours = tours[tours[:, 0] == 0]
    free = cls(matrix=matrix, **{**arguments, "precedence": None})
    constrained = TourConstraints(
        np.array(edges), not symmetric, free.closed, free.start, free.end, np.array(arguments["precedence"])
    )
    ends = np.column_stack([tours, tours[:, 0]]) if free.closed else tours
    lengths = np.zeros((len(tours), ends.shape[1] - 1))
    kept = tours[[constrained.violations(tour, row) == 0 for tour, row in zip(tours, lengths, strict=True)]]
    if not len(kept):
        with pytest.raises(ValueError, match=r"fixed_edges|contradicts"):
            cls(matrix=matrix, fixed_edges=edges, **arguments)
        return
    problem = cls(matrix=matrix, fixed_edges=edges, **arguments)
    model = make_model(listed_instance(problem, 3))
    paths = np.array([model.path(tour) for tour in kept])
    assert np.array_equal([model.tour(path) for path in paths], kept)
    assert model.distances(model.lengths(paths)).tolist() == problem.tour_lengths(kept).tolist()
    for tour in (*tours, model.tour(model.greedy_path())):
        assert not problem.violations(model.tour(model.path(tour))[None])[0]


def test_fixed_edges_are_kept_with_precedence():
    """The greedy tour had one violation that no exchange of annealing mended; the optimum is by dynamic programming."""
    matrix = np.random.default_rng(25).integers(1, 50, (14, 14)).astype(float)
    np.fill_diagonal(matrix, 0.0)
    problem = TSP(
        matrix=matrix,
        start=0,
        precedence=[(1, 3), (4, 2), (13, 8)],
        fixed_edges=[(12, 10), (10, 3), (3, 4), (4, 11)],
    )
    assert shortest(problem) == 204
    for seed in range(5):
        result = minimize(problem, GPUMemetic(backend="cpu"), ("n_gen", 20), seed=seed)
        assert (result.F[0], result.G[0]) == (204.0, 0.0)


@pytest.mark.parametrize("decades", [2, 4, 9, 12, "marks"])
def test_a_wide_range_of_distances_does_not_hide_the_optimum(decades):
    for seed in range(4):
        rng = np.random.default_rng([seed, 13])
        if decades == "marks":
            rare = rng.random((13, 13)) < 0.4
            matrix = np.where(rare, rng.choice([1e3, 1e5, 1e7], (13, 13)), rng.integers(1, 100, (13, 13)))
        else:
            matrix = 10.0 ** rng.uniform(0, decades, (13, 13))
        pairs = pairs_of(13, 3, seed)
        problem = OpenPath(matrix=matrix, precedence=pairs)
        result = minimize(problem, GPUMemetic(backend="cpu"), ("n_gen", 40), seed=1)
        assert result.F[0] == pytest.approx(shortest_path(problem.matrix, pairs), rel=1e-9)


@pytest.mark.parametrize("unit", [2.0**-40, 2.0**40])
def test_costs_do_not_depend_on_the_unit_of_distances(unit):
    matrix = matrix_of(8, 0, whole=False)
    usual, other = (
        make_model(listed_instance(TSP(matrix=matrix * factor, precedence=[(1, 2)]), 5))
        for factor in (1.0, unit)
    )
    assert usual.cost.max() > 2**20
    assert np.array_equal(usual.cost, other.cost)
    assert usual.wide == other.wide


def test_distances_that_all_are_zero_are_of_one_magnitude():
    model = make_model(listed_instance(TSP(matrix=np.zeros((8, 8)), precedence=[(1, 2)]), 5))
    assert not model.wide


@pytest.mark.parametrize(("chains", "replaced"), [(8, True), (7, False)])
def test_short_paths_replace_long_ones_if_there_are_eight_chains(chains, replaced):
    engine = engine_of(TSP(matrix=matrix_of(9, 1), precedence=[(1, 2)]), chains)
    paths = np.array([np.roll(np.arange(1, 9), i) for i in range(chains)])
    path = np.concatenate([np.zeros((chains, 1), int), paths, np.full((chains, 1), 9)], axis=1).astype(
        np.int32
    )
    begun = engine.model.chains(path)
    made = engine._resampled(begun, 5, 100.0, 1e-3)  # the weight of a path that is longer by 1 is exp(-1000)
    lengths = begun.lengths[:, 0]
    assert made.lengths[:, 0].tolist() == ([lengths.min()] * chains if replaced else lengths.tolist())
    assert np.array_equal(engine.model.lengths(made.paths), made.lengths[:, 0])
    assert np.array_equal(made.best, begun.best)


def test_a_path_of_shortest_edges_can_be_annealed():
    """No edge of the greedy path 0 1 .. 13 exceeds the shortest one out of its city, and distances differ much."""
    matrix = np.full((14, 14), 1e3)
    matrix[np.arange(13), np.arange(1, 14)], matrix[5:9, 1:4] = 1.0, 1e6
    problem = OpenPath(matrix=matrix, start=0, end=13, precedence=[(2, 5)])
    result = minimize(problem, GPUMemetic(backend="cpu"), ("n_gen", 2), seed=1)
    assert (result.F[0], result.G[0]) == (13.0, 0.0)


def test_fixed_edges_do_not_lower_the_temperature():
    """Ends of chains are neighbours on every path; their edges have no excess."""
    points = np.random.default_rng(0).random((12, 2))
    problem = TSP(points, precedence=[(10, 11)], fixed_edges=[(1, 2), (3, 4), (5, 6), (7, 8)])
    model = make_model(listed_instance(problem, 5))
    path = model.greedy_path()
    cost = model.cost[path[:-1], path[1:]]
    more = (cost - model.least[path[:-1]])[cost >= 0]
    assert len(more) == model.m - 1 - 4
    assert model.excess(path).usual == np.quantile(more, 0.75) > 1e5


@pytest.mark.parametrize("known", [True, False])
def test_later_cycles_begin_with_random_paths(known, monkeypatch):
    """17 generations: three cycles if the length of the run is known, else one of 16 and the begin of another."""
    problem = OpenPath(matrix=matrix_of(14, 1), precedence=pairs_of(14, 5, 1))
    engine, seen = engine_of(problem, chains=8), []
    engine.device.trials = 1536  # cycles of five generations if the length is known
    anneal = engine.device.anneal

    def observed(chains, around, stop):
        seen.append((around.temperatures[0], len(np.unique(chains.paths, axis=0))))
        anneal(chains, around, stop)

    monkeypatch.setattr(engine.device, "anneal", observed)
    for number in range(17):
        engine.expect(number / 17 if known else np.nan)
        engine.search(number)
    temperatures, distinct = np.array(seen[1:]).T  # the first call is local search
    later = np.flatnonzero(np.diff(temperatures) > 0.0) + 1
    assert len(later) == (2 if known else 1)
    assert (distinct[later] > 4).all()
    assert (distinct[later - 1] <= 4).all()  # population annealing ended with copies


@pytest.mark.parametrize("generations", [5, 30])
def test_no_cycle_is_shorter_than_a_generation(generations):
    """A cycle of seven nodes has 1,470 trials, a generation 8,192; the first does not know the length of the run."""
    engine = engine_of(OpenPath(matrix=matrix_of(5, 1), precedence=[(1, 2)]))
    engine.device.trials = 8192
    for number in range(generations):
        engine.expect(number / generations)
        engine.search(number)
    assert engine.export_state()["cycle"][3] == generations - 1


def test_a_resumed_run_has_the_units_of_the_uninterrupted_one():
    matrix = 10.0 ** np.random.default_rng(3).uniform(0, 12, (20, 20))
    problem = OpenPath(matrix=matrix, precedence=pairs_of(20, 6, 3))
    one, other = engine_of(problem), engine_of(problem)
    for key in range(2):
        one.search(key)
    other.import_state(one.export_state())
    assert other.model.unit == one.model.unit > 2.0 * make_model(listed_instance(problem, 5)).unit
    for engine in (one, other):
        engine.search(2)
    for name, array in one.export_state().items():
        assert np.array_equal(array, other.export_state()[name]), name


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"precedence": [(0, 2), (2, 1)], "fixed_edges": [(0, 1)]}, r"the cycle (0 -> 2 -> 0|2 -> 0 -> 2)"),
        ({"precedence": [(3, 2)], "fixed_edges": [(1, 2)], "start": 1}, r"\(3, 2\) contradicts fixed_edges"),
        ({"precedence": [(0, 2), (2, 1)], "fixed_edges": [(1, 0), (0, 2)]}, r"contradicts fixed_edges"),
    ],
)
def test_precedence_against_chains_is_refused(arguments, message):
    matrix = matrix_of(6, 0) + matrix_of(6, 0).T
    with pytest.raises(ValueError, match=message):
        OpenPath(matrix=matrix, **arguments)


def test_given_tours_are_mended_and_improved():
    problem = PROBLEMS["both ends"](30, 4)
    engine = engine_of(problem)
    rows = np.array([np.random.default_rng(s).permutation(30) for s in range(4)])
    improved, lengths = engine.improve(rows, 7)
    assert problem.violations(rows).all()
    assert not problem.violations(improved).any()
    assert np.array_equal(problem.tour_lengths(improved), lengths)
    engine.accept(improved, lengths)
    assert engine.best_tours()[1][0] <= lengths.min()


def test_chains_have_the_lengths_of_accepted_tours():
    problem = PROBLEMS["both ends"](30, 4)
    engine = engine_of(problem, chains=4)
    engine.search(1)
    tours, lengths = engine.improve(engine.best_tours(4)[0], 2)
    engine.accept(tours, lengths)
    chains = engine._chains
    assert np.array_equal(chains.lengths[:, 0], engine.model.lengths(chains.paths))
    assert np.array_equal(chains.lengths[:, 1], engine.model.lengths(chains.best))


def test_the_last_generations_have_temperature_zero(monkeypatch):
    engine, seen = engine_of(PROBLEMS["both ends"](20, 4)), []
    anneal = engine.device.anneal

    def observed(chains, around, stop):
        seen.append(around.temperatures)
        anneal(chains, around, stop)

    monkeypatch.setattr(engine.device, "anneal", observed)
    for progress in (0.0, 0.5, 0.98, 0.99):
        engine.expect(progress)
        engine.search(1)
    *_, half, late, last = seen
    assert (half > 0.0).all()
    assert not late.any()
    assert not last.any()


ORDERED = PROBLEMS["round trip"](50, 9)


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Make generations of fewer trials."""
    monkeypatch.setattr(CpuChains, "trials", 3_000)


def run(threads, monkeypatch, **arguments):
    monkeypatch.setenv("PYMOO_GPUACO_THREADS", str(threads))
    return minimize(ORDERED, GPUMemetic(backend="cpu", **arguments), ("n_gen", 6), seed=2)


def test_threads_do_not_change_a_run(monkeypatch):
    one, two = run(1, monkeypatch), run(2, monkeypatch)
    assert np.array_equal(one.X, two.X)
    assert np.array_equal(one.algorithm.engine.lengths, two.algorithm.engine.lengths)
    assert one.algorithm.engine.n_tours == 16


@pytest.mark.parametrize("how", ["copy", "pickle", "checkpoint"])
@pytest.mark.parametrize("chains", [2, 20])
@pytest.mark.parametrize("termination", [("n_gen", 6), ColonyTermination(seconds=None)])
def test_resumed_run_equals_the_uninterrupted_one(how, chains, termination, tmp_path):
    def begun():
        new = copy.deepcopy(termination)  # one for each run
        algorithm = GPUMemetic(chains, backend="cpu").setup(ORDERED, termination=new, seed=2)
        for _ in range(3):
            algorithm.next()
        return algorithm

    first, second = begun(), begun()
    if how == "copy":
        second = copy.deepcopy(second)
    elif how == "pickle":
        second = pickle.loads(pickle.dumps(second))
    else:
        checkpoint.save(second, tmp_path / "run")
        second = checkpoint.load(tmp_path / "run")
    for _ in range(3):
        first.next()
        second.next()
    states = first.engine.export_state(), second.engine.export_state()
    for name in states[0]:
        assert np.array_equal(states[0][name], states[1][name]), name


def test_an_interrupt_ends_a_generation_early_with_whole_tours():
    engine = engine_of(ORDERED)
    engine.search(1)
    length = engine.best_tours()[1][0]
    engine.stop.interrupt()
    engine.search(2)
    tours, lengths = engine.best_tours(4)
    assert lengths[0] <= length
    assert lengths.tolist() == [engine.instance.tour_length(tour) for tour in tours]
    engine.stop.interrupted = False
    engine.search(3)
    assert engine.best_tours()[1][0] <= length


def test_broken_state_is_refused():
    engine = engine_of(ORDERED)
    engine.search(1)
    state = engine.export_state()
    for name, value in (("tours", state["tours"][:, ::-1] * 0 + 1), ("cycle", np.array([99, 0, 0, 0]))):
        with pytest.raises(ValueError, match=r"state|tours"):
            engine_of(ORDERED).import_state({**state, name: value})


@pytest.mark.parametrize("cls", [GPUMMAS, GPU2OptIHC, GPUFACO])
def test_other_algorithms_name_the_one_that_takes_precedence(cls):
    with pytest.raises(ValueError, match=r"cannot use paths, precedence, .*: use GPUMemetic"):
        minimize(ORDERED, cls(backend="cpu"), ("n_gen", 1), seed=1)


def test_solve_takes_precedence():
    cities = [(0, 0), (1, 0), (2, 0), (3, 0)]
    path, length = solve(cities, start=0, precedence=[(3, 1), (1, 2)])
    assert (path.tolist(), length) == ([0, 3, 1, 2], 6.0)
    trip, length = solve(cities, start=1, end=1, precedence=[(3, 2), (2, 0)])
    assert (trip.tolist(), length) == ([1, 3, 2, 0], 6.0)
    problem = OpenPath(TSP(cities, start=0, precedence=[(1, 2)]), start=3)
    assert (problem.start, problem.precedence.tolist()) == (3, [[1, 2]])


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ({"candidates": "nearest"}, "candidates must be 'auto' with precedence, got 'nearest'"),
        ({"n_offspring": 31}, "n_offspring must not be set with precedence, .* got 31"),
    ],
)
def test_arguments_without_effect_are_refused_with_precedence(argument, message):
    with pytest.raises(ValueError, match=message):
        minimize(ORDERED, GPUMemetic(**argument, backend="cpu"), ("n_gen", 1), seed=1)


def test_several_devices_are_refused_with_precedence():
    with pytest.raises(ValueError, match=r"device must be one number with precedence, got \[0, 1\]"):
        minimize(ORDERED, GPUMemetic(device=[0, 1], backend="cpu"), ("n_gen", 1), seed=1)


BARE = "0\t5\t3\t1000\n-1\t0\t-1\t7\n-1\t2\t0\t4\n-1\t-1\t-1\t0\n"
TSPLIB = (
    "NAME: four.sop\nTYPE: SOP\nDIMENSION: 4\nEDGE_WEIGHT_TYPE: EXPLICIT\nEDGE_WEIGHT_FORMAT: FULL_MATRIX\n"
    "EDGE_WEIGHT_SECTION\n4\n" + BARE + "EOF\n"
)


@pytest.mark.parametrize("text", [BARE, TSPLIB, TSPLIB.replace("SECTION\n4\n", "SECTION\n")])
def test_sop_files_are_paths_with_precedence(text, tmp_path):
    path = tmp_path / "four.sop"
    path.write_text(text)
    problem = load_tsp(path)
    assert (problem.start, problem.end, problem.label) == (0, 3, "four")
    assert problem.precedence.tolist() == [[2, 1]]  # entry (1, 2) is -1
    assert problem.tour_length([0, 2, 1, 3]) == 3 + 2 + 7
    assert problem.violations([[0, 2, 1, 3], [0, 1, 2, 3]]).tolist() == [0, 1]
    assert minimize(problem, GPUMemetic(backend="cpu"), ("n_gen", 1), seed=1).X.tolist() == [0, 2, 1, 3]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0 1 2\n-1 0 1\n", "a matrix has n x n weights, got 6"),
        ("0 1 2\n-1 0 -1\n-1 -1 x\n", "could not convert"),
        ("0 -1 2\n-1 0 1\n-1 -1 0\n", "the first city must come first"),
        ("0 1 2 9\n-1 0 -1 3\n-1 -1 0 3\n-1 -1 -1 0\n", "the cycle"),
        ("0 1 2\n-1 0 -5\n-1 -1 0\n", "got -5 from city 1 to city 2"),
    ],
)
def test_broken_sop_files_are_refused(text, message, tmp_path):
    path = tmp_path / "broken.sop"
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        load_tsp(path)


@pytest.mark.parametrize(("name", "best"), [("ESC07", 2125), ("ESC11", 2075), ("br17.12", 55)])
def test_tsplib_instances_reach_their_optimum(name, best, tsplib_dir):
    res = minimize(load_tsp(tsplib_dir / f"{name}.sop"), GPUMemetic(backend="cpu"), ("n_gen", 8), seed=1)
    assert res.F[0] == best
    assert res.G[0] == 0
