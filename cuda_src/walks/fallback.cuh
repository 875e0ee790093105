// The greedy choice when all candidates of a city are visited (section 3.1.1, Skinderowicz 2016).
//
// With dense trails it is the open city of largest tau^alpha eta^beta. With trails of candidate edges only, all other
// edges share one trail, so it is the nearest open city. Ties: the lowest city.
#pragma once

#include "device/relaxed.cuh"
#include "walks/tabu.cuh"
#include "weights/weight.cuh"

// -DDENSE: 1: trails (n, n); 0: trails of candidate edges only
// -DUSUAL_EXPONENTS: 1: alpha = 1 and beta = 2

#ifndef CONCURRENT
#define CONCURRENT 0  // 1: other warps change the trails while the choice is made
#endif
// -DNEAR: length of the list of near cities, a multiple of 128

__device__ __forceinline__ float attraction(float tau, float d, const Exponents& e) {
#if !DENSE
    return -d;
#elif USUAL_EXPONENTS
    const float eta = __fdividef(1.0f, fmaxf(d, e.shortest));
    return tau * eta * eta;
#else
    // logarithms, because tau^alpha eta^beta may overflow a float
    return e.alpha == 0.0f ? -e.beta * log2f(fmaxf(d, e.shortest))
                           : e.alpha * log2f(tau) - e.beta * log2f(fmaxf(d, e.shortest));
#endif
}

// Data of the choice. Cities outside `near` are not nearer than its last one, and edges that are neither candidates nor
// in `raised` have a trail of at most `bound`. Therefore a near open city usually decides the choice.
struct Surroundings {
    Cities cities;
    Exponents exponents;
    const float* tau;    // (n, n), null unless DENSE
    const float* bound;  // (n,) null unless DENSE
    const Node* near;    // (n, NEAR) nearest first, padded with the city itself
    const Node* raised;  // (n, 32) padded with the city itself; may be null

    __device__ __forceinline__ const float* trails_of(int city) const {
        return tau + static_cast<size_t>(city) * cities.n;
    }
};

__device__ __forceinline__ float trail_at(const float* place) { return CONCURRENT ? load_relaxed(place) : *place; }

// The city of the largest attraction so far: its attraction as an ordered integer, above the complement of the city, so
// that the largest key is the best; ties: the lowest city. 0: none.
struct Best {
    unsigned long long key = 0ull;

    __device__ __forceinline__ unsigned rank() const { return static_cast<unsigned>(key >> 32); }
    __device__ __forceinline__ int city() const { return static_cast<int>(~static_cast<unsigned>(key)); }

    // Update by city j at distance d; row: the trails from the ant's city.
    __device__ __forceinline__ void consider(const float* row, float d, int j, const Exponents& exponents) {
        const float value = attraction(DENSE ? trail_at(row + j) : 0.0f, d, exponents);
        key = max(key, static_cast<unsigned long long>(ordered(value)) << 32 | ~static_cast<unsigned>(j));
    }
    __device__ __forceinline__ Best of_all_lanes() const {
        const unsigned top = warp_max(rank()), low = static_cast<unsigned>(key);
        return Best{static_cast<unsigned long long>(top) << 32 | warp_max(rank() == top ? low : 0u)};
    }
};

// The best of `best` and all open cities.
__device__ __forceinline__ int best_of_all(const Surroundings& around, int city, const Tabu& tabu, Best best) {
    const Cities& cities = around.cities;
    const float* row = around.trails_of(city);
    const Point here = point_of(cities, city);
    for_open_cities(tabu, [&](int j, bool open) {
        const float d = distance(cities, city, here, j, point_of(cities, j));
        if (open) best.consider(row, d, j, around.exponents);
    });
    return best.of_all_lanes().city();
}

// Result of a search in the lists of a city.
struct Listed {
    Best best;   // of this lane's listed open cities
    int chosen;  // the best of all open cities, or -1 if the lists do not decide
};

__device__ __forceinline__ Listed best_listed(const Surroundings& around, int city, const Tabu& tabu) {
    const int lane = lane_id();
    const Cities& cities = around.cities;
    const Exponents& exponents = around.exponents;
    const float* row = around.trails_of(city);
    const Point here = point_of(cities, city);
    Best best;
    // issue all loads first
    const Node* near = around.near + static_cast<size_t>(city) * NEAR + lane;
    int j[4];
#pragma unroll
    for (int part = 0; part < 4; ++part) j[part] = near[32 * part];
#if DENSE
    const float bound = around.bound[city];
    const int strong = around.raised == nullptr ? city : around.raised[32 * static_cast<size_t>(city) + lane];
    if (!tabu.visited(strong)) best.consider(row, distance(cities, city, strong), strong, exponents);
#else
    const float bound = 0.0f;
#endif
#pragma unroll 1
    for (int next = 128;; next += 128) {
        bool open[4];
#pragma unroll
        for (int part = 0; part < 4; ++part) open[part] = !tabu.visited(j[part]);
#pragma unroll
        for (int part = 0; part < 4; ++part) {
            if (!__any_sync(EVERY_LANE, open[part])) continue;
            const float d = distance(cities, city, here, j[part], point_of(cities, j[part]));
            if (open[part]) best.consider(row, d, j[part], exponents);
            const float furthest = __shfl_sync(EVERY_LANE, d, 31);
            const unsigned top = warp_max(best.rank());
            const int last = __shfl_sync(EVERY_LANE, j[part], 31);
            if (last != city && top > ordered(attraction(bound, furthest, exponents))) {
                return Listed{best, best.of_all_lanes().city()};
            }
        }
        if (next >= NEAR) break;
#pragma unroll
        for (int part = 0; part < 4; ++part) j[part] = near[next + 32 * part];
    }
    return Listed{best, -1};
}

// The best open city. Inlined, because the compiler assumes a diverged warp after a call and checks it in every warp
// operation.
__device__ __forceinline__ int best_remaining(const Surroundings& around, int city, const Tabu& tabu) {
    const Listed listed = best_listed(around, city, tabu);
    return listed.chosen >= 0 ? listed.chosen : best_of_all(around, city, tabu, listed.best);
}
