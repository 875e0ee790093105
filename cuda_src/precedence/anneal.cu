// Annealing of paths with precedence: one warp per annealing chain, its path in shared memory, costs from L2.
//
// Trials and integers are those of backends/cpu/precedence.py: equal keys give equal paths. A trial draws a candidate
// edge (a, b), which fixes one stretch; the lanes search for the best adjacent stretch to swap it with.
#include "device/philox.cuh"
#include "device/relaxed.cuh"
#include "device/warp.cuh"

constexpr int NONE = 0x7FFFFFFF;  // greater than any change of a length

// Direct successors (or predecessors) of node v: items[begin[v] .. begin[v + 1] - 1].
struct Related {
    const int *begin, *items;
};

struct Path {
    unsigned short *node, *position, *spare;  // (n,) nodes in order, positions of the nodes, workspace
    int* onward;                              // (n,) cost of the edge from each position
    const int *cost, *cost_to;                // (n, n) and its transpose
    int n;

    __device__ int from(int a, int b) const { return cost[a * n + b]; }
    __device__ int to(int a, int b) const { return cost_to[a * n + b]; }
};

// Swap of positions first .. middle-1 and middle .. last-1; change is NONE if there is none.
struct Swap {
    int change, first, middle, last;
};

__device__ __forceinline__ unsigned sortable(int value) { return static_cast<unsigned>(value) ^ 0x80000000u; }

// The least change of all lanes; ties: the least place, a position or offset.
__device__ __forceinline__ void best_of_warp(int& change, int& place) {
    const unsigned least = warp_min(sortable(change));
    place = static_cast<int>(warp_min(sortable(change) == least ? static_cast<unsigned>(place) : 0xFFFFFFFFu));
    change = static_cast<int>(least ^ 0x80000000u);
}

// The best swap of the stretch i+1 .. h-1 with one of at most `longest` nodes beside it: with AHEAD the one that begins at
// h, otherwise the one that ends at i. `related`: direct successors of each node, or predecessors.
template <bool AHEAD>
__device__ Swap best_neighbour(const Path& path, Related related, int i, int h, int longest) {
    const int lane = lane_id();
    int limit = AHEAD ? min(path.n - 1, h + longest) : max(0, i - longest);
    for (int q = i + 1 + lane; q < h; q += 32) {
        const int v = path.node[q];
        for (int z = related.begin[v]; z < related.begin[v + 1]; ++z) {
            const int there = path.position[related.items[z]];
            if (AHEAD && there >= h) limit = min(limit, there);
            if (!AHEAD && there <= i) limit = max(limit, there);
        }
    }
    limit = static_cast<int>(AHEAD ? warp_min(static_cast<unsigned>(limit)) : warp_max(static_cast<unsigned>(limit)));
    const int head = path.node[i + 1], tail = path.node[h - 1], count = AHEAD ? limit - h : i - limit;
    int least = NONE, steps = 0;
    for (int s = lane; s < count; s += 32) {
        const int e = AHEAD ? h + s : i - 1 - s;  // position before the removed edge
        const int change = path.to(head, path.node[e]) + path.from(tail, path.node[e + 1]) - path.onward[e];
        if (change < least) least = change, steps = s;
    }
    best_of_warp(least, steps);
    const int change = least == NONE ? NONE : least - path.onward[i] - path.onward[h - 1];
    return AHEAD ? Swap{change, i + 1, h, h + steps + 1} : Swap{change, i - steps, i + 1, h};
}

// The best swap of the stretches h .. middle-1 and middle .. i over all `middle`.
__device__ Swap best_split(const Path& path, Related after, int h, int i) {
    const int lane = lane_id(), ahead = path.node[h - 1], behind = path.node[i + 1];
    int least = NONE, cut = 0, reach = h;
    for (int base = h; base < i && reach < i; base += 32) {
        const int k = base + lane;
        int own = reach;
        if (k < i) {
            const int v = path.node[k];
            for (int z = after.begin[v]; z < after.begin[v + 1]; ++z) {
                const int there = path.position[after.items[z]];
                if (there <= i) own = max(own, there);
            }
        }
#pragma unroll
        for (int step = 1; step < 32; step <<= 1) {  // prefix maximum of the successors' positions
            const int other = __shfl_up_sync(EVERY_LANE, own, step);
            if (lane >= step) own = max(own, other);
        }
        if (k < i && own <= k) {
            const int v = path.node[k];
            const int change = path.from(ahead, path.node[k + 1]) + path.to(behind, v) - path.onward[k];
            if (change < least) least = change, cut = k + 1;
        }
        reach = __shfl_sync(EVERY_LANE, own, 31);
    }
    best_of_warp(least, cut);
    return {least == NONE ? NONE : least - path.onward[h - 1] - path.onward[i], h, cut, i + 1};
}

