"""Requirements of every engine, on every instance and with every way of building tours."""

from itertools import product

import numpy as np
import pytest
from scipy import stats

from pymoo_gpuaco.backends import ColonyEngine
from pymoo_gpuaco.colony.parameters import LocalSearch
from pymoo_gpuaco.colony.selection import RULES
from pymoo_gpuaco.colony.trails import TrailUpdate
from pymoo_gpuaco.problems import TSP
from tests.engine_cases import BACKENDS, COLONIES, EXACT_AT_FIRST, INSTANCES, asymmetric, cloud, colony

pytestmark = pytest.mark.parametrize("backend", BACKENDS)


def supports(problem: TSP, parameters: dict) -> bool:
    search = parameters.get("local_search")
    return problem.symmetric or search is None or search.moves == "2opt+oropt"


def assert_permutations(tours, n):
    assert np.array_equal(np.sort(tours, axis=1), np.broadcast_to(np.arange(n), tours.shape))


@pytest.mark.parametrize("way", COLONIES)
@pytest.mark.parametrize("name", INSTANCES)
def test_tours_are_permutations_and_lengths_exact(name, way, backend):
    problem = INSTANCES[name]
    if not supports(problem, COLONIES[way]):
        pytest.skip("2-opt needs a symmetric instance")
    engine = colony(problem, backend, **COLONIES[way])
    assert isinstance(engine, ColonyEngine)
    lengths = engine.construct(7)
    tours = engine.tours(np.arange(engine.n_ants))
    assert_permutations(tours, problem.n_cities)
    for ant in (int(lengths.argmin()), engine.n_ants - 1):
        assert np.array_equal(engine.tours([ant])[0], tours[ant])
    # sums of whole numbers are exact in any order; others differ by rounding
    expected = problem.tour_lengths(tours)
    if problem.integral:
        assert np.array_equal(lengths, expected)
    else:
        assert lengths == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("way", COLONIES)
def test_the_key_decides_everything(way, backend):
    problem = cloud(45, 9)
    # ACS ants that change each other's trails as they walk keep to an order only if asked to
    one, two = (colony(problem, backend, **COLONIES[way], deterministic=True) for _ in range(2))
    for key in (3, 2**63 + 5):
        assert np.array_equal(one.construct(key), two.construct(key))
        assert np.array_equal(one.tours(range(6)), two.tours(range(6)))
    one.construct(4)
    assert not np.array_equal(one.tours(range(6)), two.tours(range(6)))


@pytest.mark.parametrize("n_ants", [1, 2, 7])
def test_an_ant_does_not_depend_on_how_many_walk_with_it(n_ants, backend):
    problem = cloud(45, 9)
    few, many = (colony(problem, backend, n_ants=m, local_search=LocalSearch()) for m in (n_ants, 9))
    few.construct(5)
    many.construct(5)
    assert np.array_equal(few.tours(range(n_ants)), many.tours(range(n_ants)))


@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize(("k", "memory"), [(None, "dense"), (3, "dense"), (3, "candidate")])
def test_the_whole_colony_deposits_one_over_its_lengths(k, memory, symmetric, backend):
    problem = cloud(6, 3) if symmetric else asymmetric(6, 3)
    engine = colony(problem, backend, n_ants=3, candidate_list_size=k, memory=memory, selection="wrs")
    lengths = engine.construct(1)
    tours = engine.tours(range(3))
    engine.update_trails(TrailUpdate(0.25, colony_amount=100.0, tau_max=1.2))
    expected = np.full((6, 6), 0.75)
    for tour, length in zip(tours, lengths, strict=True):
        for i, j in zip(tour, np.roll(tour, -1), strict=True):
            expected[i, j] += 100.0 / length
            if symmetric:
                expected[j, i] += 100.0 / length
    expected = np.minimum(expected, 1.2)
    if memory == "candidate":
        expected = np.take_along_axis(expected, engine.instance.neighbours.astype(int), axis=1)
    assert engine.export_state()["tau"] == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(
    "parameters",
    [{"selection": s, "candidate_list_size": k} for s in ("rwm", "wrs") for k in (None, 31)]
    + [{"selection": s, "candidate_list_size": None} for s in EXACT_AT_FIRST],
    ids=str,
)
def test_the_first_step_has_the_exact_distribution(parameters, backend):
    # weights tau^alpha / d^beta from the start city, over 4000 ants
    problem = cloud(32, 8)
    engine = colony(problem, backend, n_ants=4000, alpha=1.0, beta=2.0, **parameters)
    counts = np.zeros((32, 32))
    for key in range(3):
        engine.construct(key)
        tours = engine.tours(range(4000))
        np.add.at(counts, (tours[:, 0], tours[:, 1]), 1)
    assert stats.chisquare(counts.sum(axis=1)).pvalue > 1e-4  # start cities are uniform
    distances = problem.D + np.diag(np.full(32, np.inf))
    shortest = distances.min() / 2 if distances.min() > 0 else distances[distances > 0].min() / 2
    weights = np.maximum(distances, shortest) ** -2.0
    expected = weights / weights.sum(axis=1, keepdims=True) * counts.sum(axis=1, keepdims=True)
    statistic, cells = 0.0, 0
    for row, mean in zip(counts, expected, strict=True):
        rare = mean < 8
        merged = np.append(row[~rare], row[rare].sum())
        means = np.append(mean[~rare], mean[rare].sum())
        statistic += ((merged - means)[means > 0] ** 2 / means[means > 0]).sum()
        cells += int((means > 0).sum()) - 1
    assert stats.chi2.sf(statistic, cells) > 1e-4


