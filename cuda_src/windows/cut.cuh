// Cutting of a window out of a tour: choose positions, renumber their cities, and fix the edges to the rest of the
// tour.
#pragma once

#include "windows/window.cuh"

// The tour that a window is cut from. Relative positions start opposite to `centre`, so that the end of the array is
// far from the window.
struct Tour {
    const int* cities;     // (n,) city at each position
    const int* positions;  // (n,) position of each city
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

// Sort CAPACITY numbers in shared memory, ascending (bitonic sort). Called by all lanes.
__device__ inline void sort(int* values) {
    const int lane = lane_id();
#pragma unroll 1
    for (int size = 2; size <= CAPACITY; size <<= 1)
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

// A set of some hundred positions: a hash table with open addressing in shared memory.
struct Positions {
    static constexpr int BITS = 10, EMPTY = -1;
    int* table;  // (1 << BITS,)

    // Called by all lanes.
    __device__ __forceinline__ void clear() const {
        for (int i = lane_id(); i < 1 << BITS; i += 32) table[i] = EMPTY;
        __syncwarp();
    }
    // Insert a position; return true if it is new. Lanes must pass different positions.
    __device__ __forceinline__ bool insert(int position) const {
        // Fibonacci hashing spreads neighbouring positions (Knuth, TAOCP 3, section 6.4)
        unsigned slot = static_cast<unsigned>(position) * 2654435769u >> (32 - BITS);
        for (;;) {
            const int there = atomicCAS(table + slot, EMPTY, position);
            if (there == EMPTY) return true;
            if (there == position) return false;
            slot = (slot + 1) & ((1u << BITS) - 1u);
        }
    }
};

// Candidates of moves and nearest cities, (n, NEAR), penalties (n,) in units, and the other end of the fixed edge or -1
// (n,); null without PENALTIES or FIXED.
struct Neighbourhood {
    const int *near, *nearest;
    const float* penalties;
    const int* partner;
};

// The links over which a window grows. With more links per city, windows are more compact.
struct Growth {
    const int* lists;  // (n, NEAR) neighbours, nearest first
    int links;         // number of neighbours used
};

constexpr int FEWEST_LINKS = 3;
constexpr int NO_POSITION = 0x7FFFFFFF;  // greater than any position
constexpr int LINKS = NEAR + 2;    // maximum links of a city: neighbours in its list and in the tour
constexpr int GROUP_CITIES = 3;    // cities whose links the lanes read together
constexpr int GROUPS = 4;          // groups in flight, to hide memory latency

// Write the window's positions, relative and ascending, to `members`; return their number. The window grows
// breadth-first from the centre over neighbours in the lists and in the tour. It should be compact, because cities at
// its boundary lack neighbours. `cities` is a workspace of CAPACITY. Called by all lanes.
__device__ inline int choose(const Tour& tour, const Growth& growth, const Positions& seen, int* cities, int* members) {
    const int lane = lane_id(), n = tour.n;
    if (n <= WINDOW) {
        for (int i = lane; i < n; i += 32) members[i] = i;
        __syncwarp();
        return n;
    }
    seen.clear();
    int count = 1;
    if (lane == 0) {
        members[0] = n / 2;
        cities[0] = tour.cities[tour.centre];
        seen.insert(members[0]);
    }
    __syncwarp();
    const int own = lane / LINKS, link = lane % LINKS;
    for (int head = 0; head < count && count < WINDOW;) {
        const int upto = min(count, head + GROUPS * GROUP_CITIES);
        int positions[GROUPS], found[GROUPS];
#pragma unroll
        for (int g = 0; g < GROUPS; ++g) {
            const int from = head + g * GROUP_CITIES + own;
            positions[g] = NO_POSITION;
            if (own < GROUP_CITIES && from < upto && (link < growth.links || link >= NEAR)) {
                if (link < NEAR) {
                    found[g] = growth.lists[static_cast<size_t>(cities[from]) * NEAR + link];
                    positions[g] = tour.relative(tour.positions[found[g]]);
                } else {
                    const int p = members[from] + (link == NEAR ? 1 : -1);
                    if (p >= 0 && p < n) {
                        found[g] = tour.cities[tour.absolute(p)];
                        positions[g] = p;
                    }
                }
            }
        }
        head = upto;
#pragma unroll
        for (int g = 0; g < GROUPS; ++g) {
            const int p = positions[g];
            const bool first = __ffs(__match_any_sync(EVERY_LANE, p)) - 1 == lane;
            const bool is_new = first && p != NO_POSITION && seen.insert(p);
            const unsigned all_new = __ballot_sync(EVERY_LANE, is_new);
            const int at = count + __popc(all_new & ((1u << lane) - 1u));
            if (is_new && at < WINDOW) {
                members[at] = p;
                cities[at] = found[g];
            }
            count = min(WINDOW, count + __popc(all_new));
        }
        __syncwarp();
    }
    for (int i = count + lane; i < CAPACITY; i += 32) members[i] = NO_POSITION;
    __syncwarp();
    sort(members);
    return count;
}

// Index in the window of the city at a relative position, or NONE.
__device__ __forceinline__ int local_of(const Window& w, int runs, int m, int relative_position) {
    const int run = last_at_most(relative_position, runs, [&](int run) { return w.run_begins[run]; });
    const int begin = w.run_first[run], end = run + 1 < runs ? w.run_first[run + 1] : m;
    const int local = begin + relative_position - w.run_begins[run];
    return relative_position >= w.run_begins[run] && local < end ? local : NONE;
}

// Position in the tour of a city of the window.
__device__ __forceinline__ int position_of(const Window& w, int runs, const Tour& tour, int local) {
    const int run = last_at_most(local, runs, [&](int run) { return static_cast<int>(w.run_first[run]); });
    return tour.absolute(w.run_begins[run] + local - w.run_first[run]);
}

// Index in the instance of a city of the window.
__device__ __forceinline__ int city_of(const Window& w, int runs, const Tour& tour, int local) {
    return tour.cities[position_of(w, runs, tour, local)];
}

// Fill the window; return its number of cities, 0 if it has more than MOST_RUNS runs; write their number to `runs`.
// Called by all lanes.
__device__ inline int cut(Window& w, const Cities& cities, const Tour& tour, const Neighbourhood& around,
                          const Growth& growth, int& runs) {
    const int lane = lane_id();
    // workspaces in fields of the window that are filled later
    int* const members = reinterpret_cast<int*>(w.near_low);
    const Positions seen{reinterpret_cast<int*>(&w)};
    int* const city = reinterpret_cast<int*>(w.edge);
    static_assert(sizeof(w.near_low) >= 2 * CAPACITY * sizeof(int), "workspace too small");
    // the fields before near_low
    static_assert(sizeof(w.point) + sizeof(w.edge) + sizeof(w.partial) >= sizeof(int) << Positions::BITS, "workspace too small");
    const int m = choose(tour, growth, seen, members + CAPACITY, members);
    // a lane has SLOTS consecutive cities; a run begins where a position does not follow its predecessor
    unsigned begins = 0;
#pragma unroll
    for (int s = 0; s < SLOTS; ++s) {
        const int i = SLOTS * lane + s;
        if (i < m && (i == 0 || members[i] != members[i - 1] + 1)) begins |= 1u << s;
    }
    const int upto = warp_prefix_sum(__popc(begins));
    runs = __shfl_sync(EVERY_LANE, upto, 31);
    if (runs > MOST_RUNS) return 0;
    int run = upto - __popc(begins);
    const unsigned next_begins = __shfl_down_sync(EVERY_LANE, begins, 1);
    const bool everything = m == tour.n;
    unsigned ends = 0;
#pragma unroll
    for (int s = 0; s < SLOTS; ++s) {
        const int i = SLOTS * lane + s;
        if (i >= m) continue;
        const bool is_first = begins >> s & 1u;
        const bool is_last = i + 1 == m || (s + 1 < SLOTS ? begins >> (s + 1) & 1u : next_begins & 1u);
        if (is_first) {
            w.run_begins[run] = members[i];
            w.run_first[run] = static_cast<Local>(i);
            ++run;
        }
        if (is_last && !everything) ends |= 1u << s;
        w.order[i] = w.place[i] = static_cast<Local>(i);
    }
    w.fixed_next[lane] = static_cast<Local>(ends);
#pragma unroll
    for (int s = 0; s < SLOTS; ++s) {
        const int i = 32 * s + lane;
        if (i < m) {
            city[i] = tour.cities[tour.absolute(members[i])];
            if (BY_NUMBER)
                w.city[i] = city[i];
            else
                w.point[i] = point_of(cities, city[i]);
#if PENALTIES
            w.penalty[i] = around.penalties[city[i]];
#endif
        }
    }
    __syncwarp();
#if FIXED
    ends = w.fixed_next[lane];
#pragma unroll
    for (int s = 0; s < SLOTS; ++s) {
        const int i = SLOTS * lane + s;
        if (i < m && around.partner[city[i]] == city[i + 1 < m ? i + 1 : 0]) ends |= 1u << s;
    }
    w.fixed_next[lane] = static_cast<Local>(ends);
    __syncwarp();
#endif
    // eight lanes per city, 32 cities in flight: the positions of their neighbours are loaded together
    constexpr int CITIES_AT_ONCE = 8;
    for (int first = 0; first < m; first += 4 * CITIES_AT_ONCE) {
        int positions[CITIES_AT_ONCE];
#pragma unroll
        for (int s = 0; s < CITIES_AT_ONCE; ++s) {
            const int i = first + 4 * s + (lane >> 3);
            positions[s] = i < m ? tour.positions[around.near[static_cast<size_t>(city[i]) * NEAR + (lane & 7)]] : 0;
        }
#pragma unroll
        for (int s = 0; s < CITIES_AT_ONCE; ++s) {
            const int i = first + 4 * s + (lane >> 3);
            const int local = local_of(w, runs, m, tour.relative(positions[s]));
            const unsigned high = __ballot_sync(EVERY_LANE, local >> 8);
            if (i < m) {
                w.near_low[i][lane & 7] = static_cast<unsigned char>(local);
                if ((lane & 7) == 0) w.near_high[i] = static_cast<unsigned char>(high >> lane);
            }
        }
    }
    __syncwarp();
    return m;
}
