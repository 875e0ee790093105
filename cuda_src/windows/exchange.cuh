// Interface between search and commit.
#pragma once

// Exchange of a window.
struct __align__(8) WindowExchange {
    float rank;   // exchanges of higher rank are applied first
    short edges;  // number of removed edges, and of added edges; 0: no exchange
    short local;  // 1: order and direction of the cities outside the window do not change, so conflicts are rare
};
static_assert(sizeof(WindowExchange) == 8, "the host allocates another size for WindowExchange");
