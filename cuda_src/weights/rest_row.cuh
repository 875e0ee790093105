// What a walk over all cities knows of a city beyond its row (weights.cu, rest.cuh).
#pragma once

struct Rest {
    float share;  // of the spare edges in the sum of spare and rest
    int spares;   // how many they are
    float bound;  // of the rest's trails
    int even;     // 1: all edges that are no candidates have a trail of `bound`
};
#ifdef REST_BYTES
static_assert(sizeof(Rest) == REST_BYTES, "the host allocates another size for Rest");
#endif

struct Spare {
    float chance;  // weight / largest weight of the spare edges
    int city;
};
#ifdef SPARE_BYTES
static_assert(sizeof(Spare) == SPARE_BYTES, "the host allocates another size for Spare");
#endif
