"""Choice of the engine, and messages where a device cannot be set up: on a CUDA device that is not there."""

import logging

import numpy as np
import pytest
from pymoo.optimize import minimize

from pymoo_gpuaco import GPUMMAS, BackendUnavailable, GPU2OptIHC, GPUMemetic
from pymoo_gpuaco.backends import make_climbers, make_colony, make_improver, make_search
from pymoo_gpuaco.cli import main
from pymoo_gpuaco.colony.parameters import ClimberParameters, ColonyParameters, LocalSearch
from pymoo_gpuaco.memetic.parameters import MemeticParameters
from pymoo_gpuaco.operators import LocalSearchRepair
from pymoo_gpuaco.runtime import notices
from tests.engine_cases import cloud
from tests.instances import listed_instance
from tests.test_custom_objective import TolledMap

WHY = "nvcc could not compile tours.cu (exit status 1): Value 'sm_121' is not defined for option 'gpu-architecture'"


@pytest.fixture
def broken(monkeypatch, caplog):
    """A device that is there and whose set-up fails; returns what is logged."""
    from pymoo_gpuaco.backends.cuda import engines

    def fail(*arguments):
        raise BackendUnavailable(WHY)

    monkeypatch.setattr(engines, "why_unavailable", lambda: None)
    for name in ("make_colony", "CudaWindows", "make_improver", "make_climbers"):
        monkeypatch.setattr(engines, name, fail)
    notices.warn_once.cache_clear()
    caplog.set_level(logging.WARNING, "pymoo_gpuaco")
    return caplog


def make_all(backend):
    instance = listed_instance(cloud(9), 8)
    return (
        make_colony(instance, ColonyParameters(n_ants=2), backend),
        make_search(instance, MemeticParameters(n_windows=2), backend),
        make_climbers(instance, ClimberParameters(n_climbers=2), backend),
        make_improver(instance, LocalSearch(), backend),
    )


def test_auto_goes_on_with_the_cpu_and_says_why_once(broken):
    assert [engine.kind for engine in make_all("auto")] == ["cpu"] * 4
    assert [record.getMessage() for record in broken.records] == [f"pymoo_gpuaco runs on the CPU: {WHY}"]


@pytest.mark.parametrize("cls", [GPUMMAS, GPU2OptIHC])
def test_a_run_with_auto_ends_as_one_with_the_cpu(cls, broken):
    auto, cpu = (
        minimize(cloud(9), cls(2, backend=backend), ("n_gen", 2), seed=1) for backend in ("auto", "cpu")
    )
    assert np.array_equal(auto.X, cpu.X)
    X = LocalSearchRepair()._do(cloud(9), np.arange(9)[None])
    assert X.shape == (1, 9)


@pytest.mark.filterwarnings("ignore:the problem's objective")
@pytest.mark.usefixtures("broken")
def test_local_search_runs_on_the_device_that_took_the_run(monkeypatch):
    """CUDA, which is here and fails, is not asked again."""
    from pymoo_gpuaco.backends.cuda import engines as cuda

    made = []
    monkeypatch.setattr(cuda, "make_improver", lambda *arguments: made.append("asked again"))
    problem = TolledMap(np.random.default_rng(1).random((40, 2)))
    algorithm = GPUMMAS().setup(problem, termination=("n_gen", 2), seed=1)
    algorithm.run()
    assert made == []
    assert len(algorithm.pop) == 48  # of 24 ants, before and after


def test_cuda_is_refused_where_it_was_asked_for(broken):
    instance = listed_instance(cloud(14), 8)
    doors = (
        lambda: make_colony(instance, ColonyParameters(), "cuda"),
        lambda: make_search(instance, MemeticParameters(), "cuda"),
        lambda: make_climbers(instance, ClimberParameters(), "cuda"),
        lambda: make_improver(instance, LocalSearch(), "cuda"),
        lambda: minimize(cloud(14), GPUMemetic(backend="cuda"), ("n_gen", 2)),
    )
    for door in doors:
        with pytest.raises(
            BackendUnavailable, match="backend='cuda' cannot run this: nvcc could not compile"
        ):
            door()
    assert not broken.records


@pytest.mark.usefixtures("broken")
def test_the_command_line_says_it_in_one_line(capsys):
    assert main(["solve", "gr17", "--seconds", "5", "--picture", "", "--backend", "cuda"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("pymoo-gpuaco: backend='cuda' cannot run this: nvcc could not compile")
    assert "Traceback" not in said
