// Global update of the selective pheromone memory.

#include "trails/ring.cuh"

// tau <- keep tau + amount on the edge from the city of `ring` to `other`; called by the one thread of the ring.
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

// Global update (Eq. (4)) of entries (n, TRAILS) on the edges of tour (n,): keep = 1 - rho, amount = rho / length. One
// thread per city updates its two edges in tour order; the closing edge comes first.
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
