// Local updates as counts: how often each candidate edge was taken in this iteration.
//
// c local updates of one edge give tau0 + (1 - xi)^c (tau - tau0) (Eq. (3)), whatever their order. So ants add to an
// integer, which loses no update and gives the same sum in any order, and whoever reads a trail works it out.
//
// All ants make their steps together, and a step must read what was counted before it, not what is counted in it. A
// count therefore has three fields: updates of even number, of odd number, and all older ones. While update u is
// counted in its field, the choice reads the other two, and the ants move what they counted in update u - 1 to the
// third, which leaves that sum as it is. So the field is empty when update u + 2 needs it, and the grid meets once an
// update.
#pragma once

#include "walks/acs.cuh"

typedef unsigned long long Count;

constexpr int FIELD = 21;  // bits; each field counts at most m <= 2^20
constexpr Count FIELD_MASK = (1ull << FIELD) - 1;

// What update u adds to its edges.
__device__ __forceinline__ Count one_update(unsigned u) { return 1ull << (FIELD * (u & 1u)); }

// What moves an update of number u to the older ones.
__device__ __forceinline__ Count one_aged(unsigned u) { return (1ull << (2 * FIELD)) - one_update(u); }

__device__ __forceinline__ unsigned updates_before(Count count, unsigned u) {
    return static_cast<unsigned>(count >> (2 * FIELD)) +
           static_cast<unsigned>(count >> (FIELD * (~u & 1u)) & FIELD_MASK);
}

__device__ __forceinline__ unsigned all_updates(Count count) {
    return static_cast<unsigned>(count >> (2 * FIELD)) + static_cast<unsigned>(count >> FIELD & FIELD_MASK) +
           static_cast<unsigned>(count & FIELD_MASK);
}

// Marks of a city in a tour: the edge that leads to it got a local update outside the list of the city it comes from,
// or, in the other direction, of this one. Cities are below them.
constexpr unsigned MARK_AHEAD = 1u << 31, MARK_BEHIND = 1u << 30;

// A trail after `count` local updates; keep_log2 = log2(1 - xi).
__device__ __forceinline__ float updated(float trail, float tau0, float keep_log2, unsigned count) {
    return blended(trail, tau0, 1.0f - exp2f(static_cast<float>(count) * keep_log2));
}
