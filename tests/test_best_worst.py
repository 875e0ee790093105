"""Colonies on few cities: deposits of the family of Ant System, and GPUBWAS with the role it asks of engines."""

from __future__ import annotations

import numpy as np
import pytest

from pymoo_gpuaco import GPUAS, GPUBWAS, GPUEAS, GPURAS
from pymoo_gpuaco.colony.parameters import ColonyParameters
from pymoo_gpuaco.colony.trails import TrailUpdate, draw_mutations, edges_apart
from tests.algorithm_cases import BACKEND
from tests.engine_cases import BACKENDS, asymmetric, cloud, colony

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
        *((cls, {"first_trail": 7.5}, 7.5) for cls in (GPUAS, GPUEAS, GPURAS)),
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


@pytest.mark.parametrize(
    ("selection", "switch", "left"),
    [
        ("hybrid", None, 150),
        ("acceptance_tournament", None, 10),
        ("hybrid", 0.5, 500),
        ("hybrid", 1, 0),
        ("rwm", None, 0),  # never
    ],
)
def test_where_a_rule_changes(selection, switch, left):
    parameters = ColonyParameters(candidate_list_size=None, selection=selection, switch=switch)
    assert parameters.switch_left(1000) == left


@pytest.mark.parametrize(("n", "size"), [(198, 4), (1002, 4), (1003, 8), (2392, 8), (3038, 16)])
def test_the_size_of_a_tournament_is_that_of_the_paper(n, size):
    assert ColonyParameters().resolved_tournament_size(n) == size
    assert ColonyParameters(tournament_size=3).resolved_tournament_size(n) == 3


@pytest.mark.parametrize(
    ("n_ants", "period", "xi"),
    [(1, 1, 0.1), (24, 1, 0.1), (48, 1, 0.05), (48, 2, 0.1), (240, 1, 0.01), (240, 5, 0.05)],
)
def test_many_ants_evaporate_less_each(n_ants, period, xi):
    parameters = ColonyParameters(xi=None, local_update_period=period)
    assert parameters.resolved_xi(n_ants) == pytest.approx(xi)
    assert ColonyParameters(xi=0.3, local_update_period=period).resolved_xi(n_ants) == 0.3


@pytest.mark.parametrize("memory", ["dense", "candidate"])
@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("backend", BACKENDS)
class TestSingleTrails:
    def test_they_are_read_and_set(self, backend, symmetric, memory):
        engine = colony(
            cloud(9) if symmetric else asymmetric(9), backend, memory=memory, candidate_list_size=3
        )
        near = engine.instance.neighbours
        a, b = 0, int(near[0, 0])
        far = next(j for j in range(1, 9) if j not in near[0] and 0 not in near[j])
        engine.set_trails([[a, b], [0, far]], [5.0, 7.0])
        # a memory of candidate edges keeps no trail of the far one: it has what all such edges share, 1
        kept = [5.0, 7.0] if memory == "dense" else [5.0, 1.0]
        assert engine.trails_of([[a, b], [0, far]]).tolist() == kept
        other_way = engine.trails_of([[b, a]])[0]
        assert other_way == (5.0 if symmetric and (memory == "dense" or a in near[b]) else 1.0)
        assert engine.trails_of(np.empty((0, 2), int)).tolist() == []

    def test_what_is_wrong_changes_nothing(self, backend, symmetric, memory):
        engine = colony(
            cloud(9) if symmetric else asymmetric(9), backend, memory=memory, candidate_list_size=3
        )
        for edges, values in (
            ([[0, 9]], [2.0]),
            ([[0, 1]], [-1.0]),
            ([[0, 1]], [np.nan]),
            ([[0, 1]], [1.0, 2.0]),
        ):
            with pytest.raises(ValueError, match=r"edges|values"):
                engine.set_trails(edges, values)
        assert (engine.export_state()["tau"] == 1.0).all()


def test_edges_that_another_tour_does_not_have():
    best = np.array([0, 1, 2, 3, 4], np.int32)
    worst = np.array([0, 2, 1, 4, 3], np.int32)  # 02 21 14 43 30; 12 and 34 are in both
    assert edges_apart(worst, best, True).tolist() == [[0, 2], [1, 4], [3, 0]]
    assert (
        edges_apart(worst, best, False).tolist() == worst[[[0, 1], [1, 2], [2, 3], [3, 4], [4, 0]]].tolist()
    )
    assert edges_apart(best[::-1], best, True).size == 0
    assert edges_apart(np.roll(best, 2), best, False).size == 0


