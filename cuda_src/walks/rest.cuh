// The choice among all cities if a row contains only the heaviest edges (Eq. (1), Skinderowicz 2020).
//
// The cities outside the row join the row's race as one Poisson process, whose rate is an upper bound of their weights.
// If its first arrival is after the row's winner, no city outside the row is evaluated. Otherwise each arrival draws a
// city, by an alias table of eta^beta or among the spare edges. An open city is accepted with probability weight /
// bound: a tighter form of the stochastic trial of Uchida et al. 2012 (section IV.B.3). This thinning gives exactly the
// rates of the open cities. 32 arrivals are evaluated together. If none is accepted and all are before the row's
// winner, the race is repeated among all open cities, because the exponential distribution is memoryless.
#pragma once

#include "weights/weight.cuh"
#include "walks/ant.cuh"
#include "walks/fallback.cuh"

// Data of the cities outside the rows.
struct RestTables {
    const Rest* rests;     // (n,)
    const Spare* spares;   // (n, 32)
    const Alias* aliases;  // (n, n)
};

// A step of an ant from its current city.
struct AntStep {
    const Ant& ant;
    int step, city;
};

// The winner of a race of all open cities; -1 if all weights are zero.
__device__ __forceinline__ int race_all(const Surroundings& around, const AntStep& ant_step, const Tabu& tabu) {
    const Cities& cities = around.cities;
    const Exponents& exponents = around.exponents;
    const Point here = point_of(cities, ant_step.city);
    const float* row = around.trails_of(ant_step.city);
    unsigned best = 0xFFFFFFFFu;
    int winner = -1;
    for_open_cities(tabu, [&](int j, bool open) {
        const float trail = row[j], d = distance(cities, ant_step.city, here, j, point_of(cities, j));
        const uint4 counter = make_uint4(ant_step.step, STREAM_SCAN, ant_step.ant.number, static_cast<unsigned>(j));
        const float wait = exponential(philox4x32(counter, ant_step.ant.key).x);
        const float far = fmaxf(d, exponents.shortest);
#if USUAL_EXPONENTS
        const float time = __fdividef(wait * far * far, trail);
#else
        float time = log2f(wait) + exponents.beta * log2f(far);
        if (exponents.alpha != 0.0f) time -= exponents.alpha * log2f(trail);
#endif
        const unsigned key = ordered(time);
        if (open && key < best && time < __int_as_float(0x7F800000)) {
            best = key;
            winner = j;
        }
    });
    const unsigned least = warp_min(best);
    return __shfl_sync(EVERY_LANE, winner, __ffs(__ballot_sync(EVERY_LANE, best == least)) - 1);
}

// The next city if an arrival may precede the row's winner. inverses (n,); own_key, own_city: the lane's best of the
// row; wait: time of the first arrival.
__device__ __forceinline__ int draw_from_rest(const Surroundings& around, const RestTables& rest_tables,
                                              const float* inverses, const AntStep& ant_step, const Tabu& tabu,
                                              unsigned own_key, int own_city, float wait) {
    const int lane = lane_id(), city = ant_step.city;
    const Rest rest = rest_tables.rests[city];
    const Ant& ant = ant_step.ant;
    const uint4 words =
        random_words(ant.key, static_cast<unsigned>(ant_step.step) * 32u + lane, STREAM_ARRIVALS, ant.number);
    const unsigned least = warp_min(own_key);
    const float time = warp_prefix_sum(lane == 0 ? wait : exponential(words.x)) * inverses[city];
    const bool in_time = key_of(time, FROM_REST) < least;
    int drawn = 0;
    bool taken = false;
    if (in_time) {
        const int n = around.cities.n;
        const size_t row = static_cast<size_t>(city) * n;
        const float u = uniform(words.y);
        if (u <= rest.share) {
            const int place = min(rest.spares - 1, static_cast<int>(__fdividef(u, rest.share) * rest.spares));
            const Spare spare = rest_tables.spares[32 * static_cast<size_t>(city) + place];
            drawn = spare.city;
            taken = uniform(words.w) <= spare.chance && !tabu.visited(drawn);
        } else {
            const unsigned long long slot = static_cast<unsigned long long>(words.z) * n;
            drawn = static_cast<int>(slot >> 32);
            const Alias alias = rest_tables.aliases[row + drawn];
            if (uniform(static_cast<unsigned>(slot)) > alias.keep) drawn = alias.other;
            taken = !tabu.visited(drawn);
            if (taken && !rest.even) {
                // an edge above the bound is in the row or among the spare edges
                const float trail = around.tau[row + drawn], ratio = __fdividef(trail, rest.bound);
                const float alpha = around.exponents.alpha;
                const float chance = alpha == 1.0f ? ratio : exp2f(alpha * log2f(ratio));
                taken = trail <= rest.bound && uniform(words.w) <= chance;
            }
        }
    }
    const unsigned accepted = __ballot_sync(EVERY_LANE, taken);
    if (accepted) return __shfl_sync(EVERY_LANE, drawn, __ffs(accepted) - 1);
    const bool settled = !__shfl_sync(EVERY_LANE, in_time, 31);
    if (settled && least < NO_KEY) return __shfl_sync(EVERY_LANE, own_city, least & 31u);
    const int chosen = race_all(around, ant_step, tabu);
    return chosen >= 0 ? chosen : best_remaining(around, city, tabu);
}
