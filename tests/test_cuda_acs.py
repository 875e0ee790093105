"""Ant Colony System on CUDA: its three variants against step-by-step references on the host. Needs a CUDA device."""

from __future__ import annotations

import numpy as np
import pytest

from pymoo_gpuaco.backends.cpu import trails as trail_memory
from pymoo_gpuaco.colony.trails import TrailUpdate
from pymoo_gpuaco.problems import TSP
from tests.acs_cases import (
    RELAXED,
    SELECTIVE,
    SYNC,
    VARIANTS,
    Memory,
    distances_of,
    edges_updated,
    matrix_instance,
    walk_in_order,
    walk_together,
)
from tests.cuda_cases import (
    all_tours,
    check_steps,
    colony,
    random_instance,
    set_trails,
    symmetric_noise,
)
from tests.instances import listed_instance

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize(("n", "k", "m"), [(37, 8, 20000), (70, 40, 4000)])
@pytest.mark.parametrize(("alpha", "q0"), [(1.0, 0.0), (1.0, 0.6), (1.5, 0.9)])
def test_choices_have_the_exact_distribution(variant, n, k, m, alpha, q0):
    """Greedy with probability q0, else drawn: every step of every tour, on trails that stay as they are."""
    instance = random_instance(n, k)
    engine = colony(
        instance, n_ants=m, candidate_list_size=k, alpha=alpha, q0=q0, xi=0.0, **VARIANTS[variant]
    )
    if variant == "selective":
        engine.reset_trails(0.2)
        rng = np.random.default_rng(0)
        for _ in range(3):
            tour = rng.permutation(n).astype(np.int32)
            engine.update_trails(TrailUpdate(0.3, ((tour, 1.0),), on_tours_only=True))
        state = engine.export_state()
        tau = np.full((n, n), state["rest"][0])
        held = state["ids"] >= 0
        tau[np.nonzero(held)[0], state["ids"][held]] = state["tau"][held]
    else:
        tau = symmetric_noise(n)
        set_trails(engine, tau)
    engine.construct(12345)
    weights = tau.astype(float) ** alpha * distances_of(instance) ** -2.0
    check_steps(all_tours(engine), weights, instance.neighbours, weights, q0=q0)


@pytest.mark.parametrize("memory", ["dense", "candidate"])
@pytest.mark.parametrize("period", [1, 3])
@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize(("n", "k", "m"), [(60, 8, 40), (45, 40, 300), (30, 5, 5000), (3, 2, 2)])
def test_sync_steps_in_two_phases(memory, period, symmetric, n, k, m):
    """Greedy ants: tours and trails of three iterations are those of the reference, city by city."""
    instance = random_instance(n, k) if symmetric else matrix_instance(n, k)
    engine = colony(
        instance,
        n_ants=m,
        candidate_list_size=k,
        memory=memory,
        q0=1.0,
        xi=0.2,
        local_update_period=period,
        **SYNC,
    )
    engine.reset_trails(0.5)
    tau = symmetric_noise(n).astype(float) if symmetric else np.random.default_rng(5).uniform(0.1, 1, (n, n))
    tau = np.float32(tau).astype(float)
    set_trails(engine, tau if memory == "dense" else np.take_along_axis(tau, instance.neighbours, axis=1))
    for key in range(3):
        engine.construct(key)
        tours = all_tours(engine)
        starts = tours[:, 0]
        d = distances_of(instance)
        expected = walk_together(
            d, instance.neighbours, tau, memory == "dense", starts, 0.2, 0.5, period, symmetric
        )
        np.testing.assert_array_equal(tours, expected)
        found = engine.export_state()["tau"]
        if memory == "dense":
            off = ~np.eye(n, dtype=bool)
            np.testing.assert_allclose(found[off], tau[off], rtol=2e-6)
        else:
            np.testing.assert_allclose(found, np.take_along_axis(tau, instance.neighbours, axis=1), rtol=2e-6)


@pytest.mark.parametrize("in_shared", [True, False])
def test_sync_repeats_itself_wherever_its_ants_are_kept(in_shared, monkeypatch):
    from pymoo_gpuaco.backends.cuda.walks import acs

    instance = random_instance(300, 16)
    runs = []
    for run in range(2):
        if run and not in_shared:
            monkeypatch.setattr(acs, "STATIC_SHARED_BYTES", 1 << 30)
        engine = colony(instance, n_ants=900, candidate_list_size=16, q0=0.9, xi=0.1, **SYNC)
        engine.reset_trails(1.0)
        for key in range(3):
            best = int(engine.construct(key).argmin())
            engine.update_trails(TrailUpdate(0.1, ((engine.tours([best])[0], 30.0),), on_tours_only=True))
        runs.append((all_tours(engine), engine.export_state()["tau"]))
    for one, other in zip(*runs, strict=True):
        np.testing.assert_array_equal(one, other)


ORDERED = {"deterministic": True}


