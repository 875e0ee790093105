// How many neighbours of each city windows know.
#pragma once

constexpr int NEAR = 8;
