// Tabu of an ant (visited cities): the three layouts of section 4.1, Skinderowicz 2020
// (doi:10.1016/j.future.2020.01.011).
//
// One warp has one tabu. `left`, the number of open cities, is the same in all lanes. All lanes call `take`; the lane
// with own = true passes the next city and the result of its look-up.
#pragma once

#include "device/warp.cuh"

#define TABU_LIST 0
#define TABU_COMPACT 1
#define TABU_BITMASK 2
#ifndef TABU
#define TABU TABU_BITMASK
#endif
// -DNODE: integer type of a city; in a compact tabu it must also hold n

typedef NODE Node;

// What a tabu holds of a city. A bitmask passes the loaded word on to `take`.
struct Lookup {
#if TABU == TABU_BITMASK
    unsigned word, bit;

    __device__ __forceinline__ bool visited() const { return (word & bit) != 0u; }
#else
    bool found;

    __device__ __forceinline__ bool visited() const { return found; }
#endif
};

struct Tabu {
#if TABU == TABU_BITMASK
    unsigned* words;  // (ceil(n / 32),) bit set: visited; the bits past n - 1 are set
#else
    // The first `left` entries are the open cities.
    // List (Fig. 6, Uchida et al. 2012; Fig. 3, Skinderowicz 2020): n more entries are the index of each city in this
    // list. Compact (Fig. 4, Skinderowicz 2020): entries[u] > u: u is visited; for an open city u >= left, entries[u]
    // is its index.
    Node* entries;
#endif
    int n, left;

#if TABU == TABU_BITMASK
    __device__ __forceinline__ Tabu(void* memory, int n) : words(static_cast<unsigned*>(memory)), n(n), left(n) {}

    __device__ __forceinline__ Lookup lookup(int city) const { return Lookup{words[city >> 5], 1u << (city & 31)}; }

    // Entries that contain all open cities; `city_at` is -1 for an entry without one.
    __device__ __forceinline__ int length() const { return n; }
    __device__ __forceinline__ int city_at(int place) const { return visited(place) ? -1 : place; }
#else
    __device__ __forceinline__ Tabu(void* memory, int n) : entries(static_cast<Node*>(memory)), n(n), left(n) {}

    __device__ __forceinline__ Lookup lookup(int city) const {
        return Lookup{TABU == TABU_LIST ? entries[n + city] >= left : entries[city] > city};
    }
    __device__ __forceinline__ int length() const { return left; }
    __device__ __forceinline__ int city_at(int place) const { return entries[place]; }
#endif
    __device__ __forceinline__ bool visited(int city) const { return lookup(city).visited(); }

    __device__ __forceinline__ void clear() {
#if TABU == TABU_BITMASK
        const int whole = n >> 5, all = (n + 31) >> 5;
        for (int w = lane_id(); w < all; w += 32) words[w] = w < whole ? 0u : EVERY_LANE << (n & 31);
#else
        for (int c = lane_id(); c < n; c += 32) {
            entries[c] = static_cast<Node>(c);
            if (TABU == TABU_LIST) entries[n + c] = static_cast<Node>(c);
        }
#endif
        left = n;
        __syncwarp();
    }

    __device__ __forceinline__ void take(bool own, int city, Lookup lookup) {
        __syncwarp();
        --left;
        if (own) {
#if TABU == TABU_BITMASK
            words[city >> 5] = lookup.word | lookup.bit;
#else
            Node* const index = TABU == TABU_LIST ? entries + n : entries;
            const Node place = index[city], last = entries[left];
            entries[place] = last;
            index[last] = place;
            if (TABU == TABU_LIST) index[city] = static_cast<Node>(left);
            else if (city >= left) index[city] = static_cast<Node>(n);
#endif
        }
        __syncwarp();
    }
    __device__ __forceinline__ void visit(int city) { take(lane_id() == 0, city, lookup(city)); }
};

// Call action(city, open) with a city of every lane until every open city has been passed once.
template <class Action>
__device__ __forceinline__ void for_open_cities(const Tabu& tabu, Action action) {
    const int lane = lane_id();
#if TABU == TABU_BITMASK
    for (int first = 0; first < tabu.n; first += 1024) {
        const int w = (first >> 5) + lane;
        unsigned bits = 32 * w < tabu.n ? ~tabu.words[w] : 0u;
        unsigned words_left = __ballot_sync(EVERY_LANE, bits != 0u);
        const int words = __popc(words_left), most = static_cast<int>(warp_max(static_cast<unsigned>(__popc(bits))));
        if (most < words) {
#pragma unroll 4
            for (int i = 0; i < most; ++i) {  // every lane scans its own word
                action(bits != 0u ? 32 * w + __ffs(bits) - 1 : 0, bits != 0u);
                bits &= bits - 1;
            }
        } else {
#pragma unroll 4
            for (int i = 0; i < words; ++i) {  // the lanes scan a word together: their cities are adjacent in memory
                const int source = __ffs(words_left) - 1;
                const bool open = __shfl_sync(EVERY_LANE, bits, source) >> lane & 1u;
                action(open ? first + 32 * source + lane : 0, open);
                words_left &= words_left - 1;
            }
        }
    }
#else
#pragma unroll 4
    for (int first = 0; first < tabu.left; first += 32) {
        const bool open = first + lane < tabu.left;
        action(open ? tabu.city_at(first + lane) : 0, open);
    }
#endif
}
