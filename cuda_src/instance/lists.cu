// Candidate lists as the ants read them: rows padded to 32 lanes. Padded places contain the row's own city, which an
// ant there has visited.

#ifndef SLOTS
#define SLOTS 1
#endif
#ifndef NODE
#define NODE unsigned short
#endif

constexpr int STRIDE = 32 * SLOTS;

// candidates (n, STRIDE) from neighbours (n, k); one thread a place.
extern "C" __global__ void pad_candidates(const int* neighbours, int n, int k, NODE* candidates) {
    const int place = blockIdx.x * blockDim.x + threadIdx.x;
    if (place >= n * STRIDE) return;
    const int city = place / STRIDE, slot = place % STRIDE;
    candidates[place] = static_cast<NODE>(slot < k ? neighbours[static_cast<size_t>(city) * k + slot] : city);
}
