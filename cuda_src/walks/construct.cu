// Tour construction of Ant System and MMAS; trails are constant while the ants walk.
//
// One warp walks one ant; a lane evaluates SLOTS cities of the current row. City j is drawn with probability w_j / sum
// of w over the open cities (Eq. (1), Skinderowicz 2020). The latency of a chain of dependent loads dominates a step.
// Therefore weights are precomputed (weights.cu), random numbers do not depend on the chain, and small instances have
// all rows in shared memory.
//
// Letters: m ants, n cities; rows are padded to 32 SLOTS with the row's own city.

#include "walks/fallback.cuh"
#include "walks/walk.cuh"
#include "walks/wheel.cuh"

// SELECTION is the rule, RULE_WRS (weighted reservoir sampling, section 4.2.2, Skinderowicz 2020) or RULE_RWM (roulette
// wheel, section 4.2.1): definitions from pymoo_gpuaco/colony/selection.py.
#define RACE (SELECTION == RULE_WRS)
// -DREST: 0: choice among the row's cities; 1: among all cities (rest.cuh; only with RACE)
// -DSLOTS: cities per lane
// -DRESIDENT: 1: all rows are in shared memory
// -DMOST_RESIDENT: maximum ants per block if RESIDENT

constexpr int STRIDE = 32 * SLOTS;

struct CandidateWeights {
    const float* factors;    // (n, STRIDE) 1 / w (race) or w (roulette), scaled row by row
    const Node* candidates;  // (n, STRIDE)
    const float* inverses;   // (n,) 1 / total weight bound of the cities outside the row; null without REST
};

#if RACE

// The race: every open city draws an exponential variate of rate w, and the least wins (Efraimidis and Spirakis 2006).
// The lane is in the low bits of the key, so that one integer minimum gives the winner.
constexpr unsigned LOW_BITS = REST ? 63u : 31u;
constexpr unsigned FROM_REST = LOW_BITS & ~31u;  // flag above the lane: a city outside the row is first
constexpr unsigned NO_KEY = 0x7F800000u;           // infinity, the key of edges of weight zero

__device__ __forceinline__ unsigned key_of(float time, unsigned low_bits) {
    return (__float_as_uint(time) & ~LOW_BITS) | low_bits;
}

#if REST
#include "walks/rest.cuh"
#endif

// Four variates together, for instruction-level parallelism.
__device__ __forceinline__ float4 exponentials(const uint4& words) {
    return make_float4(exponential(words.x), exponential(words.y), exponential(words.z), exponential(words.w));
}

// Random numbers of an ant for groups of four steps. They depend only on the step and the index in the row.
struct Draws {
    const Ant& ant;
#if SLOTS <= 2
    float4 now[SLOTS];  // exponential variates
    uint4 next[SLOTS];

    __device__ __forceinline__ uint4 counter(int group, int slot) const {
        return make_uint4((group * SLOTS + slot) * 32 + lane_id(), STREAM_CONSTRUCTION, ant.number, 0u);
    }
    __device__ __forceinline__ explicit Draws(const Ant& ant) : ant(ant) { complete(0); }
    // Begin a group. The ten Philox rounds of the next group are interleaved with its steps, to hide memory latency.
    __device__ __forceinline__ void begin(int group) {
        for (int slot = 0; slot < SLOTS; ++slot) {
            now[slot] = exponentials(next[slot]);
            next[slot] = counter(group + 1, slot);
        }
    }
    __device__ __forceinline__ void advance(int s) {
#pragma unroll
        for (int slot = 0; slot < SLOTS; ++slot) {
            if (s == 0) next[slot] = philox_rounds<0, 3>(next[slot], ant.key);
            if (s == 1) next[slot] = philox_rounds<3, 6>(next[slot], ant.key);
            if (s == 2) next[slot] = philox_rounds<6, 8>(next[slot], ant.key);
            if (s == 3) next[slot] = philox_rounds<8, 10>(next[slot], ant.key);
        }
    }
    // Compute all ten rounds of a group.
    __device__ __forceinline__ void complete(int group) {
        for (int slot = 0; slot < SLOTS; ++slot) next[slot] = philox4x32(counter(group, slot), ant.key);
    }
    __device__ __forceinline__ float variate(int, int s, int slot) const { return one_of(now[slot], s); }
#else
    __device__ __forceinline__ explicit Draws(const Ant& ant) : ant(ant) {}
    __device__ __forceinline__ void begin(int) {}
    __device__ __forceinline__ void advance(int) {}
    __device__ __forceinline__ void complete(int) {}
    __device__ __forceinline__ float variate(int group, int s, int slot) const {
        const unsigned block = ((4 * group + s) * ((SLOTS + 3) / 4) + slot / 4) * 32 + lane_id();
        return exponential(one_of(ant.draw(block), slot % 4));
    }
#endif
};