EXACT_RULES = ("auto", *EXACT_AT_FIRST, "rwm", "wrs")


def built_on_noise(n, backend, n_ants, **parameters):
    """Tours (m, n) of a colony on trails of noise, and the weights (n, n) they were drawn by."""
    problem = cloud(n, 12, "EXACT")
    engine = colony(problem, backend, n_ants=n_ants, candidate_list_size=None, **parameters)
    state = engine.export_state()
    noise = np.random.default_rng(7).uniform(0.05, 1.0, (n, n)) ** 2
    state["tau"] = np.float32(np.maximum(noise, noise.T))
    engine.import_state(state)
    engine.construct(31)
    weights = state["tau"] * (problem.D + np.eye(n)) ** -2.0
    np.fill_diagonal(weights, 0.0)
    return engine.tours(np.arange(n_ants)), weights


def places_in_distribution(tours, step, probabilities):
    """P value of the choices after ``step`` cities, given what each ant had visited.

    ``probabilities(here, open)`` -> (m, n). Where an ant's choice falls in its own distribution, cities in order of
    their probability, is uniform on (0, 1) if that distribution is the true one.
    """
    m, n = tours.shape
    is_open = np.ones((m, n), bool)
    np.put_along_axis(is_open, tours[:, :step].astype(int), False, axis=1)
    p = probabilities(tours[:, step - 1], is_open)
    order = np.argsort(p, axis=1, kind="stable")
    p = np.take_along_axis(p, order, axis=1)
    place = np.argmax(order == tours[:, step, None], axis=1)
    upto = np.take_along_axis(np.cumsum(p, axis=1), place[:, None], axis=1)[:, 0]
    chosen = np.take_along_axis(p, place[:, None], axis=1)[:, 0]
    assert (chosen > 0).all()
    uniform = upto - np.random.default_rng(step).random(m) * chosen
    return stats.chisquare(np.histogram(uniform, 20, (0.0, 1.0))[0]).pvalue


def in_proportion_to(weights):
    def probabilities(here, is_open):
        p = weights[here] * is_open
        return p / p.sum(axis=1, keepdims=True)

    return probabilities


@pytest.mark.parametrize("selection", EXACT_RULES)
def test_exact_rules_at_the_start_at_half_and_at_99_percent(selection, backend):
    # switch 1: acceptance all the way, as the tournament is not exact
    switch = None if selection == "auto" or RULES[selection].exact else 1.0
    tours, weights = built_on_noise(200, backend, 6000, selection=selection, switch=switch)
    for visited in (1, 100, 198):
        assert places_in_distribution(tours, visited, in_proportion_to(weights)) > 1e-4
        # the same check sees a bias
        assert places_in_distribution(tours, visited, in_proportion_to(np.sqrt(weights))) < 1e-4


def tournament_of(weights, size):
    """Exact probabilities of a tournament: every way to draw ``size`` open cities, a wheel among them."""
    known = {}

    def probabilities(here, is_open):
        result = np.zeros(is_open.shape)
        for row, (i, some) in enumerate(zip(here, is_open, strict=True)):
            key = (int(i), some.tobytes())
            if key not in known:
                known[key] = np.zeros(len(some))
                draws = list(product(np.flatnonzero(some), repeat=size))
                for draw in draws:
                    own = weights[i, list(draw)]
                    np.add.at(known[key], list(draw), own / own.sum() / len(draws))
            result[row] = known[key]
        return result

    return probabilities


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_the_tournament_has_its_own_distribution(size, backend):
    # from the first step on
    tours, weights = built_on_noise(
        7, backend, 8000, selection="acceptance_tournament", switch=0.0, tournament_size=size
    )
    assert_permutations(tours, 7)
    for step in (1, 4):
        assert places_in_distribution(tours, step, tournament_of(weights, size)) > 1e-4
        assert places_in_distribution(tours, step, in_proportion_to(weights)) < 1e-4


