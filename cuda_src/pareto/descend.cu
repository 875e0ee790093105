// Iterated local search of tours, each under its weighted sum: chains of up to three exchanges, and kicks that are
// undone if they lengthen the tour. A block improves one tour. Its threads search from up to 16 queued cities in both
// directions, each with some candidates for the first added edge. The first warp applies the chain with the largest
// gain.

#include "device/philox.cuh"
#include "device/relaxed.cuh"
#include "device/warp.cuh"
#include "pareto/chains.cuh"

constexpr int WARPS = THREADS / 32;
constexpr int EXCHANGES = 3;
constexpr int LONGEST = 10;        // maximum cities of each of the three stretches that a kick permutes
constexpr double ROUNDING = 1e-9;  // minimum gain, as a share of the tour's length
constexpr int CITIES_PER_STEP = 16;

extern __shared__ uint4 shared_memory[];

// The best chain of a warp; exchanges 0: none.
struct BestChain {
    double change;
    int item;  // work item: city, direction and candidate
    int exchanges;
    Indices taken;
};

// State shared by the threads of a block.
struct BlockState {
    BestChain gains[WARPS];
    int head, count;   // of the ring
    unsigned gaining;  // bit i: searched city i begins a chain with a gain
    int halted;        // not 0: the host has halted the search
    double change;     // of the length, since the last kick
};

// One tour under improvement. The first warp changes it and its queue; the others wait.
struct Descent {
    Costs costs;
    Weights weights;
    Tour tour;
    unsigned short* moved;  // (n,) workspace
    unsigned short* ring;   // (n,) queue of cities whose edges have changed, oldest first
    unsigned char* queued;  // (n,) 1 if a city is in the queue
    BlockState& shared;
    double tiny;      // minimum gain
    const int* halt;  // (1,) set by the host

    __device__ __forceinline__ double cost(int i, int j) const { return weights.sum(costs.between(i, j)); }

    // Append a city to the queue unless it is queued. Called by one warp.
    __device__ __forceinline__ void enqueue(int city) const {
        __syncwarp();
        if (lane_id() == 0 && queued[city] == 0) {
            const int at = shared.head + shared.count;
            queued[city] = 1;
            ring[at < tour.n ? at : at - tour.n] = static_cast<unsigned short>(city);
            ++shared.count;
        }
        __syncwarp();
    }

    __device__ __forceinline__ int queued_city(int i) const {
        const int at = shared.head + i;
        return ring[at < tour.n ? at : at - tour.n];
    }

    // The first chain with a gain for a work item.
    __device__ __forceinline__ BestChain search_from(int item) const {
        const int pair = item / costs.c, i = 2 * (item - pair * costs.c), city = queued_city(pair >> 1);
        const bool forward = (pair & 1) == 0;
        const int p = tour.place[city];
        const auto cost_at = [this](int q) { return cost(tour.order[q], tour.order[tour.next(q)]); };
        ChainSearch chains;
        chains.start(tour, city, forward, i, i + 2, cost_at(forward ? p : tour.previous(p)));
        while (chains.opened > 0) {
            double change = 0.0;
            const int exchanges = next_chain(chains, costs, weights, tour, cost_at, EXCHANGES, 0.0, change);
            if (exchanges == 0 || change >= -tiny) continue;
            int t[2 * MOST_EXCHANGES];
            Stretches parts;
            const Indices by = taken(chains, exchanges);
            cities_of(costs, tour, city, forward, exchanges, by, t);
            if (closes(tour, exchanges, t, parts)) return {change, item, exchanges, by};
        }
        return {0.0, 0, 0, {0}};
    }

    // Remove `taken_count` cities from the queue and apply the best chain of all warps, if any. Called by one warp.
    __device__ __forceinline__ void apply_best(int taken_count) const {
        for (int i = lane_id(); i < taken_count; i += 32) queued[queued_city(i)] = 0;
        BestChain best = shared.gains[0];
        for (int w = 1; w < WARPS; ++w) {
            const BestChain& other = shared.gains[w];
            if (other.change < best.change || (other.change == best.change && other.item < best.item)) best = other;
        }
        const int first = shared.head;
        __syncwarp();
        if (lane_id() == 0) {
            shared.head = first + taken_count < tour.n ? first + taken_count : first + taken_count - tour.n;
            shared.count -= taken_count;
        }
        __syncwarp();
        if (best.exchanges == 0) return;
        const auto city_at = [=](int i) { return ring[first + i < tour.n ? first + i : first + i - tour.n]; };
        int t[2 * MOST_EXCHANGES];
        Stretches parts;
        const int pair = best.item / costs.c;
        cities_of(costs, tour, city_at(pair >> 1), (pair & 1) == 0, best.exchanges, best.taken, t);
        closes(tour, best.exchanges, t, parts);
        __syncwarp();
        apply_chain(tour, parts, moved);
        // read the cities taken from the queue before their slots are overwritten
        const int taken_city = lane_id() < taken_count ? city_at(lane_id()) : 0;
        for (unsigned left = shared.gaining; left != 0u; left &= left - 1u)
            enqueue(__shfl_sync(EVERY_LANE, taken_city, __ffs(static_cast<int>(left)) - 1));
        for (int l = 0; l < 2 * best.exchanges; ++l) enqueue(t[l]);
        if (lane_id() == 0) shared.change += best.change;
    }

