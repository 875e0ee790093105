// Tour construction over all cities with the selection rules of Uchida et al. 2012, Murooka et al., and Skinderowicz 2020
// (section 4.2; with any tabu).
//
// All rules except the tournament draw city j with probability f(i, j) / sum of f over the open cities (Eq. (2) of
// Uchida et al. 2012 and Murooka et al.; Eq. (1), Skinderowicz 2020). One warp walks one ant; in tournaments LANES
// lanes do. all_weights.cu computes the weights f once per iteration. construct.cu draws from the same distribution
// with fewer loads.
//
// Letters: m ants, n cities; rows are padded to STRIDE, a multiple of PARTS, with weights of 0.

#include "walks/walk.cuh"
#include "walks/wheel.cuh"

// SELECTION is the rule, RULE_ROULETTE or another RULE_..: definitions from pymoo_gpuaco/colony/selection.py.
// -DLANES: lanes per ant in a tournament; one warp has all ants of a block
// -DWIDTH: length of one of the PARTS parts of a row

// 1: a rule of Skinderowicz 2020, with a tabu of any layout
#define ANY_TABU (SELECTION == RULE_WRS || SELECTION == RULE_RWM)

constexpr bool TOURNAMENT = SELECTION == RULE_ACCEPTANCE_TOURNAMENT;
// Maximum ants per block; in tournaments the exact number.
constexpr int MOST_TOGETHER = TOURNAMENT ? 32 / LANES : MOST_ANTS;
constexpr int PARTS = 128;             // parts of a row, for the search in prefix sums
constexpr int STRIDE = PARTS * WIDTH;  // length of padded rows
// True if visited cities are in a tabu, a bitmask except with ANY_TABU; the hybrid and the tournament build a list of
// open cities at their switch.
constexpr bool HAS_TABU = SELECTION != RULE_COMPRESSED;

// ---- state of an ant

// The unvisited index array (Fig. 6, Uchida et al. 2012; Fig. 8, Murooka et al.).
struct OpenList {
    Node* cities;  // (left,) in no particular order
    int left;

    // List the cities c of 0 .. n-1 with is_open(c).
    template <class IsOpen>
    __device__ __forceinline__ void fill(int n, IsOpen is_open) {
        left = 0;
        for (int first = 0; first < n; first += 32) {
            const int c = first + lane_id();
            const bool open = c < n && is_open(c);
            const unsigned found = __ballot_sync(EVERY_LANE, open);
            if (open) cities[left + __popc(found & ((1u << lane_id()) - 1u))] = static_cast<Node>(c);
            left += __popc(found);
        }
        __syncwarp();
    }

    // Remove the city at an index by moving the last city there.
    __device__ __forceinline__ void remove(int place) {
        __syncwarp();
        --left;
        if (lane_id() == 0) cities[place] = cities[left];
        __syncwarp();
    }
};

// ---- data of an iteration

// Compute sums (n, STRIDE), q'(i, j) of Eq. (9), Uchida et al. 2012, from weights (n, STRIDE), and ends (n, PARTS),
// their values at the end of each part of a row. Summed in double; one warp per row.
extern "C" __global__ void sum_weights(const float* weights, int n, float* sums, float* ends) {
    const int i = (blockIdx.x * blockDim.x + threadIdx.x) >> 5, lane = lane_id();
    if (i >= n) return;
    const float4* row = reinterpret_cast<const float4*>(weights + static_cast<size_t>(i) * STRIDE);
    float* result = sums + static_cast<size_t>(i) * STRIDE;
    double before = 0.0;
    for (int q = lane; q < STRIDE / 4; q += 32) {
        const float4 w = row[q];
        const double x = w.x, y = x + w.y, z = y + w.z, all = z + w.w;
        const double sum = warp_prefix_sum(all);
        const double start = before + (sum - all);
        reinterpret_cast<float4*>(result)[q] =
            make_float4(static_cast<float>(start + x), static_cast<float>(start + y), static_cast<float>(start + z),
                        static_cast<float>(start + all));
        before += __shfl_sync(EVERY_LANE, sum, 31);
    }
    __syncwarp();
    for (int part = lane; part < PARTS; part += 32) {
        ends[static_cast<size_t>(i) * PARTS + part] = result[part * WIDTH + WIDTH - 1];
    }
}

