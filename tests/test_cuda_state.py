"""States of the CUDA colony, work begun early, and refusals. Needs a CUDA device."""

from __future__ import annotations

import numpy as np
import pytest

from pymoo_gpuaco.backends import BackendUnavailable
from pymoo_gpuaco.backends.cpu.colony import CpuColony
from pymoo_gpuaco.colony.parameters import ColonyParameters, LocalSearch
from pymoo_gpuaco.colony.trails import TrailUpdate
from tests.cuda_cases import (
    all_tours,
    colony,
    random_instance,
)

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("memory", ["dense", "candidate"])
def test_state_goes_to_the_cpu_and_back(memory):
    instance = random_instance(60, 10)
    parameters = {"n_ants": 20, "candidate_list_size": 10, "memory": memory, "local_search": LocalSearch()}
    ours, reference = colony(instance, **parameters), CpuColony(instance, ColonyParameters(**parameters))
    ours.reset_trails(0.3)
    ours.construct(1)
    ours.update_trails(TrailUpdate(0.2, ((ours.tours([0])[0], 0.1),)))
    state = ours.export_state()
    reference.import_state(state)
    for name, array in reference.export_state().items():
        np.testing.assert_array_equal(array, state[name], err_msg=name)
    reference.construct(2)
    again = colony(instance, **parameters)
    again.import_state(reference.export_state())
    for name, array in again.export_state().items():
        np.testing.assert_array_equal(array, reference.export_state()[name], err_msg=name)


def test_a_resumed_run_equals_the_uninterrupted_one():
    instance = random_instance(100, 10)
    parameters = {"n_ants": 40, "candidate_list_size": 10, "local_search": LocalSearch()}
    one, other = colony(instance, **parameters), colony(instance, **parameters)
    one.reset_trails(1.0)
    for key in range(3):
        lengths = one.construct(key)
        one.update_trails(TrailUpdate(0.2, ((one.tours([lengths.argmin()])[0], 0.3),), tau_min=0.01))
    other.import_state(one.export_state())
    np.testing.assert_array_equal(one.construct(9), other.construct(9))
    np.testing.assert_array_equal(all_tours(one), all_tours(other))


def test_refusals_say_what_to_do():
    instance = random_instance(30, 8)
    for parameters in (
        {"memory": "selective"},
        {"selection": "pseudo_random_proportional", "candidate_list_size": None},
    ):
        with pytest.raises(BackendUnavailable, match="the CUDA engine"):
            colony(instance, **parameters)
    engine = colony(instance, n_ants=4)
    with pytest.raises(ValueError, match="is not a permutation"):
        engine.improve(np.zeros((3, 30), np.int32), 1)
    from pymoo_gpuaco.backends.cuda.engine import CudaColony

    with pytest.raises(ValueError, match="device must be"):
        CudaColony(instance, ColonyParameters(), device=99)


def test_too_large_a_colony_is_refused_before_anything_is_taken(monkeypatch):
    instance = random_instance(30, 8)
    with pytest.raises(MemoryError, match=r"GB are free; .*candidate"):
        colony_too_large(monkeypatch, instance)


def colony_too_large(monkeypatch, instance):
    from pymoo_gpuaco.backends.cuda.device import device, memory

    def crowded(needed, free, advice):
        memory_check(needed, memory.RESERVE, advice)

    memory_check = memory.check
    monkeypatch.setattr(device, "check", crowded)
    colony(instance, n_ants=4)
