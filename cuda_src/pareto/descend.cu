// Shorter tours under one weighted sum each: local search by chains of up to three exchanges, and kicks that are taken
// back unless they help. A block shortens one tour: its threads look from up to 16 cities that wait, in both directions,
// each at some of the edges that may join first; the chain that gains most is made by the first warp.

#include "device/philox.cuh"
#include "device/relaxed.cuh"
#include "device/warp.cuh"
#include "pareto/chains.cuh"

#ifndef THREADS
#define THREADS 256
#endif

constexpr int WARPS = THREADS / 32;
constexpr int EXCHANGES = 3;
constexpr int LONGEST = 10;            // cities of each of the three stretches that a kick puts in another order
constexpr double ROUNDING = 1e-9;      // of a tour's length: what is no gain
constexpr int CITIES_AT_ONCE = 16;

extern __shared__ uint4 shared_memory[];

// The best chain that a warp has found; exchanges 0: none.
struct Gain {
    double change;
    int item;  // city, direction and candidate by which its threads share the work
    int exchanges;
    Four taken;
};

// What all threads of a block look at.
struct Shared {
    Gain gains[WARPS];
    int head, count;       // of the ring
    unsigned gaining;      // by bit: of the cities that are looked from, those that begin a chain which gains
    int ends;              // whether to end: the host says so
    double change;         // of the length, since the last kick
};

// One tour under change. The first warp changes it and its ring; others wait.
struct Descent {
    Costs costs;
    Weights weights;
    Tour tour;
    unsigned short* moved;   // (n,) room
    unsigned short* ring;    // (n,) cities whose edges have changed since they were looked at, oldest first
    unsigned char* waiting;  // (n,) whether a city is in the ring
    Shared& shared;
    double tiny;
    const int* halt;

    __device__ __forceinline__ double cost(int i, int j) const { return weights.sum(costs.between(i, j)); }

    // Let a city wait, unless it does. By one warp.
    __device__ __forceinline__ void enlist(int city) const {
        __syncwarp();
        if (lane_id() == 0 && waiting[city] == 0) {
            const int at = shared.head + shared.count;
            waiting[city] = 1;
            ring[at < tour.n ? at : at - tour.n] = static_cast<unsigned short>(city);
            ++shared.count;
        }
        __syncwarp();
    }

    __device__ __forceinline__ int waiting_city(int i) const {
        const int at = shared.head + i;
        return ring[at < tour.n ? at : at - tour.n];
    }

    // The first chain that gains from a city, by one of the candidates of its edge's other end.
    __device__ __forceinline__ Gain look(int item) const {
        const int pair = item / costs.c, i = 2 * (item - pair * costs.c), city = waiting_city(pair >> 1);
        const bool forward = (pair & 1) == 0;
        const int p = tour.place[city];
        const auto cost_at = [this](int q) { return cost(tour.order[q], tour.order[tour.next(q)]); };
        Way way;
        way.start(tour, city, forward, i, i + 2, cost_at(forward ? p : tour.previous(p)));
        while (way.opened > 0) {
            double change = 0.0;
            const int exchanges = step(way, costs, weights, tour, cost_at, EXCHANGES, 0.0, change);
            if (exchanges == 0 || change >= -tiny) continue;
            int t[2 * MOST_EXCHANGES];
            Stretches parts;
            const Four by = taken(way, exchanges);
            cities_of(costs, tour, city, forward, exchanges, by, t);
            if (closes(tour, exchanges, t, parts)) return {change, item, exchanges, by};
        }
        return {0.0, 0, 0, {0}};
    }

