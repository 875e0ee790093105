"""How many trials a step of Ant System needs, and what a tournament chooses beside the exact rule."""

from __future__ import annotations

from typing import Any

import numpy as np
from ant_system_runs import ITERATIONS, SETTING, colony, iterate, keys
from record import write

from pymoo_gpuaco.problems.tsp import TSP


def measure_trials(problem: TSP, name: str, ants: int = 100) -> None:
    """Fig. 8, paper 000: trials until the next city is found; and what a tournament chooses late in a tour.

    A trial finds an open city with a probability p that the tour so far settles, and the number of trials is geometric:
    the histogram is the mean of those distributions over all steps of ``ants`` tours.
    """
    algorithm = colony(problem, "hybrid")
    for key in keys(1, ITERATIONS):
        iterate(algorithm, key)
    n = problem.n_cities
    tau = algorithm.engine.export_state()["tau"].astype(float)
    weights = tau * np.maximum(problem.D + np.eye(n), 0.5) ** -2.0
    np.fill_diagonal(weights, 0.0)
    algorithm.engine.construct(99)
    tours = algorithm.engine.tours(range(ants))
    chances, late = [], []
    is_open = np.ones((ants, n), bool)
    everyone = np.arange(ants)
    shares = {round(share * n): share for share in (0.85, 0.9, 0.95, 0.99)}
    for step in range(1, n):
        here = tours[:, step - 1]
        is_open[everyone, here] = False
        rows = weights[here]
        chances.append((rows * is_open).sum(axis=1) / rows.sum(axis=1))
        if step in shares:
            late += tournaments(weights, problem.D, here, is_open, shares[step])
    p = np.concatenate(chances)
    rows = []
    for count in (*range(1, 17), 24, 32, 48, 64, 128, 256, 512, 1024, 2048):
        exactly = float(np.mean(p * (1 - p) ** (count - 1)))
        rows.append([count, round(100 * exactly, 3), round(100 * (1 - float(np.mean((1 - p) ** count))), 2)])
    print(rows[:8], late, flush=True)
    where = f"{name} after {ITERATIONS} iterations"
    write(
        "gpu_as_trials",
        f"Stochastic trials until the next city is found, {where}",
        ("trials", "steps that need exactly so many, %", "steps that need no more, %"),
        rows,
        SETTING | {"tours": ants},
        ["Expected values, given the tours: the number of trials of a step is geometric."],
    )
    write(
        "gpu_as_tournament",
        f"What a tournament chooses beside the exact rule, {where}",
        (
            "visited, %",
            "tournament size",
            "heaviest open city, exact, %",
            "heaviest open city, tournament, %",
            "mean edge, exact",
            "mean edge, tournament",
        ),
        late,
        SETTING | {"situations": ants},
        [
            "Both rules in the same situations; expected values, those of a tournament over 4000 draws of each."
        ],
    )


def tournaments(
    weights: np.ndarray, distances: np.ndarray, here: np.ndarray, is_open: np.ndarray, share: float
) -> list[list[Any]]:
    """Rows of the table: exact rule and tournaments from cities ``here`` (m,) to open ones (m, n)."""
    rng = np.random.default_rng(0)
    sizes = (4, 8, 16)
    exact, by_size = [], {size: [] for size in sizes}
    for i, some in zip(here, is_open, strict=True):
        cities = np.flatnonzero(some)
        w, d = weights[i, cities], distances[i, cities]
        heaviest = int(w.argmax())
        exact.append((w[heaviest] / w.sum(), w @ d / w.sum()))
        for size in sizes:
            drawn = rng.integers(0, len(cities), (4000, size))
            p = w[drawn] / w[drawn].sum(axis=1, keepdims=True)
            by_size[size].append((p[drawn == heaviest].sum() / 4000, (p * d[drawn]).sum() / 4000))
    chance, edge = np.mean(exact, axis=0)
    rows = []
    for size in sizes:
        theirs, long = np.mean(by_size[size], axis=0)
        rows.append(
            [
                round(100 * share),
                size,
                round(100 * float(chance), 1),
                round(100 * float(theirs), 1),
                round(float(edge), 1),
                round(float(long), 1),
            ]
        )
    return rows
