// What the ants read in one iteration: w = tau^alpha eta^beta of every candidate (Eq. (1), paper 001).
//
// A row is divided by its largest weight, which changes no probability and keeps w within a float. Tours read rows
// padded to 32 lanes; a padded place names the row's own city, which an ant standing there has visited.

#include "warp.cuh"

#ifndef RACE
#define RACE 1
#endif
#ifndef SLOTS
#define SLOTS 1
#endif
#ifndef NODE
#define NODE unsigned short
#endif
#ifndef DENSE
#define DENSE 1
#endif
#ifndef ALPHA_IS_ONE
#define ALPHA_IS_ONE 1
#endif

constexpr int STRIDE = 32 * SLOTS;
constexpr float LARGEST_INVERSE = 1e36f;  // times an exponential it stays finite

// candidates (n, STRIDE) from neighbours (n, k); one thread a place.
extern "C" __global__ void pad_candidates(const int* neighbours, int n, int k, NODE* candidates) {
    const int place = blockIdx.x * blockDim.x + threadIdx.x;
    if (place >= n * STRIDE) return;
    const int city = place / STRIDE, slot = place % STRIDE;
    candidates[place] = static_cast<NODE>(slot < k ? neighbours[static_cast<size_t>(city) * k + slot] : city);
}

// factors (n, STRIDE): w / row maximum for the roulette wheel, its inverse for the race. tau (n, n) or (n, k);
// neighbours and eta_beta (n, k). One warp a row.
extern "C" __global__ void candidate_weights(const float* tau, const int* neighbours, const double* eta_beta,
                                             double alpha, int n, int k, float* factors) {
    const int city = (blockIdx.x * blockDim.x + threadIdx.x) >> 5, lane = lane_id();
    if (city >= n) return;
    double weights[SLOTS];
    double largest = 0.0;
#pragma unroll
    for (int s = 0; s < SLOTS; ++s) {
        const int slot = 32 * s + lane;
        weights[s] = 0.0;
        if (slot < k) {
            const size_t place = static_cast<size_t>(city) * k + slot;
            const double trail = DENSE ? tau[static_cast<size_t>(city) * n + neighbours[place]] : tau[place];
            weights[s] = (ALPHA_IS_ONE ? trail : pow(trail, alpha)) * eta_beta[place];
        }
        largest = fmax(largest, weights[s]);
    }
    largest = warp_max(largest);
#pragma unroll
    for (int s = 0; s < SLOTS; ++s) {
        float* factor = factors + static_cast<size_t>(city) * STRIDE + 32 * s + lane;
#if RACE
        *factor = weights[s] > 0.0 ? fminf(static_cast<float>(largest / weights[s]), LARGEST_INVERSE)
                                   : __int_as_float(0x7F800000);
#else
        *factor = weights[s] > 0.0 ? fmaxf(static_cast<float>(weights[s] / largest), 1.0f / LARGEST_INVERSE) : 0.0f;
#endif
    }
}
