// A tour as segments of a source tour: its size depends on the differences, not on the number of cities.
//
// Segment i leads from source position x to y, forwards or backwards. Segments are in tour order and together contain
// every position once. One warp has one tour; single lanes may call `after` and `find`.
#pragma once

#include "device/warp.cuh"
#include "instance/metric.cuh"

// -DCAPACITY: segments of a tour
// -DQUEUE: capacity of the queue; further cities are dropped

// The segment that contains source position q, or -1. Not inlined, because kernels have many calls of it.
__device__ __noinline__ int segment_of(const int2* segment, int used, int q) {
    int found = -1;
    for (int i = 0; i < used; ++i) {
        const int2 s = segment[i];
        if (min(s.x, s.y) <= q && q <= max(s.x, s.y)) found = i;
    }
    return found;
}

// All lanes hold the same scalars.
struct SegmentTour {
    Cities cities;
    const int* neighbours;  // (n, k)
    const float* near;      // (n, k) distance to each neighbour
    int k, searched;        // listed neighbours, and the number of them that is searched
    const int* source;      // (n,)
    const int* position;    // (n,) position[source[p]] == p
    int2* segment;          // (CAPACITY,) in shared memory
    int* ring;              // (QUEUE,) in shared memory
    int used, head, count;
    bool halted;

    __device__ __forceinline__ int n() const { return cities.n; }

    __device__ __forceinline__ int find(int q) const { return segment_of(segment, used, q); }

    // The city `places` positions after another (before it, if negative).
    __device__ __forceinline__ int after(int city, int places = 1) const {
        int q = position[city], i = find(q), left = abs(places);
        const bool ahead = places > 0;
        while (true) {
            const int2 s = segment[i];
            const int end = ahead ? s.y : s.x, inside = abs(end - q);
            if (left <= inside) return source[q + (end > q ? left : -left)];
            left -= inside + 1;
            i = ahead ? (i + 1 < used ? i + 1 : 0) : (i > 0 ? i - 1 : used - 1);
            q = ahead ? segment[i].x : segment[i].y;
        }
    }

    // ---- called by all lanes

    __device__ __forceinline__ void begin_segment(int q) {
        if (lane_id() == 0) segment[used] = make_int2(q, q);
        ++used;
        __syncwarp();
    }

    __device__ __forceinline__ void extend(int q) {
        if (lane_id() == 0) segment[used - 1].y = q;
        __syncwarp();
    }

    // Split a segment so that one begins at a city; return that segment.
    __device__ __forceinline__ int cut_before(int city) {
        const int q = position[city], i = find(q), lane = lane_id();
        const int2 own = segment[i];
        __syncwarp();
        if (own.x == q) return i;
        for (int first = (used - i - 2) / 32 * 32; first >= 0 && used - i > 1; first -= 32) {
            const int s = i + 1 + first + lane;
            const int2 moved = s < used ? segment[s] : own;
            __syncwarp();
            if (s < used) segment[s + 1] = moved;
            __syncwarp();
        }
        if (lane == 0) {
            segment[i] = make_int2(own.x, own.x < own.y ? q - 1 : q + 1);
            segment[i + 1] = make_int2(q, own.y);
        }
        ++used;
        __syncwarp();
        return i + 1;
    }

    // Reverse the path first .. last; `outside` is the tour neighbour of `first` that is not on it.
    __device__ __forceinline__ void reverse_path(int outside, int first, int last) {
        if (after(outside) != first) {
            const int other = first;
            first = last;
            last = other;
        }
        const int behind = after(last);
        __syncwarp();
        cut_before(first);
        const int j = cut_before(behind), i = find(position[first]);
        __syncwarp();  // all lanes have found i before segments move
        // segments i .. j-1, cyclically; reversing all others gives the same cycle
        const int length = j > i ? j - i : j - i + used;
        const bool others = 2 * length > used;
        const int low = others ? j : i, reversed = others ? used - length : length;
        const auto place = [&](int s) { return s < used ? s : s - used; };
        for (int t = lane_id(); t < (reversed + 1) / 2; t += 32) {
            const int a = place(low + t), b = place(low + reversed - 1 - t);
            const int2 at_a = segment[a], at_b = segment[b];
            segment[a] = make_int2(at_b.y, at_b.x);
            segment[b] = make_int2(at_a.y, at_a.x);
        }
        __syncwarp();
    }

    // ---- queue, see queue_search.cuh

    __device__ __forceinline__ int slot(int i) const { return (head + i) % QUEUE; }
    __device__ __forceinline__ int queued_city(int i) const { return ring[slot(i)]; }
    __device__ __forceinline__ bool has_capacity() const { return used <= CAPACITY - 3; }
    __device__ __forceinline__ void count_step() {}

    __device__ __forceinline__ void push(int city, bool wanted) {
        const unsigned same = __match_any_sync(EVERY_LANE, wanted ? city : -1 - lane_id());
        wanted = wanted && __ffs(same) - 1 == lane_id();
        for (int i = 0; i < count; ++i) wanted = wanted && queued_city(i) != city;
        const unsigned fresh = __ballot_sync(EVERY_LANE, wanted);
        const int own = count + __popc(fresh & ((1u << lane_id()) - 1u));
        if (wanted && own < QUEUE) ring[slot(own)] = city;
        count = min(QUEUE, count + __popc(fresh));
        __syncwarp();
    }

    __device__ __forceinline__ void drop(int taken) {
        head = slot(taken);
        count -= taken;
        __syncwarp();
    }
};
