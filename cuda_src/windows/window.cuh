// A window: runs of a tour that one warp rearranges in shared memory.
//
// Cities are renumbered by their position in the tour: city i is at place i initially. A *fixed* edge represents the
// rest of the tour between two runs; it can be moved and reversed but not removed. Therefore a window is a small tour,
// and a shorter window is a shorter tour. With FIXED, fixed edges of the instance are also fixed.
#pragma once

#include "device/philox.cuh"
#include "device/warp.cuh"
#include "instance/metric.cuh"

// -DNEAR: candidate neighbours of a city: bits of `near_high`, lanes of `cut`
// -DSCALED: 1: distances times `scale`, rounded
// -DFIXED: 1: the instance has fixed edges
// -DPENALTIES: 1: an edge includes the node penalties of both its cities

static_assert(NEAR == 8, "a city has eight neighbours");
constexpr int CAPACITY = 512;         // size of a window's arrays
constexpr int WINDOW = CAPACITY - 1;  // maximum cities of a window: their numbers have nine bits
constexpr int SLOTS = CAPACITY / 32;  // places per lane
constexpr int MOST_RUNS = 128;
constexpr int NONE = WINDOW;  // a neighbour that is not in the window

// Lengths are in whole units: the search terminates, and its gains are exact. Distances of non-integral metrics, and
// very large ones, are scaled. Floats represent integers below 2^24 exactly and add as fast as integers. Roots are
// approximate: a distance next to a rounding boundary may differ by one unit, but equally for every evaluation of a
// pair. The gain of a window's exchange is computed in double.

// Maximum distance, 2^21: longer ones are clipped. Sums of eight are exact; with penalties, sums of six.
constexpr float FARTHEST = 2097152.0f;

__device__ __forceinline__ float units(const Cities& cities, float scale, int i, const Point& a, int j, const Point& b) {
#if BY_NUMBER
    const float d = i == j ? 0.0f : distance(cities, i, a, j, b);
#elif METRIC == 2 || METRIC == 3
    // a root may be one step above an integer, which must not be rounded up
    const float r = DUMMY && (is_dummy(a) || is_dummy(b)) ? 0.0f : unrounded(a, b);
    const float t = rounded(r);
    const float d = t < fmaf(r, -0x1p-21f, r) ? t + 1.0f : t;
#else
    const float d = distance(cities, i, a, j, b);
#endif
#if SCALED
    return fminf(rounded(fminf(d * scale, FARTHEST)), FARTHEST);
#else
    static_cast<void>(scale);
    return fminf(d, FARTHEST);
#endif
}

// Length of a fixed edge, so low that no move gains by removing it.
constexpr float FIXED_EDGE = -16777216.0f;

typedef unsigned short Local;

// A partial move: (t1, t2) and (t3, t4) removed, (t2, t3) added; see three_opt.cuh.
struct __align__(8) PartialMove {
    float gain;
    Local t4;
    Local coded;  // index of t3 on the path | (t4 follows t3) << 14 | (the path is read backwards) << 15

    static __device__ __forceinline__ PartialMove make(float gain, int t4, int q3, int after_t3, int backward) {
        return PartialMove{gain, static_cast<Local>(t4), static_cast<Local>(q3 | after_t3 << 14 | backward << 15)};
    }
    __device__ __forceinline__ int q3() const { return coded & 0x3fff; }
    __device__ __forceinline__ bool after_t3() const { return coded >> 14 & 1; }
    __device__ __forceinline__ int backward() const { return coded >> 15; }
};

struct __align__(16) Window {
    union {
        Point point[CAPACITY];
        int city[CAPACITY];  // index in the instance, with BY_NUMBER
    };
    float edge[CAPACITY];                    // length of the edge after each place, or FIXED_EDGE
    PartialMove partial[32];
    unsigned char near_low[CAPACITY][NEAR];  // low eight bits of the neighbours, nearest first, or NONE
    unsigned char near_high[CAPACITY];       // their ninth bits
    Local order[CAPACITY];                   // city at each place
    Local place[CAPACITY];                   // place of each city
    Local fixed_next[32];                    // one bit per city i: its initial edge to city i + 1 is fixed
    int run_begins[MOST_RUNS];               // relative position in the tour
    Local run_first[MOST_RUNS];              // first city of the run
#if PENALTIES
    float penalty[CAPACITY];                 // whole units
#endif

    __device__ __forceinline__ int near(int of, int rank) const {
        return near_low[of][rank] | (near_high[of] >> rank & 1) << 8;
    }
};

// A warp's window and the parameters of its search.
struct View {
    Window& w;
    const Cities& cities;
    float scale;
    int m;         // number of cities
    float margin;  // minimum partial gain of a partial move, in units

