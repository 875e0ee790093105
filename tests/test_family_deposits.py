"""Who deposits in the family of Ant System: updates sent to the engine, worked out for four ants."""

import numpy as np
import pytest

from pymoo_gpuaco import GPUAS, GPUEAS, GPURAS
from pymoo_gpuaco.colony.trails import TrailUpdate
from tests.algorithm_cases import BACKEND
from tests.engine_cases import cloud

N = 12


def started(cls, **arguments):
    """An algorithm before its first tell, with C_g = 60 as the unit; the updates that its engine got."""
    # one elite: the lengths below are made up, and no reason to evaluate all tours
    algorithm = cls(4, n_elites=1, backend=BACKEND, **arguments)
    infills = algorithm.setup(cloud(N), termination=("n_gen", 9), seed=1).ask()
    algorithm._unit = 60.0
    updates = []
    algorithm.engine.update_trails = updates.append
    return algorithm, infills, updates


def evaluated(algorithm, infills, length):
    infills.set("F", np.array([[length]]))
    algorithm.tell(infills=infills)
    return infills[0].X


@pytest.mark.filterwarnings("ignore:the problem's objective")
@pytest.mark.parametrize(
    ("cls", "arguments", "expected"),
    [
        (GPUAS, {}, {"colony_amount": 60.0}),
        # the best so far has length 30: 60 / 30 = 2, times its weight, as many as cities by default
        (GPUEAS, {}, {"amount": 24.0, "colony_amount": 60.0}),
        (GPUEAS, {"elitist_weight": 3}, {"amount": 6.0, "colony_amount": 60.0}),
        (GPUEAS, {"elitist_weight": 0}, {"amount": 0.0, "colony_amount": 60.0}),
        (GPURAS, {}, {"amount": 12.0, "ranked": (300.0, 240.0, 180.0, 120.0)}),
        (GPURAS, {"ranks": 3}, {"amount": 6.0, "ranked": (120.0, 60.0)}),
    ],
    ids=str,
)
def test_update(cls, arguments, expected):
    algorithm, infills, updates = started(cls, **arguments)
    best = evaluated(algorithm, infills, 30.0)
    evaluated(algorithm, algorithm.ask(), 40.0)  # the best so far stays
    expected = dict(expected)
    amount = expected.pop("amount", None)
    for update in updates:
        assert [a for _, a in update.deposits] == ([] if amount is None else [amount])
        assert all(np.array_equal(tour, best) for tour, _ in update.deposits)
        rest = TrailUpdate(0.5, deposits=update.deposits, **expected)
        assert (update.ranked, update.colony_amount) == (rest.ranked, rest.colony_amount)
    assert len(updates) == 2


@pytest.mark.parametrize(
    ("cls", "arguments", "first"),
    [
        # (e + m) / rho, e cities and m ants, and 0.5 w (w - 1) / rho
        (GPUEAS, {}, (12 + 4) / 0.5),
        (GPUEAS, {"elitist_weight": 6, "rho": 0.1}, (6 + 4) / 0.1),
        (GPURAS, {}, 0.5 * 6 * 5 / 0.1),
        (GPURAS, {"ranks": 2, "rho": 0.5}, 0.5 * 2 * 1 / 0.5),
    ],
    ids=str,
)
def test_first_trail(cls, arguments, first):
    algorithm = cls(4, backend=BACKEND, **arguments).setup(cloud(N), termination=("n_gen", 9), seed=1)
    algorithm.ask()
    assert algorithm.engine.export_state()["tau"] == pytest.approx(first)


@pytest.mark.filterwarnings("ignore:the problem's objective")
def test_given_tours_deposit_as_the_ants_would():
    given = np.array([np.random.default_rng(s).permutation(N) for s in range(3)])
    algorithm, infills, updates = started(GPURAS, sampling=given, ranks=3)
    infills.set("F", np.array([[40.0], [20.0], [30.0]]))
    algorithm.tell(infills=infills)
    ((update),) = updates
    # best so far and rank 1: tour 1 with 3 * 60 / 20 and 2 * 60 / 20; rank 2: tour 2 with 60 / 30
    rows = infills.get("X")
    assert [amount for _, amount in update.deposits] == [9.0, 6.0, 2.0]
    for (tour, _), row in zip(update.deposits, (1, 1, 2), strict=True):
        assert np.array_equal(tour, rows[row])
    assert update.ranked == ()