@pytest.mark.parametrize("memory", ["dense", "candidate", "selective"])
@pytest.mark.parametrize("period", [1, 2])
@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize(("n", "k", "width"), [(40, 6, 4), (45, 40, 40), (3, 2, 1)])
def test_ants_in_order_walk_as_the_reference(memory, period, symmetric, n, k, width):
    """Greedy ants one after another: tours, trails, and what each ring holds where."""
    m, xi, tau0 = 12, 0.2, 0.3
    instance = random_instance(n, k) if symmetric else matrix_instance(n, k)
    engine = colony(
        instance,
        n_ants=m,
        candidate_list_size=k,
        q0=1.0,
        xi=xi,
        local_update_period=period,
        trails_per_node=width,
        **{**RELAXED, "memory": memory},
        **ORDERED,
    )
    engine.reset_trails(tau0)
    reference = Memory(instance, memory, width, tau0)
    rng = np.random.default_rng(1)
    for key in range(3):
        tour = rng.permutation(n).astype(np.int32)
        engine.update_trails(TrailUpdate(0.3, ((tour, 5.0),), on_tours_only=True))
        trail_memory.blend_tour(reference.trails, tour, 0.3, 5.0, symmetric)
        engine.construct(key)
        tours = all_tours(engine)
        expected = walk_in_order(reference, tours[:, 0], xi, tau0, period, symmetric)
        np.testing.assert_array_equal(tours, expected)
        state = engine.export_state()
        np.testing.assert_allclose(state["tau"], reference.trails.tau, rtol=1e-5)
        if memory == "selective":
            np.testing.assert_array_equal(state["ids"], reference.trails.ids)
            np.testing.assert_array_equal(state["tail"], reference.trails.tail)


def test_the_oldest_trail_is_overwritten():
    """Five cities, two slots: tours worked out by hand push edges through city 0's ring."""
    instance = listed_instance(TSP([[0, 0], [10, 0], [20, 0], [30, 0], [40, 0]], "EUC_2D"), 4)
    engine = colony(instance, n_ants=1, candidate_list_size=4, xi=0.5, trails_per_node=2, **SELECTIVE)
    engine.reset_trails(1.0)

    def reinforce(*tour):
        update = TrailUpdate(0.5, ((np.array(tour, np.int32), 3.0),), on_tours_only=True)
        engine.update_trails(update)
        state = engine.export_state()
        return list(state["ids"][0]), list(state["tau"][0]), int(state["tail"][0])

    # 0 has the neighbours 4 (written first, by the edge that closes the tour) and 1; slot 1 comes before slot 0
    assert reinforce(0, 1, 2, 3, 4) == ([1, 4], [2.0, 2.0], 0)
    # 4 is held: 2 -> 2.5; 2 is new: it takes slot 1, the older, which held 4, and starts from 1 -> 2
    assert reinforce(0, 2, 1, 3, 4) == ([1, 2], [2.0, 2.0], 1)
    # 3 takes slot 0; then 2 is still held: 2 -> 2.5
    assert reinforce(0, 2, 1, 4, 3) == ([3, 2], [2.0, 2.5], 0)


@pytest.mark.parametrize("way", ["sync", "relaxed, in order", "relaxed, one ant", "selective, one ant"])
@pytest.mark.parametrize("period", [1, 2, 5, 45, 46])
def test_the_update_period_is_kept_exactly(way, period):
    """c updates bring a trail to tau0 + (1 - xi)^c (tau - tau0); the closing edge of 45 cities is the 45th."""
    n, k, xi, tau0 = 45, 6, 0.25, 0.2
    m = 1 if way.endswith("one ant") else 50
    variant = VARIANTS[way.split(",")[0]]
    instance = random_instance(n, k)
    engine = colony(
        instance,
        n_ants=m,
        candidate_list_size=k,
        q0=0.5,
        xi=xi,
        local_update_period=period,
        trails_per_node=n,
        **variant,
        deterministic=way.endswith("in order"),
    )
    engine.reset_trails(tau0)
    tour = np.random.default_rng(0).permutation(n).astype(np.int32)
    # 0.5 on the edges of one tour, tau0 on all others
    engine.update_trails(TrailUpdate(0.5, ((tour, 0.8),), on_tours_only=True))
    tau = np.full((n, n), tau0)
    tau[tour, np.roll(tour, -1)] = tau[np.roll(tour, -1), tour] = 0.5
    engine.construct(3)
    counts = edges_updated(all_tours(engine), period, symmetric=True)
    assert counts.sum() == 2 * m * (n // period)
    expected = tau0 + (tau - tau0) * (1.0 - xi) ** counts
    state = engine.export_state()
    if way.startswith("selective"):
        for city in range(n):
            held = state["ids"][city] >= 0
            np.testing.assert_allclose(
                state["tau"][city, held], expected[city, state["ids"][city, held]], rtol=1e-5
            )
            touched = (counts[city] > 0) | (tau[city] == 0.5)
            assert set(state["ids"][city, held]) == set(np.flatnonzero(touched))
    else:
        off = ~np.eye(n, dtype=bool)
        np.testing.assert_allclose(state["tau"][off], expected[off], rtol=1e-5)
