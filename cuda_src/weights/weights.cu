// Weights of edges (Eq. (1), Skinderowicz 2020) from the current trails, one row per city, computed once per iteration.
//
// A row is divided by its largest weight, which changes no probability and avoids overflow in float. Rows are padded to
// 32 lanes with the row's own city, which an ant there has visited.
//
// With dense trails, most edges that are not candidates have had no recent deposit and share one trail. Edges above the
// common trail are "raised"; at most 32 of a row are listed, the strongest. `bound` is the largest trail of edges that
// are neither candidates nor listed. With REST an ant chooses among all cities. A row contains the heaviest candidate
// and raised edges; the others of these are `spare`, and all remaining edges are the rest. The sum of the rest's
// weights is at most bound^alpha times the constant sum of eta^beta.

#include "device/warp.cuh"
#include "weights/weight.cuh"

typedef NODE Node;
constexpr int STRIDE = 32 * SLOTS;
constexpr int NONE = -1;

#if DENSE

// Classes of trails above the common one, a quarter of an octave each; the edges of the strongest classes are listed.
constexpr int CLASSES = 128;

__device__ __forceinline__ int class_of(float trail, float common) {
    return min(CLASSES - 1, (__float_as_int(trail) - __float_as_int(common)) >> 21);  // trails are not negative
}

// The edges of a city that are not candidates.
struct Outside {
    int raised;   // the lane's listed edge, or NONE
    float bound;  // largest trail that is neither a candidate's nor listed
    bool even;    // all those trails equal the bound
};

// Find the raised edges of a city's row (n,), by one warp. candidates (SLOTS,) of the lane; inside: workspace of
// ceil(n / 32) words.
__device__ __forceinline__ Outside find_outside(const float* row, const int* candidates, int n, int city, float common,
                                                unsigned* inside) {
    __shared__ __align__(16) int counts[CLASSES];
    __shared__ int listed[32];
    const int lane = lane_id(), words = (n + 31) >> 5;
    for (int w = lane; w < words; w += 32) inside[w] = w < n >> 5 ? 0u : EVERY_LANE << (n & 31);
    for (int c = lane; c < CLASSES; c += 32) counts[c] = 0;
    listed[lane] = NONE;
    __syncwarp();
#pragma unroll
    for (int s = 0; s < SLOTS; ++s) {
        if (candidates[s] != NONE) atomicOr(inside + (candidates[s] >> 5), 1u << (candidates[s] & 31));
    }
    if (lane == 0) atomicOr(inside + (city >> 5), 1u << (city & 31));
    __syncwarp();

    // largest and least trail that is not listed
    float largest = 0.0f, least = __int_as_float(0x7F800000);
    int count = 0;
    for (int first = 0; first < words; first += 8) {
        float trails[8];
#pragma unroll
        for (int u = 0; u < 8; ++u) {
            const int j = 32 * (first + u) + lane;
            trails[u] = j < n ? row[j] : 0.0f;
        }
#pragma unroll
        for (int u = 0; u < 8; ++u) {
            if (first + u >= words) break;
            const bool outside = !((inside[first + u] >> lane) & 1u), raised = outside && trails[u] > common;
            if (outside && !raised) {
                largest = fmaxf(largest, trails[u]);
                least = fminf(least, trails[u]);
            }
            const unsigned found = __ballot_sync(EVERY_LANE, raised);
            if (found == 0u) continue;
            const int place = count + __popc(found & ((1u << lane) - 1u));
            if (raised) atomicAdd(counts + class_of(trails[u], common), 1);
            if (raised && place < 32) listed[place] = 32 * (first + u) + lane;
            count += __popc(found);
        }
    }
    __syncwarp();
    if (count > 32) {
        // the lowest class such that it and those above have at most 32 edges
        const int4 own = reinterpret_cast<const int4*>(counts)[lane];
        int above = own.x + own.y + own.z + own.w;
#pragma unroll
        for (int step = 1; step < 32; step <<= 1) {
            const int other = __shfl_down_sync(EVERY_LANE, above, step);
            if (lane + step < 32) above += other;
        }
        const int from[4] = {above, above - own.x, above - own.x - own.y, above - own.x - own.y - own.z};
        int lowest = CLASSES;
#pragma unroll
        for (int c = 3; c >= 0; --c) {
            if (from[c] <= 32) lowest = 4 * lane + c;
        }
        lowest = static_cast<int>(warp_min(static_cast<unsigned>(lowest)));
        listed[lane] = NONE;
        __syncwarp();
        count = 0;
#pragma unroll 4
        for (int w = 0; w < words; ++w) {
            const int j = 32 * w + lane;
            const float trail = j < n ? row[j] : 0.0f;
            const bool raised = !((inside[w] >> lane) & 1u) && trail > common;
            const bool strong = raised && class_of(trail, common) >= lowest;
            const unsigned found = __ballot_sync(EVERY_LANE, strong);
            if (strong) listed[count + __popc(found & ((1u << lane) - 1u))] = j;
            count += __popc(found);
            if (raised && !strong) {
                largest = fmaxf(largest, trail);
                least = fminf(least, trail);
            }
        }
        __syncwarp();
    }
    largest = warp_max(largest);
    return Outside{listed[lane], largest, -warp_max(-least) >= largest};
}

#endif

