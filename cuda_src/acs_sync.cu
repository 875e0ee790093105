// Ant Colony System, all ants together (ACS-GPU, section 3.1.2): every ant makes a step before any makes the next one.
//
// The paper launches a kernel for each step. Here one launch builds the tours, and the grid meets at a barrier between
// two steps. A step reads the trails as the steps before it left them, and its local updates act on them together, without
// an order among ants: the same numbers give the same tours on any device (acs_counts.cuh).
//
// All blocks must be on the device at once: the launch has no more of them than there are multiprocessors. With more ants
// than warps a warp moves several of them in turn.

#define TABU 2  // a bitmask, which the warps of a block can search together

#include "acs_counts.cuh"

#ifndef MOST_WARPS
#define MOST_WARPS 32  // of a block
#endif

// Meet all blocks of the grid. Two words take turns, so that a block that is already at the next meeting cannot disturb
// one that still leaves this one. Their low half counts arrivals, their high half the blocks that raised a flag.
struct Meeting {
    unsigned long long* words;  // (2,), zero at the start
    unsigned turn, raised[2];

    __device__ __forceinline__ explicit Meeting(unsigned long long* words) : words(words), turn(0u), raised{0u, 0u} {}

    // All threads of all blocks call it; true if any of them brought a flag.
    __device__ __forceinline__ bool meet(bool flag) {
        __shared__ unsigned flags;
        const bool mine = __syncthreads_or(flag);
        const unsigned which = turn & 1u;
        if (threadIdx.x == 0) {
            unsigned long long* word = words + which;
            const unsigned everyone = gridDim.x * (turn / 2u + 1u);
            unsigned long long now;
            asm volatile("red.release.gpu.global.add.u64 [%0], %1;" ::"l"(word), "l"(mine ? (1ull << 32) + 1ull : 1ull)
                         : "memory");
            do {
                asm volatile("ld.acquire.gpu.global.u64 %0, [%1];" : "=l"(now) : "l"(word) : "memory");
            } while (static_cast<unsigned>(now) < everyone);
            flags = static_cast<unsigned>(now >> 32);
        }
        __syncthreads();
        const bool any = flags != (which ? raised[1] : raised[0]);
        if (which) raised[1] = flags;
        else raised[0] = flags;
        ++turn;
        return any;
    }
};

// One ant between two steps; its tabu, a bitmask, follows in memory.
struct alignas(16) Walker {
    long long ahead, behind;   // places, in the rows, of the edge it last updated in both directions, or NONE
    unsigned long long found;  // while it is stuck: the best open city so far, see `key_of`
    int city, previous;
    int stuck;  // neither its candidates nor the longer lists settle the choice
    float bound;  // then: see Listed
};

// Grows with the rank of a city; of equal ones, the lowest has the largest key.
__device__ __forceinline__ unsigned long long key_of(const Best& best) {
    return static_cast<unsigned long long>(best.rank) << 32 | ~static_cast<unsigned>(best.city);
}

__device__ __forceinline__ Best best_of(unsigned long long key) {
    return Best{static_cast<unsigned>(key >> 32), static_cast<int>(~static_cast<unsigned>(key))};
}

// The best of all lanes.
__device__ __forceinline__ Best of_all_lanes(const Best& best) {
    const unsigned top = warp_max(best.rank);
    return Best{top, best.of_warp(top)};
}

// Apply the local update to a trail outside the lists. Several ants may do so at once: each repeats until its own update
// went in, and as all apply the same function, their order does not matter.
__device__ __forceinline__ void blend_atomically(float* place, float tau0, float xi) {
    int* bits = reinterpret_cast<int*>(place);
    int found = load_relaxed(bits), expected;
    do {
        expected = found;
        found = atomicCAS(bits, expected, __float_as_int(blended(__int_as_float(expected), tau0, xi)));
    } while (found != expected);
}

extern __shared__ uint4 shared_memory[];

