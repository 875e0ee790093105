// Relaxed loads and stores of memory that other warps change concurrently: no torn values, no ordering.
#pragma once

__device__ __forceinline__ float load_relaxed(const float* place) {
    float value;
    asm volatile("ld.relaxed.gpu.global.f32 %0, [%1];" : "=f"(value) : "l"(place));
    return value;
}

__device__ __forceinline__ int load_relaxed(const int* place) {
    int value;
    asm volatile("ld.relaxed.gpu.global.s32 %0, [%1];" : "=r"(value) : "l"(place));
    return value;
}

__device__ __forceinline__ unsigned long long load_relaxed(const unsigned long long* place) {
    unsigned long long value;
    asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(value) : "l"(place));
    return value;
}

// The same for memory that the host changes concurrently.
__device__ __forceinline__ int load_relaxed_system(const int* place) {
    int value;
    asm volatile("ld.relaxed.sys.global.s32 %0, [%1];" : "=r"(value) : "l"(place));
    return value;
}

__device__ __forceinline__ void store_relaxed(float* place, float value) {
    asm volatile("st.relaxed.gpu.global.f32 [%0], %1;" ::"l"(place), "f"(value) : "memory");
}

__device__ __forceinline__ void store_relaxed(int* place, int value) {
    asm volatile("st.relaxed.gpu.global.s32 [%0], %1;" ::"l"(place), "r"(value) : "memory");
}

__device__ __forceinline__ void store_relaxed(unsigned long long* place, unsigned long long value) {
    asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(place), "l"(value) : "memory");
}
