"""Trail limits and deposit schedule: pure numbers, shared by all engines."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_TINY = float(np.finfo(np.float32).tiny)


@dataclass(frozen=True)
class TrailUpdate:
    """One pheromone update, as an engine carries it out.

    First all trails evaporate: tau <- (1 - rho) tau (not if ``on_tours_only``). Then every (tour, amount) of
    ``deposits`` adds ``amount`` to its edges, and every ant of the last construction adds ``colony_amount`` / its
    length (0: none does; tours of length 0 add 1). Trails stay within [tau_min, tau_max] throughout.
    With ``on_tours_only`` (ACS) the edges of the tours alone change: tau <- (1 - rho) tau + rho amount.
    """

    rho: float
    deposits: tuple[tuple[NDArray[np.int32], float], ...] = ()
    colony_amount: float = 0.0
    on_tours_only: bool = False
    tau_min: float = 0.0
    tau_max: float = float("inf")


def trail_limits(
    best_length: float, n: int, choices: float, rho: float, p_best: float
) -> tuple[float, float]:
    """Return (tau_min, tau_max) of MMAS for a best tour of ``best_length`` through n cities.

    tau_max = 1 / (rho L) (Eq. (7)) and tau_min = tau_max (1 - p) / ((c - 1) p) with p = p_best^(1/n) (Eq. (11)),
    Stuetzle and Hoos, "MAX-MIN Ant System", FGCS 16 (2000). c is the mean number of cities an ant chooses
    from: half of ``choices`` (n over all cities; the candidate list's length where there is one), at least 2.
    p_best in (0, 1) is the probability that ants build the best tour again once the trails have converged.
    """
    tau_max = 1.0 / (rho * max(best_length, _TINY))
    p = p_best ** (1.0 / n)
    tau_min = tau_max * (1.0 - p) / ((max(choices / 2.0, 2.0) - 1.0) * p)
    return min(tau_min, tau_max), tau_max


def best_so_far_deposits(iteration: int) -> bool:
    """Whether the best tour since the last restart deposits, instead of the iteration's best.

    ``iteration`` counts from the restart: every 25th of the first 25 iterations, then every 5th up to 75, every
    3rd up to 125, every 2nd up to 250, and always after that (Stuetzle and Hoos 2000, MMAS with
    local search).
    """
    for until, period in ((25, 25), (75, 5), (125, 3), (250, 2)):
        if iteration < until:
            return iteration % period == period - 1
    return True


def candidate_trails(state: dict[str, NDArray], neighbours: NDArray[np.int32]) -> NDArray[np.float32]:
    """Trails (n, k) of the candidate edges, from an engine's exported state, whatever its memory."""
    tau, ids = state["tau"], state["ids"]
    if tau.shape[1] == tau.shape[0]:
        return np.take_along_axis(tau, neighbours.astype(np.intp), axis=1)
    if ids.size == 0:
        return tau
    trails = np.full(neighbours.shape, state["rest"][0], np.float32)
    for slot in range(ids.shape[1]):
        held = neighbours == ids[:, slot, None]
        trails[held] = np.broadcast_to(tau[:, slot, None], neighbours.shape)[held]
    return trails
