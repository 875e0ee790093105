// Quadratic assignment: one block an ant, which builds a placement and improves it by robust tabu search.
//
// For whole numbers the results equal those of backends/cpu/assignment.py: equal keys give equal placements. C[i][l] is the
// cost of item i at location l, all else as it is. A swap adds x y^T to C and -(x[r] - x[s]) (y[p[r]] - y[p[s]]) to the
// change of every other swap (r, s); the changes of swaps of the moved items are read from C. So a step takes two
// barriers and no evaluation of O(n). C gets DEPTH products at a time; until then they are added where it is read.
//
// -DNUMBER: int (sums may wrap, changes may not) or double
// -DPAIRS: pairs of matrices, 1 or 2; the second one is skew
// -DSIDE: a tile is SIDE x SIDE swaps, which a thread keeps in registers
// -DINSIDE: 1: C and stamps in shared memory, one tile a thread; 0: C, stamps, changes and tabu iterations in global memory, and a thread has several tiles
// -DDEPTH: steps between two updates of C
// -DTHREADS, -DBLOCKS: threads of a block at most, and blocks of a multiprocessor at least
#include "device/philox.cuh"
#include "device/relaxed.cuh"
#include "device/warp.cuh"

constexpr int STEPS_TO_LOOK = 64;         // between two reads of `halt`
constexpr int NEVER = 0xFFFF;  // tabu for ever: no swap, or one that changes nothing
constexpr unsigned TENURE = 8;
constexpr int MOST_WARPS = 32;

__device__ __forceinline__ int largest(int) { return 0x7FFFFFFF; }
__device__ __forceinline__ double largest(double) { return 1.0 / 0.0; }
// The greatest number of the type that is not above `value` <= 0, or near it.
__device__ __forceinline__ int narrowed(int, double value) { return value < -2147483647.0 ? -2147483647 : static_cast<int>(value); }
__device__ __forceinline__ double narrowed(double, double value) { return value; }

// Four numbers that are loaded together.
struct alignas(16) Quad {
    NUMBER number[4];
};

// The best swap so far: the least change; ties: the least code, item * n + later item.
struct Best {
    NUMBER change;
    int code;

    __device__ __forceinline__ void consider(NUMBER other, int at) {
        if (other < change || (other == change && static_cast<unsigned>(at) < static_cast<unsigned>(code))) change = other, code = at;
    }
};

__device__ __forceinline__ void reduce_warp(int& change, int& code) {
    const unsigned key = static_cast<unsigned>(change) ^ 0x80000000u, least = warp_min(key);
    code = static_cast<int>(warp_min(key == least ? static_cast<unsigned>(code) : 0xFFFFFFFFu));
    change = static_cast<int>(least ^ 0x80000000u);
}
__device__ __forceinline__ void reduce_warp(double& change, int& code) {
    for (int step = 16; step > 0; step >>= 1) {
        const double other = __shfl_xor_sync(EVERY_LANE, change, step);
        const int at = __shfl_xor_sync(EVERY_LANE, code, step);
        if (other < change || (other == change && static_cast<unsigned>(at) < static_cast<unsigned>(code))) change = other, code = at;
    }
}

