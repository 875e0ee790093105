// Ant Colony System: choice of the next city and local update, common to the three variants.
//
// Source: R. Skinderowicz, "The GPU-based parallel Ant Colony System", JPDC 98 (2016), doi:10.1016/j.jpdc.2016.04.014;
// equation numbers are from it. One warp walks one ant; a lane evaluates SLOTS candidates.
//
// Letters: m ants, n cities, k candidates per city; rows are padded to 32 SLOTS with the row's own city.
#pragma once

#include "device/relaxed.cuh"
#include "walks/ant.cuh"
#include "walks/fallback.cuh"

// -DSLOTS: candidates per lane
// -DSYMMETRIC: 1: updates apply to both directions of an edge

constexpr int STRIDE = 32 * SLOTS;
constexpr float LEAST_TRAIL = 1.17549435e-38f;  // the least normal float, positive for logarithms
constexpr float LEAST_LOGARITHM = -1e30f;       // below the logarithm of any positive weight
constexpr int NONE = -1;

// Parameters common to the ACS kernels. period: every period-th edge of an ant gets the local update.
#define ACS_PARAMETERS \
    float alpha, float beta, float shortest, float q0, float tau0, float xi, int period, WALK_PARAMETERS

// ---- local update

// The local update tau <- (1 - xi) tau + xi tau0 (Eq. (3)), in a form with the exact fixed point tau0.
// `share` is xi, or 1 - (1 - xi)^c for c updates at once.
__device__ __forceinline__ float blended(float trail, float tau0, float share) {
    return fmaf(tau0 - trail, share, trail);
}

// ---- choice

struct Rule {
    float q0;     // probability of the greedy choice
    float alpha;  // exponent of the trail; eta already includes beta
};

// The candidates of a city, SLOTS per lane.
struct Near {
    int city[SLOTS];
    float eta[SLOTS];  // eta^beta / the largest of the row
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

// The index of `city` in a row, the same in all lanes, or NONE.
__device__ __forceinline__ int slot_of(const int* row, int city) {
#pragma unroll
    for (int s = 0; s < SLOTS; ++s) {
        const unsigned here = __ballot_sync(EVERY_LANE, row[s] == city);
        if (here) return 32 * s + __ffs(here) - 1;
    }
    return NONE;
}

// True if a step's choice is the greedy one (q <= q0, Eq. (1)).
__device__ __forceinline__ bool is_greedy(const Rule& rule, const Ant& ant, unsigned step) {
    return uniform(random_words(ant.key, step, STREAM_COIN, ant.number).x) <= rule.q0;
}

// `is_greedy` of 32 steps from `step` on, one bit each; the reduction marks it as uniform for the compiler.
__device__ __forceinline__ unsigned greedy_bits(const Rule& rule, const Ant& ant, unsigned step) {
    return warp_min(__ballot_sync(EVERY_LANE, is_greedy(rule, ant, step + lane_id())));
}

// Factors of the weights before the maximum: 1 for the greedy choice, else 1 / E with an exponential variate E. A city
// has the largest w / E with probability w / sum of w (Eq. (2); the race of Efraimidis and Spirakis 2006).
__device__ __forceinline__ void draw_race_factors(bool greedy, const Ant& ant, unsigned step, float* race_factor) {
#pragma unroll
    for (int s = 0; s < SLOTS; ++s) race_factor[s] = 1.0f;
    if (greedy) return;
    constexpr int BLOCKS = (SLOTS + 3) / 4;
#pragma unroll
    for (int b = 0; b < BLOCKS; ++b) {
        const uint4 words = ant.draw((step * BLOCKS + b) * 32 + lane_id());
        const unsigned four[4] = {words.x, words.y, words.z, words.w};
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            if (4 * b + i < SLOTS) race_factor[4 * b + i] = __fdividef(1.0f, exponential(four[i]));
        }
    }
}

// The factors of the candidates' weights except their trails: a walk computes them while the trails are loaded.
struct CandidateFactors {
    int city[SLOTS];
    float factor[SLOTS];  // eta^beta race_factor, 0 for a visited city; the logarithm if ALPHA_IS_ONE is 0
    Lookup lookup[SLOTS];

    __device__ __forceinline__ CandidateFactors(const Near& near, const float* race_factor, const Tabu& tabu) {
#pragma unroll
        for (int s = 0; s < SLOTS; ++s) {
            city[s] = near.city[s];
            lookup[s] = tabu.lookup(city[s]);
            const float open = lookup[s].visited() ? 0.0f : near.eta[s] * race_factor[s];
            factor[s] = ALPHA_IS_ONE ? open : __log2f(open);
        }
    }
};

// The open candidate of a lane with the largest tau^alpha eta^beta race_factor. The lane is in the low bits of the key:
// one integer minimum gives the winner. Weights are compared by 18 bits of their mantissa; ties: the lowest lane.
struct LaneBest {
    unsigned key;  // decreases with the weight; NO_KEY or more if no city is open
    int city, slot;
    Lookup lookup;

    __device__ __forceinline__ LaneBest(const CandidateFactors& factors, const float* trails, const Rule& rule)
        : key(EVERY_LANE) {
#pragma unroll
        for (int s = 0; s < SLOTS; ++s) {
#if ALPHA_IS_ONE
            // non-negative floats compare like integers
            const unsigned own = ~__float_as_uint(trails[s] * factors.factor[s]);
#else
            // logarithms, because tau^alpha may overflow a float; -inf for a visited city
            const float weight = fmaf(rule.alpha, __log2f(fmaxf(trails[s], LEAST_TRAIL)), factors.factor[s]);
            const unsigned own = weight >= LEAST_LOGARITHM ? ~ordered(weight) : EVERY_LANE;
#endif
            if (s == 0 || own < key) {
                key = own;
                city = factors.city[s];
                slot = 32 * s + lane_id();
                lookup = factors.lookup[s];
            }
        }
        key = (key & ~31u) | lane_id();
    }
};

constexpr unsigned NO_KEY = EVERY_LANE & ~31u;  // this or more: no lane has an open city
