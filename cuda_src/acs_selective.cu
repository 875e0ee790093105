// Ant Colony System with the selective memory (ACS-GPU-SPM, section 3.2): as acs_relaxed.cu, on rings of few trails.
//
// The lanes hold the entries of the ring of the city where the ant stands, and find an edge in it by a vote. Ants that
// stand at one city at the same time may overwrite each other's entries; order and remedy are those of acs_relaxed.cu.

#define DENSE 0  // the fallback knows distances alone; stored trails are looked at afterwards

#include "acs.cuh"
#include "ring.cuh"

constexpr int RINGS = (TRAILS + 31) / 32;  // entries a lane
constexpr int TOGETHER = TRAILS < 8 ? TRAILS : 8;  // entries looked up in one go

// tau^alpha eta^beta in logarithms, in which it fits a float.
__device__ __forceinline__ float log_weight(float trail, float d, const Exponents& e) {
    return e.alpha * __log2f(fmaxf(trail, LEAST_TRAIL)) - e.beta * __log2f(fmaxf(d, e.shortest));
}

// A city's ring as the lanes hold it: entry 32 r + lane in place r.
struct Ring {
    Entry* entries;
    int city[RINGS];
    unsigned lap[RINGS];
    float trail[RINGS];

    __device__ __forceinline__ Ring(Entry* all, int here) : entries(all + static_cast<size_t>(here) * TRAILS) {
#pragma unroll
        for (int r = 0; r < RINGS; ++r) {
            const int slot = 32 * r + lane_id();
            const Entry entry = slot < TRAILS ? load_relaxed(entries + slot) : entry_of(EMPTY, 0u, 0.0f);
            city[r] = city_of(entry);
            lap[r] = lap_of(entry);
            trail[r] = trail_of(entry);
        }
    }

    // The local update of the edge to `other`; an edge without an entry has the trail `rest` and gets one (Fig. 5).
    __device__ __forceinline__ void update(int other, float rest, float tau0, float xi) {
        bool held = false;
#pragma unroll
        for (int r = 0; r < RINGS; ++r) held |= city[r] == other;
        const bool found = __any_sync(EVERY_LANE, held);
        // The slot after the one written last: the first whose bit is not that of slot 0, or slot 0 and a new lap.
        int oldest = 0;
        const unsigned now = __shfl_sync(EVERY_LANE, lap[0], 0);
#pragma unroll
        for (int r = RINGS - 1; r >= 0; --r) {
            const unsigned older = __ballot_sync(EVERY_LANE, lap[r] != now && 32 * r + lane_id() < TRAILS);
            oldest = older ? 32 * r + __ffs(older) - 1 : oldest;
        }
        const unsigned next_lap = oldest == 0 ? now ^ LAP : now;
#pragma unroll
        for (int r = 0; r < RINGS; ++r) {
            const int slot = 32 * r + lane_id();
            const bool mine = found ? city[r] == other : slot == oldest;
            const float updated = blended(found ? trail[r] : rest, tau0, xi);
            lap[r] = mine && !found ? next_lap : lap[r];
            if (mine) store_relaxed(entries + slot, entry_of(other, lap[r], updated));
            city[r] = mine ? other : city[r];
            trail[r] = mine ? updated : trail[r];
        }
    }

    // Trails of the candidates: `rest`, and those that the ring has.
    __device__ __forceinline__ void trails_to(const Near& near, float rest, float* trails) const {
#pragma unroll
        for (int s = 0; s < SLOTS; ++s) trails[s] = rest;
#pragma unroll
        for (int r = 0; r < RINGS; ++r) {
            const int count = TRAILS - 32 * r < 32 ? TRAILS - 32 * r : 32;
            int source[SLOTS];
#pragma unroll
            for (int s = 0; s < SLOTS; ++s) source[s] = NONE;
#pragma unroll TOGETHER
            for (int i = 0; i < count; ++i) {
                const int other = __shfl_sync(EVERY_LANE, city[r], i);
#pragma unroll
                for (int s = 0; s < SLOTS; ++s) {
                    if (near.city[s] == other) source[s] = i;
                }
            }
#pragma unroll
            for (int s = 0; s < SLOTS; ++s) {
                const float theirs = __shfl_sync(EVERY_LANE, trail[r], source[s] & 31);
                if (source[s] != NONE) trails[s] = theirs;
            }
        }
    }

