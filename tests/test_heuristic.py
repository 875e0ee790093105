"""A heuristic of the user's: ants weigh edges by it, and nothing else changes."""

import copy

import numpy as np
import pytest
from pymoo.optimize import minimize

from pymoo_gpuaco import GPUACS, GPUBWAS, GPUEAS, GPUFACO, GPUMMAS, TSP, load_tsp
from pymoo_gpuaco.backends.cpu.colony import CpuColony
from pymoo_gpuaco.candidates.heuristic import with_heuristic
from pymoo_gpuaco.colony.parameters import ColonyParameters
from tests.algorithm_cases import BACKEND
from tests.engine_cases import BACKENDS, COLONIES, asymmetric, cloud, colony, instance_for


def inverse(problem):
    with np.errstate(divide="ignore"):
        return 1.0 / problem.D


def assert_same_tours(problem, backend, **parameters):
    """Two generations of a colony with the heuristic 1 / D are those of the default, with a deposit between them."""
    runs = []
    for given in ({}, {"heuristic": inverse(problem)}):
        engine = colony(problem, backend, deterministic=True, **parameters, **given)
        engine.construct(5)
        state = engine.export_state()
        noise = np.random.default_rng(2).uniform(0.2, 1.0, state["tau"].shape)
        engine.import_state(
            {**state, "tau": np.float32(noise + noise.T if len(noise) == len(noise.T) else noise)}
        )
        engine.construct(6)
        runs.append((engine.tours(range(engine.n_ants)), engine.lengths(), engine.greedy_tour()[1]))
    assert all(np.array_equal(one, two) for one, two in zip(*runs, strict=True))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("way", COLONIES)
@pytest.mark.parametrize("symmetric", [True, False], ids=["symmetric", "asymmetric"])
def test_one_over_whole_distances_gives_the_tours_of_the_default(way, symmetric, backend):
    problem = TSP(matrix=cloud(45, 9).D) if symmetric else asymmetric(45)
    search = COLONIES[way].get("local_search")
    if not symmetric and search is not None and search.moves != "2opt+oropt":
        pytest.skip("2-opt needs a symmetric instance")
    assert_same_tours(problem, backend, **{"candidate_list_size": 8, "beta": 3.0, **COLONIES[way]})


@pytest.mark.parametrize("kind", ["quadrant", "alpha"])
def test_also_with_lists_of_other_kinds_and_over_coordinates(kind):
    problem = cloud(60, 4)
    runs = [
        minimize(problem, GPUMMAS(5, candidates=kind, heuristic=eta, backend="cpu"), ("n_gen", 4), seed=1)
        for eta in (None, inverse(problem), lambda given: inverse(given))
    ]
    assert np.array_equal(runs[0].X, runs[1].X)
    assert np.array_equal(runs[0].algorithm.trails(), runs[1].algorithm.trails())
    assert np.array_equal(runs[1].algorithm.trails(), runs[2].algorithm.trails())


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("unit", [1.0, 2.0**-90])
@pytest.mark.parametrize(
    ("selection", "k"), [("rwm", None), ("wrs", None), ("hybrid", None), ("rwm", 15), ("wrs", 15)]
)
def test_cities_are_drawn_by_trail_and_heuristic(selection, k, unit, backend):
    """First steps from 3 of 4000 ants' start cities: tau^alpha eta^beta, also for a zero and in a tiny unit."""
    problem, n = cloud(16, 8), 16
    eta = np.random.default_rng(1).uniform(0.1, 1.0, (n, n))
    eta[2, 3] = 0.0
    engine = colony(
        problem,
        backend,
        n_ants=4000,
        candidate_list_size=k,
        selection=selection,
        beta=1.5,
        heuristic=unit * eta,
    )
    noise = np.random.default_rng(7).uniform(0.1, 1.0, (n, n))
    engine.import_state({**engine.export_state(), "tau": np.float32(noise + noise.T)})
    counts = np.zeros((n, n))
    for key in range(3):
        engine.construct(key)
        tours = engine.tours(range(4000))
        np.add.at(counts, (tours[:, 0], tours[:, 1]), 1)
    assert counts[2, 3] == 0
    weights = (noise + noise.T) * eta**1.5
    np.fill_diagonal(weights, 0.0)
    expected = weights / weights.sum(axis=1, keepdims=True) * counts.sum(axis=1, keepdims=True)
    cells = expected > 0
    # 16 rows of 15 free cities, without [2, 3]: 223 degrees of freedom, whose 99.99 % quantile is 307
    assert ((counts - expected)[cells] ** 2 / expected[cells]).sum() < 307


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("way", ["rwm", "candidate memory", "acs sync", "acs selective"])
def test_ants_whose_candidates_are_visited_take_the_best_by_heuristic(way, backend):
    """Cities in a ring of strong values are followed, whatever their distances, where lists have one city."""
    problem, n = cloud(30, 5), 30
    eta = np.full((n, n), 1e-3)
    eta[np.arange(n), (np.arange(n) + 1) % n] = 1.0
    parameters = {**COLONIES[way], "candidate_list_size": 1, "beta": 10.0}
    engine = colony(problem, backend, n_ants=20, heuristic=eta, **parameters)
    engine.construct(3)
    tours = engine.tours(range(20))
    listed = engine.instance.neighbours[tours[:, :-1], 0]
    fresh = np.array(
        [[c not in tour[: p + 1] for p, c in enumerate(row)] for tour, row in zip(tours, listed, strict=True)]
    )
    follows = tours[:, 1:] == (tours[:, :-1] + 1) % n
    free = np.array([[(tour[p] + 1) % n not in tour[: p + 1] for p in range(n - 1)] for tour in tours])
    decided = ~fresh & free
    assert decided.sum() > 20
    assert follows[decided].all()


