"""Properties of engines, tours from outside, and improving given tours."""

import copy

import numpy as np
import pytest
from pymoo.core.evaluator import Evaluator
from pymoo.core.population import Population

from pymoo_gpuaco import GPUAS
from pymoo_gpuaco.algorithms.tour import canonical
from tests.algorithm_cases import every_colony, small
from tests.engine_cases import BACKENDS, cloud, colony


@pytest.mark.parametrize("backend", BACKENDS)
class TestEngines:
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


def evaluated_with(algorithm, problem, guest):
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
    evaluated_with(algorithm, problem, guest)
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
