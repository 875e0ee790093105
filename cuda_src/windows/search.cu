// Window search: one warp cuts a window out of a tour, improves it, and writes the exchange of edges.
//
// A trial is a kick, which forces a few new edges into the tour, and its repair by local search. A window runs trials
// in sequence. Its result is an exchange: removed edges and the same number of added edges. The idea to change good
// tours in few places is from Skinderowicz, "Improving Ant Colony Optimization efficiency for solving large TSP
// instances", Applied Soft Computing 120 (2022).
#include "windows/exchange.cuh"
#include "windows/cut.cuh"
#include "windows/lin_kernighan.cuh"

// -DMOST_EDGES: capacity of an exchange, in removed edges
// -DWARPS: windows per block
// -DRESIDENT: resident windows per multiprocessor
static_assert(MOST_EDGES == WINDOW, "an exchange removes at most one edge per city of a window");
// Maximum length of a stretch of a kick, in cities. Shorter stretches allow more trials per second, but tours are longer.
constexpr int LONGEST_STRETCH = 128;

// Apply a double bridge: the adjacent stretches b, c, d from the start of the path become d, c, b. No 3-opt move undoes
// it. Return false if an edge to remove is fixed. Called by all lanes.
__device__ __forceinline__ bool double_bridge(const View& view, const Path& path, int b, int c, int d, Queue& queue,
                                              float& gain) {
    const int ends[8] = {path.at(-1),        path.at(0),     path.at(b - 1),     path.at(b),
                         path.at(b + c - 1), path.at(b + c), path.at(b + c + d - 1), path.at(b + c + d)};
    const float removed[4] = {path.edge(-1), path.edge(b - 1), path.edge(b + c - 1), path.edge(b + c + d - 1)};
    gain = 0.0f;
#pragma unroll
    for (int e = 0; e < 4; ++e) {
        if (removed[e] == FIXED_EDGE) return false;
        gain += removed[e];
    }
    gain -= view.units_between(ends[0], ends[5]) + view.units_between(ends[6], ends[3]) +
            view.units_between(ends[4], ends[1]) + view.units_between(ends[2], ends[7]);
#pragma unroll
    for (int e = 0; e < 8; ++e) queue.push(ends[e]);
#pragma unroll 1
    for (int half = 0; half < 2; ++half) rearrange(view, path, half ? d : 0, half ? b : b + c, half ? c : d, SWAPPED);
    return true;
}

#if FIXED
// Number of consecutive fixed edges from the edge after q on, at most 4.
__device__ __forceinline__ int fixed_run(const Path& path, int q) {
    int count = 0;
    while (count < 4 && path.edge(q + count) == FIXED_EDGE) ++count;
    return count;
}
#endif

// Apply a double bridge of random stretches; return false if none is possible.
__device__ inline bool kick(const View& view, const Key& key, unsigned window, unsigned trial, Queue& queue, float& gain) {
    const int m = view.m;
    const int limit = min(LONGEST_STRETCH, (m - 2) / 3);
    for (unsigned attempt = 0; attempt < 8; ++attempt) {
        const uint4 random = philox4x32(make_uint4(trial, STREAM_TRIALS, window, attempt), key);
        int d = 1 + below(random.y, limit), b = 1 + below(random.z, limit), c = 1 + below(random.w, limit);
        const int begin = below(random.x, m);
        Path path{view, begin, 1};
#if FIXED
        // move the ends of the stretches past fixed edges
        path.first = view.wrapped(begin + fixed_run(path, -1));
        b += fixed_run(path, b - 1);
        c += fixed_run(path, b + c - 1);
        d += fixed_run(path, b + c + d - 1);
        if (b + c + d > m - 2) continue;
#endif
        if (double_bridge(view, path, b, c, d, queue, gain)) return true;
    }
    return false;
}

