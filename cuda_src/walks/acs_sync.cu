// Ant Colony System, all ants together (ACS-GPU, section 3.1.2): every ant makes a step before any makes the next one.
//
// The paper launches a kernel for each step. Here one launch builds the tours, and the grid meets at a barrier between
// two steps. A step reads the trails as the steps before it left them, and its local updates act on them together,
// without an order among ants: equal numbers give equal tours for any launch shape (acs_counts.cuh). Of dense trails
// the edges outside the candidate lists get their local updates when all tours are built: the greedy choice among them
// reads the trails that the iteration began with.
//
// All blocks must be on the device at once: the launch has no more of them than there are multiprocessors, and where
// another process holds some of those, the ants give up after ten seconds. With more ants than warps a warp moves
// several of them in turn. Of 100,000 cities a walk takes seconds, so the host can end it between two steps.

#define TABU 2  // a bitmask, which the warps of a block can search together

#include "device/barrier.cuh"
#include "walks/acs_counts.cuh"

#ifndef MOST_WARPS
#define MOST_WARPS 32  // of a block
#endif

// Of *arrivals the lower bits count blocks: at most 2^30, so with 132 blocks and a meeting a step 8 million cities.
constexpr unsigned BLOCKS = (1u << 30) - 1u;

// All threads of the grid wait until all have called it `turn` times, turn = 1, 2, ... *arrivals is 0 at the start.
// False for all of them if the first block has come with `halted`. It says so by one of two upper bits of *arrivals in
// turn: a block that is late for one meeting must not take the next one's word for it.
// False also where the others do not come, as their blocks are not on the device, which another process uses: then
// *fault is set for the host, and nobody waits any more.
__device__ __forceinline__ bool meet(unsigned* arrivals, unsigned turn, volatile int* fault, int halted) {
    bool over = false;
    __syncthreads();
    if (threadIdx.x == 0) {
        unsigned now;
        Wait wait;
        const unsigned word = 1u << (30u + (turn & 1u));
        const unsigned one = halted != 0 ? word + 1u : 1u;
        asm volatile("red.release.gpu.global.add.u32 [%0], %1;" ::"l"(arrivals), "r"(one) : "memory");
        while (!over) {
            asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(now) : "l"(arrivals) : "memory");
            if ((now & BLOCKS) >= gridDim.x * turn) {
                over = (now & word) != 0u;
                break;
            }
            over = wait.failed(fault);
        }
    }
    return !__syncthreads_or(over);
}

// One ant between two steps; its tabu, a bitmask, follows in memory.
struct alignas(16) Walker {
    long long ahead, behind;   // places, in the rows, of the edge it last updated in both directions, or NONE
    unsigned long long found;  // while it is stuck: the best open city so far, see `key_of`
    int city;
    int stuck;  // neither its candidates nor the longer lists settle the choice
    float bound;  // then: see Listed
};
#ifdef WALKER_BYTES
static_assert(sizeof(Walker) == WALKER_BYTES, "the host allocates another size for Walker");
#endif

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

extern __shared__ uint4 shared_memory[];

// Build m tours; parameters as in acs_relaxed. rows (n, STRIDE) are the trails before the first step, counts (n,
// STRIDE) the updates since, zero at first; keep_log2 = log2(1 - xi). ant_bytes: of a Walker and its tabu, in shared
// memory or, for all m ants, at ant_memory; arrivals zero; fault: see `meet`; halt (1,): not 0 ends all between two
// steps, and leaves tours without their last cities. With dense trails, cities in the tours carry the marks of
// acs_counts.cuh.
extern "C" __global__ void __launch_bounds__(32 * MOST_WARPS, 1)
    acs_sync(const float* __restrict__ rows, const float* __restrict__ eta, const Node* __restrict__ candidates,
             const float* tau, const float* bound, const Node* near_cities, const Node* raised, CITIES_PARAMETERS,
             ACS_PARAMETERS, float keep_log2, Count* counts, unsigned* arrivals, int* fault, const int* halt) {
    const Cities cities = CITIES;
    const Surroundings around{tau, bound, near_cities, raised};
    const Exponents exponents{alpha, beta, shortest};
    const Rule rule{q0, alpha};
    const int warp = static_cast<int>(warp_min(threadIdx.x >> 5)), warps = blockDim.x >> 5, lane = lane_id();
    const int share = (m + gridDim.x - 1) / gridDim.x, first = blockIdx.x * share, last = min(m, first + share);
#if TABU_IN_SHARED
    char* const walkers = reinterpret_cast<char*>(shared_memory);
#else
    char* const walkers = memory + static_cast<size_t>(first) * ant_bytes;
#endif
    const auto walker_of = [&](int ant) {
        return reinterpret_cast<Walker*>(walkers + static_cast<size_t>(ant - first) * ant_bytes);
    };
    for (int ant = first + warp; ant < last; ant += warps) {
        Walker* walker = walker_of(ant);
        Tabu tabu(walker + 1, n);
        tabu.clear();
        const int start = first_city(key, ant, n);
        tabu.visit(start);
        if (lane == 0) {
            *walker = Walker{NONE, NONE, 0ull, start, 0, 0.0f};
            tours[static_cast<size_t>(ant) * n] = start;
        }
        __syncwarp();
    }
    unsigned update = 0;  // its number
    int wait = period;
    for (int step = 1; step <= n; ++step) {
        const bool due = --wait == 0;
        // asked for before the step and needed after it, so that nobody waits for the answer
        const int halted = due && blockIdx.x == 0 && threadIdx.x == 0 ? load_relaxed_system(halt) : 0;
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
            }
            __syncwarp();
            if (lane == 0) {
                if (due) {
                    walker->ahead = ahead;
                    walker->behind = behind;
                }
                walker->city = next;
                unsigned entry = next;
                if (DENSE && due && ahead == NONE) entry |= MARK_AHEAD;
                if (DENSE && due && SYMMETRIC && behind == NONE) entry |= MARK_BEHIND;
                tours[static_cast<size_t>(ant) * n + (step < n ? step : 0)] = static_cast<int>(entry);
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
            const Bid bid(Offer(near, luck, tabu), trail, rule);
            const unsigned best = warp_min(bid.shortfall);
            __syncwarp();  // every lane has looked
            if (best < NO_BID) {
                tabu.take(bid.shortfall == best, bid.city, bid.look);
                const int next = __shfl_sync(EVERY_LANE, bid.city, best & 31u);
                go(ant, walker, city, next, __shfl_sync(EVERY_LANE, bid.slot, best & 31u));
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
        if (!meet(arrivals, update, fault, halted)) return;
    }
}
