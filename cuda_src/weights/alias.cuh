// One entry of an alias table: entry j is city j with probability `keep`, else city `other`.
#pragma once

struct Alias {
    float keep;
    int other;
};
#ifdef ALIAS_BYTES
static_assert(sizeof(Alias) == ALIAS_BYTES, "the host allocates another size for Alias");
#endif
