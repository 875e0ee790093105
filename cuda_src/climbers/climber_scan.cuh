// Scans of all 2-opt moves of a climber's tour, in three ways (sections 3.1 to 3.3, O'Neil and Burtscher 2015).
//
// A move removes the edges after positions i and j and changes the length by
//     d(i, j) + d(i+1, j+1) - d(i, i+1) - d(j, j+1).
// A scan uses search distances. Each thread stores only its least value and the chunks that contain it. `examine`
// evaluates these chunks again and selects the best move by exact distances.
#pragma once

#include "climbers/climber_tour.cuh"

// -DSCAN: 0: rows, places in global memory; 1: rows, places in shared tiles; 2: spans, one distance a move
// -DSPANS: spans that a thread evaluates together; odd, to avoid bank conflicts
// -DTILE: places in a shared tile of SCAN 1

constexpr double LEAST_BELOW_0 = -0x1p-126;  // the negative normal float nearest to 0
constexpr unsigned long long NONE = ~0ull;
constexpr int CHUNK = SPANS * SPANS;  // pairs

// The best move of the current scan so far, by exact distances; delta 0 if none improves. Ties: the least i, then j.
struct Best {
    double delta;
    int i, j;

    __device__ __forceinline__ void update(double other, int a, int b) {
        if (other < delta || (other == delta && (a < i || (a == i && b < j)))) *this = {other, a, b};
    }
};

// Shared state of the threads of a block.
struct alignas(16) Control {
    unsigned long long delta, move;
    double length, shortest;
    unsigned least;
    int count;
};
static_assert(sizeof(Control) == 48, "the host allocates another size for Control");

// Result of a thread's scan of its pairs: the least value, and the chunks of pairs that may contain the best move.
// Bit c % 32 stands for chunk c.
struct ThreadBest {
    Length least = NO_MOVE, limit = CLEARLY_LESS;
    unsigned chunks = 0;

    __device__ __forceinline__ void add_value(Length value, int chunk, Length error) {
        if (value > limit) return;
        if (value + 2 * error < least) chunks = 0;
        chunks |= 1u << (chunk & 31);
        least = lesser(least, value);
        limit = least + 2 * error;
    }
};

// Find the best move of the region that the threads have scanned. `region` maps threads to pairs; `raised` (threads,)
// is shared memory.
template <class Region>
__device__ void examine(const Tour& tour, Control& control, int2* raised, Length error, const ThreadBest& own,
                        const Region& region, Best& best) {
    __syncthreads();  // all threads have read the last result
    if (threadIdx.x == 0) {
        control.least = ~0u;
        control.count = 0;
        control.delta = control.move = NONE;
    }
    __syncthreads();
    const unsigned warp_least = warp_min(in_order(own.least));
    if (lane_id() == 0) atomicMin(&control.least, warp_least);
    __syncthreads();
    // A search value differs from the exact one by at most `error`. A pair can equal the best move so far only if its
    // value is at most `limit`. It can be the best pair of the region only within two errors of the least value.
    const Length least = from_order(control.least);
#if UNITS
    const Length limit = min(static_cast<int>(best.delta), -1) + error;
#else
    const Length limit = __double2float_ru(fmin(best.delta, LEAST_BELOW_0)) + error;
#endif
    const Length window = least <= limit ? lesser(limit, least + 2 * error) : limit;
    if (own.least <= window) {
        raised[atomicAdd(&control.count, 1)] = make_int2(threadIdx.x, static_cast<int>(own.chunks));
    }
    __syncthreads();
    const int count = control.count;
    if (count == 0) return;
    Best own_best = {0.0, 0, 0};
    for (int r = threadIdx.x >> 5; r < count; r += blockDim.x >> 5) {
        const int thread = raised[r].x, chunks = region.chunks(thread);
        for (unsigned bits = static_cast<unsigned>(raised[r].y); bits != 0; bits &= bits - 1) {
            for (int chunk = __ffs(bits) - 1; chunk < chunks; chunk += 32) {
                const int2 corner = region.corner(thread, chunk);
                for (int index = lane_id(); index < CHUNK; index += 32) {
                    const int2 pair = region.pair(corner, index);
                    const int i = min(pair.x, pair.y), j = max(pair.x, pair.y);
                    if (j >= tour.n || search_delta(tour, i, j) > window) continue;
                    const Change move = exact_change(tour, i, j);
                    if (shortens(move)) own_best.update(move.delta, i, j);
                }
            }
        }
    }
    const bool found = own_best.delta < 0.0;
    if (found) atomicMin(&control.delta, in_order(own_best.delta));
    __syncthreads();
    if (found && in_order(own_best.delta) == control.delta) {
        atomicMin(&control.move,
                  static_cast<unsigned long long>(own_best.i) << 32 | static_cast<unsigned>(own_best.j));
    }
    __syncthreads();
    if (control.move == NONE) return;
    best.update(from_order(control.delta), static_cast<int>(control.move >> 32),
                static_cast<int>(control.move & 0xFFFFFFFFu));
}

