// An arrangement of a window to go back to.
#pragma once

#include "windows/window.cuh"

// The order of the cities, in registers.
struct Kept {
    unsigned words[SLOTS / 2];

    __device__ __forceinline__ void keep(const Window& w) {
        const unsigned* order = reinterpret_cast<const unsigned*>(w.order);
#pragma unroll
        for (int s = 0; s < SLOTS / 2; ++s) words[s] = order[32 * s + lane_id()];
    }
    __device__ __forceinline__ void restore(Window& w, int m) const {
        unsigned* order = reinterpret_cast<unsigned*>(w.order);
#pragma unroll
        for (int s = 0; s < SLOTS / 2; ++s) {
            order[32 * s + lane_id()] = words[s];
#pragma unroll
            for (int b = 0; b < 2; ++b) {
                const int p = 2 * (32 * s + lane_id()) + b;
                if (p < m) w.place[words[s] >> 16 * b & 0xffffu] = static_cast<Local>(p);
            }
        }
        __syncwarp();
    }
};

// Back to the order that was kept. All lanes.
__device__ __forceinline__ void go_back(const View& view, const Kept& kept) {
    kept.restore(view.w, view.m);
    view.measure();
}
