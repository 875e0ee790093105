// What draws an ant of a window to a candidate: tau^alpha eta^beta, eta = 1 / distance in units of the nearest one.
#include "instance/metric.cuh"
#include "windows/near.cuh"

extern "C" __global__ void weigh_windows(
    CITIES_PARAMETERS, const int* near,  // (n, NEAR)
    const int* neighbours, int k,  // (n, k) candidates, which have trails
    const float* tau, float rest,  // (n, k), and the trail of all other edges
    float alpha, float beta, float shortest,
    float* weights) {  // (n, NEAR)
    const size_t index = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (index >= static_cast<size_t>(n) * NEAR) return;
    const int city = static_cast<int>(index / NEAR), other = near[index];
    const Cities cities = CITIES;
    float trail = rest;
    for (int slot = 0; slot < k; ++slot)
        if (neighbours[static_cast<size_t>(city) * k + slot] == other) trail = tau[static_cast<size_t>(city) * k + slot];
    const float nearest = fmaxf(distance(cities, city, near[index - index % NEAR]), shortest);
    const float eta = nearest / fmaxf(distance(cities, city, other), shortest);
    weights[index] = powf(trail, alpha) * powf(eta, beta);
}
