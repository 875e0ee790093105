"""Selection rules, local searches and colonies of a user, in Python."""

import copy
import itertools
import pickle

import numpy as np
import pytest
from pymoo.optimize import minimize

from pymoo_gpuaco import GPUACS, GPUAS, GPUBWAS, GPUFACO, GPUMMAS, GPURAS, LocalSearch, checkpoint, load_tsp
from pymoo_gpuaco.algorithms.colony import AntColony
from pymoo_gpuaco.backends import make_improver
from pymoo_gpuaco.backends.cpu.construct import UNFINISHED
from pymoo_gpuaco.backends.cpu.own_rule import build_tours
from pymoo_gpuaco.backends.cuda.engine import lacks
from pymoo_gpuaco.colony.parameters import ColonyParameters
from pymoo_gpuaco.colony.trails import TrailUpdate
from tests.algorithm_cases import BACKEND
from tests.engine_cases import BACKENDS, cloud, colony
from tests.instances import listed_instance
from tests.tour_cases import random_tours


def heaviest(weights, candidates, uniform):
    """The candidate of largest weight: no randomness."""
    return weights.argmax(axis=1)


def wheel(weights, candidates, uniform):
    """Roulette wheel."""
    return (weights.cumsum(axis=1) < (uniform * weights.sum(axis=1))[:, None]).sum(axis=1)


def greedy(problem, start, k=None):
    """Nearest-neighbour tour of the problem, ties to the lower city."""
    D, tour = problem.D, [int(start)]
    while len(tour) < len(D):
        d = D[tour[-1]].copy()
        d[tour] = np.inf
        tour.append(int(d.argmin()))
    return tour


@pytest.mark.parametrize("k", [None, 1, 5])
def test_the_rule_of_the_largest_weight_builds_nearest_neighbour_tours(k):
    problem = cloud(30, 7)
    ants = GPUMMAS(6, selection=heaviest, candidate_list_size=k, local_search=False, backend="cpu")
    ants.setup(problem, termination=("n_gen", 2), seed=1).next()
    tours = ants.engine.tours(range(6))
    assert len({tour[0] for tour in tours}) > 1
    assert all(list(tour) == greedy(problem, tour[0]) for tour in tours)
    assert np.array_equal(ants.engine.lengths(), problem.tour_lengths(tours))


def test_a_rule_gets_weights_of_unvisited_candidates_and_uniform_numbers():
    problem, calls = cloud(40, 3), []

    def rule(weights, candidates, uniform):
        calls.append((weights.copy(), candidates.copy(), uniform.copy()))
        return wheel(weights, candidates, uniform)

    ants = GPUAS(3000, selection=rule, candidate_list_size=8, beta=3.0, backend="auto")
    ants.setup(problem, termination=("n_gen", 2), seed=1).next()
    tours = ants.engine.tours(range(3000))
    weights, candidates, _ = calls[0]
    assert np.array_equal(candidates, ants.instance.neighbours[tours[:, 0]])
    shares = weights / weights[:, :1]
    distances = problem.D[tours[:, :1], candidates]
    assert shares == pytest.approx((distances[:, :1] / distances) ** 3)
    assert abs(np.concatenate([u for _, _, u in calls]).mean() - 0.5) < 0.01
    weights, candidates, _ = calls[20]
    assert ((weights > 0) <= (candidates >= 0)).all()
    assert (np.sort(tours, axis=1) == np.arange(40)).all()
    # the second city as from the table: 3000 draws of probability p differ by less than 4 sqrt(p (1 - p) 3000)
    first = (tours[:, 1] == ants.instance.neighbours[tours[:, 0], 0]).mean()
    p = (calls[0][0][:, 0] / calls[0][0].sum(axis=1)).mean()
    assert abs(first - p) < 4 * np.sqrt(p * (1 - p) / 3000)


def test_a_colony_with_a_rule_goes_on_in_copies_and_learns():
    problem = load_tsp("berlin52")
    arguments = {"selection": wheel, "candidate_list_size": 10, "local_search": False, "backend": "cpu"}
    whole = minimize(problem, GPUMMAS(10, rho=0.1, **arguments), ("n_gen", 60), seed=1)
    part = GPUMMAS(10, rho=0.1, **arguments).setup(problem, termination=("n_gen", 60), seed=1)
    for _ in range(20):
        part.next()
    for other in (copy.deepcopy(part), pickle.loads(pickle.dumps(part))):
        other.run()
        assert np.array_equal(other.result().X, whole.X)
    assert whole.F[0] < 1.15 * problem.best_known
    with pytest.raises(TypeError, match="a checkpoint cannot hold objects of"):
        checkpoint.save(part, "unused.zip")


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        (lambda w, c, u: np.zeros(1, int), r"selection must return 4 integers, got shape \(1,\)"),
        (lambda w, c, u: u, r"must return 4 integers, got shape \(4,\) of float64"),
        (lambda w, c, u: np.full(4, 8), r"positions in \[0, 7\] of a positive weight, got 8 in row 0"),
        (lambda w, c, u: w.argmin(axis=1), r"of a positive weight, got \d in row"),
    ],
)
def test_positions_that_are_none_are_refused(rule, words):
    ants = GPUMMAS(4, selection=rule, candidate_list_size=8, backend="cpu")
    with pytest.raises(ValueError, match=words):
        minimize(cloud(12), ants, ("n_gen", 2), seed=1)


