"""The CUDA hill climbers against the CPU engine, move by move, and against the host's own check. Needs a device."""

from __future__ import annotations

import numpy as np
import pytest

from pymoo_gpuaco.backends.cpu.climbers import CpuClimbers
from pymoo_gpuaco.backends.cuda import climbers as climber_layout
from pymoo_gpuaco.colony.parameters import ClimberParameters
from pymoo_gpuaco.problems import TSP
from tests.engine_cases import INSTANCES, cloud
from tests.instances import listed_instance

pytestmark = pytest.mark.gpu

WAYS = {
    "tuned": {"kernel": "tuned"},
    "intra": {"kernel": "intra"},
    "tiled": {"kernel": "tiled"},
}
every_way = pytest.mark.parametrize("way", WAYS)
grid = TSP(np.stack(np.meshgrid(np.arange(9), np.arange(8)), axis=-1).reshape(-1, 2) * 10, "EUC_2D")
CASES = {
    **{name: problem for name, problem in INSTANCES.items() if problem.symmetric},
    "16 cities": cloud(16, 1),
    "17 cities": cloud(17, 1),
    "101 cities": cloud(101, 1),
    "72 cities on a grid": grid,  # many moves of the same gain
    "700 cities": cloud(700, 1),
    "60 cities, 3 axes": TSP(np.random.default_rng(2).uniform(0, 500, (60, 3)), metric="EUC_3D"),
    "80 cities, far apart": TSP(np.random.default_rng(2).uniform(0, 1e7, (80, 2)), metric="EUC_2D"),
    "80 cities, far apart, ceiling": TSP(np.random.default_rng(2).uniform(0, 2e6, (80, 2)), metric="CEIL_2D"),
    "50 cities, real matrix": TSP(
        matrix=np.add.outer(np.arange(50.0) ** 1.5, np.arange(50.0) ** 1.5) * (1 - np.eye(50))
        + np.abs(np.subtract.outer(np.arange(50.0), np.arange(50.0))) ** 0.5
    ),
}


def climbers(problem, n_climbers=1, **parameters):
    from pymoo_gpuaco.backends.cuda.climbers import CudaClimbers

    return CudaClimbers(listed_instance(problem, 1), ClimberParameters(n_climbers, **parameters))


def steps(engine, calls):
    """The different lengths that a climber's tour has, one call after another; pairs=1 makes the least steps."""
    found = []
    for _ in range(calls):
        engine.climb(3, pairs=1)
        now = float(engine.export_state()["lengths"][0])
        if not found or now != found[-1]:
            found.append(now)
    return found


@every_way
@pytest.mark.parametrize("name", CASES)
def test_the_climbs_are_those_of_the_cpu_engine(name, way):
    problem = CASES[name]
    n = problem.n_cities
    ours = steps(climbers(problem, **WAYS[way]), min(3 * n, 200))
    reference = CpuClimbers(listed_instance(problem, 1), ClimberParameters(1))
    # the CPU engine stops after every row of a scan
    expected = steps(reference, min(3 * n, 200) * n // (1 if n < 100 else 4))
    together = min(len(ours), len(expected))
    assert together >= min(len(ours), 20)
    if problem.integral:
        assert ours[:together] == expected[:together]
    else:
        assert ours[:together] == pytest.approx(expected[:together], rel=1e-12)


def everything(engine):
    return {name: array.tobytes() for name, array in engine.export_state().items()}


@pytest.mark.parametrize("n", [60, 700])
def test_the_launch_shape_changes_nothing(n, monkeypatch):
    problem = cloud(n, 4)
    pairs, layout = 128 * 40 * n * n, climber_layout.spans_layout
    with monkeypatch.context() as patch:
        usual = climbers(problem, 5)
        again = climbers(problem, 5)
        patch.setattr(
            climber_layout, "steps_per_cycle", lambda pairs, threads, blocks: -float(threads + pairs)
        )
        narrow = climbers(problem, 5)
        patch.setattr(
            climber_layout, "spans_layout", lambda base, limits, _: layout(base, limits, resident=False)
        )
        patch.setattr(climber_layout, "LONGEST_TILE", 210)
        staged = climbers(problem, 5)
    engines = (usual, again, narrow, staged)
    assert len({e.plan for e in engines}) >= 2
    for _ in range(3):
        assert len({e.climb(9, pairs=pairs) for e in engines}) == 1
    first, *others = map(everything, engines)
    assert all(other == first for other in others)


def test_a_state_goes_to_the_cpu_and_back():
    problem = cloud(120, 6)
    instance, parameters = listed_instance(problem, 1), ClimberParameters(3)
    ours, reference = climbers(problem, 3), CpuClimbers(instance, parameters)
    ours.climb(2, pairs=128 * 30 * 120**2)
    reference.import_state(ours.export_state())
    assert np.array_equal(reference.export_state()["lengths"], ours.export_state()["lengths"])
    assert np.array_equal(reference.best()[0], ours.best()[0])
    reference.climb(2, pairs=3 * 5000)  # stops within a scan
    back = climbers(problem, 3)
    back.import_state(reference.export_state())
    assert np.array_equal(back.export_state()["lengths"], reference.export_state()["lengths"])
    # both go on to the same local optima: as many restarts, and no fewer finished
    for engine in (back, reference):
        while engine.export_state()["restart"].min() < 3:
            engine.climb(2, pairs=128 * 30 * 120**2 if engine is back else 10**6)
    for engine in (ours, back):
        while engine.export_state()["restart"].min() < 6:
            engine.climb(2, pairs=128 * 30 * 120**2)
    assert (back.export_state()["lengths"] > 0).all()
    np.testing.assert_array_equal(
        back.export_state()["lengths"], problem.tour_lengths(back.export_state()["tours"])
    )


@pytest.mark.slow
def test_a_scan_of_many_cities_stops_and_goes_on():
    n = 100_000
    problem = TSP(np.random.default_rng(0).random((n, 2)) * 1e6, metric="EUC_2D")
    engine = climbers(problem, 2)
    engine.climb(1)
    start, parts = engine.export_state()["lengths"], np.zeros(2, np.int32)
    with engine.device.working():
        engine.device.read(parts, "part_numbers")
    assert (parts > 0).all()
    assert not engine.export_state()["row"].any()  # a scan under way would be restarted
    for _ in range(4):
        engine.climb(1)
    assert engine.scans >= 2
    assert (engine.export_state()["lengths"] < start).all()
    np.testing.assert_array_equal(
        engine.export_state()["lengths"], problem.tour_lengths(engine.export_state()["tours"])
    )