    // Make the best chain that warps have found, if any. By one warp.
    __device__ __forceinline__ void make_best(int some) const {
        for (int i = lane_id(); i < some; i += 32) waiting[waiting_city(i)] = 0;
        Gain best = shared.gains[0];
        for (int w = 1; w < WARPS; ++w) {
            const Gain& other = shared.gains[w];
            if (other.change < best.change || (other.change == best.change && other.item < best.item)) best = other;
        }
        const int first = shared.head;
        __syncwarp();
        if (lane_id() == 0) {
            shared.head = first + some < tour.n ? first + some : first + some - tour.n;
            shared.count -= some;
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
        rejoin(tour, parts, moved);
        // Behind those that are left in the ring come cities that were taken from it: they are read before.
        const int taken_city = lane_id() < some ? city_at(lane_id()) : 0;
        for (unsigned left = shared.gaining; left != 0u; left &= left - 1u)
            enlist(__shfl_sync(EVERY_LANE, taken_city, __ffs(static_cast<int>(left)) - 1));
        for (int l = 0; l < 2 * best.exchanges; ++l) enlist(t[l]);
        if (lane_id() == 0) shared.change += best.change;
    }

    // Make chains that gain until no city begins one, or the host wants an end. By all threads.
    __device__ __forceinline__ void settle() const {
        for (;;) {
            if (threadIdx.x == 0) {
                shared.gaining = 0u;
                shared.ends = load_relaxed_system(halt);
            }
            __syncthreads();
            if (shared.count == 0 || shared.ends != 0) return;
            const int some = min(shared.count, CITIES_AT_ONCE), items = 2 * some * costs.c;
            Gain best = {0.0, 0, 0, {0}};
            for (int item = static_cast<int>(threadIdx.x); item < items; item += THREADS) {
                const Gain one = look(item);
                if (one.exchanges == 0) continue;
                atomicOr(&shared.gaining, 1u << (item / (2 * costs.c)));
                if (one.change < best.change) best = one;
            }
            const double least = -warp_max(-best.change);
            // of equal ones the first
            const int item = static_cast<int>(warp_min(best.change == least && best.exchanges > 0 ? best.item : items));
            if (item < items ? best.exchanges > 0 && best.item == item : lane_id() == 0)
                shared.gains[threadIdx.x / 32] = best;
            __syncthreads();
            if (threadIdx.x < 32) make_best(some);
        }
    }

    // Put three stretches that follow each other in the opposite order: a double bridge. By one warp.
    __device__ __forceinline__ void kick(uint4 words) const {
        const int n = tour.n, lane = lane_id(), longest = min(LONGEST, (n - 2) / 3);
        const int start = below(words.x, n), l1 = 1 + below(words.y, longest), l2 = 1 + below(words.z, longest);
        const int l3 = 1 + below(words.w, longest), whole = l1 + l2 + l3;
        const auto at = [=](int i) { return start + i < n ? start + i : start + i - n; };
        const int before = tour.order[tour.previous(start)], behind = tour.order[at(whole)];
        const int b1 = tour.order[start], b2 = tour.order[at(l1 - 1)], c1 = tour.order[at(l1)];
        const int c2 = tour.order[at(l1 + l2 - 1)], d1 = tour.order[at(l1 + l2)], d2 = tour.order[at(whole - 1)];
        // whole <= 30: a lane has one of the cities
        const int from = lane < l3 ? l1 + l2 + lane : lane < l3 + l2 ? l1 + lane - l3 : lane - l3 - l2;
        const int city = tour.order[at(lane < whole ? from : 0)];
        __syncwarp();
        if (lane < whole) {
            tour.order[at(lane)] = static_cast<unsigned short>(city);
            tour.place[city] = static_cast<unsigned short>(at(lane));
        }
        __syncwarp();
        const int ends[8] = {before, b1, b2, c1, c2, d1, d2, behind};
        for (int i = 0; i < 8; ++i) enlist(ends[i]);
        const double joined = cost(before, d1) + cost(d2, c1) + cost(c2, b1) + cost(b2, behind);
        if (lane == 0)
            shared.change = joined - (cost(before, b1) + cost(b2, c1) + cost(c2, d1) + cost(d2, behind));
    }
};

// Shorten tours (gridDim.x, n), each under its weights (gridDim.x, OBJECTIVES), in place. Shared memory: 11 n bytes.
// Ends soon, with the tours at hand, when *halt is not 0.
extern "C" __global__ void __launch_bounds__(THREADS, 3)
    descend_tours(COSTS_PARAMETERS, unsigned short* tours, const double* weights, int kicks, unsigned key_low,
                  unsigned key_high, const int* halt) {
    __shared__ Shared shared;
    __shared__ double lengths[WARPS];
    unsigned short* kept = tours + static_cast<size_t>(blockIdx.x) * n;  // (n,) the tour to go back to
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
        const int city = kept[p];
        own[p] = own[3 * n + p] = static_cast<unsigned short>(city);
        own[n + city] = static_cast<unsigned short>(p);
        descent.waiting[city] = 1;
        length += descent.cost(city, kept[p + 1 < n ? p + 1 : 0]);
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
    const Key key = {key_low, key_high};
    bool over = false;
    for (int i = -1; i < kicks && !over; ++i) {  // at first none
        if (i >= 0 && threadIdx.x < 32) descent.kick(random_words(key, i, STREAM_KICKS, blockIdx.x));
        descent.settle();
        const bool better = i < 0 || shared.change < descent.tiny;
        over = shared.ends != 0;
        for (int p = threadIdx.x; p < n; p += THREADS) {
            if (better) {
                kept[p] = own[p];
            } else {
                own[p] = kept[p];
                own[n + kept[p]] = static_cast<unsigned short>(p);
            }
        }
        __syncthreads();
    }
}
