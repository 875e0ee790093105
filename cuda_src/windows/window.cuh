// A window: some runs of a tour that one warp rearranges in shared memory.
//
// Cities are renumbered by their position in the tour, so that in the beginning city i stands at place i. Between two
// runs lies the rest of the tour: its two ends are *tied*, they may be turned and moved together and never parted. So
// a window is a small tour of its own, and any shorter one of it is a shorter tour of everything.
#pragma once

#include "windows/near.cuh"
#include "windows/units.cuh"
#include "device/philox.cuh"
#include "device/warp.cuh"

constexpr int WINDOW = 255;      // most cities of a window: their numbers are bytes
constexpr int SLOTS = 256 / 32;  // places a lane
constexpr int MOST_RUNS = 64;
constexpr int NONE = 255;        // a neighbour that is not in the window, an end that is not tied

// Length of an edge that is tied: so short that nothing is gained by taking it out.
constexpr float TIED = -16777216.0f;

typedef unsigned char Local;

// A move begun: (t1, t2) and (t3, t4) out, (t2, t3) in; see three_opt.cuh.
struct __align__(8) Begun {
    float gain;
    Local t4, q3;
    Local after_t3;  // whether t4 follows t3 on the path
    Local backward;  // whether the path is read against the order of the window
};

struct __align__(16) Window {
    Point point[256];
    int city[256];           // its number in the instance
    float edge[256];         // units from the city at a place to that at the next, or TIED
    Begun begun[32];
    Local near[256][NEAR];   // neighbours, nearest first, or NONE
    Local order[256];        // city at place
    Local place[256];        // of city
    unsigned short tied[256];    // low byte: city that it is tied to from before, high byte: from behind; or NONE
    int run_begins[MOST_RUNS];   // position in the tour, relative to the window's own origin
    Local run_first[MOST_RUNS];  // number of the first city of the run
};

// One warp's view of its window.
struct View {
    Window& w;
    const Cities& cities;
    float scale;
    int m;  // cities

    __device__ __forceinline__ float units_between(int u, int v) const {
        return units(cities, scale, w.city[u], w.point[u], w.city[v], w.point[v]);
    }
    __device__ __forceinline__ bool tied(int u, int v) const {
        const unsigned t = w.tied[u];
        return (t & 255u) == static_cast<unsigned>(v) || (t >> 8) == static_cast<unsigned>(v);
    }
    __device__ __forceinline__ int wrapped(int p) const { return p >= m ? p - m : p < 0 ? p + m : p; }
    __device__ __forceinline__ int at(int p) const { return w.order[wrapped(p)]; }

    // Measure the edges behind ``count`` places from ``begin`` on. All lanes.
    __device__ inline void measure(int begin, int count) const {
#pragma unroll 1
        for (int t = lane_id(); t < count; t += 32) {
            const int p = wrapped(begin + t), u = w.order[p], v = at(p + 1);
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
    __device__ __forceinline__ float edge(int q) const {
        return v.w.edge[v.wrapped(first + (step > 0 ? q : -q - 1))];
    }
};

// How two adjacent stretches U, V of a path are laid anew; ' is reversed.
enum Pattern { SWAPPED = 0, V_THEN_U_TURNED = 1, V_TURNED_THEN_U = 2, BOTH_TURNED = 3 };

// Lay the stretches [from, from + u) and [from + u, from + u + v) of the path anew. All lanes.
__device__ inline void rearrange(const View& view, const Path& path, int from, int u, int v, int pattern) {
    Window& w = view.w;
    const int lane = lane_id(), total = u + v;
    const bool u_first = pattern == BOTH_TURNED, turn_u = pattern & 1, turn_v = pattern & 2;
    const int begin = path.place(view.wrapped(from));
    Local moved[SLOTS];
#pragma unroll
    for (int s = 0; s < SLOTS; ++s) {
        const int t = 32 * s + lane;
        if (t < total) {
            const bool in_u = u_first ? t < u : t >= v;
            const int i = in_u ? (u_first ? t : t - v) : (u_first ? t - u : t);
            const int q = in_u ? (turn_u ? u - 1 - i : i) : u + (turn_v ? v - 1 - i : i);
            moved[s] = w.order[view.wrapped(begin + path.step * q)];
        }
    }
    __syncwarp();
#pragma unroll
    for (int s = 0; s < SLOTS; ++s) {
        const int t = 32 * s + lane;
        if (t < total) {
            const int p = view.wrapped(begin + path.step * t);
            w.order[p] = moved[s];
            w.place[moved[s]] = static_cast<Local>(p);
        }
    }
    __syncwarp();
    view.measure(view.wrapped(path.step > 0 ? begin - 1 : begin - total), total + 1);
}
