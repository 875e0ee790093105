// Commit: apply the exchanges that windows of a tour have found in parallel.
//
// An exchange removes k edges of the tour and adds k others. Exchanges claim the positions that they touch, in the
// order of their ranks; an exchange is rejected if a position is already claimed. The removed edges cut the tour into
// segments, the added edges link segment ends, and the links form cycles. If there are several cycles, each except the
// largest drops the lowest-ranked exchange that separates it from another cycle; a local exchange only if there is no
// other. This is repeated until there is one cycle. pymoo_gpuaco/memetic/commit.py does the same on the host, with
// gains as ranks. Results are equal, except that the host accepts only few exchanges without gain.
//
// Exchanges differ in size, so threads share the edges of all exchanges; an edge stores its owner. Several blocks
// commit a tour with many exchanges. If one of them does not arrive (`BlockGroup::sync`), *fault is set. Then nothing
// is committed until the host clears it, and tours with an unfinished commit are unchanged.
#include "device/barrier.cuh"
#include "device/relaxed.cuh"
#include "device/warp.cuh"
#include "windows/exchange.cuh"

// -DTHREADS: threads of a block of commit_exchanges
// -DMOST_BLOCKS: maximum blocks per tour
// -DSINGLE_DROP_ROUNDS: rounds that drop one exchange per stray cycle; later ones drop all that are not local
// -DLOCAL_ROUNDS: rounds after these in which local exchanges stay

// State shared by the blocks of a tour, initially 0.
struct __align__(16) BarrierState {
    unsigned long long largest;  // the largest cycle: number of positions << 32 | ~least end
    unsigned arrived;            // arrivals at all barriers so far
    int failed;                  // 1: no exchange of this tour may be applied
    int sums[MOST_BLOCKS];       // see sum_before
};
static_assert(sizeof(BarrierState) == 16 + 4 * MOST_BLOCKS, "the host allocates another size for BarrierState");

// The blocks that commit one tour. All must be resident on the device at the same time, see windows.py.
struct BlockGroup {
    int blocks, block;  // number of blocks, and index of this one
    BarrierState& state;
    volatile int* fault;

    __device__ int first() const { return block * THREADS + static_cast<int>(threadIdx.x); }
    __device__ int threads() const { return blocks * THREADS; }

    // Call work(0), .., work(count - 1), shared by the threads; with `step` a barrier follows.
    template <class Work>
    __device__ __forceinline__ void share(int count, const Work& work) const {
        for (int i = first(); i < count; i += threads()) work(i);
    }
    template <class Work>
    __device__ __forceinline__ void step(int count, const Work& work) const {
        share(count, work);
        sync();
    }

    // Barrier of all threads of the group; writes before it are visible after it. If a block does not arrive
    // (`Wait::failed`), all threads of this block exit.
    __device__ void sync() const {
        bool failed = false;
        __syncthreads();
        if (blocks == 1) return;
        if (threadIdx.x == 0) {
            Wait wait;
            __threadfence();
            const unsigned ticket = atomicAdd(&state.arrived, 1u), due = ticket - ticket % blocks + blocks;
            const volatile unsigned& arrived = state.arrived;
            while (arrived < due && !failed) failed = wait.failed(fault);
            __threadfence();
        }
        if (failed) state.failed = 1;
        if (__syncthreads_or(failed)) asm volatile("exit;");
    }

    // Sum over the preceding threads; `total` becomes the sum over all. Two sums need a barrier between them.
    __device__ int sum_before(int value, int& total) const {
        __shared__ int warps[THREADS / 32];
        const int warp = threadIdx.x / 32, upto = warp_prefix_sum(value);
        if (lane_id() == 31) warps[warp] = upto;
        __syncthreads();
        int before = upto - value;
        total = 0;
        for (int w = 0; w < THREADS / 32; ++w) {
            if (w < warp) before += warps[w];
            total += warps[w];
        }
        if (blocks > 1) {
            if (threadIdx.x == 0) state.sums[block] = total;
            total = 0;
        }
        sync();
        for (int b = 0; blocks > 1 && b < blocks; ++b) {
            if (b < block) before += state.sums[b];
            total += state.sums[b];
        }
        return before;
    }
};

