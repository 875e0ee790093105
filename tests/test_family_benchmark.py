"""The tests of significance in benchmarks/family.py against published values."""

import importlib
from argparse import Namespace
from pathlib import Path

import numpy as np
import pytest

from pymoo_gpuaco import TSP

pytest.importorskip("scipy")


@pytest.fixture
def family(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).resolve().parents[1] / "benchmarks"))
    return importlib.import_module("family")


@pytest.mark.parametrize(("k", "q"), [(3, 2.343), (4, 2.569), (7, 2.949), (10, 3.164)])
def test_nemenyi_is_0_05_at_the_critical_difference(family, k, q):
    # Demsar 2006, Table 5(a): ranks that differ by q sqrt(k (k + 1) / (6 N)). Here algorithm i always has rank i + 1,
    # so the last is k - 1 ranks from the first; N blocks make that the critical difference.
    blocks = (q / (k - 1)) ** 2 * k * (k + 1) / 6.0
    few, many = (
        family.compare(np.tile(np.arange(float(k)), (n, 1)))[2][-1]
        for n in (int(np.floor(blocks)), int(np.ceil(blocks)))
    )
    assert many < 0.05 < few


def test_ranks_and_friedman(family):
    # ranks 1 2 3, 1 3 2, 1 2 3: 12 / (3 * 3 * 4) * (3^2 + 7^2 + 8^2) - 3 * 3 * 4 = 14 / 3, chi-squared of two degrees
    ranks, friedman, nemenyi = family.compare(np.array([[1.0, 2.0, 3.0], [1.0, 3.0, 2.0], [1.0, 2.0, 3.0]]))
    assert ranks == pytest.approx([1.0, 7 / 3, 8 / 3])
    assert friedman == pytest.approx(np.exp(-14 / 6))
    assert nemenyi[0] == pytest.approx(1.0)
    assert nemenyi[2] < nemenyi[1] < 1.0


def test_where_nothing_differs_there_is_no_test(family):
    for medians in (np.ones((3, 4)), np.ones((1, 4))):
        ranks, friedman, nemenyi = family.compare(medians)
        assert ranks.tolist() == [2.5] * 4
        assert np.isnan([friedman, *nemenyi]).all()


def test_every_algorithm_is_compared_with_local_search_and_all_but_climbers_without(family):
    assert len(family.algorithms(True)) == 7
    assert set(family.algorithms(True)) - set(family.algorithms(False)) == {"GPU2OptIHC"}
    for search in (True, False):
        for name in family.algorithms(search):
            assert type(family.make(name, search, "cpu")).__name__ == name


def test_the_minutes_are_shared_out_and_a_run_that_the_clock_ends_is_marked(family):
    # 7 algorithms with local search and 6 without, two budgets: 2 * 3 * 2 * 13 = 156 runs in 0.9 * 26 * 60 s
    assert family.seconds_of_a_run(26.0, 2, 3) == pytest.approx(9.0)
    problem = TSP(np.random.default_rng(1).random((12, 2)), best_known=1e-3)  # no tour is as short
    for tours, cut in ((30, False), (10**9, True)):
        options = Namespace(seeds=1, seconds=0.05 if cut else 60.0, tours=tours, backend="cpu")
        cells = dict(
            zip(family.algorithms(True), family.measure(problem, "tours", True, options), strict=True)
        )
        assert [name for name, cell in cells.items() if cell.cut] == (list(cells) if cut else [])
