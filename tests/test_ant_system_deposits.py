"""Who deposits in GPUAS: updates told to the engine, worked out for four ants."""

import numpy as np
import pytest

from pymoo_gpuaco import GPUAS
from pymoo_gpuaco.colony.trails import TrailUpdate
from tests.algorithm_cases import BACKEND
from tests.engine_cases import cloud


def started(**arguments):
    """An algorithm before its first tell, with C_g = 60 as the unit; the updates that its engine got."""
    algorithm = GPUAS(4, backend=BACKEND, **arguments).setup(cloud(12), termination=("n_gen", 9), seed=1)
    infills = algorithm.ask()
    algorithm._unit = 60.0
    updates = []
    algorithm.engine.update_trails = updates.append
    return algorithm, infills, updates


def told(algorithm, infills, length):
    infills.set("F", np.array([[length]]))
    algorithm.tell(infills=infills)
    return infills[0].X


@pytest.mark.filterwarnings("ignore:the problem's objective")
@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({}, {"colony_amount": 60.0}),
        # the best so far has length 30: 60 / 30 = 2, times its weight
        ({"deposit": "elitist"}, {"amount": 8.0, "colony_amount": 60.0}),
        ({"deposit": "elitist", "best_weight": 3}, {"amount": 6.0, "colony_amount": 60.0}),
        ({"deposit": "ranked"}, {"amount": 12.0, "ranked": (300.0, 240.0, 180.0, 120.0)}),
        ({"deposit": "ranked", "best_weight": 3}, {"amount": 6.0, "ranked": (120.0, 60.0)}),
        ({"deposit": "ranked", "best_weight": 1}, {"amount": 2.0}),
        ({"deposit": "best_worst"}, {"amount": 2.0, "worst_amount": -60.0}),
        ({"deposit": "best_worst", "best_weight": 5}, {"amount": 10.0, "worst_amount": -60.0}),
    ],
    ids=str,
)
def test_update(arguments, expected):
    algorithm, infills, updates = started(**arguments)
    best = told(algorithm, infills, 30.0)
    told(algorithm, algorithm.ask(), 40.0)  # the best so far stays
    expected = dict(expected)
    amount = expected.pop("amount", None)
    for update in updates:
        assert [a for _, a in update.deposits] == ([] if amount is None else [amount])
        assert all(np.array_equal(tour, best) for tour, _ in update.deposits)
        rest = TrailUpdate(0.5, deposits=update.deposits, **expected)
        assert (update.ranked, update.worst_amount, update.colony_amount) == (
            rest.ranked,
            rest.worst_amount,
            rest.colony_amount,
        )
    assert len(updates) == 2


@pytest.mark.filterwarnings("ignore:the problem's objective")
def test_given_tours_deposit_as_the_ants_would():
    given = np.array([np.random.default_rng(s).permutation(12) for s in range(3)])
    algorithm, infills, updates = started(sampling=given, deposit="ranked", best_weight=3)
    infills.set("F", np.array([[40.0], [20.0], [30.0]]))
    algorithm.tell(infills=infills)
    ((update),) = updates
    # best so far and rank 1: tour 1 with 3 * 60 / 20 and 2 * 60 / 20; rank 2: tour 2 with 60 / 30
    rows = infills.get("X")
    assert [amount for _, amount in update.deposits] == [9.0, 6.0, 2.0]
    for (tour, _), row in zip(update.deposits, (1, 1, 2), strict=True):
        assert np.array_equal(tour, rows[row])
    assert update.ranked == ()


@pytest.mark.parametrize("deposit", ["elitist", "ranked", "best_worst"])
def test_runs_repeat_and_learn(deposit):
    problem = cloud(30)
    lengths = []
    for _ in range(2):
        algorithm = GPUAS(20, deposit=deposit, backend=BACKEND)
        algorithm.setup(problem, termination=("n_gen", 60), seed=3).run()
        lengths.append(algorithm.opt[0].F[0])
        tau = algorithm.engine.export_state()["tau"]
        assert np.isfinite(tau).all()
        assert tau.min() >= 0.0
    assert lengths[0] == lengths[1]
    random = [problem.tour_length(np.random.default_rng(s).permutation(30)) for s in range(20)]
    assert lengths[0] < 0.5 * np.mean(random)
