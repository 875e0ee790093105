// Evaporation and the deposit of every ant on dense trails (Eqs. (4) to (6), paper 000), in one pass over them.
//
// Paper 000 (section IV.C) gives a block one row of the trails, adds 1 / C_k for every ant's edge from that city by
// atomics in shared memory, and symmetrises in a second kernel. Here an ant's list holds both neighbours of a city, so
// that a row is whole at once: no second kernel, and the trails are read and written once. Deposits are integers, whose sum
// does not depend on the order of the ants.
//
// Letters: m ants, n cities, k candidates.

#include "warp.cuh"

#ifndef NODE
#define NODE unsigned short
#endif
#ifndef SYMMETRIC
#define SYMMETRIC 1
#endif
#ifndef TILED
#define TILED 0  // 1: a row's sums do not fit shared memory, and are made some columns at a time
#endif

typedef NODE Node;

// The cities before and after a city in one tour.
struct alignas(2 * sizeof(Node)) Link {
    Node before, after;
};

constexpr int TOURS = 8;     // of a block: their links of one city fill 32 bytes, the least that memory moves
constexpr int NEAREST = 4;   // cities whose sums are kept in registers: most ants deposit there, and would collide
constexpr unsigned NO_BOUND = 1u << 31;  // mark of a candidate, beside its sum

struct alignas(16) FourLinks {
    Link links[16 / sizeof(Link)];
};
constexpr int LINKS_AT_ONCE = 16 / sizeof(Link);

extern __shared__ uint4 shared_memory[];

// links (n, pitch) of the tours [first, first + count) of (m, n), pitch a multiple of TOURS, and the ants' amounts
// (pitch,) in units: scale * share / length, and scale for a tour of length 0; those past count are zero. A block handles
// TOURS tours and width cities; as many blocks as there are groups of tours share their cities. tile_row: places of a tour
// in shared memory, 4 more than a multiple of 32.
extern "C" __global__ void __launch_bounds__(64 * TOURS)
    link_tours(const int* __restrict__ tours, const double* lengths, int n, int first, int count, int width,
               int tile_row, double share, double scale, Link* links, int pitch, unsigned* amounts) {
    Link* tile = reinterpret_cast<Link*>(shared_memory);  // (TOURS, tile_row)
    const int groups = pitch / TOURS;
    const int ant = blockIdx.x % groups * TOURS, city = blockIdx.x / groups * width;
    const unsigned wide = min(width, n - city);
    const int own = threadIdx.x / 64, start = threadIdx.x % 64;  // two warps read a tour
    if (ant + own < count) {
        const int* tour = tours + static_cast<size_t>(first + ant + own) * n;
        Link* row = tile + own * tile_row;
        const auto link = [&](int before, int here, int after) {
            const unsigned place = here - city;
            if (place < wide) row[place] = Link{static_cast<Node>(before), static_cast<Node>(after)};
        };
#pragma unroll 8
        for (int p = 1 + start; p < n - 1; p += 64) link(__ldcs(tour + p - 1), __ldcs(tour + p), __ldcs(tour + p + 1));
        if (start == 0) {
            link(tour[n - 1], tour[0], tour[1]);
            link(tour[n - 2], tour[n - 1], tour[0]);
        }
    } else {
        for (unsigned place = start; place < wide; place += 64) tile[own * tile_row + place] = Link{0, 0};
    }
    if (city == 0 && threadIdx.x < TOURS) {
        const double length = ant + threadIdx.x < count ? lengths[first + ant + threadIdx.x] : 1.0;
        const double amount = scale * (length > 0.0 ? share / length : 1.0);
        amounts[ant + threadIdx.x] = ant + threadIdx.x < count ? static_cast<unsigned>(__double2ll_rn(amount)) : 0u;
    }
    __syncthreads();
    const int t = threadIdx.x % TOURS;
    const Link* column = tile + t * tile_row;
    Link* target = links + static_cast<size_t>(city) * pitch + ant + t;
#pragma unroll 4
    for (unsigned place = threadIdx.x / TOURS; place < wide; place += 64) {
        target[static_cast<size_t>(place) * pitch] = column[place];
    }
}

