// Weights of all edges (Eq. (1), Skinderowicz 2020; Eq. (3), Uchida et al. 2012), for walks that choose among all open
// cities. Rows are scaled, which changes no probability.

#include "device/warp.cuh"
#include "walks/wheel.cuh"
#include "weights/weight.cuh"

// -DRACE: 1: largest w of the row / w, for a race; 0: w, scaled to a largest of LARGEST_WEIGHT

// Compute factors (n, stride) from tau (n, n), weight 0 in columns past n; one block of 256 threads per row.
extern "C" __global__ void __launch_bounds__(256)
    all_weights(const float* tau, CITIES_PARAMETERS, float alpha, float beta, float shortest, int stride,
                float* factors) {
    __shared__ double maxima[8];
    const Cities cities = CITIES;
    const Exponents exponents{alpha, beta, shortest};
    const int i = blockIdx.x;
    const float* trails = tau + static_cast<size_t>(i) * n;
    float* row = factors + static_cast<size_t>(i) * stride;
    const auto weight = [&](int j) { return j == i ? 0.0 : weight_of(cities, trails[j], i, j, exponents); };
    double largest = 0.0;
    for (int j = threadIdx.x; j < n; j += 256) largest = fmax(largest, weight(j));
    largest = warp_max(largest);
    if (lane_id() == 0) maxima[threadIdx.x >> 5] = largest;
    __syncthreads();
    for (int w = 0; w < 8; ++w) largest = fmax(largest, maxima[w]);
    const double scale = largest > 0.0 ? LARGEST_WEIGHT / largest : 0.0;
    for (int j = threadIdx.x; j < stride; j += 256) {
        const double w = j < n ? weight(j) : 0.0;
        const float scaled = w > 0.0 ? fmaxf(static_cast<float>(w * scale), 0x1p-126f) : 0.0f;
        row[j] = RACE ? inverse_of(w, largest) : scaled;
    }
}
