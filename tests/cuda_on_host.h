// Enough of CUDA for the kernels to run on the host. Every thread of a block is a fiber; a fiber runs until it has to
// wait for others, so threads that rely on a lock-step which CUDA does not guarantee are found. Blocks run one by one.
#pragma once

#include <setjmp.h>
#include <ucontext.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <tuple>
#include <vector>

#define __device__
#define __global__
#define __forceinline__ inline
#define __noinline__
#define __restrict__
#define __shared__ static
#define __launch_bounds__(...)
#define __align__(bytes) __attribute__((aligned(bytes)))

struct alignas(8) int2 { int x, y; };
struct alignas(16) int4 { int x, y, z, w; };
struct alignas(8) uint2 { unsigned x, y; };
struct alignas(16) uint4 { unsigned x, y, z, w; };
struct alignas(8) float2 { float x, y; };
struct alignas(16) float4 { float x, y, z, w; };
inline int2 make_int2(int x, int y) { return {x, y}; }
inline int4 make_int4(int x, int y, int z, int w) { return {x, y, z, w}; }
inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
inline float2 make_float2(float x, float y) { return {x, y}; }
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }

using std::max;
using std::min;

// ---- threads

struct Three { unsigned x = 0, y = 0, z = 0; };
static Three threadIdx, blockIdx, blockDim, gridDim;

struct Fiber {
    jmp_buf here, end;
    char* stack = nullptr;
    bool done = false;
};

static std::vector<Fiber> fibers;
static jmp_buf host;
static unsigned progress;  // counts meetings: without any in a round, all fibers wait for ever

inline void let_others_run() {
    // a switch by swapcontext is a call of the system, which takes longer than all else that is emulated
    if (!_setjmp(fibers[threadIdx.x].here)) _longjmp(host, 1);
}

struct Meeting {
    unsigned arrived = 0, number = 0;

    void wait_for(unsigned threads) {
        const unsigned own = number;
        if (++arrived == threads) {
            arrived = 0;
            ++number;
            ++progress;
        } else {
            while (number == own) let_others_run();
        }
    }
};

static Meeting block_meeting, warp_meetings[32];
static uint64_t exchanged[32][2][32];  // two in turn: a fast lane may be one exchange ahead

inline const uint64_t* exchange_bits(uint64_t bits) {
    const unsigned warp = threadIdx.x / 32;
    uint64_t* places = exchanged[warp][warp_meetings[warp].number & 1];
    places[threadIdx.x % 32] = bits;
    warp_meetings[warp].wait_for(32);
    return places;
}

template <class T>
struct Exchange {
    const uint64_t* places;

    explicit Exchange(T value) {
        static_assert(sizeof(T) <= sizeof(uint64_t), "");
        uint64_t bits = 0;
        memcpy(&bits, &value, sizeof value);
        places = exchange_bits(bits);
    }
    T from(int lane) const {
        T value;
        memcpy(&value, places + lane, sizeof value);
        return value;
    }
};

inline int own_lane() { return static_cast<int>(threadIdx.x % 32); }

template <class T>
T __shfl_sync(unsigned, T value, int source, int width = 32) {
    const Exchange<T> all(value);
    return all.from(own_lane() / width * width + (source & (width - 1)));
}
template <class T>
T __shfl_up_sync(unsigned, T value, int step, int width = 32) {
    const Exchange<T> all(value);
    return own_lane() % width >= step ? all.from(own_lane() - step) : value;
}
template <class T>
T __shfl_down_sync(unsigned, T value, int step, int width = 32) {
    const Exchange<T> all(value);
    return own_lane() % width + step < width ? all.from(own_lane() + step) : value;
}
template <class T>
T __shfl_xor_sync(unsigned, T value, int mask) {
    const Exchange<T> all(value);
    return all.from(own_lane() ^ mask);
}
inline unsigned __ballot_sync(unsigned, bool wanted) {
    const Exchange<int> all(wanted);
    unsigned bits = 0;
    for (int lane = 0; lane < 32; ++lane) bits |= static_cast<unsigned>(all.from(lane)) << lane;
    return bits;
}
inline bool __any_sync(unsigned mask, bool wanted) { return __ballot_sync(mask, wanted) != 0u; }
inline bool __all_sync(unsigned mask, bool wanted) { return __ballot_sync(mask, wanted) == 0xFFFFFFFFu; }
template <class T>
unsigned __match_any_sync(unsigned, T value) {
    const Exchange<T> all(value);
    unsigned bits = 0;
    for (int lane = 0; lane < 32; ++lane) bits |= static_cast<unsigned>(all.from(lane) == value) << lane;
    return bits;
}
inline void __syncwarp(unsigned = 0xFFFFFFFFu) { exchange_bits(0); }
inline void __syncthreads() { block_meeting.wait_for(blockDim.x); }
inline int __syncthreads_or(int wanted) {
    static int any;
    __syncthreads();
    if (threadIdx.x == 0) any = 0;
    __syncthreads();
    any |= wanted;
    __syncthreads();
    return any;
}
inline void __threadfence() {}
inline unsigned long long a_second_later() {  // a clock without waiting
    static unsigned long long now = 0;
    return now += 1000000000ull;
}
inline void __nanosleep(unsigned) { let_others_run(); }

// ---- arithmetic

inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __ffs(unsigned x) { return __builtin_ffs(static_cast<int>(x)); }
inline int __clz(int x) { return x ? __builtin_clz(static_cast<unsigned>(x)) : 32; }
inline unsigned __umulhi(unsigned a, unsigned b) { return static_cast<unsigned>((uint64_t{a} * b) >> 32); }

