// Roulette wheel (section 4.2.1, Skinderowicz 2020; section IV.B, Uchida et al. 2012) by prefix sums over a warp: first
// find the lane whose share contains the spin, then the entry in that share.
//
// If rounding carries a spin past the last positive share or entry, that one wins.
#pragma once

#include "device/warp.cuh"

// Largest weight of a scaled row (selection_rules.cu), far above 1: a weight of 10^-60 of it is still a float.
constexpr float LARGEST_WEIGHT = 0x1p96f;

struct Wheel {
    float own, prefix;  // the lane's share, and the sum of the shares of lanes 0 .. own
    unsigned open;       // lanes whose share is positive

    __device__ __forceinline__ explicit Wheel(float own)
        : own(own), prefix(warp_prefix_sum(own)), open(__ballot_sync(EVERY_LANE, own > 0.0f)) {}

    __device__ __forceinline__ float all() const { return __shfl_sync(EVERY_LANE, prefix, 31); }

    // Open lanes whose prefix sum is at least `spin`.
    __device__ __forceinline__ unsigned reached(float spin) const {
        return __ballot_sync(EVERY_LANE, prefix >= spin) & open;
    }
    // The first of these lanes; the last open lane if there is none.
    __device__ __forceinline__ int winner(unsigned reached) const {
        return reached ? __ffs(reached) - 1 : 31 - __clz(open);
    }
    // The spin relative to the beginning of the lane's share.
    __device__ __forceinline__ float rest(float spin) const { return spin - (prefix - own); }
};

// Call take(place) for entries of a lane; the last call is for the entry that contains `rest`.
template <int PLACES, class Take>
__device__ __forceinline__ void spin_in_order(const float (&weights)[PLACES], float rest, Take take) {
    bool none = true;
#pragma unroll
    for (int place = 0; place < PLACES; ++place) {
        if (weights[place] > 0.0f && (none || rest > 0.0f)) {
            take(place);
            none = false;
        }
        rest -= weights[place];
    }
}
