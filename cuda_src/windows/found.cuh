// What a window hands to the commit.
#pragma once

// An exchange: ``edges`` edges out and as many in; none: nothing found.
struct __align__(8) Found {
    float rank;  // exchanges of a higher one go first
    short edges;
    short local;  // 1: all that lies outside the window stays in its order and direction, so little can contradict it
};
#ifdef FOUND_BYTES
static_assert(sizeof(Found) == FOUND_BYTES, "the host takes memory for a Found of other bytes");
#endif
