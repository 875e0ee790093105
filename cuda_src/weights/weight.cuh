// The weight of an edge, tau^alpha eta^beta with eta = 1 / d (Eq. (1), paper 001), in double: what float factors of
// rows are made from.
#pragma once

#include "instance/metric.cuh"

#ifndef ETA_UNIT
#define ETA_UNIT 1.0  // of distances: the same factor for all edges, so that powers of tiny or huge ones stay numbers
#endif

struct Exponents {
    float alpha, beta;
    float shortest;  // distance that a shorter one counts as
};

__device__ __forceinline__ double power(double base, float exponent) {
    if (exponent == 1.0f) return base;
    if (exponent == 2.0f) return base * base;
    return pow(base, static_cast<double>(exponent));
}

__device__ __forceinline__ double eta_beta(const Cities& cities, int i, int j, const Exponents& e) {
    return 1.0 / power(fmax(exact_distance(cities, i, j), static_cast<double>(e.shortest)) / ETA_UNIT, e.beta);
}

// Weight of the edge from i to j with a trail.
__device__ __forceinline__ double weight_of(const Cities& cities, float trail, int i, int j, const Exponents& e) {
    return power(trail, e.alpha) * eta_beta(cities, i, j, e);
}

constexpr float LARGEST_INVERSE = 1e36f;  // times an exponential it stays finite

// scale / w as a float that a race can multiply; infinity for an edge of weight zero.
__device__ __forceinline__ float inverse_of(double w, double scale) {
    return w > 0.0 ? fminf(static_cast<float>(scale / w), LARGEST_INVERSE) : __int_as_float(0x7F800000);
}

// w / largest as a float that stays above 0 where w is.
__device__ __forceinline__ float share_of(double w, double largest) {
    return w > 0.0 ? fmaxf(static_cast<float>(w / largest), 1.0f / LARGEST_INVERSE) : 0.0f;
}
