// Alias tables of every city's rest, the cities that are not its candidates: a draw by eta^beta takes two loads (Vose,
// IEEE Trans. Software Engineering 17, 1991). They are built once per run.

#include "weights/weight.cuh"

// Build rows first .. first + rows - 1, one thread per row. neighbours (n, k); outputs: aliases (n, n) and rest_sums
// (n,), the sums of eta^beta over the rest; workspaces: scaled, stacks (rows, n).
extern "C" __global__ void build_aliases(const int* neighbours, int k, CITIES_PARAMETERS, float alpha, float beta,
                                         float shortest, int first, int rows, double* scaled, int* stacks,
                                         Alias* aliases, double* rest_sums) {
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows || first + row >= n) return;
    const Cities cities = CITIES;
    const Exponents exponents{alpha, beta, shortest};
    const int i = first + row;
    double* p = scaled + static_cast<size_t>(row) * n;
    int* stack = stacks + static_cast<size_t>(row) * n;  // light slots from the left, heavy slots from the right
    Alias* own = aliases + static_cast<size_t>(i) * n;
    for (int j = 0; j < n; ++j) p[j] = eta_beta(cities, i, j, exponents);
    p[i] = 0.0;
    for (int slot = 0; slot < k; ++slot) p[neighbours[static_cast<size_t>(i) * k + slot]] = 0.0;
    double sum = 0.0;
    for (int j = 0; j < n; ++j) sum += p[j];
    rest_sums[i] = sum;
    if (sum <= 0.0) return;
    int light = 0, heavy = n;
    int heaviest = 0;
    for (int j = 0; j < n; ++j) {
        p[j] *= n / sum;
        if (p[j] > p[heaviest]) heaviest = j;
        if (p[j] < 1.0) stack[light++] = j;
        else stack[--heavy] = j;
    }
    while (light > 0 && heavy < n) {
        const int small = stack[--light], large = stack[heavy];
        own[small] = Alias{static_cast<float>(p[small]), large};
        p[large] -= 1.0 - p[small];
        if (p[large] < 1.0) {
            ++heavy;
            stack[light++] = large;
        }
    }
    // after rounding the remaining slots have weights of about 1, or 0: a slot of weight 0 must never give its city
    for (; heavy < n; ++heavy) own[stack[heavy]] = Alias{1.0f, stack[heavy]};
    while (light > 0) {
        const int j = stack[--light];
        own[j] = p[j] > 0.5 ? Alias{1.0f, j} : Alias{0.0f, heaviest};
    }
}
