// Evaporation and the deposit of every ant on dense trails (Eqs. (4) to (6), Uchida et al. 2012), in one pass over the
// trails.
//
// In Uchida et al. 2012 (section IV.C) a block handles one row of the trails: it adds 1 / C_k for every ant's edge from
// that city by atomics in shared memory, and a second kernel symmetrises. Here the first kernel writes both neighbours
// of every city in every tour. The second has all deposits of a row: it reads and writes the trails once. Deposits are
// integers: sums do not depend on the order of the ants.

#include "device/warp.cuh"

// -DTILED: 1: n cities do not fit into shared memory, and both kernels process tiles of `width` cities
// -DTHREADS: threads of a block of either kernel
// -DTOURS: ants of a group
// -DROWS: rows of a block of deposit_links

typedef NODE Node;

// The cities before and after a city in one tour.
struct alignas(2 * sizeof(Node)) Link {
    Node before, after;
};

// The links of a city in the tours of a group.
struct alignas(16) Links {
    Link of[TOURS];
};

// Index of a city's links in (cities / ROWS, groups, ROWS): a block of deposit_links reads contiguous memory.
__device__ __forceinline__ size_t place_of(unsigned city, int group, int groups) {
    return (static_cast<size_t>(city / ROWS) * groups + group) * ROWS + city % ROWS;
}

extern __shared__ uint4 shared_memory[];

// Write links (cities / ROWS, groups, ROWS, TOURS) and amounts (groups, TOURS) of the tours first .. first + count - 1
// of tours (m, n) with lengths (m,); cities is n rounded up to ROWS. An amount is scale * share / length, scale for a
// tour of length 0, and 0 for ants past `count`. A block handles the tours of a group and `width` cities. width is the
// row length of a tour in shared memory, 8 more than a multiple of 32.
extern "C" __global__ void __launch_bounds__(THREADS)
    link_tours(const int* __restrict__ tours, const double* lengths, int n, int first, int count, int width,
               double share, double scale, Link* links, unsigned* amounts) {
    Link* tile = reinterpret_cast<Link*>(shared_memory);  // (TOURS, width)
    constexpr int EACH = THREADS / TOURS;                 // threads per tour
    const int groups = (count + TOURS - 1) / TOURS, group = blockIdx.x % groups;
    const int city = blockIdx.x / groups * width;
    const unsigned wide = TILED ? min(width, n - city) : n;
    const int own = threadIdx.x / EACH, start = threadIdx.x % EACH;
    const int ant = group * TOURS + threadIdx.x;  // for the first TOURS threads
    const bool weighs = city == 0 && threadIdx.x < TOURS, present = weighs && ant < count;
    const double length = present ? lengths[first + ant] : 1.0;  // loaded early, used at the end
    Link* row = tile + own * width;
    if (group * TOURS + own < count) {
        const int* tour = tours + static_cast<size_t>(first + group * TOURS + own) * n;
        const auto link = [&](int before, int here, int after) {
            const unsigned place = here - city;
            if (!TILED || place < wide) row[place] = Link{static_cast<Node>(before), static_cast<Node>(after)};
        };
#pragma unroll 8
        for (int p = 1 + start; p < n - 1; p += EACH) link(tour[p - 1], tour[p], tour[p + 1]);
        if (start == 0) {
            link(tour[n - 1], tour[0], tour[1]);
            link(tour[n - 2], tour[n - 1], tour[0]);
        }
    } else {
        for (unsigned place = start; place < wide; place += EACH) row[place] = Link{0, 0};
    }
    __syncthreads();
    const int t = threadIdx.x % TOURS;
#pragma unroll 4
    for (unsigned place = threadIdx.x / TOURS; place < wide; place += EACH) {
        links[place_of(city + place, group, groups) * TOURS + t] = tile[t * width + place];
    }
    if (weighs) {
        const double amount = scale * (length > 0.0 ? share / length : 1.0);
        amounts[ant] = present ? static_cast<unsigned>(__double2ll_rn(amount)) : 0u;
    }
}

