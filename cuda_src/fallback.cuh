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

// tau is (n, n) or null; city is where the ant stands.
__device__ __noinline__ int best_remaining(Cities cities, const float* tau, Exponents exponents, int city, Tabu tabu) {
    const float* row = tau + static_cast<size_t>(city) * cities.n;
    const Point here = point_of(cities, city);
    unsigned best = 0u;
    int chosen = 0x7FFFFFFF;
    for_open_cities(tabu, [&](int j, bool open) {
        if (!open) return;
        const float d = distance(cities, city, here, j, point_of(cities, j));
        const unsigned rank = ordered(attraction(DENSE ? row[j] : 0.0f, d, exponents));
        if (rank > best || (rank == best && j < chosen)) {
            best = rank;
            chosen = j;
        }
    });
    const unsigned top = warp_max(best);
    return static_cast<int>(warp_min(best == top ? static_cast<unsigned>(chosen) : 0xFFFFFFFFu));
}
