// Sequential 3-opt moves around one city, all of them at once: every lane looks at some.
//
// Lin-Kernighan steps of three exchanges with full breadth (Helsgaun, EJOR 126 (2000), section 4: the basis move;
// t1 .. t6 as there). Take out (t1, t2), add (t2, t3), take out (t3, t4), add (t4, t5), take out (t5, t6), close with
// (t6, t1). No path is reversed to look: which moves keep one cycle follows from the order of the cities alone.
#pragma once

#include "windows/window.cuh"

// The best move that a lane or the warp has found. With the path read from t2 to t1, the move lays its first two
// stretches, [0, x) and [x, y), anew.
struct Move {
    int gain;   // units; 0 if there is none
    int code;   // pattern | x << 8 | y << 16 | (step > 0) << 24
};

// The path without (t1, t2) is 0 .. m-1, t2 at 0. Moves that give t2 a nearer neighbour t3. All lanes.
__device__ inline Move best_move(const View& view, int t2) {
    Window& w = view.w;
    const int lane = lane_id(), m = view.m;
    // lanes: both directions of the tour x both neighbours t4 of t3 x eight t3
    const bool after_t3 = lane & 2;
    const Path path{view, w.place[t2], lane & 1 ? 1 : -1};
    int best = 0, code = 0;
    const int t1 = path.at(-1), t3 = w.near[t2][lane >> 2];
    if (t3 != NONE && !view.tied(t1, t2)) {
        const int g1 = view.units_between(t1, t2) - view.units_between(t2, t3);
        const int q3 = path.index(t3);
        if (g1 > 0 && q3 >= 2 && q3 < m - 1) {
            const int t4 = path.at(after_t3 ? q3 + 1 : q3 - 1);
            if (!view.tied(t3, t4)) {
                const int g2 = g1 + view.units_between(t3, t4);
                const int direction = (lane & 1) << 24;
                if (!after_t3) {  // 2-opt: [0, q3) turned
                    const int gain = g2 - view.units_between(t4, t1);
                    if (gain > best) {
                        best = gain;
                        code = V_THEN_U_TURNED | q3 << 8 | q3 << 16 | direction;
                    }
                }
                const uint2 row = *reinterpret_cast<const uint2*>(w.near[t4]);
                for (int r = 0; r < NEAR; ++r) {
                    const int t5 = (r < 4 ? row.x >> 8 * r : row.y >> 8 * (r - 4)) & 255u;
                    if (t5 == NONE) continue;
                    const int g = g2 - view.units_between(t4, t5);
                    if (g <= 0) break;  // the gain criterion; the row ascends
                    const int q5 = path.index(t5);
                    for (int other = 0; other < 2; ++other) {
                        // t6 and the stretches, by where t5 lies
                        int q6, x, y, pattern;
                        bool valid;
                        if (!after_t3) {
                            if (q5 < q3) {  // [0, q5] and (q5, q3): the second, then the first turned
                                q6 = q5 + 1, x = q5 + 1, y = q3, pattern = V_THEN_U_TURNED;
                                valid = q5 <= q3 - 3;
                            } else {  // [0, q3) and [q3, q5): the second turned, then the first
                                q6 = q5 - 1, x = q3, y = q5, pattern = V_TURNED_THEN_U;
                                valid = q5 > q3 && q5 < m - 1;
                            }
                            valid = valid && other == 0;
                        } else if (other == 0) {  // [0, q5] and (q5, q3] change places
                            q6 = q5 + 1, x = q5 + 1, y = q3 + 1, pattern = SWAPPED;
                            valid = q5 < q3;
                        } else {  // [0, q5) and [q5, q3], each turned
                            q6 = q5 - 1, x = q5, y = q3 + 1, pattern = BOTH_TURNED;
                            valid = q5 < q3 && q5 > 0;
                        }
                        if (valid) {
                            const int t6 = path.at(q6);
                            if (!view.tied(t5, t6)) {
                                const int gain = g + view.units_between(t5, t6) - view.units_between(t6, t1);
                                if (gain > best) {
                                    best = gain;
                                    code = pattern | x << 8 | y << 16 | direction;
                                }
                            }
                        }
                    }
                }
            }
        }
    }
    // the first lane of the best gain
    const unsigned packed = best > 0 ? static_cast<unsigned>(min(best, (1 << 26) - 1)) << 5 | (31 - lane) : 0u;
    const unsigned most = warp_max(packed);
    if (most == 0u) return Move{0, 0};
    const int winner = 31 - static_cast<int>(most & 31u);
    return Move{__shfl_sync(EVERY_LANE, best, winner), __shfl_sync(EVERY_LANE, code, winner)};
}

// Make a move of ``best_move``: of the three stretches the longest stays where it is. All lanes.
__device__ inline void make_move(const View& view, int t2, int code) {
    const int pattern = code & 255, x = code >> 8 & 255, y = code >> 16 & 255;
    const Path path{view, view.w.place[t2], code >> 24 & 1 ? 1 : -1};
    const int one = x, two = y - x, three = view.m - y;
    // Read from the end of the first stretch, or of the second, the same cycle shows another pattern of the other two.
    constexpr int after_first = SWAPPED | BOTH_TURNED << 2 | V_THEN_U_TURNED << 4 | V_TURNED_THEN_U << 6;
    constexpr int after_second = SWAPPED | V_TURNED_THEN_U << 2 | BOTH_TURNED << 4 | V_THEN_U_TURNED << 6;
    if (three >= one && three >= two)
        rearrange(view, path, 0, one, two, pattern);
    else if (one >= two)
        rearrange(view, path, x, two, three, after_first >> 2 * pattern & 3);
    else
        rearrange(view, path, y, three, one, after_second >> 2 * pattern & 3);
}
