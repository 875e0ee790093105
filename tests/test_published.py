"""Published parameters: every row of the table makes a colony that runs, and its arguments do what they say."""

from dataclasses import fields

import numpy as np
import pytest
from pymoo.optimize import minimize

import pymoo_gpuaco
from pymoo_gpuaco import ALL_ALGORITHMS, GPUACS, GPUBWAS, GPUFACO, GPUMMAS, LocalSearch, load_tsp
from pymoo_gpuaco.algorithms.colony import AntColony
from pymoo_gpuaco.colony.published import PUBLISHED, SOURCES
from pymoo_gpuaco.colony.trails import best_so_far_deposits
from tests.algorithm_cases import BACKEND
from tests.engine_cases import cloud

COLONIES = [cls for cls in ALL_ALGORITHMS.values() if issubclass(cls, AntColony)]


def test_every_colony_has_published_parameters_of_known_sources():
    assert {row.algorithm for row in PUBLISHED} == {cls.__name__ for cls in COLONIES}
    assert {row.source for row in PUBLISHED} == set(SOURCES)
    keys = [(row.algorithm, row.source, row.local_search) for row in PUBLISHED]
    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize("row", PUBLISHED, ids=lambda row: f"{row.algorithm}-{row.source}-{row.local_search}")
def test_every_row_is_set_by_arguments_and_runs(row):
    cls = getattr(pymoo_gpuaco, row.algorithm)
    assert set(row.arguments) <= {field.name for field in fields(cls)}
    colony = cls.published(row.local_search, row.source, backend=BACKEND)
    assert {name: getattr(colony, name) for name in row.arguments} == dict(row.arguments)
    assert (LocalSearch.of(colony.local_search) is not None) == row.local_search
    few = {"n_ants": 3} if row.arguments["n_ants"] else {}
    algorithm = minimize(
        cloud(20), cls.published(row.local_search, row.source, **few), ("n_gen", 3)
    ).algorithm
    if not few and not row.local_search:
        assert algorithm.engine.n_ants == 20  # one ant a city


def test_values_that_a_paper_with_these_colonies_would_cite():
    mmas = GPUMMAS.published()
    assert (mmas.rho, mmas.n_ants, mmas.tau_min, mmas.candidate_list_size) == (0.02, None, "cities", None)
    searched = GPUMMAS.published(local_search=True)
    assert (searched.rho, searched.n_ants, searched.tau_min, searched.local_search) == (0.2, 25, "2n", "2opt")
    assert GPUMMAS.published("windows", rho=0.3).local_search == "windows"
    assert GPUMMAS.published("windows", rho=0.3).rho == 0.3
    paper = GPUMMAS.published(True, source="skinderowicz-2020")
    assert (paper.n_ants, paper.rho, paper.candidate_list_size) == (800, 0.1, 32)
    acs = GPUACS.published()
    assert (acs.n_ants, acs.q0, acs.xi, acs.rho, acs.candidate_list_size) == (10, 0.9, 0.1, 0.1, None)

    class Mine(GPUMMAS):
        """A subclass has the parameters of its base."""

    assert Mine.published().rho == 0.02


def test_what_is_not_published_is_refused_with_what_is():
    with pytest.raises(ValueError, match=r"GPUFACO, got None with local_search=False: 'skinderowicz-2022'"):
        GPUFACO.published()
    with pytest.raises(ValueError, match=r"got 'uchida-2012' with local_search=False: 'stuetzle-hoos-2000'"):
        GPUMMAS.published(source="uchida-2012")


@pytest.mark.parametrize(
    ("tau_min", "expected"),
    [
        # p = 0.05^(1 / 30) = 0.904966; (1 - p) / p = 0.105013; c - 1 = 10 / 2 - 1 and 30 / 2 - 1
        ("candidates", 0.105013 / 4.0),
        ("cities", 0.105013 / 14.0),
        ("2n", 1.0 / 60.0),
    ],
)
def test_forms_of_tau_min(tau_min, expected):
    algorithm = GPUMMAS(4, candidate_list_size=10, tau_min=tau_min, rho=0.25, backend=BACKEND)
    algorithm.setup(cloud(30), termination=("n_gen", 2), seed=1).next()
    low, high = algorithm._limits(algorithm._unit)
    assert high == pytest.approx(4.0)
    assert low / high == pytest.approx(expected, rel=1e-5)


def test_the_best_tour_deposits_in_every_kth_iteration():
    assert [i for i in range(80) if best_so_far_deposits(i, 25)] == [24, 49, 74]
    assert not any(best_so_far_deposits(i, "iteration_best") for i in range(300))
    assert [i for i in range(40) if best_so_far_deposits(i)] == [24, 29, 34, 39]
    tours = [
        minimize(
            cloud(30), GPUMMAS(4, deposit=rule, local_search=False, backend=BACKEND), ("n_gen", 30), seed=1
        ).algorithm.trails()
        for rule in ("iteration_best", 10**9, 1)
    ]
    assert np.array_equal(tours[0], tours[1])
    assert not np.array_equal(tours[0], tours[2])


@pytest.mark.parametrize("pheromone", ["dense", "candidate"])
def test_smoothing_moves_trails_by_a_share_towards_tau_max(pheromone):
    algorithm = GPUMMAS(4, candidate_list_size=5, smoothing=0.25, pheromone=pheromone, backend=BACKEND)
    algorithm.setup(cloud(30), termination=("n_gen", 9), seed=1)
    for _ in range(5):
        algorithm.next()
    before = algorithm.trails("candidates")
    algorithm._smooth(8.0)
    assert algorithm.trails("candidates") == pytest.approx(before + 0.25 * (8.0 - before), rel=1e-6)


def test_the_length_of_a_run_sets_the_strength_of_mutations():
    colony = GPUBWAS(4, mutation_iterations=None, restart_below=0.0, backend=BACKEND)
    algorithm = colony.setup(cloud(30), termination=("n_gen", 10), seed=1)
    for _ in range(6):
        algorithm.next()
    assert algorithm._progress() == 0.6
    assert algorithm._share_of_run() == pytest.approx(0.6)
    algorithm._restart_trails()
    for _ in range(2):
        algorithm.next()
    assert algorithm._share_of_run() == pytest.approx((0.8 - 0.6) / (1.0 - 0.6))
    for _ in range(2):
        algorithm.next()
    assert algorithm._share_of_run() == 1.0
    unknown = GPUBWAS(4, mutation_iterations=None, restart_below=0.0, backend=BACKEND).setup(
        cloud(30), termination=("fmin", 1e-9), seed=1
    )
    unknown.next()
    assert unknown._share_of_run() == pytest.approx(unknown._iteration / 1000.0)


def test_acs_without_lists_weighs_all_cities():
    problem = load_tsp("berlin52")
    runs = [
        minimize(
            problem,
            GPUACS(4, candidate_list_size=k, local_search=False, backend=BACKEND),
            ("n_gen", 5),
            seed=1,
        )
        for k in (None, 51, 5)
    ]
    assert runs[0].algorithm.instance.k == 51
    assert np.array_equal(runs[0].X, runs[1].X)
    assert not np.array_equal(runs[0].X, runs[2].X)
    with pytest.raises(
        ValueError, match=r"in \[1, 1024\] for GPUACS with more than 1025 cities, got None for 1026"
    ):
        GPUACS(4, candidate_list_size=None, backend=BACKEND).setup(cloud(1026), seed=1)
