// 2-opt and Or-opt moves: evaluation and application, on any tour type with
//
//   cities                              for distances
//   n()                                 number of cities
//   after(city, places)                 the city `places` positions after another
//   reverse_path(outside, first, last)  reverse the path first .. last next to `outside`; called by all lanes
//
// Climbers evaluate all pairs of positions and have a 2-opt gain of their own (climber_tour.cuh).
#pragma once

#include "device/warp.cuh"
#include "instance/metric.cuh"
#include "local_search/queue_search.cuh"

// MOVES is MOVES_2OPT or MOVES_2OPT_OROPT: definitions from pymoo_gpuaco/colony/parameters.py.
#define OR_OPT (MOVES != MOVES_2OPT)

// Kinds of a move: 1: 2-opt, x1 .. x2 reversed after x0; 2: Or-opt, segment x0 .. x1 after x2; 3: as 2, reversed.

// Data shared by all moves at city a in one direction. The tour is f3 f2 f1 a b, forwards or backwards. A segment of
// 1, 2 or 3 cities ends at a: a; f1 a; f2 f1 a.
struct Side {
    bool forward;
    int a, b, f1, f2, f3;
    Point at_a, at_b, at_f1, at_f2;
    float ab;         // the removed edge of a
    float joined[3];  // change of length by removing the segment of 1, 2 or 3 cities
    float noise;      // length of the edges at a that a move may remove
};

template <class Tour>
__device__ __forceinline__ Side side_of(const Tour& t, int a, bool forward) {
    const Cities& cities = t.cities;
    Side s;
    const int step = forward ? 1 : -1;
    s.forward = forward;
    s.a = a;
    s.b = t.after(a, step);
    s.f1 = t.after(a, -step);
    s.f2 = t.after(a, -2 * step);
    s.f3 = t.after(a, -3 * step);
    s.at_a = point_of(cities, a);
    s.at_b = point_of(cities, s.b);
    s.ab = distance(cities, a, s.at_a, s.b, s.at_b);
    s.noise = s.ab;
#if OR_OPT
    s.at_f1 = point_of(cities, s.f1);
    s.at_f2 = point_of(cities, s.f2);
    const Point at_f3 = point_of(cities, s.f3);
    const float edge1 = distance(cities, a, s.at_a, s.f1, s.at_f1);
    const float edge2 = distance(cities, s.f1, s.at_f1, s.f2, s.at_f2);
    const float edge3 = distance(cities, s.f2, s.at_f2, s.f3, at_f3);
    s.joined[0] = distance(cities, s.b, s.at_b, s.f1, s.at_f1) - edge1 - s.ab;
    s.joined[1] = distance(cities, s.b, s.at_b, s.f2, s.at_f2) - edge2 - s.ab;
    s.joined[2] = distance(cities, s.b, s.at_b, s.f3, at_f3) - edge3 - s.ab;
    s.noise += edge1 + edge2 + edge3;
#endif
    return s;
}

// The best move that makes c, at distance ac, a tour neighbour of a.
template <class Tour>
__device__ __forceinline__ Move best_move(const Tour& t, const Side& s, int c, float ac) {
    const Cities& cities = t.cities;
    const int next = t.after(c, 1), previous = t.after(c, -1);
    const Point at_c = point_of(cities, c), at_next = point_of(cities, next), at_previous = point_of(cities, previous);
    const float c_next = distance(cities, c, at_c, next, at_next);
    const float c_previous = distance(cities, c, at_c, previous, at_previous);
    Move move{0.0f, 0, 0, 0, 0};
    move.delta = -NOISE * (s.noise + c_next + c_previous);
    // 2-opt: (a, b) (c, d) -> (a, c) (b, d)
    const int d = s.forward ? next : previous;
    const float b_d = distance(cities, s.b, s.at_b, d, s.forward ? at_next : at_previous);
    const float two_opt = ac - s.ab + b_d - (s.forward ? c_next : c_previous);
    if (two_opt < move.delta && d != s.a) {
        move = s.forward ? Move{two_opt, 1, s.a, s.b, c} : Move{two_opt, 1, s.b, s.a, d};
    }
#if OR_OPT
    // Or-opt: the segment a .. e between c and one of its tour neighbours, a next to c
    const int longest = min(3, t.n() - 3);
    const float longer = fmaxf(c_next, c_previous);
    bool outside = true;  // c is not on the segment
#pragma unroll
    for (int length = 1; length <= 3; ++length) {
        const int e = length == 1 ? s.a : length == 2 ? s.f1 : s.f2;
        const Point& at_e = length == 1 ? s.at_a : length == 2 ? s.at_f1 : s.at_f2;
        outside = outside && length <= longest && e != c;
        const float saved = s.joined[length - 1] + ac;
        if (!outside || saved - longer >= move.delta) continue;  // even an edge of length 0 would gain nothing
        const int s1 = s.forward ? e : s.a, s2 = s.forward ? s.a : e;
        const float behind = saved + distance(cities, e, at_e, next, at_next) - c_next;
        if (behind < move.delta && next != s1) move = Move{behind, s.forward ? 3 : 2, s1, s2, c};
        const float ahead = saved + distance(cities, e, at_e, previous, at_previous) - c_previous;
        if (ahead < move.delta && previous != s2) move = Move{ahead, s.forward ? 2 : 3, s1, s2, previous};
    }
#endif
    if (move.kind == 0) move.delta = 0.0f;
    return move;
}

