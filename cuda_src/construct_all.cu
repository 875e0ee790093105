// Tour construction that weighs all open cities at every step (Eq. (1), paper 001; Eq. (2), paper 000), one warp an ant.
//
// RULE 0 and 1 are the roulette wheel and weighted reservoir sampling of section 4.2, paper 001, over whichever tabu:
// they read the weight of every open city. RULE 2 draws from the same distribution and reads few. Cities come in two
// tiers, the candidates and the rest. The sum over the open candidates is exact; the rest counts with an upper bound
// of its sum, bound^alpha times the static sum of eta^beta, and a city drawn from it by an alias table is taken if it
// is open and passes a trial with probability (tau / bound)^alpha: the stochastic trial of paper 000 (section IV.B.3)
// made tighter. Rejected draws change no probability. 32 draws are made at once, the first good one counts; if none
// is, the open cities are weighed one by one.

#include "fallback.cuh"
#include "philox.cuh"

#ifndef RULE
#define RULE 2  // 0: roulette wheel, 1: race, 2: two tiers
#endif
#ifndef SLOTS
#define SLOTS 1  // candidates a lane
#endif
#ifndef ANTS_A_BLOCK
#define ANTS_A_BLOCK 1
#endif

constexpr int STRIDE = 32 * SLOTS;
constexpr float LARGEST_INVERSE = 1e36f;

__device__ __forceinline__ double power(double base, float exponent) {
    if (exponent == 1.0f) return base;
    if (exponent == 2.0f) return base * base;
    return pow(base, static_cast<double>(exponent));
}

__device__ __forceinline__ double eta_beta(const Cities& cities, int i, int j, const Exponents& e) {
    return 1.0 / power(fmax(exact_distance(cities, i, j), static_cast<double>(e.shortest)), e.beta);
}

// ---- what an iteration reads

// factors (n, n) for RULE 0 and 1: w / row maximum, or its inverse; one block of 256 threads a row.
extern "C" __global__ void all_weights(const float* tau, CITIES_PARAMETERS, float alpha, float beta, float shortest,
                                       float* factors) {
    __shared__ double maxima[8];
    const Cities cities = CITIES;
    const Exponents exponents{alpha, beta, shortest};
    const int i = blockIdx.x;
    const size_t row = static_cast<size_t>(i) * n;
    double largest = 0.0;
    for (int j = threadIdx.x; j < n; j += blockDim.x) {
        if (j != i) largest = fmax(largest, power(tau[row + j], alpha) * eta_beta(cities, i, j, exponents));
    }
    largest = warp_max(largest);
    if (lane_id() == 0) maxima[threadIdx.x >> 5] = largest;
    __syncthreads();
    for (int w = 0; w < 8; ++w) largest = fmax(largest, maxima[w]);
    for (int j = threadIdx.x; j < n; j += blockDim.x) {
        const double w = j == i ? 0.0 : power(tau[row + j], alpha) * eta_beta(cities, i, j, exponents);
#if RULE == 1
        factors[row + j] =
            w > 0.0 ? fminf(static_cast<float>(largest / w), LARGEST_INVERSE) : __int_as_float(0x7F800000);
#else
        factors[row + j] = w > 0.0 ? fmaxf(static_cast<float>(w / largest), 1.0f / LARGEST_INVERSE) : 0.0f;
#endif
    }
}

// A draw from the rest of a row: slot j is city j with probability `keep`, else city `other`.
struct Alias {
    float keep;
    int other;
};

