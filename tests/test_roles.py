"""Properties of engines, tours from outside, and improving given tours."""

import copy
import pickle

import numpy as np
import pytest
from pymoo.core.evaluator import Evaluator
from pymoo.core.population import Population

from pymoo_gpuaco import GPUAS
from pymoo_gpuaco import operators as repair_module
from pymoo_gpuaco.algorithms.ask_tell import canonical
from pymoo_gpuaco.backends import make_improver
from pymoo_gpuaco.backends.protocol import (
    Accepts,
    ClimberEngine,
    ColonyEngine,
    Improver,
    SearchEngine,
    Stateful,
    Trails,
)
from pymoo_gpuaco.candidates.lists import listed_instance
from pymoo_gpuaco.colony.immigrants import places
from pymoo_gpuaco.colony.parameters import LocalSearch
from pymoo_gpuaco.operators import LocalSearchRepair
from tests.algorithm_cases import every_colony, small
from tests.engine_cases import BACKENDS, asymmetric, climbers, cloud, colony


@pytest.mark.parametrize("backend", BACKENDS)
class TestEngines:
    def test_kind_and_roles(self, backend):
        engine = colony(cloud(9), backend)
        for role in (ColonyEngine, Improver, Trails, Stateful, Accepts):
            assert isinstance(engine, role)
        assert engine.kind == climbers(cloud(9), backend).kind == backend
        assert isinstance(climbers(cloud(9), backend), (ClimberEngine, Stateful))
        assert not isinstance(climbers(cloud(9), backend), (ColonyEngine, Accepts))
        assert not isinstance(engine, SearchEngine)

    def test_accepted_tours_take_the_places_of_longer_ones(self, backend):
        problem = cloud(40, 2)
        engine = colony(problem, backend, n_ants=4)
        before = engine.construct(1)
        own = engine.tours(range(4))
        greedy, length = engine.greedy_tour()
        worse = np.random.default_rng(0).permutation(40)
        assert length < before.max() < problem.tour_length(worse)
        engine.accept([worse, greedy], [2.0, 1.0])
        longest = int(before.argmax())
        assert np.array_equal(engine.tours([longest])[0], greedy)
        others = [ant for ant in range(4) if ant != longest]
        assert np.array_equal(engine.tours(others), own[others])
        expected = before.copy()
        expected[longest] = length
        assert np.array_equal(engine.export_state()["lengths"], expected)
        engine.accept(np.empty((0, 40), np.int32), [])
        assert np.array_equal(engine.export_state()["lengths"], expected)

    @pytest.mark.parametrize("problem", [cloud(50, 1), asymmetric(30)], ids=["symmetric", "asymmetric"])
    def test_a_row_does_not_depend_on_how_many_are_improved_with_it(self, problem, backend):
        n = problem.n_cities
        start = np.array([np.random.default_rng(s).permutation(n) for s in range(5)])
        improver = make_improver(listed_instance(problem, 8), LocalSearch(kicks=1.0), backend)
        tours, lengths = improver.improve(start, 5)
        for few in (1, 3, 0):
            fewer, their = improver.improve(start[:few].reshape(few, n), 5)
            assert np.array_equal(fewer, tours[:few])
            assert np.array_equal(their, lengths[:few])


def test_places_by_hand():
    own, given = np.array([5.0, 9.0, 7.0, 9.0]), np.array([8.0, 8.5, 7.5, 10.0])
    # 8 takes the place of ant 1, of two of length 9 the lower number, 8.5 that of ant 3, 7.5 that of 8.5; 10 finds none
    assert sorted(places(own, given)) == [(1, 0), (3, 2)]
    assert own.tolist() == [5.0, 9.0, 7.0, 9.0]


def told_with(algorithm, problem, guest):
    infills = Population.merge(algorithm.ask(), Population.new("X", guest[None]))
    Evaluator().eval(problem, infills)
    algorithm.tell(infills=infills)


@every_colony
def test_a_guest_reaches_the_engine_and_what_was_handed_out_does_not(cls, monkeypatch):
    problem = cloud(30)
    algorithm = small(cls).setup(problem, termination=("n_gen", 9), seed=1)
    algorithm.next()
    accepted = []
    monkeypatch.setattr(algorithm.engine, "accept", lambda *given: accepted.append(given))
    algorithm.next()
    infills = algorithm.ask()
    Evaluator().eval(problem, infills)
    algorithm.tell(infills=infills[::-1])
    assert not accepted
    guest = np.random.default_rng(3).permutation(30)
    told_with(algorithm, problem, guest)
    ((tours, lengths),) = accepted
    assert np.array_equal(tours, canonical(guest[None], symmetric=True))
    assert lengths == [problem.tour_length(guest)]


def test_a_guest_deposits_as_one_of_the_ants():
    # the guest takes the place of the longest ant, and all six ants deposit
    problem = cloud(30)
    algorithm = small(GPUAS, backend="cpu").setup(problem, termination=("n_gen", 9), seed=1)
    algorithm.next()
    algorithm.ask()
    engine = algorithm.engine
    before, lengths = engine.export_state(), engine.export_state()["lengths"]
    guest, length = engine.greedy_tour(4)
    other = copy.deepcopy(algorithm)
    infills = Population.new("X", guest[None])
    Evaluator().eval(problem, infills)
    other.tell(infills=infills)
    tours = before["tours"].copy()
    tours[lengths.argmax()] = guest
    lengths[lengths.argmax()] = length
    expected = before["tau"] * 0.5
    for tour, its in zip(tours, lengths, strict=True):
        for i, j in zip(tour, np.roll(tour, -1), strict=True):
            expected[[i, j], [j, i]] += algorithm._unit / its
    assert other.engine.export_state()["tau"] == pytest.approx(expected, rel=1e-5)


def test_repair_keeps_its_engine_while_problem_and_arguments_stay(monkeypatch):
    made = []

    def make(*arguments):
        made.append(arguments)
        return make_improver(*arguments)

    monkeypatch.setattr(repair_module, "make_improver", make)
    repair, problem = LocalSearchRepair(backend="cpu"), cloud(20)
    for rows in (4, 7, 1):
        repair.do(problem, Population.new("X", np.tile(np.arange(20), (rows, 1))))
    assert len(made) == 1
    other = pickle.loads(pickle.dumps(repair))
    assert other._built is None
    assert copy.deepcopy(repair)._built is None
    elsewhere = cloud(20, 3)
    repair.do(elsewhere, Population.new("X", np.arange(20)[None]))
    assert len(made) == 2
    repair.local_search = LocalSearch("2opt", kicks=0.0)
    repair.do(elsewhere, Population.new("X", np.arange(20)[None]))
    assert len(made) == 3
