// Pareto local search: every chain from many members of a front side by side, and which of them lead to what it lacks.
//
// L. Paquete, M. Chiarandini and T. Stuetzle, "Pareto local optimum sets in the biobjective traveling salesman problem"
// (2004). A block looks at a part of one member's chains. Its threads take from them in turn, by the edge that leaves
// first and the one that joins first, and go through what follows depth first. Chains that are short enough under the
// member's weights are collected by each warp, and looked at closely 32 at a time: they are few, and take longest.

#include "device/relaxed.cuh"
#include "device/warp.cuh"
#include "pareto/finds.cuh"

#ifndef THREADS
#define THREADS 128
#endif
#ifndef BLOCKS
#define BLOCKS (OBJECTIVES == 2 ? 6 : 5)  // of a multiprocessor: as many as have registers enough
#endif

constexpr int WARPS = THREADS / 32;
constexpr int COLLECTED = 64;  // chains that a warp holds: up to 31 and what its lanes find in one step
constexpr int STEPS_A_LOOK = 256;  // between two looks whether to end

extern __shared__ uint4 shared_memory[];

// places (m, n) of the cities on tours (m, n).
extern "C" __global__ void place_members(const unsigned short* tours, int n, int m, unsigned short* places) {
    const size_t threads = static_cast<size_t>(gridDim.x) * blockDim.x, all = static_cast<size_t>(m) * n;
    for (size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < all; i += threads)
        places[i - i % n + tours[i]] = static_cast<unsigned short>(i % n);
}

// What a warp looks closely at.
struct Closely {
    const Costs& costs;
    const Tour& tour;
    const double* before;  // lengths of the member
    const Front& front;
    const unsigned long long* met;
    unsigned met_mask;
    const double* unit;
    const Naming& naming;
    const Finds& finds;
    int begin;  // city from which the member's chains are counted

    __device__ __forceinline__ void operator()(unsigned long long name) const {
        const int step = naming.step(name), exchanges = naming.exchanges(name);
        int city = begin + (step >> 1);
        city -= city < tour.n ? 0 : tour.n;
        int t[2 * MOST_EXCHANGES];
        cities_of(costs, tour, city, (step & 1) == 0, exchanges, naming.taken(name), t);
        const Lengths lengths = lengths_of(costs, before, exchanges, t);
        if (front.covers(lengths)) return;
        const unsigned long long key = key_of(lengths, unit);
        if (has_key(met, met_mask, key) || finds.has(key, name)) return;
        Stretches parts;
        if (closes(tour, exchanges, t, parts)) finds.add(key, name);
    }
};

// Look at the chains of gridDim.x / parts members from first_member on that begin at the first ``starts`` cities from
// ``begin`` on. tours and places (.., n), lengths and weights (.., OBJECTIVES), slack, exchanges and begin (..);
// at most ``most`` exchanges. Shared memory: 8 n + 4 n bytes, rounded up to 16, and 8 COLLECTED for each warp.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    look_at_members(COSTS_PARAMETERS, unsigned short* tours, unsigned short* places, const double* lengths,
                    const double* weights, const double* slack, const int* exchanges, const int* begin,
                    int first_member, int parts, int starts, int most, FRONT_PARAMETERS, const unsigned long long* met, unsigned met_mask, const double* unit,
                    unsigned long long* keys, unsigned long long* names, int* slots, int* counts, unsigned mask,
                    int limit, int step_bits, int index_bits, const int* halt) {
    __shared__ int taken_so_far;
    const int lane = lane_id(), warp = warp_of_block();
    const int member = first_member + static_cast<int>(blockIdx.x) / parts, part = static_cast<int>(blockIdx.x) % parts;
    double* edge_costs = reinterpret_cast<double*>(shared_memory);  // (n,) of the tour's edge behind each place
    unsigned long long* collected = reinterpret_cast<unsigned long long*>(edge_costs + n) + COLLECTED * warp;
    unsigned short* own = reinterpret_cast<unsigned short*>(reinterpret_cast<unsigned long long*>(edge_costs + n) +
                                                            COLLECTED * WARPS);
    const Costs costs = COSTS;
    const Tour tour = {own, own + n, n};
    const Weights own_weights(weights + OBJECTIVES * member);
    for (int p = threadIdx.x; p < n; p += THREADS) {
        const unsigned short* row = tours + static_cast<size_t>(member) * n;
        tour.order[p] = row[p];
        tour.place[p] = places[static_cast<size_t>(member) * n + p];
        edge_costs[p] = own_weights.sum(costs.between(row[p], row[tour.next(p)]));
    }
    const Finds finds = {keys, names, slots, counts, mask, limit};
    const int items = 2 * starts * c;
    if (threadIdx.x == 0)  // many blocks end before they look again whether to: those take nothing on
        taken_so_far = load_relaxed_system(halt) != 0 || finds.full() ? items : 0;
    __syncthreads();

    const Front front = FRONT;
    const Naming naming = {step_bits, index_bits};
    const Closely look_closely = {costs, tour, lengths + OBJECTIVES * member, front,  met,
                                  met_mask, unit, naming, finds, begin[member]};
    const auto cost_at = [=](int p) { return edge_costs[p]; };
    const double own_slack = slack[member];
    const int own_most = min(most, exchanges[member]);
    Way way;
    way.opened = 0;
    int began = 0, count = 0;  // where the lane's chains begin; how many the warp holds
    bool more = true;
    for (int steps = 1;; ++steps) {
        const bool idle = more && way.opened == 0;
        const unsigned waiting = __ballot_sync(EVERY_LANE, idle);
        if (waiting != 0u) {
            int base = 0;
            if (lane == 0) base = atomicAdd(&taken_so_far, __popc(waiting));
            base = __shfl_sync(EVERY_LANE, base, 0);
            const int item = (base + __popc(waiting & ((1u << lane) - 1u))) * parts + part;
            if (idle) {
                more = item < items;
                if (more) {
                    began = item / c;
                    const int i = 2 * (item - began * c);
                    int city = look_closely.begin + (began >> 1);
                    city -= city < n ? 0 : n;
                    const bool forward = (began & 1) == 0;
                    const int p = tour.place[city];
                    way.start(tour, city, forward, i, i + 2, edge_costs[forward ? p : tour.previous(p)]);
                }
            }
        }
        double change = 0.0;
        int found = 0;
        if (way.opened > 0) found = step(way, costs, own_weights, tour, cost_at, own_most, own_slack, change);
        const bool wanted = found > 0 && change < own_slack;
        const unsigned pending = __ballot_sync(EVERY_LANE, wanted);
        if (wanted)
            collected[count + __popc(pending & ((1u << lane) - 1u))] =
                naming.name(member - first_member, began, found, taken(way, found));
        count += __popc(pending);
        const bool done = !__any_sync(EVERY_LANE, way.opened > 0 || more);
        __syncwarp();
        if (count >= 32 || (done && count > 0)) {
            const int some = min(count, 32);
            count -= some;
            if (lane < some) look_closely(collected[count + lane]);
            __syncwarp();
        }
        if (done && count == 0) return;
        if (steps % STEPS_A_LOOK == 0) {
            int end = 0;
            if (lane == 0) end = load_relaxed_system(halt) | static_cast<int>(finds.full());
            if (__shfl_sync(EVERY_LANE, end, 0) != 0) return;
        }
    }
}

