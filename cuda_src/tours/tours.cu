// Exact lengths of tours, and the greedy tour.

#include "instance/metric.cuh"
#include "device/warp.cuh"

// -DTHREADS: of a tour

// Lengths (m,) of tours (m, n), a block a tour; a length is always summed in the same order. The last block to finish
// writes the results to host memory: host_lengths (m,), and host_shortest (1 + n,), the index of the first shortest
// tour and its cities. finished is 0 before and after.
extern "C" __global__ void __launch_bounds__(THREADS)
    measure_tours(CITIES_PARAMETERS, const int* __restrict__ tours, int m, double* lengths, unsigned* finished,
                  double* __restrict__ host_lengths, int* __restrict__ host_shortest) {
    constexpr int WARPS = THREADS / 32, IN_FLIGHT = 4;
    __shared__ double of_warp[WARPS];
    __shared__ int ant_of_warp[WARPS];
    __shared__ bool is_last;
    const Cities cities = CITIES;
    const int warp = threadIdx.x >> 5, lane = lane_id();
    const int* tour = tours + static_cast<size_t>(blockIdx.x) * n;
    double sum = 0.0;
    for (int first = threadIdx.x; first < n; first += IN_FLIGHT * THREADS) {
        int from[IN_FLIGHT], to[IN_FLIGHT];  // independent loads
#pragma unroll
        for (int u = 0; u < IN_FLIGHT; ++u) {
            const int p = min(first + u * THREADS, n - 1);
            from[u] = tour[p];
            to[u] = tour[p + 1 < n ? p + 1 : 0];
        }
#pragma unroll
        for (int u = 0; u < IN_FLIGHT; ++u) {
            if (first + u * THREADS < n) sum += exact_between(cities, from[u], to[u]);
        }
    }
    sum = warp_sum(sum);
    if (lane == 0) of_warp[warp] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int w = 1; w < WARPS; ++w) sum += of_warp[w];
        lengths[blockIdx.x] = sum;
        __threadfence();  // a length is written before its block counts
        is_last = atomicAdd(finished, 1u) + 1u == gridDim.x;
        if (is_last) {
            __threadfence();  // and lengths are read after all blocks have counted
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

// Nearest-neighbour tour from city `start`; ties: the lowest city (Eq. (1), paper 000). One block of 512 threads;
// neighbours (n, k) ascending by distance; visited (n,) zero at first.
extern "C" __global__ void __launch_bounds__(512)
    greedy_tour(CITIES_PARAMETERS, const int* neighbours, int k, int start, unsigned char* visited, int* tour) {
    __shared__ double nearest[16];
    __shared__ int found[16];
    __shared__ int next;
    const Cities cities = CITIES;
    const int warp = threadIdx.x >> 5, lane = lane_id();
    int city = start;
    for (int p = 0; p < n; ++p) {
        if (threadIdx.x == 0) {
            tour[p] = city;
            visited[city] = 1;
        }
        __syncthreads();
        if (p + 1 == n) return;
        if (warp == 0) {
            int chosen = -1;
            for (int first = 0; first < k && chosen < 0; first += 32) {
                const int slot = first + lane;
                const int j = slot < k ? neighbours[static_cast<size_t>(city) * k + slot] : -1;
                const unsigned open = __ballot_sync(EVERY_LANE, j >= 0 && !visited[j >= 0 ? j : 0]);
                if (open) chosen = __shfl_sync(EVERY_LANE, j, __ffs(open) - 1);
            }
            if (lane == 0) next = chosen;
        }
        __syncthreads();
        if (next < 0) {
            Least best;
            for (int j = threadIdx.x; j < n; j += 512) {
                if (!visited[j]) best.consider(exact_distance(cities, city, j), j);
            }
            best.reduce_warp();
            if (lane == 0) {
                nearest[warp] = best.value;
                found[warp] = best.index;
            }
            __syncthreads();
            if (threadIdx.x == 0) {
                for (int w = 1; w < 16; ++w) best.consider(nearest[w], found[w]);
                next = best.index;
            }
            __syncthreads();
        }
        city = next;
    }
}