// 1 if the order and direction of the cities between the runs do not change, else 0. Called by all lanes.
__device__ inline int is_local(const View& view, int runs, int n) {
    const Window& w = view.w;
    if (runs < 2) return view.m < n;
    int turned = 0, around = 0;
    for (int r = lane_id(); r < runs; r += 32) {
        const int behind = r + 1 < runs ? r + 1 : 0, beyond = behind + 1 < runs ? behind + 1 : 0;
        const int last = w.place[behind > 0 ? w.run_first[behind] - 1 : view.m - 1];
        const int here = w.place[w.run_first[behind]], next = w.place[w.run_first[beyond]];
        turned += view.wrapped(last + 1) != here;
        around += view.wrapped(next - here);
    }
    turned = static_cast<int>(warp_sum(static_cast<unsigned>(turned)));
    around = static_cast<int>(warp_sum(static_cast<unsigned>(around)));
    // forwards, the steps from run to run add up to one round; backwards, to one round for each run but one
    return (turned == 0 && around == view.m) || (turned == runs && around == (runs - 1) * view.m);
}

// Tours, and windows per tour; first and number of this device's windows of each.
struct TourBatch {
    const int *tours, *positions;  // (count, n)
    int count, windows, first_window, own_windows;
};

// Limits of the trials of a window, and lengths in units; see search_windows.
struct Effort {
    int trials, most_searches, overtime, all_queued;
    float slack, temperature, margin;
};

// Exchanges of all windows of a tour or of all tours; the order of the edges of windows is arbitrary.
struct ExchangeBuffers {
    WindowExchange* found;           // (tours, windows)
    int2 *removed, *added;           // (tours, windows * MOST_EDGES) pairs of positions, counts[t] of them used
    int *owners, *counts;            // window of each edge; (tours,) initially 0
    unsigned long long* statistics;  // (2,) trials, searches
};

__device__ __forceinline__ ExchangeBuffers of_tour(const ExchangeBuffers& all, int tour, int windows) {
    const size_t first = static_cast<size_t>(tour) * windows, edge = first * MOST_EDGES;
    return {all.found + first, all.removed + edge, all.added + edge, all.owners + edge, all.counts + tour, all.statistics};
}

// Write the exchange of a window if the window is not longer, or while `annealing`. Exchanges are ranked by gain; while
// annealing by a random number, `chance`, because ranking by gain would discard the uphill moves that annealing needs.
// Called by all lanes.
__device__ inline void write_exchange(const View& view, const Cities& cities, const Tour& tour, int runs, bool annealing,
                                float chance, int position, const ExchangeBuffers& changes) {
    Window& w = view.w;
    const int m = view.m, lane = lane_id();
    unsigned in = 0, out = 0;
    double gain = 0.0;
#pragma unroll 1
    for (int s = 0; s < SLOTS; ++s) {
        const int i = SLOTS * lane + s;
        if (i >= m) continue;
        const int u = w.order[i], v = view.at(i + 1), apart = abs(u - v);
        if (apart != 1 && apart != m - 1) {
            in |= 1u << s;
            gain -= exact_distance(cities, city_of(w, runs, tour, u), city_of(w, runs, tour, v));
        }
        const int after = view.wrapped(i + 1), moved = abs(static_cast<int>(w.place[i]) - static_cast<int>(w.place[after]));
        if (moved != 1 && moved != m - 1) {
            out |= 1u << s;
            gain += exact_distance(cities, city_of(w, runs, tour, i), city_of(w, runs, tour, after));
        }
    }
    gain = warp_sum(gain);
    const int edges = static_cast<int>(warp_sum(static_cast<unsigned>(__popc(out)))), local = is_local(view, runs, tour.n);
    int first = 0;
    const bool good = edges > 0 && (annealing || gain >= 0.0);
    if (good && lane == 0) first = atomicAdd(changes.counts, edges);
    first = __shfl_sync(EVERY_LANE, first, 0);
    if (lane == 0)
        changes.found[position] = WindowExchange{annealing ? chance : static_cast<float>(gain),
                                                 static_cast<short>(good ? edges : 0), static_cast<short>(local)};
    if (!good) return;
    int to_out = first + warp_prefix_sum(__popc(out)) - __popc(out);
    int to_in = first + warp_prefix_sum(__popc(in)) - __popc(in);
#pragma unroll 1
    for (int s = 0; s < SLOTS; ++s) {
        const int i = SLOTS * lane + s;
        if (out >> s & 1u) {
            changes.owners[to_out] = position;
            changes.removed[to_out++] =
                make_int2(position_of(w, runs, tour, i), position_of(w, runs, tour, view.wrapped(i + 1)));
        }
        if (in >> s & 1u)
            changes.added[to_in++] =
                make_int2(position_of(w, runs, tour, w.order[i]), position_of(w, runs, tour, view.at(i + 1)));
    }
}

