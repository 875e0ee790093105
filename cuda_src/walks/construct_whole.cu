// Tour construction over all cities of a small instance (Eq. (1), paper 001): a step reads the whole row of weights.
//
// One warp walks one ant. A lane has the cities lane, lane + 32, ..., and what it knows of them stays in its registers.
// The choice has two stages. The lanes race: with s the sum of a lane's open weights its time is an exponential of rate s,
// and the least wins (Efraimidis and Spirakis 2006), lane l with probability s_l / sum of s. Every lane has a city ready
// by then, drawn from its own by the roulette wheel: city j with probability w_j / s_l. So a step takes two random numbers
// a lane, and the minimum over the warp names the city itself: there is no tabu to read and nothing to ask another lane.
//
// Letters: m ants, n cities.

#include "device/philox.cuh"
#include "device/warp.cuh"

#ifndef SLOTS
#define SLOTS 7  // cities a lane
#endif
#ifndef RESIDENT
#define RESIDENT 1  // 1: all weights in shared memory
#endif
#ifndef ANTS_A_BLOCK
#define ANTS_A_BLOCK 4
#endif
#ifndef THREADS
#define THREADS 512  // of a block: those of its ants, or more that help to fill the shared memory
#endif

// The city stands in the low bits of a lane's time. Times that agree in all bits above are decided by the city's number;
// of two racers that happens less than once in 2^14 steps.
constexpr unsigned low_bits(unsigned cities) { return cities <= 32u ? 31u : 2u * low_bits((cities + 1u) / 2u) + 1u; }
constexpr unsigned CITY_BITS = low_bits(32 * SLOTS);
constexpr unsigned NO_KEY = 0x7F800000u;  // infinity: a lane without an open weight
constexpr float LEAST_SPIN = 1e-37f;      // below all weights (all_weights.cu), and above zero

// The lane's cities: 1 for an open one, else 0.
struct Open {
    float factors[SLOTS];

    __device__ __forceinline__ explicit Open(int n) {
#pragma unroll
        for (int s = 0; s < SLOTS; ++s) factors[s] = 32 * s + lane_id() < n ? 1.0f : 0.0f;
    }
    __device__ __forceinline__ void close(int city) {
#pragma unroll
        for (int s = 0; s < SLOTS; ++s) {
            if (32 * s + lane_id() == city) factors[s] = 0.0f;
        }
    }
    // The lowest number of all open cities: where all edges to them have lost their trail, they weigh the same.
    __device__ __forceinline__ int lowest() const {
        unsigned city = EVERY_LANE;
#pragma unroll
        for (int s = SLOTS - 1; s >= 0; --s) {
            if (factors[s] > 0.0f) city = 32 * s + lane_id();
        }
        return static_cast<int>(warp_min(city));
    }
};

// The lane's racer: its time, and in the low bits the city that it would go to. row (n,); last: the lane's city of the
// last slot, or any other where there is none.
__device__ __forceinline__ unsigned racer(const float* row, int last, const Open& open, float wait, float u) {
    float sums[SLOTS];  // of the open weights up to a slot
    float sum = 0.0f;
#pragma unroll
    for (int s = 0; s < SLOTS; ++s) {
        const int city = s == SLOTS - 1 ? last : 32 * s + lane_id();
        sum = sums[s] = fmaf(row[city], open.factors[s], sum);
    }
    // In (0, sum]: the first sum that is not below it has grown by the weight of an open city.
    const float spin = fmaxf(u * sum, LEAST_SPIN);
    unsigned city = lane_id();
#pragma unroll
    for (int s = 0; s < SLOTS - 1; ++s) {
        if (sums[s] < spin) city += 32u;
    }
    return (__float_as_uint(__fdividef(wait, sum)) & ~CITY_BITS) | city;
}

// A lane's random numbers for an ant's steps 2 pair + 1 and 2 pair + 2: a wait and a spin each.
__device__ __forceinline__ uint4 counter_of(unsigned pair, unsigned ant) {
    return make_uint4(pair * 32 + lane_id(), STREAM_CONSTRUCTION, ant, 0u);
}

