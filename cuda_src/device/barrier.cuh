// The end of a wait of blocks for one another: some may never be on the device, because another process uses it.
#pragma once

constexpr unsigned long long LONGEST_WAIT = 10000000000ull;  // nanoseconds

__device__ __forceinline__ unsigned long long nanoseconds() {
    unsigned long long now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}

// One wait of one thread, which asks for its end in a loop.
struct Wait {
    unsigned looks = 0;
    unsigned long long start = 0;

    // Whether it has lasted too long, or another block has set *fault. Sets *fault, which lies in the host's memory.
    __device__ __forceinline__ bool failed(volatile int* fault) {
        if ((++looks & 1023u) != 0u) return false;
        if (start == 0) start = nanoseconds();
        if (nanoseconds() - start < LONGEST_WAIT && *fault == 0) return false;
        *fault = 1;
        return true;
    }
};
