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

constexpr int MOST_ANTS = 4;     // maximum ants per block
constexpr int LEAST_BLOCKS = 8;  // minimum resident blocks per multiprocessor, which bounds the registers

struct Colony {
    int m;
    const Node* candidates;  // (n, STRIDE)
    const float* eta;        // (n, STRIDE)
    Rule rule;
    int period;         // every period-th edge of an ant gets the local update
    char* tabu_memory;  // tabu_bytes per warp of the grid, unused if TABU_IN_SHARED
    int tabu_bytes;
    int* tours;  // (m, n)
};

// The struct built from kernel parameters.
#define COLONY Colony{m, candidates, eta, {q0, alpha}, period, memory, ant_bytes, tours}

extern __shared__ uint4 shared_memory[];

// Build all tours. `Trails` is a pheromone memory; Trails::Row is its part for the ant's current city:
//   Row(trails, city)                   load it
//   arrive(trails, from)                local update of the edge back to `from`, if it must precede the choice
//   read(trails, factors, values)       trails to the candidates
//   leave(trails, factors, city, from, to, listed)  the other local updates, of the edges to `from` and `to`, unless
//                                       NONE; `listed`: `to` is a candidate
//   best_outside(trails, city, tabu)    the best open city if all candidates are visited
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
        const auto factors_at = [&](const Near& near, int step) {
            greedy_mask >>= 1;
            if ((step & 31) == 0) greedy_mask = greedy_bits(colony.rule, key, ant, step);
            float race_factor[SLOTS];
            draw_race_factors(greedy_mask & 1u, key, ant, step, race_factor);
            return CandidateFactors(near, race_factor, tabu);
        };
        Row here(trails, start);
        CandidateFactors factors = factors_at(candidates_of(colony.candidates, colony.eta, start), 1);
        int city = start, from = NONE;
        int step = 1, due = colony.period;  // step of the next local update

        // Move to `next`; `take` updates the tabu. Load the next row first, to overlap its latency.
        const auto move = [&](int next, bool listed, auto take) {
            const Row there(trails, next);
            const Near near = candidates_of(colony.candidates, colony.eta, next);
            const bool updates = step == due;
            here.leave(trails, factors, city, from, updates ? next : NONE, listed);
            take();
            if (lane == 0) tour[step] = next;
            if (updates) due += colony.period;
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
                const LaneBest lane_best(factors, values, colony.rule);
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
            const CandidateFactors at_start(candidates_of(colony.candidates, colony.eta, start), none, tabu);
            there.arrive(trails, city);
            there.leave(trails, at_start, start, city, NONE, false);
        }
        __syncwarp();
    }
}
