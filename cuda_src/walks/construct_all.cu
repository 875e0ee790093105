// Tour construction that evaluates all open cities at every step (Eq. (1), paper 001; Eq. (2), paper 000).
//
// The roulette wheel and weighted reservoir sampling of section 4.2, paper 001, with any tabu: the warp of an ant reads
// the weight of every open city. construct.cu draws from the same distribution with fewer loads.

#define DENSE 1
#define NEAR 128

#include "walks/fallback.cuh"
#include "walks/walk.cuh"
#include "walks/wheel.cuh"

// SELECTION is the rule, RULE_WRS (weighted reservoir sampling, section 4.2.2, paper 001) or RULE_RWM (roulette wheel,
// section 4.2.1): definitions from pymoo_gpuaco/colony/selection.py.
#define RACE (SELECTION == RULE_WRS)

struct Ant {
    const RoundKeys& key;
    unsigned number;
    int step;
};

// The list of section 4.1, paper 001: tabu_length() entries; tabu_city() is the open city of an entry, or -1.
__device__ __forceinline__ int tabu_length(const Tabu& tabu) {
#if TABU == TABU_BITMASK
    return tabu.n;
#else
    return tabu.left;
#endif
}

__device__ __forceinline__ int tabu_city(const Tabu& tabu, int place) {
#if TABU == TABU_BITMASK
    return tabu.visited(place) ? -1 : place;
#else
    return tabu.open_city(place);
#endif
}

#if RACE
// Fig. 7, paper 001. factors are inverse weights.
__device__ __forceinline__ int choose(const float* row, const Tabu& tabu, const Ant& ant) {
    const int lane = lane_id(), length = tabu_length(tabu), blocks = (tabu.n + 127) / 128;
    unsigned key = 0xFFFFFFFFu;
    int winner = 0;
    for (int first = 0; first < length; first += 128) {
        const unsigned block = (static_cast<unsigned>(ant.step) * blocks + first / 128) * 32 + lane;
        const uint4 words = random_words(ant.key, block, STREAM_CONSTRUCTION, ant.number);
        const unsigned draws[4] = {words.x, words.y, words.z, words.w};
        int cities[4];
        float inverse[4];
#pragma unroll
        for (int s = 0; s < 4; ++s) {
            const int place = first + 32 * s + lane;
            cities[s] = place < length ? tabu_city(tabu, place) : -1;
            inverse[s] = cities[s] >= 0 ? row[cities[s]] : __int_as_float(0x7F800000);
        }
#pragma unroll
        for (int s = 0; s < 4; ++s) {
            const unsigned own = __float_as_uint(exponential(draws[s]) * inverse[s]);
            if (own < key) {
                key = own;
                winner = cities[s];
            }
        }
    }
    const unsigned best = warp_min(key);
    if (best >= 0x7F800000u) return -1;  // infinity: all weights are zero
    return __shfl_sync(EVERY_LANE, winner, __ffs(__ballot_sync(EVERY_LANE, key == best)) - 1);
}
#else
// Section 4.2.1, paper 001: first find the lane whose share contains the spin, then the entry in it.
__device__ __forceinline__ int choose(const float* row, const Tabu& tabu, const Ant& ant) {
    const int lane = lane_id(), length = tabu_length(tabu);
    float own = 0.0f;
    for (int first = 0; first < length; first += 128) {
        float weights[4];
#pragma unroll
        for (int s = 0; s < 4; ++s) {
            const int place = first + 32 * s + lane;
            const int city = place < length ? tabu_city(tabu, place) : -1;
            weights[s] = city >= 0 ? row[city] : 0.0f;
        }
        own += (weights[0] + weights[1]) + (weights[2] + weights[3]);
    }
    const Wheel wheel(own);
    if (wheel.open == 0u) return -1;
    const uint4 words = random_words(ant.key, ant.step, STREAM_CONSTRUCTION, ant.number);
    const float spin = uniform(words.x) * wheel.all();
    const int source = wheel.winner(wheel.reached(spin));
    float left = __shfl_sync(EVERY_LANE, wheel.rest(spin), source);
    int chosen = -1;
    for (int first = 0; first < length; first += 1024) {
        const int place = first + 32 * lane + source;
        const int city = place < length ? tabu_city(tabu, place) : -1;
        const Wheel part(city >= 0 ? row[city] : 0.0f);
        if (part.open == 0u) continue;
        const unsigned enough = part.reached(left);
        chosen = __shfl_sync(EVERY_LANE, city, part.winner(enough));
        if (enough) break;
        left -= part.all();
    }
    return chosen;
}
#endif

// Build tours (m, n). factors (n, n) from all_weights; tau (n, n), read if the weights of all open cities are zero.
extern "C" __global__ void __launch_bounds__(32 * MOST_ANTS, LEAST_BLOCKS)
    construct_all(const float* __restrict__ factors, const float* tau, CITIES_PARAMETERS, float alpha, float beta,
                  float shortest, WALK_PARAMETERS) {
    const Surroundings around{CITIES, {alpha, beta, shortest}, tau, nullptr, nullptr, nullptr};
    Tabu tabu(memory_of_ant(shared_memory, memory, ant_bytes), n);
    for_each_ant(key, m, tabu, tours, [&](int number, int city, int* tour) {
        Ant ant{key, static_cast<unsigned>(number), 0};
        for (ant.step = 1; ant.step < n; ++ant.step) {
            const int chosen = choose(factors + static_cast<size_t>(city) * n, tabu, ant);
            if (__builtin_expect(chosen >= 0, 1)) {
                city = chosen;
            } else {
                const float any = __int_as_float(0x7F800000);  // no bound of the trails
                city = best_of_all(around, city, tabu, any, Best());
            }
            tabu.visit(city);
            if (lane_id() == 0) tour[ant.step] = city;
        }
        return true;
    });
}
