// The weight of an edge, tau^alpha eta^beta with eta = 1 / d (Eq. (1), Skinderowicz 2020), in double; structs that
// kernels share.
#pragma once

#include "instance/metric.cuh"

// -DETA_UNIT: unit of distances: powers of tiny or huge ones neither over- nor underflow

struct Exponents {
    float alpha, beta;
    float shortest;  // minimum distance; shorter ones are replaced by it
};

__device__ __forceinline__ double power(double base, float exponent) {
    if (exponent == 1.0f) return base;
    if (exponent == 2.0f) return base * base;
    return pow(base, static_cast<double>(exponent));
}

__device__ __forceinline__ double eta_beta(const Cities& cities, int i, int j, const Exponents& e) {
    return 1.0 / power(fmax(exact_distance(cities, i, j), static_cast<double>(e.shortest)) / ETA_UNIT, e.beta);
}

// Weight of the edge from i to j, given its trail.
__device__ __forceinline__ double weight_of(const Cities& cities, float trail, int i, int j, const Exponents& e) {
    return power(trail, e.alpha) * eta_beta(cities, i, j, e);
}

constexpr float LARGEST_INVERSE = 1e36f;  // its product with an exponential variate is finite

// scale / w as a float that stays finite in a race; infinity for an edge of weight zero.
__device__ __forceinline__ float inverse_of(double w, double scale) {
    return w > 0.0 ? fminf(static_cast<float>(scale / w), LARGEST_INVERSE) : __int_as_float(0x7F800000);
}

// w / largest as a float, positive if w is.
__device__ __forceinline__ float share_of(double w, double largest) {
    return w > 0.0 ? fmaxf(static_cast<float>(w / largest), 1.0f / LARGEST_INVERSE) : 0.0f;
}

// Entry j of an alias table: city j with probability `keep`, else city `other`.
struct Alias {
    float keep;
    int other;
};
static_assert(sizeof(Alias) == 8, "the host allocates another size for Alias");

// Data of the edges of a city that are not in its row (weights.cu, rest.cuh).
struct Rest {
    float share;  // weight of the spare edges / weight of spare edges and rest
    int spares;   // number of spare edges
    float bound;  // upper bound of the rest's trails
    int even;     // 1 if all edges that are not candidates have a trail of `bound`
};
static_assert(sizeof(Rest) == 16, "the host allocates another size for Rest");

struct Spare {
    float chance;  // weight / largest weight of the spare edges
    int city;
};
static_assert(sizeof(Spare) == 8, "the host allocates another size for Spare");
