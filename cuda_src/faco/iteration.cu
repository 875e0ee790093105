// The end of an iteration of Focused ACO: choice of the next source and trail update, without host synchronisation.

#include "device/philox.cuh"
#include "device/warp.cuh"

constexpr double HIGHEST_TRAIL = 1e15;

// State of the run on the device.
struct Run {
    double source_length, best_length, built_from;  // built_from: length of the iteration's source
    float low, high, amount;  // trail limits, and the deposit
    int winner;               // the iteration's best ant
    int improved, from_best;  // 1 if the winner is the best so far; 1 if the next source is the best so far
};

// Choose the shortest tour of the iteration (ties: the lower ant) and the next source. longer (m,); one block of 1024
// threads.
extern "C" __global__ void __launch_bounds__(1024)
    faco_choose(Run* run, const double* longer, int m, Key key, double best_as_source, double rho, double ratio,
                double unit) {
    __shared__ double least[32];
    __shared__ int ants[32];
    Least best;
    for (int a = threadIdx.x; a < m; a += blockDim.x) best.consider(longer[a], a);
    best.reduce_warp();
    if (threadIdx.x % 32 == 0) {
        least[threadIdx.x / 32] = best.value;
        ants[threadIdx.x / 32] = best.index;
    }
    __syncthreads();
    if (threadIdx.x != 0) return;
    for (int w = 1; w < blockDim.x / 32; ++w) best.consider(least[w], ants[w]);
    const double length = run->source_length + best.value;
    run->built_from = run->source_length;
    run->winner = best.index;
    run->improved = length < run->best_length;
    if (run->improved) run->best_length = length;
    const unsigned word = random_words(key, 0u, STREAM_COIN, static_cast<unsigned>(m)).x;
    run->from_best = (word + 0.5) * 0x1p-32 < best_as_source;
    run->source_length = run->from_best ? run->best_length : length;
    const double high = 1.0 / fmax(rho * fmax(run->best_length / unit, 1e-37), 1.0 / HIGHEST_TRAIL);
    run->high = static_cast<float>(high);
    run->low = static_cast<float>(high * ratio);
    run->amount = static_cast<float>(run->source_length > 0.0 ? fmin(unit / run->source_length, HIGHEST_TRAIL) : 1.0);
}

// Write the tours chosen by `faco_choose`: the next source and its position (n,), and best (n,) if improved. source
// (n,); segments (m, CAPACITY), used (m,); one thread per position.
extern "C" __global__ void __launch_bounds__(256)
    faco_take(const Run* run, const int2* segments, const int* used, int n, const int* source, int* next, int* position,
              int* best) {
    __shared__ int starts[CAPACITY + 1];
    const int2* own = segments + static_cast<size_t>(run->winner) * CAPACITY;
    const int count = used[run->winner];
    if (threadIdx.x == 0) {
        int at = 0;
        for (int i = 0; i < count; ++i) {
            starts[i] = at;
            at += abs(own[i].y - own[i].x) + 1;
        }
        starts[count] = at;
    }
    __syncthreads();
    const int p = blockIdx.x * blockDim.x + threadIdx.x;
    if (p >= n) return;
    const int i = last_at_most(p, count, [&](int i) { return starts[i]; });
    const int2 s = own[i];
    const int city = source[s.x + (s.y >= s.x ? p - starts[i] : starts[i] - p)];
    if (run->improved) best[p] = city;
    const int taken = run->from_best && !run->improved ? best[p] : city;
    next[p] = taken;
    position[taken] = p;
}

// Evaporation within the limits, then the deposit of the source (section 2.1, Skinderowicz 2020). neighbours, tau (n,
// k); source, position (n,); keep = 1 - rho; one thread per trail.
extern "C" __global__ void __launch_bounds__(256)
    faco_trails(const Run* run, const int* __restrict__ neighbours, const int* __restrict__ source,
                const int* __restrict__ position, int n, int k, float keep, float* tau) {
    const size_t place = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (place >= static_cast<size_t>(n) * k) return;
    const int city = static_cast<int>(place / k), j = neighbours[place];
    const int p = position[city];
    float t = fminf(run->high, fmaxf(run->low, tau[place] * keep));
    if (source[p + 1 < n ? p + 1 : 0] == j || source[p > 0 ? p - 1 : n - 1] == j) t = fminf(run->high, t + run->amount);
    tau[place] = t;
}
