// A climber's tour: places in tour order, each with the lengths of its two edges. One block has one tour.
#pragma once

#include "instance/metric.cuh"
#include "device/philox.cuh"
#include "device/warp.cuh"

// -DUNITS: 1: the search adds whole numbers; 0: floats
// -DRESIDENT: 1: the tour is in shared memory; 0: in global memory

#if UNITS
typedef int Length;
constexpr Length NO_MOVE = 0x7FFFFFFF, CLEARLY_LESS = 0x40000000;
constexpr Length TWO_BIASES = static_cast<int>(2u * UNIT_BIAS);
#else
typedef float Length;
constexpr Length NO_MOVE = 3e38f, CLEARLY_LESS = 1e38f;
#endif

// City data at a tour position. `after` and `before` are the negative lengths of the edges to the next place and from
// the previous one, exact except for rounding to float. With UNITS `after` also subtracts two biases, those of the two
// new distances that it is added to. With both edges, `reverse` needs no neighbouring place.
#if BY_NUMBER
struct Place {
    int city;
    Length after, before;
};
#elif DIMENSIONS == 2
struct alignas(16) Place {
    float x, y;
    Length after, before;
};
#else
struct Place {
    float x, y, z;
    Length after, before;
};
#endif
static_assert(sizeof(Place) == PLACE_BYTES, "the host allocates another size for Place");

struct Tour {
    Cities cities;
    Place* places;  // (n + extra,); places[n + p] repeats places[p], so a scan need not wrap around
    int* order;     // (n,) cities
    int n, extra;
};

__device__ __forceinline__ void store(const Tour& tour, int p, const Place& place) {
    tour.places[p] = place;
#if RESIDENT
    for (int again = p + tour.n; again < tour.n + tour.extra; again += tour.n) tour.places[again] = place;
#endif
}

__device__ __forceinline__ int next_position(const Tour& tour, int p) { return p + 1 < tour.n ? p + 1 : 0; }

// Distance used by scans; with UNITS it includes one bias.
__device__ __forceinline__ Length search_distance(const Cities& cities, const Place& a, const Place& b) {
#if BY_NUMBER
    return distance(cities, a.city, Point(), b.city, Point());
#else
#if DIMENSIONS == 2
    const Point p = make_float2(a.x, a.y), q = make_float2(b.x, b.y);
#else
    const Point p = make_float4(a.x, a.y, a.z, 0.0f), q = make_float4(b.x, b.y, b.z, 0.0f);
#endif
#if UNITS
    return biased_units(p, q);
#else
    return distance(cities, 0, p, 0, q);
#endif
#endif
}

// The value of `before` for an edge; `with_biases` turns it into the value of `after`.
__device__ __forceinline__ Length removed(double length) { return static_cast<Length>(-length); }

// a + b; with UNITS the biases make the sum wrap, which is defined for unsigned integers.
__device__ __forceinline__ Length add(Length a, Length b) {
#if UNITS
    return static_cast<int>(static_cast<unsigned>(a) + static_cast<unsigned>(b));
#else
    return a + b;
#endif
}

#if UNITS
__device__ __forceinline__ Length with_biases(Length edge) { return add(edge, -TWO_BIASES); }
__device__ __forceinline__ Length without_biases(Length edge) { return add(edge, TWO_BIASES); }
#else
__device__ __forceinline__ Length with_biases(Length edge) { return edge; }
__device__ __forceinline__ Length without_biases(Length edge) { return edge; }
#endif

__device__ __forceinline__ Length lesser(Length a, Length b) { return b < a ? b : a; }

// Map values to unsigned integers of the same order; `from_order` is the inverse.
__device__ __forceinline__ unsigned in_order(Length value) {
#if UNITS
    return static_cast<unsigned>(value) ^ 0x80000000u;
#else
    return ordered(value);
#endif
}

__device__ __forceinline__ Length from_order(unsigned bits) {
#if UNITS
    return static_cast<int>(bits ^ 0x80000000u);
#else
    return __uint_as_float(bits & 0x80000000u ? bits ^ 0x80000000u : ~bits);
#endif
}

__device__ __forceinline__ unsigned long long in_order(double value) {
    const unsigned long long bits = static_cast<unsigned long long>(__double_as_longlong(value));
    return bits >> 63 ? ~bits : bits | 0x8000000000000000ull;
}

__device__ __forceinline__ double from_order(unsigned long long bits) {
    return __longlong_as_double(static_cast<long long>(bits >> 63 ? bits ^ 0x8000000000000000ull : ~bits));
}

__device__ __forceinline__ double exact(const Tour& tour, int p, int q) {
    return exact_distance(tour.cities, tour.order[p], tour.order[q]);
}

// Change of the length by the move (i, j), by search distances, without the removed edge of i.
__device__ __forceinline__ Length change(const Cities& cities, const Place& i, const Place& after_i, const Place& j,
                                         const Place& after_j) {
    return add(add(search_distance(cities, i, j), search_distance(cities, after_i, after_j)), j.after);
}