// Place items in random order at free locations, by one warp: the location of the highest trail, or one drawn in
// proportion to trails. `order`, `taken`: memory of n integers.
__device__ void draw(const int* trails, int n, int* p, int* order, int* taken, const Key& key, unsigned ant, unsigned greedy) {
    const int lane = lane_id();
    for (int i = lane; i < n; i += 32) {
        order[i] = i;
        p[i] = static_cast<int>(random_words(key, i, STREAM_CONSTRUCTION, ant).z);
        taken[i] = 0;
    }
    __syncwarp();
    if (lane == 0)
        for (int i = n - 1; i > 0; --i) {
            const int j = below(static_cast<unsigned>(p[i]), i + 1), other = order[i];
            order[i] = order[j];
            order[j] = other;
        }
    __syncwarp();
    for (int k = 0; k < n; ++k) {
        const uint4 words = random_words(key, k, STREAM_CONSTRUCTION, ant);
        const int i = order[k];
        const int* const row = trails + static_cast<size_t>(i) * n;
        unsigned most = 0, total = 0;
        if (words.x < greedy) {
            for (int l = lane; l < n; l += 32)
                if (!taken[l]) most = max(most, static_cast<unsigned>(row[l]));
            most = warp_max(most);
        }
        for (int l = lane; l < n; l += 32)
            if (!taken[l] && row[l] >= most) total += most ? 1u : row[l];
        unsigned left = __umulhi(words.y, warp_sum(total));
        for (int base = 0; base < n; base += 32) {
            const int l = base + lane;
            const unsigned weight = l < n && !taken[l] && row[l] >= most ? (most ? 1u : row[l]) : 0u;
            const unsigned sum = warp_prefix_sum(weight), all = __shfl_sync(EVERY_LANE, sum, 31);
            if (left < all) {
                if (left < sum && left >= sum - weight) {
                    p[i] = l;
                    taken[l] = 1;
                }
                break;
            }
            left -= all;
        }
        __syncwarp();
    }
}

// Sum over the block, in a fixed order; `parts`: memory of a number a warp.
__device__ double block_sum(double value, double* parts) {
    value = warp_sum(value);
    if (lane_id() == 0) parts[threadIdx.x >> 5] = value;
    __syncthreads();
    double sum = 0.0;
    for (int w = 0; w < static_cast<int>(blockDim.x >> 5); ++w) sum += parts[w];
    return sum;
}

