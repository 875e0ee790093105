// A window: some runs of a tour that one warp rearranges in shared memory.
//
// Cities are renumbered by their position in the tour, so that in the beginning city i stands at place i. Between two
// runs lies the rest of the tour: its two ends are *tied*, they may be turned and moved together and never parted. So
// a window is a small tour of its own, and any shorter one of it is a shorter tour of everything. With FIXED the ends of
// edges that must stay are tied as well.
#pragma once

#include "windows/near.cuh"
#include "windows/units.cuh"
#include "device/philox.cuh"
#include "device/warp.cuh"

#ifndef FIXED
#define FIXED 0  // 1: the instance has edges that must stay
#endif
#ifndef PENALTIES
#define PENALTIES 0  // 1: an edge counts with the node penalties of both its cities
#endif

constexpr int ROOM = 512;          // for cities of a window
constexpr int WINDOW = ROOM - 1;   // most cities of a window: their numbers have nine bits
constexpr int SLOTS = ROOM / 32;   // places a lane
constexpr int MOST_RUNS = 128;
constexpr int NONE = WINDOW;       // a neighbour that is not in the window

// Length of an edge that is tied: so short that nothing is gained by taking it out.
constexpr float TIED = -16777216.0f;

typedef unsigned short Local;

// A move begun: (t1, t2) and (t3, t4) out, (t2, t3) in; see three_opt.cuh.
struct __align__(8) Begun {
    float gain;
    Local t4;
    Local coded;  // place of t3 on the path | whether t4 follows it << 14 | whether the path is read backwards << 15

    static __device__ __forceinline__ Begun make(float gain, int t4, int q3, int after_t3, int backward) {
        return Begun{gain, static_cast<Local>(t4), static_cast<Local>(q3 | after_t3 << 14 | backward << 15)};
    }
    __device__ __forceinline__ int q3() const { return coded & 0x3fff; }
    __device__ __forceinline__ bool after_t3() const { return coded >> 14 & 1; }
    __device__ __forceinline__ int backward() const { return coded >> 15; }
};

struct __align__(16) Window {
    union {
        Point point[ROOM];
        int city[ROOM];  // its number in the instance, where distances are known by it
    };
    float edge[ROOM];                    // units from the city at a place to that at the next, or TIED
    Begun begun[32];
    unsigned char near_low[ROOM][NEAR];  // neighbours, nearest first, or NONE: their last eight bits
    unsigned char near_high[ROOM];       // and the ninth of each
    Local order[ROOM];                   // city at place
    Local place[ROOM];                   // of city
    Local tied[32];                      // a bit a city: whether it is tied to the one numbered next
    int run_begins[MOST_RUNS];           // position in the tour, relative to the window's own origin
    Local run_first[MOST_RUNS];          // number of the first city of the run
#if PENALTIES
    float penalty[ROOM];                 // units, whole; of each city
#endif

    __device__ __forceinline__ int near(int of, int rank) const {
        return near_low[of][rank] | (near_high[of] >> rank & 1) << 8;
    }
};
#ifdef WINDOW_BYTES
static_assert(sizeof(Window) == WINDOW_BYTES, "the host takes memory for a Window of other bytes");
#endif

// One warp's view of its window.
struct View {
    Window& w;
    const Cities& cities;
    float scale;
    int m;         // cities
    float margin;  // units; a move is followed up while what is out is longer than what is in by more than this

    // With penalties: every tour of the window is longer by the same, but the edges that good tours have stand out.
    __device__ __forceinline__ float units_between(int u, int v) const {
        const float d = BY_NUMBER ? units(cities, scale, w.city[u], Point(), w.city[v], Point())
                                  : units(cities, scale, u, w.point[u], v, w.point[v]);
#if PENALTIES
        return d + (w.penalty[u] + w.penalty[v]);
#else
        return d;
#endif
    }
    __device__ __forceinline__ bool tied(int u, int v) const {
        const int first = wrapped(u + 1) == v ? u : wrapped(v + 1) == u ? v : -1;
        return first >= 0 && (w.tied[first / SLOTS] >> first % SLOTS & 1);
    }
    __device__ __forceinline__ int wrapped(int p) const { return p >= m ? p - m : p < 0 ? p + m : p; }
    __device__ __forceinline__ int at(int p) const { return w.order[wrapped(p)]; }

