// The interface between search and commit.
#pragma once

// An exchange of a window: ``edges`` removed and as many added; 0: nothing found.
struct __align__(8) WindowExchange {
    float rank;  // exchanges of higher rank are applied first
    short edges;
    short local;  // 1: cities outside the window keep their order and direction, so it conflicts with few others
};
static_assert(sizeof(WindowExchange) == 8, "the host allocates another size for WindowExchange");
