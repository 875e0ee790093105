// Ants of Focused ACO (Skinderowicz 2022). An ant walks from a random city until it has added `new_edges` edges that
// are not in the source tour, then copies the rest. Local search starts only from the ends of new edges.
//
// One warp per ant and per block. Results do not depend on the launch shape.

#include "device/philox.cuh"
#include "device/warp.cuh"
#include "instance/metric.cuh"
#include "faco/segments.cuh"
#include "local_search/moves.cuh"
#include "local_search/queue_search.cuh"

// -DSEARCHED: 0: no local search

// Data of an ant's choices.
struct Choice {
    const int* backup;      // (n, width) cities after the candidates, nearest first
    const float* tau;       // (n, k)
    const float* eta_beta;  // (n, k)
    int width;
    float alpha;
    Key key;
    unsigned ant;
};

__device__ __forceinline__ float weight(const Choice& c, size_t place) {
    const float tau = c.tau[place];
    return (c.alpha == 1.0f ? tau : powf(tau, c.alpha)) * c.eta_beta[place];
}

// Number of consecutive unvisited positions next to q in the direction of `step`, up to the end of the source.
__device__ __forceinline__ int gap(const SegmentTour& t, int q, int step) {
    int free = step > 0 ? t.n() - 1 - q : q;
    for (int i = lane_id(); i < t.used; i += 32) {
        const int2 s = t.segment[i];
        const int low = min(s.x, s.y), high = max(s.x, s.y);
        if (step > 0 && high > q) free = min(free, max(low - q - 1, 0));
        if (step < 0 && low < q) free = min(free, max(q - high - 1, 0));
    }
    __syncwarp();  // all lanes have read the segments before one is extended
    return static_cast<int>(warp_min(static_cast<unsigned>(free)));
}

// Copy unvisited cities of the source, adjacent to the last city, at q; return their number.
__device__ __forceinline__ int copy_source(SegmentTour& t, int q) {
    int added = 0;
    for (int step = 1; step >= -1 && added == 0; step -= 2) {
        const int end = step > 0 ? t.n() - 1 : 0, other = t.n() - 1 - end;
        bool more = true;
        while (more) {
            const int free = gap(t, q, step);
            if (free > 0) {
                q += step * free;
                t.extend(q);
                added += free;
            }
            // continue from one end of the source to the other
            more = q == end && t.find(other) < 0;
            __syncwarp();
            if (more) {
                q = other;
                t.begin_segment(q);
                ++added;
            }
        }
    }
    return added;
}

// The nearest unvisited city that is adjacent to a visited one in the source.
__device__ __forceinline__ int nearest_gap(const SegmentTour& t, int city) {
    unsigned nearest = 0xFFFFFFFFu, chosen = 0xFFFFFFFFu;
    for (int i = lane_id(); i < 2 * t.used; i += 32) {
        const int2 s = t.segment[i / 2];
        const int low = min(s.x, s.y), high = max(s.x, s.y);
        const int q = i % 2 == 0 ? (low > 0 ? low - 1 : t.n() - 1) : (high + 1 < t.n() ? high + 1 : 0);
        if (t.find(q) < 0) {
            const unsigned c = t.source[q], d = ordered(distance(t.cities, city, c));
            if (d < nearest || (d == nearest && c < chosen)) {
                nearest = d;
                chosen = c;
            }
        }
    }
    __syncwarp();
    const unsigned least = warp_min(nearest);
    return static_cast<int>(warp_min(nearest == least ? chosen : 0xFFFFFFFFu));
}

