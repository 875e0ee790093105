// Exchanges of a few edges: chains of edges that leave the tour and edges that join it, in turn.
//
// A chain of r exchanges is 2r cities t0, t1, .. : the tour loses (t0, t1), (t2, t3), .. and gains (t1, t2), .. and
// (t_{2r-1}, t0); see pymoo_gpuaco/backends/cpu/pareto/chains.py, which goes through the same chains. A thread keeps
// the way to a chain, and its place among all chains, in registers: a few bits for each exchange.
#pragma once

#include "pareto/costs.cuh"

constexpr int MOST_EXCHANGES = 5;
constexpr int MOST_OPEN = MOST_EXCHANGES - 1;  // exchanges of a chain to which one more can be added

// Up to four numbers below 2^16.
struct Four {
    unsigned long long bits;

    __device__ __forceinline__ int at(int i) const { return static_cast<int>(bits >> (16 * i) & 0xFFFFu); }
    __device__ __forceinline__ void set(int i, int value) {
        bits = (bits & ~(0xFFFFull << (16 * i))) | static_cast<unsigned long long>(value) << (16 * i);
    }
};

// One tour of n cities.
struct Tour {
    unsigned short* order;  // (n,)
    unsigned short* place;  // (n,) place[order[p]] == p
    int n;

    __device__ __forceinline__ int next(int p) const { return p + 1 < n ? p + 1 : 0; }
    __device__ __forceinline__ int previous(int p) const { return p > 0 ? p - 1 : n - 1; }
    __device__ __forceinline__ bool adjacent(int p, int q) const { return next(p) == q || next(q) == p; }
};

// The way through the chains that begin at one place and in one direction, depth first.
struct Way {
    Four next;   // by exchange: candidates that have been looked at, two for each, as either edge there may leave
    Four last;   // where the next edge joins
    Four left;   // place of the edge that has left
    double gain[MOST_OPEN];  // of the chain's first exchanges while it is open
    int opened;  // exchanges; 0: there are no more chains
    int first;   // city t0
    int end;     // candidates of the first exchange that are looked at

    // Let the edge of a city to one of its neighbours leave; look at candidates begin .. end-1 of its other end.
    __device__ __forceinline__ void start(const Tour& tour, int city, bool forward, int begin, int end_, double cost) {
        const int p = tour.place[city], q = forward ? tour.next(p) : tour.previous(p);
        first = city;
        opened = 1;
        next.bits = begin;
        last.bits = tour.order[q];
        left.bits = forward ? p : q;
        end = end_;
        gain[0] = cost;
    }
};

// Go on by one candidate. Returns the exchanges of a chain that may be closed, and how it changes the weighted length;
// else 0. ``most``: exchanges of a chain; ``cost_at(p)``: of the tour's edge behind place p.
template <class CostAt>
__device__ __forceinline__ int step(Way& way, const Costs& costs, const Weights& weights, const Tour& tour,
                                    const CostAt& cost_at, int most, double slack, double& change) {
    const int level = way.opened - 1;
    const int i = way.next.at(level), end = level == 0 ? way.end : 2 * costs.c;
    if (i >= end) {
        --way.opened;
        return 0;
    }
    const int last = way.last.at(level), listed = last * costs.c + (i >> 1);
    const int city = costs.neighbours[listed];
    if (city == last) {  // the end of a shorter row
        way.next.set(level, end);
        return 0;
    }
    double gain = way.gain[0];
#pragma unroll
    for (int l = 1; l < MOST_OPEN; ++l) gain = level == l ? way.gain[l] : gain;
    gain = __dadd_rn(gain, -weights.sum(costs.near[listed]));
    const int p = tour.place[city];
    if (gain <= -slack || tour.adjacent(p, tour.place[last])) {
        way.next.set(level, (i | 1) + 1);
        return 0;
    }
    way.next.set(level, i + 1);
    const int q = (i & 1) == 0 ? tour.next(p) : tour.previous(p), edge = (i & 1) == 0 ? p : q;
    bool gone = false;
#pragma unroll
    for (int l = 0; l < MOST_OPEN; ++l) gone |= l <= level && way.left.at(l) == edge;
    if (gone) return 0;
    const int other = tour.order[q], exchanges = level + 2;
    gain = __dadd_rn(gain, cost_at(edge));
    if (exchanges < most) {
        way.opened = exchanges;
        way.next.set(level + 1, 0);
        way.last.set(level + 1, other);
        way.left.set(level + 1, edge);
#pragma unroll
        for (int l = 1; l < MOST_OPEN; ++l) way.gain[l] = level + 1 == l ? gain : way.gain[l];
    }
    // what would close it is there, or has just left
    if (other == way.first || tour.adjacent(q, tour.place[way.first])) return 0;
    change = __dadd_rn(weights.sum(costs.between(other, way.first)), -gain);
    return exchanges;
}

