"""Numbers shared by all engines of ant colonies: heuristic values, trail updates and limits, deposits, mutation."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.runtime.state import State, stored_integers

_TINY = float(np.finfo(np.float32).tiny)
# Trails in units of 1 / C_g are about 1. Above this limit, tau^20 would not fit a double.
HIGHEST_TRAIL = 1e15
# Minimum trail after a mutation, as a share of the mean trail of the best tour: every edge remains possible.
LEAST_MUTATED = 1e-6
# Kinds of pheromone memory in exported states and compiled functions.
DENSE, CANDIDATE, SELECTIVE = 0, 1, 2
MEMORY_CODES = {"dense": DENSE, "candidate": CANDIDATE, "selective": SELECTIVE}


def eta_power(
    distances: NDArray[np.float64], near: NDArray[np.float64] | float, shortest: float, beta: float
) -> NDArray[np.float64]:
    """Return eta^beta of distances (n, ..), with eta = near / distance.

    ``near``, (n, 1) or a number, scales each row, which changes no choice. If it is about as long as the distances, no
    value over- or underflows for any unit of distance and beta in [0, 20]. ``shortest`` > 0 replaces shorter distances,
    see ``ListedInstance.least_distance``.
    """
    # overflow: only on the diagonal, which no ant reads; underflow: cities too far away to be drawn
    with np.errstate(over="ignore", under="ignore"):
        return np.asarray((near / np.maximum(distances, shortest)) ** beta)


def relative_eta_power(distances: NDArray[np.float64], shortest: float, beta: float) -> NDArray[np.float64]:
    """Return eta^beta of candidate distances (n, k), in any order, relative to the largest value of each row."""
    near = np.maximum(distances.min(axis=1, keepdims=True), shortest)
    near[np.isinf(near)] = 1.0  # no candidate with eta > 0
    return eta_power(distances, near, shortest, beta)


@dataclass(frozen=True)
class TrailUpdate:
    """One pheromone update of an engine.

    First all trails evaporate: tau <- (1 - rho) tau. Then tours deposit on their edges; a negative amount removes
    trail:

    - ``deposits``: (tour, amount) pairs, any number of any tours (n,);
    - ``colony_amount`` / length, by every ant of the last construction (>= 0; 0: none);
    - ``ranked[r]`` / length, by the ant of rank r of the last construction: rank 0 is the shortest, ties go to the
      lower number. Ranks beyond the last ant have no effect.

    In the last two a tour of length 0 adds or removes 1. The positive amounts of an edge are added first, limited to
    tau_max; then the negative ones, limited to tau_min. The order of tours affects only rounding. Trails are within
    [tau_min, tau_max], and tau_min >= 0.

    With ``on_tours_only`` (ACS) only the edges of ``deposits`` change, tau <- (1 - rho) tau + rho amount, one tour
    after another; these amounts are >= 0, and there are no others.

    Raises ValueError for numbers outside these ranges.
    """

    rho: float  # in [0, 1]
    deposits: tuple[tuple[NDArray[np.int32], float], ...] = ()
    colony_amount: float = 0.0
    on_tours_only: bool = False
    tau_min: float = 0.0
    tau_max: float = float("inf")
    ranked: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        """Validate; NaN fails every comparison."""
        if not 0.0 <= self.rho <= 1.0:
            raise ValueError(f"rho must be in [0, 1], got {self.rho}")
        if not 0.0 <= self.tau_min <= self.tau_max:
            raise ValueError(f"0 <= tau_min <= tau_max must hold, got {self.tau_min} and {self.tau_max}")
        if not 0.0 <= self.colony_amount < math.inf:
            raise ValueError(f"colony_amount must be in [0, inf), got {self.colony_amount}")
        amounts = (*self.ranked, *(amount for _, amount in self.deposits))
        if not all(map(math.isfinite, amounts)):
            raise ValueError(f"amounts must be finite, got {amounts}")
        if self.on_tours_only and (self.colony_amount or self.ranked or min(amounts, default=0.0) < 0.0):
            raise ValueError("on_tours_only allows only deposits of amounts >= 0")

    def written_out(self, tours: NDArray[np.int32], lengths: NDArray[np.float64]) -> TrailUpdate:
        """Return the update with all amounts in ``deposits``, for ``tours`` (m, n) of ``lengths`` (m,)."""
        ants: list[tuple[int, float]] = []
        if self.colony_amount:
            ants += [
                (ant, per_length(self.colony_amount, length)) for ant, length in enumerate(lengths.tolist())
            ]
        ants += self.by_ant(lengths)
        deposits = (*self.deposits, *((tours[ant], amount) for ant, amount in ants))
        return replace(self, deposits=deposits, colony_amount=0.0, ranked=())

    def by_ant(self, lengths: NDArray[np.float64]) -> list[tuple[int, float]]:
        """Return the nonzero amounts of ``ranked`` as (ant, amount), for ants of these lengths (m,)."""
        if not self.ranked:
            return []
        order = np.argsort(lengths, kind="stable")
        return [
            (int(ant), per_length(float(share), float(lengths[ant])))
            for ant, share in zip(order, self.ranked, strict=False)
            if share
        ]


def per_length(share: float, length: float) -> float:
    """Return the deposit of an ant: share / length, or the sign of share for a tour of length 0."""
    if length <= 0.0:
        return math.copysign(1.0, share)
    return max(-HIGHEST_TRAIL, min(share / length, HIGHEST_TRAIL))


def edges_apart(tour: NDArray[np.int32], other: NDArray[np.int32], symmetric: bool) -> NDArray[np.int32]:
    """Return the edges (e, 2) of a tour (n,) that are not in the other tour, in either direction if symmetric."""
    n = len(tour)
    follows = np.empty(n, np.int32)
    follows[other] = np.roll(other, -1)
    a, b = tour, np.roll(tour, -1)
    shared = follows[a] == b
    if symmetric:
        shared |= follows[b] == a
    return np.stack([a, b], axis=1)[~shared].astype(np.int32)


def trail_limits(
    best_length: float, n: int, choices: float, rho: float, p_best: float
) -> tuple[float, float]:
    """Return (tau_min, tau_max) of MMAS for a best tour of ``best_length`` through n cities.

    tau_max = 1 / (rho L) (Eq. (7)) and tau_min = tau_max (1 - p) / ((c - 1) p) with p = p_best^(1/n) (Eq. (11)),
    Stuetzle and Hoos, "MAX-MIN Ant System", FGCS 16 (2000). c is the mean number of cities an ant chooses from: half of
    ``choices`` (n without candidate lists, else their length), at least 2. tau_max is at most ``HIGHEST_TRAIL``. p_best
    in (0, 1) is the probability that an ant builds the best tour after the trails have converged.
    """
    tau_max = 1.0 / max(rho * max(best_length, _TINY), 1.0 / HIGHEST_TRAIL)
    p = p_best ** (1.0 / n)
    tau_min = tau_max * (1.0 - p) / ((max(choices / 2.0, 2.0) - 1.0) * p)
    return min(tau_min, tau_max), tau_max


def best_so_far_deposits(iteration: int, rule: str | int = "schedule") -> bool:
    """Return True if the best tour since the last restart deposits, instead of the best of the iteration.

    ``iteration`` counts from the restart. By the "schedule" the best tour deposits in the last of the first 25
    iterations, then in every 5th up to 75, 3rd up to 125, 2nd up to 250, and in all others (Stuetzle and Hoos 2000,
    MMAS with local search); by a number k in every k-th, and by "iteration_best" never.
    """
    if isinstance(rule, str):
        if rule != "schedule":
            return False
        steps = ((25, 25), (75, 5), (125, 3), (250, 2))
        rule = next((period for end, period in steps if iteration < end), 1)
    return iteration % rule == rule - 1


def draw_mutations(
    key: int, probability: float, n: int, neighbours: NDArray[np.int32] | None, symmetric: bool
) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """Draw edges (e, 2) and signs (e,), +1 or -1, of the trail mutation of Cordon et al. (2000).

    Every city mutates one of its edges with ``probability``: to any other city, or to one of its ``neighbours`` (n, k)
    if only candidate edges have trails. ``key`` in [0, 2**64) determines the result. Edges are unique; in a symmetric
    instance an edge drawn at both ends counts once.
    """
    random = np.random.Generator(np.random.Philox(key=key))
    mutates = np.flatnonzero(random.random(n) < probability)
    width = n - 1 if neighbours is None else neighbours.shape[1]
    slots = random.integers(0, width, n)[mutates]
    signs = random.choice([-1.0, 1.0], n)[mutates]
    # n - 1 other cities: numbers from the city's own number on are shifted by one
    ends = slots + (slots >= mutates) if neighbours is None else neighbours[mutates, slots]
    edges = np.stack([mutates, ends], axis=1)
    from_city, to_city = (np.sort(edges, axis=1) if symmetric else edges).astype(np.int64).T
    # unique numbers of edges, which is faster than unique rows
    _, first = np.unique(from_city * n + to_city, return_index=True)
    first.sort()
    return edges[first].astype(np.int32), signs[first]


def branching_factor(trails: NDArray[np.float32], lam: float = 0.05) -> float:
    """Return the lambda-branching factor: the mean number of candidates with a trail above min + lam (max - min).

    ``trails`` (n, k); min and max are those of the city. Source: Gambardella and Dorigo, "Ant-Q", ICML 1995; Stuetzle
    and Hoos (2000) detect stagnation by it.
    """
    low, high = trails.min(axis=1), trails.max(axis=1)
    cut = low + np.float32(lam) * (high - low)
    return float((trails > cut[:, None]).sum() / len(trails))


def check_memory(state: State, code: int) -> None:
    """Raise ValueError for a state whose trails are of another kind of memory than ``code``."""
    names = list(MEMORY_CODES)
    stored_code = int(stored_integers(state, "memory", (1,), 0, len(names) - 1)[0])
    if stored_code != code:
        raise ValueError(
            f"state['memory'] must be {code} ({names[code]}), got {stored_code} ({names[stored_code]}): "
            "it belongs to a colony with another pheromone memory"
        )


def candidate_trails(state: State, neighbours: NDArray[np.int32]) -> NDArray[np.float32]:
    """Return the trails (n, k) of the candidate edges from an exported state, for any pheromone memory."""
    tau, ids, memory = state["tau"], state["ids"], state["memory"][0]
    if memory == DENSE:
        return np.take_along_axis(tau, neighbours.astype(np.intp), axis=1)
    if memory == CANDIDATE:
        return tau
    trails = np.full(neighbours.shape, state["rest"][0], np.float32)
    for slot in range(ids.shape[1]):
        held = neighbours == ids[:, slot, None]
        trails[held] = np.broadcast_to(tau[:, slot, None], neighbours.shape)[held]
    return trails


def all_trails(state: State, neighbours: NDArray[np.int32]) -> NDArray[np.float32]:
    """Return the trails (n, n) of all edges from an exported state, for any pheromone memory; the diagonal is 0."""
    tau, memory = state["tau"], state["memory"][0]
    if memory == DENSE:
        trails = tau.astype(np.float32)
    else:
        trails = np.full((len(tau), len(tau)), state["rest"][0], np.float32)
        ends = neighbours if memory == CANDIDATE else state["ids"]
        row, slot = np.nonzero(ends >= 0)
        trails[row, ends[row, slot]] = tau[row, slot]
    np.fill_diagonal(trails, 0.0)
    return trails


def replacements(own: NDArray[np.float64], given: NDArray[np.float64]) -> list[tuple[int, int]]:
    """Return (ant, row) pairs: each row of ``given`` in turn replaces the longest tour if it is shorter.

    ``own`` (m,) and ``given`` (e,) are the lengths of the ants and of the immigrants. A later row replaces an earlier
    one only if it is shorter. Of equally long tours, that of the lowest ant is replaced.
    """
    lengths = own.copy()
    taken: dict[int, int] = {}
    for row, length in enumerate(given):
        longest = int(lengths.argmax())
        if length < lengths[longest]:
            lengths[longest], taken[longest] = length, row
    return list(taken.items())
