// Trails of colonies for quadratic assignment: one block a colony; the numbers are those of backends/cpu/assignment.py.
#include "device/philox.cuh"

constexpr unsigned RATE_BITS = 16;

// Take the best of `ants` placements of each colony: best (colonies * ants, n), costs (colonies * ants,). Evaporate,
// and deposit on it or on the best placement of the colony, or restart after `patience` iterations without a better one.
// In and out: trails (colonies, n, n), colony_best (colonies, n), colony_costs, stale (colonies,).
extern "C" __global__ void learn(const int* __restrict__ best, const double* __restrict__ costs, int n, int ants, int patience,
                                 unsigned rate, int deposit, int low, int high, double noise, Key key, int* trails,
                                 int* colony_best, double* colony_costs, int* stale) {
    __shared__ int from, better, restart;
    const int c = blockIdx.x, tid = threadIdx.x, threads = blockDim.x;
    if (tid == 0) {
        from = c * ants;
        for (int a = from + 1; a < (c + 1) * ants; ++a)
            if (costs[a] < costs[from]) from = a;
        better = costs[from] < colony_costs[c] - noise;
        const int idle = better ? 0 : stale[c] + 1;
        restart = idle > patience;
        stale[c] = restart ? 0 : idle;
        if (better) colony_costs[c] = costs[from];
        if (restart) colony_costs[c] = 1.0 / 0.0;
    }
    __syncthreads();
    int* const own = colony_best + static_cast<size_t>(c) * n;
    const int* const found = best + static_cast<size_t>(from) * n;
    if (better)
        for (int i = tid; i < n; i += threads) own[i] = found[i];
    int* const trail = trails + static_cast<size_t>(c) * n * n;
    for (int e = tid; e < n * n; e += threads) {
        const int less = trail[e] - static_cast<int>((static_cast<unsigned long long>(trail[e]) * rate) >> RATE_BITS);
        trail[e] = restart ? high : max(low, less);
    }
    __syncthreads();
    if (restart) return;
    const int* const deposited = random_words(key, 0u, STREAM_COIN, c).x & 1u ? own : found;
    for (int i = tid; i < n; i += threads) {
        int* const place = trail + i * n + deposited[i];
        *place = min(high, *place + deposit);
    }
}