// aliases (n, n) and rest_sums (n,) of eta^beta over the cities that are no candidates, once for all iterations
// (Vose, IEEE Trans. Software Engineering 17, 1991). candidates (n, STRIDE), scaled (n, n) doubles and stacks (n, n) for
// a part of the rows: `first` .. `first + rows - 1`. One thread a row.
extern "C" __global__ void build_aliases(const Node* candidates, CITIES_PARAMETERS, float alpha, float beta,
                                         float shortest, int first, int rows, double* scaled, int* stacks,
                                         Alias* aliases, double* rest_sums) {
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows || first + row >= n) return;
    const Cities cities = CITIES;
    const Exponents exponents{alpha, beta, shortest};
    const int i = first + row;
    double* p = scaled + static_cast<size_t>(row) * n;
    int* stack = stacks + static_cast<size_t>(row) * n;  // the light slots from the left, the heavy from the right
    Alias* own = aliases + static_cast<size_t>(i) * n;
    for (int j = 0; j < n; ++j) p[j] = eta_beta(cities, i, j, exponents);
    p[i] = 0.0;
    for (int slot = 0; slot < STRIDE; ++slot) p[candidates[static_cast<size_t>(i) * STRIDE + slot]] = 0.0;
    double sum = 0.0;
    for (int j = 0; j < n; ++j) sum += p[j];
    rest_sums[i] = sum;
    if (sum <= 0.0) return;
    int light = 0, heavy = n;
    int heaviest = 0;
    for (int j = 0; j < n; ++j) {
        p[j] *= n / sum;
        if (p[j] > p[heaviest]) heaviest = j;
        if (p[j] < 1.0) stack[light++] = j;
        else stack[--heavy] = j;
    }
    while (light > 0 && heavy < n) {
        const int small = stack[--light], large = stack[heavy];
        own[small] = Alias{static_cast<float>(p[small]), large};
        p[large] -= 1.0 - p[small];
        if (p[large] < 1.0) {
            ++heavy;
            stack[light++] = large;
        }
    }
    // Rounding leaves slots of about 1; a slot without weight of its own must never name its city.
    for (; heavy < n; ++heavy) own[stack[heavy]] = Alias{1.0f, stack[heavy]};
    while (light > 0) {
        const int j = stack[--light];
        own[j] = p[j] > 0.5 ? Alias{1.0f, j} : Alias{0.0f, heaviest};
    }
}

// The two tiers of every row in one scale: candidate weights (n, STRIDE) and the bound of the rest (n,). One warp a row.
extern "C" __global__ void tier_weights(const float* tau, const float* bound, const int* neighbours,
                                        const double* candidate_eta_beta, const double* rest_sums, float alpha, int n,
                                        int k, float* factors, float* rest) {
    const int city = (blockIdx.x * blockDim.x + threadIdx.x) >> 5, lane = lane_id();
    if (city >= n) return;
    double weights[SLOTS];
    double largest = rest_sums[city] * power(bound[city], alpha);
    const double rest_weight = largest;
#pragma unroll
    for (int s = 0; s < SLOTS; ++s) {
        const int slot = 32 * s + lane;
        weights[s] = 0.0;
        if (slot < k) {
            const size_t place = static_cast<size_t>(city) * k + slot;
            weights[s] = power(tau[static_cast<size_t>(city) * n + neighbours[place]], alpha) * candidate_eta_beta[place];
        }
        largest = fmax(largest, weights[s]);
    }
    largest = warp_max(largest);
    const double scale = largest > 0.0 ? 1.0 / largest : 0.0;
#pragma unroll
    for (int s = 0; s < SLOTS; ++s) {
        factors[static_cast<size_t>(city) * STRIDE + 32 * s + lane] = static_cast<float>(weights[s] * scale);
    }
    if (lane == 0) rest[city] = static_cast<float>(rest_weight * scale);
}

// ---- the walk

struct Ant {
    Key key;
    unsigned number;
    int step;
};

// The list of section 4.1, paper 001: length() places, each an open city or none.
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