constexpr unsigned long long CLAIMED = ~0ull;
constexpr int END = -1;  // end of the list that begins with segment end 0
constexpr int NONE = 0x7FFFFFFF;  // greater than any number of an added edge

// A blocked exchange has lost a position to a better one, which may be rejected later.
enum State : int { OPEN, BLOCKED, REJECTED, ACCEPTED };

// Result of following links for 2^i segments (pointer doubling).
struct __align__(16) Jump {
    int to;      // end at which the next segment is entered, or END
    int places;  // number of positions passed
    int count;   // number of segments passed
    int least;   // least segment end passed
};

// Buffers of one tour's commit.
struct CommitBuffers {
    const WindowExchange* found;  // (exchanges,)
    const int2 *removed, *added;  // (rows,) removed and added edges
    const int* owners;            // (rows,) exchange of each removed and added edge
    int* states;                  // (exchanges,)
    int n, exchanges, rows, words;
    Jump *jumps, *jumped;         // (2 n,)
    unsigned long long* weakest;  // (2 n,) worth of the exchange that this cycle drops first
    unsigned long long* claims;   // (n,) best key that claims a position
    int* links;                   // (2 n,) the end that an end is linked to
    int* link_owners;             // (2 n,) exchange of the link
    int* sizes;                   // (2 n,) positions of the cycle with this least end
    int* cuts;                    // (n,) positions of the removed edges, ascending
    int* firsts;                  // (n,) added edge that gets the start of a segment of one position
    int* ranks;                   // (words,) number of cuts before the word
    unsigned* bits;               // (words,) bit p: the edge after position p is removed

    // Exchanges of higher rank have larger keys; of equal ranks, those with lower numbers.
    __device__ unsigned long long key(int exchange) const {
        return static_cast<unsigned long long>(ordered(found[exchange].rank)) << 31 | (0x7FFFFFFEu - exchange);
    }
    // Exchanges are dropped in ascending order of worth: local ones last.
    __device__ unsigned long long worth(int exchange) const {
        return static_cast<unsigned long long>(found[exchange].local) << 63 | key(exchange);
    }
    __device__ static int of_key(unsigned long long key) {
        return static_cast<int>(0x7FFFFFFEu - (static_cast<unsigned>(key) & 0x7FFFFFFFu));
    }
    __device__ bool accepted(int row) const { return states[owners[row]] == ACCEPTED; }
    __device__ int cut_of(int2 edge) const {
        const int low = min(edge.x, edge.y), high = max(edge.x, edge.y);
        return high - low == 1 ? low : high;
    }
    __device__ bool is_cut(int p) const { return bits[p >> 5] >> (p & 31) & 1u; }
    __device__ int rank(int p) const { return ranks[p >> 5] + __popc(bits[p >> 5] & ((1u << (p & 31)) - 1u)); }
    __device__ int start(int segment, int m) const {
        const int p = cuts[segment > 0 ? segment - 1 : m - 1] + 1;
        return p < n ? p : 0;
    }
    __device__ int length(int segment, int m) const {
        const int l = cuts[segment] - cuts[segment > 0 ? segment - 1 : m - 1];
        return l > 0 ? l : l + n;
    }
    // The segment that ends or starts at a position; `single`: it does both.
    __device__ int segment_at(int p, int m, bool& ends, bool& single) const {
        const int before = p > 0 ? p - 1 : n - 1;
        const bool starts = is_cut(before);
        ends = is_cut(p);
        single = ends && starts;
        return ends ? rank(p) : rank(before) + 1 == m ? 0 : rank(before) + 1;
    }
    // Segment end at a position: 2 s is the start of segment s, 2 s + 1 its end. A position that is both has two added
    // edges; the edge with the lower number gets the start.
    __device__ int loose_end(int p, int number, int m) const {
        bool ends, single;
        const int segment = segment_at(p, m, ends, single);
        return 2 * segment + (single ? firsts[segment] != number : ends);
    }
    __device__ void claim_start(int p, int number, int m) const {
        bool ends, single;
        const int segment = segment_at(p, m, ends, single);
        if (single) atomicMin(firsts + segment, number);
    }
};

