"""Operators inside pymoo's own GA, and on their own."""

from collections import Counter

import numpy as np
import pytest
from pymoo.algorithms.moo.nsga2 import NSGA2
from pymoo.algorithms.soo.nonconvex.ga import GA
from pymoo.core.population import Population
from pymoo.core.problem import ElementwiseProblem
from pymoo.core.repair import NoRepair
from pymoo.operators.crossover.ox import OrderCrossover
from pymoo.operators.sampling.rnd import PermutationRandomSampling
from pymoo.optimize import minimize

from pymoo_gpuaco import GPUMMAS, GPUMemetic, MultiObjectiveTSP, operators
from pymoo_gpuaco.operators import (
    AntColonySampling,
    AssemblyCrossover,
    DoubleBridgeMutation,
    InsertionMutation,
    LocalSearchRepair,
    MergeCrossover,
    NearestNeighbourSampling,
    SwapMutation,
)
from pymoo_gpuaco.problems import as_instance
from tests.engine_cases import asymmetric, cloud

SAMPLINGS = [NearestNeighbourSampling, AntColonySampling]


@pytest.mark.parametrize("sampling", SAMPLINGS)
@pytest.mark.parametrize("problem", [cloud(40), cloud(3), asymmetric(20)], ids=["40", "3", "asymmetric"])
def test_samples_are_permutations_and_repeat_with_the_seed(sampling, problem):
    samples = [
        sampling().do(problem, 50, random_state=np.random.default_rng(seed)).get("X") for seed in (1, 1, 2)
    ]
    assert samples[0].shape == (50, problem.n_cities)
    assert np.array_equal(np.sort(samples[0], axis=1), np.tile(np.arange(problem.n_cities), (50, 1)))
    assert np.array_equal(samples[0], samples[1])
    if problem.n_cities > 3:
        assert not np.array_equal(samples[0], samples[2])


def test_repair_makes_every_tour_locally_optimal():
    problem = cloud(100, 3)
    X = PermutationRandomSampling().do(problem, 8, random_state=np.random.default_rng(0)).get("X")
    before = problem.tour_lengths(X)
    repair = LocalSearchRepair()
    once = repair.do(problem, Population.new("X", X.copy())).get("X")
    assert np.all(problem.tour_lengths(once) < 0.5 * before)
    again = repair.do(problem, Population.new("X", once.copy())).get("X")
    assert np.array_equal(problem.tour_lengths(again), problem.tour_lengths(once))


@pytest.mark.parametrize("n_parents", [2, 5])
@pytest.mark.parametrize("n", [3, 60])
def test_a_merged_child_is_as_good_as_its_best_parent_and_has_only_their_edges(n, n_parents):
    problem = cloud(n, 5)
    rng = np.random.default_rng(1)
    parents = [
        LocalSearchRepair(local_search="2opt").do(
            problem, PermutationRandomSampling().do(problem, n_parents, random_state=rng)
        )
        for _ in range(4)
    ]
    crossover = MergeCrossover(n_parents, prob=1.0)
    children = crossover.do(problem, parents, random_state=rng).get("X")
    assert children.shape == (4, n)

    def edges(tour):
        return {frozenset(map(int, pair)) for pair in zip(tour, np.roll(tour, -1), strict=True)}

    for child, family in zip(children, parents, strict=True):
        X = family.get("X")
        assert np.array_equal(np.sort(child), np.arange(n))
        assert problem.tour_lengths(child[None])[0] <= problem.tour_lengths(X).min()
        assert edges(child) <= set().union(*(edges(tour) for tour in X))


@pytest.mark.parametrize("n_parents", [2, 5])
@pytest.mark.parametrize("n", [3, 60])
def test_an_assembled_child_is_no_longer_than_its_parent_and_the_seed_decides(n, n_parents):
    problem = cloud(n, 5)
    rng = np.random.default_rng(1)
    parents = [PermutationRandomSampling().do(problem, n_parents, random_state=rng) for _ in range(4)]
    crossover = AssemblyCrossover(n_parents, prob=1.0)

    def children(seed):
        return crossover.do(problem, parents, random_state=np.random.default_rng(seed)).get("X")

    X = children(3)
    assert X.shape == (4 * n_parents, n)
    assert np.array_equal(np.sort(X, axis=1), np.tile(np.arange(n), (len(X), 1)))
    before = np.array([problem.tour_lengths(family.get("X")) for family in parents])  # (matings, parents)
    after = problem.tour_lengths(X).reshape(n_parents, 4).T
    assert np.all(after <= before)
    if n == 60:
        assert np.all(after.max(axis=1) < before.min(axis=1))
        assert not np.array_equal(X, children(4))
    assert np.array_equal(X, children(3))