// First arrival times of the cities outside the row, one per step. A lane holds those of every 32nd group and adds them
// to the race.
struct FirstArrivals {
    float4 waits;
    bool own;  // this lane holds the current group

    __device__ __forceinline__ void begin(const Ant& ant, int group) {
        if ((group & 31) == 0) {
            waits = exponentials(random_words(ant.key, group + lane_id(), STREAM_REST, ant.number));
        }
        own = (group & 31) == lane_id();
    }
    __device__ __forceinline__ float wait(int s) const { return one_of(waits, s); }
};

// The best candidate of a lane in the race of one step.
struct Racer {
    unsigned key;
    int city;
    Lookup lookup;

    __device__ __forceinline__ Racer(const CandidateWeights& rows, int here, const Tabu& tabu, const Draws& draws, int group,
                                     int s) {
        const int lane = lane_id();
        key = NO_KEY;
#pragma unroll
        for (int slot = 0; slot < SLOTS; ++slot) {
            const int place = here * STRIDE + 32 * slot + lane;
            const int candidate = rows.candidates[place];
            const float inverse = rows.factors[place];
            const float time = draws.variate(group, s, slot) * inverse;
            const Lookup seen = tabu.lookup(candidate);
            const unsigned own = seen.visited() ? NO_KEY : key_of(time, lane);
            if (slot == 0 || own < key) {
                key = own;
                city = candidate;
                lookup = seen;
            }
        }
    }

    // Move to the winner; return false if the row does not decide the choice.
    __device__ __forceinline__ bool take(const CandidateWeights& rows, const FirstArrivals& first, int s, Tabu& tabu,
                                         int& here) const {
        unsigned own = key;
        if (REST && first.own) own = min(own, key_of(first.wait(s) * rows.inverses[here], FROM_REST | lane_id()));
        const unsigned least = warp_min(own);
        if (least >= NO_KEY || (least & FROM_REST)) return false;
        here = __shfl_sync(EVERY_LANE, city, least);  // shuffles use the low five bits
        tabu.take(own == least, city, lookup);
        return true;
    }
};

#else

// Roulette wheel over the row.
__device__ __forceinline__ int roulette(const CandidateWeights& rows, int city, const Tabu& tabu, float u) {
    const int lane = lane_id();
    float weights[SLOTS];
    int candidates[SLOTS];
    float own = 0.0f;
#pragma unroll
    for (int slot = 0; slot < SLOTS; ++slot) {
        const int place = city * STRIDE + 32 * slot + lane;
        candidates[slot] = rows.candidates[place];
        weights[slot] = rows.factors[place];
        if (tabu.visited(candidates[slot])) weights[slot] = 0.0f;
        own += weights[slot];
    }
    const Wheel wheel(own);
    if (wheel.open == 0u) return -1;
    const float spin = u * wheel.all();
    const int source = wheel.winner(wheel.reached(spin));
    int winner = -1;
    spin_in_order(weights, wheel.rest(spin), [&](int slot) { winner = candidates[slot]; });
    return __shfl_sync(EVERY_LANE, winner, source);
}

#endif

constexpr int GROUPS_PER_CHECK = 256;  // groups of four steps between two checks for halt

__device__ __forceinline__ bool is_halted(const int* halt) {
    return __shfl_sync(EVERY_LANE, lane_id() == 0 ? load_relaxed_system(halt) : 0, 0) != 0;
}