// Run `iterations` steps for every ant. flows, distances (PAIRS, n, ld), linear (n, ld), rows filled with zeros;
// kinds (n,); trails (colonies, n, n); starts (colonies, n), the best placements of colonies, and their costs (colonies,),
// inf without one; with swaps > 0 ants start at it after random swaps. Out: best (ants, n), costs (ants,). outside, outside_changes, outside_until,
// outside_stamps: memory of each block if not INSIDE. If *halt, set by the host, is not 0, it ends soon.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    search_placements(const NUMBER* __restrict__ flows, const NUMBER* __restrict__ distances,
                      const NUMBER* __restrict__ linear, const int* __restrict__ kinds, const int* __restrict__ trails,
                      const int* __restrict__ starts, const double* __restrict__ start_costs, int n, int ld, int ants,
                      int iterations, int swaps, unsigned greedy, double noise, Key key, int* best, double* costs,
                      NUMBER* outside, NUMBER* outside_changes, unsigned short* outside_until,
                      unsigned short* outside_stamps, const int* halt) {
    extern __shared__ uint4 memory[];
    __shared__ NUMBER warp_change[MOST_WARPS];
    __shared__ int warp_code[MOST_WARPS], halted;
    __shared__ double parts[MOST_WARPS];
    const int tid = threadIdx.x, threads = blockDim.x, lane = tid & 31, warp = warp_of_block(), warps = threads >> 5;
    const int side = (n + SIDE - 1) / SIDE, tiles = side * (side + 1) / 2;
    const int pad = max((side * SIDE + 3) / 4 * 4, ld);
    const unsigned ant = blockIdx.x;
    const size_t block = blockIdx.x, square = static_cast<size_t>(n) * ld;
    // histories of x by item and of y by location, y by item of the last swap, changes of swaps with u and v, C
    NUMBER* const xs = reinterpret_cast<NUMBER*>(memory);  // [PAIRS][DEPTH][pad]
    NUMBER* const ys = xs + PAIRS * DEPTH * pad;           // [PAIRS][DEPTH][pad]
    NUMBER* const yi = ys + PAIRS * DEPTH * pad;           // [PAIRS][pad]
    NUMBER* const change_u = yi + PAIRS * pad;
    NUMBER* const change_v = change_u + pad;
#if INSIDE
    NUMBER* const C = change_v + pad;
    int* const p = reinterpret_cast<int*>(C + square);
#else
    NUMBER* const C = outside + block * square;
    int* const p = reinterpret_cast<int*>(change_v + pad);
#endif
    int* const until_u = p + pad;
    int* const until_v = until_u + pad;
    int* const found = until_v + pad;
#if INSIDE
    unsigned short* const stamps = reinterpret_cast<unsigned short*>(found + pad);  // [item][location]
#else
    unsigned short* const stamps = outside_stamps + block * n * n;
#endif
    if (swaps > 0 && start_costs[block / ants] < 1.0 / 0.0) {
        for (int i = tid; i < n; i += threads) p[i] = starts[block / ants * n + i];
        __syncthreads();
        if (tid == 0)
            for (int k = 0; k < swaps; ++k) {
                const uint4 words = random_words(key, k, STREAM_KICKS, ant);
                const int i = below(words.x, n), j = below(words.y, n), other = p[i];
                p[i] = p[j];
                p[j] = other;
            }
    } else if (warp == 0) {
        draw(trails + block / ants * n * n, n, p, until_u, until_v, key, ant, greedy);
    }
    __syncthreads();
    for (int i = tid; i < n * n; i += threads) stamps[i] = 0;
    for (int i = tid; i < PAIRS * DEPTH * pad; i += threads) xs[i] = ys[i] = 0;
    for (int i = tid; i < PAIRS * pad; i += threads) yi[i] = 0;
    for (int i = tid; i < pad; i += threads) {
        change_u[i] = change_v[i] = 0;
        if (i >= n) until_u[i] = until_v[i] = NEVER;
    }
    for (int i = tid; i < n; i += threads) found[i] = p[i];
    if (tid == 0) halted = load_relaxed(halt);
    const int quads = ld / 4;
    for (int e = tid; e < n * quads; e += threads) {
        const int i = e / quads, l = e % quads * 4;
        NUMBER c[4];
        for (int j = 0; j < 4; ++j) c[j] = linear[i * ld + l + j];
        for (int q = 0; q < PAIRS; ++q)
            for (int k = 0; k < n; ++k) {
                const NUMBER flow = flows[q * square + k * ld + i];
                const Quad row = *reinterpret_cast<const Quad*>(distances + q * square + p[k] * ld + l);
                for (int j = 0; j < 4; ++j) c[j] += flow * row.number[j];
            }
        for (int j = 0; j < 4; ++j) C[static_cast<size_t>(i) * ld + l + j] = c[j];
    }
    __syncthreads();
    double own = 0.0;
    for (int i = tid; i < n; i += threads)
        own += 0.5 * (static_cast<double>(C[static_cast<size_t>(i) * ld + p[i]]) + static_cast<double>(linear[i * ld + p[i]]));
    double cost = block_sum(own, parts), lowest = cost;
    const NUMBER big = largest(NUMBER());
    Best top{big, -1};

    // Tile t of the upper triangle, column by column: its first row and column.
    int r0 = 0, c0 = 0;
    auto locate = [&](int t) {
        int column = static_cast<int>(0.5f * (sqrtf(8.0f * t + 1.0f) - 1.0f));
        while (column * (column + 1) / 2 > t) --column;
        while ((column + 1) * (column + 2) / 2 <= t) ++column;
        c0 = column * SIDE;
        r0 = (t - column * (column + 1) / 2) * SIDE;
    };
    // Changes of the swaps of a tile, and the iterations until which they are tabu. A tile on the diagonal has every swap
    // twice; swaps of items beyond n never change and are never allowed.
    NUMBER changes[SIDE][SIDE];
    int until[SIDE][SIDE];
    auto fill = [&]() {
#pragma unroll
        for (int a = 0; a < SIDE; ++a)
#pragma unroll
            for (int b = 0; b < SIDE; ++b) {
                const int r = r0 + a, s = c0 + b;
                changes[a][b] = 0;
                until[a][b] = NEVER;
                if (r < n && s < n && r != s) {
                    const NUMBER* const row = C + static_cast<size_t>(r) * ld;
                    const NUMBER* const other = C + static_cast<size_t>(s) * ld;
                    changes[a][b] = row[p[s]] + other[p[r]] - row[p[r]] - other[p[s]] + 2 * flows[r * ld + s] * distances[p[r] * ld + p[s]];
                    if (kinds[r] != kinds[s]) until[a][b] = 0;
                }
            }
    };
    NUMBER wanted = narrowed(NUMBER(), -noise);  // a smaller change is allowed though it is tabu
    auto choose = [&](int it) {
        NUMBER least = big, any = big;
        int place = -1;
#pragma unroll
        for (int a = 0; a < SIDE; ++a)
#pragma unroll
            for (int b = 0; b < SIDE; ++b) {
                const NUMBER value = until[a][b] < it ? changes[a][b] : big;
                any = min(any, changes[a][b]);
                if (value < least) least = value, place = a * SIDE + b;
            }
        if (any < wanted && any <= least) {
            least = any;
#pragma unroll
            for (int e = SIDE * SIDE - 1; e >= 0; --e)
                if (changes[e / SIDE][e % SIDE] == any) place = e;
        }
        if (place >= 0) {
            const int r = r0 + place / SIDE, s = c0 + place % SIDE;
            top.consider(least, min(r, s) * n + max(r, s));
        }
    };
#if INSIDE
    const bool mine = tid < tiles;
    locate(mine ? tid : 0);
    fill();
    if (mine) choose(1);
#else
    // number e of tile t is at e * tiles + t
    NUMBER* const own_changes = outside_changes + block * tiles * SIDE * SIDE;
    unsigned short* const own_until = outside_until + block * tiles * SIDE * SIDE;
    for (int t = tid; t < tiles; t += threads) {
        locate(t);
        fill();
        choose(1);
#pragma unroll
        for (int e = 0; e < SIDE * SIDE; ++e) {
            own_changes[static_cast<size_t>(e) * tiles + t] = changes[e / SIDE][e % SIDE];
            own_until[static_cast<size_t>(e) * tiles + t] = static_cast<unsigned short>(until[e / SIDE][e % SIDE]);
        }
    }
#endif
    uint4 words{};
    int depth = 0;
    for (int it = 1; it <= iterations; ++it) {
        if (it % STEPS_TO_LOOK == 1 && halted) break;
        if (warp == 0 && it % 32 == 1) words = random_words(key, it + lane, STREAM_TABU, ant);
        reduce_warp(top.change, top.code);
        if (lane == 0) warp_change[warp] = top.change, warp_code[warp] = top.code;
        __syncthreads();
        top.change = lane < warps ? warp_change[lane] : big;
        top.code = lane < warps ? warp_code[lane] : -1;
        reduce_warp(top.change, top.code);
        int u, v;
        if (top.code < 0) {  // every swap is tabu
            const uint4 drawn = random_words(key, it, STREAM_TABU, ant);
            const int one = below(drawn.z, n), other = (one + 1 + below(drawn.w, n - 1)) % n;
            u = min(one, other);
            v = max(one, other);
            const NUMBER* const row = C + static_cast<size_t>(u) * ld;
            const NUMBER* const below_it = C + static_cast<size_t>(v) * ld;
            top.change = row[p[v]] + below_it[p[u]] - row[p[u]] - below_it[p[v]] + 2 * flows[u * ld + v] * distances[p[u] * ld + p[v]];
            for (int k = 0; k < PAIRS * DEPTH; ++k)
                if (k % DEPTH < depth)
                    top.change -= (xs[k * pad + u] - xs[k * pad + v]) * (ys[k * pad + p[u]] - ys[k * pad + p[v]]);
        } else {
            u = top.code / n;
            v = top.code - u * n;
        }
        const int z = p[u], w = p[v];
        cost += static_cast<double>(top.change);
        const bool better = cost < lowest - noise;
        if (better) lowest = cost;
        wanted = narrowed(NUMBER(), lowest - cost - noise);
        if (warp == 0) {
            const unsigned a = __shfl_sync(EVERY_LANE, words.x, (it - 1) % 32), b = __shfl_sync(EVERY_LANE, words.y, (it - 1) % 32);
            if (lane == 0) {
                const int of_u = it + 1 + static_cast<int>(__umulhi(__umulhi(__umulhi(a, a), a), TENURE * n));
                const int of_v = it + 1 + static_cast<int>(__umulhi(__umulhi(__umulhi(b, b), b), TENURE * n));
                stamps[u * n + z] = static_cast<unsigned short>(of_u);
                stamps[v * n + w] = static_cast<unsigned short>(of_v);
                until_u[v] = until_v[u] = kinds[u] == kinds[v] ? NEVER : min(of_u, of_v);
                if (it % STEPS_TO_LOOK == 0) halted = load_relaxed(halt);
            }
        }
        // x and y, and the changes of swaps with u and v, of item t
        if (tid < n) {
            const int t = tid, there = t == u ? w : t == v ? z : p[t];
            const NUMBER *const row_u = C + static_cast<size_t>(u) * ld, *const row_v = C + static_cast<size_t>(v) * ld;
            const NUMBER* const row = C + static_cast<size_t>(t) * ld;
            const NUMBER self = row[there];
            NUMBER of_u = row_u[there] + row[w] - row_u[w] - self, of_v = row_v[there] + row[z] - row_v[z] - self;
#pragma unroll
            for (int q = 0; q < PAIRS; ++q) {
                const NUMBER *const f = flows + q * square, *const d = distances + q * square;
                const NUMBER flow_u = f[u * ld + t], flow_v = f[v * ld + t];
                const NUMBER distance_w = d[w * ld + there], distance_z = d[z * ld + there];
                const NUMBER x = flow_u - flow_v, y = distance_w - distance_z;
                xs[(q * DEPTH + depth) * pad + t] = x;
                ys[(q * DEPTH + depth) * pad + t] = d[w * ld + t] - d[z * ld + t];
                yi[q * pad + t] = y;
                for (int k = 0; k < depth; ++k) {
                    const NUMBER *const older_x = xs + (q * DEPTH + k) * pad, *const older_y = ys + (q * DEPTH + k) * pad;
                    of_u += (older_x[u] - older_x[t]) * (older_y[there] - older_y[w]);
                    of_v += (older_x[v] - older_x[t]) * (older_y[there] - older_y[z]);
                }
                of_u += (-f[v * ld + u] - x) * (y + d[z * ld + w]);
                of_v += (f[u * ld + v] - x) * (y - d[w * ld + z]);
                if (q == 0) {
                    of_u += 2 * flow_u * distance_w;
                    of_v += 2 * flow_v * distance_z;
                }
            }
            change_u[t] = t == u ? 0 : of_u;
            change_v[t] = t == v ? 0 : of_v;
            if (t != v) until_u[t] = t == u || kinds[t] == kinds[u] ? NEVER : min(stamps[u * n + there], stamps[t * n + w]);
            if (t != u) until_v[t] = t == v || kinds[t] == kinds[v] ? NEVER : min(stamps[v * n + there], stamps[t * n + z]);
            if (better) found[t] = there;
        }
        __syncthreads();
        if (tid == 0) {
            p[u] = w;
            p[v] = z;
        }
        top = Best{big, -1};
        auto advance = [&]() {  // returns true if the tile has u or v
            NUMBER xc[PAIRS][SIDE], yc[PAIRS][SIDE];
#pragma unroll
            for (int b = 0; b < SIDE; ++b)
#pragma unroll
                for (int q = 0; q < PAIRS; ++q) {
                    xc[q][b] = xs[(q * DEPTH + depth) * pad + c0 + b];
                    yc[q][b] = yi[q * pad + c0 + b];
                }
#pragma unroll
            for (int a = 0; a < SIDE; ++a)
#pragma unroll
                for (int q = 0; q < PAIRS; ++q) {
                    const NUMBER xr = xs[(q * DEPTH + depth) * pad + r0 + a], yr = yi[q * pad + r0 + a];
#pragma unroll
                    for (int b = 0; b < SIDE; ++b) changes[a][b] -= (xr - xc[q][b]) * (yr - yc[q][b]);
                }
            if (c0 + SIDE > n) {
#pragma unroll
                for (int a = 0; a < SIDE; ++a)
#pragma unroll
                    for (int b = 0; b < SIDE; ++b)
                        if (c0 + b >= n || r0 + a >= n) changes[a][b] = 0;
            }
            bool touched = false;
#pragma unroll
            for (int a = 0; a < SIDE; ++a)
                if (r0 + a == u || r0 + a == v) {
                    touched = true;
                    const NUMBER* const other = r0 + a == u ? change_u : change_v;
                    const int* const tabu = r0 + a == u ? until_u : until_v;
#pragma unroll
                    for (int b = 0; b < SIDE; ++b) changes[a][b] = other[c0 + b], until[a][b] = tabu[c0 + b];
                }
#pragma unroll
            for (int b = 0; b < SIDE; ++b)
                if (c0 + b == u || c0 + b == v) {
                    touched = true;
                    const NUMBER* const other = c0 + b == u ? change_u : change_v;
                    const int* const tabu = c0 + b == u ? until_u : until_v;
#pragma unroll
                    for (int a = 0; a < SIDE; ++a) changes[a][b] = other[r0 + a], until[a][b] = tabu[r0 + a];
                }
            return touched;
        };
#if INSIDE
        if (mine) {
            advance();
            choose(it + 1);
        }
#else
        for (int t = tid; t < tiles; t += threads) {
            locate(t);
#pragma unroll
            for (int e = 0; e < SIDE * SIDE; ++e) {
                changes[e / SIDE][e % SIDE] = own_changes[static_cast<size_t>(e) * tiles + t];
                until[e / SIDE][e % SIDE] = own_until[static_cast<size_t>(e) * tiles + t];
            }
            const bool touched = advance();
            choose(it + 1);
#pragma unroll
            for (int e = 0; e < SIDE * SIDE; ++e) {
                own_changes[static_cast<size_t>(e) * tiles + t] = changes[e / SIDE][e % SIDE];
                if (touched) own_until[static_cast<size_t>(e) * tiles + t] = static_cast<unsigned short>(until[e / SIDE][e % SIDE]);
            }
        }
#endif
        if (++depth == DEPTH) {
            const int strip = tid % quads * 4, step = threads / quads, first = tid / quads;
            if (first < step) {
                Quad y[PAIRS * DEPTH];
#pragma unroll
                for (int k = 0; k < PAIRS * DEPTH; ++k) y[k] = *reinterpret_cast<const Quad*>(ys + k * pad + strip);
                for (int i = first; i < n; i += step) {
                    Quad* const place = reinterpret_cast<Quad*>(C + static_cast<size_t>(i) * ld + strip);
                    Quad sum = *place;
#pragma unroll
                    for (int k = 0; k < PAIRS * DEPTH; ++k) {
                        const NUMBER x = xs[k * pad + i];
#pragma unroll
                        for (int j = 0; j < 4; ++j) sum.number[j] += x * y[k].number[j];
                    }
                    *place = sum;
                }
            }
            depth = 0;
        }
    }
    __syncthreads();
    for (int i = tid; i < n; i += threads) best[block * n + i] = found[i];
    if (tid == 0) costs[blockIdx.x] = lowest;
}