#if SCAN < 2

// One row per thread: i fixed, all j > i + 1. Row 0 excludes position n-1, its predecessor.
struct Rows {
    int first, end, n;
    __device__ int last(int i) const { return i == 0 ? n - 2 : n - 1; }
    __device__ int chunks(int thread) const {
        const int i = first + thread;
        return (last(i) - i - 2) / CHUNK + 1;
    }
    __device__ int2 corner(int thread, int chunk) const {
        return make_int2(first + thread, first + thread + 2 + chunk * CHUNK);
    }
    // A second position of n stands for no pair.
    __device__ int2 pair(int2 corner, int index) const {
        const int j = corner.y + index;
        return make_int2(corner.x, j <= last(corner.x) ? j : n);
    }
};

// The least value of a thread's row.
__device__ Length scan_rows(const Tour& tour, const Rows& rows, Place* tile) {
    const int i = rows.first + threadIdx.x;
    const bool active = i < rows.end;
    Length least = NO_MOVE;
    const Place row = tour.places[active ? i : 0], after_row = tour.places[active ? i + 1 : 0];
#if SCAN == 0
    // section 3.1, O'Neil and Burtscher 2015
    const int last = active ? rows.last(i) : 0;
    Place place = tour.places[active ? i + 2 : 0];
    for (int j = i + 2; j <= last; ++j) {
        const Place after = tour.places[next_position(tour, j)];
        least = lesser(least, change(tour.cities, row, after_row, place, after));
        place = after;
    }
#else
    // section 3.2, O'Neil and Burtscher 2015: j runs backwards; all threads read the same places from shared tiles
    for (int top = tour.n - 1; top >= rows.first + 2; top -= TILE) {
        const int bottom = max(top - TILE + 1, rows.first + 2), count = top - bottom + 1;
        __syncthreads();
        for (int x = threadIdx.x; x <= count; x += blockDim.x) {
            tile[x] = tour.places[bottom + x < tour.n ? bottom + x : 0];
        }
        __syncthreads();
        if (!active) continue;
        Place after = tile[count];
        for (int j = top; j >= max(bottom, i + 2); --j) {
            const Place place = tile[j - bottom];
            if (j <= rows.last(i)) least = lesser(least, change(tour.cities, row, after_row, place, after));
            after = place;
        }
    }
    __syncthreads();
#endif
    return least == NO_MOVE ? NO_MOVE : add(least, without_biases(row.after));
}

// Scan all moves whose first position is in [first, end).
__device__ void scan(const Tour& tour, Control& control, int2* raised, Place* tile, Length error, int first, int end,
                     Best& best) {
    end = min(end, tour.n - 2);
    for (; first < end; first += blockDim.x) {
        const Rows rows = {first, end, tour.n};
        ThreadBest own;
        own.least = scan_rows(tour, rows, tile);
        own.chunks = ~0u;
        examine(tour, control, raised, error, own, rows, best);
    }
}

#else

// A pair is a position and the span to its partner, 2 .. n/2 positions further along the tour. All positions have equal
// work. For a fixed span the next position reuses d(i+1, j+1): one distance per move.
//
// A unit of work is SPANS spans over `rows` positions: unit u evaluates group u % groups of spans on segment u / groups
// of positions. The last groups and segments overlap their predecessors, which changes no minimum.
struct Spans {
    int n, first, count;           // positions first .. first + count - 1
    int groups, segments, rows;    // rows is a multiple of SPANS, and at least count / segments
    int unit, end;                 // current units: thread t takes unit + t, unit + t + threads, ..