// Decide which exchanges are accepted, with the result of applying them one by one in the order of their ranks.
__device__ inline void claim(const CommitBuffers& buffers, const BlockGroup& group) {
    group.share(buffers.exchanges, [&](int i) { buffers.states[i] = buffers.found[i].edges > 0 ? OPEN : REJECTED; });
    group.step(buffers.n, [&](int p) { buffers.claims[p] = 0ull; });
    int open = 1;  // 1 if an exchange of this thread is open
    for (;;) {
        int all_open;
        group.sum_before(open, all_open);
        if (all_open == 0) return;
        group.step(buffers.rows, [&](int row) {
            const int owner = buffers.owners[row];
            if (buffers.states[owner] != OPEN) return;
            const unsigned long long key = buffers.key(owner);
            atomicMax(buffers.claims + buffers.removed[row].x, key);
            atomicMax(buffers.claims + buffers.removed[row].y, key);
        });
        group.step(buffers.rows, [&](int row) {
            const int owner = buffers.owners[row];
            if (buffers.states[owner] > BLOCKED) return;
            const unsigned long long key = buffers.key(owner);
            const unsigned long long one = buffers.claims[buffers.removed[row].x], two = buffers.claims[buffers.removed[row].y];
            if (one == CLAIMED || two == CLAIMED)
                atomicMax(buffers.states + owner, REJECTED);
            else if (one != key || two != key)
                atomicMax(buffers.states + owner, BLOCKED);
        });
        open = 0;
        group.step(buffers.exchanges, [&](int i) {
            if (buffers.states[i] == OPEN)
                buffers.states[i] = ACCEPTED;
            else if (buffers.states[i] == BLOCKED) {
                buffers.states[i] = OPEN;
                open = 1;
            }
        });
        group.share(buffers.rows, [&](int row) {
            // accepted exchanges keep their claims; all others release theirs for the next round
            const int owner = buffers.owners[row];
            const unsigned long long key = buffers.key(owner), claimed = buffers.states[owner] == ACCEPTED ? CLAIMED : 0ull;
            unsigned long long* const one = buffers.claims + buffers.removed[row].x;
            unsigned long long* const two = buffers.claims + buffers.removed[row].y;
            if (*one == key) *one = claimed;
            if (*two == key) *two = claimed;
        });
    }
}

// Write the cuts of the accepted exchanges; return their number.
__device__ inline int mark_cuts(const CommitBuffers& buffers, const BlockGroup& group) {
    group.step(buffers.words, [&](int word) { buffers.bits[word] = 0u; });
    group.step(buffers.rows, [&](int row) {
        if (!buffers.accepted(row)) return;
        const int cut = buffers.cut_of(buffers.removed[row]);
        atomicOr(buffers.bits + (cut >> 5), 1u << (cut & 31));
    });
    const int share = (buffers.words + group.threads() - 1) / group.threads();
    const int first = min(buffers.words, group.first() * share);
    const int last = min(buffers.words, first + share);
    int own = 0, m;
    for (int word = first; word < last; ++word) own += __popc(buffers.bits[word]);
    int rank = group.sum_before(own, m);
    for (int word = first; word < last; ++word) {
        buffers.ranks[word] = rank;
        for (unsigned left = buffers.bits[word]; left != 0u; left &= left - 1u) buffers.cuts[rank++] = 32 * word + __ffs(left) - 1;
    }
    group.sync();
    return m;
}

