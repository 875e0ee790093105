// The walk of unsynchronised ants (sections 3.1.2 and 3.2), on trails that other ants change concurrently.
//
// Trails are read and written by relaxed atomics: of two concurrent updates of an edge one may be lost, as in the
// paper, and runs are not reproducible. A launch of a single warp, which builds tours one by one, is reproducible.
//
// The latency of a step is a chain of dependent loads. The slowest are the trails, which come from the L2 cache: they
// are issued as soon as the next city is known and overlap with all other work. Only a product, a reduction over the
// warp and a shuffle of the winner's city follow.
#pragma once

#include "walks/acs.cuh"
#include "walks/walk.cuh"

// Build the tours of all ants. `Trails` is a pheromone memory; Trails::Row is its part for the ant's current city:
//   Row(trails, city)                   load it
//   arrive(trails, from)                local update of the edge back to `from`, if it must precede the choice
//   read(trails, factors, values)       trails to the candidates
//   leave(trails, factors, city, from, to, listed)  the other local updates, of the edges to `from` and `to`, unless
//                                       NONE; `listed`: `to` is a candidate
//   best_outside(trails, city, tabu)    the best open city if all candidates are visited
//
// Other arguments are parameters of the kernels.
template <class Trails>
__device__ __forceinline__ void walk(const Trails& trails, const Node* candidates, const float* eta, const Rule& rule,
                                     int period, const RoundKeys& key, int m, Tabu& tabu, int* tours) {
    typedef typename Trails::Row Row;
    const int lane = lane_id(), n = tabu.n;
    for_each_ant(key, m, tabu, tours, [&](const Ant& ant, int start, int* tour) {
        unsigned greedy_mask = greedy_bits(rule, ant, 0u);
        const auto factors_at = [&](const Near& near, int step) {
            greedy_mask >>= 1;
            if ((step & 31) == 0) greedy_mask = greedy_bits(rule, ant, step);
            float race_factor[SLOTS];
            draw_race_factors(greedy_mask & 1u, ant, step, race_factor);
            return CandidateFactors(near, race_factor, tabu);
        };
        Row here(trails, start);
        CandidateFactors factors = factors_at(candidates_of(candidates, eta, start), 1);
        int city = start, from = NONE;
        int step = 1, due = period;  // step of the next local update

        // Move to `next`; `take` updates the tabu. Load the next row first, to overlap its latency.
        const auto move = [&](int next, bool listed, auto take) {
            const Row there(trails, next);
            const Near near = candidates_of(candidates, eta, next);
            const bool updates = step == due;
            here.leave(trails, factors, city, from, updates ? next : NONE, listed);
            take();
            if (lane == 0) tour[step] = next;
            if (updates) due += period;
            from = SYMMETRIC && updates ? city : NONE;
            city = next;
            here = there;
            ++step;
            factors = factors_at(near, step);
            __syncwarp();  // all lanes have read the tabu; nothing above depends on the trails
        };
        while (step < n) {
            while (step < n) {  // steps to candidates
                here.arrive(trails, from);
                float values[SLOTS];
                here.read(trails, factors, values);
                const LaneBest lane_best(factors, values, rule);
                const unsigned best = warp_min(lane_best.key);
                const int next = __shfl_sync(EVERY_LANE, lane_best.city, best);  // shuffles use the low five bits
                if (best >= NO_KEY) break;
                move(next, true, [&] { tabu.take(lane_best.key == best, lane_best.city, lane_best.lookup); });
            }
            if (step == n) break;
            const int next = here.best_outside(trails, city, tabu);
            move(next, false, [&] { tabu.visit(next); });
        }
        // local updates of the edge that closes the tour
        const bool updates = due == n;
        here.arrive(trails, from);
        here.leave(trails, factors, city, from, updates ? start : NONE, false);
        if (SYMMETRIC && updates) {
            Row there(trails, start);
            const float none[SLOTS] = {};
            const CandidateFactors at_start(candidates_of(candidates, eta, start), none, tabu);
            there.arrive(trails, city);
            there.leave(trails, at_start, start, city, NONE, false);
        }
        __syncwarp();
        return true;
    });
}
