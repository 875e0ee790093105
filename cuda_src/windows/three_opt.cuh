// Sequential 3-opt moves at one city, evaluated in parallel by the lanes of a warp.
//
// The basis move of Helsgaun, EJOR 126 (2000), section 4, with full breadth: remove (t1, t2), add (t2, t3), remove
// (t3, t4), add (t4, t5), remove (t5, t6), close with (t6, t1). The order of the cities decides which moves preserve
// one cycle; evaluation reverses no path. If no move closes with a gain, lin_kernighan.cuh continues from the move with
// the largest partial gain.
#pragma once

#include "windows/window.cuh"

// The best move of a lane or of the warp. It rearranges the first two stretches, [0, x) and [x, y), of the path from t2
// to t1.
struct Move {
    float gain;  // units; 0 if there is none
    int code;    // pattern | x << 4 | y << 14 | (step < 0) << 24

    __device__ __forceinline__ int pattern() const { return code & 15; }
    __device__ __forceinline__ int x() const { return code >> 4 & 1023; }
    __device__ __forceinline__ int y() const { return code >> 14 & 1023; }
    __device__ __forceinline__ bool backward() const { return code >> 24; }

    __device__ __forceinline__ void consider(float other_gain, int pattern, int x, int y, int backward) {
        if (other_gain > gain) {
            gain = other_gain;
            code = pattern | x << 4 | y << 14 | backward << 24;
        }
    }
};

// Start of moves: t2, whose edge to t1 is removed.
struct Start {
    int t2;
    int sides;   // bit 0: try the t1 that precedes t2 in the window's order, bit 1: the one that follows it
    float open;  // removed minus added length so far; 0: only (t1, t2) is removed
};

// Larger gains, which occur in deep searches with the longest edges, are clipped.
constexpr unsigned MOST_GAIN = (1u << 26) - 1u;

// Reduce over the lanes: the best move that closes the tour with a gain, and `closes` is true; if there is none, the
// one with the largest partial gain. Gains are whole numbers.
__device__ __forceinline__ Move best_of_lanes(const Move& closed, const Move& open, bool& closes) {
    const bool own_closes = closed.gain > 0.0f;
    const float gain = own_closes ? closed.gain : open.gain;
    const int code = own_closes ? closed.code : open.code;
    const unsigned packed = min(static_cast<unsigned>(gain), MOST_GAIN) << 5 | (31 - lane_id());
    const unsigned most = warp_max(gain > 0.0f ? packed | (own_closes ? 1u << 31 : 0u) : 0u);
    closes = most >> 31;
    return Move{static_cast<float>(most << 1 >> 6), __shfl_sync(EVERY_LANE, code, 31 - static_cast<int>(most & 31u))};
}

