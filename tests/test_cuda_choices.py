"""The walks of the CUDA colony: every choice against the probability it must have had. Needs a CUDA device."""

from __future__ import annotations

import numpy as np
import pytest

from pymoo_gpuaco.colony.selection import RULES
from pymoo_gpuaco.colony.trails import TrailUpdate
from tests.cuda_cases import (
    all_tours,
    check_choices,
    check_steps,
    colony,
    distances_of,
    is_permutation,
    random_instance,
    set_trails,
    symmetric_noise,
)
from tests.engine_cases import EXACT_AT_FIRST

pytestmark = pytest.mark.gpu

SELECTIONS = ("rwm", "wrs")
TABUS = ("list", "compact", "bitmask")
ALL_CITY_RULES = ("rwm", "wrs", "auto")


@pytest.mark.parametrize("selection", SELECTIONS)
@pytest.mark.parametrize("tabu", TABUS)
@pytest.mark.parametrize(("n", "k", "m"), [(37, 8, 20000), (70, 40, 4000), (33, 32, 8000), (40, 5, 20000)])
@pytest.mark.parametrize(("alpha", "beta"), [(1.0, 2.0), (1.5, 3.0)])
def test_candidate_choices_have_the_exact_distribution(selection, tabu, n, k, m, alpha, beta):
    instance = random_instance(n, k)
    engine = colony(
        instance, n_ants=m, candidate_list_size=k, selection=selection, tabu=tabu, alpha=alpha, beta=beta
    )
    check_choices(engine, symmetric_noise(n), instance.neighbours)


@pytest.mark.parametrize(
    ("selection", "tabu"),
    [(s, t) for s in ALL_CITY_RULES for t in ("auto", *TABUS)] + [(s, "auto") for s in EXACT_AT_FIRST],
)
@pytest.mark.parametrize(("n", "m"), [(45, 8000), (150, 1500)])
@pytest.mark.parametrize(("alpha", "beta"), [(1.0, 2.0), (0.5, 1.0)])
def test_choices_among_all_cities_have_the_exact_distribution(selection, tabu, n, m, alpha, beta):
    engine = colony(
        random_instance(n, 8),
        n_ants=m,
        candidate_list_size=None,
        selection=selection,
        tabu=tabu,
        alpha=alpha,
        beta=beta,
        switch=None if selection == "auto" or RULES[selection].exact else 1.0,  # exact all the way
    )
    check_choices(engine, symmetric_noise(n))


@pytest.mark.parametrize("n", [20, 70])
def test_cities_whose_trails_are_all_lost_follow_in_the_order_of_their_numbers(n):
    engine = colony(random_instance(n, 8), n_ants=50, candidate_list_size=None)
    tau = np.zeros((n, n))
    tau[:, n // 2 :] = 1.0  # the others are left when all of these are visited
    set_trails(engine, tau)
    engine.construct(3)
    tours = all_tours(engine)
    assert is_permutation(tours)
    for tour in tours:
        lost = tour[1:][tour[1:] < n // 2]
        np.testing.assert_array_equal(tour[-len(lost) :], lost)
        assert (np.diff(lost) > 0).all()


def test_candidate_memory_falls_back_to_the_nearest_city():
    instance = random_instance(200, 6)
    engine = colony(instance, n_ants=500, candidate_list_size=6, memory="candidate")
    tau = np.random.default_rng(3).uniform(0.1, 1.0, (200, 6)).astype(np.float32)
    set_trails(engine, tau)
    engine.construct(1)
    weights = np.zeros((200, 200))
    np.put_along_axis(weights, instance.neighbours, tau * instance.neighbour_distances**-2.0, axis=1)
    check_steps(all_tours(engine), weights, instance.neighbours, 1.0 / distances_of(instance))


def raised_trails(instance, common: float, count: int) -> np.ndarray:
    """Trails that are `common`, but for candidates and `count` others a city, which are stronger."""
    n = instance.n
    rng = np.random.default_rng(7)
    tau = np.full((n, n), common, np.float32)
    candidates = rng.uniform(common, 1.0, instance.neighbours.shape)
    np.put_along_axis(tau, instance.neighbours, candidates.astype(np.float32), axis=1)
    for i in range(n):
        others = np.setdiff1d(np.arange(n), [i, *instance.neighbours[i]])
        chosen = rng.choice(others, min(count, len(others)), replace=False)
        tau[i, chosen] = 2.0 ** -rng.uniform(0, 6, len(chosen))
    return tau


@pytest.mark.parametrize("raised", [0, 3, 20, 60])
@pytest.mark.parametrize("k", [6, 32, 40])
@pytest.mark.parametrize(("alpha", "beta"), [(1.0, 2.0), (0.7, 3.0)])
@pytest.mark.parametrize("all_cities", [True, False])
def test_strong_edges_outside_the_lists_keep_the_distribution(raised, k, alpha, beta, all_cities):
    instance = random_instance(110, k)
    engine = colony(
        instance,
        n_ants=6000,
        candidate_list_size=None if all_cities else k,
        selection="auto" if all_cities else "wrs",
        alpha=alpha,
        beta=beta,
    )
    tau = raised_trails(instance, 0.01, raised)
    check_choices(engine, tau, None if all_cities else instance.neighbours, 0.01)


@pytest.mark.parametrize("colony_amount", [0.0, 50.0])
def test_raised_edges_are_the_strongest_and_the_bound_is_that_of_all_others(colony_amount):
    n = 150
    instance = random_instance(n, 6)
    engine = colony(instance, n_ants=200, candidate_list_size=6)
    engine.reset_trails(0.4)
    engine.construct(0)
    rng = np.random.default_rng(0)
    for step in range(5):
        tour = rng.permutation(n).astype(np.int32)
        update = TrailUpdate(0.3, ((tour, 0.3),), colony_amount=colony_amount, tau_min=0.01, tau_max=1.0)
        engine.update_trails(update)
        state = engine.export_state()
        tau, common = state["tau"].copy(), float(state["rest"][0])
        engine.construct(step + 1)
        bound, raised = np.empty(n, np.float32), np.empty((n, 32), np.uint16)
        with engine.device.working():
            engine.device.read(bound, "outside_bound")
            engine.device.read(raised, "raised")
        np.fill_diagonal(tau, 0.0)
        np.put_along_axis(tau, instance.neighbours, 0.0, axis=1)
        for i in range(n):
            listed = raised[i][raised[i] != i].astype(int)
            others = np.setdiff1d(np.arange(n), listed)
            assert len(np.unique(listed)) == len(listed)
            assert bound[i] == tau[i, others].max()
            assert (tau[i, listed] > bound[i]).all()
            above = (tau[i] > common).sum()
            assert len(listed) == above if above <= 32 else len(listed) > 0 or colony_amount > 0
