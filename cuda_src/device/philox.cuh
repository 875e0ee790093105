// Philox4x32-10, the counter-based random generator of both engines.
//
// Source: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
// A number depends only on (key, block, stream, ant, purpose), not on the thread: the same key gives the same tours for
// any launch shape.
#pragma once

// Second word of the counter: different uses draw different numbers.
constexpr unsigned STREAM_CONSTRUCTION = 0;
constexpr unsigned STREAM_KICKS = 1;
constexpr unsigned STREAM_RESTART = 2;
constexpr unsigned STREAM_START = 3;
constexpr unsigned STREAM_SCAN = 4;
constexpr unsigned STREAM_PRECEDENCE = 5;
constexpr unsigned STREAM_COIN = 7;
constexpr unsigned STREAM_REST = 8;
constexpr unsigned STREAM_ARRIVALS = 9;
constexpr unsigned STREAM_TRIALS = 11;
constexpr unsigned STREAM_TABU = 12;

struct Key {
    unsigned words[2];
};

// Precomputed keys of all ten rounds, low and high alternating, as a kernel parameter in constant memory.
struct RoundKeys {
    unsigned words[20];
};

__device__ __forceinline__ unsigned low_key(const Key& key, int round) { return key.words[0] + 0x9E3779B9u * round; }
__device__ __forceinline__ unsigned high_key(const Key& key, int round) { return key.words[1] + 0xBB67AE85u * round; }
__device__ __forceinline__ unsigned low_key(const RoundKeys& keys, int round) { return keys.words[2 * round]; }
__device__ __forceinline__ unsigned high_key(const RoundKeys& keys, int round) { return keys.words[2 * round + 1]; }

// Rounds FIRST .. LAST-1 of ten: a caller can overlap some rounds with memory latency.
template <int FIRST, int LAST, class Keys>
__device__ __forceinline__ uint4 philox_rounds(uint4 counter, const Keys& keys) {
#pragma unroll
    for (int round = FIRST; round < LAST; ++round) {
        const unsigned long long p0 = 0xD2511F53ull * counter.x, p1 = 0xCD9E8D57ull * counter.z;
        counter = make_uint4(static_cast<unsigned>(p1 >> 32) ^ counter.y ^ low_key(keys, round),
                             static_cast<unsigned>(p1),
                             static_cast<unsigned>(p0 >> 32) ^ counter.w ^ high_key(keys, round),
                             static_cast<unsigned>(p0));
    }
    return counter;
}

template <class Keys>
__device__ __forceinline__ uint4 philox4x32(uint4 counter, const Keys& keys) {
    return philox_rounds<0, 10>(counter, keys);
}

template <class Keys>
__device__ __forceinline__ uint4 random_words(const Keys& keys, unsigned block, unsigned stream, unsigned ant) {
    return philox4x32(make_uint4(block, stream, ant, 0u), keys);
}

// An integer of 0 .. n-1; the bias is below n / 2^32.
__device__ __forceinline__ unsigned below(unsigned word, unsigned n) { return __umulhi(word, n); }

// The start city of an ant.
template <class Keys>
__device__ __forceinline__ int first_city(const Keys& keys, unsigned ant, int n) {
    return below(random_words(keys, 0u, STREAM_START, ant).x, n);
}

// A float in (0, 1]; small values have full relative precision.
__device__ __forceinline__ float uniform(unsigned word) {
    return fmaf(static_cast<float>(word), 0x1p-32f, 0x1p-33f);
}

// An exponential variate with mean 1 / ln 2 from one word; races only compare variates. Races over many cities are
// decided near 0, where a series avoids the cancellation in the logarithm of a number near 1.
__device__ __forceinline__ float exponential(unsigned word) {
    const float v = fmaf(static_cast<float>(word), 0x1.fffffep-33f, 0x1p-33f);  // in (0, 1 - 2^-24]
    const float series = v * fmaf(v, fmaf(v, 0.48089835f, 0.72134752f), 1.44269504f);
    return v < 0.015625f ? series : -__log2f(1.0f - v);
}
