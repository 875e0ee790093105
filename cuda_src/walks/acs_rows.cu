// Copies of the candidate edges' trails to contiguous rows (n, STRIDE) before a walk, and back to the pheromone memory
// after it. The memory is dense, (n, n), or of candidate edges, (n, k).

#include "walks/acs_counts.cuh"

// -DCOUNTED: 1: ants have counted their updates (acs_sync.cu); 0: they have changed the rows (acs_relaxed.cu)

__device__ __forceinline__ size_t place_in_tau(const int* neighbours, int n, int k, int city, int slot) {
    const size_t place = static_cast<size_t>(city) * k + slot;
    return DENSE ? static_cast<size_t>(city) * n + neighbours[place] : place;
}

// Fill rows (n, STRIDE) from tau (n, n) or (n, k), one thread per entry. neighbours (n, k). Raise bound (n,), an upper
// bound of the trails of edges that are not candidates, to at least tau0, because local updates approach tau0.
extern "C" __global__ void open_rows(const float* tau, const int* neighbours, int n, int k, float tau0, float* bound,
                                     float* rows) {
    const size_t place = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (place >= static_cast<size_t>(n) * STRIDE) return;
    const int city = static_cast<int>(place / STRIDE), slot = static_cast<int>(place % STRIDE);
    rows[place] = slot < k ? tau[place_in_tau(neighbours, n, k, city, slot)] : 0.0f;
    if (DENSE && slot == 0) bound[city] = fmaxf(bound[city], tau0);
}

// Copy rows (n, STRIDE) to tau, with the local updates of counts (n, STRIDE). neighbours (n, k); keep_log2 = log2(1 - xi); one thread per entry.
extern "C" __global__ void close_rows(const float* rows, const int* neighbours, int n, int k, float tau0,
                                      float keep_log2, const Count* counts, float* tau) {
    const size_t place = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (place >= static_cast<size_t>(n) * STRIDE) return;
    const int city = static_cast<int>(place / STRIDE), slot = static_cast<int>(place % STRIDE);
    if (slot >= k) return;
    const float trail = rows[place];
    tau[place_in_tau(neighbours, n, k, city, slot)] =
        COUNTED ? updated(trail, tau0, keep_log2, all_updates(counts[place])) : trail;
}

#if COUNTED && DENSE

// Local update of a trail that other threads may update concurrently: retry until it is stored. All apply the same
// function, so the order has no effect.
__device__ __forceinline__ void blend_atomically(float* place, float tau0, float xi) {
    int* bits = reinterpret_cast<int*>(place);
    int found = load_relaxed(bits), expected;
    if (__int_as_float(found) == tau0) return;  // a fixed point
    do {
        expected = found;
        found = atomicCAS(bits, expected, __float_as_int(blended(__int_as_float(expected), tau0, xi)));
    } while (found != expected);
}

// Apply the local updates that are marked in tours (m, n) to tau (n, n), and remove the marks.
extern "C" __global__ void update_outside(int* tours, int m, int n, float tau0, float xi, float* tau) {
    const size_t count = static_cast<size_t>(m) * n, stride = static_cast<size_t>(gridDim.x) * blockDim.x;
    for (size_t e = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x; e < count; e += stride) {
        const unsigned entry = load_relaxed(tours + e);
        if (!(entry & (MARK_AHEAD | MARK_BEHIND))) continue;
        const size_t before = e % n > 0 ? e - 1 : e + n - 1;
        // another thread may remove these marks concurrently
        const unsigned from = load_relaxed(tours + before) & ~(MARK_AHEAD | MARK_BEHIND);
        const unsigned to = entry & ~(MARK_AHEAD | MARK_BEHIND);
        store_relaxed(tours + e, static_cast<int>(to));
        if (entry & MARK_AHEAD) blend_atomically(tau + static_cast<size_t>(from) * n + to, tau0, xi);
        if (entry & MARK_BEHIND) blend_atomically(tau + static_cast<size_t>(to) * n + from, tau0, xi);
    }
}

#endif
