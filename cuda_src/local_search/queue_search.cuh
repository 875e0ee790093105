// The search of one warp from a queue of cities (the don't-look bits), on any tour that has, besides what moves ask for,
//
//   count, halted                     cities in the queue, and whether the search is to end
//   waiting(i), drop(taken), push(city, wanted)   the queue
//   has_room()                        whether one more move can be noted
//   take_turn()                       called once a turn
#pragma once

#include "device/warp.cuh"
#include "local_search/finding.cuh"

// Look at up to 16 of the cities that wait longest, a lane a city and direction (or part of the neighbours, where
// fewer wait), and apply what was found, the best first; the change of length.
template <class Tour>
__device__ __forceinline__ double improve_some(Tour& t) {
    const int lane = lane_id();
    const int bits = t.count > 8 ? 4 : t.count > 4 ? 3 : 2, slot = lane & ((1 << bits) - 1);
    const int taken = min(t.count, 1 << bits);
    const bool mine = slot < taken;
    const int a = t.waiting(mine ? slot : 0);
    t.drop(taken);
    Finding best{a, 0, 0, 0.0f, Move{0.0f, 0, 0, 0, 0}};
    if (mine) best = look(t, a, lane, bits);
    double total = 0.0;
    bool again = false;  // a comes back to the queue: what was found for it has gone
    while (t.has_room()) {
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
            look_again(t, best);
            again = again || !best.found();
        }
        __syncwarp();
    }
    t.push(a, again);
    return total;
}

// Work the queue off until no queued city has an improving move, or the host ends it; the change of length. While
// reversals are logged, the search ends early rather than outgrow the log.
template <class Tour>
__device__ __forceinline__ double search(Tour& t) {
    double total = 0.0;
    while (t.count > 0 && t.has_room() && !t.halted) {
        total += improve_some(t);
        t.take_turn();
    }
    while (t.count > 0) t.drop(min(t.count, 32));
    return total;
}
