// Edge costs of several objectives and their weighted sums. Terms are added in the CPU's order, so that both engines
// prune the same chains.
#pragma once

// -DCOST: type of a cost: float, or double if a cost is not exact in float

// Costs of one edge, loaded in one access.
struct alignas((OBJECTIVES % 2 ? 1 : 2) * sizeof(COST)) Edge {
    COST by[OBJECTIVES];
};

struct Costs {
    const Edge* table;                 // (n, n)
    const Edge* near;                  // (n, c) costs of the candidate edges
    const unsigned short* neighbours;  // (n, c) candidates; shorter rows are padded with the city itself
    int n, c;

    __device__ __forceinline__ const Edge& between(int i, int j) const { return table[i * n + j]; }
};

// Kernel parameters with the fields of Costs, and the struct built from them.
#define COSTS_PARAMETERS const COST *table, const COST *near, const unsigned short *neighbours, int n, int c
#define COSTS Costs{reinterpret_cast<const Edge*>(table), reinterpret_cast<const Edge*>(near), neighbours, n, c}

struct Weights {
    double of[OBJECTIVES];

    __device__ __forceinline__ explicit Weights(const double* row) {
#pragma unroll
        for (int q = 0; q < OBJECTIVES; ++q) of[q] = row[q];
    }
    __device__ __forceinline__ double sum(const Edge& edge) const {
        double total = __dmul_rn(of[0], edge.by[0]);
#pragma unroll
        for (int q = 1; q < OBJECTIVES; ++q) total = __dadd_rn(total, __dmul_rn(of[q], edge.by[q]));
        return total;
    }
};