// Compute the weights of a city's row, one warp per block. tau (n, n) or (n, k); neighbours, candidate_eta_beta (n, k);
// common: the trail that most edges share. factors (n, STRIDE): w / largest w, or with RACE its inverse.
//
// -DDENSE: bound (n,) and raised (n, 32), padded with the city; shared memory of ceil(n / 32) words.
// -DREST: rest_sums (n,) of eta^beta over all cities that are not candidates; ids (n, STRIDE) of the row; spares
// (n, 32); inverses (n,): row scale / weight of spare edges and rest; rests (n,).
extern "C" __global__ void __launch_bounds__(32)
    weigh_rows(const float* tau, const int* neighbours, const double* candidate_eta_beta, CITIES_PARAMETERS,
               float alpha, float beta, float shortest, float common, int k, float* factors, float* bound, Node* raised,
               const double* rest_sums, Node* ids, Spare* spares, float* inverses, Rest* rests) {
    const int city = blockIdx.x, lane = lane_id();
    const int* own_neighbours = neighbours + static_cast<size_t>(city) * k;
    // candidates, then raised edges; NONE has weight -1, below all others
    constexpr int ITEMS = SLOTS + REST;
    int items[ITEMS];
    float trails[SLOTS];
    double etas[SLOTS];
#pragma unroll
    for (int s = 0; s < SLOTS; ++s) {
        const int slot = 32 * s + lane;
        items[s] = slot < k ? own_neighbours[slot] : NONE;
    }
#pragma unroll
    for (int s = 0; s < SLOTS; ++s) {
        const size_t place = static_cast<size_t>(city) * k + 32 * s + lane;
        if (items[s] == NONE) continue;
        trails[s] = DENSE ? tau[static_cast<size_t>(city) * n + items[s]] : tau[place];
        etas[s] = candidate_eta_beta[place];
    }
#if DENSE
    extern __shared__ unsigned inside[];
    const float* row = tau + static_cast<size_t>(city) * n;
    const Outside outside = find_outside(row, items, n, city, common, inside);
    raised[32 * static_cast<size_t>(city) + lane] =
        static_cast<Node>(outside.raised == NONE ? city : outside.raised);
    if (lane == 0) bound[city] = outside.bound;
#endif
    double weights[ITEMS];
    double largest = 0.0;
#pragma unroll
    for (int s = 0; s < SLOTS; ++s) {
        weights[s] = items[s] == NONE ? -1.0 : power(trails[s], alpha) * etas[s];
        largest = fmax(largest, weights[s]);
    }
#if REST
    const Cities cities = CITIES;
    const Exponents exponents{alpha, beta, shortest};
    items[SLOTS] = outside.raised;
    weights[SLOTS] = -1.0;
    if (outside.raised != NONE) {
        weights[SLOTS] = weight_of(cities, row[outside.raised], city, outside.raised, exponents);
    }
    largest = fmax(largest, weights[SLOTS]);
    // ranks of the items by weight, ties by index
    int ranks[ITEMS];
    const bool in_order = !__any_sync(EVERY_LANE, outside.raised != NONE);
#pragma unroll
    for (int s = 0; s < ITEMS; ++s) ranks[s] = in_order ? 32 * s + lane : 0;
    if (!in_order) {
#pragma unroll
        for (int t = 0; t < ITEMS; ++t) {
            for (int l = 0; l < 32; ++l) {
                const double other = __shfl_sync(EVERY_LANE, weights[t], l);
#pragma unroll
                for (int s = 0; s < ITEMS; ++s) {
                    const bool before = t < s || (t == s && l < lane);
                    ranks[s] += other > weights[s] || (other == weights[s] && before);
                }
            }
        }
    }
    double heaviest_spare = 0.0;
    int spare_count = 0;
#pragma unroll
    for (int s = 0; s < ITEMS; ++s) {
        const bool spare = ranks[s] >= STRIDE && weights[s] > 0.0;
        if (spare) heaviest_spare = fmax(heaviest_spare, weights[s]);
        spare_count += __popc(__ballot_sync(EVERY_LANE, spare));
    }
    heaviest_spare = warp_max(heaviest_spare);
    const double rest = rest_sums[city] * power(outside.bound, alpha);
    const double spare_sum = spare_count * heaviest_spare;  // upper bound: each counts as the heaviest
    largest = fmax(largest, rest + spare_sum);
#else
    static_cast<void>(coords), static_cast<void>(matrix), static_cast<void>(points), static_cast<void>(table);
#endif
    largest = warp_max(largest);
#pragma unroll
    for (int s = 0; s < ITEMS; ++s) {
#if REST
        const int place = ranks[s];
#else
        const int place = 32 * s + lane;
#endif
        const double w = fmax(weights[s], 0.0);
        if (place < STRIDE) {
            const size_t e = static_cast<size_t>(city) * STRIDE + place;
#if RACE
            factors[e] = inverse_of(w, largest);
#else
            factors[e] = share_of(w, largest);
#endif
#if REST
            ids[e] = static_cast<Node>(items[s] == NONE ? city : items[s]);
        } else if (w > 0.0) {
            spares[32 * static_cast<size_t>(city) + place - STRIDE] =
                Spare{static_cast<float>(w / heaviest_spare), items[s]};
#endif
        }
    }
#if REST
    if (lane == 0) {
        const double sum = rest + spare_sum;
        inverses[city] = inverse_of(sum, largest);
        rests[city] = Rest{sum > 0.0 ? static_cast<float>(spare_sum / sum) : 0.0f, spare_count, outside.bound,
                           static_cast<int>(outside.even && in_order)};
    }
#endif
}
