"""Every part of a call draws random numbers of its own."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pymoo_gpuaco.runtime.keys import fold_in

KEYS = st.integers(0, 2**64 - 1)
NUMBERS = st.integers(0, 2**32 - 1)


@given(key=KEYS)
def test_the_first_part_has_the_key_of_the_call(key):
    assert fold_in(key, 0) == fold_in(key, 0, 0) == key


def test_known_keys():
    assert fold_in(0, 1) == 0x9E3779B97F4A7C15
    assert fold_in(5, 2) == 5 + 0x13C6EF372FE94F82A - 2**64
    assert fold_in(0, 0, 1) == 0x7F4A7C15 << 32  # the upper half is lost
    assert fold_in(2**64 - 1, 1) == 0x9E3779B97F4A7C14


@given(key=KEYS, one=st.tuples(NUMBERS, NUMBERS), other=st.tuples(NUMBERS, NUMBERS))
def test_no_two_parts_share_a_key(key, one, other):
    keys = fold_in(key, *one), fold_in(key, *other)
    assert all(0 <= each < 2**64 for each in keys)
    assert (keys[0] == keys[1]) == (one == other)


def test_the_rounds_of_many_tours_have_different_keys():
    keys = {fold_in(9, number, tour) for number in range(300) for tour in range(300)}
    assert len(keys) == 300 * 300
    # and both words that kernels read differ from one round to the next
    for words in ([key & 0xFFFFFFFF for key in keys], [key >> 32 for key in keys]):
        assert len(set(words)) > 200


@pytest.mark.parametrize("number", [1, 2, 1000])
def test_neighbours_are_told_apart_in_half_their_bits(number):
    changed = (fold_in(7, number) ^ fold_in(7, number + 1)).bit_count()
    assert 12 <= changed <= 52
