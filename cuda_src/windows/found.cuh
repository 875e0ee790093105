// What a window hands to the commit.
#pragma once

// An exchange: ``edges`` edges out and as many in, from number ``first`` on in the lists of all; no edges: nothing found.
struct __align__(16) Found {
    double gain;  // exact, by the instance's own metric
    int edges, first;
};