// Find the best 3-opt or 2-opt move that gives t2 a nearer neighbour, and set `closes`. If there is none, find the
// 3-opt move with the largest partial gain; gain 0: no move. Called by all lanes.
__device__ inline Move best_move(const View& view, const Start& start, bool& closes) {
    Window& w = view.w;
    const int lane = lane_id(), m = view.m, t2 = start.t2, first = w.place[t2];
    Move best{0.0f, 0}, open_move{0.0f, 0};
    // Partial moves, one per lane: both directions of the tour x both neighbours t4 of t3 x eight t3. The path without
    // (t1, t2) is 0 .. m-1, with t2 at 0 and t1 at m-1.
    bool open = false;
    PartialMove partial;
    {
        const int backward = lane & 1, after_t3 = lane >> 1 & 1;
        const Path path{view, first, backward ? -1 : 1};
        const int listed = w.near(t2, lane >> 2), t3 = listed == NONE ? t2 : listed, q3 = path.index(t3);
        const int t1 = path.at(-1), t4 = path.at(after_t3 ? q3 + 1 : q3 - 1);
        const float g1 = (start.open == 0.0f ? path.edge(-1) : start.open) - view.units_between(t2, t3);
        const float g2 = g1 + path.edge(after_t3 ? q3 : q3 - 1), back = view.units_between(t4, t1);
        open = listed != NONE && start.sides >> backward & 1 && g1 > view.margin && q3 >= 2 && q3 < m - 1 && g2 > 0.0f;
        partial = PartialMove::make(g2, t4, q3, after_t3, backward);
        // 2-opt: reverse [0, q3)
        if (open && !after_t3) best.consider(g2 - back, V_THEN_U_TURNED, q3, q3, backward);
    }
    // store them sorted by kind, to reduce divergence
    const unsigned opened = __ballot_sync(EVERY_LANE, open);
    const unsigned before_t3 = opened & 0x33333333u, of_kind = lane & 2 ? opened ^ before_t3 : before_t3;
    if (open) w.partial[__popc(of_kind & ((1u << lane) - 1u)) + (lane & 2 ? __popc(before_t3) : 0)] = partial;
    __syncwarp();
    // Full moves: four partial moves at a time, eight lanes each, one t5 per lane. All loads are issued
    // unconditionally, so that their latencies overlap.
    const int count = __popc(opened);
    for (int i = lane >> 3; i < count; i += 4) {
        const PartialMove one = w.partial[i];
        const int listed = w.near(one.t4, lane & 7), t5 = listed == NONE ? one.t4 : listed, backward = one.backward();
        const Path path{view, first, backward ? -1 : 1};
        const int t1 = path.at(-1), q3 = one.q3(), q5 = path.index(t5);
        const int beyond = path.at(q5 + 1), before = path.at(q5 - 1);
        const float to_beyond = path.edge(q5), to_before = path.edge(q5 - 1);
        const float g = one.gain - view.units_between(one.t4, t5);
        const float from_beyond = view.units_between(beyond, t1), from_before = view.units_between(before, t1);
        // If t4 follows t3, t2 .. t3 is a cycle, which t5 must open, on either side. Otherwise the partial move is a
        // 2-opt move, and only one side of t5 gives a connected path.
        const bool after = one.after_t3(), inside = q5 < q3;
        const bool fits = inside ? after || q5 <= q3 - 3 : !after && q5 != q3 && q5 < m - 1;
        if (listed != NONE && g > view.margin && fits) {
            const int pattern = after ? SWAPPED : inside ? V_THEN_U_TURNED : V_TURNED_THEN_U;
            const int x = inside ? q5 + 1 : q3, y = after ? q3 + 1 : inside ? q3 : q5;
            const float left = g + (inside ? to_beyond : to_before);
            open_move.consider(left, pattern, x, y, backward);
            best.consider(left - (inside ? from_beyond : from_before), pattern, x, y, backward);
            if (after && q5 > 0) {
                const float other = g + to_before;
                open_move.consider(other, BOTH_TURNED, q5, q3 + 1, backward);
                best.consider(other - from_before, BOTH_TURNED, q5, q3 + 1, backward);
            }
        }
    }
    __syncwarp();
    return best_of_lanes(best, open_move, closes);
}

// Apply a move of `best_move`; the longest of the three stretches is not moved. Called by all lanes.
__device__ inline void make_move(const View& view, const Path& path, int pattern, int x, int y) {
    const int one = x, two = y - x, three = view.m - y;
    // equivalent patterns of the other two stretches, if the cycle starts after the first or after the second stretch
    constexpr int after_first = SWAPPED | BOTH_TURNED << 2 | V_THEN_U_TURNED << 4 | V_TURNED_THEN_U << 6;
    constexpr int after_second = SWAPPED | V_TURNED_THEN_U << 2 | BOTH_TURNED << 4 | V_THEN_U_TURNED << 6;
    // a single call for all three cases, because inlined code must fit into the instruction cache
    const bool third = three >= one && three >= two, first = !third && one >= two;
    const int from = third ? 0 : first ? x : y;
    const int u = third ? one : first ? two : three, v = third ? two : first ? three : one;
    const int equivalent = third ? pattern : (first ? after_first : after_second) >> 2 * pattern & 3;
    rearrange(view, path, from, u, v, equivalent);
}