class TestMutations:
    @pytest.mark.parametrize("symmetric", [True, False])
    def test_no_edge_comes_twice_and_none_is_a_loop(self, symmetric):
        for key in range(50):
            edges, signs = draw_mutations(key, 1.0, 5, None, symmetric)
            pairs = np.sort(edges, axis=1) if symmetric else edges
            assert len(np.unique(pairs, axis=0)) == len(edges) == len(signs) <= 5
            assert (edges[:, 0] != edges[:, 1]).all()
            assert set(signs) <= {-1.0, 1.0}
            assert symmetric or len(edges) == 5

    def test_every_city_mutates_with_the_probability_and_to_any_other(self):
        drawn = [draw_mutations(key, 0.3, 10, None, False)[0] for key in range(2000)]
        edges = np.concatenate(drawn)
        # 20,000 trials of 0.3: a mean of 6,000 and a standard deviation of 65; each of 90 edges 66.7 times, 8.2
        assert abs(len(edges) - 6000) < 4 * 65
        counts = np.bincount(edges[:, 0] * 10 + edges[:, 1], minlength=100).reshape(10, 10)
        assert (np.diag(counts) == 0).all()
        assert counts[~np.eye(10, dtype=bool)].min() > 66.7 - 5 * 8.2

    def test_candidates_alone_where_their_trails_alone_are_kept(self):
        neighbours = np.array([[1, 2], [2, 3], [3, 0], [0, 1]], np.int32)
        edges, _ = draw_mutations(3, 1.0, 4, neighbours, False)
        assert all(b in neighbours[a] for a, b in edges)


def after_first(**arguments):
    """One generation of a colony of four on 12 cities; its tours and the trails before and after."""
    algorithm = GPUBWAS(
        4, backend=BACKEND, local_search=False, candidate_list_size=None, rho=0.25, **arguments
    ).setup(cloud(12), termination=("n_gen", 10), seed=1)
    algorithm.next()
    return algorithm, algorithm.engine.tours(range(4)), algorithm.engine.export_state()["tau"].astype(float)


def expected_before_mutation(algorithm, tours):
    """tau_0 evaporates, the best deposits C_g / C, and the worst's own edges evaporate again."""
    lengths = np.array([algorithm.problem.tour_length(tour) for tour in tours])
    best, worst = tours[lengths.argmin()], tours[lengths.argmax()]
    tau = np.full((12, 12), 0.75 / 12)
    edges = {frozenset(edge) for edge in zip(best.tolist(), np.roll(best, -1).tolist(), strict=True)}
    others = {
        frozenset(edge) for edge in zip(worst.tolist(), np.roll(worst, -1).tolist(), strict=True)
    } - edges
    assert others
    for a, b in edges:
        tau[[a, b], [b, a]] += algorithm._unit / lengths.min()
    for a, b in others:
        tau[[a, b], [b, a]] *= 0.75
    return tau, edges


def test_best_deposits_and_the_worst_loses_what_is_its_own():
    algorithm, tours, tau = after_first(mutation_probability=0.0)
    expected, _ = expected_before_mutation(algorithm, tours)
    np.testing.assert_allclose(tau, expected, rtol=1e-6)


def test_mutation():
    algorithm, tours, tau = after_first(
        mutation_probability=1.0, mutation_strength=4.0, mutation_iterations=10**9
    )
    expected, _ = expected_before_mutation(algorithm, tours)
    np.testing.assert_allclose(tau, expected, rtol=1e-6)  # a billionth of the run has passed
    algorithm.mutation_iterations = 10
    algorithm.engine.reset_trails(1.0)
    algorithm._mutate()  # one of ten iterations has passed: 0.1 * 4 * 1, one edge a city, none twice
    change = algorithm.engine.export_state()["tau"] - 1.0
    np.testing.assert_allclose(np.abs(change[change != 0.0]), 0.4, rtol=1e-5)
    assert 6 <= np.count_nonzero(np.triu(change)) <= 12
    algorithm.engine.reset_trails(1.0)
    algorithm.mutation_strength = 100.0
    algorithm._mutate()  # 10 is more than there is: a millionth of the mean trail is left
    assert algorithm.engine.export_state()["tau"].min() == pytest.approx(1e-6)


def test_trails_start_again_when_best_and_worst_have_the_same_edges():
    algorithm, _, tau = after_first(restart_below=1.0)  # no tour has more than all its edges apart
    lengths = algorithm.engine.lengths()
    assert lengths.min() < lengths.max()
    expected = 1.0 / 12 if algorithm._restarted == 1 else None
    assert expected is not None
    assert tau == pytest.approx(expected)
    never, _, _ = after_first(restart_below=0.0)
    assert never._restarted == 0
