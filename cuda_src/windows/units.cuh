// Distances in whole units: what windows are searched by.
//
// A search that counts in integers ends, and its gains are exact: no rounding can make one. Metrics of whole numbers
// are taken as they are (scale 1); others are scaled so that a usual edge has a few thousand units. What lies farther
// apart than FARTHEST counts as just so far: such an edge is never worth keeping.
#pragma once

#include "instance/metric.cuh"

constexpr float FARTHEST = 67108864.0f;  // 2^26: sums of a dozen fit an int

// The metric's distance in float with its own rounding; correctly rounded roots, as near ones show gains that are none.
__device__ __forceinline__ float measured(const Cities& cities, int i, const Point& a, int j, const Point& b) {
#if TABLE || METRIC == 0 || METRIC == 4
    return i == j ? 0.0f : distance(cities, i, a, j, b);
#else
    const Apart d = apart(a, b);
#if METRIC == 5 || METRIC == 6
    return distance(cities, i, a, j, b);
#elif METRIC == 3
    return ceilf(__fsqrt_rn(fmaf(d.x, d.x, d.y * d.y) / 10.0f));
#else
    const float r = __fsqrt_rn(fmaf(d.x, d.x, fmaf(d.y, d.y, d.z * d.z)));
#if METRIC == 1
    return floorf(r + 0.5f);
#elif METRIC == 2
    return ceilf(r);
#else
    return r;
#endif
#endif
#endif
}

__device__ __forceinline__ int units(const Cities& cities, float scale, int i, const Point& a, int j, const Point& b) {
    return __float2int_rn(fminf(measured(cities, i, a, j, b) * scale, FARTHEST));
}
