// Whole tours: their exact lengths, and the greedy one.

#include "metric.cuh"
#include "warp.cuh"

// lengths (m,) of tours (m, n), one warp a tour; always added up in the same order.
extern "C" __global__ void measure_tours(CITIES_PARAMETERS, const int* tours, int m, double* lengths) {
    const Cities cities = CITIES;
    const int ant = (blockIdx.x * blockDim.x + threadIdx.x) >> 5, lane = lane_id();
    if (ant >= m) return;
    const int* tour = tours + static_cast<size_t>(ant) * n;
    double sum = 0.0;
    for (int p = lane; p < n; p += 32) sum += exact_distance(cities, tour[p], tour[p + 1 < n ? p + 1 : 0]);
    sum = warp_sum(sum);
    if (lane == 0) lengths[ant] = sum;
}

// The first of the shortest of tours (m, n) into shortest (n,). One block of 1024 threads; lengths (m,) are not negative.
extern "C" __global__ void __launch_bounds__(1024)
    shortest_tour(const double* lengths, int m, const int* tours, int n, int* shortest) {
    __shared__ double least[32];
    __shared__ int found[32];
    const int warp = threadIdx.x >> 5, lane = lane_id();
    double best = 1.0 / 0.0;
    int ant = 0x7FFFFFFF;
    const auto meet = [&](double length, int other) {
        if (length < best || (length == best && other < ant)) {
            best = length;
            ant = other;
        }
    };
    const auto meet_lanes = [&]() {
        for (int step = 16; step > 0; step >>= 1) {
            const double length = __shfl_xor_sync(EVERY_LANE, best, step);
            meet(length, __shfl_xor_sync(EVERY_LANE, ant, step));
        }
    };
    for (int other = threadIdx.x; other < m; other += 1024) meet(lengths[other], other);
    meet_lanes();
    if (lane == 0) {
        least[warp] = best;
        found[warp] = ant;
    }
    __syncthreads();
    best = least[lane];
    ant = found[lane];
    meet_lanes();
    const int* tour = tours + static_cast<size_t>(ant) * n;
    for (int p = threadIdx.x; p < n; p += 1024) shortest[p] = tour[p];
}

// Both tour neighbours of every city: reference (n, 2) from tours[ant].
extern "C" __global__ void tour_neighbours(const int* tours, int ant, int n, int* reference) {
    const int p = blockIdx.x * blockDim.x + threadIdx.x;
    if (p >= n) return;
    const int* tour = tours + static_cast<size_t>(ant) * n;
    const int city = tour[p];
    reference[2 * city] = tour[p > 0 ? p - 1 : n - 1];
    reference[2 * city + 1] = tour[p + 1 < n ? p + 1 : 0];
}

// The nearest open city each time, from city `start`, ties to the lowest number (Eq. (1), paper 000). One block of
// 512 threads; neighbours (n, k) ascending by distance; visited (n,) zero at first.
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
            double best = 1.0 / 0.0;
            int chosen = 0x7FFFFFFF;
            for (int j = threadIdx.x; j < n; j += 512) {
                if (visited[j]) continue;
                const double d = exact_distance(cities, city, j);
                if (d < best || (d == best && j < chosen)) {
                    best = d;
                    chosen = j;
                }
            }
            for (int step = 16; step > 0; step >>= 1) {
                const double d = __shfl_xor_sync(EVERY_LANE, best, step);
                const int j = __shfl_xor_sync(EVERY_LANE, chosen, step);
                if (d < best || (d == best && j < chosen)) {
                    best = d;
                    chosen = j;
                }
            }
            if (lane == 0) {
                nearest[warp] = best;
                found[warp] = chosen;
            }
            __syncthreads();
            if (threadIdx.x == 0) {
                for (int w = 1; w < 16; ++w) {
                    if (nearest[w] < best || (nearest[w] == best && found[w] < chosen)) {
                        best = nearest[w];
                        chosen = found[w];
                    }
                }
                next = chosen;
            }
            __syncthreads();
        }
        city = next;
    }
}
