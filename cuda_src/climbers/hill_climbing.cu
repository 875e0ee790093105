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
//     all_keys, all_mates (m, n)  null without BATCH or if RESIDENT

#if BATCH
// Find the best move of every position from the scan's keys: keys become (value, position) or NONE, mates the move.
__device__ void collect(const Tour& tour, unsigned long long* keys, int2* mates) {
    for (int p = threadIdx.x; p < tour.n; p += blockDim.x) {
        if (keys[p] == NONE) continue;
        const int span = static_cast<int>(keys[p] & 0xFFFFFFFFu);
        Length least = NO_MOVE;
        int q = p;
        for (int s = 0; s < SPANS; ++s) {
            const int other = (p + span + s) % tour.n;
            const Length delta = search_delta(tour, p, other);
            if (delta < least) {
                least = delta;
                q = other;
            }
        }
        const int i = min(p, q), j = max(p, q);
        const Change move = exact_change(tour, i, j);
        const unsigned long long value = ordered(static_cast<float>(move.delta));
        keys[p] = shortens(move) ? value << 32 | static_cast<unsigned>(p) : NONE;
        mates[p] = make_int2(i, j);
    }
}

// Update the other moves after the move (i, j). Discard moves that share an edge with it or cross the reversed path,
// and mirror moves inside the path. Return the least key of a thread.
__device__ unsigned long long adapt(const Tour& tour, unsigned long long* keys, int2* mates, int i, int j) {
    unsigned long long least = NONE;
    for (int p = threadIdx.x; p < tour.n; p += blockDim.x) {
        if (keys[p] == NONE) continue;
        const int2 move = mates[p];
        const bool shared = move.x == i || move.x == j || move.y == i || move.y == j;
        const bool inside = i < move.x && move.x < j;
        if (shared || inside != (i < move.y && move.y < j)) {
            keys[p] = NONE;
            continue;
        }
        if (inside) mates[p] = make_int2(i + j - move.y, i + j - move.x);
        least = min(least, keys[p]);
    }
    return least;
}

// Apply the best move, then repeatedly the best compatible one. Applied moves share no edge and do not cross: their
// gains add up.
__device__ void make_moves(const Tour& tour, Control& control, unsigned long long* keys, int2* mates,
                           const Best& best) {
    collect(tour, keys, mates);
    if (threadIdx.x < 2) control.next[threadIdx.x] = NONE;
    __syncthreads();
    int i = best.i, j = best.j;
    for (int turn = 0;; turn ^= 1) {
        reverse(tour, i, j);
        unsigned long long least = adapt(tour, keys, mates, i, j);
        for (int step = 16; step > 0; step >>= 1) least = min(least, __shfl_xor_sync(EVERY_LANE, least, step));
        if (lane_id() == 0 && least != NONE) atomicMin(&control.next[turn], least);
        __syncthreads();
        const unsigned long long next = control.next[turn];
        if (next == NONE) break;
        if (threadIdx.x == 0) control.next[turn ^ 1] = NONE;
        const int2 move = mates[next & 0xFFFFFFFFu];
        i = move.x;
        j = move.y;
        __syncthreads();
    }
}
#endif

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
          unsigned long long* counts, Place* all_places, unsigned long long* all_keys, int2* all_mates) {
    extern __shared__ uint4 dynamic[];
    const int climber = blockIdx.x;
    const size_t start = static_cast<size_t>(climber) * n;
    Control& control = *reinterpret_cast<Control*>(dynamic);
    int2* const raised = reinterpret_cast<int2*>(&control + 1);
#if RESIDENT
    unsigned long long* const keys = reinterpret_cast<unsigned long long*>(raised + blockDim.x);
    int2* const mates = reinterpret_cast<int2*>(keys + (BATCH ? n : 0));
    Place* const shared_places = reinterpret_cast<Place*>(mates + (BATCH ? n : 0));
    const int extra = n / 2 + SPANS + 8;
    const Tour tour = {CITIES, shared_places, reinterpret_cast<int*>(shared_places + n + extra), n, extra};
#else
    Place* const shared_places = reinterpret_cast<Place*>(raised + blockDim.x);
    unsigned long long* const keys = all_keys + start;
    int2* const mates = all_mates + start;
    const Tour tour = {CITIES, all_places + start, tours + start, n, 0};
#endif
    static_cast<void>(keys);
    static_cast<void>(mates);  // for BATCH
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
#if BATCH
        if (part == 0) {
            for (int p = threadIdx.x; p < n; p += blockDim.x) keys[p] = NONE;
            __syncthreads();
        }
#endif
        const Spans spans = {n, first, end - first, groups, segments, rows, 0, groups * segments};
        scan(tour, control, raised, shared_places, static_cast<Length>(error), spans, keys, best);
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
#if BATCH
        make_moves(tour, control, keys, mates, best);
#else
        reverse(tour, best.i, best.j);
#endif
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
