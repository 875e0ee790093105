// Or-3opt for asymmetric instances: swap two adjacent stretches of the tour without reversal.
//
// a -> [b .. e] -> [f .. c] -> d becomes a -> [f .. c] -> [b .. e] -> d, with f near a and d near e, as in the CPU
// engine (backends/cpu/directed_search.py). The tour type offers the interface of moves.cuh and
//
//   neighbours, near, k, searched       candidate lists
//   position[city], wrap(p)             positions
//   turn(first, length)                 reverse `length` cities from position `first` on; called by all lanes
#pragma once

#include "device/warp.cuh"
#include "instance/metric.cuh"
#include "local_search/queue_search.cuh"

constexpr int OR_3OPT = 4;  // kind of a move with x0 = a, x1 = f, x2 = d

// Steps from city i to city j along the tour.
template <class Tour>
__device__ __forceinline__ int steps(const Tour& t, int i, int j) {
    return t.wrap(static_cast<int>(t.position[j]) - static_cast<int>(t.position[i]));
}

// The first half of a move: a -> b and e -> f are removed, a -> f is added; to_a: steps from f to a.
struct Opening {
    int a, b, f, e, to_a;
    float removed, af;
};

template <class Tour>
__device__ __forceinline__ Opening opening(const Tour& t, int a, int b, float ab, int f, float af) {
    const int e = t.after(f, -1);
    return Opening{a, b, f, e, steps(t, f, a), ab + distance(t.cities, e, f), af};
}

// The move that closes with e -> d, at distance ed; kind 0 if it does not shorten the tour.
template <class Tour>
__device__ __forceinline__ Move close_with(const Tour& t, const Opening& o, int d, float ed) {
    Move move{0.0f, 0, o.a, o.f, d};
    if (d == o.f || steps(t, o.f, d) > o.to_a) return move;
    const int c = t.after(d, -1);
    const float cd = distance(t.cities, c, d);
    const float delta = o.af + ed + distance(t.cities, c, o.b) - o.removed - cd;
    if (delta < -NOISE * (o.removed + cd)) {
        move.delta = delta;
        move.kind = OR_3OPT;
    }
    return move;
}

// The best move that replaces the edge from a, among every `ways`-th neighbour from `way` on.
template <class Tour>
__device__ __forceinline__ Move best_stretches(const Tour& t, int a, int b, float ab, int way, int ways) {
    Move best{0.0f, 0, 0, 0, 0};
    const size_t row = static_cast<size_t>(a) * t.k;
    for (int r = way; r < t.searched; r += ways) {
        const float af = t.near[row + r];
        if (af >= ab) break;
        const Opening o = opening(t, a, b, ab, t.neighbours[row + r], af);
        const size_t row_e = static_cast<size_t>(o.e) * t.k;
        for (int s = 0; s < t.searched; ++s) {
            const float ed = t.near[row_e + s];
            if (ed >= o.removed - af) break;
            const Move move = close_with(t, o, t.neighbours[row_e + s], ed);
            if (move.delta < best.delta) best = move;
        }
    }
    return best;
}

// Swap adjacent stretches of a and b cities from position `first` on: reverse both together, then each.
template <class Tour>
__device__ __forceinline__ void swap_stretches(Tour& t, int first, int a, int b) {
    t.turn(first, a + b);
    t.turn(first, b);
    t.turn(t.wrap(first + b), a);
}

// Apply a move that all lanes hold. Of the two stretches and the rest of the tour, the longest stays in place.
template <class Tour>
__device__ __forceinline__ void apply(Tour& t, const Move& move) {
    const int lane = lane_id(), b = t.after(move.x0, 1), e = t.after(move.x1, -1), c = t.after(move.x2, -1);
    const int end = lane == 0 ? move.x0 : lane == 1 ? b : lane == 2 ? e : lane == 3 ? move.x1 : lane == 4 ? c : move.x2;
    t.push(end, lane < 6);
    const int first = t.position[b], one = steps(t, b, e) + 1, two = steps(t, move.x1, c) + 1, rest = t.n() - one - two;
    __syncwarp();
    if (rest >= one && rest >= two) {
        swap_stretches(t, first, one, two);
    } else if (one >= two) {
        swap_stretches(t, t.wrap(first + one), two, rest);
    } else {
        swap_stretches(t, t.wrap(first + one + two), rest, one);
    }
}

// True if city a has an improving move; each lane may pass another city.
template <class Tour>
__device__ __forceinline__ bool can_improve(const Tour& t, int a) {
    const int b = t.after(a);
    return best_stretches(t, a, b, distance(t.cities, a, b), 0, 1).kind != 0;
}

// The best move that replaces the edge from a, in the lane's part of the neighbourhood.
template <class Tour>
__device__ __forceinline__ FoundMove best_move_of(const Tour& t, int a, int lane, int bits) {
    const int b = t.after(a);
    const Move move = best_stretches(t, a, b, distance(t.cities, a, b), lane >> bits, 2 * (16 >> bits));
    return FoundMove{a, b, move.x1, 0.0f, move};
}

// Evaluate a found move again after the tour has changed; it becomes kind 0 if b no longer follows a or the gain is 0.
template <class Tour>
__device__ __forceinline__ void reevaluate(const Tour& t, FoundMove& f) {
    const int d = f.move.x2;
    f.move.kind = 0;
    f.move.delta = 0.0f;
    if (t.after(f.a) != f.b || f.b == f.c) return;
    const float ab = distance(t.cities, f.a, f.b), ac = distance(t.cities, f.a, f.c);
    const Opening o = opening(t, f.a, f.b, ab, f.c, ac);
    if (o.e != d) f.move = close_with(t, o, d, distance(t.cities, o.e, d));
}
