// Distances: exact ones in double, with TSPLIB's rounding, for lengths; fast ones in float for searches.
//
// Definitions: G. Reinelt, "TSPLIB95" (1995), section 2; codes as in pymoo_gpuaco/problems/metrics.py. Exact distances
// use no fused multiply-add, which could move results across a rounding boundary.
#pragma once

// -DMETRIC: EXPLICIT 0, EUC 1, CEIL 2, ATT 3, GEO 4, MAN 5, MAX 6, EXACT 7, HAVERSINE 8
// -DDIMENSIONS: number of coordinates of a city
// -DTABLE: 1: searches look distances up in a float matrix
// -DDUMMY: 1: the last city is at distance 0 from all others; its coordinates are NaN
// -DDOUBLED: 1: nodes 2i and 2i + 1 are entrance and exit of city i of an asymmetric matrix
// -DPOINT_UNIT: EXACT: unit of the float coordinates, a power of two; below 1 if their squares would underflow
// 1 if searches compute distances from the indices of cities, not from points
#define BY_NUMBER (TABLE || METRIC == 0 || METRIC == 4)

// Coordinates of a city in double. GEO: latitude and longitude in radians; HAVERSINE: a point on the sphere in
// kilometres.
#if DIMENSIONS == 2
struct __align__(16) Site {
    double x, y;
};
#else
struct __align__(16) Site {
    double x, y, z, unused;
};
#endif

// An instance on the device. Arrays that its metric does not need are null. With DOUBLED the matrix and the table are
// (n / 2, n / 2). The first numbers of `coords` and `points` are then the length of a forbidden edge.
struct Cities {
    const double* coords;  // (n, 2) or (n, 4): Sites
    const double* matrix;  // (n, n)
    const float* points;   // (n, 2) or (n, 4), relative to the least coordinate
    const float* table;    // (n, n)
    int n;
};

// Kernel parameters with the fields of Cities, and the struct built from them.
#define CITIES_PARAMETERS const double *coords, const double *matrix, const float *points, const float *table, int n
#define CITIES Cities{coords, matrix, points, table, n}

__device__ __forceinline__ double squared(double x) { return __dmul_rn(x, x); }

// HAVERSINE: the Earth's diameter in kilometres, and the arc of a chord, which rounding may make longer than it.
constexpr double DIAMETER = 2 * 6371.0088;

__device__ __forceinline__ double arc(double chord) { return DIAMETER * asin(fmin(1.0, chord / DIAMETER)); }

__device__ __forceinline__ float arc(float chord) {
    constexpr float diameter = static_cast<float>(DIAMETER);
    return diameter * asinf(fminf(1.0f, chord / diameter));
}

__device__ __forceinline__ double nearest_integer(double x) { return floor(x + 0.5); }

// Exact distance of two sites.
__device__ inline double exact_between(const Site& a, const Site& b) {
    const double dx = fabs(a.x - b.x), dy = fabs(a.y - b.y);
#if DIMENSIONS == 2
    constexpr double dz = 0.0;
#else
    const double dz = fabs(a.z - b.z);
#endif
    static_cast<void>(dz);  // unused by some metrics
#if METRIC == 3
    const double r = sqrt(__dadd_rn(squared(dx), squared(dy)) / 10.0);
    const double t = nearest_integer(r);
    return t < r ? t + 1.0 : t;
#elif METRIC == 4
    const double q1 = cos(a.y - b.y), q2 = cos(a.x - b.x), q3 = cos(a.x + b.x);
    const double q = 0.5 * __dadd_rn(__dmul_rn(1.0 + q1, q2), -__dmul_rn(1.0 - q1, q3));
    return floor(__dadd_rn(__dmul_rn(6378.388, acos(fmin(1.0, fmax(-1.0, q)))), 1.0));
#elif METRIC == 5
    return nearest_integer(dx + dy + dz);
#elif METRIC == 6
    return fmax(fmax(nearest_integer(dx), nearest_integer(dy)), nearest_integer(dz));
#else
    const double r = sqrt(__dadd_rn(__dadd_rn(squared(dx), squared(dy)), squared(dz)));
#if METRIC == 1
    return nearest_integer(r);
#elif METRIC == 2
    return ceil(r);
#elif METRIC == 8
    return arc(r);
#else
    return r;
#endif
#endif
}

#if DOUBLED
// Distance of two nodes, from a matrix (n / 2, n / 2). An edge leads from the exit of a city to the entrance of
// another, connects both nodes of one city (length 0), or is forbidden (length `far`).
template <typename T>
__device__ __forceinline__ T doubled(const T* matrix, int n, T far, int i, int j) {
    if (i == j) return T(0);
    if (((i ^ j) & 1) == 0) return far;
    const int left = (i & 1 ? i : j) >> 1, entered = (i & 1 ? j : i) >> 1;
    return left == entered ? T(0) : matrix[static_cast<size_t>(left) * (n / 2) + entered];
}
#endif

