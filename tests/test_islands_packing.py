"""Tours travel as they are, or as stretches of a tour that the receiver has."""

import numpy as np
import pytest

from pymoo_gpuaco.islands.packing import pack, unpack


def test_a_tour_that_is_turned_and_reversed_is_two_stretches():
    base = np.arange(10, dtype=np.int32)
    # 3 4 5 lie forwards, then 2 1 0 9 8 7 6 backwards across the end
    tour = np.array([3, 4, 5, 2, 1, 0, 9, 8, 7, 6], np.int32)
    packed = pack(tour, base)
    assert packed["stretches"]
    assert packed["numbers"].tolist() == [[3, 3, 1], [2, 7, -1]]
    assert np.array_equal(unpack(packed, base, 10), tour)


def test_positions_are_those_of_the_base():
    base = np.array([4, 2, 0, 3, 1, 5, 6, 7, 8, 9], np.int32)
    tour = np.array([0, 3, 1, 5, 6, 7, 8, 9, 4, 2], np.int32)  # the base, turned by two
    packed = pack(tour, base)
    assert packed["numbers"].tolist() == [[2, 10, 1]]
    assert np.array_equal(unpack(packed, base, 10), tour)


def test_what_shares_little_travels_as_cities():
    base = np.arange(9, dtype=np.int32)
    tour = np.array([0, 2, 4, 6, 8, 1, 3, 5, 7], np.int32)
    assert not pack(tour, base)["stretches"]
    assert not pack(tour, None)["stretches"]
    assert np.array_equal(unpack(pack(tour, base), None, 9), tour)


@pytest.mark.parametrize("n", [3, 4, 5, 8, 100])
@pytest.mark.parametrize("cuts", [0, 1, 2, 5])
def test_any_tour_arrives(n, cuts):
    random = np.random.default_rng(n + cuts)
    for _ in range(20):
        base = random.permutation(n).astype(np.int32)
        tour = np.roll(base, random.integers(n))
        for _ in range(cuts):
            i, j = sorted(random.integers(0, n + 1, 2))
            tour[i:j] = tour[i:j][::-1].copy()
        packed = pack(tour, base)
        assert packed["numbers"].size <= n
        assert np.array_equal(unpack(packed, base, n), tour)
    assert n < 100 or cuts > 1 or packed["stretches"]


@pytest.mark.parametrize(
    ("packed", "words"),
    [
        ({"stretches": False, "numbers": np.array([0, 1, 1, 3])}, "row 0 is not a permutation"),
        ({"stretches": True, "numbers": np.array([[0, 2, 1]])}, "must have 4 cities, got 2"),
        ({"stretches": True, "numbers": np.array([[0, 2, 1], [1, 2, 1]])}, "row 0 is not a permutation"),
        ({"stretches": True, "numbers": np.array([[0, -4, 1], [0, 8, 1]])}, "must have 4 cities"),
    ],
)
def test_what_is_no_tour_is_refused(packed, words):
    with pytest.raises(ValueError, match=words):
        unpack(packed, np.arange(4, dtype=np.int32), 4)


def test_a_difference_needs_the_tour_that_it_differs_from():
    with pytest.raises(ValueError, match="is not here"):
        unpack({"stretches": True, "numbers": np.array([[0, 4, 1]])}, None, 4)
