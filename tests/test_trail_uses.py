"""Uses of trails that are compared on a GPU change what they say, and sign tests count as they should."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from pymoo_gpuaco.backends.cuda import focused
from pymoo_gpuaco.candidates.lists import listed_instance
from pymoo_gpuaco.colony.parameters import ColonyParameters
from tests.engine_cases import cloud
from tests.tour_cases import edges_of
from tests.windows_cases import emulated

__all__ = ["emulated"]  # a fixture

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"


@pytest.fixture(name="uses")
def _uses(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    yield importlib.import_module("gpu_trail_uses")
    for name, module in list(sys.modules.items()):
        if Path(getattr(module, "__file__", None) or "").parent == BENCHMARKS:
            del sys.modules[name]


def test_a_sign_test_leaves_ties_out_and_counts_both_sides(uses):
    pairs = uses.Pairs.of([-1.0, -2.0, -1.0, -1.0, -3.0, 0.0, 0.0])
    assert pairs == (5, 0, 2)
    assert pairs.p == pytest.approx(2 / 2**5)
    assert uses.Pairs.of([0.0]).p == 1.0


def test_holm_corrects_step_by_step(uses):
    from sign_tests import holm

    # the smallest counts three times, the next twice, and none becomes smaller than one before it
    assert holm({"a": 0.03, "b": 0.01, "c": 0.4}) == pytest.approx({"b": 0.03, "a": 0.06, "c": 0.4})
    assert holm({"a": 0.04, "b": 0.05}) == pytest.approx({"a": 0.08, "b": 0.08})


def test_a_use_goes_on_where_it_has_won_more_pairs_than_it_lost(uses):
    lengths = uses.Lengths()
    for seed, (none, kicks, windows) in enumerate([(100.0, 99.0, 100.0), (100.0, 101.0, 99.0)]):
        for use, length in (("none", none), (uses.OTHERS[0], kicks), (uses.OTHERS[1], windows)):
            lengths.found["a", use, seed] = length
    assert [lengths.goes_on(use) for use in uses.OTHERS[:2]] == [False, True]
    assert lengths.differences(uses.OTHERS[0], "a") == pytest.approx([-1.0, 1.0])
    assert lengths.differences(uses.OTHERS[0], "b") == []


def test_a_result_says_how_many_seeds_were_run_not_how_many_were_wanted(uses, monkeypatch):
    lengths, written = uses.Lengths(), {}
    monkeypatch.setattr(uses, "write", lambda name, *result: written.update({name: result}))
    for seed in (1, 2, 3):
        for use in uses.USES:
            lengths.found["cloud", use, seed] = 100.0 + (use == uses.OTHERS[0]) / seed
    lines = uses.write_down(lengths, {"cloud": cloud(600, 3)}, 10)
    _, columns, rows, parameters, notes = written["gpu_trail_uses"]
    assert (parameters["seeds"], parameters["seeds at most"]) == (3, 10)
    assert rows[0][columns.index("seeds")] == 3
    assert lines[0].startswith(
        f"{uses.OTHERS[0]}: 0 pairs better, 3 worse, 0 equal; sign test p = 0.25, corrected 1;"
    )
    assert set(lines) <= set(notes)


def test_edges_are_counted_and_chosen_by_how_many_tours_have_them(uses):
    tours = np.array([[0, 1, 2, 3, 4], [0, 1, 3, 2, 4], [0, 1, 3, 4, 2]], np.int32)
    near = np.array([[1, 2], [2, 4], [4, 1], [2, 4], [3, 0]], np.int32)
    beside = np.empty((3, 2, 5), np.int32)
    uses._beside(tours, beside, 0, 3)
    assert sorted(beside[2, :, 3]) == [1, 4]
    counts, chosen = np.zeros((5, 2)), np.zeros((5, 2), np.int32)
    uses._look(near, beside, counts, chosen, np.empty(8, np.int32), np.empty(8), 0, 5)
    # edges of the tours: 01 12 23 34 40, 01 13 32 24 40, 01 13 34 42 20
    np.testing.assert_array_equal(counts, [[3, 1], [1, 0], [2, 1], [2, 2], [2, 2]])
    # city 1: 0 three times, 3 twice, 2 once
    assert chosen.tolist() == [[1, 4], [0, 3], [4, 3], [2, 4], [3, 0]]


@pytest.mark.parametrize("number", range(5))
def test_a_search_by_a_use_leaves_tours(uses, emulated, number):
    use = list(uses.USES)[number]
    parameters = ColonyParameters(n_ants=16, construction="focused", candidates="quadrant")
    with uses.kernels_of(use):
        device = uses.USES[use](listed_instance(cloud(600, 3), 8), parameters)
        assert uses.USES[use].guided == focused.GUIDED
        with device.working():
            first = device.first_tour()
            device.load(np.array([np.roll(first, 5 * t) for t in range(device.n_tours)]), True)
            for key in range(3):  # from the second on tours differ
                device.weigh()
                device.anneal(key, focused.Heat(1e4, 0.0, 1e3, 1.0))
            device.weigh()
            tours = device.read()
            listed = np.empty(600, np.int32)
            if use == "windows where tours differ":
                device.device.read(listed, "window_partner")
    assert (np.sort(tours, axis=1) == np.arange(600)).all()
    assert all(edges_of(tour) != edges_of(first) for tour in tours)
    if use == "windows where tours differ":
        assert np.bincount(listed).max() > 1
        assert 300 < len(np.unique(listed)) < 600


def test_windows_are_cut_around_the_cities_of_the_list(uses, emulated):
    parameters = ColonyParameters(n_ants=8, construction="focused", candidates="quadrant")
    name, problem = "windows where tours differ", cloud(2000, 3)
    with uses.kernels_of(name):
        device = uses.USES[name](listed_instance(problem, 8), parameters)
        device.allocate(1)
        with device.working():
            tour = device.first_tour()
            far = np.linalg.norm(problem.coords - problem.coords[tour[1000]], axis=1).argsort()[1200:]
            reached = []
            for listed in (tour, np.full(2000, tour[1000], np.int32)):
                device.load(tour[None], True)
                device.device.write("window_partner", listed)
                device.anneal(1, focused.Heat(1e6, 0.0, 1e5, 1.0))
                changed = edges_of(device.read()[0]) ^ edges_of(tour)
                assert changed
                reached.append(len({city for edge in changed for city in edge}.intersection(far.tolist())))
    # a window has a quarter of the cities: around one city, hardly any of the farthest two fifths
    assert reached[0] > 10 * max(1, reached[1])
