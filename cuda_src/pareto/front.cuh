// The Pareto front and the set of known length vectors.
#pragma once

#include "pareto/costs.cuh"

constexpr unsigned long long FREE = 0;

struct Lengths {
    double of[OBJECTIVES];
};

// Hash by splitmix64 (Steele, Lea and Flood 2014), never 0, as in pymoo_gpuaco/pareto/seen.py. unit (OBJECTIVES,).
__device__ __forceinline__ unsigned long long key_of(const Lengths& lengths, const double* unit) {
    constexpr double whole = 0x1p62;
    unsigned long long h = 0x9E3779B97F4A7C15ull;
#pragma unroll
    for (int q = 0; q < OBJECTIVES; ++q) {
        double units = floor(lengths.of[q] / unit[q] + 0.5);
        if (units >= whole) units = fmod(units, whole);
        h ^= static_cast<unsigned long long>(static_cast<long long>(units));
        h += 0x9E3779B97F4A7C15ull;
        h = (h ^ (h >> 30)) * 0xBF58476D1CE4E5B9ull;
        h = (h ^ (h >> 27)) * 0x94D049BB133111EBull;
        h ^= h >> 31;
    }
    return h != FREE ? h : 1;
}

// True if a key is in the table slots (mask + 1,), where mask + 1 is a power of two.
__device__ __forceinline__ bool has_key(const unsigned long long* slots, unsigned mask, unsigned long long key) {
    unsigned at = static_cast<unsigned>(key) & mask;
    while (slots[at] != FREE && slots[at] != key) at = (at + 1) & mask;
    return slots[at] == key;
}

// True if lengths a (OBJECTIVES,) weakly dominate b.
__device__ __forceinline__ bool weakly_dominates(const double* a, const Lengths& b) {
    bool all = true;
#pragma unroll
    for (int q = 0; q < OBJECTIVES; ++q) all = all && a[q] <= b.of[q];
    return all;
}

// The front (.., OBJECTIVES): sorted for two objectives, else an ND-tree (pymoo_gpuaco/pareto/nd_tree.py).
struct Front {
    const double* points;
    int count;            // two objectives: number of points
    int rank;             // two objectives: number of points that may dominate a child of interest
    const double* ideal;  // (nodes, OBJECTIVES)
    const double* nadir;  // (nodes, OBJECTIVES)
    const int *child, *sibling, *parent, *held, *first;  // (nodes,)
    const int* follows;                                  // (points,) next point of the same node

#if OBJECTIVES == 2
    // True if more than `rank` points weakly dominate the lengths.
    __device__ __forceinline__ bool covers(const Lengths& lengths) const {
        int low = 0, high = count;
        while (low < high) {  // number of points whose first length is at most that of `lengths`
            const int middle = (low + high) >> 1;
            if (points[2 * middle] <= lengths.of[0])
                low = middle + 1;
            else
                high = middle;
        }
        return low > rank && points[2 * (low - 1 - rank) + 1] <= lengths.of[1];
    }
#else
    // True if a point weakly dominates the lengths. The traversal returns through parents, without a stack.
    __device__ inline bool covers(const Lengths& lengths) const {
        int node = 0;
        for (;;) {
            int down = -1;
            if (held[node] > 0 && weakly_dominates(ideal + OBJECTIVES * node, lengths)) {
                if (weakly_dominates(nadir + OBJECTIVES * node, lengths)) return true;
                for (int at = first[node]; at >= 0; at = follows[at])
                    if (weakly_dominates(points + OBJECTIVES * static_cast<size_t>(at), lengths)) return true;
                down = child[node];
            }
            if (down < 0) {
                while (node > 0 && sibling[node] < 0) node = parent[node];
                if (node == 0) return false;
                down = sibling[node];
            }
            node = down;
        }
    }
#endif
};

#define FRONT_PARAMETERS                                                                                           \
    const double *points, int n_points, int rank, const double *ideal, const double *nadir, const int *child,      \
        const int *sibling, const int *parent, const int *held, const int *first, const int *follows
#define FRONT Front{points, n_points, rank, ideal, nadir, child, sibling, parent, held, first, follows}
