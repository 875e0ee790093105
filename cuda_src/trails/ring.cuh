// The selective pheromone memory (section 3.2 and Fig. 5): each city keeps the trails of TRAILS edges in a ring, all
// other edges share one trail, and a new edge replaces the oldest one.
//
// Source: R. Skinderowicz, "The GPU-based parallel Ant Colony System", JPDC 98 (2016), doi:10.1016/j.jpdc.2016.04.014.
// An entry is one word of 64 bits, so that edge and trail are read consistently.
#pragma once

// -DTRAILS: entries a city

// Trail in the high half; in the low half the city and the lap bit: all slots up to the last written one have the bit
// of this lap, the others that of the previous lap. So a write changes only one word.
typedef unsigned long long Entry;

constexpr unsigned LAP = 1u << 31;
constexpr int EMPTY = 0x7FFFFFFF;  // in place of a city

__device__ __forceinline__ Entry entry_of(int city, unsigned lap, float trail) {
    return static_cast<Entry>(__float_as_uint(trail)) << 32 | lap | static_cast<unsigned>(city);
}

__device__ __forceinline__ int city_of(Entry entry) { return static_cast<int>(static_cast<unsigned>(entry) & ~LAP); }
__device__ __forceinline__ unsigned lap_of(Entry entry) { return static_cast<unsigned>(entry) & LAP; }
__device__ __forceinline__ float trail_of(Entry entry) { return __uint_as_float(static_cast<unsigned>(entry >> 32)); }