// tau <- max(low, keep tau), then tau <- min(high, tau + unit * sum of amounts), and bound (n,), the largest trail of
// a city's edges that are no candidates. A block of 256 threads does one row, `columns` at a time: it has as many sums
// in shared memory.
extern "C" __global__ void __launch_bounds__(256)
    deposit_links(float* tau, float* bound, const int* __restrict__ neighbours, int n, int k,
                  const Link* __restrict__ links, int pitch, const unsigned* __restrict__ amounts, float unit,
                  float keep, float low, float high, int columns) {
    unsigned* sums = reinterpret_cast<unsigned*>(shared_memory);  // (columns,) below 2^31, and the mark
    __shared__ float maxima[8];
    const int i = blockIdx.x;
    const Link* own = links + static_cast<size_t>(i) * pitch;
    const int* near = neighbours + static_cast<size_t>(i) * k;
    float* row = tau + static_cast<size_t>(i) * n;
    float largest = 0.0f;
    int nearest[NEAREST];
#pragma unroll
    for (int s = 0; s < NEAREST; ++s) nearest[s] = s < k ? near[s] : -1;
#if TILED
    for (int first = 0; first < n; first += columns) {
        const int width = min(columns, n - first);
        const auto outside = [&](int column) { return column < 0 || column >= width; };
#else
    {
        constexpr int first = 0;
        const int width = n;
        const auto outside = [](int) { return false; };
#endif
        for (int w = threadIdx.x; w < (width + 3) / 4; w += 256) shared_memory[w] = make_uint4(0u, 0u, 0u, 0u);
        __syncthreads();
        for (int s = threadIdx.x; s <= k; s += 256) {
            const int column = (s < k ? near[s] : i) - first;
            if (!outside(column)) atomicOr(sums + column, NO_BOUND);
        }
        unsigned total[NEAREST] = {};
        const auto add = [&](int j, unsigned amount) {
            bool found = false;
#pragma unroll
            for (int s = 0; s < NEAREST; ++s) {
                if (j == nearest[s]) {
                    total[s] += amount;
                    found = true;
                }
            }
            if (!found && !outside(j - first)) atomicAdd(sums + (j - first), amount);
        };
#pragma unroll 2
        for (int ant = LINKS_AT_ONCE * threadIdx.x; ant < pitch; ant += LINKS_AT_ONCE * 256) {
            const uint4 raw = __ldcs(reinterpret_cast<const uint4*>(own + ant));
            const FourLinks four = *reinterpret_cast<const FourLinks*>(&raw);
#pragma unroll
            for (int a = 0; a < LINKS_AT_ONCE; ++a) {
                const unsigned amount = amounts[ant + a];
                add(four.links[a].after, amount);
#if SYMMETRIC
                add(four.links[a].before, amount);
#endif
            }
        }
#pragma unroll
        for (int s = 0; s < NEAREST; ++s) {
            const unsigned sum = warp_sum(total[s]);
            const int column = nearest[s] - first;
            if (lane_id() == 0 && sum && !outside(column)) atomicAdd(sums + column, sum);
        }
        __syncthreads();
#pragma unroll 4
        for (int j = threadIdx.x; j < width; j += 256) {
            const unsigned sum = sums[j];
            const float kept = fmaxf(low, row[first + j] * keep);
            const float trail = fminf(high, fmaf(static_cast<float>(sum & ~NO_BOUND), unit, kept));
            row[first + j] = trail;
            if (sum < NO_BOUND) largest = fmaxf(largest, trail);
        }
        __syncthreads();
    }
    largest = warp_max(largest);
    if (lane_id() == 0) maxima[threadIdx.x >> 5] = largest;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int w = 1; w < 8; ++w) largest = fmaxf(largest, maxima[w]);
        bound[i] = largest;
    }
}
