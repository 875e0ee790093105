// The weights of all edges (Eq. (1), paper 001), for walks that weigh every open city.

#include "device/warp.cuh"
#include "weights/weight.cuh"

#ifndef RACE
#define RACE 1  // 1: inverse weights, 0: weights
#endif

// factors (n, n): w / row maximum, or its inverse for the race; one block of 256 threads a row.
extern "C" __global__ void all_weights(const float* tau, CITIES_PARAMETERS, float alpha, float beta, float shortest,
                                       float* factors) {
    __shared__ double maxima[8];
    const Cities cities = CITIES;
    const Exponents exponents{alpha, beta, shortest};
    const int i = blockIdx.x;
    const size_t row = static_cast<size_t>(i) * n;
    double largest = 0.0;
    for (int j = threadIdx.x; j < n; j += blockDim.x) {
        if (j != i) largest = fmax(largest, power(tau[row + j], alpha) * eta_beta(cities, i, j, exponents));
    }
    largest = warp_max(largest);
    if (lane_id() == 0) maxima[threadIdx.x >> 5] = largest;
    __syncthreads();
    for (int w = 0; w < 8; ++w) largest = fmax(largest, maxima[w]);
    for (int j = threadIdx.x; j < n; j += blockDim.x) {
        const double w = j == i ? 0.0 : power(tau[row + j], alpha) * eta_beta(cities, i, j, exponents);
#if RACE
        factors[row + j] = inverse_of(w, largest);
#else
        factors[row + j] = w > 0.0 ? fmaxf(static_cast<float>(w / largest), 1.0f / LARGEST_INVERSE) : 0.0f;
#endif
    }
}
