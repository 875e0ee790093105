// Ant Colony System, relaxed (ACS-GPU-Alt, section 3.1.2): every ant walks its whole tour in one launch, on trails that
// the others change meanwhile.
//
// Reads and writes are relaxed atomics without order: of two updates of one edge at the same time one may be lost, as
// in the paper, and the next run may end otherwise. A tour is valid whatever the trails are. One warp alone (one block
// with ANTS_A_BLOCK = 1) walks the ants one after another: that order is always the same.

#include "acs.cuh"

// A city's candidates and the trails to them, as the lanes hold them while the ant stands there.
struct Stand {
    float* row;  // of this lane's first candidate
    Near near;
    float trail[SLOTS];

    __device__ __forceinline__ Stand(float* rows, const Node* candidates, const float* eta, int city)
        : row(rows + city * STRIDE + lane_id()) {
#pragma unroll
        for (int s = 0; s < SLOTS; ++s) trail[s] = load_relaxed(row + 32 * s);
        near = candidates_of(candidates, eta, city);
    }

    // The local update of the edge from `city`, where the ant stands, to `other`.
    __device__ __forceinline__ void update(float* tau, int n, int city, int other, float tau0, float xi) const {
        bool listed = false;
#pragma unroll
        for (int s = 0; s < SLOTS; ++s) {
            if (near.city[s] == other) {
                listed = true;
                store_relaxed(row + 32 * s, blended(trail[s], tau0, xi));
            }
        }
        if (DENSE && !__any_sync(EVERY_LANE, listed)) update_outside(tau, n, city, other, tau0, xi);
    }

    static __device__ __forceinline__ void update_outside(float* tau, int n, int city, int other, float tau0,
                                                          float xi) {
        float* place = tau + static_cast<size_t>(city) * n + other;
        if (lane_id() == 0) store_relaxed(place, blended(load_relaxed(place), tau0, xi));
    }
};

extern __shared__ uint4 shared_memory[];

// Build m tours. rows (n, STRIDE) trails of the candidate edges; eta and candidates (n, STRIDE); tau (n, n), outside
// the lists, bound, near, raised: see Surroundings; every period-th edge of an ant gets the local update. tabu_memory:
// tabu_bytes for every warp of the grid, where shared memory is too small for the tabus; tours (m, n).
extern "C" __global__ void __launch_bounds__(32 * ANTS_A_BLOCK)
    acs_relaxed(float* rows, const float* __restrict__ eta, const Node* __restrict__ candidates, float* tau,
                const float* bound, const Node* near_cities, const Node* raised, CITIES_PARAMETERS, float alpha,
                float beta, float shortest, float q0, float tau0, float xi, int period, const RoundKeys key, int m,
                int tabu_bytes, char* tabu_memory, int* tours) {
    const Cities cities = CITIES;
    const Surroundings around{tau, bound, near_cities, raised};
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
        Stand here(rows, candidates, eta, start);
        int city = start, previous = NONE;
        int last_due = NONE, next_due = period;  // steps of the local update
        unsigned coins = coins_of(rule, key, ant, 0u) >> 1;
        float luck[SLOTS];
        draw_luck(coins & 1u, key, ant, 1u, luck);
        for (int step = 1; step < n; ++step) {
            const Bid bid(here.near, here.trail, luck, tabu, rule);
            const unsigned best = warp_min(bid.shortfall);
            const bool stuck = best >= NO_BID, own = !stuck && bid.shortfall == best;
            int next;
            if (__builtin_expect(!stuck, 1)) next = __shfl_sync(EVERY_LANE, bid.city, best & 31u);
            else next = best_remaining(cities, around, exponents, city, tabu);
            // The next row is asked for at once; what is left to do here is done while it comes.
            const Stand there(rows, candidates, eta, next);
            if (SYMMETRIC && last_due == step - 1) here.update(tau, n, city, previous, tau0, xi);
            const bool due = next_due == step;
            if (due && own) store_relaxed(rows + city * STRIDE + bid.slot, blended(bid.trail, tau0, xi));
            __syncwarp();  // every lane has looked
            if (stuck) {
                if (DENSE && due) Stand::update_outside(tau, n, city, next, tau0, xi);
                tabu.visit(next);
            } else {
                tabu.take(own, bid.city, bid.look);
            }
            last_due = due ? step : last_due;
            next_due += due ? period : 0;
            ++tour;
            if (lane == 0) *tour = next;
            coins >>= 1;
            if ((step & 31) == 31) coins = coins_of(rule, key, ant, step + 1);
            draw_luck(coins & 1u, key, ant, step + 1, luck);
            previous = city;
            city = next;
            here = there;
        }
        // The edge that closes the tour.
        if (SYMMETRIC && last_due == n - 1) here.update(tau, n, city, previous, tau0, xi);
        if (next_due == n) {
            here.update(tau, n, city, start, tau0, xi);
            if (SYMMETRIC) Stand(rows, candidates, eta, start).update(tau, n, start, city, tau0, xi);
        }
        __syncwarp();
    }
}