// Link the segment ends, and follow the links from every end by pointer doubling. Afterwards `buffers.jumps` leads to
// the end of the list that begins with end 0, or around a cycle.
__device__ inline void follow_links(CommitBuffers& buffers, const BlockGroup& group, int m) {
    group.step(m, [&](int s) { buffers.firsts[s] = NONE; });
    // both edges at a position belong to one exchange, whose rows are in a fixed order
    group.step(buffers.rows, [&](int row) {
        if (!buffers.accepted(row)) return;
        buffers.claim_start(buffers.added[row].x, 2 * row, m);
        buffers.claim_start(buffers.added[row].y, 2 * row + 1, m);
    });
    group.step(buffers.rows, [&](int row) {
        if (!buffers.accepted(row)) return;
        const int a = buffers.loose_end(buffers.added[row].x, 2 * row, m);
        const int b = buffers.loose_end(buffers.added[row].y, 2 * row + 1, m);
        buffers.links[a] = b;
        buffers.links[b] = a;
        buffers.link_owners[a] = buffers.link_owners[b] = buffers.owners[row];
    });
    group.step(2 * m, [&](int e) {
        const int next = buffers.links[e ^ 1];
        buffers.jumps[e] = Jump{next == 0 ? END : next, buffers.length(e >> 1, m), 1, e};
    });
    for (int steps = 1; steps < 2 * m; steps <<= 1) {
        group.step(2 * m, [&](int e) {
            Jump own = buffers.jumps[e];
            if (own.to != END) {
                const Jump next = buffers.jumps[own.to];
                own = Jump{next.to, own.places + next.places, own.count + next.count, min(own.least, next.least)};
            }
            buffers.jumped[e] = own;
        });
        Jump* const jumps = buffers.jumps;
        buffers.jumps = buffers.jumped;
        buffers.jumped = jumps;
    }
}

// Least end of the cycle of a segment; 0 for the cycle of segment 0.
__device__ inline int cycle_of(const CommitBuffers& buffers, int segment) {
    const Jump one = buffers.jumps[2 * segment], two = buffers.jumps[2 * segment + 1];
    return one.to == END || two.to == END ? 0 : min(one.least, two.least);
}

// Drop exchanges that separate cycles; `round` counts from 0.
__device__ inline void drop_exchanges(const CommitBuffers& buffers, const BlockGroup& group, int m, int round) {
    if (group.first() == 0) group.state.largest = 0ull;
    group.step(2 * m, [&](int e) {
        buffers.sizes[e] = 0;
        buffers.weakest[e] = CLAIMED;
    });
    group.step(m, [&](int s) { atomicAdd(buffers.sizes + cycle_of(buffers, s), buffers.length(s, m)); });
    group.step(2 * m, [&](int e) {
        if (buffers.sizes[e] > 0)
            atomicMax(&group.state.largest, static_cast<unsigned long long>(buffers.sizes[e]) << 32 | (0xFFFFFFFFu - e));
    });
    const int largest = static_cast<int>(0xFFFFFFFFu - static_cast<unsigned>(group.state.largest));
    group.step(m, [&](int s) {
        const int one = cycle_of(buffers, s), two = cycle_of(buffers, s + 1 < m ? s + 1 : 0);
        if (one == two) return;
        // this exchange separates the two cycles
        const int owner = buffers.link_owners[2 * s + 1];
        if (one != largest) atomicMin(buffers.weakest + one, buffers.worth(owner));
        if (two != largest) atomicMin(buffers.weakest + two, buffers.worth(owner));
        if (round >= SINGLE_DROP_ROUNDS && (!buffers.found[owner].local || round >= SINGLE_DROP_ROUNDS + LOCAL_ROUNDS))
            buffers.states[owner] = REJECTED;
    });
    group.step(2 * m, [&](int e) {
        if (buffers.weakest[e] != CLAIMED) buffers.states[CommitBuffers::of_key(buffers.weakest[e])] = REJECTED;
    });
}

