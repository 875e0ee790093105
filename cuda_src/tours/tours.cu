// Exact lengths of tours.

#include "instance/metric.cuh"
#include "device/warp.cuh"

// -DTHREADS: threads per tour

// Compute lengths (m,) of tours (m, n), one block per tour, summed in a fixed order. The last block to finish writes to
// host memory: host_lengths (m,), and host_shortest (1 + n,), the index of the first shortest tour and its cities.
// finished (1,) is 0 before and after.
extern "C" __global__ void __launch_bounds__(THREADS)
    measure_tours(CITIES_PARAMETERS, const int* __restrict__ tours, int m, double* lengths, unsigned* finished,
                  double* __restrict__ host_lengths, int* __restrict__ host_shortest) {
    constexpr int WARPS = THREADS / 32;
    __shared__ double of_warp[WARPS];
    __shared__ int ant_of_warp[WARPS];
    __shared__ bool is_last;
    const Cities cities = CITIES;
    const int warp = threadIdx.x >> 5, lane = lane_id();
    const int* tour = tours + static_cast<size_t>(blockIdx.x) * n;
    double sum = 0.0;
#pragma unroll 4  // independent loads
    for (int p = threadIdx.x; p < n; p += THREADS) sum += exact_distance(cities, tour[p], tour[p + 1 < n ? p + 1 : 0]);
    sum = warp_sum(sum);
    if (lane == 0) of_warp[warp] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int w = 1; w < WARPS; ++w) sum += of_warp[w];
        lengths[blockIdx.x] = sum;
        __threadfence();  // write the length before the block is counted
        is_last = atomicAdd(finished, 1u) + 1u == gridDim.x;
        if (is_last) {
            __threadfence();  // read lengths after all blocks have been counted
            *finished = 0u;
        }
    }
    __syncthreads();
    if (!is_last) return;

    Least best;
#pragma unroll 4
    for (int other = threadIdx.x; other < m; other += THREADS) best.consider(lengths[other], other);
    for (int other = threadIdx.x; other < m; other += THREADS) host_lengths[other] = lengths[other];
    best.reduce_warp();
    if (lane == 0) {
        of_warp[warp] = best.value;
        ant_of_warp[warp] = best.index;
    }
    __syncthreads();
    best = Least{of_warp[lane % WARPS], ant_of_warp[lane % WARPS]};
    best.reduce_warp();
    if (threadIdx.x == 0) host_shortest[0] = best.index;
    tour = tours + static_cast<size_t>(best.index) * n;
#pragma unroll 4
    for (int p = threadIdx.x; p < n; p += THREADS) host_shortest[1 + p] = tour[p];
}