    __device__ int span(int u) const { return min(2 + (u % groups) * SPANS, n / 2 - SPANS + 1); }
    __device__ int row(int u) const { return first + u / groups * count / segments; }
    __device__ int chunks(int thread) const {
        const int threads = static_cast<int>(blockDim.x);
        return (end - unit - thread + threads - 1) / threads * (rows / SPANS);
    }
    __device__ int2 corner(int thread, int chunk) const {
        const int u = unit + thread + chunk / (rows / SPANS) * static_cast<int>(blockDim.x);
        const int i = row(u) + chunk % (rows / SPANS) * SPANS;
        return make_int2(i, i + span(u));
    }
    __device__ int2 pair(int2 corner, int index) const {
        int i = corner.x + index / SPANS, j = corner.y + index / SPANS + index % SPANS;
        while (i >= n) i -= n;
        while (j >= n) j -= n;
        return make_int2(i, j);
    }
};

// Evaluate the moves of `count` rows and SPANS spans, in chunks of SPANS rows. columns[s] is the partner of rows[0] at
// the unit's span s, `chunk` the index of the unit's first chunk in the thread.
__device__ __forceinline__ void scan_unit(const Cities& cities, const Place* rows, const Place* columns, int count,
                                          int chunk, Length error, ThreadBest& own) {
    Place window[SPANS];
    Length from_row[SPANS];
    Place row = *rows;
#pragma unroll
    for (int s = 0; s < SPANS; ++s) {
        window[s] = columns[s];
        from_row[s] = search_distance(cities, row, window[s]);
    }
    for (int r = 0; r < count; r += SPANS, ++chunk) {
        Length least = NO_MOVE;
#pragma unroll
        for (int u = 0; u < SPANS; ++u) {
            const Place next = rows[r + u + 1], newest = columns[r + u + SPANS];
            Length fold = NO_MOVE;
#pragma unroll
            for (int s = 0; s < SPANS; ++s) {
                const Place& column = window[(u + s) % SPANS];
                const Length now = search_distance(cities, next, s + 1 < SPANS ? window[(u + s + 1) % SPANS] : newest);
                const Length value = add(add(from_row[s], now), column.after);
                fold = s == 0 ? value : lesser(fold, value);
                from_row[s] = now;
            }
            const Length value = add(fold, without_biases(row.after));
            least = lesser(least, value);
            row = next;
            window[u] = newest;
        }
        own.add_value(least, chunk, error);
    }
}

// Scan all moves of the positions of `spans`. The rows and columns of several units are in shared memory: the whole
// tour with RESIDENT; else tiles for one unit per thread.
__device__ void scan(const Tour& tour, Control& control, int2* raised, Place* tile, Length error, Spans spans,
                     Best& best) {
    const int units = spans.groups * spans.segments, threads = static_cast<int>(blockDim.x);
    for (spans.unit = 0; spans.unit < units; spans.unit = spans.end) {
#if RESIDENT
        spans.end = units;
#else
        spans.end = min(spans.unit + threads, (spans.unit / spans.groups + 1) * spans.groups);
        const int first_row = spans.row(spans.unit), first_span = spans.span(spans.unit);
        const int width = spans.span(spans.end - 1) - first_span + spans.rows + SPANS;
        Place* const columns_of_tile = tile + spans.rows + 1;
        __syncthreads();
        for (int x = threadIdx.x; x <= spans.rows; x += threads) tile[x] = tour.places[(first_row + x) % tour.n];
        for (int x = threadIdx.x; x < width; x += threads) {
            columns_of_tile[x] = tour.places[(first_row + first_span + x) % tour.n];
        }
        __syncthreads();
#endif
        ThreadBest own;
        int chunk = 0;
        for (int u = spans.unit + threadIdx.x; u < spans.end; u += threads) {
            const int row = spans.row(u), span = spans.span(u);
#if RESIDENT
            const Place *rows = tour.places + row, *columns = rows + span;
#else
            const Place *rows = tile, *columns = columns_of_tile + span - first_span;
#endif
            scan_unit(tour.cities, rows, columns, spans.rows, chunk, error, own);
            chunk += spans.rows / SPANS;
        }
        examine(tour, control, raised, error, own, spans, best);
    }
}

#endif