// Draw an unvisited candidate in proportion to its weight, by a race. If there is none, choose the first unvisited city
// of the candidate and backup lists, then `nearest_gap`. Without `capacity` the choice must not add a gap.
__device__ __forceinline__ int next_city(const SegmentTour& t, const Choice& c, int city, bool capacity, unsigned step) {
    const int lane = lane_id();
    const float infinity = __int_as_float(0x7F800000);
    if (!capacity) return nearest_gap(t, city);
    float least = infinity;
    int own = -1;
    for (int r = lane; r < t.k; r += 32) {
        const size_t place = static_cast<size_t>(city) * t.k + r;
        const int j = t.neighbours[place];
        const float w = t.find(t.position[j]) < 0 ? weight(c, place) : 0.0f;
        const uint4 words = random_words(c.key, step * 32u + r, STREAM_CONSTRUCTION, c.ant);
        const float finish = exponential(words.x) / w;
        if (w > 0.0f && finish < least) {
            least = finish;
            own = j;
        }
    }
    __syncwarp();
    const unsigned first = warp_min(ordered(least));
    if (first < ordered(infinity)) {
        const unsigned winners = __ballot_sync(EVERY_LANE, ordered(least) == first);
        return __shfl_sync(EVERY_LANE, own, __ffs(winners) - 1);
    }
    for (int from = 0; from < t.k + c.width; from += 32) {
        const int r = from + lane;
        int j = -1;
        if (r < t.k) j = t.neighbours[static_cast<size_t>(city) * t.k + r];
        else if (r < t.k + c.width) j = c.backup[static_cast<size_t>(city) * c.width + r - t.k];
        const bool open = j >= 0 && t.find(t.position[j]) < 0;
        const unsigned unvisited = __ballot_sync(EVERY_LANE, open);
        if (unvisited) return __shfl_sync(EVERY_LANE, j, __ffs(unvisited) - 1);
    }
    return nearest_gap(t, city);
}

// Walk until `new_edges` edges are not in the source, then copy the source; queue the ends of new edges.
__device__ __forceinline__ void walk(SegmentTour& t, const Choice& choice, int new_edges) {
    const int n = t.n(), lane = lane_id();
    t.used = t.head = t.count = 0;
    int city = first_city(choice.key, choice.ant, n), q = t.position[city], visited = 1, made = 0;
    t.begin_segment(q);
    for (unsigned turn = 0; visited < n; ++turn) {
        const bool capacity = t.used < CAPACITY / 2 - 2;  // every remaining gap needs a segment, one of them two
        const int j = next_city(t, choice, city, capacity, turn), p = t.position[j], step = p - q;
        const int2 last = t.segment[t.used - 1];
        __syncwarp();
        if (abs(step) == 1 && (last.x == q || (last.y > last.x) == (step > 0))) {
            t.extend(p);
        } else {
            t.begin_segment(p);
            if (abs(step) != 1 && abs(step) != n - 1) {
                ++made;
                t.push(lane == 0 ? city : j, lane < 2);
            }
        }
        if (!capacity) made = max(made, new_edges);
        ++visited;
        city = j;
        q = p;
        if (made >= new_edges) {
            visited += copy_source(t, q);
            q = t.segment[t.used - 1].y;
            city = t.source[q];
            __syncwarp();
        }
    }
    const int start = t.source[t.segment[0].x];
    t.push(lane == 0 ? start : city, lane < 2);
}

// Inputs: neighbours, near, tau, eta_beta (n, k); backup (n, width); source, position (n,). Outputs: segments
// (m, CAPACITY), used (m,) their numbers, and longer (m,), each tour's length minus the source's.
extern "C" __global__ void __launch_bounds__(32)
    faco_ants(CITIES_PARAMETERS, const int* __restrict__ neighbours, const float* __restrict__ near, int k,
              const int* __restrict__ backup, int width, const float* __restrict__ tau,
              const float* __restrict__ eta_beta, float alpha, const int* __restrict__ source,
              const int* __restrict__ position, Key key, int new_edges, int2* segments, int* used, double* longer) {
    __shared__ int2 segment[CAPACITY + 1];
    __shared__ int ring[QUEUE];
    const int lane = lane_id();
    const unsigned ant = blockIdx.x;
    SegmentTour t;
    t.cities = CITIES;
    t.neighbours = neighbours;
    t.near = near;
    t.k = t.searched = k;
    t.source = source;
    t.position = position;
    t.segment = segment;
    t.ring = ring;
    t.halted = false;
    walk(t, Choice{backup, tau, eta_beta, width, alpha, key, ant}, new_edges);
#if SEARCHED
    search(t);
#endif
    double total = 0.0;
    for (int i = lane; i < t.used; i += 32) {
        const int2 s = segment[i];
        segments[static_cast<size_t>(ant) * CAPACITY + i] = s;
        const int high = max(s.x, s.y), next = segment[i + 1 < t.used ? i + 1 : 0].x;
        total += exact_distance(t.cities, t.source[s.y], t.source[next]);
        total -= exact_distance(t.cities, t.source[high], t.source[high + 1 < n ? high + 1 : 0]);
    }
    total = warp_sum(total);
    if (lane == 0) {
        used[ant] = t.used;
        longer[ant] = total;
    }
}