// ---- the rules

// The index of the lowest open city if all open edges have weight 0; city_at(p) is EVERY_LANE for a visited city.
template <class CityAt>
__device__ __forceinline__ int lowest(int count, CityAt city_at) {
    unsigned least = EVERY_LANE;
    int place = 0;
    for (int p = lane_id(); p < count; p += 32) {
        const unsigned city = city_at(p);
        if (city < least) {
            least = city;
            place = p;
        }
    }
    const unsigned winner = __ballot_sync(EVERY_LANE, least == warp_min(least));
    return __shfl_sync(EVERY_LANE, place, __ffs(winner) - 1);
}

#if ANY_TABU

#if SELECTION == RULE_WRS
// Weighted reservoir sampling (Fig. 7, Skinderowicz 2020). Weights are inverse. Return the city, or -1 if all weights
// are 0.
__device__ __forceinline__ int choose(const float* row, const Tabu& tabu, const Ant& ant, int step) {
    const int lane = lane_id(), length = tabu.length(), blocks = (tabu.n + 127) / 128;
    unsigned key = 0xFFFFFFFFu;
    int winner = 0;
    for (int first = 0; first < length; first += 128) {
        const uint4 words = ant.draw((static_cast<unsigned>(step) * blocks + first / 128) * 32 + lane);
        const unsigned draws[4] = {words.x, words.y, words.z, words.w};
        int cities[4];
        float inverse[4];
#pragma unroll
        for (int s = 0; s < 4; ++s) {
            const int place = first + 32 * s + lane;
            cities[s] = place < length ? tabu.city_at(place) : -1;
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
// Roulette wheel (section 4.2.1, Skinderowicz 2020): first find the lane whose share contains the spin, then the entry
// in it. Return the city, or -1 if all weights are 0.
__device__ __forceinline__ int choose(const float* row, const Tabu& tabu, const Ant& ant, int step) {
    const int lane = lane_id(), length = tabu.length();
    float own = 0.0f;
    for (int first = 0; first < length; first += 128) {
        float weights[4];
#pragma unroll
        for (int s = 0; s < 4; ++s) {
            const int place = first + 32 * s + lane;
            const int city = place < length ? tabu.city_at(place) : -1;
            weights[s] = city >= 0 ? row[city] : 0.0f;
        }
        own += (weights[0] + weights[1]) + (weights[2] + weights[3]);
    }
    const Wheel wheel(own);
    if (wheel.open == 0u) return -1;
    const float spin = uniform(ant.draw(step).x) * wheel.all();
    const int source = wheel.winner(wheel.reached(spin));
    float left = __shfl_sync(EVERY_LANE, wheel.rest(spin), source);
    int chosen = -1;
    for (int first = 0; first < length; first += 1024) {
        const int place = first + 32 * lane + source;
        const int city = place < length ? tabu.city_at(place) : -1;
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

#else

constexpr int QUADS = TOURNAMENT ? 4 : 8;  // independent loads of four weights per lane
constexpr int CHUNKS = (WIDTH + 31) / 32;
constexpr int TRIALS_AT_ONCE = 4;  // the words of one generator block

// Roulette wheel over 4 `quads` weights; quad(q) returns those at indices 4 q .. 4 q + 3. Return an index, or -1 if all
// weights are 0.
template <class Quad>
__device__ __forceinline__ int spin_wheel(int quads, float u, Quad quad) {
    const int lane = lane_id();
    const float4 none = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    float own = 0.0f;
    for (int first = 0; first < quads; first += 32 * QUADS) {
        float4 w[QUADS];
#pragma unroll
        for (int b = 0; b < QUADS; ++b) {
            const int q = first + 32 * b + lane;
            w[b] = q < quads ? quad(q) : none;
        }
#pragma unroll
        for (int b = 0; b < QUADS; ++b) own += (w[b].x + w[b].y) + (w[b].z + w[b].w);
    }
    const Wheel wheel(own);
    if (wheel.open == 0u) return -1;
    const float spin = u * wheel.all();
    const int source = wheel.winner(wheel.reached(spin));
    float rest = __shfl_sync(EVERY_LANE, wheel.rest(spin), source);
    int chosen = -1;
    for (int first = source; first < quads; first += 1024) {
        const int q = first + 32 * lane;
        const float4 w = q < quads ? quad(q) : none;
        const Wheel part((w.x + w.y) + (w.z + w.w));
        if (part.open == 0u) continue;
        const unsigned enough = part.reached(rest);
        const float four[4] = {w.x, w.y, w.z, w.w};
        int place = -1;
        spin_in_order(four, part.rest(rest), [&](int b) { place = 4 * q + b; });
        chosen = __shfl_sync(EVERY_LANE, place, part.winner(enough));
        if (enough) break;
        rest -= part.all();
    }
    return chosen;
}

// Roulette wheel where visited cities have weight 0 (Eqs. (7) and (8), Uchida et al. 2012). Return the city, or -1.
__device__ __forceinline__ int without_compression(const float* row, const Tabu& tabu, float u) {
    return spin_wheel(STRIDE / 4, u, [&](int q) {
        float4 w = reinterpret_cast<const float4*>(row)[q];
        const unsigned visited = tabu.words[q >> 3] >> (4 * (q & 7));
        if (visited & 1u) w.x = 0.0f;
        if (visited & 2u) w.y = 0.0f;
        if (visited & 4u) w.z = 0.0f;
        if (visited & 8u) w.w = 0.0f;
        return w;
    });
}

struct alignas(4 * sizeof(Node)) Four {
    Node cities[4];
};

// Roulette wheel that reads only weights of open cities. Return an index of the list.
__device__ __forceinline__ int with_compression(const float* row, const OpenList& open, float u) {
    const int chosen = spin_wheel((open.left + 3) / 4, u, [&](int q) {
        const Four four = reinterpret_cast<const Four*>(open.cities)[q];
        float w[4];
#pragma unroll
        for (int b = 0; b < 4; ++b) w[b] = 4 * q + b < open.left ? row[four.cities[b]] : 0.0f;
        return make_float4(w[0], w[1], w[2], w[3]);
    });
    return chosen >= 0 ? chosen : lowest(open.left, [&](int p) -> unsigned { return open.cities[p]; });
}

// Draw from the sums over all cities until a city is open, at most `trials` times; -1 if none is. K-ary search of
// section IV.B.1: the sums at the ends of the parts give the part of a draw, then each lane compares one entry of it.
__device__ __forceinline__ int stochastic_trial(const float* sums, const float* ends, const Tabu& tabu, int trials,
                                                const Ant& ant, int step) {
    const int lane = lane_id();
    const float4 end = reinterpret_cast<const float4*>(ends)[lane];
    const float total = __shfl_sync(EVERY_LANE, end.w, 31);
    for (int first = 0; first < trials; first += TRIALS_AT_ONCE) {
        // a draw is a function of its index: all lanes compute all draws
        const uint4 words = ant.draw(step, 1u + first / TRIALS_AT_ONCE);
        const unsigned four[TRIALS_AT_ONCE] = {words.x, words.y, words.z, words.w};
        float spins[TRIALS_AT_ONCE];
        int starts[TRIALS_AT_ONCE];  // first index of the part
#pragma unroll
        for (int t = 0; t < TRIALS_AT_ONCE; ++t) {
            const float spin = uniform(four[t]) * total;
            const unsigned passed = (end.x < spin) + (end.y < spin) + (end.z < spin) + (end.w < spin);
            spins[t] = spin;
            starts[t] = WIDTH * static_cast<int>(warp_sum(passed));
        }
        float values[TRIALS_AT_ONCE][CHUNKS];
#pragma unroll
        for (int t = 0; t < TRIALS_AT_ONCE; ++t) {
#pragma unroll
            for (int c = 0; c < CHUNKS; ++c) {
                const int place = 32 * c + lane;
                values[t][c] = place < WIDTH ? sums[starts[t] + place] : 0.0f;
            }
        }
        int drawn = 0;  // lane t holds draw t
#pragma unroll
        for (int t = 0; t < TRIALS_AT_ONCE; ++t) {
            int city = 0;
#pragma unroll
            for (int c = CHUNKS - 1; c >= 0; --c) {
                const bool reached = 32 * c + lane < WIDTH && values[t][c] >= spins[t];
                const unsigned places = __ballot_sync(EVERY_LANE, reached);
                if (places) city = starts[t] + 32 * c + __ffs(places) - 1;
            }
            if (lane == t) drawn = city;
        }
        drawn = min(drawn, tabu.n - 1);  // rounding may carry a draw into the padding
        const bool good = lane < min(TRIALS_AT_ONCE, trials - first) && !tabu.visited(drawn);
        const unsigned accepted = __ballot_sync(EVERY_LANE, good);
        if (accepted) return __shfl_sync(EVERY_LANE, drawn, __ffs(accepted) - 1);
    }
    return -1;
}

// Accept random open cities with probability f / row maximum, in rounds of 64 draws; -1 if `trials` draws fail.
__device__ __forceinline__ int stochastic_acceptance(const float* row, const Tabu& tabu, int trials, const Ant& ant,
                                                     int step) {
    for (int round = 0; 64 * round < trials; ++round) {
        const uint4 words = ant.draw(step, 1u + 32 * round + lane_id());
        const int one = below(words.x, tabu.n), two = below(words.z, tabu.n);
        const float first = row[one], second = row[two];
        unsigned taken = __ballot_sync(EVERY_LANE, !tabu.visited(one) && uniform(words.y) * LARGEST_WEIGHT <= first);
        if (taken) return __shfl_sync(EVERY_LANE, one, __ffs(taken) - 1);
        taken = __ballot_sync(EVERY_LANE, !tabu.visited(two) && uniform(words.w) * LARGEST_WEIGHT <= second);
        if (taken) return __shfl_sync(EVERY_LANE, two, __ffs(taken) - 1);
    }
    return -1;
}

#endif

// A roulette wheel among `size` random open cities, with repetition (Fig. 7, Murooka et al.). One warp has all ants of
// a block, LANES lanes each. Lanes of ants from m on only take part in warp operations.
__device__ __forceinline__ void tournaments(const float* weights, Node* lists, int list_places, int n, const RoundKeys& key,
                                            int first_ant, int m, int first_step, int size, const int* here,
                                            int* tours) {
    const int lane = lane_id() % LANES, member = lane_id() / LANES;
    const bool present = first_ant + member < m;
    const unsigned lanes = LANES == 32 ? EVERY_LANE : (1u << (LANES % 32)) - 1u;
    Node* list = lists + static_cast<size_t>(member) * list_places;
    int* tour = tours + static_cast<size_t>(first_ant + member) * n;
    const Ant ant{key, static_cast<unsigned>(first_ant + member)};
    int city = present ? here[member] : 0;
    for (int step = first_step; step < n; ++step) {
        const int left = n - step;
        const float* row = weights + static_cast<size_t>(city) * STRIDE;
        // every round draws LANES cities; the previous winner takes part with the sum of all earlier weights
        float sum = 0.0f;
        int chosen = 0;
        for (int round = 0; round * LANES < size; ++round) {
            const bool takes_part = present && round * LANES + lane < size;
            const uint4 words = ant.draw(step, 1u + round * LANES + lane);
            const int drawn = takes_part ? static_cast<int>(below(words.x, left)) : 0;
            const float own = takes_part ? row[list[drawn]] : 0.0f;
            float prefix = own;
#pragma unroll
            for (int distance = 1; distance < LANES; distance <<= 1) {
                const float other = __shfl_up_sync(EVERY_LANE, prefix, distance, LANES);
                if (lane >= distance) prefix += other;
            }
            const float all = sum + __shfl_sync(EVERY_LANE, prefix, LANES - 1, LANES);
            const float spin = uniform(__shfl_sync(EVERY_LANE, words.y, 0, LANES)) * all;
            const unsigned reached = __ballot_sync(EVERY_LANE, sum + prefix >= spin && own > 0.0f);
            const unsigned positive = __ballot_sync(EVERY_LANE, own > 0.0f);
            const unsigned own_reached = (reached >> (member * LANES)) & lanes;
            const unsigned filled = (positive >> (member * LANES)) & lanes;
            const int winner = own_reached ? __ffs(own_reached) - 1 : filled ? 31 - __clz(filled) : 0;
            const int found = __shfl_sync(EVERY_LANE, drawn, winner, LANES);
            if (round == 0 || (filled && spin > sum)) chosen = found;
            sum = all;
        }
        const int next = present ? list[chosen] : 0;
        __syncwarp();
        if (present && lane == 0) {
            list[chosen] = list[left - 1];
            tour[step] = next;
        }
        __syncwarp();
        city = next;
    }
}

// Build tours (m, n). weights (n, STRIDE), inverse with RULE_WRS; sums (n, STRIDE) and ends (n, PARTS): for stochastic
// trials. If all open cities have weight 0, the lowest one is chosen.
// switch_left: number of open cities at which the hybrid and the tournament switch rules; size: cities of a tournament.
// The memory of an ant is a tabu, a list, or both in this order.
extern "C" __global__ void __launch_bounds__(32 * MOST_TOGETHER, TOURNAMENT ? 1 : 5)
    construct_by_rule(const float* __restrict__ weights, const float* __restrict__ sums,
                      const float* __restrict__ ends, int n, int trials, int switch_left, int size, WALK_PARAMETERS) {
    const int warp = threadIdx.x >> 5, warps = TOURNAMENT ? MOST_TOGETHER : blockDim.x >> 5;
    char* const own = memory_of_ant(shared_memory, memory, ant_bytes);
    const int mask_bytes = HAS_TABU ? 16 * ((n + 127) / 128) : 0;
    Tabu tabu(own, n);
    OpenList open{reinterpret_cast<Node*>(own + mask_bytes), 0};
    for (int first = blockIdx.x * warps; first < m; first += gridDim.x * warps) {
        const Ant ant{key, static_cast<unsigned>(first + warp)};
        int* tour = tours + static_cast<size_t>(first + warp) * n;
        int city = first_city(key, ant.number, n);
        const int steps = TOURNAMENT ? max(1, min(n, n - switch_left)) : n;
        if (first + warp < m) {
            if (lane_id() == 0) tour[0] = city;
            if (HAS_TABU) {
                tabu.clear();
                tabu.visit(city);
            } else {
                open.fill(n, [](int) { return true; });
                open.remove(city);
            }
            const auto is_open = [&](int c) { return !tabu.visited(c); };
#if !ANY_TABU
            Spins spins;
            bool listed = !HAS_TABU;
#endif
            for (int step = 1; step < steps; ++step) {
                const float* row = weights + static_cast<size_t>(city) * STRIDE;
#if ANY_TABU
                const int next = choose(row, tabu, ant, step);
#else
                const float u = spins.next(ant, step);
                if (SELECTION == RULE_HYBRID && !listed && n - step <= switch_left) {
                    open.fill(n, is_open);
                    listed = true;
                }
                if (listed) {
                    const int place = with_compression(row, open, u);
                    city = open.cities[place];
                    open.remove(place);
                    if (lane_id() == 0) tour[step] = city;
                    continue;
                }
                int next = -1;
                if (SELECTION == RULE_STOCHASTIC_TRIAL || SELECTION == RULE_HYBRID) {
                    next = stochastic_trial(sums + static_cast<size_t>(city) * STRIDE,
                                            ends + static_cast<size_t>(city) * PARTS, tabu, trials, ant, step);
                } else if (TOURNAMENT) {
                    next = stochastic_acceptance(row, tabu, trials, ant, step);
                }
                if (next < 0) next = without_compression(row, tabu, u);
#endif
                city = next >= 0 ? next : lowest(n, [&](int c) { return tabu.visited(c) ? EVERY_LANE : c; });
                tabu.visit(city);
                if (lane_id() == 0) tour[step] = city;
            }
            if (TOURNAMENT) open.fill(n, is_open);
        }
        if (TOURNAMENT) {
            __shared__ int here[MOST_TOGETHER];
            if (lane_id() == 0) here[warp] = city;
            __syncthreads();
            if (warp == 0) {
                // warp 0 has the memory of the block's first ant
                tournaments(weights, open.cities, ant_bytes / static_cast<int>(sizeof(Node)), n, key, first, m, steps,
                            size, here, tours);
            }
            __syncthreads();
        }
    }
}
