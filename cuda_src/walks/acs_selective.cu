// Ant Colony System with the selective pheromone memory (ACS-GPU-SPM, section 3.2): as acs_relaxed.cu, with rings of
// few trails.
//
// The lanes of a warp hold the ring of the ant's current city and find an edge in it by a vote. Ants that visit the
// same city at the same time may overwrite each other's entries.

#define DENSE 0  // the fallback compares distances only; the trails of the ring are compared afterwards

#include "walks/acs_walk.cuh"
#include "trails/ring.cuh"

constexpr int RINGS = (TRAILS + 31) / 32;               // entries per lane
constexpr int LOADS_AT_ONCE = TRAILS < 8 ? TRAILS : 8;  // unrolled iterations

// Logarithm of tau^alpha eta^beta, which itself may overflow a float.
__device__ __forceinline__ float log_weight(float trail, float d, const Exponents& e) {
    return e.alpha * __log2f(fmaxf(trail, LEAST_TRAIL)) - e.beta * __log2f(fmaxf(d, e.shortest));
}

struct RingTrails {
    Entry* entries;  // (n, TRAILS)
    float rest;      // the trail of all edges without an entry
    Surroundings around;
    float tau0, xi;

    // The ring of a city: slot r of a lane holds entry 32 r + lane.
    struct Row {
        Entry* entries;
        int city[RINGS];
        unsigned lap[RINGS];
        float trail[RINGS];

        __device__ __forceinline__ Row(const RingTrails& trails, int here)
            : entries(trails.entries + static_cast<size_t>(here) * TRAILS) {
#pragma unroll
            for (int r = 0; r < RINGS; ++r) {
                const int slot = 32 * r + lane_id();
                const Entry entry = slot < TRAILS ? load_relaxed(entries + slot) : entry_of(EMPTY, 0u, 0.0f);
                city[r] = city_of(entry);
                lap[r] = lap_of(entry);
                trail[r] = trail_of(entry);
            }
        }

        // The local update of the edge to `other`; an edge without an entry gets one (Fig. 5).
        __device__ __forceinline__ void update(const RingTrails& trails, int other) {
            bool held = false;
#pragma unroll
            for (int r = 0; r < RINGS; ++r) held |= city[r] == other;
            const bool found = __any_sync(EVERY_LANE, held);
            // the slot after the last written one: the first whose lap bit differs from slot 0's, else slot 0 (new lap)
            int oldest = 0;
            unsigned now = 0;  // all bits equal the lap bit of slot 0
#pragma unroll
            for (int r = 0; r < RINGS; ++r) {
                const unsigned laps = __ballot_sync(EVERY_LANE, lap[r] != 0u);
                if (r == 0) now = laps & 1u ? EVERY_LANE : 0u;
                const unsigned older = (laps ^ now) & (TRAILS - 32 * r < 32 ? (1u << (TRAILS - 32 * r)) - 1u : EVERY_LANE);
                if (oldest == 0 && older) oldest = 32 * r + __ffs(older) - 1;
            }
            const unsigned next_lap = (oldest == 0 ? ~now : now) & LAP;
#pragma unroll
            for (int r = 0; r < RINGS; ++r) {
                const int slot = 32 * r + lane_id();
                const bool selected = found ? city[r] == other : slot == oldest;
                const float updated = blended(found ? trail[r] : trails.rest, trails.tau0, trails.xi);
                if (!selected) continue;
                if (!found) lap[r] = next_lap;
                city[r] = other;
                trail[r] = updated;
                store_relaxed(entries + slot, entry_of(other, lap[r], updated));
            }
        }

        // Update the edge back before the choice: its new entry may replace a candidate's, whose trail becomes `rest`.
        __device__ __forceinline__ void arrive(const RingTrails& trails, int from) {
            if (from != NONE) update(trails, from);
        }

        __device__ __forceinline__ void read(const RingTrails& trails, const CandidateFactors& factors,
                                             float* values) const {
#pragma unroll
            for (int s = 0; s < SLOTS; ++s) values[s] = trails.rest;
#pragma unroll
            for (int r = 0; r < RINGS; ++r) {
                const int count = TRAILS - 32 * r < 32 ? TRAILS - 32 * r : 32;
#pragma unroll LOADS_AT_ONCE
                for (int i = 0; i < count; ++i) {
                    const int other = __shfl_sync(EVERY_LANE, city[r], i);
                    const float other_trail = __shfl_sync(EVERY_LANE, trail[r], i);
#pragma unroll
                    for (int s = 0; s < SLOTS; ++s) values[s] = factors.city[s] == other ? other_trail : values[s];
                }
            }
        }

        __device__ __forceinline__ void leave(const RingTrails& trails, const CandidateFactors&, int, int, int to,
                                              bool) {
            if (to != NONE) update(trails, to);
        }

        // The nearest open city, or an open city of the ring with a larger weight. Ties: the nearest, then the lowest
        // slot.
        __device__ __forceinline__ int best_outside(const RingTrails& trails, int here, const Tabu& tabu) const {
            const Cities& cities = trails.around.cities;
            const Exponents& e = trails.around.exponents;
            int chosen = best_remaining(trails.around, here, tabu);
            unsigned best = ordered(log_weight(trails.rest, distance(cities, here, chosen), e));
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
};

// Build m tours. entries (n, TRAILS), and rest, the trail of all other edges; other parameters as in acs_relaxed.
extern "C" __global__ void __launch_bounds__(32 * MOST_ANTS, LEAST_BLOCKS)
    acs_selective(Entry* entries, float rest, const float* __restrict__ eta,
                  const Node* __restrict__ candidates, const Node* near_cities, CITIES_PARAMETERS, ACS_PARAMETERS) {
    const Surroundings around{CITIES, {alpha, beta, shortest}, nullptr, nullptr, near_cities, nullptr};
    const RingTrails trails{entries, rest, around, tau0, xi};
    Tabu tabu(memory_of_ant(shared_memory, memory, ant_bytes), n);
    walk(trails, candidates, eta, Rule{q0, alpha}, period, key, m, tabu, tours);
}
