// Frame of the walks of unsynchronised ants: one warp per ant.
#pragma once

#include "walks/ant.cuh"
#include "walks/tabu.cuh"

// -DIN_SHARED: 1: what an ant remembers is in shared memory; 0: in global memory

// Parameters common to all walks. m ants; ant_bytes: memory of an ant; memory: ant_bytes per warp of the grid, unused
// if IN_SHARED; tours (m, n).
#define WALK_PARAMETERS const RoundKeys key, int m, int ant_bytes, char *memory, int *tours

// Usual launch bounds: maximum ants per block, and minimum resident blocks per multiprocessor.
constexpr int MOST_ANTS = 4, LEAST_BLOCKS = 8;

extern __shared__ uint4 shared_memory[];

// Memory of this warp's ant. `shared`: shared memory of all ants of the block.
__device__ __forceinline__ char* memory_of_ant(void* shared, char* memory, int ant_bytes) {
#if IN_SHARED
    return static_cast<char*>(shared) + static_cast<size_t>(warp_of_block()) * ant_bytes;
#else
    return memory + (static_cast<size_t>(blockIdx.x) * (blockDim.x >> 5) + warp_of_block()) * ant_bytes;
#endif
}

// Call build(Ant, start, tour) for the ants of this warp, with only the start city in the tabu and in the tour; the
// walks end if it returns false.
template <class Build>
__device__ __forceinline__ void for_each_ant(const RoundKeys& key, int m, Tabu& tabu, int* tours, Build build) {
    const int warps = blockDim.x >> 5;
    for (int number = blockIdx.x * warps + warp_of_block(); number < m; number += gridDim.x * warps) {
        tabu.clear();
        const int start = first_city(key, number, tabu.n);
        tabu.visit(start);
        int* const tour = tours + static_cast<size_t>(number) * tabu.n;
        if (lane_id() == 0) *tour = start;
        if (!build(Ant{key, static_cast<unsigned>(number)}, start, tour)) return;
    }
}