// Copy a table to shared memory; return its address there.
template <class T>
__device__ __forceinline__ const T* copy_to(uint4*& shared, const T* global, int count) {
    uint4* const start = shared;
    const int words = (count * static_cast<int>(sizeof(T)) + 15) / 16;  // tables are padded to multiples of 16 bytes
    const uint4* const from = reinterpret_cast<const uint4*>(global);
    constexpr int TOGETHER = 8;  // independent loads
    for (int first = threadIdx.x; first < words; first += TOGETHER * blockDim.x) {
        uint4 parts[TOGETHER];
#pragma unroll
        for (int t = 0; t < TOGETHER; ++t) {
            const int i = first + t * blockDim.x;
            if (i < words) parts[t] = from[i];
        }
#pragma unroll
        for (int t = 0; t < TOGETHER; ++t) {
            const int i = first + t * blockDim.x;
            if (i < words) start[i] = parts[t];
        }
    }
    shared += words;
    return reinterpret_cast<const T*>(start);
}

// Build m tours. factors, candidates (n, STRIDE) and inverses (n,): see CandidateWeights; tau (n, n), bound (n,), near
// (n, NEAR) and raised (n, 32): see Surroundings; rests (n,), spares (n, 32) and aliases (n, n): see RestTables; halt
// (1,): not 0 halts all walks and leaves tours incomplete.
extern "C" __global__ void __launch_bounds__(32 * (RESIDENT ? MOST_RESIDENT : MOST_ANTS), RESIDENT ? 1 : LEAST_BLOCKS)
    construct_tours(const float* __restrict__ factors, const Node* __restrict__ candidates, const float* tau,
                    const float* bound, const Node* near, const Node* raised,
                    const float* __restrict__ inverses, const Rest* rests, const Spare* spares, const Alias* aliases,
                    CITIES_PARAMETERS, float alpha, float beta, float shortest, const int* halt, WALK_PARAMETERS) {
    const Surroundings around{CITIES, {alpha, beta, shortest}, tau, bound, near, raised};
    const int lane = lane_id();
#if REST
    const RestTables rest_tables{rests, spares, aliases};
#endif
    CandidateWeights rows{factors, candidates, inverses};
    uint4* shared = shared_memory;
#if RESIDENT
    rows.factors = copy_to(shared, factors, n * STRIDE);
    rows.candidates = copy_to(shared, candidates, n * STRIDE);
    if (REST) rows.inverses = copy_to(shared, inverses, n);
    __syncthreads();
#endif
    Tabu tabu(memory_of_ant(shared, memory, ant_bytes), n);
    for_each_ant(key, m, tabu, tours, [&](const Ant& ant, int city, int* tour) {
#if RACE
        Draws draws(ant);
        FirstArrivals first;
#else
        Spins spins;
#endif
        for (int group = 0; 4 * group + 1 < n; ++group, tour += 4) {
            if (group % GROUPS_PER_CHECK == GROUPS_PER_CHECK - 1 && is_halted(halt)) return false;
            int s = 0;
#if RACE
            draws.begin(group);
            if (REST) first.begin(ant, group);
            if (4 * group + 4 < n) {
                s = 4;
#pragma unroll
                for (int t = 0; t < 4; ++t) {
                    const Racer racer(rows, city, tabu, draws, group, t);
                    draws.advance(t);
                    if (!racer.take(rows, first, t, tabu, city)) {
                        s = t;
                        break;
                    }
                    if (lane == 0) tour[1 + t] = city;
                }
                if (__builtin_expect(s == 4, 1)) continue;
            }
            draws.complete(group + 1);
#endif
            // single steps: after a step that the row did not decide, and at the end
#pragma unroll 1
            for (; s < 4 && 4 * group + 1 + s < n; ++s) {
#if RACE
                const Racer racer(rows, city, tabu, draws, group, s);
                if (!racer.take(rows, first, s, tabu, city)) {
#if REST
                    const float wait = __shfl_sync(EVERY_LANE, first.wait(s), group & 31);
                    const AntStep ant_step{ant, 4 * group + 1 + s, city};
                    city = draw_from_rest(around, rest_tables, inverses, ant_step, tabu, racer.key, racer.city, wait);
#else
                    city = best_remaining(around, city, tabu);
#endif
                    tabu.visit(city);
                }
#else
                const int chosen = roulette(rows, city, tabu, spins.next(ant, 4 * group + s));
                city = chosen >= 0 ? chosen : best_remaining(around, city, tabu);
                tabu.visit(city);
#endif
                if (lane == 0) tour[1 + s] = city;
            }
        }
        return true;
    });
}