def test_a_tournament_larger_than_a_warp(backend):
    # of two open cities a is drawn K times of 40, K binomial: P(a) = E[K w_a / (K w_a + (40 - K) w_b)]
    tours, weights = built_on_noise(
        7, backend, 20000, selection="acceptance_tournament", switch=0.0, tournament_size=40
    )
    drawn = np.arange(41)
    chance = stats.binom.pmf(drawn, 40, 0.5)

    def probabilities(here, is_open):
        a, b = np.nonzero(is_open)[1].reshape(-1, 2).T
        wa, wb = weights[here, a], weights[here, b]
        shares = drawn * wa[:, None] / (drawn * wa[:, None] + (40 - drawn) * wb[:, None])
        p = np.zeros(is_open.shape)
        p[np.arange(len(here)), a] = shares @ chance
        p[np.arange(len(here)), b] = 1 - shares @ chance
        return p

    assert places_in_distribution(tours, 5, probabilities) > 1e-4


def test_the_switch_is_where_it_is_set(backend):
    # tournaments of one city ignore weights: with half of 40 cities visited they take over
    tours, weights = built_on_noise(
        40, backend, 4000, selection="acceptance_tournament", switch=0.5, tournament_size=1
    )
    even = in_proportion_to(np.ones((40, 40)))
    assert places_in_distribution(tours, 19, in_proportion_to(weights)) > 1e-4
    assert places_in_distribution(tours, 20, in_proportion_to(weights)) < 1e-4
    assert places_in_distribution(tours, 20, even) > 1e-4
    assert places_in_distribution(tours, 38, even) > 1e-4


@pytest.mark.parametrize("way", COLONIES)
def test_an_imported_state_continues_bit_by_bit(way, backend):
    problem = cloud(40, 2)
    original, copy = (colony(problem, backend, **COLONIES[way], deterministic=True) for _ in range(2))
    acs = COLONIES[way].get("xi", 0) > 0
    original.construct(1)
    best = original.tours([0])[0]
    original.update_trails(TrailUpdate(0.1, ((best, 0.5),), on_tours_only=acs))
    copy.import_state(original.export_state())
    for engine in (original, copy):
        engine.construct(2)
    assert np.array_equal(original.tours(range(6)), copy.tours(range(6)))


def test_a_state_of_another_instance_is_refused(backend):
    state = colony(cloud(30), backend).export_state()
    with pytest.raises(ValueError, match="state"):
        colony(cloud(31), backend).import_state(state)


def test_the_greedy_tour_goes_to_the_nearest_open_city(backend):
    problem = TSP([[0, 0], [10, 0], [11, 0], [30, 0], [13, 0]], "EUC_2D")
    tour, length = colony(problem, backend).greedy_tour()
    assert list(tour) == [0, 1, 2, 4, 3]
    assert length == 10 + 1 + 2 + 17 + 30


def test_improving_given_tours_shortens_them(backend):
    problem = cloud(60, 2)
    engine = colony(problem, backend, local_search=LocalSearch())
    tours = np.array([np.random.default_rng(s).permutation(60) for s in range(6)])
    improved, lengths = engine.improve(tours, 1)
    assert_permutations(improved, 60)
    assert np.array_equal(lengths, problem.tour_lengths(improved))
    assert np.all(lengths < 0.6 * problem.tour_lengths(tours))


@pytest.mark.parametrize("moves", ["2opt", "windows"])
def test_moves_that_turn_paths_refuse_an_asymmetric_instance(moves, backend):
    with pytest.raises(ValueError, match="symmetric"):
        colony(asymmetric(10), backend, local_search=LocalSearch(moves))


def test_local_evaporation_of_many_ants_is_by_their_number(backend):
    # 48 ants, twice the 24 for which it is 0.1
    problem = cloud(40, 3)
    built = []
    for xi in (None, 0.05, 0.1):
        engine = colony(
            problem, backend, n_ants=48, selection="pseudo_random_proportional", q0=0.9, xi=xi, beta=2.0
        )
        engine.reset_trails(1.0)
        tour = engine.greedy_tour()[0]
        engine.update_trails(TrailUpdate(0.5, ((tour, 50.0),), on_tours_only=True))
        engine.construct(1)
        built.append(engine.tours(range(48)))
    assert np.array_equal(built[0], built[1])
    assert not np.array_equal(built[0], built[2])


# ---- hill climbers ----------------------------------------------------------------------------------------------