// Streaming loads: the trails stay in the cache.
__device__ __forceinline__ Links read_links(const Links* place) {
    Links links;
    uint4* parts = reinterpret_cast<uint4*>(&links);
#pragma unroll
    for (unsigned part = 0; part < sizeof(Links) / 16; ++part) {
        parts[part] = __ldcs(reinterpret_cast<const uint4*>(place) + part);
    }
    return links;
}

// tau <- max(low, keep tau), then tau <- min(high, tau + unit * sum of amounts), with keep = 1 - rho. tau (n, n);
// links and amounts as from link_tours. A block processes ROWS rows in tiles of `width` columns, with the sums of a
// tile in shared memory.
extern "C" __global__ void __launch_bounds__(THREADS, 3)
    deposit_links(float* tau, int n, const Links* __restrict__ links, int groups, const uint4* __restrict__ amounts,
                  float unit, float keep, float low, float high, int width) {
    constexpr int EACH = THREADS / ROWS;                          // threads per row
    constexpr int LOADS = 4;                                      // independent loads of a thread
    unsigned* sums = reinterpret_cast<unsigned*>(shared_memory);  // (ROWS, width)
    const int i = blockIdx.x * ROWS, rows = min(ROWS, n - i);
    // adjacent lanes add to different rows: ants deposit on few edges of a row, where atomics of several lanes collide
    const int r = threadIdx.x % ROWS;
    const Links* const own_links = links + place_of(i, 0, groups) + r;
    const int mine = threadIdx.x / EACH, start = threadIdx.x % EACH;
    float* const row = tau + static_cast<size_t>(i + mine) * n;
#if TILED
    for (int first = 0; first < n; first += width) {
        const int wide = min(width, n - first);
        const auto inside = [&](int column) { return column >= 0 && column < wide; };
#else
    {
        constexpr int first = 0;
        const int wide = n;
        const auto inside = [](int) { return true; };
#endif
        const int end = mine < rows ? wide : 0;
        // load trails before their sums are computed
        float trails[LOADS];
        const auto prefetch = [&](int from) {
#pragma unroll
            for (int u = 0; u < LOADS; ++u) {
                const int j = from + u * EACH;
                if (j < end) trails[u] = row[first + j];
            }
        };
        prefetch(start);
#pragma unroll 2
        for (int w = threadIdx.x; w < ROWS * width / 4; w += THREADS) shared_memory[w] = make_uint4(0u, 0u, 0u, 0u);
        __syncthreads();
        if (r < rows) {
            unsigned* own = sums + r * width - first;
            const auto add = [&](int j, unsigned amount) {
                if (inside(j - first)) atomicAdd(own + j, amount);
            };
#pragma unroll 4
            for (int group = threadIdx.x / ROWS; group < groups; group += THREADS / ROWS) {
                const Links here = read_links(own_links + static_cast<size_t>(group) * ROWS);
                const uint4 amount = amounts[group];
                const unsigned each[TOURS] = {amount.x, amount.y, amount.z, amount.w};
#pragma unroll
                for (int t = 0; t < TOURS; ++t) {
                    add(here.of[t].after, each[t]);
#if SYMMETRIC
                    add(here.of[t].before, each[t]);
#endif
                }
            }
        }
        __syncthreads();
        const unsigned* own = sums + mine * width;
        for (int from = start; from < end; from += LOADS * EACH) {
            float now[LOADS];
#pragma unroll
            for (int u = 0; u < LOADS; ++u) now[u] = trails[u];
            prefetch(from + LOADS * EACH);
#pragma unroll
            for (int u = 0; u < LOADS; ++u) {
                const int j = from + u * EACH;
                if (j >= end) continue;
                const float kept = fmaxf(low, now[u] * keep);
                row[first + j] = fminf(high, fmaf(static_cast<float>(own[j]), unit, kept));
            }
        }
#if TILED
        __syncthreads();
#endif
    }
}