// Search the windows of each tour of a batch, one warp per window. A trial is accepted if the window exceeds its
// best length by at most a random threshold of up to `slack` units. With `temperature` > 0, Metropolis' rule decides
// instead, and the result is the last arrangement, not the best. After `most_searches` move searches no further trial
// begins, and the current repair ends after `overtime` more: a round takes as long as its slowest window, and some
// trials take ten times as long as most.
extern "C" __global__ void __launch_bounds__(32 * WARPS, RESIDENT / WARPS) search_windows(
    CITIES_PARAMETERS, float scale, Neighbourhood around, TourBatch batch, Key key, Effort effort,
    ExchangeBuffers buffers) {
    __shared__ Window shared[WARPS];
    const int own = blockIdx.x * WARPS + threadIdx.x / 32, lane = lane_id();
    if (own >= batch.count * batch.own_windows) return;
    Window& w = shared[threadIdx.x / 32];
    const Cities cities = CITIES;
    const int which = own / batch.own_windows, position = batch.first_window + own % batch.own_windows;
    const int number = which * batch.windows + position;
    const uint4 random = random_words(key, 0u, STREAM_START, number);
    // stratified sampling: one centre in each of `batch.windows` parts of the tour
    const int centre = min(n - 1, static_cast<int>((position + random.x * 0x1p-32) * n / batch.windows));
    const size_t offset = static_cast<size_t>(which) * n;
    const Tour tour{batch.tours + offset, batch.positions + offset, n, centre};
    // half of the windows accept no longer arrangement
    const float threshold = random.w & 1u ? 0.0f : effort.slack * uniform(random.w);
    int runs = 0;
    // Windows of several shapes escape different local optima. Quadrant candidates lead out of a cluster of cities,
    // nearest cities do not.
    const Growth growth{random.w & 2u ? around.nearest : around.near, FEWEST_LINKS + static_cast<int>(below(random.z, NEAR - FEWEST_LINKS + 1))};
    const int m = cut(w, cities, tour, around, growth, runs);
    if (m < 8) {
        if (lane == 0) buffers.found[number] = WindowExchange{0.0f, 0, 0};
        return;
    }
    const View view{w, cities, scale, m, effort.margin};
    Queue queue;
    Snapshot last, best;
    int searches = 0;
    float total = 0.0f, best_total = 0.0f;
    view.measure();
    last.save(w);
    best = last;
    // trial -1 searches from every city, for a tour that is not a local optimum
    int trial = effort.all_queued ? -1 : 0;
    if (effort.all_queued) queue.fill(m);
    for (; trial < effort.trials && (trial <= 0 || searches < effort.most_searches); ++trial) {
        float change = 0.0f;
        if (trial >= 0 && !kick(view, key, number, trial, queue, change)) continue;
        change += repair(view, queue, searches, effort.most_searches + effort.overtime);
        const bool accepted =
            trial < 0 ? true
            : effort.temperature > 0.0f ? change >= effort.temperature * logf(uniform(random_words(key, trial, STREAM_COIN, number).x))
                          : total + change >= best_total - threshold;
        if (!accepted) {
            roll_back(view, last);
            continue;
        }
        total += change;
        last.save(w);
        if (total >= best_total) {
            best_total = total;
            best = last;
        }
    }
    if (effort.temperature == 0.0f) best.restore(w, m);
    const float chance = uniform(random_words(key, 2u, STREAM_START, number).x);
    write_exchange(view, cities, tour, runs, effort.temperature > 0.0f, chance, position, of_tour(buffers, which, batch.windows));
    if (lane == 0) {
        atomicAdd(buffers.statistics, static_cast<unsigned long long>(trial));
        atomicAdd(buffers.statistics + 1, static_cast<unsigned long long>(searches));
    }
}
