"""Cities of a window on CUDA: grown breadth-first over neighbours and tour, against the same in Python."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

from pymoo_gpuaco.candidates.lists import lists
from tests import emulator
from tests.engine_cases import cloud
from tests.instances import listed_instance

MOST, NEAR = 511, 8
SOURCE = """#include "windows/cut.cuh"
extern "C" __global__ void choose_windows(const int* tour, const int* positions, int n, const int* lists, int links,
                                          int* chosen, int* counts) {
    extern __shared__ uint4 shared[];
    int* const table = reinterpret_cast<int*>(shared);
    int* const kept = table + (1 << Positions::BITS);
    const Tour own{tour, positions, n, static_cast<int>(blockIdx.x)};
    const int m = choose(own, Growth{lists, links}, Positions{table}, kept + CAPACITY, kept);
    for (int i = lane_id(); i < m; i += 32) chosen[blockIdx.x * WINDOW + i] = own.absolute(kept[i]);
    if (lane_id() == 0) counts[blockIdx.x] = m;
}
"""


@pytest.fixture
def choose(compiled_kernels: Path):
    """Positions that the windows around the first ``count`` positions of a tour take, over ``links`` of each list."""
    emulator.skip_without_compiler()
    library = emulator.build(
        "cut.cu", {"METRIC": 1, "DIMENSIONS": 2, "TABLE": 0, "NEAR": NEAR}, compiled_kernels, SOURCE
    )

    def windows(tour, near, count, links=NEAR):
        n = len(tour)
        tour, near = np.ascontiguousarray(tour, np.int32), np.ascontiguousarray(near, np.int32)
        positions = np.empty(n, np.int32)
        positions[tour] = np.arange(n)
        chosen, counts = np.zeros((count, MOST), np.int32), np.zeros(count, np.int32)
        addresses = [a.ctypes.data for a in (tour, positions, near, chosen, counts)]
        packed = struct.pack("@PPiPiPP", *addresses[:2], n, addresses[2], links, *addresses[3:])
        assert library.run_choose_windows(count, 32, packed) == 0
        return [row[:m].tolist() for row, m in zip(chosen, counts, strict=True)]

    return windows


def grown(tour, near, centre):
    """Positions reached from the centre, level by level, until there are 511; and those of all levels that are whole.

    The tour does not go on across the seam opposite to the centre.
    """
    n = len(tour)
    where = np.empty(n, int)
    where[tour] = np.arange(n)
    seam = (centre - n // 2) % n  # the first position after it
    reached, level = {centre}, [centre]
    while level:
        following = []
        for p in level:
            links = [int(where[c]) for c in near[tour[p]]]
            if (p + 1) % n != seam:
                links.append((p + 1) % n)
            if p != seam:
                links.append((p - 1) % n)
            following += [q for q in dict.fromkeys(links) if q not in reached and q not in following]
        if len(reached) + len(following) > MOST:
            return reached, reached | set(following)
        reached |= set(following)
        level = following
    return reached, reached


@pytest.mark.parametrize("links", [3, 5, NEAR])
@pytest.mark.parametrize("n", [512, 600, 1500])
def test_a_window_is_what_lies_nearest_by_lists_and_tour(n, links, choose):
    problem = cloud(n, 4)
    near = lists(listed_instance(problem, 8), "quadrant", NEAR).ids
    tour = np.random.default_rng(n).permutation(n)
    for centre, window in enumerate(choose(tour, near, 40, links)):
        whole, next_too = grown(tour, near[:, :links], centre)
        assert len(set(window)) == len(window) == MOST
        assert whole <= set(window) <= next_too


def test_positions_ascend_from_the_seam_on(choose):
    n = 800
    near = (np.arange(n)[:, None] + np.array([-4, -3, -2, -1, 1, 2, 3, 4])) % n
    for centre, window in enumerate(choose(np.arange(n), near, 30)):
        seam = (centre - n // 2) % n
        from_seam = [(p - seam) % n for p in window]
        assert from_seam == sorted(from_seam)
        # a ring: what lies nearest is before and behind
        assert set(window) >= {(centre + d) % n for d in range(-250, 251)}


def test_cities_that_no_list_leads_to_come_with_the_tour(choose):
    # every city lists the same eight: all others are reached along the tour, which ends at the seam
    n = 600
    near = np.tile(np.arange(8), (n, 1))
    (window,) = choose(np.arange(n), near, 1)
    assert len(window) == MOST
    assert set(window) >= {p % n for p in range(-220, 230)}


def test_a_small_instance_is_its_own_window(choose):
    near = np.tile(np.arange(8), (400, 1))
    windows = choose(np.arange(400), near, 3)
    assert all(sorted(window) == list(range(400)) for window in windows)
