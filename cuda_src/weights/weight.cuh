// The weight of an edge, tau^alpha eta^beta with eta = 1 / d (Eq. (1), paper 001), in double: what float factors of
// rows are made from.
#pragma once

#include "instance/metric.cuh"

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
    return 1.0 / power(fmax(exact_distance(cities, i, j), static_cast<double>(e.shortest)), e.beta);
}

constexpr float LARGEST_INVERSE = 1e36f;  // times an exponential it stays finite

// scale / w as a float that a race can multiply; infinity for an edge of weight zero.
__device__ __forceinline__ float inverse_of(double w, double scale) {
    return w > 0.0 ? fminf(static_cast<float>(scale / w), LARGEST_INVERSE) : __int_as_float(0x7F800000);
}