extern __shared__ uint4 shared_memory[];

// Copy `count` floats to shared memory, where all threads of the block see them afterwards.
__device__ __forceinline__ const float* copy_to_shared(const float* global, int count) {
    const uint4* from = reinterpret_cast<const uint4*>(global);
    constexpr int TOGETHER = 8;  // reads under way before the first is stored
    for (int first = threadIdx.x; first < count / 4; first += TOGETHER * THREADS) {
        uint4 parts[TOGETHER];
#pragma unroll
        for (int t = 0; t < TOGETHER; ++t) {
            const int i = first + t * THREADS;
            if (i < count / 4) parts[t] = from[i];
        }
#pragma unroll
        for (int t = 0; t < TOGETHER; ++t) {
            const int i = first + t * THREADS;
            if (i < count / 4) shared_memory[i] = parts[t];
        }
    }
    float* const copy = reinterpret_cast<float*>(shared_memory);
    const int rest = count / 4 * 4 + threadIdx.x;
    if (rest < count) copy[rest] = global[rest];
    __syncthreads();
    return copy;
}

// Build m tours (m, n). factors (n, n): weights, divided by the largest of their row.
extern "C" __global__ void __launch_bounds__(THREADS, 1)
    construct_whole(const float* __restrict__ factors, int n, const RoundKeys key, int m, int* tours) {
#if RESIDENT
    const float* const weights = copy_to_shared(factors, n * n);
#else
    const float* const weights = factors;
#endif
    const int lane = lane_id(), last = min(32 * (SLOTS - 1) + lane, n - 1);
    // The same in all lanes, and the minimum lets the compiler know.
    const int warp = static_cast<int>(warp_min(threadIdx.x >> 5));
    if (warp >= ANTS_A_BLOCK) return;
    for (int ant = blockIdx.x * ANTS_A_BLOCK + warp; ant < m; ant += gridDim.x * ANTS_A_BLOCK) {
        Open open(n);
        uint4 words = philox4x32(counter_of(0, ant), key);
        int city = below(random_words(key, 0u, STREAM_START, ant).x, n);
        open.close(city);
        int* tour = tours + static_cast<size_t>(ant) * n;
        if (lane == 0) tour[0] = city;
        for (int pair = 0; 2 * pair + 1 < n; ++pair, tour += 2) {
            int t = 0;
            const uint4 now = words;
            if (2 * pair + 2 < n) {
                const float waits[2] = {exponential(words.x), exponential(words.y)};
                const float spins[2] = {uniform(words.z), uniform(words.w)};
                words = counter_of(pair + 1, ant);
                t = 2;
#pragma unroll
                for (int u = 0; u < 2; ++u) {
                    const unsigned own = racer(weights + city * n, last, open, waits[u], spins[u]);
                    // The rounds for the next two steps are spread over these two, where the warp waits for memory.
                    words = u == 0 ? philox_rounds<0, 5>(words, key) : philox_rounds<5, 10>(words, key);
                    const unsigned least = warp_min(own);
                    if (least >= NO_KEY) {
                        t = u;
                        break;
                    }
                    city = static_cast<int>(least & CITY_BITS);
                    open.close(city);
                    if (own == least) tour[1 + u] = city;
                }
                if (__builtin_expect(t == 2, 1)) continue;
                words = philox4x32(counter_of(pair + 1, ant), key);
            }
            // One step at a time: the last, and where every open edge of a city has lost its trail.
#pragma unroll 1
            for (; t < 2 && 2 * pair + 1 + t < n; ++t) {
                const float wait = exponential(t == 0 ? now.x : now.y), u = uniform(t == 0 ? now.z : now.w);
                const unsigned least = warp_min(racer(weights + city * n, last, open, wait, u));
                city = least < NO_KEY ? static_cast<int>(least & CITY_BITS) : open.lowest();
                open.close(city);
                if (city % 32 == lane) tour[1 + t] = city;
            }
        }
    }
}
