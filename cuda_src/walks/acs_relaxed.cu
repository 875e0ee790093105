// Ant Colony System, relaxed (ACS-GPU-Alt, section 3.1.2): ants build their whole tours in one launch, on trails that
// they change concurrently.

#define CONCURRENT 1

#include "walks/acs_walk.cuh"

// Trails of the candidate edges in rows; of all other edges in a matrix if DENSE.
struct OpenTrails {
    float* rows;  // (n, STRIDE), offset by the lane
    float* tau;   // (n, n), null unless DENSE
    Surroundings around;
    float tau0, xi;

    __device__ __forceinline__ float updated(float trail) const { return blended(trail, tau0, xi); }

    __device__ __forceinline__ void update_outside(int city, int other) const {
        float* place = tau + static_cast<size_t>(city) * around.cities.n + other;
        if (lane_id() == 0) store_relaxed(place, updated(load_relaxed(place)));
    }

    struct Row {
        float* first;  // of this lane's candidates
        float trail[SLOTS];

        __device__ __forceinline__ Row(const OpenTrails& trails, int city)
            : first(trails.rows + static_cast<size_t>(city) * STRIDE) {
#pragma unroll
            for (int s = 0; s < SLOTS; ++s) trail[s] = load_relaxed(first + 32 * s);
        }

        // does nothing: the previous city is visited, and no choice needs its trail
        __device__ __forceinline__ void arrive(const OpenTrails&, int) {}

        __device__ __forceinline__ void read(const OpenTrails&, const CandidateFactors&, float* values) const {
#pragma unroll
            for (int s = 0; s < SLOTS; ++s) values[s] = trail[s];
        }

        __device__ __forceinline__ void leave(const OpenTrails& trails, const CandidateFactors& factors, int city,
                                              int from, int to, bool listed) const {
            bool has_from = false, has_to = false;  // the city is a candidate of this lane
#pragma unroll
            for (int s = 0; s < SLOTS; ++s) {
                const bool is_from = factors.city[s] == from, is_to = factors.city[s] == to;
                if (is_from || is_to) store_relaxed(first + 32 * s, trails.updated(trail[s]));
                has_from |= is_from;
                has_to |= is_to;
            }
            if (!DENSE) return;
            if (from != NONE && !__any_sync(EVERY_LANE, has_from)) trails.update_outside(city, from);
            if (to != NONE && !listed && !__any_sync(EVERY_LANE, has_to)) trails.update_outside(city, to);
        }

        __device__ __forceinline__ int best_outside(const OpenTrails& trails, int city, const Tabu& tabu) const {
            return best_remaining(trails.around, city, tabu);
        }
    };
};

// Build m tours. rows (n, STRIDE): trails of the candidate edges; eta, candidates (n, STRIDE); tau (n, n): trails of
// all other edges; bound (n,), near_cities (n, NEAR), raised (n, 32): see Surroundings.
extern "C" __global__ void __launch_bounds__(32 * MOST_ANTS, LEAST_BLOCKS)
    acs_relaxed(float* rows, const float* __restrict__ eta, const Node* __restrict__ candidates, float* tau,
                const float* bound, const Node* near_cities, const Node* raised, CITIES_PARAMETERS, ACS_PARAMETERS) {
    const Surroundings around{CITIES, {alpha, beta, shortest}, tau, bound, near_cities, raised};
    const OpenTrails trails{rows + lane_id(), tau, around, tau0, xi};
    Tabu tabu(memory_of_ant(shared_memory, memory, ant_bytes), n);
    walk(trails, candidates, eta, Rule{q0, alpha}, period, key, m, tabu, tours);
}