@pytest.mark.parametrize("crossover", [MergeCrossover, AssemblyCrossover])
def test_children_of_asymmetric_tours_are_not_longer(crossover):
    problem = asymmetric(30)
    X = LocalSearchRepair("windows").do(
        problem,
        PermutationRandomSampling().do(problem, 2, random_state=np.random.default_rng(0)),
        random_state=np.random.default_rng(0),
    )
    children = crossover(prob=1.0).do(problem, [X], random_state=np.random.default_rng(0)).get("X")
    assert problem.tour_lengths(children).min() <= problem.tour_lengths(X.get("X")).min()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: AntColonySampling(beta=-1.0), "beta"),
        (lambda: AntColonySampling(candidate_list_size=0), "candidate_list_size"),
        (lambda: AntColonySampling(backend="gpu"), "backend"),
        (lambda: LocalSearchRepair(local_search=False), "local_search"),
        (lambda: LocalSearchRepair(local_search="3opt"), "local_search"),
        (lambda: NearestNeighbourSampling(candidate_list_size=1.5), "candidate_list_size"),
        (lambda: MergeCrossover(n_parents=1), "n_parents"),
        (lambda: AssemblyCrossover(n_parents=65), "n_parents"),
        (lambda: AssemblyCrossover(candidate_list_size=0), "candidate_list_size"),
    ],
)
def test_bad_arguments_are_named(make, words):
    with pytest.raises((ValueError, TypeError), match=words):
        make()


def test_a_double_bridge_changes_three_edges_of_small_reach():
    problem, rng = cloud(40), np.random.default_rng(2)
    X = np.tile(np.arange(40), (200, 1))
    mutated = DoubleBridgeMutation(length=5).do(problem, Population.new("X", X), random_state=rng).get("X")
    ring = {frozenset((c, (c + 1) % 40)) for c in range(40)}
    for tour in mutated:
        assert sorted(tour) == list(range(40))
        edges = {frozenset(pair) for pair in zip(tour.tolist(), np.roll(tour, -1).tolist(), strict=True)}
        new = edges - ring
        assert 2 <= len(new) <= 3  # two where both stretches are one city: neighbours change places
        assert all(min((a - b) % 40, (b - a) % 40) <= 10 for a, b in map(tuple, new))
    np.testing.assert_array_equal(X, np.arange(40)[None].repeat(200, axis=0))


def memetic_nsga2(**operators):
    given = {
        "sampling": NearestNeighbourSampling(),
        "crossover": AssemblyCrossover(),
        "mutation": DoubleBridgeMutation(),
        "repair": LocalSearchRepair(backend="cpu"),
    }
    return NSGA2(pop_size=24, **{**given, **operators})


def test_of_several_objectives_a_memetic_nsga2_leaves_the_plain_one_behind():
    problem = MultiObjectiveTSP([cloud(60, 1), cloud(60, 2)])
    random = {"sampling": PermutationRandomSampling(), "crossover": OrderCrossover(), "repair": NoRepair()}
    results = [minimize(problem, memetic_nsga2(**more), ("n_gen", 4), seed=1) for more in ({}, random)]
    ours, plain = (result.F for result in results)
    dominated = (ours[:, None] <= plain).all(axis=2).any(axis=0)
    assert dominated.all()
    # not all in one place: the ends of the front are far shorter than its other end by that objective
    assert np.all(ours.min(axis=0) < 0.8 * ours.max(axis=0))
    again = minimize(problem, memetic_nsga2(), ("n_gen", 4), seed=1)
    assert np.array_equal(again.X, results[0].X)


@pytest.mark.parametrize(
    "operators", [{}, {"crossover": MergeCrossover(), "sampling": AntColonySampling(backend="cpu")}]
)
def test_three_objectives_one_of_them_asymmetric(operators):
    problem = MultiObjectiveTSP([cloud(12, 1), asymmetric(12), cloud(12, 2)])
    result = minimize(problem, memetic_nsga2(**operators), ("n_gen", 2), seed=1)
    assert np.array_equal(problem.tour_lengths(result.X), result.F)


def test_each_tour_is_improved_by_what_it_is_good_at():
    problem = MultiObjectiveTSP([cloud(50, 1), cloud(50, 2)])
    ends = [minimize(part, GPUMemetic(backend="cpu"), ("n_gen", 20), seed=1).X for part in problem.parts]
    improved = LocalSearchRepair(backend="cpu").do(problem, Population.new("X", np.array(ends)))
    lengths = problem.tour_lengths(improved.get("X"))
    # weights are 1 and 0, and 0 and 1: short tours by one objective stay as short
    assert np.all(lengths.diagonal() <= problem.tour_lengths(ends).diagonal())


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("operator", [LocalSearchRepair, MergeCrossover])
def test_an_engine_is_made_once_for_a_problem_and_weights(operator, several, monkeypatch):
    made = []

    def count(problem):
        made.append(problem)
        return as_instance(problem)

    monkeypatch.setattr(operators, "as_instance", count)
    problem = MultiObjectiveTSP([cloud(30, 1), cloud(30, 2)]) if several else cloud(30)
    rng, one = np.random.default_rng(1), operator()
    for turn in range(40):
        X = np.array([rng.permutation(30) for _ in range(12)])
        if operator is LocalSearchRepair:
            one.do(problem, Population.new("X", X), random_state=rng)
        else:
            families = [Population.new("X", X[i : i + 2]) for i in range(0, 12, 2)]
            one.do(problem, families, random_state=rng)
        if turn == 19:
            first = len(made)
    # two weights in eighths are nine pairs
    assert len(made) == 1 if not several else first <= len(made) <= 9
    other = MultiObjectiveTSP([cloud(30, 3), cloud(30, 4)]) if several else cloud(30, 3)
    if operator is LocalSearchRepair:
        one.do(other, Population.new("X", X), random_state=rng)
        assert len(made) > first