#if RULE == 1
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
#elif RULE == 0
// Section 4.2.1, paper 001: first the lane whose share of the places the spin falls into, then the place.
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
    const float sum = warp_prefix_sum(own);
    const unsigned open = __ballot_sync(EVERY_LANE, own > 0.0f);
    if (open == 0u) return -1;
    const uint4 words = random_words(ant.key, ant.step, STREAM_CONSTRUCTION, ant.number);
    const float spin = uniform(words.x) * __shfl_sync(EVERY_LANE, sum, 31);
    const unsigned reached = __ballot_sync(EVERY_LANE, sum >= spin) & open;
    const int source = reached ? __ffs(reached) - 1 : 31 - __clz(open);
    float left = spin - __shfl_sync(EVERY_LANE, sum - own, source);
    int chosen = -1;
    for (int first = 0; first < length; first += 1024) {
        const int place = first + 32 * lane + source;
        const int city = place < length ? tabu_city(tabu, place) : -1;
        const float weight = city >= 0 ? row[city] : 0.0f;
        const float part = warp_prefix_sum(weight);
        const unsigned some = __ballot_sync(EVERY_LANE, weight > 0.0f);
        if (some == 0u) continue;
        const unsigned enough = __ballot_sync(EVERY_LANE, part >= left) & some;
        chosen = __shfl_sync(EVERY_LANE, city, enough ? __ffs(enough) - 1 : 31 - __clz(some));
        if (enough) break;
        left -= __shfl_sync(EVERY_LANE, part, 31);
    }
    return chosen;
}
#else

struct Tiers {
    const float* factors;    // (n, STRIDE) weights of the candidates
    const Node* candidates;  // (n, STRIDE)
    const float* rest;       // (n,) bound of the others' sum
    const Alias* aliases;    // (n, n)
};

// The exact rule over the open cities, one by one: each draws an exponential of its rate, the least wins.
__device__ __noinline__ int weigh_all(Cities cities, const float* tau, Exponents exponents, int city, Tabu tabu,
                                      Ant ant) {
    const Point here = point_of(cities, city);
    const float* row = tau + static_cast<size_t>(city) * cities.n;
    unsigned best = 0xFFFFFFFFu;
    int winner = -1;
    for_open_cities(tabu, [&](const int* j, const bool* open) {
        float trail[BATCH], d[BATCH], wait[BATCH];
#pragma unroll
        for (int b = 0; b < BATCH; ++b) trail[b] = row[j[b]];
#pragma unroll
        for (int b = 0; b < BATCH; ++b) d[b] = distance(cities, city, here, j[b], point_of(cities, j[b]));
#pragma unroll
        for (int b = 0; b < BATCH; ++b) {
            const uint4 counter = make_uint4(ant.step, STREAM_SCAN, ant.number, static_cast<unsigned>(j[b]));
            wait[b] = exponential(philox4x32(counter, ant.key).x);
        }
#pragma unroll
        for (int b = 0; b < BATCH; ++b) {
            const float far = fmaxf(d[b], exponents.shortest);
#if USUAL_EXPONENTS
            const float time = wait[b] * far * far / trail[b];
#else
            float time = log2f(wait[b]) + exponents.beta * log2f(far);
            if (exponents.alpha != 0.0f) time -= exponents.alpha * log2f(trail[b]);
#endif
            const unsigned key = ordered(time);
            if (open[b] && key < best && time < __int_as_float(0x7F800000)) {
                best = key;
                winner = j[b];
            }
        }
    });
    const unsigned least = warp_min(best);
    return __shfl_sync(EVERY_LANE, winner, __ffs(__ballot_sync(EVERY_LANE, best == least)) - 1);
}

