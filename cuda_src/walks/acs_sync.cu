// Ant Colony System, synchronous (ACS-GPU, section 3.1.2): all ants complete a step before any begins the next one.
//
// The paper launches a kernel for each step. Here one launch builds the tours, with a grid barrier between steps. A
// step reads the trails after the previous steps, and its local updates take effect together: results do not depend on
// the launch shape (acs_counts.cuh). With dense trails, edges that are not candidates get their local updates after the
// construction; the greedy choice among them reads the trails at the start of the iteration.
//
// All blocks must be resident: a launch has at most one block per multiprocessor. If another process occupies
// multiprocessors, the barrier times out after ten seconds. With more ants than warps, a warp moves several ants in
// turn. A walk over 100,000 cities takes seconds; the host can halt it between two steps.

#define TABU 2  // TABU_BITMASK, which all warps of a block can scan

#include "device/barrier.cuh"
#include "walks/acs_counts.cuh"
#include "walks/walk.cuh"

constexpr int MOST_WARPS = 32;  // of a block

// Low bits of *arrivals, which count arrivals of blocks: enough for 132 blocks and 8 million steps.
constexpr unsigned BLOCKS = (1u << 30) - 1u;

// Barrier number `turn` = 1, 2, .. of all threads of the grid; *arrivals is 0 at the start. Return false in all threads
// if the first block passes `halted` != 0: it sets a high bit of *arrivals. Barriers alternate between two bits,
// because a block that is late for one barrier must not read the flag of the next. Also return false if blocks do not
// arrive, because another process uses the device. Then *fault is set for the host, and all blocks stop waiting.
__device__ __forceinline__ bool grid_sync(unsigned* arrivals, unsigned turn, volatile int* fault, int halted) {
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

// State of an ant between two steps; its tabu, a bitmask, follows in memory.
struct alignas(16) Walker {
    long long ahead, behind;   // indices in the rows of its last updated edge, in both directions, or NONE
    unsigned long long found;  // while unresolved: the key of the best open city so far
    int city;
    int unresolved;  // 1: neither the candidates nor the lists of best_listed decide the choice
};
static_assert(sizeof(Walker) == 32, "the host allocates another size for Walker");

// Build m tours; parameters as in acs_relaxed. rows (n, STRIDE): trails before the first step; counts (n, STRIDE):
// local updates, initially 0; keep_log2 = log2(1 - xi); ant_bytes: size of a Walker and its tabu, in shared memory or
// in `memory` for all m ants; arrivals (1,), initially 0; fault (1,): see `grid_sync`; halt (1,): not 0 halts all ants
// between two steps and leaves tours incomplete. With dense trails, cities in the tours have the marks of
// acs_counts.cuh.
extern "C" __global__ void __launch_bounds__(32 * MOST_WARPS, 1)
    acs_sync(const float* __restrict__ rows, const float* __restrict__ eta, const Node* __restrict__ candidates,
             const float* tau, const float* bound, const Node* near_cities, const Node* raised, CITIES_PARAMETERS,
             ACS_PARAMETERS, float keep_log2, Count* counts, unsigned* arrivals, int* fault, const int* halt) {
    const Cities cities = CITIES;
    const Surroundings around{cities, {alpha, beta, shortest}, tau, bound, near_cities, raised};
    const Rule rule{q0, alpha};
    const int warp = static_cast<int>(warp_min(threadIdx.x >> 5)), warps = blockDim.x >> 5, lane = lane_id();
    const int share = (m + gridDim.x - 1) / gridDim.x;  // ants per block
    const int first = blockIdx.x * share, last = min(m, first + share);
#if IN_SHARED
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
            *walker = Walker{NONE, NONE, 0ull, start, 0};
            tours[static_cast<size_t>(ant) * n] = start;
        }
        __syncwarp();
    }
    unsigned update = 0;  // number of local updates so far
    int wait = period;    // steps until the next local update
    for (int step = 1; step <= n; ++step) {
        const bool due = --wait == 0;
        // load before the step and use after it, to hide the latency
        const int halted = due && blockIdx.x == 0 && threadIdx.x == 0 ? load_relaxed_system(halt) : 0;
        // Move the ant to `next`, at index `slot` of its row, or NONE.
        const auto move = [&](int ant, Walker* walker, int city, int next, int slot) {
            long long ahead = NONE, behind = NONE;
            if (due) {
                if (slot != NONE) ahead = static_cast<long long>(city) * STRIDE + slot;
                if (SYMMETRIC) {
                    const int slot_back = slot_of(candidates_of(candidates, eta, next).city, city);
                    if (slot_back != NONE) behind = static_cast<long long>(next) * STRIDE + slot_back;
                }
                // lanes 0 and 1 count this update, 2 and 3 age the previous one
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
        bool unresolved = false;
        for (int ant = first + warp; ant < last; ant += warps) {
            Walker* walker = walker_of(ant);
            const int city = walker->city;
            const Near near = candidates_of(candidates, eta, city);
            if (step == n) {
                const int start = first_city(key, ant, n);
                move(ant, walker, city, start, slot_of(near.city, start));
                continue;
            }
            float trail[SLOTS], race_factor[SLOTS];
#pragma unroll
            for (int s = 0; s < SLOTS; ++s) {
                const size_t place = static_cast<size_t>(city) * STRIDE + 32 * s + lane;
                const unsigned count = updates_before(load_relaxed(counts + place), update);
                trail[s] = updated(rows[place], tau0, keep_log2, count);
            }
            const Ant own{key, static_cast<unsigned>(ant)};
            draw_race_factors(is_greedy(rule, own, step), own, step, race_factor);
            Tabu tabu(walker + 1, n);
            const LaneBest lane_best(CandidateFactors(near, race_factor, tabu), trail, rule);
            const unsigned best = warp_min(lane_best.key);
            __syncwarp();  // all lanes have read the tabu
            if (best < NO_KEY) {
                tabu.take(lane_best.key == best, lane_best.city, lane_best.lookup);
                const int next = __shfl_sync(EVERY_LANE, lane_best.city, best & 31u);
                move(ant, walker, city, next, __shfl_sync(EVERY_LANE, lane_best.slot, best & 31u));
                continue;
            }
            const Listed listed = best_listed(around, city, tabu);
            if (listed.chosen >= 0) {
                tabu.visit(listed.chosen);
                move(ant, walker, city, listed.chosen, NONE);
                continue;
            }
            unresolved = true;
            const Best so_far = listed.best.of_all_lanes();
            if (lane == 0) {
                walker->unresolved = 1;
                walker->found = so_far.key;
            }
        }
        // the whole block scans the open cities for each unresolved ant, because all others would wait for it
        if (__syncthreads_or(unresolved)) {
            for (int base = first; base < last; base += 32) {
                unsigned pending = __ballot_sync(EVERY_LANE, base + lane < last && walker_of(base + lane)->unresolved);
                for (; pending; pending &= pending - 1u) {
                    Walker* walker = walker_of(base + __ffs(pending) - 1);
                    const Tabu tabu(walker + 1, n);
                    const int city = walker->city;
                    const float* const row = around.trails_of(city);
                    const Point here = point_of(cities, city);
                    Best best;
#pragma unroll 4
                    for (int word = warp; 32 * word < n; word += warps) {
                        const bool open = !(tabu.words[word] >> lane & 1u);
                        const int j = open ? 32 * word + lane : city;
                        const float d = distance(cities, city, here, j, point_of(cities, j));
                        if (open) best.consider(row, d, j, around.exponents);
                    }
                    __syncwarp();
                    best = best.of_all_lanes();
                    if (lane == 0) atomicMax(&walker->found, best.key);
                }
            }
            __syncthreads();
            for (int ant = first + warp; ant < last; ant += warps) {
                Walker* walker = walker_of(ant);
                if (!walker->unresolved) continue;
                const int next = Best{walker->found}.city();
                Tabu tabu(walker + 1, n);
                tabu.visit(next);
                move(ant, walker, walker->city, next, NONE);
                if (lane == 0) walker->unresolved = 0;
            }
        }
        if (!due) continue;
        wait = period;
        ++update;
        if (!grid_sync(arrivals, update, fault, halted)) return;
    }
}