    // Apply chains with a gain until the queue is empty or the host halts the search. Called by all threads.
    __device__ __forceinline__ void local_search() const {
        for (;;) {
            if (threadIdx.x == 0) {
                shared.gaining = 0u;
                shared.halted = load_relaxed_system(halt);
            }
            __syncthreads();
            if (shared.count == 0 || shared.halted != 0) return;
            const int taken_count = min(shared.count, CITIES_PER_STEP), items = 2 * taken_count * costs.c;
            BestChain best = {0.0, 0, 0, {0}};
            for (int item = static_cast<int>(threadIdx.x); item < items; item += THREADS) {
                const BestChain one = search_from(item);
                if (one.exchanges == 0) continue;
                atomicOr(&shared.gaining, 1u << (item / (2 * costs.c)));
                if (one.change < best.change) best = one;
            }
            const double least = -warp_max(-best.change);
            // ties: the lowest item
            const int item = static_cast<int>(warp_min(best.change == least && best.exchanges > 0 ? best.item : items));
            if (item < items ? best.exchanges > 0 && best.item == item : lane_id() == 0)
                shared.gains[threadIdx.x / 32] = best;
            __syncthreads();
            if (threadIdx.x < 32) apply_best(taken_count);
        }
    }

    // Reverse the order of three consecutive stretches: a double bridge. Called by one warp.
    __device__ __forceinline__ void kick(uint4 words) const {
        const int n = tour.n, lane = lane_id(), longest = min(LONGEST, (n - 2) / 3);
        const int start = below(words.x, n), l1 = 1 + below(words.y, longest), l2 = 1 + below(words.z, longest);
        const int l3 = 1 + below(words.w, longest), whole = l1 + l2 + l3;
        const auto at = [=](int i) { return start + i < n ? start + i : start + i - n; };
        const int before = tour.order[tour.previous(start)], behind = tour.order[at(whole)];
        const int b1 = tour.order[start], b2 = tour.order[at(l1 - 1)], c1 = tour.order[at(l1)];
        const int c2 = tour.order[at(l1 + l2 - 1)], d1 = tour.order[at(l1 + l2)], d2 = tour.order[at(whole - 1)];
        // whole <= 30: one city per lane
        const int from = lane < l3 ? l1 + l2 + lane : lane < l3 + l2 ? l1 + lane - l3 : lane - l3 - l2;
        const int city = tour.order[at(lane < whole ? from : 0)];
        __syncwarp();
        if (lane < whole) {
            tour.order[at(lane)] = static_cast<unsigned short>(city);
            tour.place[city] = static_cast<unsigned short>(at(lane));
        }
        __syncwarp();
        const int ends[8] = {before, b1, b2, c1, c2, d1, d2, behind};
        for (int i = 0; i < 8; ++i) enqueue(ends[i]);
        const double joined = cost(before, d1) + cost(d2, c1) + cost(c2, b1) + cost(b2, behind);
        if (lane == 0)
            shared.change = joined - (cost(before, b1) + cost(b2, c1) + cost(c2, d1) + cost(d2, behind));
    }
};

// Improve tours (gridDim.x, n), each under its weights (gridDim.x, OBJECTIVES), in place. Shared memory: 11 n bytes.
// If *halt, set by the host, is not 0, it ends soon with valid tours.
extern "C" __global__ void __launch_bounds__(THREADS, 3)
    descend_tours(COSTS_PARAMETERS, unsigned short* tours, const double* weights, int kicks, Key key, const int* halt) {
    __shared__ BlockState shared;
    __shared__ double lengths[WARPS];
    unsigned short* saved = tours + static_cast<size_t>(blockIdx.x) * n;  // (n,) the best tour so far
    unsigned short* own = reinterpret_cast<unsigned short*>(shared_memory);
    Descent descent = {COSTS,
                       Weights(weights + OBJECTIVES * blockIdx.x),
                       {own, own + n, n},
                       own + 2 * n,
                       own + 3 * n,
                       reinterpret_cast<unsigned char*>(own + 4 * n),
                       shared,
                       0.0,
                       halt};
    double length = 0.0;
    for (int p = threadIdx.x; p < n; p += THREADS) {
        const int city = saved[p];
        own[p] = own[3 * n + p] = static_cast<unsigned short>(city);
        own[n + city] = static_cast<unsigned short>(p);
        descent.queued[city] = 1;
        length += descent.cost(city, saved[p + 1 < n ? p + 1 : 0]);
    }
    length = warp_sum(length);
    if (lane_id() == 0) lengths[threadIdx.x / 32] = length;
    if (threadIdx.x == 0) {
        shared.head = 0;
        shared.count = n;
        shared.change = 0.0;
    }
    __syncthreads();
    for (int w = 0; w < WARPS; ++w) descent.tiny += ROUNDING * lengths[w];
    bool over = false;
    for (int i = -1; i < kicks && !over; ++i) {  // first without a kick
        if (i >= 0 && threadIdx.x < 32) descent.kick(random_words(key, i, STREAM_KICKS, blockIdx.x));
        descent.local_search();
        const bool better = i < 0 || shared.change < descent.tiny;
        over = shared.halted != 0;
        for (int p = threadIdx.x; p < n; p += THREADS) {
            if (better) {
                saved[p] = own[p];
            } else {
                own[p] = saved[p];
                own[n + saved[p]] = static_cast<unsigned short>(p);
            }
        }
        __syncthreads();
    }
}
