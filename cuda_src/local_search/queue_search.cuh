// Local search of one warp from a queue of cities (don't-look bits), on any tour type with the moves' interface and
//
//   count, halted                                     cities in the queue; true if the search is halted
//   queued_city(i), drop(taken), push(city, wanted)   the queue
//   has_capacity()                                    true if one more move can be stored
//   count_step()                                      called after every step
//
// moves.cuh or directed.cuh define
//
//   can_improve(tour, a)                true if city a has an improving move; each lane may pass another city
//   best_move_of(tour, a, lane, bits)   the best move of city a in part lane >> bits of 32 >> bits of its
//                                       neighbourhood; 2^bits cities share the lanes
//   reevaluate(tour, found)             the same move after the tour has changed
//   apply(tour, move)                   apply a move that all lanes hold
#pragma once

#include "device/warp.cuh"

constexpr float NOISE = 1e-6f;  // relative rounding noise of a move's gain

// A move; kind 0: none. moves.cuh and directed.cuh define the other kinds and x0, x1, x2.
struct Move {
    float delta;
    int kind, x0, x1, x2;
};

// A move found by one lane: c, at distance ac, replaces b as a tour neighbour of city a.
struct FoundMove {
    int a, b, c;
    float ac;
    Move move;

    __device__ __forceinline__ bool found() const { return move.kind != 0; }
};

// Search from up to 16 of the oldest queued cities, one lane per city and direction; if fewer are queued, more lanes
// share a city's neighbours. Apply the moves found, the best first; return the change of length.
template <class Tour>
__device__ __forceinline__ double improve_batch(Tour& t) {
    const int lane = lane_id();
    const int bits = t.count > 8 ? 4 : t.count > 4 ? 3 : 2, slot = lane & ((1 << bits) - 1);
    const int taken = min(t.count, 1 << bits);
    const bool active = slot < taken;
    const int a = t.queued_city(active ? slot : 0);
    t.drop(taken);
    FoundMove best{a, 0, 0, 0.0f, Move{0.0f, 0, 0, 0, 0}};
    if (active) best = best_move_of(t, a, lane, bits);
    double total = 0.0;
    bool again = false;  // queue a again: its move has become invalid
    while (t.has_capacity()) {
        const unsigned key = ordered(best.move.delta);
        const unsigned least = warp_min(key);
        if (least >= ordered(0.0f)) break;
        const int winner = __ffs(__ballot_sync(EVERY_LANE, key == least)) - 1;
        Move move;
        move.delta = __shfl_sync(EVERY_LANE, best.move.delta, winner);
        move.kind = __shfl_sync(EVERY_LANE, best.move.kind, winner);
        move.x0 = __shfl_sync(EVERY_LANE, best.move.x0, winner);
        move.x1 = __shfl_sync(EVERY_LANE, best.move.x1, winner);
        move.x2 = __shfl_sync(EVERY_LANE, best.move.x2, winner);
        total += move.delta;
        apply(t, move);
        if (best.found()) {
            reevaluate(t, best);
            again = again || !best.found();
        }
        __syncwarp();
    }
    t.push(a, again);
    return total;
}

// Process the queue until it is empty, the host halts the search, or `has_capacity` is false; return the change of
// length.
template <class Tour>
__device__ __forceinline__ double search(Tour& t) {
    double total = 0.0;
    while (t.count > 0 && t.has_capacity() && !t.halted) {
        total += improve_batch(t);
        t.count_step();
    }
    while (t.count > 0) t.drop(min(t.count, 32));
    return total;
}
