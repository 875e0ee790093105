// One entry of an alias table: entry j is city j with probability `keep`, else city `other`.
#pragma once

struct Alias {
    float keep;
    int other;
};