__device__ __forceinline__ int choose(const Tiers& tiers, const Cities& cities, const Surroundings& around,
                                      const Exponents& exponents, int city, const Tabu& tabu, const Ant& ant) {
    const int lane = lane_id();
    if (tabu.left > 32) {
        float weights[SLOTS];
        int candidates[SLOTS];
        float own = 0.0f;
#pragma unroll
        for (int slot = 0; slot < SLOTS; ++slot) {
            const int place = city * STRIDE + 32 * slot + lane;
            candidates[slot] = tiers.candidates[place];
            weights[slot] = tiers.factors[place];
            if (tabu.visited(candidates[slot])) weights[slot] = 0.0f;
            own += weights[slot];
        }
        const float rest = tiers.rest[city], bound = around.bound[city];
        const uint4 words = random_words(ant.key, ant.step * 32 + lane, STREAM_CONSTRUCTION, ant.number);
        const float sum = warp_prefix_sum(own), near = __shfl_sync(EVERY_LANE, sum, 31);
        const float spin = uniform(words.x) * (near + rest);
        const unsigned open = __ballot_sync(EVERY_LANE, own > 0.0f);
        const unsigned to_near = __ballot_sync(EVERY_LANE, spin <= near && open != 0u);
        const int first_near = to_near ? __ffs(to_near) - 1 : 32;
        int drawn = 0;
        bool good = false;
        if (lane < first_near && rest > 0.0f) {
            const int slot = below(words.y, cities.n);
            const size_t row = static_cast<size_t>(city) * cities.n;
            const Alias alias = tiers.aliases[row + slot];
            drawn = uniform(words.z) <= alias.keep ? slot : alias.other;
            if (!tabu.visited(drawn)) {
                const float ratio = around.tau[row + drawn] / bound;
                const float chance = exponents.alpha == 1.0f ? ratio : powf(ratio, exponents.alpha);
                good = uniform(words.w) <= chance;
            }
        }
        const unsigned accepted = __ballot_sync(EVERY_LANE, good);
        if (accepted) return __shfl_sync(EVERY_LANE, drawn, __ffs(accepted) - 1);
        if (to_near) {
            float left = __shfl_sync(EVERY_LANE, spin, first_near);
            const unsigned reached = __ballot_sync(EVERY_LANE, sum >= left) & open;
            const int source = reached ? __ffs(reached) - 1 : 31 - __clz(open);
            left -= sum - own;
            int winner = -1;
#pragma unroll
            for (int slot = 0; slot < SLOTS; ++slot) {
                if (weights[slot] > 0.0f && (winner < 0 || left > 0.0f)) winner = candidates[slot];
                left -= weights[slot];
            }
            return __shfl_sync(EVERY_LANE, winner, source);
        }
    }
    return weigh_all(cities, around.tau, exponents, city, tabu, ant);
}
#endif

extern __shared__ uint4 shared_memory[];

// Build m tours. factors (n, n) for RULE 0 and 1, (n, STRIDE) for RULE 2, which alone reads candidates, rest and aliases.
extern "C" __global__ void __launch_bounds__(32 * ANTS_A_BLOCK)
    construct_all(const float* __restrict__ factors, const Node* __restrict__ candidates,
                  const float* __restrict__ rest, const Alias* __restrict__ aliases, const float* tau,
                  const float* bound, const Node* near, CITIES_PARAMETERS, float alpha, float beta, float shortest,
                  unsigned key_low, unsigned key_high, int m, int tabu_bytes, char* tabu_memory, int* tours) {
    const Cities cities = CITIES;
    const Surroundings around{tau, bound, near};
    const Exponents exponents{alpha, beta, shortest};
    const int warp = threadIdx.x >> 5;
#if TABU_IN_SHARED
    Tabu tabu(reinterpret_cast<char*>(shared_memory) + static_cast<size_t>(warp) * tabu_bytes, n);
#else
    Tabu tabu(tabu_memory + (static_cast<size_t>(blockIdx.x) * ANTS_A_BLOCK + warp) * tabu_bytes, n);
#endif
    for (int number = blockIdx.x * ANTS_A_BLOCK + warp; number < m; number += gridDim.x * ANTS_A_BLOCK) {
        tabu.clear();
        Ant ant{Key{key_low, key_high}, static_cast<unsigned>(number), 0};
        int city = below(random_words(ant.key, 0u, STREAM_START, number).x, n);
        tabu.visit(city);
        int* tour = tours + static_cast<size_t>(number) * n;
        if (lane_id() == 0) tour[0] = city;
        for (ant.step = 1; ant.step < n; ++ant.step) {
#if RULE == 2
            const int chosen =
                choose(Tiers{factors, candidates, rest, aliases}, cities, around, exponents, city, tabu, ant);
#else
            const int chosen = choose(factors + static_cast<size_t>(city) * n, tabu, ant);
#endif
            if (__builtin_expect(chosen >= 0, 1)) city = chosen;
            else city = best_remaining(cities, around, exponents, city, tabu);
            tabu.visit(city);
            if (lane_id() == 0) tour[ant.step] = city;
        }
    }
}
