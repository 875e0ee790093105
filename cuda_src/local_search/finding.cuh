// A move of the local search, and who found it: what local_search.cu shares with moves.cuh or directed.cuh, which have
//
//   can_improve(tour, a)                whether city a has an improving move; each lane may ask for a city of its own
//   look(tour, a, lane, bits)           the best move of city a in a lane's part of what there is to look at, where
//                                       2^bits cities share the lanes: part lane >> bits of 32 >> bits
//   look_again(tour, finding)           the same finding after the tour has changed
//   apply(tour, move)                   make a move that all lanes hold
#pragma once

constexpr float NOISE = 1e-6f;  // relative rounding noise of a move's gain

// A move. kind 0: none; what the others and x0, x1, x2 are, moves.cuh and directed.cuh say.
struct Move {
    float delta;
    int kind, x0, x1, x2;
};

// A move that one lane has found, by its making: city a gives up its tour neighbour b and gets c, at distance ac.
struct Finding {
    int a, b, c;
    float ac;
    Move move;

    __device__ __forceinline__ bool found() const { return move.kind != 0; }
};
