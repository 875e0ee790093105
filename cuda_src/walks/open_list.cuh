// State of an ant of selection_rules.cu: random numbers and the list of open cities.
#pragma once

#include "device/philox.cuh"
#include "walks/tabu.cuh"

struct Ant {
    const RoundKeys& key;
    unsigned number;

    // Random words of one step. A last counter word of 0 is reserved for the wheel, which uses one word per step.
    __device__ __forceinline__ uint4 draw(int step, int number_of_draw) const {
        return philox4x32(make_uint4(step, STREAM_CONSTRUCTION, number, 1u + number_of_draw), key);
    }
};

// Random words of the wheel, one per step.
struct Spins {
    uint4 mine;  // this lane's four words of a group of 128 steps

    __device__ __forceinline__ float next(const Ant& ant, int step) {
        if ((step & 127) == 0 || step == 1) {
            const unsigned block = static_cast<unsigned>(step >> 7) * 32 + lane_id();
            mine = philox4x32(make_uint4(block, STREAM_CONSTRUCTION, ant.number, 0u), ant.key);
        }
        const int s = step & 3;
        const unsigned word = s == 0 ? mine.x : s == 1 ? mine.y : s == 2 ? mine.z : mine.w;
        return uniform(__shfl_sync(EVERY_LANE, word, (step >> 2) & 31));
    }
};

// The unvisited index array (Fig. 6, paper 000; Fig. 8, paper 004).
struct OpenList {
    Node* cities;  // (left,) in no particular order
    int left;

    // List the cities c of 0 .. n-1 with is_open(c).
    template <class IsOpen>
    __device__ __forceinline__ void fill(int n, IsOpen is_open) {
        left = 0;
        for (int first = 0; first < n; first += 32) {
            const int c = first + lane_id();
            const bool open = c < n && is_open(c);
            const unsigned found = __ballot_sync(EVERY_LANE, open);
            if (open) cities[left + __popc(found & ((1u << lane_id()) - 1u))] = static_cast<Node>(c);
            left += __popc(found);
        }
        __syncwarp();
    }

    // Remove the city at an index by moving the last city there.
    __device__ __forceinline__ void remove(int place) {
        __syncwarp();
        --left;
        if (lane_id() == 0) cities[place] = cities[left];
        __syncwarp();
    }
};
