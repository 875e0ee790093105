"""Philox against the authors' known answers, and as a source of uniform numbers."""

import re
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from pymoo_gpuaco.backends.cuda.device import sources
from pymoo_gpuaco.runtime import philox
from pymoo_gpuaco.runtime.philox import fold_in, next_below, next_uniform, next_word, philox4x32
from tests import emulator
from tests.compiled_callees import new_stream

# counter, key, output: the vectors that Random123 publishes for philox4x32 with 10 rounds
KNOWN = [
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((0xFFFFFFFF,) * 4, (0xFFFFFFFF,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
]


@pytest.mark.parametrize(("counter", "key", "expected"), KNOWN)
def test_known_answers(counter, key, expected):
    words = philox4x32(*(np.uint64(c) for c in counter), *(np.uint64(k) for k in key))
    assert tuple(int(w) for w in words) == expected


def test_a_stream_is_the_blocks_of_its_counter_in_order():
    key = 0x299F31D0_A4093822
    stream = new_stream(key, 5, 7)
    drawn = [int(next_word(stream)) for _ in range(8)]
    low, high = np.uint64(key & 0xFFFFFFFF), np.uint64(key >> 32)
    blocks = []
    for block in range(2):
        words = philox4x32(np.uint64(block), np.uint64(7), np.uint64(5), np.uint64(0), low, high)
        blocks += [int(w) for w in words]
    assert drawn == blocks


def test_streams_of_other_ants_purposes_and_keys_differ():
    first = [int(next_word(new_stream(k, a, s))) for k in (1, 2) for a in (0, 1) for s in (0, 1)]
    assert len(set(first)) == 8


def test_uniform_numbers_are_uniform_and_inside_the_open_interval():
    stream = new_stream(11, 0, 0)
    drawn = np.array([next_uniform(stream) for _ in range(20_000)])
    assert drawn.min() > 0.0
    assert drawn.max() < 1.0
    assert stats.kstest(drawn, "uniform").pvalue > 1e-4


def test_integers_below_seven_are_equally_likely():
    stream = new_stream(12, 0, 0)
    counts = np.bincount([next_below(stream, 7) for _ in range(14_000)], minlength=7)
    assert len(counts) == 7
    assert stats.chisquare(counts).pvalue > 1e-4


KEYS = st.integers(0, 2**64 - 1)
NUMBERS = st.integers(0, 2**32 - 1)


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


KERNEL = """#include "device/philox.cuh"
extern "C" __global__ void draw(uint4* words, unsigned low, unsigned high) {
    *words = philox4x32(*words, Key{low, high});
}
"""


@pytest.mark.parametrize(("counter", "key", "expected"), KNOWN)
def test_known_answers_of_kernels(counter, key, expected, compiled_kernels):
    emulator.skip_without_compiler()
    words = np.array(counter, np.uint32)
    run = emulator.build("draw.cu", {}, compiled_kernels, KERNEL).run_draw
    assert run(1, 1, struct.pack("@PII", words.ctypes.data, *key)) == 0
    assert tuple(words.tolist()) == expected


def test_a_stream_has_one_number_in_both_engines():
    declared = re.findall(r"unsigned (STREAM_\w+) = (\d+);", sources.read("device/philox.cuh"))
    kernels = {name: int(number) for name, number in declared}
    host = {name: number for name, number in vars(philox).items() if name.startswith("STREAM_")}
    shared = {"STREAM_CONSTRUCTION", "STREAM_KICKS", "STREAM_RESTART", "STREAM_PRECEDENCE"}
    assert kernels.keys() & host.keys() >= shared
    assert all(kernels[name] == host[name] for name in kernels.keys() & host.keys())
    every = host | kernels  # a round on a device and a recombination on the host share a key
    assert len(set(every.values())) == len(every)
