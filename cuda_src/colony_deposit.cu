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

typedef NODE Node;

// The cities before and after a city in one tour.
struct alignas(2 * sizeof(Node)) Link {
    Node before, after;
};

constexpr int TOURS = 8;    // of a block: their links of one city fill 32 bytes, the least that memory moves
constexpr int NEAREST = 4;  // cities whose sums are kept in registers: most ants deposit there, and would collide

extern __shared__ unsigned shared_memory[];

// links (n, pitch) of the tours [first, first + count) of (m, n), pitch a multiple of TOURS, and the ants' amounts
// (count,) in units: scale * share / length, and scale for a tour of length 0. A block handles TOURS tours and width
// cities; as many blocks as there are groups of tours share their cities. tile_row: places of a tour in shared memory,
// 4 more than a multiple of 32.
extern "C" __global__ void __launch_bounds__(512)
    link_tours(const int* __restrict__ tours, const double* lengths, int n, int first, int count, int width,
               int tile_row, double share, double scale, Link* links, int pitch, unsigned* amounts) {
    Link* tile = reinterpret_cast<Link*>(shared_memory);  // (TOURS, tile_row)
    const int groups = (count + TOURS - 1) / TOURS;
    const int ant = blockIdx.x % groups * TOURS, city = blockIdx.x / groups * width;
    const int many = min(TOURS, count - ant), wide = min(width, n - city);
    const int* own = tours + static_cast<size_t>(first + ant) * n;
    for (int start = threadIdx.x & ~31; start < n; start += blockDim.x) {
        const int p = start + lane_id();
#pragma unroll
        for (int t = 0; t < TOURS; ++t) {
            const int* tour = own + static_cast<size_t>(t) * n;
            const bool some = t < many;
            const int here = some && p < n ? tour[p] : -1;
            int before = __shfl_up_sync(EVERY_LANE, here, 1), after = __shfl_down_sync(EVERY_LANE, here, 1);
            if (here >= 0 && lane_id() == 0) before = tour[p > 0 ? p - 1 : n - 1];
            if (here >= 0 && (lane_id() == 31 || p == n - 1)) after = tour[p + 1 < n ? p + 1 : 0];
            const int place = here - city;
            if (here >= 0 && place >= 0 && place < wide) {
                tile[t * tile_row + place] = Link{static_cast<Node>(before), static_cast<Node>(after)};
            }
        }
    }
    __syncthreads();
    for (int e = threadIdx.x; e < wide * TOURS; e += blockDim.x) {
        const int t = e % TOURS, place = e / TOURS;
        if (t < many) links[static_cast<size_t>(city + place) * pitch + ant + t] = tile[t * tile_row + place];
    }
    if (city == 0 && threadIdx.x < many) {
        const double length = lengths[first + ant + threadIdx.x];
        amounts[ant + threadIdx.x] = static_cast<unsigned>(__double2ll_rn(scale * (length > 0.0 ? share / length : 1.0)));
    }
}

// tau <- min(high, max(low, keep tau)), then tau <- min(high, tau + unit * sum of amounts), and bound (n,), the largest
// trail of a city's edges that are no candidates. A block of 256 threads does one row, `columns` at a time: it has
// columns sums and as many bits of shared memory.
extern "C" __global__ void __launch_bounds__(256)
    deposit_links(float* tau, float* bound, const int* __restrict__ neighbours, int n, int k,
                  const Link* __restrict__ links, int pitch, int count, const unsigned* __restrict__ amounts,
                  float unit, float keep, float low, float high, int columns) {
    unsigned* sums = shared_memory;                 // (columns,)
    unsigned* candidates = shared_memory + columns;  // bit = candidate
    __shared__ float maxima[8];
    const int i = blockIdx.x;
    const Link* own = links + static_cast<size_t>(i) * pitch;
    const int* near = neighbours + static_cast<size_t>(i) * k;
    float* row = tau + static_cast<size_t>(i) * n;
    float largest = 0.0f;
    int nearest[NEAREST];
#pragma unroll
    for (int s = 0; s < NEAREST; ++s) nearest[s] = s < k ? near[s] : -1;
    for (int first = 0; first < n; first += columns) {
        const int width = min(columns, n - first);
        for (int w = threadIdx.x; w < columns + (columns + 31) / 32; w += 256) shared_memory[w] = 0u;
        __syncthreads();
        for (int s = threadIdx.x; s < k; s += 256) {
            const int j = near[s] - first;
            if (j >= 0 && j < width) atomicOr(candidates + (j >> 5), 1u << (j & 31));
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
            const int column = j - first;
            if (!found && column >= 0 && column < width) atomicAdd(sums + column, amount);
        };
#pragma unroll 4
        for (int ant = threadIdx.x; ant < count; ant += 256) {
            const Link link = own[ant];
            const unsigned amount = amounts[ant];
            add(link.after, amount);
#if SYMMETRIC
            add(link.before, amount);
#endif
        }
#pragma unroll
        for (int s = 0; s < NEAREST; ++s) {
            const unsigned sum = warp_sum(total[s]);
            const int column = nearest[s] - first;
            if (lane_id() == 0 && nearest[s] >= 0 && column >= 0 && column < width && sum) atomicAdd(sums + column, sum);
        }
        __syncthreads();
#pragma unroll 4
        for (int j = threadIdx.x; j < width; j += 256) {
            float trail = fminf(high, fmaxf(low, row[first + j] * keep));
            const unsigned sum = sums[j];
            if (sum) trail = fminf(high, trail + static_cast<float>(sum) * unit);
            row[first + j] = trail;
            const bool candidate = (candidates[j >> 5] >> (j & 31)) & 1u;
            if (!candidate && first + j != i) largest = fmaxf(largest, trail);
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
