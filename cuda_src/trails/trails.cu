// Evaporation and deposit (section 2.1, Skinderowicz 2020; Eqs. (4) to (6), Uchida et al. 2012) of trails.
//
// tau is (n, n), row = from, if DENSE; else (n, k) for candidate edges, and all other edges share one trail, stored on
// the host. neighbours (n, k). Results do not depend on the order of threads.

#include "device/warp.cuh"

// The index of the edge i -> j in tau, or -1 if tau does not contain it.
__device__ __forceinline__ long long place_of(const int* neighbours, int n, int k, int i, int j) {
#if DENSE
    return static_cast<long long>(i) * n + j;
#else
    const long long row = static_cast<long long>(i) * k;
    for (int slot = 0; slot < k; ++slot) {
        if (neighbours[row + slot] == j) return row + slot;
    }
    return -1;
#endif
}

// Set tau (count,) to a value.
extern "C" __global__ void fill_trails(float* tau, size_t count, float value) {
    const size_t stride = static_cast<size_t>(gridDim.x) * blockDim.x;
    for (size_t e = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x; e < count; e += stride) tau[e] = value;
}

__device__ __forceinline__ void deposit_on(float* tau, const int* neighbours, int n, int k, int i, int j, float keep,
                                           float amount, float low, float high) {
    const long long place = place_of(neighbours, n, k, i, j);
    if (place >= 0) tau[place] = fmaxf(low, fminf(high, tau[place] * keep + amount));
}

// tau (count,) <- keep tau with keep = 1 - rho, clipped to the limits.
extern "C" __global__ void evaporate(float* tau, size_t count, float keep, float low, float high) {
    const size_t stride = static_cast<size_t>(gridDim.x) * blockDim.x;
    for (size_t e = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x; e < count; e += stride) {
        tau[e] = fminf(high, fmaxf(low, tau[e] * keep));
    }
}

// Deposit of tour (n,): tau <- max(min(keep tau + amount, high), low) on its edges, one thread per city. keep is 1 for
// a deposit, and 1 - rho for the global update of ACS (Eq. (4), Skinderowicz 2016).
extern "C" __global__ void deposit(float* tau, const int* neighbours, int n, int k, const int* tour, float keep,
                                   float amount, float low, float high) {
    const int p = blockIdx.x * blockDim.x + threadIdx.x;
    if (p >= n) return;
    const int i = tour[p], next = tour[p + 1 < n ? p + 1 : 0], previous = tour[p > 0 ? p - 1 : n - 1];
    deposit_on(tau, neighbours, n, k, i, next, keep, amount, low, high);
    if (SYMMETRIC) deposit_on(tau, neighbours, n, k, i, previous, keep, amount, low, high);
}

// Read and set single trails: values (count,) of edges (count, 2), one thread per edge. Edges that tau does not contain
// have trail `rest` and are not set.
extern "C" __global__ void read_edges(const float* tau, const int* neighbours, int n, int k, const int* edges,
                                      int count, float rest, float* values) {
    const int e = blockIdx.x * blockDim.x + threadIdx.x;
    if (e >= count) return;
    const long long place = place_of(neighbours, n, k, edges[2 * e], edges[2 * e + 1]);
    values[e] = place >= 0 ? tau[place] : rest;
}

extern "C" __global__ void set_edges(float* tau, const int* neighbours, int n, int k, const int* edges, int count,
                                     const float* values) {
    const int e = blockIdx.x * blockDim.x + threadIdx.x;
    if (e >= count) return;
    const auto set = [&](int i, int j) {
        const long long place = place_of(neighbours, n, k, i, j);
        if (place >= 0) tau[place] = values[e];
    };
    set(edges[2 * e], edges[2 * e + 1]);
    if (SYMMETRIC) set(edges[2 * e + 1], edges[2 * e]);
}

#if !DENSE
// First half of the colony's deposits on candidate edges (dense trails: colony_deposit.cu). sums[e] += share / length
// of every ant that uses edge e, or 1 for length 0, in multiples of `unit`. Integer sums do not depend on the order.
// sums (n, k), initially 0; tours (m, n); lengths (m,).
extern "C" __global__ void sum_deposits(unsigned long long* sums, const int* neighbours, int n, int k,
                                        const int* tours, const double* lengths, int m, double share, double unit) {
    const size_t edges = static_cast<size_t>(m) * n, stride = static_cast<size_t>(gridDim.x) * blockDim.x;
    for (size_t e = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x; e < edges; e += stride) {
        const int ant = static_cast<int>(e / n), p = static_cast<int>(e - static_cast<size_t>(ant) * n);
        const int* tour = tours + static_cast<size_t>(ant) * n;
        const int here = tour[p], next = tour[p + 1 < n ? p + 1 : 0];
        const double own = lengths[ant] > 0.0 ? share / lengths[ant] : 1.0;
        const auto add = [&](int i, int j) {
            const long long place = place_of(neighbours, n, k, i, j);
            if (place >= 0) atomicAdd(sums + place, static_cast<unsigned long long>(__double2ll_rn(own / unit)));
        };
        add(here, next);
        if (SYMMETRIC) add(next, here);
    }
}

// Second half: tau <- min(tau + sum * unit, high); tau, sums (count,).
extern "C" __global__ void apply_sums(float* tau, size_t count, const unsigned long long* sums, double unit, float high) {
    const size_t stride = static_cast<size_t>(gridDim.x) * blockDim.x;
    for (size_t e = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x; e < count; e += stride) {
        if (sums[e] == 0ull) continue;
        tau[e] = fminf(high, tau[e] + static_cast<float>(static_cast<double>(sums[e]) * unit));
    }
}
#endif
