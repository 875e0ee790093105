// 2-opt and Or-opt with neighbour lists and a queue of cities (don't-look bits), then local kicks.
//
// Source: Bentley, "Fast algorithms for geometric traveling salesman problems", ORSA J. Computing 4 (1992);
// Skinderowicz 2020, section 5.7. A block is one warp and improves one tour. Its lanes search from up to 16 queued
// cities in both directions; then all lanes apply the moves found, the best first. A move is one to three reversals,
// which can be undone.
//
// With DIRECTED, for asymmetric instances, moves and kicks preserve the direction of travel (directed.cuh).
//
// Distances are floats. A move must gain more than their rounding noise, so the search terminates. The host can halt it
// by `halt`, because long tours need long to reach a local optimum; the tours stay valid.

#include "instance/metric.cuh"
#include "device/philox.cuh"
#include "device/relaxed.cuh"
#include "device/warp.cuh"
#include "local_search/queue_search.cuh"

#if DIRECTED
#include "local_search/directed.cuh"
#else
#include "local_search/moves.cuh"
#endif
// -DIN_SHARED: 1: the tour is in shared memory; 0: in global memory
// -DLOG_CAPACITY: maximum reversals of one kick and its repair; a repair that needs more ends early

typedef NODE Node;

constexpr int NOT_LOGGING = -1;
// Work between two checks for halt, in reversed cities; a step of the queue counts as WORK_PER_STEP.
constexpr int WORK_PER_CHECK = 1 << 14, WORK_PER_STEP = 1 << 8;

// One tour under improvement; all lanes hold the same scalars.
struct Tour {
    Cities cities;
    const int* neighbours;  // (n, k)
    const float* near;      // (n, k) distance to each neighbour
    int k, searched;        // listed neighbours, and the number of them that is searched
    Node* tour;        // (n,)
    Node* position;    // (n,) position[tour[p]] == p
    Node* ring;        // (n,) queue of cities, oldest first
    unsigned* queued;  // (ceil(n / 32),) bit set: in the queue
    int2* log;         // (LOG_CAPACITY,) first position and length of each reversal
    int head, count, logged;
    const int* halt;  // (1,) set by the host
    int work;         // reversed cities and steps since the last check for halt
    bool halted;

    __device__ __forceinline__ int n() const { return cities.n; }
    __device__ __forceinline__ int wrap(int p) const { return p < 0 ? p + n() : p >= n() ? p - n() : p; }
    __device__ __forceinline__ int after(int city, int places = 1) const { return tour[wrap(position[city] + places)]; }

    // Queue cities that are not queued yet, one per lane, in the order of the lanes.
    __device__ __forceinline__ void push(int city, bool wanted) {
        const unsigned same = __match_any_sync(EVERY_LANE, wanted ? city : -1 - lane_id());
        wanted = wanted && __ffs(same) - 1 == lane_id() && !((queued[city >> 5] >> (city & 31)) & 1u);
        __syncwarp();
        const unsigned fresh = __ballot_sync(EVERY_LANE, wanted);
        if (wanted) {
            int slot = head + count + __popc(fresh & ((1u << lane_id()) - 1u));
            if (slot >= n()) slot -= n();
            ring[slot] = static_cast<Node>(city);
            atomicOr(queued + (city >> 5), 1u << (city & 31));
        }
        count += __popc(fresh);
        __syncwarp();
    }

    __device__ __forceinline__ int queued_city(int i) const { return ring[wrap(head + i)]; }
    __device__ __forceinline__ bool has_capacity() const { return logged <= LOG_CAPACITY - 3; }

    // Remove the oldest `taken` <= 32 cities from the queue.
    __device__ __forceinline__ void drop(int taken) {
        if (lane_id() < taken) {
            const int city = ring[wrap(head + lane_id())];
            atomicAnd(queued + (city >> 5), ~(1u << (city & 31)));
        }
        head = wrap(head + taken);
        count -= taken;
        __syncwarp();
    }

    // Reverse `length` cities from position `first` on, cyclically; an involution.
    __device__ __forceinline__ void reverse_positions(int first, int length) {
        const int last = wrap(first + length - 1);
        work += length;
        for (int t = lane_id(); t < length / 2; t += 32) {
            const int i = wrap(first + t), j = wrap(last - t);
            const Node u = tour[i], v = tour[j];
            tour[i] = v;
            tour[j] = u;
            position[v] = static_cast<Node>(i);
            position[u] = static_cast<Node>(j);
        }
        __syncwarp();
    }

    // Reverse the path first .. last; `outside` is the tour neighbour of `first` that is not on it. If the rest of the
    // tour is shorter, reverse it instead, which gives the same cycle.
    __device__ __forceinline__ void reverse_path(int outside, int first, int last) {
        const bool forward = after(outside) == first;
        int i = position[forward ? first : last];
        const int j = position[forward ? last : first];
        int length = j - i + 1;
        if (length <= 0) length += n();
        if (2 * length > n()) {
            i = wrap(j + 1);
            length = n() - length;
        }
        turn(i, length);
    }

    // Reverse positions, and log the reversal if logging is on.
    __device__ __forceinline__ void turn(int first, int length) {
        if (logged >= 0) {
            if (lane_id() == 0) log[logged] = make_int2(first, length);
            ++logged;
        }
        __syncwarp();
        reverse_positions(first, length);
    }

    // Count a step of the queue; check for halt after WORK_PER_CHECK.
    __device__ __forceinline__ void count_step() {
        work += WORK_PER_STEP;
        if (work < WORK_PER_CHECK) return;
        work = 0;
        halted = __shfl_sync(EVERY_LANE, lane_id() == 0 ? load_relaxed_system(halt) : 0, 0) != 0;
    }