// Apply a move that all lanes hold, after queueing the ends of the changed edges.
template <class Tour>
__device__ __forceinline__ void apply(Tour& t, const Move& move) {
    const int lane = lane_id(), x0 = move.x0, x1 = move.x1, x2 = move.x2;
    const int p = t.after(x0, -1), nx = t.after(x1, 1);
    const int end = lane == 0 ? x0 : lane == 1 ? x1 : lane == 2 ? x2 : lane == 3 ? t.after(x2, 1) : lane == 4 ? p : nx;
    t.push(end, lane < (move.kind == 1 ? 4 : 6));
    if (move.kind == 1) {
        t.reverse_path(x0, x1, x2);
    } else {
        // p [x0..x1 nx..x2] d  ->  p [x2..nx x1..x0] d  ->  p [nx..x2] x1..x0 d  (->  nx..x2 x0..x1 d)
        t.reverse_path(p, x0, x2);
        t.reverse_path(p, x2, nx);
        if (move.kind == 2 && x0 != x1) t.reverse_path(x2, x1, x0);
    }
}

// True if city a has an improving move; each lane may pass another city. Do not return from inside the loops: CUDA 13.0
// then assumed a converged warp and removed its synchronisation, and the search hung on an H200
// (tests/test_cuda_compile.py).
template <class Tour>
__device__ __forceinline__ bool can_improve(const Tour& t, int a) {
    const size_t row = static_cast<size_t>(a) * t.k;
    bool found = false;
    for (int direction = 0; direction < 2 && !found; ++direction) {
        const Side s = side_of(t, a, direction == 0);
        for (int r = 0; r < t.searched && !found; ++r) {
            const float ac = t.near[row + r];
            if (ac >= s.ab) break;
            found = best_move(t, s, t.neighbours[row + r], ac).kind != 0;
        }
    }
    return found;
}

// The best move of city a in one direction, among every `ways`-th neighbour from `way` on.
template <class Tour>
__device__ __forceinline__ FoundMove best_move_of(const Tour& t, int a, int lane, int bits) {
    const bool forward = (lane >> bits) & 1;
    const int way = lane >> (bits + 1), ways = 16 >> bits;
    const size_t row = static_cast<size_t>(a) * t.k;
    const Side s = side_of(t, a, forward);
    FoundMove best{a, s.b, 0, 0.0f, Move{0.0f, 0, 0, 0, 0}};
    for (int r = way; r < t.searched; r += ways) {
        const float ac = t.near[row + r];
        if (ac >= s.ab) break;
        const int c = t.neighbours[row + r];
        const Move move = best_move(t, s, c, ac);
        if (move.delta < best.move.delta) {
            best.c = c;
            best.ac = ac;
            best.move = move;
        }
    }
    return best;
}

// Evaluate a found move again after the tour has changed; it becomes kind 0 if a and b are no longer adjacent.
template <class Tour>
__device__ __forceinline__ void reevaluate(const Tour& t, FoundMove& f) {
    const bool forward = t.after(f.a) == f.b, backward = t.after(f.a, -1) == f.b;
    f.move.kind = 0;
    f.move.delta = 0.0f;
    if (forward | backward) f.move = best_move(t, side_of(t, f.a, forward), f.c, f.ac);
}
