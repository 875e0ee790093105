// Blocks that commit the exchanges of one tour together.
#pragma once

#include "device/barrier.cuh"
#include "device/warp.cuh"

#ifndef THREADS
#define THREADS 512  // a block of commit_exchanges
#endif
#ifndef MOST_BLOCKS
#define MOST_BLOCKS 16  // that commit the exchanges of one tour
#endif

// What the blocks of a tour tell one another. All 0 in the beginning.
struct __align__(16) Told {
    unsigned long long largest;  // cycle: its positions << 32 | ~its least end
    unsigned arrived;            // blocks that have come to a meeting, of all meetings
    int votes;                   // blocks that have said yes, in all votes
    int failed;                  // 1: no exchange of this tour is to be applied
    int sums[MOST_BLOCKS];
};
#ifdef TOLD_BYTES
static_assert(sizeof(Told) == TOLD_BYTES, "the host takes memory for a Told of other bytes");
#endif

// The blocks that work on one tour. All of them must be on the device at the same time, see the host.
struct Team {
    int blocks, block;  // how many, and which of them this is
    Told& told;
    volatile int* fault;
    int votes = 0;  // counted so far

    // What threads share goes ``for (int i = team.first(); i < count; i += team.threads())``.
    __device__ int first() const { return block * THREADS + static_cast<int>(threadIdx.x); }
    __device__ int threads() const { return blocks * THREADS; }

    // All threads wait for all others, and see what these have written. Where a block does not arrive (`Wait::failed`),
    // the threads of this one exit.
    __device__ void meet() const {
        bool failed = false;
        __syncthreads();
        if (blocks == 1) return;
        if (threadIdx.x == 0) {
            Wait wait;
            __threadfence();
            const unsigned ticket = atomicAdd(&told.arrived, 1u), due = ticket - ticket % blocks + blocks;
            const volatile unsigned& arrived = told.arrived;
            while (arrived < due && !failed) failed = wait.failed(fault);
            __threadfence();
        }
        if (failed) told.failed = 1;
        if (__syncthreads_or(failed)) asm volatile("exit;");
    }

    // Whether any thread says yes. There must be a meeting between two votes.
    __device__ bool any(bool own) {
        const bool of_block = __syncthreads_or(own);
        if (blocks == 1) return of_block;
        if (of_block && threadIdx.x == 0) atomicAdd(&told.votes, 1);
        meet();
        const int before = votes;
        votes = static_cast<volatile Told&>(told).votes;
        return votes != before;
    }

    // Sum over the threads before, of all in ``total``. There must be a meeting between two sums.
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
            if (threadIdx.x == 0) told.sums[block] = total;
            total = 0;
        }
        meet();
        for (int b = 0; blocks > 1 && b < blocks; ++b) {
            if (b < block) before += told.sums[b];
            total += told.sums[b];
        }
        return before;
    }
};
