"""Operators inside pymoo's own GA, and on their own."""

import copy
import pickle

import numpy as np
import pytest
from pymoo.algorithms.soo.nonconvex.ga import GA
from pymoo.core.population import Population
from pymoo.operators.crossover.ox import OrderCrossover
from pymoo.operators.mutation.inversion import InversionMutation
from pymoo.operators.sampling.rnd import PermutationRandomSampling
from pymoo.optimize import minimize

from pymoo_gpuaco.operators import AntColonySampling, LocalSearchRepair, NearestNeighbourSampling
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


def test_nearest_neighbour_samples_start_everywhere_before_they_repeat():
    X = NearestNeighbourSampling().do(cloud(30), 30, random_state=np.random.default_rng(0)).get("X")
    assert sorted(X[:, 0]) == list(range(30))


@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_samples_are_far_shorter_than_random_tours(sampling):
    problem = cloud(200)
    ours, random = (
        problem.tour_lengths(s.do(problem, 20, random_state=np.random.default_rng(0)).get("X")).mean()
        for s in (sampling(), PermutationRandomSampling())
    )
    assert ours < 0.5 * random


def test_repair_makes_every_tour_locally_optimal():
    problem = cloud(100, 3)
    X = PermutationRandomSampling().do(problem, 8, random_state=np.random.default_rng(0)).get("X")
    before = problem.tour_lengths(X)
    repair = LocalSearchRepair()
    once = repair.do(problem, Population.new("X", X.copy())).get("X")
    assert np.all(problem.tour_lengths(once) < 0.5 * before)
    again = repair.do(problem, Population.new("X", once.copy())).get("X")
    assert np.array_equal(problem.tour_lengths(again), problem.tour_lengths(once))


def test_a_memetic_ga_beats_the_plain_one_in_ten_generations():
    problem = cloud(150, 4)

    def run(**operators):
        algorithm = GA(
            pop_size=20,
            crossover=OrderCrossover(),
            mutation=InversionMutation(),
            eliminate_duplicates=False,
            **{"sampling": PermutationRandomSampling(), **operators},
        )
        return minimize(problem, algorithm, ("n_gen", 10), seed=1).F[0]

    plain = run()
    memetic = run(sampling=AntColonySampling(), repair=LocalSearchRepair())
    assert memetic < 0.5 * plain


@pytest.mark.parametrize("operator", [*SAMPLINGS, LocalSearchRepair])
def test_copies_and_pickles_leave_the_instance_out(operator):
    used = operator()
    used._instance(cloud(20), 5)
    for other in (copy.deepcopy(used), pickle.loads(pickle.dumps(used))):
        assert other._last is None
        assert used._last is not None


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: AntColonySampling(beta=-1.0), "beta"),
        (lambda: AntColonySampling(candidate_list_size=0), "candidate_list_size"),
        (lambda: AntColonySampling(backend="gpu"), "backend"),
        (lambda: LocalSearchRepair(local_search=False), "local_search"),
        (lambda: LocalSearchRepair(local_search="3opt"), "local_search"),
        (lambda: NearestNeighbourSampling(candidate_list_size=1.5), "candidate_list_size"),
    ],
)
def test_bad_arguments_are_named(make, words):
    with pytest.raises((ValueError, TypeError), match=words):
        make()
