// Pareto local search: enumerate the chains of several members of a front and collect those that improve the front.
//
// L. Paquete, M. Chiarandini and T. Stuetzle, "Pareto local optimum sets in the biobjective traveling salesman problem"
// (2004). A block explores a part of one member's chains. A work item is a first removed edge and a first added edge; a
// thread enumerates its chains depth first. Each warp collects the few chains that are short enough under the member's
// weights, and runs the expensive check on 32 of them at a time.

#include "device/relaxed.cuh"
#include "device/warp.cuh"
#include "pareto/children.cuh"

constexpr int BLOCKS = OBJECTIVES == 2 ? 6 : 5;  // per multiprocessor, limited by registers

constexpr int WARPS = THREADS / 32;
constexpr int COLLECTED = 64;  // maximum collected chains of a warp: 31, and up to 32 found in one step
constexpr int STEPS_PER_CHECK = 256;  // between two checks for halt

extern __shared__ uint4 shared_memory[];

// Explore gridDim.x / parts members from first_member on, by chains of at most `most` exchanges. Of all members: tours,
// places (.., n); lengths, weights (.., OBJECTIVES); begin, slack, exchanges (..). seen (seen_mask + 1,);
// unit (OBJECTIVES,); keys, codes, slots and counts: see ChildTable. Shared memory: 8 n + 4 n bytes, rounded up to 16,
// and 8 COLLECTED per warp.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    explore_members(COSTS_PARAMETERS, unsigned short* tours, unsigned short* places, const double* lengths,
                    const int* begin, const double* weights, const double* slack, const int* exchanges,
                    FRONT_PARAMETERS, const unsigned long long* seen, unsigned seen_mask, const double* unit,
                    int first_member, int parts, int most, unsigned long long* keys, unsigned long long* codes,
                    int* slots, int* counts, unsigned mask, int limit, int step_bits, int index_bits, const int* halt) {
    __shared__ int next_item;
    const int lane = lane_id(), warp = warp_of_block();
    const int member = first_member + static_cast<int>(blockIdx.x) / parts, part = static_cast<int>(blockIdx.x) % parts;
    double* edge_costs = reinterpret_cast<double*>(shared_memory);  // (n,) cost of the edge after each position
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
    const ChildTable children = {keys, codes, slots, counts, mask, limit};
    const int items = 2 * n * c;
    if (threadIdx.x == 0)  // blocks that start after a halt do nothing
        next_item = load_relaxed_system(halt) != 0 || children.full() ? items : 0;
    __syncthreads();

    const Front front = FRONT;
    const ChainCode coding = {step_bits, index_bits};
    const double* const before = lengths + OBJECTIVES * member;
    const int first_city = begin[member];  // at which the member's chains start
    const auto check = [&](unsigned long long code) {
        const int step = coding.step(code), exchanges = coding.exchanges(code);
        int city = first_city + (step >> 1);
        city -= city < n ? 0 : n;
        int t[2 * MOST_EXCHANGES];
        cities_of(costs, tour, city, (step & 1) == 0, exchanges, coding.taken(code), t);
        const Lengths own_lengths = lengths_of(costs, before, exchanges, t);
        if (front.covers(own_lengths)) return;
        const unsigned long long key = key_of(own_lengths, unit);
        if (has_key(seen, seen_mask, key) || children.contains_better(key, code)) return;
        Stretches stretches;
        if (closes(tour, exchanges, t, stretches)) children.add(key, code);
    };
    const auto cost_at = [=](int p) { return edge_costs[p]; };
    const double own_slack = slack[member];
    const int own_most = min(most, exchanges[member]);
    ChainSearch chains;
    chains.opened = 0;
    int began = 0, count = 0;  // start of the lane's chains; number of chains that the warp has collected
    bool more = true;
    for (int steps = 1;; ++steps) {
        const bool idle = more && chains.opened == 0;
        const unsigned waiting = __ballot_sync(EVERY_LANE, idle);
        if (waiting != 0u) {
            int base = 0;
            if (lane == 0) base = atomicAdd(&next_item, __popc(waiting));
            base = __shfl_sync(EVERY_LANE, base, 0);
            const int item = (base + __popc(waiting & ((1u << lane) - 1u))) * parts + part;
            if (idle) {
                more = item < items;
                if (more) {
                    began = item / c;
                    const int i = 2 * (item - began * c);
                    int city = first_city + (began >> 1);
                    city -= city < n ? 0 : n;
                    const bool forward = (began & 1) == 0;
                    const int p = tour.place[city];
                    chains.start(tour, city, forward, i, i + 2, edge_costs[forward ? p : tour.previous(p)]);
                }
            }
        }
        double change = 0.0;
        int found = 0;
        if (chains.opened > 0)
            found = next_chain(chains, costs, own_weights, tour, cost_at, own_most, own_slack, change);
        const bool wanted = found > 0 && change < own_slack;
        const unsigned pending = __ballot_sync(EVERY_LANE, wanted);
        if (wanted)
            collected[count + __popc(pending & ((1u << lane) - 1u))] =
                coding.code(member - first_member, began, found, taken(chains, found));
        count += __popc(pending);
        const bool done = !__any_sync(EVERY_LANE, chains.opened > 0 || more);
        __syncwarp();
        if (count >= 32 || (done && count > 0)) {
            const int checked = min(count, 32);
            count -= checked;
            if (lane < checked) check(collected[count + lane]);
            __syncwarp();
        }
        if (done && count == 0) return;
        if (steps % STEPS_PER_CHECK == 0) {
            int end = 0;
            if (lane == 0) end = load_relaxed_system(halt) | static_cast<int>(children.full());
            if (__shfl_sync(EVERY_LANE, end, 0) != 0) return;
        }
    }
}