// Exact distance of two cities.
__device__ inline double exact_distance(const Cities& cities, int i, int j) {
#if METRIC == 4
    if (i == j) return 0.0;  // the formula gives 1
#endif
#if DUMMY
    if (i == cities.n - 1 || j == cities.n - 1) return 0.0;
#endif
#if DOUBLED
    return doubled(cities.matrix, cities.n, *cities.coords, i, j);
#elif METRIC == 0
    return cities.matrix[static_cast<size_t>(i) * cities.n + j];
#else
    const Site* sites = reinterpret_cast<const Site*>(cities.coords);
    return exact_between(sites[i], sites[j]);
#endif
}

// Float distances are symmetric and reproducible: a search by them cannot cycle. They differ from the exact ones by at
// most one unit of rounding.
#if DIMENSIONS == 2
typedef float2 Point;
#else
typedef float4 Point;
#endif

__device__ __forceinline__ Point point_of(const Cities& cities, int i) {
#if BY_NUMBER
    return Point();
#else
    return reinterpret_cast<const Point*>(cities.points)[i];
#endif
}

__device__ __forceinline__ float root(float x) {
    float y;
    asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

// Nearest integer, for 0 <= x < 2^22; floorf would use the slow unit that also computes roots.
__device__ __forceinline__ float rounded(float x) { return x < 4194304.0f ? (x + 8388608.0f) - 8388608.0f : x; }

// True for the point of the dummy city, which is NaN.
__device__ __forceinline__ bool is_dummy(const Point& a) { return a.x != a.x; }

// MAN and MAX: the float distance of two points before rounding; otherwise the square of their Euclidean distance.
__device__ __forceinline__ float raw_distance(const Point& a, const Point& b) {
    const float dx = fabsf(a.x - b.x), dy = fabsf(a.y - b.y);
#if DIMENSIONS == 2
    const float dz = 0.0f;
#else
    const float dz = fabsf(a.z - b.z);
#endif
#if METRIC == 5
    return dx + dy + dz;
#elif METRIC == 6
    return fmaxf(fmaxf(dx, dy), dz);
#else
    return fmaf(dx, dx, fmaf(dy, dy, dz * dz));
#endif
}

// Float distance of two points before rounding to an integer.
__device__ __forceinline__ float unrounded(const Point& a, const Point& b) {
    const float raw = raw_distance(a, b);
    return METRIC == 5 || METRIC == 6 ? raw : METRIC == 3 ? root(raw * 0.1f) : root(raw);
}

__device__ __forceinline__ float distance(const Cities& cities, int i, const Point& a, int j, const Point& b) {
#if DUMMY && !BY_NUMBER
    if (is_dummy(a) || is_dummy(b)) return 0.0f;
#endif
#if DOUBLED
    return doubled(cities.table, cities.n, *cities.points, i, j);
#elif TABLE || METRIC == 0
    return cities.table[static_cast<size_t>(i) * cities.n + j];
#elif METRIC == 4
    return static_cast<float>(exact_distance(cities, i, j));
#elif METRIC == 2
    return ceilf(__fsqrt_rn(raw_distance(a, b)));
#elif METRIC == 3
    return ceilf(__fsqrt_rn(raw_distance(a, b) / 10.0f));
#elif METRIC == 7
    return POINT_UNIT * unrounded(a, b);
#elif METRIC == 8
    return arc(unrounded(a, b));
#else
    return rounded(unrounded(a, b));
#endif
}

__device__ __forceinline__ float distance(const Cities& cities, int i, int j) {
    return distance(cities, i, point_of(cities, i), j, point_of(cities, j));
}

// A rounded distance below 2^23 as an integer, plus UNIT_BIAS. Rounding is one addition: the last bits of 2^23 + x are
// the nearest integer of x. Sums of these integers are exact. The error is at most 1 if that of x is below 1/2.
constexpr int UNIT_BIAS = 0x4B000000;  // the bits of 2^23

__device__ __forceinline__ int biased_units(const Point& a, const Point& b) {
#if METRIC == 2 || METRIC == 3
    // Round up; the factor below 1 compensates for roots that are one step above an integer.
    return __float_as_int(__fmaf_ru(unrounded(a, b), 1.0f - 0x1p-22f, 0x1p23f));
#else
    return __float_as_int(unrounded(a, b) + 0x1p23f);
#endif
}
