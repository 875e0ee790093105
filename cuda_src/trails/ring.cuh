// Selective pheromone memory (R. Skinderowicz, "The GPU-based parallel Ant Colony System", JPDC 98 (2016),
// doi:10.1016/j.jpdc.2016.04.014, section 3.2 and Fig. 5): each city has a ring of the trails of TRAILS edges, where a
// new edge replaces the oldest one. All other edges share one trail. An entry is one 64-bit word, so that edge and
// trail are read consistently.
#pragma once

// -DTRAILS: entries per city

// High half: trail. Low half: city and lap bit. Slots up to the last written one have the bit of the current lap, the
// others that of the previous lap. Therefore a write changes only one word.
typedef unsigned long long Entry;

constexpr unsigned LAP = 1u << 31;
constexpr int EMPTY = 0x7FFFFFFF;  // city of an unused entry

__device__ __forceinline__ Entry entry_of(int city, unsigned lap, float trail) {
    return static_cast<Entry>(__float_as_uint(trail)) << 32 | lap | static_cast<unsigned>(city);
}

__device__ __forceinline__ int city_of(Entry entry) { return static_cast<int>(static_cast<unsigned>(entry) & ~LAP); }
__device__ __forceinline__ unsigned lap_of(Entry entry) { return static_cast<unsigned>(entry) & LAP; }
__device__ __forceinline__ float trail_of(Entry entry) { return __uint_as_float(static_cast<unsigned>(entry >> 32)); }