// Build m tours; parameters as in acs_relaxed. rows (n, STRIDE) are the trails before the first step, counts (n, STRIDE) the
// updates since, zero at first; keep_log2 = log2(1 - xi). ant_bytes: of a Walker and its tabu, in shared memory or, for
// all m ants, at ant_memory. meeting (2,) zero.
extern "C" __global__ void __launch_bounds__(32 * MOST_WARPS)
    acs_sync(const float* __restrict__ rows, const float* __restrict__ eta, const Node* __restrict__ candidates, float* tau,
             const float* bound, const Node* near_cities, const Node* raised, CITIES_PARAMETERS, float alpha, float beta,
             float shortest, float q0, float tau0, float xi, int period, const RoundKeys key, int m,
             int ant_bytes, char* ant_memory, int* tours, float keep_log2, Count* counts, unsigned long long* meeting) {
    const Cities cities = CITIES;
    const Surroundings around{tau, bound, near_cities, raised};
    const Exponents exponents{alpha, beta, shortest};
    const Rule rule{q0, alpha};
    const int warp = static_cast<int>(warp_min(threadIdx.x >> 5)), warps = blockDim.x >> 5, lane = lane_id();
    const int share = (m + gridDim.x - 1) / gridDim.x, first = blockIdx.x * share, last = min(m, first + share);
#if TABU_IN_SHARED
    char* const memory = reinterpret_cast<char*>(shared_memory);
#else
    char* const memory = ant_memory + static_cast<size_t>(first) * ant_bytes;
#endif
    const auto walker_of = [&](int ant) {
        return reinterpret_cast<Walker*>(memory + static_cast<size_t>(ant - first) * ant_bytes);
    };
    for (int ant = first + warp; ant < last; ant += warps) {
        Walker* walker = walker_of(ant);
        Tabu tabu(walker + 1, n);
        tabu.clear();
        const int start = first_city(key, ant, n);
        tabu.visit(start);
        if (lane == 0) {
            *walker = Walker{NONE, NONE, 0ull, start, NONE, 0, 0.0f};
            tours[static_cast<size_t>(ant) * n] = start;
        }
        __syncwarp();
    }
    Meeting all(meeting);
    unsigned update = 0;  // its number
    int wait = period;
    for (int step = 1; step <= n; ++step) {
        const bool due = --wait == 0;
        bool outside = false;  // an edge outside the lists waits for its update
        // The ant goes on to `next`, in the given slot of its row or in none.
        const auto go = [&](int ant, Walker* walker, int city, int next, int slot) {
            long long ahead = NONE, behind = NONE;
            if (due) {
                if (slot != NONE) ahead = static_cast<long long>(city) * STRIDE + slot;
                if (SYMMETRIC) {
                    const int slot_back = slot_of(candidates_of(candidates, eta, next).city, city);
                    if (slot_back != NONE) behind = static_cast<long long>(next) * STRIDE + slot_back;
                }
                // Lanes 0 and 1 count this update, 2 and 3 move the one before.
                const long long before = lane == 2 ? walker->ahead : walker->behind;
                const long long place = lane == 0 ? ahead : lane == 1 ? behind : before;
                if (lane < 4 && place != NONE) {
                    atomicAdd(counts + place, lane < 2 ? one_update(update) : one_aged(update - 1u));
                }
                if (DENSE) {
                    // A trail at tau0 stays there: nobody need wait for its update.
                    if (ahead == NONE) outside |= load_relaxed(tau + static_cast<size_t>(city) * n + next) != tau0;
                    if (SYMMETRIC && behind == NONE) {
                        outside |= load_relaxed(tau + static_cast<size_t>(next) * n + city) != tau0;
                    }
                }
            }
            __syncwarp();
            if (lane == 0) {
                if (due) {
                    walker->ahead = ahead;
                    walker->behind = behind;
                }
                walker->city = next;
                walker->previous = city;
                if (step < n) tours[static_cast<size_t>(ant) * n + step] = next;
            }
            __syncwarp();
        };
        bool stuck = false;
        for (int ant = first + warp; ant < last; ant += warps) {
            Walker* walker = walker_of(ant);
            const int city = walker->city;
            const Near near = candidates_of(candidates, eta, city);
            if (step == n) {
                const int start = first_city(key, ant, n);
                go(ant, walker, city, start, slot_of(near.city, start));
                continue;
            }
            float trail[SLOTS], luck[SLOTS];
#pragma unroll
            for (int s = 0; s < SLOTS; ++s) {
                const size_t place = static_cast<size_t>(city) * STRIDE + 32 * s + lane;
                const unsigned count = updates_before(load_relaxed(counts + place), update);
                trail[s] = updated(rows[place], tau0, keep_log2, count);
            }
            draw_luck(coin(rule, key, ant, step), key, ant, step, luck);
            Tabu tabu(walker + 1, n);
            const Bid bid(near, trail, luck, tabu, rule);
            const unsigned best = bid.best();
            if (best != EVERY_LANE) {
                const bool own = bid.wins(best);
                tabu.take(own, bid.city, bid.look);
                go(ant, walker, city, bid.city_of_winner(own), bid.slot_of_winner(own));
                continue;
            }
            const Listed listed = look_in_lists(cities, around, exponents, city, tabu);
            if (listed.chosen >= 0) {
                tabu.visit(listed.chosen);
                go(ant, walker, city, listed.chosen, NONE);
                continue;
            }
            stuck = true;
            const Best so_far = of_all_lanes(listed.best);
            if (lane == 0) {
                walker->stuck = 1;
                walker->found = key_of(so_far);
                walker->bound = listed.bound;
            }
        }
        // All others wait for an ant that the lists do not help: so the whole block looks at the open cities for it.
        if (__syncthreads_or(stuck)) {
            for (int base = first; base < last; base += 32) {
                unsigned those = __ballot_sync(EVERY_LANE, base + lane < last && walker_of(base + lane)->stuck);
                for (; those; those &= those - 1u) {
                    Walker* walker = walker_of(base + __ffs(those) - 1);
                    const Tabu tabu(walker + 1, n);
                    const int city = walker->city;
                    const float* const row = tau + static_cast<size_t>(city) * n;
                    const Point here = point_of(cities, city);
                    Best best{0u, 0x7FFFFFFF};
#pragma unroll 4
                    for (int word = warp; 32 * word < n; word += warps) {
                        const bool open = !(tabu.words[word] >> lane & 1u);
                        const int j = open ? 32 * word + lane : city;
                        const float d = distance(cities, city, here, j, point_of(cities, j));
                        if (open) best.consider(row, walker->bound, d, j, exponents);
                    }
                    __syncwarp();
                    best = of_all_lanes(best);
                    if (lane == 0 && best.rank > 0u) atomicMax(&walker->found, key_of(best));
                }
            }
            __syncthreads();
            for (int ant = first + warp; ant < last; ant += warps) {
                Walker* walker = walker_of(ant);
                if (!walker->stuck) continue;
                const int next = best_of(walker->found).city;
                Tabu tabu(walker + 1, n);
                tabu.visit(next);
                go(ant, walker, walker->city, next, NONE);
                if (lane == 0) walker->stuck = 0;
            }
        }
        if (!due) continue;
        wait = period;
        ++update;
        // Outside the lists the updates wait until every ant has chosen.
        if (!all.meet(outside)) continue;
        for (int ant = first + warp; ant < last; ant += warps) {
            const Walker* walker = walker_of(ant);
            float* const trails[2] = {tau + static_cast<size_t>(walker->previous) * n + walker->city,
                                      tau + static_cast<size_t>(walker->city) * n + walker->previous};
            if (lane == 0 && walker->ahead == NONE) blend_atomically(trails[0], tau0, xi);
            if (lane == 1 && SYMMETRIC && walker->behind == NONE) blend_atomically(trails[1], tau0, xi);
        }
        all.meet(false);
    }
}
