// Commit: exchanges that were found side by side on one tour are applied to it together.
//
// An exchange takes k edges out of the tour and puts k others in. Those of higher rank go first: each claims the
// positions it touches, and one that finds a position claimed is left. The edges out cut the tour into segments, the
// edges in link segment ends, and following the links shows the cycles: where there are several, of the exchanges that
// part a cycle from another that of the lowest rank is dropped, for each but the largest, a local one only if there is
// no other. pymoo_gpuaco/memetic/commit.py does the same on the host, one exchange after another, with gains for ranks;
// the result is the same, but that the host takes few of those that gain nothing, and this all that fit.
//
// Threads share the edges of all exchanges, for exchanges differ in size; an edge knows its owner. Where a tour has many
// exchanges several blocks do this together. If one of them does not arrive (`Team::meet`), *fault is set: nothing is
// committed until the host has cleared it, and tours whose commit has not ended stay as they are.
#include <climits>

#include "device/relaxed.cuh"
#include "device/warp.cuh"
#include "windows/found.cuh"
#include "windows/team.cuh"

// Contradictions are settled by dropping one exchange a stray cycle, of those that part it from another; after so many
// rounds all of them that are not local, and after so many more all.
constexpr int GENTLE_ROUNDS = 12, FIRM_ROUNDS = 8;

constexpr unsigned long long TAKEN = ~0ull;
constexpr int END = -1;  // of the list that begins with end 0

// An exchange that waits has lost a position to a better one, which may yet lose another.
enum State : int { OPEN, WAITS, LEFT, ACCEPTED };

// Where a walk over segment ends has come after 2^i steps.
struct __align__(16) Jump {
    int to;      // end by which it enters a segment next, or END
    int places;  // positions that it has passed
    int count;   // segments
    int least;   // least end that it has met
};

// Room of all tours; each block uses its own part.
struct Room {
    const Found* found;      // (exchanges,)
    const int2 *removed, *added;  // (rows,) edges out and in
    const int* owners;       // (rows,) exchange of an edge out and of one in
    int* states;             // (exchanges,)
    unsigned long long* claims;  // (n,) 0
    unsigned* bits;          // (words,) 0: the cuts, a bit a position: the edge behind it is out
    int* ranks;              // (words,) cuts before the word
    int* cuts;               // (n,) positions
    int* links;              // (2 n,) end that an end is linked to
    int* link_owners;        // (2 n,) exchange that says so
    int* firsts;             // (n,) who takes the start of a segment that is one position
    Jump *jumps, *jumped;    // (2 n,)
    int* sizes;              // (2 n,) positions of the cycle with this least end
    unsigned long long* weakest;  // (2 n,) worth of the exchange that it loses first
    int n, exchanges, rows, words;

    // Exchanges of higher rank have larger keys; of equal ones the lower number.
    __device__ unsigned long long key(int exchange) const {
        return static_cast<unsigned long long>(ordered(found[exchange].rank)) << 31 | (0x7FFFFFFEu - exchange);
    }
    // And to be kept, the local ones have larger keys than all others.
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
    // Segment whose end or start a position is, which is cut loose; ``single`` if it is both.
    __device__ int segment_at(int p, int m, bool& ends, bool& single) const {
        const int before = p > 0 ? p - 1 : n - 1;
        const bool starts = is_cut(before);
        ends = is_cut(p);
        single = ends && starts;
        return ends ? rank(p) : rank(before) + 1 == m ? 0 : rank(before) + 1;
    }
    // Loose end at a position: 2 s is the start of segment s, 2 s + 1 its end. A position that is both takes two edges,
    // one at each: the start goes to the end of an edge with the lower number.
    __device__ int loose_end(int p, int number, int m) const {
        bool ends, single;
        const int segment = segment_at(p, m, ends, single);
        return 2 * segment + (single ? firsts[segment] != number : ends);
    }
    __device__ void ask_for_start(int p, int number, int m) const {
        bool ends, single;
        const int segment = segment_at(p, m, ends, single);
        if (single) atomicMin(firsts + segment, number);
    }
};

