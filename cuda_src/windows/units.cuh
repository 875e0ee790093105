// Distances in whole units: what windows are searched by.
//
// A search that counts in whole numbers ends, and its gains are exact: no rounding can make one. Metrics of whole
// numbers are taken as they are; others, and those of very large numbers, are scaled. The numbers are kept in floats,
// which hold them exactly below 2^24 and are added as fast. Roots are approximate: a distance may be one unit off where
// it lies next to a rounding boundary, but always the same for a pair; what leaves a window is measured in double.
#pragma once

#include "instance/metric.cuh"

#ifndef SCALED
#define SCALED 0  // 1: distances times ``scale``, rounded
#endif

// 2^21: what lies farther apart counts as just so far. Sums of eight are exact; with penalties, sums of six.
constexpr float FARTHEST = 2097152.0f;

__device__ __forceinline__ float units(const Cities& cities, float scale, int i, const Point& a, int j, const Point& b) {
#if BY_NUMBER
    const float d = i == j ? 0.0f : distance(cities, i, a, j, b);
#elif METRIC == 2 || METRIC == 3
    // a root may come out one step above a whole number, which must not be rounded up
    const float r = DUMMY && (nowhere(a) || nowhere(b)) ? 0.0f : unrounded(a, b);
    const float t = rounded(r);
    const float d = t < fmaf(r, -0x1p-21f, r) ? t + 1.0f : t;
#else
    const float d = distance(cities, i, a, j, b);
#endif
#if SCALED
    return fminf(rounded(fminf(d * scale, FARTHEST)), FARTHEST);
#else
    static_cast<void>(scale);
    return fminf(d, FARTHEST);
#endif
}