// Hand the finds over, in any order, and free their slots: names, chains (.., 2 MOST_EXCHANGES) and lengths
// (.., OBJECTIVES). None where there were more than there is room for.
extern "C" __global__ void gather_finds(COSTS_PARAMETERS, unsigned short* tours, unsigned short* places,
                                        const double* lengths, const int* begin, int first, unsigned long long* keys,
                                        unsigned long long* names, int* slots, int* counts, int step_bits, int index_bits,
                                        unsigned long long* found_names, unsigned short* found_chains,
                                        double* found_lengths) {
    const Costs costs = COSTS;
    const Naming naming = {step_bits, index_bits};
    const int found = counts[1] != 0 ? 0 : counts[0], threads = static_cast<int>(gridDim.x * blockDim.x);
    for (int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); i < found; i += threads) {
        const int at = slots[i];
        const unsigned long long name = ~names[at];
        keys[at] = names[at] = FREE;
        const int member = first + naming.member(name), step = naming.step(name), exchanges = naming.exchanges(name);
        const Tour tour = {tours + static_cast<size_t>(member) * n, places + static_cast<size_t>(member) * n, n};
        int t[2 * MOST_EXCHANGES] = {0};
        const int city = begin[member] + (step >> 1);
        cities_of(costs, tour, city < n ? city : city - n, (step & 1) == 0, exchanges, naming.taken(name), t);
        const Lengths own = lengths_of(costs, lengths + OBJECTIVES * member, exchanges, t);
        found_names[i] = name;
#pragma unroll
        for (int l = 0; l < 2 * MOST_EXCHANGES; ++l)
            found_chains[2 * MOST_EXCHANGES * i + l] = static_cast<unsigned short>(l < 2 * exchanges ? t[l] : 0);
#pragma unroll
        for (int q = 0; q < OBJECTIVES; ++q) found_lengths[static_cast<size_t>(OBJECTIVES) * i + q] = own.of[q];
    }
}

// Write children (gridDim.x, n): the owner's tour with its chain made. One warp a block. Shared memory: 6 n bytes.
extern "C" __global__ void __launch_bounds__(32)
    follow_chains(const unsigned short* tours, int n, const int* owners, const int* exchanges,
                  const unsigned short* chains, unsigned short* children) {
    unsigned short* own = reinterpret_cast<unsigned short*>(shared_memory);
    const Tour tour = {own, own + n, n};
    const unsigned short* row = tours + static_cast<size_t>(owners[blockIdx.x]) * n;
    for (int p = lane_id(); p < n; p += 32) {
        tour.order[p] = row[p];
        tour.place[row[p]] = static_cast<unsigned short>(p);
    }
    __syncwarp();
    int t[2 * MOST_EXCHANGES];
    for (int l = 0; l < 2 * MOST_EXCHANGES; ++l) t[l] = chains[2 * MOST_EXCHANGES * blockIdx.x + l];
    Stretches parts;
    if (closes(tour, exchanges[blockIdx.x], t, parts)) rejoin(tour, parts, own + 2 * n);
    for (int p = lane_id(); p < n; p += 32) children[static_cast<size_t>(blockIdx.x) * n + p] = tour.order[p];
}
