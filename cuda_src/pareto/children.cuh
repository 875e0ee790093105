// Chains that lead to length vectors missing in a front: the first chain of each vector.
#pragma once

#include "pareto/chains.cuh"
#include "pareto/front.cuh"

// Encoding of a chain as an integer, which defines the order of chains: member, step (start city and direction), number
// of exchanges, candidates.
struct ChainCode {
    int step_bits, index_bits;

    __device__ __forceinline__ unsigned long long code(int member, int step, int exchanges, Indices taken) const {
        unsigned long long code = (static_cast<unsigned long long>(member) << step_bits | step) << 3 | exchanges;
#pragma unroll
        for (int l = MOST_OPEN - 1; l >= 0; --l) code = code << index_bits | taken.at(l);
        return code;
    }
    __device__ __forceinline__ int exchanges(unsigned long long code) const {
        return static_cast<int>(code >> (MOST_OPEN * index_bits)) & 7;
    }
    __device__ __forceinline__ int step(unsigned long long code) const {
        return static_cast<int>(code >> (MOST_OPEN * index_bits + 3)) & ((1 << step_bits) - 1);
    }
    __device__ __forceinline__ int member(unsigned long long code) const {
        return static_cast<int>(code >> (MOST_OPEN * index_bits + 3 + step_bits));
    }
    __device__ __forceinline__ Indices taken(unsigned long long code) const {
        Indices indices = {0};
#pragma unroll
        for (int l = 0; l < MOST_OPEN; ++l)
            indices.set(l, static_cast<int>(code >> (l * index_bits)) & ((1 << index_bits) - 1));
        return indices;
    }
};

// Hash table from keys of length vectors to the least code of their chains; its content does not depend on the order of
// threads. After more than `limit` entries it accepts no more, so that every search for a key ends at a free slot; the
// table is then invalid.
struct ChildTable {
    unsigned long long* keys;  // (mask + 1,), 0 if free
    unsigned long long* codes;  // (mask + 1,) complements of the codes, 0 if free
    int* slots;                 // (limit,) indices of the used slots
    int* counts;                // (2,) used slots; 1 if there were more than `limit`
    unsigned mask;
    int limit;

    __device__ __forceinline__ bool contains_better(unsigned long long key, unsigned long long code) const {
        unsigned at = static_cast<unsigned>(key) & mask;
        unsigned long long there = load_relaxed(keys + at);
        while (there != FREE && there != key) {
            if (full()) return true;
            at = (at + 1) & mask;
            there = load_relaxed(keys + at);
        }
        return there == key && load_relaxed(codes + at) >= ~code;
    }
    __device__ __forceinline__ void add(unsigned long long key, unsigned long long code) const {
        unsigned at = static_cast<unsigned>(key) & mask;
        for (;; at = (at + 1) & mask) {
            if (full()) return;
            const unsigned long long there = atomicCAS(keys + at, FREE, key);
            if (there == FREE) {
                const int number = atomicAdd(counts, 1);
                if (number < limit)
                    slots[number] = static_cast<int>(at);
                else
                    store_relaxed(counts + 1, 1);
            }
            if (there == FREE || there == key) break;
        }
        atomicMax(codes + at, ~code);
    }
    __device__ __forceinline__ bool full() const { return load_relaxed(counts + 1) != 0; }
};

// Length vector of the tour after a chain, summed in the CPU's order.
__device__ __forceinline__ Lengths lengths_of(const Costs& costs, const double* before, int exchanges,
                                              const int (&t)[2 * MOST_EXCHANGES]) {
    Lengths lengths;
#pragma unroll
    for (int q = 0; q < OBJECTIVES; ++q) lengths.of[q] = before[q];
#pragma unroll
    for (int m = 0; m < MOST_EXCHANGES; ++m) {
        if (m < exchanges) {
            const int to = m + 1 < exchanges ? t[m + 1 < MOST_EXCHANGES ? 2 * m + 2 : 0] : t[0];
            const Edge &removed = costs.between(t[2 * m], t[2 * m + 1]), &added = costs.between(t[2 * m + 1], to);
#pragma unroll
            for (int q = 0; q < OBJECTIVES; ++q)
                lengths.of[q] = __dadd_rn(__dadd_rn(lengths.of[q], -static_cast<double>(removed.by[q])), added.by[q]);
        }
    }
    return lengths;
}
