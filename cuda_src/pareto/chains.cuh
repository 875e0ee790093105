// Chains of edge exchanges, which alternately remove an edge from a tour and add one.
//
// A chain of r exchanges is 2r cities t0, t1, ..: (t0, t1), (t2, t3), .. are removed; (t1, t2), .. and (t_{2r-1}, t0)
// are added. pymoo_gpuaco/backends/cpu/pareto/chains.py enumerates the same chains. The state of a thread's enumeration
// fits into registers.
#pragma once

#include "pareto/costs.cuh"

constexpr int MOST_EXCHANGES = 5;
constexpr int MOST_OPEN = MOST_EXCHANGES - 1;  // maximum exchanges of a chain that can be extended

// Up to four numbers below 2^16.
struct Indices {
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

// Depth-first enumeration of the chains that begin at one city in one direction.
struct ChainSearch {
    // By exchange: number of candidates tried, two per neighbour, because either of its edges can be removed; city
    // where the next edge is added; position of the removed edge; gain of the open chain up to the exchange.
    Indices next, last, removed;
    double gain[MOST_OPEN];
    int opened;  // number of exchanges; 0: no more chains
    int first;   // city t0
    int end;     // end of the candidates for the first exchange

    // Remove an edge of a city; try candidates begin .. end-1 of the edge's other end.
    __device__ __forceinline__ void start(const Tour& tour, int city, bool forward, int begin, int end_, double cost) {
        const int p = tour.place[city], q = forward ? tour.next(p) : tour.previous(p);
        first = city;
        opened = 1;
        next.bits = begin;
        last.bits = tour.order[q];
        removed.bits = forward ? p : q;
        end = end_;
        gain[0] = cost;
    }
};

// Advance by one candidate. Return the number of exchanges and the change of the weighted length if the chain can be
// closed, else 0. `most`: maximum exchanges; `cost_at(p)`: cost of the tour's edge after position p.
template <class CostAt>
__device__ __forceinline__ int next_chain(ChainSearch& chains, const Costs& costs, const Weights& weights,
                                          const Tour& tour, const CostAt& cost_at, int most, double slack,
                                          double& change) {
    const int level = chains.opened - 1;
    const int i = chains.next.at(level), end = level == 0 ? chains.end : 2 * costs.c;
    if (i >= end) {
        --chains.opened;
        return 0;
    }
    const int last = chains.last.at(level), listed = last * costs.c + (i >> 1);
    const int city = costs.neighbours[listed];
    if (city == last) {  // padding of a shorter row
        chains.next.set(level, end);
        return 0;
    }
    double gain = chains.gain[0];
#pragma unroll
    for (int l = 1; l < MOST_OPEN; ++l) gain = level == l ? chains.gain[l] : gain;
    gain = __dadd_rn(gain, -weights.sum(costs.near[listed]));
    const int p = tour.place[city];
    if (gain <= -slack || tour.adjacent(p, tour.place[last])) {
        chains.next.set(level, (i | 1) + 1);
        return 0;
    }
    chains.next.set(level, i + 1);
    const int q = (i & 1) == 0 ? tour.next(p) : tour.previous(p), edge = (i & 1) == 0 ? p : q;
    bool is_removed = false;
#pragma unroll
    for (int l = 0; l < MOST_OPEN; ++l) is_removed |= l <= level && chains.removed.at(l) == edge;
    if (is_removed) return 0;
    const int other = tour.order[q], exchanges = level + 2;
    gain = __dadd_rn(gain, cost_at(edge));
    if (exchanges < most) {
        chains.opened = exchanges;
        chains.next.set(level + 1, 0);
        chains.last.set(level + 1, other);
        chains.removed.set(level + 1, edge);
#pragma unroll
        for (int l = 1; l < MOST_OPEN; ++l) chains.gain[l] = level + 1 == l ? gain : chains.gain[l];
    }
    // the closing edge is in the tour or has been removed by this exchange
    if (other == chains.first || tour.adjacent(q, tour.place[chains.first])) return 0;
    change = __dadd_rn(weights.sum(costs.between(other, chains.first)), -gain);
    return exchanges;
}

// The candidates of the chain that `next_chain` has returned.
__device__ __forceinline__ Indices taken(const ChainSearch& chains, int exchanges) {
    Indices indices = {0};
#pragma unroll
    for (int l = 0; l < MOST_OPEN; ++l)
        if (l < exchanges - 1) indices.set(l, chains.next.at(l) - 1);
    return indices;
}

// Write the chain's cities t0, t1, .. to t; its other elements are unchanged.
__device__ __forceinline__ void cities_of(const Costs& costs, const Tour& tour, int city, bool forward, int exchanges,
                                          Indices taken, int (&t)[2 * MOST_EXCHANGES]) {
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

// The stretches of a tour between the removed edges, in the order of the new tour.
struct Stretches {
    int at[MOST_EXCHANGES];      // positions of the removed edges, ascending; stretch s follows the s-th
    int number[MOST_EXCHANGES];  // stretches in the order of the new tour
    bool reversed[MOST_EXCHANGES];
    int count;

    __device__ __forceinline__ int length(int s, int n) const {
        return (s + 1 < count ? at[s + 1] : at[0] + n) - at[s];
    }
};

// Return true if a chain gives a single tour, and write its stretches in their new order.
__device__ inline bool closes(const Tour& tour, int exchanges, const int (&t)[2 * MOST_EXCHANGES], Stretches& parts) {
    // indices into t of the city that begins stretch s, and of the city that ends the stretch before
    int begins[MOST_EXCHANGES], ends[MOST_EXCHANGES];
    parts.count = exchanges;
    for (int m = 0; m < exchanges; ++m) {  // sort the removed edges by position
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
    bool reversed = false;
    for (int step = 0; step < exchanges; ++step) {
        parts.number[step] = s;
        parts.reversed[step] = reversed;
        const int end = reversed ? begins[s] : ends[s + 1 < exchanges ? s + 1 : 0];
        // the new neighbour of t[end]: edges are added between t1 and t2, t3 and t4, .., the last and t0
        const int to = end & 1 ? (end + 1 < 2 * exchanges ? end + 1 : 0) : (end > 0 ? end - 1 : 2 * exchanges - 1);
        for (int e = 0; e < exchanges; ++e) {
            if (begins[e] == to) {
                s = e;
                reversed = false;
                break;
            }
            if (ends[e] == to) {
                s = e > 0 ? e - 1 : exchanges - 1;
                reversed = true;
                break;
            }
        }
        if (s == 0) return step == exchanges - 1 && !reversed;
    }
    return false;
}

// Apply a chain that closes, by all lanes of a warp; the longest stretch is not moved. `moved`: (n,) workspace.
__device__ inline void apply_chain(const Tour& tour, const Stretches& parts, unsigned short* moved) {
    const int n = tour.n, lane = lane_id();
    int longest = 0, most = 0;
    for (int i = 0; i < parts.count; ++i) {
        const int length = parts.length(parts.number[i], n);
        if (length > most) {
            longest = i;
            most = length;
        }
    }
    const int fixed = parts.number[longest];
    const bool back = parts.reversed[longest];
    // cities after the stretch that is not moved, in their new order
    int count = 0, i = longest;
    for (int others = 1; others < parts.count; ++others) {
        i = back ? (i > 0 ? i - 1 : parts.count - 1) : (i + 1 < parts.count ? i + 1 : 0);
        const int s = parts.number[i], length = parts.length(s, n);
        const bool reversed = parts.reversed[i] != back;
        for (int j = lane; j < length; j += 32) {
            const int p = reversed ? parts.at[s] + length - j : parts.at[s] + 1 + j;
            moved[count + j] = tour.order[p < n ? p : p - n];
        }
        count += length;
    }
    __syncwarp();
    const int first = parts.at[fixed] + 1 + most;
    for (int j = lane; j < count; j += 32) {
        const int p = first + j - (first + j < n ? 0 : first + j < 2 * n ? n : 2 * n);
        tour.order[p] = moved[j];
        tour.place[moved[j]] = p;
    }
    __syncwarp();
}
