// Ant Colony System: choice of the next city and local update, common to the three variants.
//
// Source: R. Skinderowicz, "The GPU-based parallel Ant Colony System", JPDC 98 (2016), doi:10.1016/j.jpdc.2016.04.014;
// equations are numbered as there. One warp walks one ant, a lane evaluates SLOTS candidates.
//
// Letters: m ants, n cities, k candidates a city; rows are padded to 32 SLOTS with the row's own city.
#pragma once

#include "walks/fallback.cuh"
#include "device/philox.cuh"
#include "device/relaxed.cuh"

// -DSLOTS: candidates a lane
// -DSYMMETRIC: 1: both directions of an edge share their updates

constexpr int STRIDE = 32 * SLOTS;
constexpr float LEAST_TRAIL = 1.17549435e-38f;  // has a logarithm
constexpr float LEAST_LOGARITHM = -1e30f;       // of a weight that is not zero
constexpr int NONE = -1;

// Parameters of every ACS kernel besides its trails, from the exponents to the tours (m, n). period: every period-th
// edge of an ant gets the local update; memory: ant_bytes of every resident ant, if shared memory is too small.
#define ACS_PARAMETERS                                                                                          \
    float alpha, float beta, float shortest, float q0, float tau0, float xi, int period, const RoundKeys key,   \
        int m, int ant_bytes, char *memory, int *tours

// ---- local update

// The local update tau <- (1 - xi) tau + xi tau0 (Eq. (3)), written so that tau0 stays exactly tau0.
// `share` is xi, or 1 - (1 - xi)^c for c updates at once.
__device__ __forceinline__ float blended(float trail, float tau0, float share) {
    return fmaf(tau0 - trail, share, trail);
}

// ---- choice

struct Rule {
    float q0;     // probability of the greedy choice
    float alpha;  // exponent of the trail; the table includes that of eta
};

// The candidates of a city, SLOTS a lane.
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
__device__ __forceinline__ bool is_greedy(const Rule& rule, const RoundKeys& key, unsigned ant, unsigned step) {
    return uniform(random_words(key, step, STREAM_COIN, ant).x) <= rule.q0;
}

// The same for 32 steps from `step` on, a bit each; the minimum makes it uniform for the compiler.
__device__ __forceinline__ unsigned greedy_bits(const Rule& rule, const RoundKeys& key, unsigned ant, unsigned step) {
    return warp_min(__ballot_sync(EVERY_LANE, is_greedy(rule, key, ant, step + lane_id())));
}

// Factors of the weights before the maximum: 1 for the greedy choice; else 1 / E with an exponential variate E, because
// the largest w / E is drawn with probability w / sum of w (Eq. (2); the race of Efraimidis and Spirakis 2006).
__device__ __forceinline__ void draw_race_factors(bool greedy, const RoundKeys& key, unsigned ant, unsigned step, float* race_factor) {
#pragma unroll
    for (int s = 0; s < SLOTS; ++s) race_factor[s] = 1.0f;
    if (greedy) return;
    constexpr int BLOCKS = (SLOTS + 3) / 4;
#pragma unroll
    for (int b = 0; b < BLOCKS; ++b) {
        const uint4 words = random_words(key, (step * BLOCKS + b) * 32 + lane_id(), STREAM_CONSTRUCTION, ant);
        const unsigned four[4] = {words.x, words.y, words.z, words.w};
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            if (4 * b + i < SLOTS) race_factor[4 * b + i] = __fdividef(1.0f, exponential(four[i]));
        }
    }
}

// The candidates of a city without their trails: a walk computes this while the trails are loaded.
struct Offer {
    int city[SLOTS];
    float factor[SLOTS];  // eta^beta race_factor, 0 of a visited city; with ALPHA_IS_ONE = 0 its logarithm
    Look look[SLOTS];

    __device__ __forceinline__ Offer(const Near& near, const float* race_factor, const Tabu& tabu) {
#pragma unroll
        for (int s = 0; s < SLOTS; ++s) {
            city[s] = near.city[s];
            look[s] = tabu.look(city[s]);
            const float open = look[s].visited() ? 0.0f : near.eta[s] * race_factor[s];
            factor[s] = ALPHA_IS_ONE ? open : __log2f(open);
        }
    }
};

// The best candidate of a lane: open, with the largest tau^alpha eta^beta race_factor. The lane is in the low bits, so
// that one integer minimum gives the winner: weights are compared by 18 bits of their mantissa; ties: the lowest lane.
struct Bid {
    unsigned shortfall;  // decreases with the weight; NO_BID if no city is open
    int city, slot;
    Look look;

    __device__ __forceinline__ Bid(const Offer& offer, const float* trails, const Rule& rule) : shortfall(EVERY_LANE) {
#pragma unroll
        for (int s = 0; s < SLOTS; ++s) {
#if ALPHA_IS_ONE
            // non-negative floats compare like integers
            const unsigned own = ~__float_as_uint(trails[s] * offer.factor[s]);
#else
            // logarithms, because tau^alpha may overflow a float; -inf for a visited city
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
