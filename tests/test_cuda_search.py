"""Local search on CUDA against the CPU engine. Needs a CUDA device."""

from __future__ import annotations

import numpy as np
import pytest

from pymoo_gpuaco.backends.cpu.engine import CpuColony
from pymoo_gpuaco.backends.cpu.improver import CpuImprover
from pymoo_gpuaco.backends.cuda.improver import CudaImprover
from pymoo_gpuaco.colony.parameters import ColonyParameters, LocalSearch
from pymoo_gpuaco.problems import TSP
from pymoo_gpuaco.problems.instance import as_instance
from tests.cuda_cases import (
    colony,
    is_permutation,
    random_instance,
)

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("moves", ["2opt", "2opt+oropt"])
def test_local_search_ends_where_the_cpu_finds_nothing_more(moves):
    n = 400
    instance = random_instance(n, 10, metric="EUC_2D")
    parameters = {
        "n_ants": 16,
        "candidate_list_size": 10,
        "local_search": LocalSearch(moves=moves, kicks=0.0),
    }
    ours = colony(instance, **parameters)
    rng = np.random.default_rng(0)
    start = np.array([rng.permutation(n) for _ in range(16)], np.int32)
    tours, lengths = ours.improve(start, 1)
    assert is_permutation(tours)
    np.testing.assert_array_equal(lengths, [instance.tour_length(t) for t in tours])
    reference = CpuColony(instance, ColonyParameters(**parameters))
    _, further = reference.improve(tours, 1)
    # the order of moves differs, and so do the few cities whose don't-look bit hides a move
    assert further.mean() > 0.995 * lengths.mean()
    _, from_start = reference.improve(start, 1)
    assert lengths.mean() == pytest.approx(from_start.mean(), rel=0.03)


def test_kicks_shorten_tours_and_never_lengthen_them():
    n = 300
    instance = random_instance(n, 10, metric="EUC_2D")
    rng = np.random.default_rng(0)
    start = np.array([rng.permutation(n) for _ in range(16)], np.int32)
    without = colony(
        instance, n_ants=16, candidate_list_size=10, local_search=LocalSearch(kicks=0.0)
    ).improve(start, 1)
    kicked = colony(instance, n_ants=16, candidate_list_size=10, local_search=LocalSearch(kicks=2.0)).improve(
        start, 1
    )
    assert is_permutation(kicked[0])
    assert (kicked[1] <= without[1]).all()
    assert kicked[1].mean() < 0.985 * without[1].mean()


@pytest.mark.parametrize("kicks", [0.0, 1.0])
def test_asymmetric_tours_end_where_the_cpu_finds_little_more(kicks):
    n = 200
    instance = as_instance(TSP(matrix=np.random.default_rng(3).uniform(1, 1000, (n, n))), 16)
    search = LocalSearch(kicks=kicks)
    ours, reference = CudaImprover(instance, search), CpuImprover(instance, search)
    start = np.array([np.random.default_rng(s).permutation(n) for s in range(32)])
    tours, lengths = ours.improve(start, 1)
    assert is_permutation(tours)
    np.testing.assert_allclose(lengths, [instance.tour_length(t) for t in tours], rtol=1e-12)
    # a move is found from one of its ends alone, so don't-look bits hide some: another search, also one by the engine
    # that made the first, shortens these tours by some 4 %
    _, further = CpuImprover(instance, LocalSearch(kicks=0.0)).improve(tours, 1)
    assert further.mean() > 0.92 * lengths.mean()
    _, from_start = reference.improve(start, 1)
    assert lengths.mean() == pytest.approx(from_start.mean(), rel=0.08)
    np.testing.assert_array_equal(ours.improve(start, 1)[0], tours)
