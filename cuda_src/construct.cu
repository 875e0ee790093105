// Tour construction of Ant System and MMAS with candidate lists; trails stay constant while the ants walk.
//
// One warp walks one ant, a lane weighs one candidate (or SLOTS of them). Every city is drawn with probability
// w_j / sum of w over the open candidates (Eq. (1), paper 001). A step is a chain of dependent reads, and its latency
// is what a tour costs: weights come precomputed, random numbers do not depend on the chain, and where the instance is
// small enough all rows stay in shared memory.
//
// Letters: m ants, n cities, k candidates a city; rows are padded to 32 SLOTS with the row's own city.

#include "fallback.cuh"
#include "philox.cuh"

#ifndef RACE
#define RACE 1  // 1: weighted reservoir sampling (section 4.2.2, paper 001), 0: roulette wheel (section 4.2.1)
#endif
#ifndef SLOTS
#define SLOTS 1  // candidates a lane
#endif
#ifndef RESIDENT
#define RESIDENT 0  // 1: all rows in shared memory
#endif
#ifndef ANTS_A_BLOCK
#define ANTS_A_BLOCK 4
#endif

constexpr int STRIDE = 32 * SLOTS;
constexpr int STEPS_UNROLLED = RACE ? 4 : 1;  // the race does a share of the generator's rounds in each of four steps
constexpr unsigned NO_KEY = 0x7F800000u;  // infinity, which an edge of weight zero cannot undercut

struct Rows {
    const float* factors;    // (n, STRIDE) 1 / w (race) or w (roulette), scaled row by row
    const Node* candidates;  // (n, STRIDE)
};

// The race: every open city draws an exponential of rate w, the least wins (Efrimidis and Spirakis 2006). The lane
// stands in the low bits of the key, so that one integer minimum names the winner.
__device__ __forceinline__ int race(const Rows& rows, int city, const Tabu& tabu, const float* variates) {
    const int lane = lane_id();
    unsigned key = NO_KEY;
    int winner = -1;
#pragma unroll
    for (int slot = 0; slot < SLOTS; ++slot) {
        const int place = city * STRIDE + 32 * slot + lane;
        const float inverse = rows.factors[place];
        const int candidate = rows.candidates[place];
        const unsigned own = (__float_as_uint(variates[slot] * inverse) & ~31u) | lane;
        if (!tabu.visited(candidate) && own < key) {
            key = own;
            winner = candidate;
        }
    }
    return __shfl_sync(EVERY_LANE, winner, warp_min(key) & 31u);
}

// The roulette wheel by a prefix sum over the warp; a lane's own candidates lie side by side.
__device__ __forceinline__ int roulette(const Rows& rows, int city, const Tabu& tabu, float u) {
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
    const float sum = warp_prefix_sum(own);
    const unsigned open = __ballot_sync(EVERY_LANE, own > 0.0f);
    if (open == 0u) return -1;
    float spin = u * __shfl_sync(EVERY_LANE, sum, 31);
    // Only lanes with an open city count; rounding may carry the spin past the last of them, which then wins.
    const unsigned reached = __ballot_sync(EVERY_LANE, sum >= spin) & open;
    const int source = reached ? __ffs(reached) - 1 : 31 - __clz(open);
    spin -= sum - own;
    int winner = -1;
#pragma unroll
    for (int slot = 0; slot < SLOTS; ++slot) {
        if (weights[slot] > 0.0f && (winner < 0 || spin > 0.0f)) winner = candidates[slot];
        spin -= weights[slot];
    }
    return __shfl_sync(EVERY_LANE, winner, source);
}

__device__ __forceinline__ unsigned word_of(const uint4& words, int s) {
    return s == 0 ? words.x : s == 1 ? words.y : s == 2 ? words.z : words.w;
}

// One ant's random numbers, four steps at a time. The block of the generator depends on the step and the candidate's
// place alone. The ten rounds for the next four steps are spread over these four, where the warp waits for memory.
struct Draws {
    Key key;
    unsigned ant;
#if RACE && SLOTS <= 2
    uint4 now[SLOTS], next[SLOTS];

    __device__ __forceinline__ uint4 counter(int group, int slot) const {
        return make_uint4((group * SLOTS + slot) * 32 + lane_id(), STREAM_CONSTRUCTION, ant, 0u);
    }
    __device__ __forceinline__ Draws(Key key, unsigned ant) : key(key), ant(ant) {
        for (int slot = 0; slot < SLOTS; ++slot) next[slot] = philox4x32(counter(0, slot), key);
    }
    __device__ __forceinline__ void begin(int group) {
        for (int slot = 0; slot < SLOTS; ++slot) {
            now[slot] = next[slot];
            next[slot] = counter(group + 1, slot);
        }
    }
    __device__ __forceinline__ void advance(int s) {
#pragma unroll
        for (int slot = 0; slot < SLOTS; ++slot) {
            if (s == 0) next[slot] = philox_rounds<0, 3>(next[slot], key);
            if (s == 1) next[slot] = philox_rounds<3, 6>(next[slot], key);
            if (s == 2) next[slot] = philox_rounds<6, 8>(next[slot], key);
            if (s == 3) next[slot] = philox_rounds<8, 10>(next[slot], key);
        }
    }
    __device__ __forceinline__ int choose(const Rows& rows, int city, const Tabu& tabu, int s) const {
        float variates[SLOTS];
        for (int slot = 0; slot < SLOTS; ++slot) variates[slot] = exponential(word_of(now[slot], s));
        return race(rows, city, tabu, variates);
    }
#elif RACE
    int group;