    __device__ void undo() {
        for (int e = logged - 1; e >= 0; --e) reverse_positions(log[e].x, log[e].y);
        logged = 0;
    }
};

// True if the city at position p has other tour neighbours than in the reference, a locally optimal tour. The search
// finds no move at cities whose edges equal the reference's.
__device__ __forceinline__ bool changed(const Tour& t, int p, int2 before) {
    const int left = t.tour[t.wrap(p - 1)], right = t.tour[t.wrap(p + 1)];
    return !((before.x == left && before.y == right) || (!DIRECTED && before.x == right && before.y == left));
}

// Apply a double bridge of adjacent stretches of 1 .. longest cities; return the change of length. p [A][B] q becomes
// p [B][A] q; with DIRECTED p [A][B][C] q becomes p [C][B][A] q.
__device__ __forceinline__ double kick(Tour& t, int longest, const uint4& words) {
    constexpr int ENDS = DIRECTED ? 8 : 6;
    const int first = below(words.x, t.n()), lane = lane_id();
    const int a = 1 + below(words.y, longest), b = 1 + below(words.z, longest);
    const int c = DIRECTED ? 1 + below(words.w, longest) : 0;
    // lanes hold the ends of the removed edges, in tour order: p a1, a2 b1, b2 c1, c2 q; or p a1, a2 b1, b2 q
    const int cut = lane < 2 ? 0 : lane < 4 ? a : lane < 6 ? a + b : a + b + c;
    const int end = t.tour[t.wrap(first + cut - (lane % 2 == 0 ? 1 : 0))];
    const auto end_of = [&](int other) { return __shfl_sync(EVERY_LANE, end, other); };
    // an added edge leads from an even lane to the end three lanes before: p c1, a2 q, b2 a1, c2 b1; or p b1, a2 q, b2 a1
    const int after = end_of(lane | 1), next = end_of((lane + ENDS - 3) % ENDS);
    const double added = distance(t.cities, end, next), removed = distance(t.cities, end, after);
    const double change = warp_sum(lane < ENDS && lane % 2 == 0 ? added - removed : 0.0);
    const double delta = __shfl_sync(EVERY_LANE, change, 0);  // marks it as uniform for the compiler
#if DIRECTED
    swap_stretches(t, first, a, b + c);
    swap_stretches(t, first, b, c);
#else
    // reverse both stretches together, then each
    const int p = end_of(0), a1 = end_of(1), a2 = end_of(2), b1 = end_of(3), b2 = end_of(4);
    t.reverse_path(p, a1, b2);
    t.reverse_path(p, b2, b1);
    t.reverse_path(b2, a2, a1);
#endif
    t.push(end, lane < ENDS);
    return delta;
}

extern __shared__ uint4 shared_memory[];

// Compute near (n, k) for neighbours (n, k) by the distance function of the search: with two functions it could cycle.
extern "C" __global__ void neighbour_distances(CITIES_PARAMETERS, const int* neighbours, int k, float* near) {
    const size_t place = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (place >= static_cast<size_t>(n) * k) return;
    near[place] = distance(CITIES, static_cast<int>(place / k), neighbours[place]);
}

// Improve tours (m, n) in place: to a local optimum, then by `kicks` kicks of stretches of 1 .. longest cities.
// neighbours, near (n, k); reference (n,): both tour neighbours in a locally optimal tour, -1 if there is none; may be
// null; memory (blocks, tour_bytes), unused if IN_SHARED. One warp per block.
extern "C" __global__ void __launch_bounds__(32)
    improve_tours(CITIES_PARAMETERS, const int* __restrict__ neighbours, const float* __restrict__ near,
                  const int2* __restrict__ reference, int k, int searched, int m, int kicks,
                  int longest, Key key, long long tour_bytes, char* memory,
                  const int* halt,  // (1,) not 0 ends all searches
                  int* tours) {
    const int lane = lane_id(), words = (n + 31) >> 5;
#if IN_SHARED
    char* own = reinterpret_cast<char*>(shared_memory);
#else
    char* own = memory + blockIdx.x * tour_bytes;
#endif
    Tour t;
    t.cities = CITIES;
    t.neighbours = neighbours;
    t.near = near;
    t.k = k;
    t.searched = searched;
    t.log = reinterpret_cast<int2*>(own);
    t.queued = reinterpret_cast<unsigned*>(t.log + LOG_CAPACITY);
    t.tour = reinterpret_cast<Node*>(t.queued + words);
    t.position = t.tour + n;
    t.ring = t.position + n;
    t.halt = halt;
    t.work = 0;
    t.halted = false;
    for (int ant = blockIdx.x; ant < m && !t.halted; ant += gridDim.x) {
        int* tour = tours + static_cast<size_t>(ant) * n;
        for (int p = lane; p < n; p += 32) {
            const int city = tour[p];
            t.tour[p] = static_cast<Node>(city);
            t.position[city] = static_cast<Node>(p);
        }
        for (int w = lane; w < words; w += 32) t.queued[w] = 0u;
        t.head = t.count = 0;
        t.logged = NOT_LOGGING;
        __syncwarp();
        for (int first = 0; first < n; first += 32) {
            const int p = first + lane;
            const int a = p < n ? t.tour[p] : 0;
            const int2 before = reference ? reference[a] : make_int2(-1, -1);
            t.push(a, p < n && changed(t, p, before) && can_improve(t, a));
        }
        search(t);
        for (int i = 0; i < kicks && !t.halted; ++i) {
            t.logged = 0;
            double delta = kick(t, longest, random_words(key, i, STREAM_KICKS, ant));
            delta += search(t);
            if (delta > 0.0) t.undo();
        }
        for (int p = lane; p < n; p += 32) tour[p] = t.tour[p];
        __syncwarp();
    }
}