template <class To, class From>
To same_bits(From value) {
    static_assert(sizeof(To) == sizeof(From), "");
    To result;
    memcpy(&result, &value, sizeof result);
    return result;
}
inline unsigned __float_as_uint(float x) { return same_bits<unsigned>(x); }
inline int __float_as_int(float x) { return same_bits<int>(x); }
inline float __uint_as_float(unsigned x) { return same_bits<float>(x); }
inline float __int_as_float(int x) { return same_bits<float>(x); }
inline long long __double_as_longlong(double x) { return same_bits<long long>(x); }
inline double __longlong_as_double(long long x) { return same_bits<double>(x); }

inline double __dmul_rn(double a, double b) { return a * b; }
inline double __dadd_rn(double a, double b) { return a + b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fsqrt_rn(float x) { return sqrtf(x); }
inline int __float2int_rn(float x) { return static_cast<int>(nearbyintf(x)); }
inline float __fdividef(float a, float b) { return a / b; }
inline float log2_of(float x) { return log2f(x); }
#define __log2f log2_of  // the host's library has a function of that name
inline long long __double2ll_rn(double x) { return llrint(x); }
inline float __double2float_ru(double x) {
    const float nearest = static_cast<float>(x);
    return nearest < x ? nextafterf(nearest, INFINITY) : nearest;
}
inline float __fmaf_ru(float a, float b, float c) { return __double2float_ru(static_cast<double>(a) * b + c); }
template <class T> T __ldcs(const T* place) { return *place; }
template <class T> T __ldg(const T* place) { return *place; }

// ---- atomics: one fiber runs at a time

template <class T, class U> T atomicAdd(T* place, U value) { const T old = *place; *place = old + static_cast<T>(value); return old; }
template <class T, class U> T atomicOr(T* place, U value) { const T old = *place; *place = old | static_cast<T>(value); return old; }
template <class T, class U> T atomicAnd(T* place, U value) { const T old = *place; *place = old & static_cast<T>(value); return old; }
template <class T, class U> T atomicMin(T* place, U value) { const T old = *place; *place = std::min(old, static_cast<T>(value)); return old; }
template <class T, class U> T atomicMax(T* place, U value) { const T old = *place; *place = std::max(old, static_cast<T>(value)); return old; }
template <class T, class U> T atomicExch(T* place, U value) { const T old = *place; *place = static_cast<T>(value); return old; }
template <class T, class U, class V> T atomicCAS(T* place, U expected, V value) {
    const T old = *place;
    if (old == static_cast<T>(expected)) *place = static_cast<T>(value);
    return old;
}

// ---- launches

constexpr size_t SHARED_BYTES = 232448;
alignas(1024) static uint4 dynamic_shared[SHARED_BYTES / sizeof(uint4)];

static void (*enter_kernel)(const char*);
static const char* kernel_arguments;

inline void enter_fiber() {
    for (;;) {  // one thread of a block after the other, of this launch and the next
        let_others_run();
        if (!_setjmp(fibers[threadIdx.x].end)) enter_kernel(kernel_arguments);
        fibers[threadIdx.x].done = true;
    }
}

inline void leave_kernel() { _longjmp(fibers[threadIdx.x].end, 1); }

inline void resume(Fiber& fiber) {
    if (!_setjmp(host)) _longjmp(fiber.here, 1);
}

inline void make_fibers(unsigned threads) {
    constexpr size_t STACK = 128 << 10;
    ucontext_t start;
    for (unsigned t = fibers.size(); t < threads; ++t) {
        fibers.emplace_back();
        fibers[t].stack = static_cast<char*>(malloc(STACK));
        getcontext(&start);
        start.uc_stack.ss_sp = fibers[t].stack;
        start.uc_stack.ss_size = STACK;
        start.uc_link = nullptr;
        makecontext(&start, enter_fiber, 0);
        threadIdx.x = t;
        if (!_setjmp(host)) setcontext(&start);
    }
}

// Arguments lie in a buffer as Python's struct packs them, each at a multiple of its alignment.
template <class T>
T take(const char* arguments, size_t& offset) {
    offset = (offset + alignof(T) - 1) / alignof(T) * alignof(T);
    T value;
    memcpy(&value, arguments + offset, sizeof value);
    offset += sizeof value;
    return value;
}
template <class... Parameters>
void apply_packed(void (*kernel)(Parameters...), const char* arguments) {
    size_t offset = 0;
    std::tuple<Parameters...> values{take<Parameters>(arguments, offset)...};
    std::apply(kernel, values);
}

// Returns 0, or 1 when the threads of a block wait for each other for ever.
inline int launch(void (*entry)(const char*), unsigned blocks, unsigned threads, const char* arguments) {
    enter_kernel = entry;
    kernel_arguments = arguments;
    gridDim.x = blocks;
    blockDim.x = threads;
    make_fibers(threads);
    for (unsigned block = 0; block < blocks; ++block) {
        blockIdx.x = block;
        memset(dynamic_shared, 0xA5, sizeof dynamic_shared);
        block_meeting = Meeting();
        for (Meeting& meeting : warp_meetings) meeting = Meeting();
        for (unsigned t = 0; t < threads; ++t) fibers[t].done = false;
        unsigned left = threads, quiet = 0;
        while (left > 0) {
            const unsigned before = progress + left;
            for (unsigned t = 0; t < threads; ++t) {
                if (fibers[t].done) continue;
                threadIdx.x = t;
                resume(fibers[t]);
                if (fibers[t].done) {
                    --left;
                    ++progress;
                }
            }
            quiet = progress + left == before ? quiet + 1 : 0;
            if (quiet > 1000) {
                for (Fiber& fiber : fibers) free(fiber.stack);  // they wait amid a kernel
                fibers.clear();
                return 1;
            }
        }
    }
    return 0;
}