    __device__ __forceinline__ Draws(Key key, unsigned ant) : key(key), ant(ant), group(0) {}
    __device__ __forceinline__ void begin(int g) { group = g; }
    __device__ __forceinline__ void advance(int) {}
    __device__ __forceinline__ int choose(const Rows& rows, int city, const Tabu& tabu, int s) const {
        constexpr int BLOCKS = (SLOTS + 3) / 4;
        float variates[4 * BLOCKS];
#pragma unroll
        for (int b = 0; b < BLOCKS; ++b) {
            const unsigned block = ((4 * group + s) * BLOCKS + b) * 32 + lane_id();
            const uint4 words = random_words(key, block, STREAM_CONSTRUCTION, ant);
            for (int i = 0; i < 4; ++i) variates[4 * b + i] = exponential(word_of(words, i));
        }
        return race(rows, city, tabu, variates);
    }
#else
    uint4 mine, now;  // a lane holds the words of every 32nd group

    __device__ __forceinline__ Draws(Key key, unsigned ant) : key(key), ant(ant) {}
    __device__ __forceinline__ void begin(int group) {
        if ((group & 31) == 0) mine = random_words(key, group + lane_id(), STREAM_CONSTRUCTION, ant);
        const int source = group & 31;
        now.x = __shfl_sync(EVERY_LANE, mine.x, source);
        now.y = __shfl_sync(EVERY_LANE, mine.y, source);
        now.z = __shfl_sync(EVERY_LANE, mine.z, source);
        now.w = __shfl_sync(EVERY_LANE, mine.w, source);
    }
    __device__ __forceinline__ void advance(int) {}
    __device__ __forceinline__ int choose(const Rows& rows, int city, const Tabu& tabu, int s) const {
        return roulette(rows, city, tabu, uniform(word_of(now, s)));
    }
#endif
};

extern __shared__ uint4 shared_memory[];

// Copy whole rows to shared memory; both tables end on a multiple of 16 bytes.
__device__ __forceinline__ Rows resident_rows(const Rows& rows, int n) {
    const int factor_words = n * STRIDE / 4, candidate_words = n * STRIDE * static_cast<int>(sizeof(Node)) / 16;
    uint4* factors = shared_memory;
    uint4* candidates = shared_memory + factor_words;
    for (int i = threadIdx.x; i < factor_words; i += blockDim.x) {
        factors[i] = reinterpret_cast<const uint4*>(rows.factors)[i];
    }
    for (int i = threadIdx.x; i < candidate_words; i += blockDim.x) {
        candidates[i] = reinterpret_cast<const uint4*>(rows.candidates)[i];
    }
    __syncthreads();
    return Rows{reinterpret_cast<const float*>(factors), reinterpret_cast<const Node*>(candidates)};
}

// Build m tours. tau, bound and near: see Surroundings; tabu_memory: tabu_bytes for every warp of the grid, where shared memory is too
// small for the tabus; tours (m, n).
extern "C" __global__ void __launch_bounds__(32 * ANTS_A_BLOCK)
    construct_tours(const float* __restrict__ factors, const Node* __restrict__ candidates, const float* tau,
                    const float* bound, const Node* near, CITIES_PARAMETERS, float alpha, float beta, float shortest, unsigned key_low, unsigned key_high,
                    int m, int tabu_bytes, char* tabu_memory, int* tours) {
    const Cities cities = CITIES;
    const Surroundings around{tau, bound, near};
    const Exponents exponents{alpha, beta, shortest};
    const Key key{key_low, key_high};
    const int warp = threadIdx.x >> 5;
    Rows rows{factors, candidates};
#if RESIDENT
    rows = resident_rows(rows, n);
    const size_t row_bytes = static_cast<size_t>(n) * STRIDE * (sizeof(float) + sizeof(Node));
#elif TABU_IN_SHARED
    const size_t row_bytes = 0;
#endif
#if TABU_IN_SHARED
    Tabu tabu(reinterpret_cast<char*>(shared_memory) + row_bytes + static_cast<size_t>(warp) * tabu_bytes, n);
#else
    Tabu tabu(tabu_memory + (static_cast<size_t>(blockIdx.x) * ANTS_A_BLOCK + warp) * tabu_bytes, n);
#endif
    for (int ant = blockIdx.x * ANTS_A_BLOCK + warp; ant < m; ant += gridDim.x * ANTS_A_BLOCK) {
        tabu.clear();
        Draws draws(key, ant);
        int city = below(random_words(key, 0u, STREAM_START, ant).x, n);
        tabu.visit(city);
        int* tour = tours + static_cast<size_t>(ant) * n;
        if (lane_id() == 0) tour[0] = city;
        for (int group = 0; 4 * group + 1 < n; ++group) {
            draws.begin(group);
#pragma unroll STEPS_UNROLLED
            for (int s = 0; s < 4; ++s) {
                const int step = 4 * group + 1 + s;
                if (step >= n) break;
                draws.advance(s);
                const int chosen = draws.choose(rows, city, tabu, s);
                if (__builtin_expect(chosen >= 0, 1)) city = chosen;
                else city = best_remaining(cities, around, exponents, city, tabu);
                tabu.visit(city);
                if (lane_id() == 0) tour[step] = city;
            }
        }
    }
}
