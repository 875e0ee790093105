// The interface between search and commit, and the group of blocks that commits one tour.
#pragma once

#include "device/barrier.cuh"
#include "device/warp.cuh"

#ifndef THREADS
#define THREADS 512  // a block of commit_exchanges
#endif
#ifndef MOST_BLOCKS
#define MOST_BLOCKS 16  // that commit the exchanges of one tour
#endif

// An exchange of a window: ``edges`` removed and as many added; 0: nothing found.
struct __align__(8) WindowExchange {
    float rank;  // exchanges of higher rank are applied first
    short edges;
    short local;  // 1: cities outside the window keep their order and direction, so it conflicts with few others
};
#ifdef EXCHANGE_BYTES
static_assert(sizeof(WindowExchange) == EXCHANGE_BYTES, "the host allocates another size for WindowExchange");
#endif

// Barrier state shared by the blocks of a tour. All 0 at first.
struct __align__(16) BarrierState {
    unsigned long long largest;  // cycle: its positions << 32 | ~its least end
    unsigned arrived;            // arrivals at all barriers so far
    int votes;                   // blocks that voted true, in all votes
    int failed;                  // 1: no exchange of this tour may be applied
    int sums[MOST_BLOCKS];
};
#ifdef BARRIER_STATE_BYTES
static_assert(sizeof(BarrierState) == BARRIER_STATE_BYTES, "the host allocates another size for BarrierState");
#endif

// The blocks that commit one tour. All of them must be resident on the device together, see windows.py.
struct BlockGroup {
    int blocks, block;  // their number, and the index of this one
    BarrierState& state;
    volatile int* fault;
    int votes = 0;  // counted so far

    // Threads share work by ``for (int i = group.first(); i < count; i += group.threads())``.
    __device__ int first() const { return block * THREADS + static_cast<int>(threadIdx.x); }
    __device__ int threads() const { return blocks * THREADS; }

    // Barrier of all threads of the group; writes before it are visible after it. If a block does not arrive
    // (`Wait::failed`), the threads of this one exit.
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

    // Whether any thread votes true. Two votes need a barrier between them.
    __device__ bool any(bool own) {
        const bool of_block = __syncthreads_or(own);
        if (blocks == 1) return of_block;
        if (of_block && threadIdx.x == 0) atomicAdd(&state.votes, 1);
        sync();
        const int before = votes;
        votes = static_cast<volatile BarrierState&>(state).votes;
        return votes != before;
    }

    // Sum over the preceding threads; ``total``: of all threads. Two sums need a barrier between them.
    __device__ int sum_before(int value, int* warps, int& total) const {
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
