"""Instances, trails and a check of every step, for the tests of the CUDA colony."""

from __future__ import annotations

import numpy as np

from pymoo_gpuaco.colony.parameters import ColonyParameters
from pymoo_gpuaco.colony.trails import TrailUpdate
from pymoo_gpuaco.problems import TSP
from pymoo_gpuaco.problems.instance import Instance
from tests.instances import listed_instance


def colony(instance, **parameters):
    from pymoo_gpuaco.backends.cuda.engine import CudaColony

    return CudaColony(instance, ColonyParameters(**parameters))


def use(engine) -> None:
    """Call everything that a colony has."""
    n, m, edges = engine.instance.n, engine.n_ants, [[0, 1], [1, 2]]
    tour = np.arange(n, dtype=np.int32)
    engine.reset_trails(0.5)
    engine.greedy_tour()
    for key in (1, 2**64 - 1):
        assert engine.construct(key).shape == (m,)
        assert engine.tours([0]).shape == (1, n)
        engine.update_trails(TrailUpdate(0.1, ((tour, 0.5),), on_tours_only=True))
        if engine.parameters.memory != "selective":
            engine.update_trails(
                TrailUpdate(0.1, ((tour, 0.5),), tau_min=0.1, tau_max=2.0, colony_amount=1.0)
            )
            engine.update_trails(TrailUpdate(0.1, colony_amount=1.0))
            engine.set_trails(edges, [1.0, 2.0])
            assert engine.trails_of(edges).shape == (2,)
    engine.accept(tour[None], [1.0])
    engine.improve(np.tile(tour, (m + 7, 1)), 1)
    engine.import_state(engine.export_state())


def random_instance(n: int, k: int = 32, seed: int = 1, metric: str = "EXACT") -> Instance:
    rng = np.random.default_rng(seed)
    return listed_instance(TSP(rng.uniform(0, 1000, (n, 2)), metric=metric), k)


def set_trails(engine, tau, rest: float = 0.0) -> None:
    """``rest`` is the trail that most edges share, as the engine would know it."""
    state = engine.export_state()
    state["tau"] = np.asarray(tau, np.float32)
    state["rest"] = np.full(1, rest, np.float32)
    engine.import_state(state)


def symmetric_noise(n: int, seed: int = 5, low: float = 0.05) -> np.ndarray:
    tau = np.random.default_rng(seed).uniform(low, 1.0, (n, n)) ** 2
    return np.float32(np.maximum(tau, tau.T))


def distances_of(instance: Instance) -> np.ndarray:
    """Unrounded distances (n, n); 1 on the diagonal."""
    coords = instance.coords
    d = (
        np.linalg.norm(coords[:, None] - coords[None], axis=2)
        if instance.symmetric
        else instance.matrix.copy()
    )
    np.fill_diagonal(d, 1.0)
    return d


def is_permutation(tours: np.ndarray) -> bool:
    return bool((np.sort(tours, axis=1) == np.arange(tours.shape[1])).all())


def all_tours(engine) -> np.ndarray:
    return engine.tours(np.arange(engine.n_ants))


def check_choices(engine, tau, candidates=None, common: float = 0.0) -> None:
    """Build tours on trails ``tau``, and check every step; ``common``: see ``set_trails``."""
    set_trails(engine, tau, common)
    engine.construct(12345)
    weights = (
        tau.astype(float) ** engine.parameters.alpha
        * distances_of(engine.instance) ** -engine.parameters.beta
    )
    check_steps(all_tours(engine), weights, candidates, weights, engine.parameters.q0)


def check_steps(tours, weights, candidates, greedy, q0=0.0) -> None:
    """Every step of every tour against the probabilities it must have had.

    ``weights`` (n, n) of all edges; ``candidates`` (n, k) limits the choice, None: all cities. Where no candidate is
    open, the open city with the largest ``greedy`` weight must follow. With probability ``q0`` the candidate of largest
    weight is taken (ACS). The score of one (step, city) is its
    count less the sum of its probabilities, over the standard deviation of that sum; the squares of them all follow
    a chi-square distribution closely enough for a bound that right code fails less than once in a million runs.
    """
    m, n = tours.shape
    assert is_permutation(tours)
    allowed = np.ones((n, n), bool)
    if candidates is not None:
        allowed[:] = False
        np.put_along_axis(allowed, candidates, True, axis=1)
    np.fill_diagonal(allowed, False)
    open_cities = np.ones((m, n), bool)
    everyone = np.arange(m)
    open_cities[everyone, tours[:, 0]] = False
    statistic, freedom = 0.0, 0
    for step in range(1, n):
        here, chosen = tours[:, step - 1], tours[:, step]
        p = weights[here] * open_cities * allowed[here]
        total = p.sum(axis=1)
        stuck = total == 0
        if stuck.any():
            best = np.where(open_cities[stuck], greedy[here[stuck]], -1.0).argmax(axis=1)
            np.testing.assert_array_equal(chosen[stuck], best)
        p[~stuck] /= total[~stuck, None]
        largest = p.argmax(axis=1)
        p *= 1.0 - q0
        p[everyone[~stuck], largest[~stuck]] += q0
        assert (p[~stuck, chosen[~stuck]] > 0).all()
        observed = np.bincount(chosen[~stuck], minlength=n)
        variance = (p * (1 - p)).sum(axis=0)
        cells = variance > 5
        statistic += (((observed - p.sum(axis=0)) ** 2)[cells] / variance[cells]).sum()
        freedom += int(cells.sum())
        open_cities[everyone, chosen] = False
    assert freedom > 0
    assert abs(statistic - freedom) < 6 * np.sqrt(2 * freedom)
