"""Philox4x32-10, the counter-based random generator of both engines.

Source: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011. A number depends only on
(key, ant, stream, index), not on the thread: the same seed gives the same tours for any number of threads.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.runtime.compiled import compiled_callee, inlined

# Streams, the second word of the counter: different uses draw different numbers. Kernels have others in philox.cuh.
STREAM_CONSTRUCTION = 0
STREAM_KICKS = 1
STREAM_RESTART = 2
STREAM_PRECEDENCE = 5
STREAM_ASSEMBLY = 6
STREAM_COIN = 7
STREAM_EVOLUTION = 10
STREAM_TABU = 12

# 2**64 / golden ratio, odd: keys of neighbouring numbers differ in high and low bits
_STEP = 0x9E3779B97F4A7C15
_TOUR = 1 << 32

_MASK = np.uint64(0xFFFFFFFF)
_32 = np.uint64(32)
_M0 = np.uint64(0xD2511F53)
_M1 = np.uint64(0xCD9E8D57)
_W0 = np.uint64(0x9E3779B9)
_W1 = np.uint64(0xBB67AE85)


def fold_in(key: int, number: int, tour: int = 0) -> int:
    """Return the key in [0, 2**64) of launch or round ``number`` and a tour, in a call with ``key``.

    Number 0 of tour 0 has the call's own key. All others differ, for ``number`` and ``tour`` in [0, 2**32).
    """
    return (key + _STEP * (number + _TOUR * tour)) % 2**64


def generator(key: int, number: int) -> np.random.Generator:
    """Return a NumPy generator for part ``number`` of a call on the host; both arguments are in [0, 2**64)."""
    # an array, because NumPy converts a list with large keys to floats
    return np.random.Generator(np.random.Philox(key=np.array([key, number], np.uint64)))


@compiled_callee
def philox4x32(c0, c1, c2, c3, k0, k1):  # type: ignore[no-untyped-def]
    """Return four 32-bit words (as uint64) from a 128-bit counter and a 64-bit key, by ten rounds."""
    for _ in range(10):
        p0 = _M0 * c0
        p1 = _M1 * c2
        c0, c1, c2, c3 = (
            ((p1 >> _32) ^ c1 ^ k0) & _MASK,
            p1 & _MASK,
            ((p0 >> _32) ^ c3 ^ k1) & _MASK,
            p0 & _MASK,
        )
        k0 = (k0 + _W0) & _MASK
        k1 = (k1 + _W1) & _MASK
    return c0, c1, c2, c3


# State of a generator (10,), uint64: low and high word of the key, block index, stream, ant, buffer of 4 words, number
# of used words.
_K0, _K1, _BLOCK, _STREAM, _ANT, _BUFFER, _USED = 0, 1, 2, 3, 4, 5, 9
STATE = 10


@inlined
def begin_stream(state, key, ant, stream):  # type: ignore[no-untyped-def]
    """Initialise the state (10,) of the generator of an ant and a stream; ``key`` is a uint64."""
    for i in range(state.shape[0]):
        state[i] = np.uint64(0)
    state[_K0] = key & _MASK
    state[_K1] = key >> _32
    state[_STREAM] = np.uint64(stream)
    state[_ANT] = np.uint64(ant)
    state[_USED] = np.uint64(4)


def new_streams(key: int, ants: int, stream: int) -> NDArray[np.uint64]:
    """Return the states (ants, 10) of generators for ants 0 .. ants-1 and a stream."""
    states = np.zeros((ants, STATE), np.uint64)
    states[:, _K0], states[:, _K1] = int(key) & int(_MASK), int(key) >> 32
    states[:, _STREAM], states[:, _ANT], states[:, _USED] = stream, np.arange(ants), 4
    return states


@inlined
def next_word(state):  # type: ignore[no-untyped-def]
    """Return the next 32 random bits, as a uint64."""
    used = state[_USED]
    if used == np.uint64(4):
        w0, w1, w2, w3 = philox4x32(
            state[_BLOCK], state[_STREAM], state[_ANT], np.uint64(0), state[_K0], state[_K1]
        )
        state[_BUFFER] = w0
        state[_BUFFER + 1] = w1
        state[_BUFFER + 2] = w2
        state[_BUFFER + 3] = w3
        state[_BLOCK] += np.uint64(1)
        used = np.uint64(0)
    state[_USED] = used + np.uint64(1)
    return state[np.uint64(_BUFFER) + used]


@inlined
def next_uniform(state):  # type: ignore[no-untyped-def]
    """Return a float64 in the open interval (0, 1), on a grid of 2**-32."""
    return (np.float64(next_word(state)) + 0.5) * 2.0**-32


@compiled_callee
def next_below(state, n):  # type: ignore[no-untyped-def]
    """Return an integer in [0, n); the bias is below n / 2**32."""
    return np.int64((next_word(state) * np.uint64(n)) >> _32)