// The candidates by which a chain that `step` has just returned was reached.
__device__ __forceinline__ Four taken(const Way& way, int exchanges) {
    Four four = {0};
#pragma unroll
    for (int l = 0; l < MOST_OPEN; ++l)
        if (l < exchanges - 1) four.set(l, way.next.at(l) - 1);
    return four;
}

// Its cities t0, t1, .. ; those behind it are not written.
__device__ __forceinline__ void cities_of(const Costs& costs, const Tour& tour, int city, bool forward, int exchanges,
                                          Four taken, int (&t)[2 * MOST_EXCHANGES]) {
    const int p = tour.place[city];
    t[0] = city;
    t[1] = tour.order[forward ? tour.next(p) : tour.previous(p)];
#pragma unroll
    for (int l = 0; l < MOST_OPEN; ++l) {
        if (l < exchanges - 1) {
            const int i = taken.at(l), joined = costs.neighbours[t[2 * l + 1] * costs.c + (i >> 1)];
            const int at = tour.place[joined];
            t[2 * l + 2] = joined;
            t[2 * l + 3] = tour.order[(i & 1) == 0 ? tour.next(at) : tour.previous(at)];
        }
    }
}

// What stays of a tour between the edges that leave, in the order in which a chain joins it.
struct Stretches {
    int at[MOST_EXCHANGES];  // places of the edges that leave, in the tour's order; stretch s is behind the s-th
    int number[MOST_EXCHANGES];
    bool turned[MOST_EXCHANGES];
    int count;

    __device__ __forceinline__ int length(int s, int n) const {
        return (s + 1 < count ? at[s + 1] : at[0] + n) - at[s];
    }
};

// Whether a chain leaves one tour; if so, its stretches are put in their new order.
__device__ inline bool closes(const Tour& tour, int exchanges, const int (&t)[2 * MOST_EXCHANGES], Stretches& parts) {
    int begins[MOST_EXCHANGES], ends[MOST_EXCHANGES];  // which of t0, t1, .. ends the stretch before, begins the one behind
    parts.count = exchanges;
    for (int m = 0; m < exchanges; ++m) {  // sort the edges by where they leave
        const int p = tour.place[t[2 * m]], q = tour.place[t[2 * m + 1]];
        const bool forward = q == tour.next(p);
        const int at = forward ? p : q;
        int s = m;
        for (; s > 0 && parts.at[s - 1] > at; --s) {
            parts.at[s] = parts.at[s - 1];
            ends[s] = ends[s - 1];
            begins[s] = begins[s - 1];
        }
        parts.at[s] = at;
        ends[s] = forward ? 2 * m : 2 * m + 1;
        begins[s] = forward ? 2 * m + 1 : 2 * m;
    }
    int s = 0;
    bool turned = false;
    for (int step = 0; step < exchanges; ++step) {
        parts.number[step] = s;
        parts.turned[step] = turned;
        const int end = turned ? begins[s] : ends[s + 1 < exchanges ? s + 1 : 0];
        // the city that joins it: t1 and t2, t3 and t4, .. , the last and t0
        const int to = end & 1 ? (end + 1 < 2 * exchanges ? end + 1 : 0) : (end > 0 ? end - 1 : 2 * exchanges - 1);
        for (int e = 0; e < exchanges; ++e) {
            if (begins[e] == to) {
                s = e;
                turned = false;
                break;
            }
            if (ends[e] == to) {
                s = e > 0 ? e - 1 : exchanges - 1;
                turned = true;
                break;
            }
        }
        if (s == 0) return step == exchanges - 1 && !turned;
    }
    return false;
}

// Make a chain that closes, by all lanes of a warp; the longest stretch stays where it is. ``moved``: (n,) room.
__device__ inline void rejoin(const Tour& tour, const Stretches& parts, unsigned short* moved) {
    const int n = tour.n, lane = lane_id();
    int longest = 0, most = 0;
    for (int i = 0; i < parts.count; ++i) {
        const int length = parts.length(parts.number[i], n);
        if (length > most) {
            longest = i;
            most = length;
        }
    }
    const int keep = parts.number[longest];
    const bool back = parts.turned[longest];
    // cities behind the stretch that stays, in their new order as it is walked now
    int count = 0, i = longest;
    for (int others = 1; others < parts.count; ++others) {
        i = back ? (i > 0 ? i - 1 : parts.count - 1) : (i + 1 < parts.count ? i + 1 : 0);
        const int s = parts.number[i], length = parts.length(s, n);
        const bool turned = parts.turned[i] != back;
        for (int j = lane; j < length; j += 32) {
            const int p = turned ? parts.at[s] + length - j : parts.at[s] + 1 + j;
            moved[count + j] = tour.order[p < n ? p : p - n];
        }
        count += length;
    }
    __syncwarp();
    const int first = parts.at[keep] + 1 + most;
    for (int j = lane; j < count; j += 32) {
        const int p = first + j - (first + j < n ? 0 : first + j < 2 * n ? n : 2 * n);
        tour.order[p] = moved[j];
        tour.place[moved[j]] = p;
    }
    __syncwarp();
}