// Decide which exchanges are accepted, as if they came one after another, those of higher rank first.
__device__ inline void claim(const Room& room, Team& team) {
    for (int i = team.first(); i < room.exchanges; i += team.threads())
        room.states[i] = room.found[i].edges > 0 ? OPEN : LEFT;
    team.meet();
    bool open = true;
    while (team.any(open)) {
        for (int row = team.first(); row < room.rows; row += team.threads()) {
            const int owner = room.owners[row];
            if (room.states[owner] != OPEN) continue;
            const unsigned long long key = room.key(owner);
            atomicMax(room.claims + room.removed[row].x, key);
            atomicMax(room.claims + room.removed[row].y, key);
        }
        team.meet();
        for (int row = team.first(); row < room.rows; row += team.threads()) {
            const int owner = room.owners[row];
            if (room.states[owner] > WAITS) continue;
            const unsigned long long key = room.key(owner);
            const unsigned long long one = room.claims[room.removed[row].x], two = room.claims[room.removed[row].y];
            if (one == TAKEN || two == TAKEN)
                atomicMax(room.states + owner, LEFT);
            else if (one != key || two != key)
                atomicMax(room.states + owner, WAITS);
        }
        team.meet();
        open = false;
        for (int i = team.first(); i < room.exchanges; i += team.threads()) {
            if (room.states[i] == OPEN)
                room.states[i] = ACCEPTED;
            else if (room.states[i] == WAITS) {
                room.states[i] = OPEN;
                open = true;
            }
        }
        team.meet();
        for (int row = team.first(); row < room.rows; row += team.threads()) {
            // an accepted exchange keeps its positions, the others make room for the next round
            const int owner = room.owners[row];
            const unsigned long long key = room.key(owner), kept = room.states[owner] == ACCEPTED ? TAKEN : 0ull;
            unsigned long long* const one = room.claims + room.removed[row].x;
            unsigned long long* const two = room.claims + room.removed[row].y;
            if (*one == key) *one = kept;
            if (*two == key) *two = kept;
        }
    }
    for (int row = team.first(); row < room.rows; row += team.threads())
        if (room.accepted(row)) room.claims[room.removed[row].x] = room.claims[room.removed[row].y] = 0ull;
    team.meet();
}

// Mark the cuts of the accepted exchanges; their number.
__device__ inline int cut_up(const Room& room, const Team& team, int* warps) {
    for (int row = team.first(); row < room.rows; row += team.threads()) {
        if (!room.accepted(row)) continue;
        const int cut = room.cut_of(room.removed[row]);
        atomicOr(room.bits + (cut >> 5), 1u << (cut & 31));
    }
    team.meet();
    const int share = (room.words + team.threads() - 1) / team.threads();
    const int first = min(room.words, team.first() * share);
    const int last = min(room.words, first + share);
    int own = 0, m;
    for (int word = first; word < last; ++word) own += __popc(room.bits[word]);
    int rank = team.sum_before(own, warps, m);
    for (int word = first; word < last; ++word) {
        room.ranks[word] = rank;
        for (unsigned left = room.bits[word]; left != 0u; left &= left - 1u) room.cuts[rank++] = 32 * word + __ffs(left) - 1;
    }
    team.meet();
    return m;
}

__device__ inline void clear_cuts(const Room& room, const Team& team) {
    for (int row = team.first(); row < room.rows; row += team.threads())
        room.bits[room.cut_of(room.removed[row]) >> 5] = 0u;
    team.meet();
}

