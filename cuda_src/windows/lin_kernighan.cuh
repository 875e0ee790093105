// Lin-Kernighan steps: a sequence of basis moves, each from the open end of the previous one.
//
// As in Helsgaun (EJOR 126 (2000), section 4.3), a move that does not close with a gain is applied if its partial gain
// is positive: t1 is unchanged, and the move's last city is the next t2. Added edges are not removed again. After
// `DEPTH` moves without a closing one, all are undone. A repair ends when no queued city has a move.
#pragma once

#include "windows/three_opt.cuh"

constexpr int DEPTH = 48;             // maximum basis moves of a step
constexpr int MOST_CITIES = 1 << 14;  // maximum searched cities of a repair; a bound against endless loops

// Mark the edge between two adjacent cities as fixed until it is measured again; the mark moves with the edge. Called
// by one lane.
__device__ __forceinline__ void lock_edge(const View& view, int u, int v) {
    const int p = view.w.place[u], q = view.w.place[v];
    view.w.edge[view.wrapped(p + 1) == q ? p : q] = FIXED_EDGE;
}

// Apply moves from one city until one closes with a gain. Return the gain, or 0 with the window unchanged. `searches`
// counts the searches for a move. Called by all lanes.
__device__ inline float improve(const View& view, int city, Queue& queue, int& searches) {
    Window& w = view.w;
    Start start{city, 3, 0.0f};
    Snapshot before;
    Queue touched;
    for (int level = 0;; ++level) {
        bool closes;
        ++searches;
        const Move move = best_move(view, start, closes);
        if (!closes && (move.gain == 0.0f || level == DEPTH - 1)) {
            if (level > 0) roll_back(view, before);
            return 0.0f;
        }
        const int pattern = move.pattern(), x = move.x(), y = move.y();
        const Path path{view, w.place[start.t2], move.backward() ? -1 : 1};
        const int t1 = path.at(-1), head = start.t2;
        const int before_x = path.at(x - 1), at_x = path.at(x), before_y = path.at(y - 1), at_y = path.at(y);
        touched.push(t1);
        touched.push(head);
        touched.push(before_x);
        touched.push(at_x);
        touched.push(before_y);
        touched.push(at_y);
        if (!closes && level == 0) before.save(w);
        make_move(view, path, pattern, x, y);
        if (closes) {
            queue.add(touched);
            if (level > 0) view.measure(true);
            return move.gain;
        }
        // the added edges between the stretches U = [0, x) and V = [x, y) and after them; the new neighbour of t1
        const bool u_first = pattern == BOTH_TURNED;
        const int u_begin = pattern & 1 ? before_x : head, u_end = pattern & 1 ? head : before_x;
        const int v_begin = pattern & 2 ? before_y : at_x, v_end = pattern & 2 ? at_x : before_y;
        const int seam = u_first ? u_end << 16 | v_begin : v_end << 16 | u_begin;
        const int last = (u_first ? v_end : u_end) << 16 | at_y;
        const int next = u_first ? u_begin : v_begin;
        __syncwarp();
        if (lane_id() < 2) {
            const int added = lane_id() == 0 ? seam : last;
            lock_edge(view, added >> 16, added & 0xffff);
        }
        __syncwarp();
        start = Start{next, view.at(w.place[next] - 1) == t1 ? 1 : 2, move.gain};
    }
}

// Apply moves until no queued city has one, or for `most_searches` searches; return the gain. Called by all lanes.
__device__ inline float repair(const View& view, Queue& queue, int& searches, int most_searches) {
    float gain = 0.0f;
    for (int cities = 0; cities < MOST_CITIES && searches < most_searches; ++cities) {
        const int city = queue.next();
        if (city < 0) break;
        const float gained = improve(view, city, queue, searches);
        if (gained == 0.0f) queue.drop(city);
        gain += gained;
    }
    queue.own = 0;
    return gain;
}
