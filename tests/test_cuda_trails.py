"""Evaporation and deposit on CUDA against the CPU engine and numpy. Needs a CUDA device."""

from __future__ import annotations

import numpy as np
import pytest

from pymoo_gpuaco.backends.cpu.colony import CpuColony
from pymoo_gpuaco.colony.parameters import ColonyParameters, LocalSearch
from pymoo_gpuaco.colony.trails import TrailUpdate
from pymoo_gpuaco.problems import TSP
from tests.acs_cases import SELECTIVE
from tests.cuda_cases import all_tours, colony, random_instance
from tests.instances import listed_instance

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("memory", ["dense", "candidate"])
@pytest.mark.parametrize("symmetric", [True, False])
def test_trail_update_equals_the_cpu(memory, symmetric):
    n, k, m = 90, 12, 30
    if symmetric:
        instance = random_instance(n, k)
    else:
        instance = listed_instance(TSP(matrix=np.random.default_rng(4).uniform(1, 100, (n, n))), k)
    parameters = ColonyParameters(n_ants=m, candidate_list_size=k, memory=memory)
    ours, reference = (
        colony(instance, n_ants=m, candidate_list_size=k, memory=memory),
        CpuColony(instance, parameters),
    )
    ours.reset_trails(0.7)
    ours.construct(1)
    reference.import_state(ours.export_state())
    rng = np.random.default_rng(0)
    for step in range(6):
        update = TrailUpdate(
            rho=0.15,
            deposits=tuple(
                (rng.permutation(n).astype(np.int32), rng.uniform(0, 0.2)) for _ in range(step % 3)
            ),
            colony_amount=float(step % 2) * 300.0,
            tau_min=0.05,
            tau_max=1.1,
        )
        ours.update_trails(update)
        reference.update_trails(update)
        for name in ("tau", "rest"):
            np.testing.assert_allclose(ours.export_state()[name], reference.export_state()[name], rtol=2e-6)
    blend = TrailUpdate(rho=0.1, deposits=((rng.permutation(n).astype(np.int32), 0.9),), on_tours_only=True)
    ours.update_trails(blend)
    reference.update_trails(blend)
    np.testing.assert_allclose(ours.export_state()["tau"], reference.export_state()["tau"], rtol=2e-6)


@pytest.mark.parametrize("memory", ["dense", "candidate", "selective"])
def test_state_goes_to_the_cpu_and_back(memory):
    instance = random_instance(60, 10)
    parameters = {
        "n_ants": 20,
        "candidate_list_size": 10,
        "local_search": LocalSearch(kicks=0.0),
        "memory": memory,
    }
    if memory == "selective":
        parameters |= {**SELECTIVE, "q0": 0.9, "xi": 0.1, "trails_per_node": 5}
    ours, reference = colony(instance, **parameters), CpuColony(instance, ColonyParameters(**parameters))
    ours.reset_trails(0.3)
    for key in range(3):
        ours.construct(key)
        update = TrailUpdate(0.2, ((ours.tours([key])[0], 0.9),), on_tours_only=True)
        # ants that race may leave the laps of a ring as no single ant does; an imported state has them in order
        ours.import_state(ours.export_state())
        reference.import_state(ours.export_state())
        ours.update_trails(update)
        reference.update_trails(update)
        for name, array in reference.export_state().items():
            np.testing.assert_allclose(ours.export_state()[name], array, rtol=2e-6, err_msg=name)
    reference.construct(2)
    again = colony(instance, **parameters)
    again.import_state(reference.export_state())
    for name, array in again.export_state().items():
        np.testing.assert_array_equal(array, reference.export_state()[name], err_msg=name)


def check_colony_deposit(engine, share: float, low: float = 0.0) -> None:
    """Half of trails of 1, at least ``low``, and share / length of every ant in both directions."""
    engine.reset_trails(1.0)
    lengths = engine.construct(3)
    tours = all_tours(engine)
    engine.update_trails(TrailUpdate(0.5, colony_amount=share, tau_min=low))
    expected = np.full((engine.instance.n,) * 2, max(0.5, low))
    for here, there in ((tours, np.roll(tours, -1, axis=1)), (np.roll(tours, -1, axis=1), tours)):
        np.add.at(expected, (here, there), share / lengths[:, None])
    np.testing.assert_allclose(engine.export_state()["tau"], expected, rtol=2e-6)


def test_many_ants_deposit_in_several_passes():
    check_colony_deposit(colony(random_instance(20, 6), n_ants=9000, candidate_list_size=None), 2.0, 0.6)


@pytest.mark.slow
def test_a_deposit_on_rows_that_do_not_fit_shared_memory():
    check_colony_deposit(
        colony(random_instance(10_500, 8), n_ants=12, candidate_list_size=8, memory="dense"), 1e5
    )