// Link the segment ends, and follow the links from every end by doubling: in ``room.jumps`` the walk to the end of the
// list that begins with end 0, or round and round.
__device__ inline void follow(Room& room, const Team& team, int m) {
    for (int s = team.first(); s < m; s += team.threads()) room.firsts[s] = INT_MAX;
    team.meet();
    // both edges at a position are of one exchange, whose rows stand in one order wherever they lie
    for (int row = team.first(); row < room.rows; row += team.threads()) {
        if (!room.accepted(row)) continue;
        room.ask_for_start(room.added[row].x, 2 * row, m);
        room.ask_for_start(room.added[row].y, 2 * row + 1, m);
    }
    team.meet();
    for (int row = team.first(); row < room.rows; row += team.threads()) {
        if (!room.accepted(row)) continue;
        const int a = room.loose_end(room.added[row].x, 2 * row, m);
        const int b = room.loose_end(room.added[row].y, 2 * row + 1, m);
        room.links[a] = b;
        room.links[b] = a;
        room.link_owners[a] = room.link_owners[b] = room.owners[row];
    }
    team.meet();
    for (int e = team.first(); e < 2 * m; e += team.threads()) {
        const int next = room.links[e ^ 1];
        room.jumps[e] = Jump{next == 0 ? END : next, room.length(e >> 1, m), 1, e};
    }
    team.meet();
    for (int steps = 1; steps < 2 * m; steps <<= 1) {
        for (int e = team.first(); e < 2 * m; e += team.threads()) {
            Jump own = room.jumps[e];
            if (own.to != END) {
                const Jump next = room.jumps[own.to];
                own = Jump{next.to, own.places + next.places, own.count + next.count, min(own.least, next.least)};
            }
            room.jumped[e] = own;
        }
        Jump* const jumps = room.jumps;
        room.jumps = room.jumped;
        room.jumped = jumps;
        team.meet();
    }
}

// Least end of the cycle that a segment is on, 0 for that of segment 0.
__device__ inline int cycle_of(const Room& room, int segment) {
    const Jump one = room.jumps[2 * segment], two = room.jumps[2 * segment + 1];
    return one.to == END || two.to == END ? 0 : min(one.least, two.least);
}

// Drop exchanges that leave stray cycles; ``round`` counts from 0.
__device__ inline void drop(const Room& room, const Team& team, int m, int round) {
    for (int e = team.first(); e < 2 * m; e += team.threads()) {
        room.sizes[e] = 0;
        room.weakest[e] = TAKEN;
    }
    if (team.first() == 0) team.told.largest = 0ull;
    team.meet();
    for (int s = team.first(); s < m; s += team.threads()) atomicAdd(room.sizes + cycle_of(room, s), room.length(s, m));
    team.meet();
    for (int e = team.first(); e < 2 * m; e += team.threads())
        if (room.sizes[e] > 0)
            atomicMax(&team.told.largest, static_cast<unsigned long long>(room.sizes[e]) << 32 | (0xFFFFFFFFu - e));
    team.meet();
    const int kept = static_cast<int>(0xFFFFFFFFu - static_cast<unsigned>(team.told.largest));
    for (int s = team.first(); s < m; s += team.threads()) {
        const int one = cycle_of(room, s), two = cycle_of(room, s + 1 < m ? s + 1 : 0);
        if (one == two) continue;
        // if this edge were left in, two cycles would be one
        const int owner = room.link_owners[2 * s + 1];
        if (one != kept) atomicMin(room.weakest + one, room.worth(owner));
        if (two != kept) atomicMin(room.weakest + two, room.worth(owner));
        if (round >= GENTLE_ROUNDS && (!room.found[owner].local || round >= GENTLE_ROUNDS + FIRM_ROUNDS))
            room.states[owner] = LEFT;
    }
    team.meet();
    for (int e = team.first(); e < 2 * m; e += team.threads())
        if (room.weakest[e] != TAKEN) room.states[Room::of_key(room.weakest[e])] = LEFT;
    team.meet();
}

// Whether a commit has failed; the same for all threads of a block, of which one asks the host's memory.
__device__ __forceinline__ bool has_failed(const int* fault) {
    return __syncthreads_or(threadIdx.x == 0 && load_relaxed_system(fault) != 0);
}

