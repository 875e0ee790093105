// Timeout of barriers between blocks: some blocks may never become resident while another process uses the device.
#pragma once

constexpr unsigned long long TIMEOUT = 10000000000ull;  // nanoseconds

__device__ __forceinline__ unsigned long long nanoseconds() {
    unsigned long long now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}

// One wait of one thread in a polling loop.
struct Wait {
    unsigned polls = 0;
    unsigned long long start = 0;

    // Return true after a timeout in this or another block, and set *fault, in host memory.
    __device__ __forceinline__ bool failed(volatile int* fault) {
        if ((++polls & 1023u) != 0u) return false;
        if (start == 0) start = nanoseconds();
        if (nanoseconds() - start < TIMEOUT && *fault == 0) return false;
        *fault = 1;
        return true;
    }
};
