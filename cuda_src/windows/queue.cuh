// Cities of a window that are to be looked at.
#pragma once

#include "device/warp.cuh"

// Cities that are to be looked at: a lane has 32 of them in a word.
struct Queue {
    unsigned own = 0;

    __device__ __forceinline__ void push(int city) {
        if (lane_id() == city >> 5) own |= 1u << (city & 31);
    }
    __device__ __forceinline__ int next() {  // or -1; it stays in the queue
        const unsigned lanes = __ballot_sync(EVERY_LANE, own != 0);
        if (lanes == 0) return -1;
        const int lane = __ffs(lanes) - 1;
        return 32 * lane + __ffs(__shfl_sync(EVERY_LANE, own, lane)) - 1;
    }
    __device__ __forceinline__ void drop(int city) {
        if (lane_id() == city >> 5) own &= ~(1u << (city & 31));
    }
    __device__ __forceinline__ void add(const Queue& other) { own |= other.own; }
    __device__ __forceinline__ void fill(int m) {
        const int left = m - 32 * lane_id();
        own = left >= 32 ? ~0u : left > 0 ? (1u << left) - 1u : 0u;
    }
};
