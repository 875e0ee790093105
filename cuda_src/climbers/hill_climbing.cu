// Random-restart 2-opt hill climbing over all pairs, best move first; one block per climber (O'Neil and Burtscher
// 2015).
//
// A launch evaluates a fixed budget of pairs per climber, so it is short for any n. A scan of all pairs is divided by
// rows into parts. It may stop between two parts and continue in the next launch.

#include "climbers/climber_scan.cuh"

// -DTHREADS: threads of all blocks that share a multiprocessor; it bounds the registers

constexpr int START_AGAIN = -1;

// State between calls, for m climbers of n cities:
//     tours (m, n)         current
//     restarts (m,)        index of the current climb: climber c makes climbs c, c + m, c + 2 m ..
//     part_numbers (m,)    next part of the current scan, or START_AGAIN
//     gains, moves (m,)    best change of that scan so far, 0 if none, and its positions i < j
//     lengths (m,)         exact
//     best_tours (m, n), best_lengths (m,)  the shortest of this call
//     counts (m, 2)        climbs finished and scans completed, since the start
//     all_places (m, n)    null if RESIDENT

// Store the current tour if it is the shortest of this call.
__device__ void store_shortest(const Tour& tour, Control& control, int* best_tour) {
    const double sum = exact_length(tour);
    if (threadIdx.x == 0) control.length = sum;
    __syncthreads();
    const bool shorter = control.length < control.shortest;
    if (shorter) {
        for (int p = threadIdx.x; p < tour.n; p += blockDim.x) best_tour[p] = tour.order[p];
    }
    __syncthreads();
    if (shorter && threadIdx.x == 0) control.shortest = control.length;
}

// One block per climber. `error` bounds the difference of search values and exact values. budget, part_cost and
// restart_cost are in units of 1024 evaluated pairs. groups, segments and rows: see Spans, unused with SCAN < 2.
extern "C" __global__ void __launch_bounds__(THREADS, 1)
    climb(CITIES_PARAMETERS, Key key, int m, float error, int groups, int segments, int rows, int part_rows,
          int budget, int part_cost, int restart_cost, int* tours, long long* restarts, int* part_numbers,
          double* gains, int2* moves, double* lengths, int* best_tours, double* best_lengths,
          unsigned long long* counts, Place* all_places) {
    extern __shared__ uint4 dynamic[];
    const int climber = blockIdx.x;
    const size_t start = static_cast<size_t>(climber) * n;
    Control& control = *reinterpret_cast<Control*>(dynamic);
    int2* const raised = reinterpret_cast<int2*>(&control + 1);
    Place* const shared_places = reinterpret_cast<Place*>(raised + blockDim.x);
#if RESIDENT
    const int extra = n / 2 + SPANS + 8;
    const Tour tour = {CITIES, shared_places, reinterpret_cast<int*>(shared_places + n + extra), n, extra};
#else
    const Tour tour = {CITIES, all_places + start, tours + start, n, 0};
#endif
    if (threadIdx.x == 0) control.shortest = 1.0 / 0.0;
    int part = part_numbers[climber], left = budget;
    Best best = {gains[climber], moves[climber].x, moves[climber].y};
    if (part != START_AGAIN) {
#if RESIDENT
        for (int p = threadIdx.x; p < n; p += blockDim.x) tour.order[p] = tours[start + p];
        __syncthreads();
#endif
        lay_out(tour);
    }
    __syncthreads();
    while (true) {
        if (part == START_AGAIN) {
            const long long restart = restarts[climber] + m;
            shuffle(tour, key, restart);
            if (threadIdx.x == 0) restarts[climber] = restart;
            lay_out(tour);
            __syncthreads();
            part = 0;
            best = {0.0, 0, 0};
            left -= restart_cost;
        }
        if (left <= 0) break;
        const int first = part * part_rows, end = min(first + part_rows, n);
#if SCAN < 2
        scan(tour, control, raised, shared_places, static_cast<Length>(error), first, end, best);
#else
        const Spans spans = {n, first, end - first, groups, segments, rows, 0, groups * segments};
        scan(tour, control, raised, shared_places, static_cast<Length>(error), spans, best);
#endif
        left -= part_cost;
        if (end < n) {
            ++part;
            continue;
        }
        part = 0;
        if (threadIdx.x == 0) atomicAdd(counts + 2 * climber + 1, 1ull);
        if (best.delta == 0.0) {
            if (threadIdx.x == 0) atomicAdd(counts + 2 * climber, 1ull);
            store_shortest(tour, control, best_tours + start);
            part = START_AGAIN;
            continue;
        }
        reverse(tour, best.i, best.j);
        __syncthreads();
        best = {0.0, 0, 0};
    }
    store_shortest(tour, control, best_tours + start);
#if RESIDENT
    for (int p = threadIdx.x; p < n; p += blockDim.x) tours[start + p] = tour.order[p];
#endif
    if (threadIdx.x == 0) {
        part_numbers[climber] = part;
        gains[climber] = best.delta;
        moves[climber] = make_int2(best.i, best.j);
        lengths[climber] = control.length;
        best_lengths[climber] = control.shortest;
    }
}
