// Random numbers of an ant, which depend on its number and step alone.
#pragma once

#include "device/philox.cuh"
#include "device/warp.cuh"

// An ant and the keys of its random numbers.
struct Ant {
    const RoundKeys& key;
    unsigned number;

    __device__ __forceinline__ uint4 draw(unsigned block, unsigned last_word = 0u) const {
        return philox4x32(make_uint4(block, STREAM_CONSTRUCTION, number, last_word), key);
    }
};

// Component s of a vector of four.
template <class Vector>
__device__ __forceinline__ auto one_of(const Vector& four, int s) {
    return s == 0 ? four.x : s == 1 ? four.y : s == 2 ? four.z : four.w;
}

// A uniform number for each spin of an ant's roulette wheel, one word per spin.
struct Spins {
    uint4 mine;  // this lane's four words of a group of 128 spins

    // Spins must be passed in order; the first is 0 or 1.
    __device__ __forceinline__ float next(const Ant& ant, int spin) {
        if ((spin & 127) == 0 || spin == 1) mine = ant.draw(static_cast<unsigned>(spin >> 7) * 32 + lane_id());
        return uniform(__shfl_sync(EVERY_LANE, one_of(mine, spin & 3), (spin >> 2) & 31));
    }
};