__device__ __forceinline__ Length search_delta(const Tour& tour, int i, int j) {
    const Place a = tour.places[i], after_a = tour.places[next_position(tour, i)];
    const Place b = tour.places[j], after_b = tour.places[next_position(tour, j)];
    return add(change(tour.cities, a, after_a, b, after_b), without_biases(a.after));
}

// Exact change of the length by a move, and the length of its two removed edges.
struct Change {
    double delta, removed;
};

// Terms are added in the order of the CPU engine.
__device__ __forceinline__ Change exact_change(const Tour& tour, int i, int j) {
    const int after_i = next_position(tour, i), after_j = next_position(tour, j);
    const double one = exact(tour, i, j), two = exact(tour, after_i, after_j);
#if UNITS
    const double edge_i = -tour.places[after_i].before, edge_j = -tour.places[after_j].before;
#else
    const double edge_i = exact(tour, i, after_i), edge_j = exact(tour, j, after_j);
#endif
    return Change{one + (two - edge_j) - edge_i, edge_i + edge_j};
}

// Minimum gain, relative to the removed lengths, above rounding errors; as in the CPU engine (backends/cpu/moves.py).
// With UNITS all lengths are integers below 2^22 and every gain passes.
constexpr double NOISE = 1e-12;

__device__ __forceinline__ bool shortens(const Change& move) { return move.delta < -NOISE * move.removed; }

// Fill `places` from `order`. Threads may use the tour after the next barrier.
__device__ void lay_out(const Tour& tour) {
    for (int p = threadIdx.x; p < tour.n; p += blockDim.x) {
        Place place;
#if BY_NUMBER
        place.city = tour.order[p];
#else
        const Point point = point_of(tour.cities, tour.order[p]);
        place.x = point.x;
        place.y = point.y;
#if DIMENSIONS == 3
        place.z = point.z;
#endif
#endif
        place.before = removed(exact(tour, p > 0 ? p - 1 : tour.n - 1, p));
        place.after = with_biases(removed(exact(tour, p, next_position(tour, p))));
        store(tour, p, place);
    }
}

// Fisher-Yates shuffle from the numbers of (key, restart), as in the CPU engine. All threads draw numbers and store
// them in the memory of `places`.
__device__ void shuffle(const Tour& tour, Key key, long long restart) {
    const int n = tour.n;
    unsigned* others = reinterpret_cast<unsigned*>(tour.places);  // (n,): swap partners of n-1, n-2, ..
    const unsigned low = static_cast<unsigned>(restart), high = static_cast<unsigned>(restart >> 32);
    for (int block = threadIdx.x; 4 * block < n - 1; block += blockDim.x) {
        const uint4 words = philox4x32(make_uint4(block, STREAM_RESTART, low, high), key);
        const unsigned word[4] = {words.x, words.y, words.z, words.w};
        for (int w = 0; w < 4; ++w) {
            const int draw = 4 * block + w;
            if (draw < n - 1) others[draw] = below(word[w], n - draw);
        }
    }
    for (int p = threadIdx.x; p < n; p += blockDim.x) tour.order[p] = p;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int draw = 0; draw < n - 1; ++draw) {
            const int last = n - 1 - draw, other = others[draw], city = tour.order[last];
            tour.order[last] = tour.order[other];
            tour.order[other] = city;
        }
    }
    __syncthreads();
}

// Exact length, summed by the first warp in a fixed order; the other threads return 0.
__device__ double exact_length(const Tour& tour) {
    double sum = 0.0;
    if (threadIdx.x < 32) {
        for (int p = threadIdx.x; p < tour.n; p += 32) sum += exact(tour, p, next_position(tour, p));
        sum = warp_sum(sum);
    }
    return sum;
}

// The place in a reversed path: its edges change roles.
__device__ __forceinline__ Place reversed(Place place) {
    const Length after = place.after;
    place.after = with_biases(place.before);
    place.before = without_biases(after);
    return place;
}

// Reverse the path i+1 .. j; called by all threads. They may use the tour after the next barrier.
__device__ void reverse(const Tour& tour, int i, int j) {
    const int after_j = next_position(tour, j);
    for (int a = i + 1 + threadIdx.x; a <= i + 1 + j - a; a += blockDim.x) {
        const int b = i + 1 + j - a;
        Place first = reversed(tour.places[b]), last = reversed(tour.places[a]);
        const int city_a = tour.order[a], city_b = tour.order[b];
        if (a == i + 1) {  // the path's ends get the two new edges
            const int city_i = tour.order[i], city_after = tour.order[after_j];
            const Length one = removed(exact_distance(tour.cities, city_i, city_b));
            const Length two = removed(exact_distance(tour.cities, city_a, city_after));
            first.before = one;
            last.after = with_biases(two);
            Place outside = tour.places[i];
            outside.after = with_biases(one);
            store(tour, i, outside);
            outside = tour.places[after_j];
            outside.before = two;
            store(tour, after_j, outside);
        }
        store(tour, a, first);
        store(tour, b, last);
        tour.order[a] = city_b;
        tour.order[b] = city_a;
    }
}