// Write the children in any order and free their slots: child_codes (..,), child_chains (.., 2 MOST_EXCHANGES) and
// child_lengths (.., OBJECTIVES). Writes none if the table was full. The other arrays are those of explore_members.
extern "C" __global__ void gather_children(
    COSTS_PARAMETERS, unsigned short* tours, unsigned short* places, const double* lengths, const int* begin, int first,
    unsigned long long* keys, unsigned long long* codes, int* slots, int* counts, int step_bits, int index_bits,
    unsigned long long* child_codes, unsigned short* child_chains, double* child_lengths) {
    const Costs costs = COSTS;
    const ChainCode coding = {step_bits, index_bits};
    const int found = counts[1] != 0 ? 0 : counts[0], threads = static_cast<int>(gridDim.x * blockDim.x);
    for (int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); i < found; i += threads) {
        const int at = slots[i];
        const unsigned long long code = ~codes[at];
        keys[at] = codes[at] = FREE;
        const int member = first + coding.member(code), step = coding.step(code), exchanges = coding.exchanges(code);
        const Tour tour = {tours + static_cast<size_t>(member) * n, places + static_cast<size_t>(member) * n, n};
        int t[2 * MOST_EXCHANGES] = {0};
        const int city = begin[member] + (step >> 1);
        cities_of(costs, tour, city < n ? city : city - n, (step & 1) == 0, exchanges, coding.taken(code), t);
        const Lengths own = lengths_of(costs, lengths + OBJECTIVES * member, exchanges, t);
        child_codes[i] = code;
#pragma unroll
        for (int l = 0; l < 2 * MOST_EXCHANGES; ++l)
            child_chains[2 * MOST_EXCHANGES * i + l] = static_cast<unsigned short>(l < 2 * exchanges ? t[l] : 0);
#pragma unroll
        for (int q = 0; q < OBJECTIVES; ++q) child_lengths[static_cast<size_t>(OBJECTIVES) * i + q] = own.of[q];
    }
}
