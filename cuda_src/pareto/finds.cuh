// Chains that lead to lengths which a front lacks: each such lengths once, with the first of the chains to them.
#pragma once

#include "pareto/chains.cuh"
#include "pareto/known.cuh"

// How a chain is a number, by which chains are in order: member, city and direction of its beginning, exchanges, and
// the candidates it was reached by.
struct Naming {
    int step_bits, index_bits;

    __device__ __forceinline__ unsigned long long name(int member, int step, int exchanges, Four taken) const {
        unsigned long long name = (static_cast<unsigned long long>(member) << step_bits | step) << 3 | exchanges;
#pragma unroll
        for (int l = MOST_OPEN - 1; l >= 0; --l) name = name << index_bits | taken.at(l);
        return name;
    }
    __device__ __forceinline__ int exchanges(unsigned long long name) const {
        return static_cast<int>(name >> (MOST_OPEN * index_bits)) & 7;
    }
    __device__ __forceinline__ int step(unsigned long long name) const {
        return static_cast<int>(name >> (MOST_OPEN * index_bits + 3)) & ((1 << step_bits) - 1);
    }
    __device__ __forceinline__ int member(unsigned long long name) const {
        return static_cast<int>(name >> (MOST_OPEN * index_bits + 3 + step_bits));
    }
    __device__ __forceinline__ Four taken(unsigned long long name) const {
        Four four = {0};
#pragma unroll
        for (int l = 0; l < MOST_OPEN; ++l)
            four.set(l, static_cast<int>(name >> (l * index_bits)) & ((1 << index_bits) - 1));
        return four;
    }
};

// Keys of lengths and, for each, the least name of a chain to them: what threads do first makes no difference. Where
// there are more than ``limit``, all are thrown away: nothing is added from then on, so that free slots are left for
// every search for a key to end at.
struct Finds {
    unsigned long long* keys;   // (mask + 1,), free ones 0
    unsigned long long* names;  // (mask + 1,) complements, free ones 0
    int* slots;                 // (limit,) which of the slots are taken
    int* counts;                // (2,) slots taken, and whether there were more than ``limit``
    unsigned mask;
    int limit;

    __device__ __forceinline__ bool has(unsigned long long key, unsigned long long name) const {
        unsigned at = static_cast<unsigned>(key) & mask;
        unsigned long long there = load_relaxed(keys + at);
        while (there != FREE && there != key) {
            if (full()) return true;  // no more is wanted
            at = (at + 1) & mask;
            there = load_relaxed(keys + at);
        }
        return there == key && load_relaxed(names + at) >= ~name;
    }
    __device__ __forceinline__ void add(unsigned long long key, unsigned long long name) const {
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
        atomicMax(names + at, ~name);
    }
    __device__ __forceinline__ bool full() const { return load_relaxed(counts + 1) != 0; }
};

// Lengths of the tour that a chain leaves, added in the CPU's order.
__device__ __forceinline__ Lengths lengths_of(const Costs& costs, const double* before, int exchanges,
                                              const int (&t)[2 * MOST_EXCHANGES]) {
    Lengths lengths;
#pragma unroll
    for (int q = 0; q < OBJECTIVES; ++q) lengths.of[q] = before[q];
#pragma unroll
    for (int m = 0; m < MOST_EXCHANGES; ++m) {
        if (m < exchanges) {
            const int to = m + 1 < exchanges ? t[m + 1 < MOST_EXCHANGES ? 2 * m + 2 : 0] : t[0];
            const Edge &goes = costs.between(t[2 * m], t[2 * m + 1]), &comes = costs.between(t[2 * m + 1], to);
#pragma unroll
            for (int q = 0; q < OBJECTIVES; ++q)
                lengths.of[q] = __dadd_rn(__dadd_rn(lengths.of[q], -static_cast<double>(goes.by[q])), comes.by[q]);
        }
    }
    return lengths;
}
