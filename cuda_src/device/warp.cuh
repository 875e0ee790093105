// Reductions and scans over one warp, by all 32 lanes.
#pragma once

constexpr unsigned EVERY_LANE = 0xFFFFFFFFu;

__device__ __forceinline__ int lane_id() {
    int lane;
    asm("mov.u32 %0, %%laneid;" : "=r"(lane));
    return lane;
}

__device__ __forceinline__ unsigned warp_min(unsigned value) {
#if __CUDA_ARCH__ >= 800
    return __reduce_min_sync(EVERY_LANE, value);
#else
    for (int step = 16; step > 0; step >>= 1) value = min(value, __shfl_xor_sync(EVERY_LANE, value, step));
    return value;
#endif
}

// Index of the warp in its block; the reduction marks it as uniform for the compiler.
__device__ __forceinline__ int warp_of_block() { return static_cast<int>(warp_min(threadIdx.x >> 5)); }

__device__ __forceinline__ unsigned warp_max(unsigned value) { return ~warp_min(~value); }

__device__ __forceinline__ unsigned warp_sum(unsigned value) {
#if __CUDA_ARCH__ >= 800
    return __reduce_add_sync(EVERY_LANE, value);
#else
    for (int step = 16; step > 0; step >>= 1) value += __shfl_xor_sync(EVERY_LANE, value, step);
    return value;
#endif
}

// Sum in a fixed order: rounding is reproducible.
__device__ __forceinline__ double warp_sum(double value) {
    for (int step = 16; step > 0; step >>= 1) value += __shfl_xor_sync(EVERY_LANE, value, step);
    return value;
}

template <class Number>
__device__ __forceinline__ Number warp_max(Number value) {
    for (int step = 16; step > 0; step >>= 1) value = max(value, __shfl_xor_sync(EVERY_LANE, value, step));
    return value;
}

// Sum over the lanes 0 .. own lane.
template <class Number>
__device__ __forceinline__ Number warp_prefix_sum(Number value) {
    const int lane = lane_id();
#pragma unroll
    for (int step = 1; step < 32; step <<= 1) {
        const Number other = __shfl_up_sync(EVERY_LANE, value, step);
        if (lane >= step) value += other;
    }
    return value;
}

// Map floats to unsigned integers of the same order.
__device__ __forceinline__ unsigned ordered(float value) {
    const unsigned bits = __float_as_uint(value);
    return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

// The least value so far and its index; ties: the lowest index.
struct Least {
    double value = 1.0 / 0.0;
    int index = 0x7FFFFFFF;

    __device__ __forceinline__ void consider(double other, int at) {
        if (other < value || (other == value && at < index)) {
            value = other;
            index = at;
        }
    }
    __device__ __forceinline__ void reduce_warp() {
        for (int step = 16; step > 0; step >>= 1) {
            const double other = __shfl_xor_sync(EVERY_LANE, value, step);
            consider(other, __shfl_xor_sync(EVERY_LANE, index, step));
        }
    }
};

// Index of the last of `count` ascending numbers at(0), at(1), .. that is <= `value`; 0 if there is none.
template <class At>
__device__ __forceinline__ int last_at_most(int value, int count, At at) {
    int low = 0, high = count - 1;
    while (low < high) {
        const int middle = (low + high + 1) >> 1;
        if (at(middle) <= value) low = middle;
        else high = middle - 1;
    }
    return low;
}
