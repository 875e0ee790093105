// What the three forms of the Ant Colony System share: the choice of the next city and the local update.
//
// Source: R. Skinderowicz, "The GPU-based parallel Ant Colony System", JPDC 98 (2016), doi:10.1016/j.jpdc.2016.04.014;
// equations are numbered as there. One warp walks one ant, a lane weighs one candidate (or SLOTS of them).
//
// Letters: m ants, n cities, k candidates a city; rows are padded to 32 SLOTS with the row's own city.
#pragma once

#include "walks/fallback.cuh"
#include "device/philox.cuh"
#include "device/relaxed.cuh"

#ifndef SLOTS
#define SLOTS 1  // candidates a lane
#endif
#ifndef ALPHA_IS_ONE
#define ALPHA_IS_ONE 1
#endif
#ifndef SYMMETRIC
#define SYMMETRIC 1  // 1: both directions of an edge share their updates
#endif

constexpr int STRIDE = 32 * SLOTS;
constexpr float LEAST_TRAIL = 1.17549435e-38f;  // has a logarithm
constexpr float LEAST_LOGARITHM = -1e30f;       // of a weight that is not zero
constexpr int NONE = -1;

// What every kernel of ACS takes beside its trails, from the exponents to the tours (m, n). period: every which edge of
// an ant gets the local update; memory: ant_bytes of every ant under way, where shared memory is too small.
#define ACS_PARAMETERS                                                                                          \
    float alpha, float beta, float shortest, float q0, float tau0, float xi, int period, const RoundKeys key,   \
        int m, int ant_bytes, char *memory, int *tours

// ---- local update

// The local update tau <- (1 - xi) tau + xi tau0 (Eq. (3)), written so that tau0 itself stays exactly as it is.
// `share` is xi, or 1 - (1 - xi)^c for c updates at once.
__device__ __forceinline__ float blended(float trail, float tau0, float share) {
    return fmaf(tau0 - trail, share, trail);
}

// ---- choice

struct Rule {
    float q0;     // probability of the greedy choice
    float alpha;  // exponent of the trail; that of eta is in the table
};

// One city's candidates as the lanes hold them.
struct Near {
    int city[SLOTS];
    float eta[SLOTS];  // eta^beta over the row's largest
};

__device__ __forceinline__ Near candidates_of(const Node* candidates, const float* eta, int city) {
    Near near;
#pragma unroll
    for (int s = 0; s < SLOTS; ++s) {
        const int place = city * STRIDE + 32 * s + lane_id();
        near.city[s] = candidates[place];
        near.eta[s] = eta[place];
    }
    return near;
}

// The place of `city` in a row, the same in all lanes, or NONE.
__device__ __forceinline__ int slot_of(const int* row, int city) {
#pragma unroll
    for (int s = 0; s < SLOTS; ++s) {
        const unsigned here = __ballot_sync(EVERY_LANE, row[s] == city);
        if (here) return 32 * s + __ffs(here) - 1;
    }
    return NONE;
}

// Whether a step's choice is the greedy one (q <= q0, Eq. (1)).
__device__ __forceinline__ bool coin(const Rule& rule, const RoundKeys& key, unsigned ant, unsigned step) {
    return uniform(random_words(key, step, STREAM_COIN, ant).x) <= rule.q0;
}

// The same of 32 steps, a bit each, from `step` on; the minimum lets the compiler know that all lanes have the same.
__device__ __forceinline__ unsigned coins_of(const Rule& rule, const RoundKeys& key, unsigned ant, unsigned step) {
    return warp_min(__ballot_sync(EVERY_LANE, coin(rule, key, ant, step + lane_id())));
}

// What the weights are multiplied with before the largest is taken: 1 for the greedy choice; else 1 / E with E an
// exponential variate, for the largest w / E is a draw with probability w / sum of w (Eq. (2); the race of
// Efrimidis and Spirakis 2006).
__device__ __forceinline__ void draw_luck(bool greedy, const RoundKeys& key, unsigned ant, unsigned step, float* luck) {
#pragma unroll
    for (int s = 0; s < SLOTS; ++s) luck[s] = 1.0f;
    if (greedy) return;
    constexpr int BLOCKS = (SLOTS + 3) / 4;
#pragma unroll
    for (int b = 0; b < BLOCKS; ++b) {
        const uint4 words = random_words(key, (step * BLOCKS + b) * 32 + lane_id(), STREAM_CONSTRUCTION, ant);
        const unsigned four[4] = {words.x, words.y, words.z, words.w};
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            if (4 * b + i < SLOTS) luck[4 * b + i] = __fdividef(1.0f, exponential(four[i]));
        }
    }
}

// One city's candidates before the trails to them are known: a walk has all this ready when it waits for trails.
struct Offer {
    int city[SLOTS];
    float factor[SLOTS];  // eta^beta luck, 0 of a visited city; with ALPHA_IS_ONE = 0 its logarithm
    Look look[SLOTS];

    __device__ __forceinline__ Offer(const Near& near, const float* luck, const Tabu& tabu) {
#pragma unroll
        for (int s = 0; s < SLOTS; ++s) {
            city[s] = near.city[s];
            look[s] = tabu.look(city[s]);
            const float open = look[s].visited() ? 0.0f : near.eta[s] * luck[s];
            factor[s] = ALPHA_IS_ONE ? open : __log2f(open);
        }
    }
};

// What a lane brings into the choice: the one of its candidates that is open and has the largest tau^alpha eta^beta
// luck. The lane stands in the low bits, so that one integer minimum names the winner: weights count to 18 bits behind
// their first, and equal ones go to the lowest lane.
struct Bid {
    unsigned shortfall;  // the less, the larger the weight; NO_BID if no city is open
    int city, slot;
    Look look;

    __device__ __forceinline__ Bid(const Offer& offer, const float* trails, const Rule& rule) : shortfall(EVERY_LANE) {
#pragma unroll
        for (int s = 0; s < SLOTS; ++s) {
#if ALPHA_IS_ONE
            // Floats that are not negative compare as integers do.
            const unsigned own = ~__float_as_uint(trails[s] * offer.factor[s]);
#else
            // In logarithms, as tau^alpha itself leaves the range of a float; that of a visited city is -inf.
            const float weight = fmaf(rule.alpha, __log2f(fmaxf(trails[s], LEAST_TRAIL)), offer.factor[s]);
            const unsigned own = weight >= LEAST_LOGARITHM ? ~ordered(weight) : EVERY_LANE;
#endif
            if (s == 0 || own < shortfall) {
                shortfall = own;
                city = offer.city[s];
                slot = 32 * s + lane_id();
                look = offer.look[s];
            }
        }
        shortfall = (shortfall & ~31u) | lane_id();
    }
};

constexpr unsigned NO_BID = EVERY_LANE & ~31u;  // and above: no lane has an open city
