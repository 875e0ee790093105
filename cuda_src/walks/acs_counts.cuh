// Local updates as counts: number of uses of each candidate edge in this iteration.
//
// c local updates of one edge give tau0 + (1 - xi)^c (tau - tau0) (Eq. (3)), in any order. Ants increment an integer:
// no update is lost, and the sum does not depend on the order. Readers compute the trail from the count.
//
// All ants step synchronously, and a step must read the counts of previous steps only. Therefore a count has three
// fields: even updates, odd updates and older ones. While ants count update u in its field, choices read the sum of the
// other two fields. Ants move their counts of update u - 1 to the third field, which preserves this sum. With one grid
// barrier per update, the field is empty when update u + 2 needs it.
#pragma once

#include "walks/acs.cuh"

typedef unsigned long long Count;

constexpr int FIELD = 21;  // bits of a field, which counts at most m <= 2^20
constexpr Count FIELD_MASK = (1ull << FIELD) - 1;

// Increment of update u.
__device__ __forceinline__ Count one_update(unsigned u) { return 1ull << (FIELD * (u & 1u)); }

// Increment that moves update u to the field of older updates.
__device__ __forceinline__ Count one_aged(unsigned u) { return (1ull << (2 * FIELD)) - one_update(u); }

__device__ __forceinline__ unsigned updates_before(Count count, unsigned u) {
    return static_cast<unsigned>(count >> (2 * FIELD)) +
           static_cast<unsigned>(count >> (FIELD * (~u & 1u)) & FIELD_MASK);
}

__device__ __forceinline__ unsigned all_updates(Count count) {
    return static_cast<unsigned>(count >> (2 * FIELD)) + static_cast<unsigned>(count >> FIELD & FIELD_MASK) +
           static_cast<unsigned>(count & FIELD_MASK);
}

// Marks of a city in a tour, above all city numbers: its incoming edge has a local update, but this city is not a
// candidate of the previous one (AHEAD), or the previous city is not a candidate of this one (BEHIND).
constexpr unsigned MARK_AHEAD = 1u << 31, MARK_BEHIND = 1u << 30;

// A trail after `count` local updates; keep_log2 = log2(1 - xi).
__device__ __forceinline__ float updated(float trail, float tau0, float keep_log2, unsigned count) {
    return blended(trail, tau0, 1.0f - exp2f(static_cast<float>(count) * keep_log2));
}
