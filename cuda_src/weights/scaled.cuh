// Weights of rows that are scaled up, for the selection rules.
#pragma once

// Largest weight of a row. Far above 1, so that a weight 10^-60 of it still is a float.
constexpr float LARGEST_WEIGHT = 0x1p96f;
