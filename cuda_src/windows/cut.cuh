// Cutting a window out of a tour: which positions, renumbered, with what lies around them tied.
#pragma once

#include "windows/window.cuh"

// The tour that a window is cut from, and its origin: positions are counted from opposite to ``centre``, so that the
// seam of the array is far away and nothing is counted twice.
struct Tour {
    const int* cities;     // (n,) city at position
    const int* positions;  // (n,) of city
    int n, centre;

    __device__ __forceinline__ int relative(int position) const {
        const int p = position - centre + n / 2;
        return p < 0 ? p + n : p >= n ? p - n : p;
    }
    __device__ __forceinline__ int absolute(int relative_position) const {
        const int p = relative_position + centre - n / 2;
        return p < 0 ? p + n : p >= n ? p - n : p;
    }
};

// Sort 256 numbers in shared memory, ascending (bitonic). All lanes.
__device__ inline void sort256(int* values) {
    const int lane = lane_id();
#pragma unroll 1
    for (int size = 2; size <= 256; size <<= 1)
#pragma unroll 1
        for (int stride = size >> 1; stride > 0; stride >>= 1) {
#pragma unroll
            for (int s = 0; s < SLOTS / 2; ++s) {
                const int pair = 32 * s + lane;
                const int i = 2 * pair - (pair & (stride - 1)), j = i + stride;
                const int a = values[i], b = values[j];
                if ((a > b) == ((i & size) == 0)) {
                    values[i] = b;
                    values[j] = a;
                }
            }
            __syncwarp();
        }
}

__device__ __forceinline__ int inclusive_sum(int value) {
    const int lane = lane_id();
#pragma unroll
    for (int step = 1; step < 32; step <<= 1) {
        const int other = __shfl_up_sync(EVERY_LANE, value, step);
        if (lane >= step) value += other;
    }
    return value;
}

// Positions of the window, relative and ascending, into ``kept``; their number. Near the centre's city lie its
// neighbours, theirs, and where walks of ``steps`` steps over neighbours end; ``around`` positions before and behind
// each belong to the window too. All lanes.
__device__ inline int choose(const Tour& tour, const int* near, int steps, int around, const Key& key, unsigned window,
                             int* spots, int* kept) {
    const int lane = lane_id(), n = tour.n;
    if (n <= WINDOW) {
        for (int i = lane; i < n; i += 32) kept[i] = i;
        __syncwarp();
        return n;
    }
    const int centre = tour.cities[tour.centre];
    // all walks of a lane side by side: each step waits for memory
    int cities[SLOTS];
    unsigned digits[SLOTS];
#pragma unroll
    for (int s = 0; s < SLOTS; ++s) cities[s] = centre;
    for (int step = 0; step < steps; ++step) {
#pragma unroll
        for (int s = 0; s < SLOTS; ++s) {
            // a word has ten digits of three bits
            if (step % 10 == 0) digits[s] = philox4x32(make_uint4(32 * s + lane, STREAM_CUT, window, step / 10), key).x;
            cities[s] = near[static_cast<size_t>(cities[s]) * NEAR + (digits[s] >> 3 * (step % 10) & 7u)];
        }
    }
    // the centre itself, its neighbours and five of theirs, in place of the first walks
#pragma unroll
    for (int s = 0; s < 2; ++s) {
        const int t = 32 * s + lane;
        if (t == 0) {
            cities[s] = centre;
        } else if (t <= NEAR) {
            cities[s] = near[static_cast<size_t>(centre) * NEAR + t - 1];
        } else if (t < 6 * NEAR + 1) {
            const int first = near[static_cast<size_t>(centre) * NEAR + (t - NEAR - 1) / 5];
            cities[s] = near[static_cast<size_t>(first) * NEAR + (t - NEAR - 1) % 5];
        }
    }
#pragma unroll
    for (int s = 0; s < SLOTS; ++s) spots[32 * s + lane] = tour.relative(tour.positions[cities[s]]);
    __syncwarp();
    sort256(spots);
    // a lane has eight neighbouring spots; each brings the positions around it that the one before has not
    int counts[SLOTS], total = 0;
#pragma unroll
    for (int s = 0; s < SLOTS; ++s) {
        const int t = SLOTS * lane + s, spot = spots[t];
        int low = max(spot - around, 0);
        if (t > 0) low = max(low, min(spots[t - 1] + around, n - 1) + 1);
        counts[s] = max(0, min(spot + around, n - 1) - low + 1);
        total += counts[s];
    }
    const int upto = inclusive_sum(total);
    int slot = upto - total;
#pragma unroll
    for (int s = 0; s < SLOTS; ++s) {
        const int last = min(spots[SLOTS * lane + s] + around, n - 1);
        for (int i = 0; i < counts[s]; ++i, ++slot)
            if (slot < WINDOW) kept[slot] = last - counts[s] + 1 + i;
    }
    const int m = min(__shfl_sync(EVERY_LANE, upto, 31), WINDOW);
    __syncwarp();
    return m;
}

