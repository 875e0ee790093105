// Trails of the candidate edges, taken out of the pheromone memory before the ants walk and put back afterwards.
//
// The walk reads them in rows (n, 32 SLOTS), which are contiguous, whatever the memory: dense (n, n) or candidate (n, k).

#include "acs_counts.cuh"

#ifndef COUNTED
#define COUNTED 0  // 1: ants counted their updates (acs_sync.cu), 0: they changed the rows themselves (acs_relaxed.cu)
#endif

__device__ __forceinline__ size_t place_in_tau(const int* neighbours, int n, int k, int city, int slot) {
    const size_t place = static_cast<size_t>(city) * k + slot;
    return DENSE ? static_cast<size_t>(city) * n + neighbours[place] : place;
}

// rows (n, 32 SLOTS) from tau (n, n) or (n, k); one thread a place of a row. bound (n,), which lies above all trails
// outside the lists, is lifted to tau0: local updates bring no trail above both.
extern "C" __global__ void open_rows(const float* tau, const int* neighbours, int n, int k, float tau0, float* bound,
                                     float* rows) {
    const size_t place = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (place >= static_cast<size_t>(n) * STRIDE) return;
    const int city = static_cast<int>(place / STRIDE), slot = static_cast<int>(place % STRIDE);
    rows[place] = slot < k ? tau[place_in_tau(neighbours, n, k, city, slot)] : 0.0f;
    if (DENSE && slot == 0) bound[city] = fmaxf(bound[city], tau0);
}

// The way back; counts (n, 32 SLOTS) are zero afterwards.
extern "C" __global__ void close_rows(const float* rows, const int* neighbours, int n, int k, float tau0,
                                      float keep_log2, Count* counts, float* tau) {
    const size_t place = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (place >= static_cast<size_t>(n) * STRIDE) return;
    const int city = static_cast<int>(place / STRIDE), slot = static_cast<int>(place % STRIDE);
    if (slot >= k) return;
#if COUNTED
    const float trail = updated(rows[place], tau0, keep_log2, all_updates(counts[place]));
    counts[place] = 0ull;
#else
    const float trail = rows[place];
#endif
    tau[place_in_tau(neighbours, n, k, city, slot)] = trail;
}