// Commit the exchanges of all tours and write the segments of the new tours. `group_blocks` blocks per tour.
extern "C" __global__ void __launch_bounds__(THREADS) commit_exchanges(
    int group_blocks,
    int n, int exchanges, int most,          // per tour; most: capacity of rows and segments
    BarrierState* state,                     // (tours,) initially 0
    const WindowExchange* found,             // (tours, exchanges)
    const int2* removed, const int2* added,  // (tours, most) pairs of positions
    const int* owners, const int* rows,      // (tours, most), (tours,)
    int* states,                             // (tours, exchanges)
    int4* workspace,                         // (tours, 8, n + 3 rounded down to a multiple of 4)
    int* counts,                             // (tours,) number of segments
    int4* segments,                          // (tours, most), see lay_out
    int* fault) {                            // (1,)
    const size_t tour = blockIdx.x / group_blocks;
    if (__syncthreads_or(threadIdx.x == 0 && load_relaxed_system(fault) != 0)) {  // a commit has failed
        if (threadIdx.x == 0) state[tour].failed = 1;
        return;
    }
    const size_t stride = (n + 3) / 4 * 4;  // of 32-bit words, so that all arrays are aligned
    int* at = reinterpret_cast<int*>(workspace) + 32 * stride * tour;
    const auto take = [&](int words) {  // the next array, of `words` words per position
        int* const array = at;
        at += words * stride;
        return array;
    };
    CommitBuffers buffers{found + tour * exchanges, removed + tour * most, added + tour * most, owners + tour * most,
                          states + tour * exchanges, n, exchanges, rows[tour], (n + 31) / 32,
                          reinterpret_cast<Jump*>(take(8)), reinterpret_cast<Jump*>(take(8)),
                          reinterpret_cast<unsigned long long*>(take(4)),
                          reinterpret_cast<unsigned long long*>(take(2)),
                          take(2), take(2), take(2), take(1), take(1), take(1), reinterpret_cast<unsigned*>(take(1))};
    BlockGroup group{group_blocks, static_cast<int>(blockIdx.x) % group_blocks, state[tour], fault};
    claim(buffers, group);
    int m = 0;
    for (int round = 0;; ++round) {
        m = mark_cuts(buffers, group);
        if (m == 0) break;
        follow_links(buffers, group, m);
        if (buffers.jumps[0].places == n) break;
        drop_exchanges(buffers, group, m, round);
    }
    int4* const own = segments + tour * most;
    if (m == 0) {
        if (group.first() == 0) {
            own[0] = make_int4(0, 0, n, 1);
            counts[tour] = 1;
        }
        return;
    }
    group.share(2 * m, [&](int e) {
        const Jump jump = buffers.jumps[e];
        if (jump.to != END) return;
        const int segment = e >> 1;
        own[m - jump.count] = make_int4(n - jump.places, e & 1 ? buffers.cuts[segment] : buffers.start(segment, m),
                                        buffers.length(segment, m), e & 1 ? -1 : 1);
    });
    if (group.first() == 0) counts[tour] = m;
}

// Write the new tours from their segments.
extern "C" __global__ void lay_out(
    int n, int tours, int most, const int* counts,  // (tours,)
    const int4* segments,  // (tours, most) new position, ascending; old position; count; 1 or -1
    const int* old_tours, int* new_tours, int* positions,  // (tours, n)
    const BarrierState* state) {  // (tours,)
    const size_t index = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (index >= static_cast<size_t>(tours) * n) return;
    const int which = static_cast<int>(index / n), place = static_cast<int>(index % n);
    const size_t offset = static_cast<size_t>(which) * n;
    const int4* const own = segments + static_cast<size_t>(which) * most;
    if (state[which].failed) {
        const int city = old_tours[index];
        new_tours[index] = city;
        positions[offset + city] = place;
        return;
    }
    const int4 s = own[last_at_most(place, counts[which], [&](int segment) { return own[segment].x; })];
    int from = s.y + s.w * (place - s.x);
    if (from >= n) from -= n;
    if (from < 0) from += n;
    const int city = old_tours[offset + from];
    new_tours[offset + place] = city;
    positions[offset + city] = place;
}

// Compute the positions of the cities in newly loaded tours.
extern "C" __global__ void find_positions(int n, int tours, const int* all_tours, int* positions) {  // (tours, n)
    const size_t index = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (index >= static_cast<size_t>(tours) * n) return;
    positions[index / n * n + all_tours[index]] = static_cast<int>(index % n);
}
