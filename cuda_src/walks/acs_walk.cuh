// The walk of unsynchronised ants (sections 3.1.2 and 3.2): each walks its whole tour, on trails that the others change
// concurrently.
//
// Trails are read and written by relaxed atomics: one of two concurrent updates of an edge may be lost, as in the
// paper, and runs are not reproducible. Tours are valid for any trails. A single warp walks the ants one after another
// and is reproducible.
//
// A step is a chain of dependent loads. The slowest are the trails, which must come from the L2 cache: they are issued
// as soon as the next city is known, and all other work is done before they arrive. Only a product, a minimum over the
// warp and the winner's city follow.
#pragma once

#include "walks/acs.cuh"

constexpr int MOST_ANTS = 4;     // of a block
constexpr int LEAST_BLOCKS = 8;  // resident on a multiprocessor, which bounds the registers

struct Colony {
    int m;
    const Node* candidates;  // (n, STRIDE)
    const float* eta;        // (n, STRIDE)
    Rule rule;
    int period;        // every period-th edge of an ant gets the local update
    char* tabu_memory; // tabu_bytes for every warp of the grid, if the tabus do not fit into shared memory
    int tabu_bytes;
    int* tours;  // (m, n)
};

// From the parameters of a kernel.
#define COLONY Colony{m, candidates, eta, {q0, alpha}, period, memory, ant_bytes, tours}

extern __shared__ uint4 shared_memory[];

// Build all tours. `Trails` is a pheromone memory; Trails::Row is the part of it for the ant's current city:
//   Row(trails, city)                load it
//   arrive(trails, from)             the local update of the edge back to `from`, if it precedes the choice
//   weighed(trails, offer, values)   trails to the candidates
//   leave(trails, offer, city, from, to, listed)   the remaining local updates, of the edges to `from` and `to`;
//                                    `listed`: `to` is a candidate; NONE: no update
//   best_outside(trails, city, tabu) the best open city if all candidates are visited
template <class Trails>
__device__ __forceinline__ void walk(const Trails& trails, const Colony& colony, const RoundKeys& key, int n) {
    typedef typename Trails::Row Row;
    const int lane = lane_id(), warp = warp_of_block(), warps = blockDim.x >> 5;
#if TABU_IN_SHARED
    Tabu tabu(reinterpret_cast<char*>(shared_memory) + static_cast<size_t>(warp) * colony.tabu_bytes, n);
#else
    const size_t own = static_cast<size_t>(blockIdx.x) * warps + warp;
    Tabu tabu(colony.tabu_memory + own * colony.tabu_bytes, n);
#endif
    for (int ant = blockIdx.x * warps + warp; ant < colony.m; ant += gridDim.x * warps) {
        tabu.clear();
        int* const tour = colony.tours + static_cast<size_t>(ant) * n;
        const int start = first_city(key, ant, n);
        tabu.visit(start);
        if (lane == 0) *tour = start;

        unsigned greedy_mask = greedy_bits(colony.rule, key, ant, 0u);
        const auto offer_at = [&](const Near& near, int step) {
            greedy_mask >>= 1;
            if ((step & 31) == 0) greedy_mask = greedy_bits(colony.rule, key, ant, step);
            float race_factor[SLOTS];
            draw_race_factors(greedy_mask & 1u, key, ant, step, race_factor);
            return Offer(near, race_factor, tabu);
        };
        Row here(trails, start);
        Offer offer = offer_at(candidates_of(colony.candidates, colony.eta, start), 1);
        int city = start, from = NONE;
        int step = 1, due = colony.period;  // step of the next local update

        // A step without the choice; `take` updates the tabu. The next row is loaded first, to overlap its latency.
        const auto go = [&](int next, bool listed, auto take) {
            const Row there(trails, next);
            const Near near = candidates_of(colony.candidates, colony.eta, next);
            const bool updates = step == due;
            here.leave(trails, offer, city, from, updates ? next : NONE, listed);
            take();
            if (lane == 0) tour[step] = next;
            if (updates) due += colony.period;
            from = SYMMETRIC && updates ? city : NONE;
            city = next;
            here = there;
            ++step;
            offer = offer_at(near, step);
            __syncwarp();  // all lanes have read the tabu; and nothing above depends on the trails
        };
        while (step < n) {
            // the common path only
            while (step < n) {
                here.arrive(trails, from);
                float values[SLOTS];
                here.weighed(trails, offer, values);
                const Bid bid(offer, values, colony.rule);
                const unsigned best = warp_min(bid.shortfall);
                const int next = __shfl_sync(EVERY_LANE, bid.city, best);  // of the lane in the low five bits
                if (best >= NO_BID) break;
                go(next, true, [&] { tabu.take(bid.shortfall == best, bid.city, bid.look); });
            }
            if (step == n) break;
            const int next = here.best_outside(trails, city, tabu);
            go(next, false, [&] { tabu.visit(next); });
        }
        // The edge that closes the tour.
        const bool updates = due == n;
        here.arrive(trails, from);
        here.leave(trails, offer, city, from, updates ? start : NONE, false);
        if (SYMMETRIC && updates) {
            Row there(trails, start);
            const float none[SLOTS] = {};
            const Offer at_start(candidates_of(colony.candidates, colony.eta, start), none, tabu);
            there.arrive(trails, city);
            there.leave(trails, at_start, start, city, NONE, false);
        }
        __syncwarp();
    }
}
