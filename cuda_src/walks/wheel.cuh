// The roulette wheel (section 4.2.1, paper 001; section IV.B, paper 000) by prefix sums over a warp: first the lane
// whose share contains the spin, then the place in that share.
//
// If rounding carries a spin past the last positive share or place, that one wins.
#pragma once

#include "device/warp.cuh"

// Largest weight of a scaled row (selection_rules.cu). Far above 1, so that a weight of 10^-60 of it is still a float.
constexpr float LARGEST_WEIGHT = 0x1p96f;

struct Wheel {
    float own, through;  // the lane's share, and the sum of the lanes 0 .. own
    unsigned open;       // lanes whose share is positive

    __device__ __forceinline__ explicit Wheel(float own)
        : own(own), through(warp_prefix_sum(own)), open(__ballot_sync(EVERY_LANE, own > 0.0f)) {}

    __device__ __forceinline__ float all() const { return __shfl_sync(EVERY_LANE, through, 31); }

    // Open lanes whose share ends behind `spin`.
    __device__ __forceinline__ unsigned reached(float spin) const {
        return __ballot_sync(EVERY_LANE, through >= spin) & open;
    }
    // The first of them.
    __device__ __forceinline__ int winner(unsigned reached) const {
        return reached ? __ffs(reached) - 1 : 31 - __clz(open);
    }
    // The spin relative to the begin of the lane's share.
    __device__ __forceinline__ float rest(float spin) const { return spin - (through - own); }
};

// Call take(place) for places of a lane; the last call is for the place that contains `rest`.
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