def test_only_algorithms_with_an_argument_take_a_rule_and_only_the_cpu():
    with pytest.raises(TypeError, match="GPURAS has no argument 'selection'"):
        GPURAS(selection=wheel)
    with pytest.raises(ValueError, match=r"'wrs' or a function, got 'other'"):
        GPUMMAS(selection="other")
    instance = listed_instance(cloud(12), 8)
    assert "backend='cpu'" in lacks(instance, ColonyParameters(candidate_list_size=8, own_rule=wheel))


def two_opt_of(problem):
    """A local search of another origin: here the package's own, by its operators' engine."""
    improver = make_improver(listed_instance(problem, 10), LocalSearch("2opt", kicks=0.0), "cpu")
    return lambda tours: improver.improve(tours, 0)[0]


@pytest.mark.parametrize("cls", [GPUAS, GPURAS, GPUBWAS, GPUMMAS, GPUACS])
def test_a_function_improves_the_tours_that_deposit(cls):
    problem, seen = cloud(30, 2), []
    search = two_opt_of(problem)

    def function(tours):
        seen.append((tours, search(tours)))
        return seen[-1][1]

    ants = cls(5, local_search=function, candidate_list_size=10, backend=BACKEND)
    ants.setup(problem, termination=("n_gen", 4), seed=1).next()
    given, better = seen[-1]
    assert given.shape == (5, 30)
    assert np.array_equal(ants.engine.tours(range(5)), better)
    assert np.array_equal(ants.engine.lengths(), problem.tour_lengths(better))
    assert ants.opt[0].F[0] == problem.tour_lengths(better).min()
    if cls is GPUAS:  # every ant deposits on its improved tour, after the trails of n have halved
        expected = np.full((30, 30), 15.0)
        for tour, length in zip(better, problem.tour_lengths(better), strict=True):
            for i, j in zip(tour, np.roll(tour, -1), strict=True):
                expected[[i, j], [j, i]] += ants._unit / length
        np.fill_diagonal(expected, 0.0)
        assert ants.trails() == pytest.approx(expected, rel=1e-5)
    copy.deepcopy(ants).run()
    assert "local search function" in ants.describe()


@pytest.mark.parametrize("backend", BACKENDS)
def test_tours_in_place_of_those_of_the_last_construction_deposit(backend):
    problem = cloud(30, 2)
    engine = colony(problem, backend, n_ants=4, candidate_list_size=8)
    engine.construct(1)
    tours = random_tours(30, 4)
    assert np.array_equal(engine.replace_tours(tours), problem.tour_lengths(tours))
    assert np.array_equal(engine.tours(range(4)), tours)
    engine.update_trails(TrailUpdate(0.5, ranked=(1000.0,)))
    lengths = problem.tour_lengths(tours)
    best = tours[lengths.argmin()]
    assert engine.trails_of([best[:2]]) == pytest.approx(0.5 + 1000.0 / lengths.min(), rel=1e-6)
    with pytest.raises(ValueError, match="tours must have 30 cities a row"):
        engine.replace_tours(tours[:, :5])


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda tours: tours[:2], "local_search must return 4 tours, got 2"),
        (lambda tours: np.zeros_like(tours), r"tours of local_search.*row 0"),
        (lambda tours: tours[:, :5], r"tours of local_search must have 12 cities a row, got shape \(4, 5\)"),
    ],
)
def test_what_is_no_tour_is_refused(function, words):
    with pytest.raises(ValueError, match=words):
        minimize(cloud(12), GPUMMAS(4, local_search=function, backend=BACKEND), ("n_gen", 2), seed=1)


def test_the_focused_colony_takes_no_function():
    with pytest.raises(ValueError, match="local_search must be True, False"):
        GPUFACO(local_search=two_opt_of(cloud(12)))
    assert callable(GPUMMAS.published(two_opt_of(cloud(12))).local_search)


class Plain(AntColony):
    """A colony without a decorator: a new default of an argument, and an argument of its own."""

    rho = 0.25
    share: float = 0.5

    def _update(self, evaluated):
        self._apply(evaluated, colony_amount=self.share * self._unit)


def test_a_class_without_a_decorator_has_its_arguments():
    assert (Plain().rho, Plain(7, share=0.1).share, Plain(7).n_ants) == (0.25, 0.1, 7)
    assert repr(Plain(share=0.3)) == "Plain(share=0.3)"
    with pytest.raises(TypeError, match="did you mean share"):
        Plain(shar=0.1)
    algorithm = minimize(cloud(20), Plain(4, share=0.25, backend=BACKEND), ("n_gen", 2), seed=1).algorithm
    assert algorithm.trails().max() > 0
    assert pickle.loads(pickle.dumps(Plain(share=0.2))).share == 0.2


@pytest.mark.parametrize("checks_before", range(6))
def test_a_stop_at_any_check_leaves_whole_or_marked_tours(checks_before):
    answers = itertools.chain([False] * checks_before, itertools.repeat(True))
    tours = np.full((3, 5), 9, np.int32)
    build_tours(
        heaviest,
        np.ones((5, 5)),
        None,
        lambda city, visited: int(visited.argmin()),
        1,
        tours,
        lambda: next(answers),
    )
    whole = checks_before >= 4  # one check before each of four choices
    assert (tours[:, 0] == UNFINISHED).all() != whole
    assert not whole or (np.sort(tours, axis=1) == np.arange(5)).all()