// Number of the run that a relative position lies in or behind.
__device__ __forceinline__ int run_of(const Window& w, int runs, int relative_position) {
    int low = 0, high = runs - 1;
    while (low < high) {
        const int middle = (low + high + 1) >> 1;
        if (w.run_begins[middle] <= relative_position)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

// Number of a city in the window by its relative position, or NONE.
__device__ __forceinline__ int local_of(const Window& w, int runs, int m, int relative_position) {
    const int run = run_of(w, runs, relative_position);
    const int begin = w.run_first[run], end = run + 1 < runs ? w.run_first[run + 1] : m;
    const int local = begin + relative_position - w.run_begins[run];
    return relative_position >= w.run_begins[run] && local < end ? local : NONE;
}

// Position in the tour of a city of the window.
__device__ __forceinline__ int position_of(const Window& w, int runs, const Tour& tour, int local) {
    int low = 0, high = runs - 1;
    while (low < high) {
        const int middle = (low + high + 1) >> 1;
        if (w.run_first[middle] <= local)
            low = middle;
        else
            high = middle - 1;
    }
    return tour.absolute(w.run_begins[low] + local - w.run_first[low]);
}

// Fill the window; the number of its cities, and of its runs in ``runs``. 0 cities if there are too many runs. All lanes.
__device__ inline int cut(Window& w, const Cities& cities, const Tour& tour, const int* near, int steps, int around,
                          const Key& key, unsigned window, int& runs) {
    const int lane = lane_id();
    int* const spots = reinterpret_cast<int*>(w.near);  // the room of the neighbours, which are not there yet
    int* const kept = spots + 256;
    const int m = choose(tour, near, steps, around, key, window, spots, kept);
    // a lane has eight neighbouring cities; a run begins where a position does not follow the one before
    unsigned begins = 0;
#pragma unroll
    for (int s = 0; s < SLOTS; ++s) {
        const int i = SLOTS * lane + s;
        if (i < m && (i == 0 || kept[i] != kept[i - 1] + 1)) begins |= 1u << s;
    }
    const int upto = inclusive_sum(__popc(begins));
    runs = __shfl_sync(EVERY_LANE, upto, 31);
    if (runs > MOST_RUNS) return 0;
    int run = upto - __popc(begins);
    const unsigned next_begins = __shfl_down_sync(EVERY_LANE, begins, 1);
    const bool everything = m == tour.n;
#pragma unroll
    for (int s = 0; s < SLOTS; ++s) {
        const int i = SLOTS * lane + s;
        if (i >= m) continue;
        const bool is_first = begins >> s & 1u;
        const bool is_last = i + 1 == m || (s + 1 < SLOTS ? begins >> (s + 1) & 1u : next_begins & 1u);
        if (is_first) {
            w.run_begins[run] = kept[i];
            w.run_first[run] = static_cast<Local>(i);
            ++run;
        }
        const int before = is_first && !everything ? (i == 0 ? m - 1 : i - 1) : NONE;
        const int behind = is_last && !everything ? (i + 1 == m ? 0 : i + 1) : NONE;
        w.tied[i] = static_cast<unsigned short>(before | behind << 8);
        w.order[i] = w.place[i] = static_cast<Local>(i);
    }
#pragma unroll
    for (int s = 0; s < SLOTS; ++s) {
        const int i = 32 * s + lane;
        if (i < m) {
            const int city = tour.cities[tour.absolute(kept[i])];
            w.city[i] = city;
            w.point[i] = point_of(cities, city);
        }
    }
    __syncwarp();
    // thirty-two cities at a time, eight lanes each: their neighbours' positions are asked for together
    for (int first = 0; first < m; first += 32) {
        int positions[SLOTS];
#pragma unroll
        for (int s = 0; s < SLOTS; ++s) {
            const int i = first + 4 * s + (lane >> 3);
            positions[s] = i < m ? tour.positions[near[static_cast<size_t>(w.city[i]) * NEAR + (lane & 7)]] : 0;
        }
#pragma unroll
        for (int s = 0; s < SLOTS; ++s) {
            const int i = first + 4 * s + (lane >> 3);
            const int local = local_of(w, runs, m, tour.relative(positions[s]));
            if (i < m) w.near[i][lane & 7] = static_cast<Local>(local);
        }
    }
    __syncwarp();
    return m;
}