    // Measure the edges behind all places, or those alone that are marked as tied. All lanes.
    __device__ inline void measure(bool marked = false) const {
#pragma unroll 1
        for (int p = lane_id(); p < m; p += 32) {
            if (marked && w.edge[p] != TIED) continue;
            const int u = w.order[p], v = at(p + 1);
            w.edge[p] = tied(u, v) ? TIED : units_between(u, v);
        }
        __syncwarp();
    }
};

// The path that is left when the edge before ``first`` is taken out, read from that place on; ``step`` is 1 or -1.
struct Path {
    const View& v;
    int first, step;

    __device__ __forceinline__ int place(int q) const { return v.wrapped(first + step * q); }
    __device__ __forceinline__ int at(int q) const { return v.w.order[place(q)]; }
    __device__ __forceinline__ int index(int city) const { return v.wrapped(step * (v.w.place[city] - first)); }
    // Length of the edge between q and q + 1.
    __device__ __forceinline__ float& edge(int q) const {
        return v.w.edge[v.wrapped(first + (step > 0 ? q : -q - 1))];
    }
};

// How two adjacent stretches U, V of a path are laid anew; ' is reversed.
enum Pattern { SWAPPED = 0, V_THEN_U_TURNED = 1, V_TURNED_THEN_U = 2, BOTH_TURNED = 3 };

// Turn the stretch [from, to) of a path around; the edges within it go with it. All lanes.
__device__ inline void turn(const View& view, const Path& path, int from, int to) {
    Window& w = view.w;
#pragma unroll 1
    for (int i = lane_id(); i < (to - from) / 2; i += 32) {
        const int q = from + i, r = to - 1 - i, at_q = path.place(q), at_r = path.place(r);
        const Local u = w.order[at_q], v = w.order[at_r];
        w.order[at_q] = v;
        w.order[at_r] = u;
        w.place[v] = static_cast<Local>(at_q);
        w.place[u] = static_cast<Local>(at_r);
        float &behind_q = path.edge(q), &before_r = path.edge(r - 1);
        const float edge = behind_q;
        behind_q = before_r;
        before_r = edge;
    }
    __syncwarp();
}

// Lay the stretches U = [from, from + u) and V = [from + u, from + u + v) of the path anew. All lanes.
//
// Both together turned around are V' U', and each of them can be turned once more: that needs no room for what is moved.
// Edges between stretches are measured; no tied edge is among them: its cities stand side by side all the time.
__device__ inline void rearrange(const View& view, const Path& path, int from, int u, int v, int pattern) {
    const int lane = lane_id(), total = u + v;
    const bool u_first = pattern == BOTH_TURNED;
    const int seam = u_first ? u : v;  // where the second stretch begins now
    const Path part{view, path.place(view.wrapped(from)), path.step};
    __syncwarp();  // every lane has read what it needs of the old order
#pragma unroll 1
    for (int t = 0; t < 3; ++t) {
        if (t == 0 ? !u_first : t == 1 ? pattern != V_TURNED_THEN_U : pattern != V_THEN_U_TURNED)
            turn(view, part, t == 2 ? seam : 0, t == 1 ? seam : total);
    }
    if (lane < 2 || (lane == 2 && seam > 0 && seam < total)) {
        const int q = (lane == 0 ? 0 : lane == 1 ? total : seam) - 1;
        part.edge(q) = view.units_between(part.at(q), part.at(q + 1));
    }
    __syncwarp();
}