@pytest.mark.parametrize("cls", [GPUMMAS, GPUACS, GPUBWAS, GPUEAS])
def test_a_run_with_a_heuristic_goes_on_in_a_copy(cls):
    problem = cloud(30)
    eta = np.random.default_rng(3).random((30, 30)) + 0.1
    whole = minimize(
        problem, cls(6, heuristic=eta, local_search=False, backend=BACKEND), ("n_gen", 6), seed=1
    )
    part = cls(6, heuristic=eta, local_search=False, backend=BACKEND).setup(
        problem, termination=("n_gen", 6), seed=1
    )
    part.next()
    rest = copy.deepcopy(part)
    rest.run()
    assert np.array_equal(whole.X, rest.result().X)
    plain = minimize(problem, cls(6, local_search=False, backend=BACKEND), ("n_gen", 6), seed=1)
    assert not np.array_equal(plain.algorithm.trails(), whole.algorithm.trails())
    assert "heuristic=..," in f"{part!r},".replace(")", ",")


@pytest.mark.parametrize(
    ("eta", "words"),
    [
        (np.ones((3, 4)), r"be an \(n, n\) array, got .* of shape \(3, 4\)"),
        ([[0, 1, 1], [1, 0, -1.0], [1, 1, 0]], r"finite and >= 0, got -1.0 at \[1, 2\]"),
        ([[0, 1, np.inf], [1, 0, 1], [1, 1, 0]], r"finite and >= 0, got inf at \[0, 2\]"),
        ([[5, 1, 1], [0, 5, 0], [1, 1, 5]], r"positive value in every row, got zeros in row 1"),
        ([[0, 1, 1], [1, 0, 1e-16], [1, 1, 0]], r"factor of at most 1e\+15, got 1e-16 and 1"),
    ],
)
def test_values_without_a_meaning_are_refused(eta, words):
    with pytest.raises(ValueError, match=f"(?s)heuristic must .*{words}"):
        GPUMMAS(heuristic=eta)
    with pytest.raises(ValueError, match=f"(?s){words}"):
        GPUMMAS(heuristic=lambda problem: eta).setup(cloud(3))


def test_the_wrong_size_and_a_colony_without_weights_are_refused():
    with pytest.raises(ValueError, match=r"heuristic must have shape \(52, 52\), got \(3, 3\)"):
        GPUMMAS(heuristic=np.ones((3, 3)), backend=BACKEND).setup(load_tsp("berlin52"))
    with pytest.raises(TypeError, match=r"heuristic must be an .* or a function, got 'near'"):
        GPUMMAS(heuristic="near")
    with pytest.raises(ValueError, match="heuristic must be None for GPUFACO"):
        GPUFACO(heuristic=np.ones((3, 3)))


def test_memory_that_does_not_suffice_is_named(monkeypatch):
    problem = cloud(20)
    parameters = ColonyParameters(
        n_ants=2, candidate_list_size=8, memory="candidate", heuristic=np.ones((20, 20))
    )
    monkeypatch.setattr("pymoo_gpuaco.backends.cpu.colony._free_bytes", lambda: 3199)
    with pytest.raises(MemoryError, match="without heuristic"):  # 8 bytes of 400 edges
        CpuColony(instance_for(problem, parameters), parameters)


def test_scales_of_a_row_without_a_candidate_are_those_of_other_cities():
    instance = instance_for(cloud(6), ColonyParameters(candidate_list_size=2))
    eta = np.full((6, 6), 0.25)
    eta[0, instance.neighbours[0]] = 0.0
    eta[1, instance.neighbours[1]] = 0.5, 0.0
    weighed = with_heuristic(instance, eta)
    assert list(weighed.nearest) == [4.0, 2.0, 4.0, 4.0, 4.0, 4.0]
    assert list(weighed.farthest) == [4.0, 2.0, 4.0, 4.0, 4.0, 4.0]
    assert weighed.least_distance == 2.0