    // Length of an edge. Node penalties lengthen all tours of the window equally, and favour the edges of good tours.
    __device__ __forceinline__ float units_between(int u, int v) const {
        const float d = BY_NUMBER ? units(cities, scale, w.city[u], Point(), w.city[v], Point())
                                  : units(cities, scale, u, w.point[u], v, w.point[v]);
#if PENALTIES
        return d + (w.penalty[u] + w.penalty[v]);
#else
        return d;
#endif
    }
    __device__ __forceinline__ bool is_fixed(int u, int v) const {
        const int first = wrapped(u + 1) == v ? u : wrapped(v + 1) == u ? v : -1;
        return first >= 0 && (w.fixed_next[first / SLOTS] >> first % SLOTS & 1);
    }
    __device__ __forceinline__ int wrapped(int p) const { return p >= m ? p - m : p < 0 ? p + m : p; }
    __device__ __forceinline__ int at(int p) const { return w.order[wrapped(p)]; }

    // Compute the lengths of all edges, or only of those marked as fixed. Called by all lanes.
    __device__ inline void measure(bool marked = false) const {
#pragma unroll 1
        for (int p = lane_id(); p < m; p += 32) {
            if (marked && w.edge[p] != FIXED_EDGE) continue;
            const int u = w.order[p], v = at(p + 1);
            w.edge[p] = is_fixed(u, v) ? FIXED_EDGE : units_between(u, v);
        }
        __syncwarp();
    }
};

// The path from place `first` around the window, in direction `step`, 1 or -1; without the edge before `first`.
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

// New arrangement of two adjacent stretches U, V of a path; TURNED: reversed.
enum Pattern { SWAPPED = 0, V_THEN_U_TURNED = 1, V_TURNED_THEN_U = 2, BOTH_TURNED = 3 };

// Reverse the stretch [from, to) of a path and its edges. Called by all lanes.
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

// Rearrange the stretches U = [from, from + u) and V = [from + u, from + u + v) of the path. Called by all lanes.
//
// Reversing both together gives V' U'; then each may be reversed again. The lengths of new edges are computed. No new
// edge is fixed, because the cities of a fixed edge remain adjacent.
__device__ inline void rearrange(const View& view, const Path& path, int from, int u, int v, int pattern) {
    const int lane = lane_id(), total = u + v;
    const bool u_first = pattern == BOTH_TURNED;
    const int seam = u_first ? u : v;  // start of the second stretch
    const Path part{view, path.place(view.wrapped(from)), path.step};
    __syncwarp();  // the old order has been read
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

// Queue of the cities to search from (don't-look bits): one word of 32 cities per lane.
struct Queue {
    unsigned own = 0;

    __device__ __forceinline__ void push(int city) {
        if (lane_id() == city >> 5) own |= 1u << (city & 31);
    }
    // The first queued city, or -1; it remains in the queue.
    __device__ __forceinline__ int next() {
        const unsigned lanes = __ballot_sync(EVERY_LANE, own != 0);
        if (lanes == 0) return -1;
        const int lane = __ffs(lanes) - 1;
        return 32 * lane + __ffs(__shfl_sync(EVERY_LANE, own, lane)) - 1;
    }
    __device__ __forceinline__ void drop(int city) {
        if (lane_id() == city >> 5) own &= ~(1u << (city & 31));
    }
    __device__ __forceinline__ void add(const Queue& other) { own |= other.own; }
    __device__ __forceinline__ void fill(int m) {
        const int left = m - 32 * lane_id();
        own = left >= 32 ? ~0u : left > 0 ? (1u << left) - 1u : 0u;
    }
};

// Saved order of the cities, in registers.
struct Snapshot {
    unsigned words[SLOTS / 2];

    __device__ __forceinline__ void save(const Window& w) {
        const unsigned* order = reinterpret_cast<const unsigned*>(w.order);
#pragma unroll
        for (int s = 0; s < SLOTS / 2; ++s) words[s] = order[32 * s + lane_id()];
    }
    __device__ __forceinline__ void restore(Window& w, int m) const {
        unsigned* order = reinterpret_cast<unsigned*>(w.order);
#pragma unroll
        for (int s = 0; s < SLOTS / 2; ++s) {
            order[32 * s + lane_id()] = words[s];
#pragma unroll
            for (int b = 0; b < 2; ++b) {
                const int p = 2 * (32 * s + lane_id()) + b;
                if (p < m) w.place[words[s] >> 16 * b & 0xffffu] = static_cast<Local>(p);
            }
        }
        __syncwarp();
    }
};

// Restore a saved order. Called by all lanes.
__device__ __forceinline__ void roll_back(const View& view, const Snapshot& saved) {
    saved.restore(view.w, view.m);
    view.measure();
}