    // The best of all open cities when the candidates are visited: the nearest, unless an open one with a trail of its
    // own outweighs it. Ties go to the nearest, then to the lowest slot.
    __device__ __forceinline__ int best_outside(const Cities& cities, const Surroundings& around, const Exponents& e,
                                                int here, const Tabu& tabu, float rest) const {
        int chosen = best_remaining(cities, around, e, here, tabu);
        unsigned best = ordered(log_weight(rest, distance(cities, here, chosen), e));
#pragma unroll
        for (int r = 0; r < RINGS; ++r) {
            const bool open = city[r] != EMPTY && !tabu.visited(city[r]);
            const unsigned own = open ? ordered(log_weight(trail[r], distance(cities, here, city[r]), e)) : 0u;
            const unsigned top = warp_max(own);
            const unsigned lanes = __ballot_sync(EVERY_LANE, own == top);
            if (top > best) {
                best = top;
                chosen = __shfl_sync(EVERY_LANE, city[r], __ffs(lanes) - 1);
            }
        }
        return chosen;
    }
};

extern __shared__ uint4 shared_memory[];

// Build m tours; parameters as in acs_relaxed, entries (n, TRAILS) in place of the trails, rest: the trail of all
// edges without an entry.
extern "C" __global__ void __launch_bounds__(32 * ANTS_A_BLOCK)
    acs_selective(Entry* entries, float rest, const float* __restrict__ eta,
                  const Node* __restrict__ candidates, const Node* near_cities, CITIES_PARAMETERS, float alpha,
                  float beta, float shortest, float q0, float tau0, float xi, int period, const RoundKeys key, int m,
                  int tabu_bytes, char* tabu_memory, int* tours) {
    const Cities cities = CITIES;
    const Surroundings around{nullptr, nullptr, near_cities, nullptr};
    const Exponents exponents{alpha, beta, shortest};
    const Rule rule{q0, alpha};
    const int lane = lane_id(), warp = warp_of_block();
#if TABU_IN_SHARED
    Tabu tabu(reinterpret_cast<char*>(shared_memory) + static_cast<size_t>(warp) * tabu_bytes, n);
#else
    Tabu tabu(tabu_memory + (static_cast<size_t>(blockIdx.x) * ANTS_A_BLOCK + warp) * tabu_bytes, n);
#endif
    for (int ant = blockIdx.x * ANTS_A_BLOCK + warp; ant < m; ant += gridDim.x * ANTS_A_BLOCK) {
        tabu.clear();
        int* tour = tours + static_cast<size_t>(ant) * n;
        const int start = first_city(key, ant, n);
        tabu.visit(start);
        if (lane == 0) *tour = start;
        Ring ring(entries, start);
        Near near = candidates_of(candidates, eta, start);
        int city = start, previous = NONE;
        int last_due = NONE, next_due = period;  // steps of the local update
        unsigned coins = coins_of(rule, key, ant, 0u) >> 1;
        float luck[SLOTS];
        draw_luck(coins & 1u, key, ant, 1u, luck);
        for (int step = 1; step < n; ++step) {
            if (SYMMETRIC && last_due == step - 1) ring.update(previous, rest, tau0, xi);
            float trails[SLOTS];
            ring.trails_to(near, rest, trails);
            const Bid bid(near, trails, luck, tabu, rule);
            const unsigned best = warp_min(bid.shortfall);
            const bool stuck = best >= NO_BID, own = !stuck && bid.shortfall == best;
            int next;
            if (__builtin_expect(!stuck, 1)) next = __shfl_sync(EVERY_LANE, bid.city, best & 31u);
            else next = ring.best_outside(cities, around, exponents, city, tabu, rest);
            // The next ring is asked for at once; what is left to do here is done while it comes.
            const Ring next_ring(entries, next);
            near = candidates_of(candidates, eta, next);
            const bool due = next_due == step;
            if (due) ring.update(next, rest, tau0, xi);
            last_due = due ? step : last_due;
            next_due += due ? period : 0;
            __syncwarp();  // every lane has looked
            if (stuck) tabu.visit(next);
            else tabu.take(own, bid.city, bid.look);
            ++tour;
            if (lane == 0) *tour = next;
            coins >>= 1;
            if ((step & 31) == 31) coins = coins_of(rule, key, ant, step + 1);
            draw_luck(coins & 1u, key, ant, step + 1, luck);
            previous = city;
            city = next;
            ring = next_ring;
        }
        // The edge that closes the tour.
        if (SYMMETRIC && last_due == n - 1) ring.update(previous, rest, tau0, xi);
        if (next_due == n) {
            ring.update(start, rest, tau0, xi);
            if (SYMMETRIC) Ring(entries, start).update(city, rest, tau0, xi);
        }
        __syncwarp();
    }
}
