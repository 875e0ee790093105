// The greedy choice when all candidates of a city are visited (section 3.1.1, paper 003).
//
// With dense trails the open city of largest tau^alpha eta^beta. With trails of candidate edges only, all other edges
// share one trail, so the nearest open city is the best of them. Ties go to the lowest number.
#pragma once

#include "metric.cuh"
#include "tabu.cuh"

#ifndef DENSE
#define DENSE 1  // trails: 1 = (n, n), 0 = candidate edges only
#endif
#ifndef USUAL_EXPONENTS
#define USUAL_EXPONENTS 1  // alpha = 1 and beta = 2
#endif

#ifndef NEAR
#define NEAR 128  // length of the list of near cities, a multiple of 32
#endif

struct Exponents {
    float alpha, beta;
    float shortest;  // distance that a shorter one counts as
};

__device__ __forceinline__ float attraction(float tau, float d, const Exponents& e) {
#if !DENSE
    return -d;
#elif USUAL_EXPONENTS
    const float eta = 1.0f / fmaxf(d, e.shortest);
    return tau * eta * eta;
#else
    // In logarithms: tau^alpha eta^beta itself leaves the range of a float.
    return e.alpha == 0.0f ? -e.beta * log2f(fmaxf(d, e.shortest))
                           : e.alpha * log2f(tau) - e.beta * log2f(fmaxf(d, e.shortest));
#endif
}

// What the choice reads. Cities that are not listed in `near` are no nearer than the last that is, and their edges
// carry a trail of at most `bound`, so that a near open city settles the choice most of the time.
struct Surroundings {
    const float* tau;    // (n, n), null unless DENSE
    const float* bound;  // (n,) largest trail of a city's edges that are no candidates; null unless DENSE
    const Node* near;    // (n, NEAR) nearest first; the city itself fills what is left
};

struct Best {
    unsigned rank;
    int city;

    __device__ __forceinline__ void meet(float value, int j) {
        const unsigned other = ordered(value);
        if (other > rank || (other == rank && j < city)) {
            rank = other;
            city = j;
        }
    }
};

// city is where the ant stands.
__device__ __noinline__ int best_remaining(Cities cities, Surroundings around, Exponents exponents, int city,
                                           Tabu tabu) {
    const int lane = lane_id();
    const float* row = around.tau + static_cast<size_t>(city) * cities.n;
    const Point here = point_of(cities, city);
    Best best{0u, 0x7FFFFFFF};
    int near[NEAR / 32];
#pragma unroll
    for (int part = 0; part < NEAR / 32; ++part) {
        near[part] = around.near[static_cast<size_t>(city) * NEAR + 32 * part + lane];
    }
#pragma unroll
    for (int part = 0; part < NEAR / 32; ++part) {
        const int j = near[part];
        const bool open = !tabu.visited(j);
        if (!__any_sync(EVERY_LANE, open)) continue;
        const float d = distance(cities, city, here, j, point_of(cities, j));
        if (open) best.meet(attraction(DENSE ? row[j] : 0.0f, d, exponents), j);
        const float furthest = __shfl_sync(EVERY_LANE, d, 31);
        const float bound = attraction(DENSE ? around.bound[city] : 0.0f, furthest, exponents);
        const unsigned top = warp_max(best.rank);
        const int last = __shfl_sync(EVERY_LANE, j, 31);
        if (last != city && top > ordered(bound)) {
            return static_cast<int>(warp_min(best.rank == top ? static_cast<unsigned>(best.city) : 0xFFFFFFFFu));
        }
    }
    for_open_cities(tabu, [&](const int* j, const bool* open) {
        float trail[BATCH], d[BATCH];
#pragma unroll
        for (int b = 0; b < BATCH; ++b) trail[b] = DENSE ? row[j[b]] : 0.0f;
#pragma unroll
        for (int b = 0; b < BATCH; ++b) d[b] = distance(cities, city, here, j[b], point_of(cities, j[b]));
#pragma unroll
        for (int b = 0; b < BATCH; ++b) {
            if (open[b]) best.meet(attraction(trail[b], d[b], exponents), j[b]);
        }
    });
    const unsigned top = warp_max(best.rank);
    return static_cast<int>(warp_min(best.rank == top ? static_cast<unsigned>(best.city) : 0xFFFFFFFFu));
}
