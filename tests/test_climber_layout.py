"""Layout of climbers on a device: every move is in some unit of work, and everything fits. Needs no device."""

import math

import numpy as np
import pytest

from pymoo_gpuaco.backends.cuda import climbers as climber_layout
from pymoo_gpuaco.backends.cuda.device import DeviceLimits
from pymoo_gpuaco.colony.parameters import ClimberParameters
from pymoo_gpuaco.problems import TSP
from tests.instances import listed_instance

LARGE, SMALL = (
    DeviceLimits(132, 64, 227 << 10, 1 << 16, 228 << 10),
    DeviceLimits(16, 32, 64 << 10, 1 << 16, 64 << 10),
)


def plan(n, limits=LARGE, metric="EUC_2D", **parameters):
    coords = np.random.default_rng(0).integers(0, 1000, (n, 2))
    return climber_layout.make_layout(
        listed_instance(TSP(coords, metric=metric), 1), ClimberParameters(**parameters), limits
    )


@pytest.mark.parametrize("limits", [LARGE, SMALL], ids=["227 KiB", "64 KiB"])
@pytest.mark.parametrize("n", [16, 17, 33, 100, 493, 1000, 5001, 20000])
def test_every_span_of_every_place_is_in_a_unit(n, limits):
    shape, width = plan(n, limits), climber_layout.SPANS_PER_THREAD
    assert shape.scan == climber_layout.SPANS
    assert shape.shared_bytes <= limits.shared_bytes
    assert shape.threads % 32 == 0
    assert shape.blocks * shape.threads <= climber_layout.THREADS[shape.scan]
    assert shape.rows % width == 0
    # as Spans::span and Spans::row, climber_scan.cuh
    spans = {
        s
        for g in range(shape.groups)
        for s in range(min(2 + g * width, n // 2 - width + 1), min(2 + g * width, n // 2 - width + 1) + width)
    }
    assert spans == set(range(2, n // 2 + 1))
    for part in range(math.ceil(n / shape.part_rows)):
        first, end = part * shape.part_rows, min((part + 1) * shape.part_rows, n)
        starts = [first + s * (end - first) // shape.segments for s in range(shape.segments)]
        reach = first
        for start in starts:
            assert start <= reach
            reach = max(reach, start + shape.rows)
        assert reach >= end
        if shape.resident:
            # the farthest place read: the partner of the last row, and one for the row after it
            assert starts[-1] + shape.rows + n // 2 < n + n // 2 + width + 8  # repeated places: `climb`


def test_few_cities_are_scanned_by_rows():
    assert plan(15).scan == climber_layout.ROWS
    assert plan(16).scan == climber_layout.SPANS
    assert plan(16, kernel="intra").scan == climber_layout.ROWS
    assert plan(16, kernel="tiled").scan == climber_layout.TILED_ROWS


def test_a_large_scan_is_cut():
    n = 100_000
    coords = np.random.default_rng(0).random((n, 2)) * 1e6
    instance = listed_instance(TSP(coords, metric="EUC_2D"), 1)
    shape = climber_layout.make_layout(instance, ClimberParameters(), LARGE)
    pairs = (n - 1) * (n - 2) // 2
    assert shape.part_rows == math.ceil(n / math.ceil(pairs / 2**30))
    assert not shape.resident


@pytest.mark.parametrize(
    ("metric", "side", "units", "error"),
    [
        ("EUC_2D", 1000, True, 2.0),
        ("EUC_2D", 1_200_000, True, 4.0),  # 2^-20 of the diagonal is more than one
        ("MAN_2D", 1000, True, 2.0),
        ("EXACT", 1000, False, 2.0**-18 * 1000 * math.sqrt(2)),
        ("EUC_2D", 8_000_000, False, 2.0**-18 * 8e6 * math.sqrt(2) + 2 * 11),
    ],
)
def test_the_error_of_a_search_value(metric, side, units, error):
    corners = TSP(np.array([[0, 0], [side, 0], [0, side], [side, side]]), metric=metric)
    found = climber_layout.arithmetic(listed_instance(corners, 1))
    assert found == (units, pytest.approx(error))


def test_floats_stay_within_that_error():
    rng = np.random.default_rng(1)
    coords = rng.uniform(0, 3e5, (400, 2))
    instance = listed_instance(TSP(coords, metric="EUC_2D"), 1)
    _, error = climber_layout.arithmetic(instance)
    exact = np.floor(np.linalg.norm(coords[:, None] - coords[None], axis=2) + 0.5)
    points = (coords - coords.min(axis=0)).astype(np.float32)
    d = points[:, None] - points[None]
    floats = np.rint(np.sqrt((d * d).sum(axis=2)))
    assert 0 < np.abs(floats - exact).max() <= error / 2  # half of it for each new distance


@pytest.mark.parametrize("width", [0.01, 20, 90])  # degrees around a place: a town, a country, the globe
def test_arcs_in_floats_stay_within_that_error(width):
    rng = np.random.default_rng(2)
    places = [0, 7] + rng.uniform(-width, width, (400, 2)) * [1, 1.9]
    places[200:] = places[:200] * [-1, 1] + [0, 180]  # opposite places, where arcs grow fastest
    if width < 90:
        places[200:] -= [0, 180]
    problem = TSP(places, metric="HAVERSINE")
    _, error = climber_layout.arithmetic(listed_instance(problem, 1))
    points = (problem.coords - problem.coords.min(axis=0)).astype(np.float32)
    d = points[:, None] - points[None]
    diameter = np.float32(2 * 6371.0088)
    chord = np.sqrt((d * d).sum(axis=2))
    floats = diameter * np.arcsin(np.minimum(np.float32(1), chord / diameter))
    off = np.abs(floats - problem.D).max()
    assert error / 1000 < off <= error / 4