extern "C" __global__ void __launch_bounds__(THREADS) commit_exchanges(
    int team_blocks,                           // of a tour
    int n, int exchanges, int most,            // of a tour; ``most`` rows and segments that it has room for
    Told* told,                                // (tours,) 0
    const Found* found,                        // (tours, exchanges)
    const int2* removed, const int2* added,    // (tours, most) pairs of positions
    const int* owners, const int* rows,        // (tours, most), (tours,)
    int* states,                               // (tours, exchanges)
    unsigned long long* claims,                // (tours, n) 0
    unsigned* bits, int* ranks,                // (tours, words); bits 0
    int* cuts, int* links, int* link_owners, int* firsts,  // (tours, n), (tours, 2 n), (tours, 2 n), (tours, n)
    int4* jumps, int4* jumped, int* sizes, unsigned long long* weakest,  // (tours, 2 n)
    int* counts,       // (tours,)
    int4* segments,    // (tours, most) for lay_out
    int* fault) {      // (1,)
    __shared__ int warps[THREADS / 32];
    const size_t tour = blockIdx.x / team_blocks;
    if (has_failed(fault)) {
        if (threadIdx.x == 0) told[tour].failed = 1;
        return;
    }
    const int words = (n + 31) / 32;
    Room room{found + tour * exchanges,
              removed + tour * most,
              added + tour * most,
              owners + tour * most,
              states + tour * exchanges,
              claims + tour * n,
              bits + tour * words,
              ranks + tour * words,
              cuts + tour * n,
              links + 2 * tour * n,
              link_owners + 2 * tour * n,
              firsts + tour * n,
              reinterpret_cast<Jump*>(jumps) + 2 * tour * n,
              reinterpret_cast<Jump*>(jumped) + 2 * tour * n,
              sizes + 2 * tour * n,
              weakest + 2 * tour * n,
              n,
              exchanges,
              rows[tour],
              words};
    Team team{team_blocks, static_cast<int>(blockIdx.x) % team_blocks, told[tour], fault};
    claim(room, team);
    int m = 0;
    for (int round = 0;; ++round) {
        m = cut_up(room, team, warps);
        if (m == 0) break;
        follow(room, team, m);
        if (room.jumps[0].places == n) break;
        drop(room, team, m, round);
        clear_cuts(room, team);
    }
    int4* const own = segments + tour * most;
    if (m == 0) {
        if (team.first() == 0) {
            own[0] = make_int4(0, 0, n, 1);
            counts[tour] = 1;
        }
        return;
    }
    for (int e = team.first(); e < 2 * m; e += team.threads()) {
        const Jump jump = room.jumps[e];
        if (jump.to != END) continue;
        const int segment = e >> 1;
        own[m - jump.count] = make_int4(n - jump.places, e & 1 ? room.cuts[segment] : room.start(segment, m),
                                        room.length(segment, m), e & 1 ? -1 : 1);
    }
    if (team.first() == 0) counts[tour] = m;
    clear_cuts(room, team);
}

// Tours laid anew from their segments.
extern "C" __global__ void lay_out(
    int n, int tours, int most, const int* counts,  // (tours,)
    const int4* segments,  // (tours, most) place in the new tour, ascending; position in the old; count; 1 or -1
    const int* old_tours, int* new_tours, int* positions,  // (tours, n)
    const Told* told) {  // (tours,)
    const size_t index = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (index >= static_cast<size_t>(tours) * n) return;
    const int which = static_cast<int>(index / n), place = static_cast<int>(index % n);
    const size_t offset = static_cast<size_t>(which) * n;
    const int4* const own = segments + static_cast<size_t>(which) * most;
    if (told[which].failed) {
        const int city = old_tours[index];
        new_tours[index] = city;
        positions[offset + city] = place;
        return;
    }
    int low = 0, high = counts[which] - 1;
    while (low < high) {
        const int middle = (low + high + 1) >> 1;
        if (own[middle].x <= place)
            low = middle;
        else
            high = middle - 1;
    }
    const int4 s = own[low];
    int from = s.y + s.w * (place - s.x);
    if (from >= n) from -= n;
    if (from < 0) from += n;
    const int city = old_tours[offset + from];
    new_tours[offset + place] = city;
    positions[offset + city] = place;
}

// Where each city stands in tours that have been put there.
extern "C" __global__ void find_positions(int n, int tours, const int* all_tours, int* positions) {  // (tours, n)
    const size_t index = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (index >= static_cast<size_t>(tours) * n) return;
    positions[index / n * n + all_tours[index]] = static_cast<int>(index % n);
}
