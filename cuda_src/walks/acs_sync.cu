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

// The ants of a block; a warp moves several of them in turn.
struct BlockAnts {
    char* memory;     // walkers and tabus
    int first, last;  // ants first .. last - 1
    int ant_bytes, n;
    int warp, warps;  // this warp, of the block

    __device__ __forceinline__ Walker* walker(int ant) const {
        return reinterpret_cast<Walker*>(memory + static_cast<size_t>(ant - first) * ant_bytes);
    }
    // Call work(ant, walker) for the ants of this warp.
    template <class Work>
    __device__ __forceinline__ void for_each(const Work& work) const {
        for (int ant = first + warp; ant < last; ant += warps) work(ant, walker(ant));
    }
};

// A step of all ants.
struct Step {
    const Node* candidates;
    const float* eta;
    Count* counts;
    int* tours;
    int n, number;    // number: 1 .. n; step n returns to the start
    unsigned update;  // number of local updates so far
    bool due;         // a local update follows

    // Move the ant to `next`, at index `slot` of its row, or NONE. Called by all lanes.
    __device__ __forceinline__ void move(int ant, Walker* walker, int city, int next, int slot) const {
        const int lane = lane_id();
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
            tours[static_cast<size_t>(ant) * n + (number < n ? number : 0)] = static_cast<int>(entry);
        }
        __syncwarp();
    }
};

// The trails that a step reads, after the local updates before it.
struct SyncTrails {
    const float* rows;
    const Count* counts;
    float tau0, keep_log2;
    unsigned update;

    __device__ __forceinline__ void read(int city, float (&trail)[SLOTS]) const {
#pragma unroll
        for (int s = 0; s < SLOTS; ++s) {
            const size_t place = static_cast<size_t>(city) * STRIDE + 32 * s + lane_id();
            const unsigned count = updates_before(load_relaxed(counts + place), update);
            trail[s] = updated(rows[place], tau0, keep_log2, count);
        }
    }
};

// Move an ant by its candidates or the lists of best_listed; return false if neither decides the choice.
__device__ __forceinline__ bool move_by_lists(const Step& step, const SyncTrails& trails, const Surroundings& around,
                                              const Rule& rule, const RoundKeys& key, int ant, Walker* walker) {
    const int city = walker->city;
    const Near near = candidates_of(step.candidates, step.eta, city);
    if (step.number == step.n) {
        const int start = first_city(key, ant, step.n);
        step.move(ant, walker, city, start, slot_of(near.city, start));
        return true;
    }
    float trail[SLOTS], race_factor[SLOTS];
    trails.read(city, trail);
    const Ant own{key, static_cast<unsigned>(ant)};
    draw_race_factors(is_greedy(rule, own, step.number), own, step.number, race_factor);
    Tabu tabu(walker + 1, step.n);
    const LaneBest lane_best(CandidateFactors(near, race_factor, tabu), trail, rule);
    const unsigned best = warp_min(lane_best.key);
    __syncwarp();  // all lanes have read the tabu
    if (best < NO_KEY) {
        tabu.take(lane_best.key == best, lane_best.city, lane_best.lookup);
        const int next = __shfl_sync(EVERY_LANE, lane_best.city, best & 31u);
        step.move(ant, walker, city, next, __shfl_sync(EVERY_LANE, lane_best.slot, best & 31u));
        return true;
    }
    const Listed listed = best_listed(around, city, tabu);
    if (listed.chosen >= 0) {
        tabu.visit(listed.chosen);
        step.move(ant, walker, city, listed.chosen, NONE);
        return true;
    }
    const Best so_far = listed.best.of_all_lanes();
    if (lane_id() == 0) {
        walker->unresolved = 1;
        walker->found = so_far.key;
    }
    return false;
}

// Find the best open city of each unresolved ant, by the whole block, because all others would wait for its warp.
__device__ __forceinline__ void scan_open_cities(const BlockAnts& ants, const Surroundings& around) {
    const int lane = lane_id();
    const Cities& cities = around.cities;
    for (int base = ants.first; base < ants.last; base += 32) {
        unsigned pending = __ballot_sync(EVERY_LANE, base + lane < ants.last && ants.walker(base + lane)->unresolved);
        for (; pending; pending &= pending - 1u) {
            Walker* walker = ants.walker(base + __ffs(pending) - 1);
            const Tabu tabu(walker + 1, ants.n);
            const int city = walker->city;
            const float* const row = around.trails_of(city);
            const Point here = point_of(cities, city);
            Best best;
#pragma unroll 4
            for (int word = ants.warp; 32 * word < ants.n; word += ants.warps) {
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
}

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
    const int share = (m + gridDim.x - 1) / gridDim.x;  // ants per block
    const int first = blockIdx.x * share;
#if IN_SHARED
    char* const own_memory = reinterpret_cast<char*>(shared_memory);
#else
    char* const own_memory = memory + static_cast<size_t>(first) * ant_bytes;
#endif
    const int warp = static_cast<int>(warp_min(threadIdx.x >> 5)), warps = blockDim.x >> 5;
    const BlockAnts ants{own_memory, first, min(m, first + share), ant_bytes, n, warp, warps};
    ants.for_each([&](int ant, Walker* walker) {
        Tabu tabu(walker + 1, n);
        tabu.clear();
        const int start = first_city(key, ant, n);
        tabu.visit(start);
        if (lane_id() == 0) {
            *walker = Walker{NONE, NONE, 0ull, start, 0};
            tours[static_cast<size_t>(ant) * n] = start;
        }
        __syncwarp();
    });
    unsigned update = 0;
    int wait = period;  // steps until the next local update
    for (int number = 1; number <= n; ++number) {
        const bool due = --wait == 0;
        // load before the step and use after it, to hide the latency
        const int halted = due && blockIdx.x == 0 && threadIdx.x == 0 ? load_relaxed_system(halt) : 0;
        const Step step{candidates, eta, counts, tours, n, number, update, due};
        const SyncTrails trails{rows, counts, tau0, keep_log2, update};
        bool unresolved = false;
        ants.for_each([&](int ant, Walker* walker) {
            if (!move_by_lists(step, trails, around, rule, key, ant, walker)) unresolved = true;
        });
        if (__syncthreads_or(unresolved)) {
            scan_open_cities(ants, around);
            __syncthreads();
            ants.for_each([&](int ant, Walker* walker) {
                if (!walker->unresolved) return;
                const int next = Best{walker->found}.city();
                Tabu tabu(walker + 1, n);
                tabu.visit(next);
                step.move(ant, walker, walker->city, next, NONE);
                if (lane_id() == 0) walker->unresolved = 0;
            });
        }
        if (!due) continue;
        wait = period;
        ++update;
        if (!grid_sync(arrivals, update, fault, halted)) return;
    }
}
