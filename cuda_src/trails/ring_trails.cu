// The selective memory between constructions: initialisation, global update, and branching factor.

#include "trails/ring.cuh"
#include "device/warp.cuh"

#ifndef SYMMETRIC
#define SYMMETRIC 1
#endif

// entries (n, TRAILS) empty, slot 0 is the last written one; one thread an entry. The trail of an empty entry is never
// read.
extern "C" __global__ void fill_ring(Entry* entries, int n, float rest) {
    const size_t place = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (place >= static_cast<size_t>(n) * TRAILS) return;
    entries[place] = entry_of(EMPTY, place % TRAILS == 0 ? LAP : 0u, rest);
}

// tau <- keep tau + amount on the edge from the city of `ring` to `other`, by the one thread that owns the ring.
__device__ void blend_entry(Entry* ring, int other, float keep, float amount, float rest) {
    const unsigned lap = lap_of(ring[0]);
    int oldest = 0;  // the slot after the last written one; 0: the next lap begins
    for (int s = TRAILS - 1; s > 0; --s) {
        if (lap_of(ring[s]) != lap) oldest = s;
    }
    for (int s = 0; s < TRAILS; ++s) {
        if (city_of(ring[s]) == other) {
            ring[s] = entry_of(other, lap_of(ring[s]), trail_of(ring[s]) * keep + amount);
            return;
        }
    }
    ring[oldest] = entry_of(other, oldest == 0 ? lap ^ LAP : lap, rest * keep + amount);
}

// Global update (Eq. (4)) on the edges of a tour (n,): keep = 1 - rho, amount = rho / length. One thread a city, which
// updates its two edges in the order of a walk along the tour; the walk begins with the closing edge.
extern "C" __global__ void blend_tour(Entry* entries, const int* tour, int n, float keep, float amount, float rest) {
    const int p = blockIdx.x * blockDim.x + threadIdx.x;
    if (p >= n) return;
    const int city = tour[p], before = tour[p > 0 ? p - 1 : n - 1], after = tour[p + 1 < n ? p + 1 : 0];
    Entry* ring = entries + static_cast<size_t>(city) * TRAILS;
    const bool last = p + 1 == n;
    if (last) blend_entry(ring, after, keep, amount, rest);
    if (SYMMETRIC) blend_entry(ring, before, keep, amount, rest);
    if (!last) blend_entry(ring, after, keep, amount, rest);
}

__device__ float trail_to(const Entry* ring, int other, float rest) {
    for (int s = 0; s < TRAILS; ++s) {
        if (city_of(ring[s]) == other) return trail_of(ring[s]);
    }
    return rest;
}

// Adds to *count, over all cities, the candidates whose trail exceeds min + lam (max - min) of the city's candidates;
// neighbours (n, k). One warp a city.
extern "C" __global__ void count_ring_branches(const Entry* entries, const int* neighbours, int n, int k, float rest,
                                               float lam, unsigned long long* count) {
    const int city = (blockIdx.x * blockDim.x + threadIdx.x) >> 5, lane = lane_id();
    if (city >= n) return;
    const Entry* ring = entries + static_cast<size_t>(city) * TRAILS;
    const int* near = neighbours + static_cast<size_t>(city) * k;
    float low = __int_as_float(0x7F800000), high = 0.0f;
    for (int slot = lane; slot < k; slot += 32) {
        const float trail = trail_to(ring, near[slot], rest);
        low = fminf(low, trail);
        high = fmaxf(high, trail);
    }
    low = -warp_max(-low);
    high = warp_max(high);
    const float cut = __fadd_rn(low, __fmul_rn(lam, __fsub_rn(high, low)));
    unsigned long long above = 0;
    for (int slot = lane; slot < k; slot += 32) above += trail_to(ring, near[slot], rest) > cut;
    if (above) atomicAdd(count, above);
}