__device__ void swap_stretches(Path& path, const Swap& e) {
    const int lane = lane_id(), right = e.last - e.middle, left = e.middle - e.first;
    for (int q = e.first + lane; q < e.last; q += 32) path.spare[q] = path.node[q];
    __syncwarp();
    for (int q = e.first + lane; q < e.last; q += 32) {
        const int v = path.spare[q], there = q < e.middle ? q + right : q - left;
        path.node[there] = v;
        path.position[v] = there;
    }
    __syncwarp();
    for (int q = e.first - 1 + lane; q < e.last; q += 32) path.onward[q] = path.from(path.node[q], path.node[q + 1]);
    __syncwarp();
}

// Run `trials` trials on each path. cost (n, n), cost_to its transpose; after_begin, before_begin (n + 1,) and after,
// before (..,): see Related; nexts, previous (n, k): candidate edges from and to a node, nearest first, and n_nexts,
// n_previous (n,) their numbers; thresholds (4096,) in units of the temperature; temperatures (ceil(trials / 256),);
// shorter: maximum stretch of three trials in four. In and out: paths, best (chains, n) and lengths (chains, 2), of
// both. If *halt, set by the host, is not 0, it ends soon.
extern "C" __global__ void __launch_bounds__(32)
    anneal_paths(const int* __restrict__ cost, const int* __restrict__ cost_to, const int* __restrict__ after_begin,
                 const int* __restrict__ after, const int* __restrict__ before_begin, const int* __restrict__ before,
                 const int* __restrict__ nexts, const int* __restrict__ n_nexts, const int* __restrict__ previous,
                 const int* __restrict__ n_previous, int n, int k, const double* __restrict__ thresholds,
                 const double* __restrict__ temperatures, int trials, int shorter, Key key,
                 int* paths, int* best, long long* lengths, const int* halt) {
    extern __shared__ int memory[];
    const int lane = lane_id(), chain = blockIdx.x;
    int* const own = paths + static_cast<size_t>(chain) * n;
    unsigned short* const nodes = reinterpret_cast<unsigned short*>(memory + n);
    Path path{nodes, nodes + n, nodes + 2 * n, memory, cost, cost_to, n};
    for (int q = lane; q < n; q += 32) {
        path.node[q] = own[q];
        path.position[own[q]] = q;
        path.onward[q] = q + 1 < n ? path.from(own[q], own[q + 1]) : 0;
    }
    __syncwarp();
    long long length = lengths[2 * chain], shortest = lengths[2 * chain + 1];
    uint4 words{};
    for (int t = 0; t < trials; ++t) {
        if (t % 32 == 0) {
            if (t % 256 == 0 && __any_sync(EVERY_LANE, load_relaxed(halt) != 0)) break;
            words = random_words(key, t + lane, STREAM_PRECEDENCE, chain);
        }
        const unsigned w0 = __shfl_sync(EVERY_LANE, words.x, t % 32), w1 = __shfl_sync(EVERY_LANE, words.y, t % 32);
        const unsigned w2 = __shfl_sync(EVERY_LANE, words.z, t % 32), w3 = __shfl_sync(EVERY_LANE, words.w, t % 32);
        const int longest = (w3 & 12u) == 0u ? n : shorter, drawn = below(w0, n - 1);
        const unsigned near = __umulhi(w1, w1);
        int a = drawn, b = drawn + 1;
        if (w3 & 1u)
            b = nexts[a * k + below(near, n_nexts[a])];
        else
            a = previous[b * k + below(near, n_previous[b])];
        const int i = path.position[a], h = path.position[b];
        Swap found;
        if (h == i + 1) continue;
        if (h < i) {
            if (i - h > longest || h == 0 || i == n - 1) continue;
            found = best_split(path, {after_begin, after}, h, i);
        } else {
            if (h - 1 - i > longest) continue;
            found = w3 & 2u ? best_neighbour<true>(path, {after_begin, after}, i, h, longest)
                            : best_neighbour<false>(path, {before_begin, before}, i, h, longest);
        }
        if (found.change == NONE) continue;
        const long long change = static_cast<long long>(found.change) + path.from(a, b);
        if (change > static_cast<long long>(__dmul_rn(temperatures[t >> 8], thresholds[w2 >> 20]))) continue;
        length += change;
        swap_stretches(path, found);
        if (length < shortest) {
            shortest = length;
            for (int q = lane; q < n; q += 32) best[static_cast<size_t>(chain) * n + q] = path.node[q];
        }
    }
    for (int q = lane; q < n; q += 32) own[q] = path.node[q];
    if (lane == 0) {
        lengths[2 * chain] = length;
        lengths[2 * chain + 1] = shortest;
    }
}