def test_engines_of_weights_are_dropped_where_they_would_fill_the_memory(monkeypatch):
    monkeypatch.setattr(operators, "_KEPT_BYTES", 3 * 8 * 30**2)
    problem, one = MultiObjectiveTSP([cloud(30, 1), cloud(30, 2)]), LocalSearchRepair(backend="cpu")
    X = np.array([np.random.default_rng(seed).permutation(30) for seed in range(12)])
    for _ in range(3):
        one.do(problem, Population.new("X", X), random_state=np.random.default_rng(1))
        assert 1 <= len(one._cache[1]) <= 3


def test_merged_children_are_never_longer_than_a_parent_by_default():
    problem, rng = cloud(40, 5), np.random.default_rng(1)
    families = [
        Population.new(
            "X",
            np.array([rng.permutation(40), NearestNeighbourSampling().do(problem, 1, random_state=rng)[0].X]),
        )
        for _ in range(60)
    ]
    children = MergeCrossover().do(problem, families, random_state=rng).get("X")
    best = [problem.tour_lengths(family.get("X")).min() for family in families]
    assert (problem.tour_lengths(children) <= best).all()


def mutated(mutation, X, seed=2):
    pop = Population.new("X", X)
    return mutation.do(None, pop, random_state=np.random.default_rng(seed)).get("X")


def test_insertion_makes_every_move_of_one_item_alike_and_swap_every_exchange():
    """Of four items: 12 moves of one to another position, 3 of them made in two ways; 6 exchanges."""
    X = np.tile(np.arange(4), (12_000, 1))
    moves = [np.insert(np.delete(X[0], i), j, i) for i in range(4) for j in range(4) if i != j]
    swaps = [np.choose(X[0] == i, [np.choose(X[0] == j, [X[0], i]), j]) for i in range(4) for j in range(i)]
    for mutation, expected in ((InsertionMutation(), moves), (SwapMutation(), swaps)):
        shares = Counter(tuple(map(int, row)) for row in expected)
        found = Counter(tuple(row) for row in mutated(mutation, X).tolist())
        assert found.keys() == shares.keys()
        for row, ways in shares.items():
            mean = 12_000 * ways / len(expected)
            assert abs(found[row] - mean) < 5 * np.sqrt(mean)
    np.testing.assert_array_equal(X, np.arange(4)[None].repeat(12_000, axis=0))


@pytest.mark.parametrize("cls", [DoubleBridgeMutation, InsertionMutation, SwapMutation])
def test_a_mutation_changes_the_share_of_tours_that_prob_says(cls):
    X = np.tile(np.arange(9), (4000, 1))
    changed = (mutated(cls(prob=0.3), X) != X).any(axis=1).sum()
    assert abs(changed - 1200) < 5 * np.sqrt(4000 * 0.3 * 0.7)  # 0.3 twice would be 360
    np.testing.assert_array_equal(mutated(cls(prob=0.0), X), X)
    with pytest.raises(ValueError, match="prob must be in"):
        cls(prob=1.5)
    two = mutated(cls(), np.array([[0, 1]]))
    assert sorted(two[0]) == [0, 1]


@pytest.mark.parametrize("cls", [InsertionMutation, SwapMutation])
def test_a_ga_with_them_solves_what_has_no_distances(cls):
    class Order(ElementwiseProblem):
        def __init__(self):
            super().__init__(n_var=6, n_obj=1, xl=0, xu=5, vtype=int)

        def _evaluate(self, x, out, *args, **kwargs):
            out["F"] = sum(x[i] > x[j] for i in range(6) for j in range(i + 1, 6))

    ga = GA(20, sampling=PermutationRandomSampling(), crossover=OrderCrossover(), mutation=cls())
    result = minimize(Order(), ga, ("n_gen", 40), seed=1)
    assert result.X.tolist() == list(range(6))
    with pytest.raises(TypeError, match=f"{cls.__name__}.* of pymoo_gpuaco.operators"):
        minimize(Order(), GPUMMAS(), ("n_gen", 1))
