// Ant Colony System, relaxed (ACS-GPU-Alt, section 3.1.2): every ant walks its whole tour in one launch, on trails that
// the others change meanwhile.
//
// Reads and writes are relaxed atomics without order: of two updates of one edge at the same time one may be lost, as in
// the paper, and the next run may end otherwise. A tour is valid whatever the trails are. One warp alone
// (one block with ANTS_A_BLOCK = 1) walks the ants one after another: that order is always the same.

#include "acs.cuh"

#ifndef ANTS_A_BLOCK
#define ANTS_A_BLOCK 4
#endif

extern __shared__ uint4 shared_memory[];

// Build m tours. rows (n, STRIDE) trails of the candidate edges; eta and candidates (n, STRIDE); tau (n, n), outside the lists,
// bound, near: see Surroundings; every period-th edge of an ant gets the local update. tabu_memory: tabu_bytes for every
// warp of the grid, where shared memory is too small for the tabus; tours (m, n).
extern "C" __global__ void __launch_bounds__(32 * ANTS_A_BLOCK)
    acs_relaxed(float* rows, const float* __restrict__ eta, const Node* __restrict__ candidates, float* tau,
                const float* bound, const Node* near_cities, CITIES_PARAMETERS, float alpha, float beta, float shortest,
                float q0, float tau0, float xi, int period, unsigned key_low, unsigned key_high, int m, int tabu_bytes,
                char* tabu_memory, int* tours) {
    const Cities cities = CITIES;
    const Surroundings around{tau, bound, near_cities};
    const Exponents exponents{alpha, beta, shortest};
    const Rule rule{q0, alpha};
    const Key key{key_low, key_high};
    const int warp = threadIdx.x >> 5, lane = lane_id();
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
        if (lane == 0) tour[0] = start;
        int city = start, previous = NONE, wait = period;
        bool was_due = false;
        unsigned coins = 0u;  // one bit a step: the greedy choice?
        // At step s the ant stands at its s-th city; n + 1 steps lead back to the first, where one update is left to do.
        for (int step = 1;; ++step) {
            float trail[SLOTS];
            float* row = rows + static_cast<size_t>(city) * STRIDE + lane;
#pragma unroll
            for (int s = 0; s < SLOTS; ++s) trail[s] = load_relaxed(row + 32 * s);
            const Near near = candidates_of(candidates, eta, city);
            if ((step & 31) == 0 || step == 1) {
                coins = __ballot_sync(EVERY_LANE, coin(rule, key, ant, (step & ~31) + lane));
            }
            float luck[SLOTS];
            draw_luck(coins >> (step & 31) & 1u, key, ant, step, luck);
            // The edge just taken, in the other direction: its trail is in this row, or outside the list.
            float trail_back = 0.0f;
            bool outside = false;
            if (SYMMETRIC && was_due) {
                outside = DENSE && slot_of(near.city, previous) == NONE;
                if (outside) trail_back = load_relaxed(tau + static_cast<size_t>(city) * n + previous);
#pragma unroll
                for (int s = 0; s < SLOTS; ++s) {
                    if (near.city[s] == previous) store_relaxed(row + 32 * s, blended(trail[s], tau0, xi));
                }
            }
            if (step > n) {
                if (outside && lane == 0) {
                    store_relaxed(tau + static_cast<size_t>(city) * n + previous, blended(trail_back, tau0, xi));
                }
                break;
            }
            was_due = --wait == 0;
            if (was_due) wait = period;
            int next = start;
            bool listed = true;
            if (step < n) {
                const int slot = choose(near, trail, luck, tabu, rule);
                listed = slot != NONE;
                if (__builtin_expect(listed, 1)) next = city_in(near.city, slot);
            } else {
                listed = slot_of(near.city, start) != NONE;
            }
            if (was_due) {
#pragma unroll
                for (int s = 0; s < SLOTS; ++s) {
                    if (listed && near.city[s] == next) store_relaxed(row + 32 * s, blended(trail[s], tau0, xi));
                }
            }
            if (outside && lane == 0) {
                store_relaxed(tau + static_cast<size_t>(city) * n + previous, blended(trail_back, tau0, xi));
            }
            if (step < n) {
                if (__builtin_expect(!listed, 0)) next = best_remaining(cities, around, exponents, city, tabu);
                tabu.visit(next);
                if (lane == 0) tour[step] = next;
            }
            if (DENSE && was_due && !listed && lane == 0) {
                float* place = tau + static_cast<size_t>(city) * n + next;
                store_relaxed(place, blended(load_relaxed(place), tau0, xi));
            }
            previous = city;
            city = next;
        }
        __syncwarp();
    }
}
