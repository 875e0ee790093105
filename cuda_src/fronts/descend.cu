// Shorter tours under one weighted sum each: local search by chains of up to three exchanges, and kicks that are taken
// back unless they help. A warp shortens one tour: its lanes look from 16 cities that wait, in both directions, and the
// chain that gains most is made by all of them.

#include "device/philox.cuh"
#include "device/relaxed.cuh"
#include "device/warp.cuh"
#include "fronts/chains.cuh"

constexpr int EXCHANGES = 3;
constexpr int LONGEST = 10;            // cities of each of the three stretches that a kick puts in another order
constexpr double ROUNDING = 1e-9;      // of a tour's length: what is no gain
constexpr int CITIES_AT_ONCE = 16;

extern __shared__ uint4 shared_memory[];

// One tour under change; all lanes hold the same scalars.
struct Descent {
    Costs costs;
    Weights weights;
    Tour tour;
    unsigned short* moved;   // (n,) room
    unsigned short* ring;    // (n,) cities whose edges have changed since they were looked at, oldest first
    unsigned char* waiting;  // (n,) whether a city is in the ring
    int head, count;
    double tiny;
    const int* halt;

    __device__ __forceinline__ double cost(int i, int j) const { return weights.sum(costs.between(i, j)); }

    // Let a city wait, unless it does.
    __device__ __forceinline__ void enlist(int city) {
        const int n = tour.n, at = head + count;
        const bool there = waiting[city] != 0;
        __syncwarp();
        if (!there && lane_id() == 0) {
            waiting[city] = 1;
            ring[at < n ? at : at - n] = static_cast<unsigned short>(city);
        }
        count += there ? 0 : 1;
        __syncwarp();
    }

    __device__ __forceinline__ bool ends() const {
        return __shfl_sync(EVERY_LANE, lane_id() == 0 ? load_relaxed_system(halt) : 0, 0) != 0;
    }

    // Make chains that gain until no city begins one; return the change in length.
    __device__ inline double settle() {
        const int n = tour.n, lane = lane_id();
        double total = 0.0;
        while (count > 0) {
            if (ends()) break;
            const int some = min(count, CITIES_AT_ONCE), at = head + (lane >> 1);
            const bool forward = (lane & 1) == 0, looks = (lane >> 1) < some;
            const int city = looks ? ring[at < n ? at : at - n] : 0;
            double change = 0.0;
            int found = 0;
            Four by = {0};
            if (looks) {
                const int p = tour.place[city];
                const auto cost_at = [this](int q) { return cost(tour.order[q], tour.order[tour.next(q)]); };
                Way way;
                way.start(tour, city, forward, 0, 2 * costs.c, cost_at(forward ? p : tour.previous(p)));
                while (way.opened > 0 && found == 0) {
                    double one = 0.0;
                    const int exchanges = step(way, costs, weights, tour, cost_at, EXCHANGES, 0.0, one);
                    if (exchanges == 0 || one >= -tiny) continue;
                    int t[2 * MOST_EXCHANGES];
                    Stretches parts;
                    by = taken(way, exchanges);
                    cities_of(costs, tour, city, forward, exchanges, by, t);
                    if (closes(tour, exchanges, t, parts)) {
                        found = exchanges;
                        change = one;
                    }
                }
            }
            // those that begin no chain wait no more
            if (looks && forward) waiting[city] = 0;
            __syncwarp();
            head += some;
            head -= head < n ? 0 : n;
            count -= some;
            const unsigned gains = __ballot_sync(EVERY_LANE, found > 0);
            if (gains == 0u) continue;
            const double best = -warp_max(-change);
            const int winner = __ffs(static_cast<int>(__ballot_sync(EVERY_LANE, found > 0 && change == best))) - 1;
            const int exchanges = __shfl_sync(EVERY_LANE, found, winner);
            by.bits = __shfl_sync(EVERY_LANE, by.bits, winner);
            int t[2 * MOST_EXCHANGES];
            Stretches parts;
            cities_of(costs, tour, __shfl_sync(EVERY_LANE, city, winner), (winner & 1) == 0, exchanges, by, t);
            closes(tour, exchanges, t, parts);
            __syncwarp();
            rejoin(tour, parts, moved);
            total += best;
            for (unsigned left = gains; left != 0u; left &= left - 1u)
                enlist(__shfl_sync(EVERY_LANE, city, __ffs(static_cast<int>(left)) - 1));
            for (int l = 0; l < 2 * exchanges; ++l) enlist(t[l]);
        }
        return total;
    }

    // Put three stretches that follow each other in the opposite order: a double bridge; the change in length.
    __device__ inline double kick(uint4 words) {
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
        return joined - (cost(before, b1) + cost(b2, c1) + cost(c2, d1) + cost(d2, behind));
    }
};

// Shorten tours (gridDim.x, n), each under its weights (gridDim.x, OBJECTIVES), in place. One warp a block. Shared
// memory: 11 n bytes. Ends soon, with the tours at hand, when *halt is not 0.
extern "C" __global__ void __launch_bounds__(32)
    descend_tours(COSTS_PARAMETERS, unsigned short* tours, const double* weights, int kicks, unsigned key_low,
                  unsigned key_high, const int* halt) {
    const int lane = lane_id();
    unsigned short* kept = tours + static_cast<size_t>(blockIdx.x) * n;  // (n,) the tour to go back to
    unsigned short* own = reinterpret_cast<unsigned short*>(shared_memory);
    Descent descent = {COSTS,       Weights(weights + OBJECTIVES * blockIdx.x),
                       {own, own + n, n}, own + 2 * n,
                       own + 3 * n, reinterpret_cast<unsigned char*>(own + 4 * n),
                       0,           n,
                       0.0,         halt};
    double length = 0.0;
    for (int p = lane; p < n; p += 32) {
        const int city = kept[p];
        own[p] = own[3 * n + p] = static_cast<unsigned short>(city);
        own[n + city] = static_cast<unsigned short>(p);
        descent.waiting[city] = 1;
        length += descent.cost(city, kept[p + 1 < n ? p + 1 : 0]);
    }
    descent.tiny = ROUNDING * warp_sum(length);
    __syncwarp();
    descent.settle();
    for (int p = lane; p < n; p += 32) kept[p] = own[p];
    __syncwarp();
    const Key key = {key_low, key_high};
    for (int i = 0; i < kicks && !descent.ends(); ++i) {
        double change = descent.kick(random_words(key, i, STREAM_KICKS, blockIdx.x));
        change += descent.settle();
        if (change < descent.tiny) {
            for (int p = lane; p < n; p += 32) kept[p] = own[p];
        } else {
            for (int p = lane; p < n; p += 32) {
                own[p] = kept[p];
                own[n + kept[p]] = static_cast<unsigned short>(p);
            }
        }
        __syncwarp();
    }
}
