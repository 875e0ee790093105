"""Trials per step of Ant System (Fig. 8 of Uchida et al. 2012), and choices of a tournament against the exact rule.

    python benchmarks/gpu_ant_system_trials.py FOLDER

FOLDER contains pr1002.tsp. A trial finds an open city with a probability p that depends on the tour so far; the number
of trials is geometric. The histogram is the mean of these distributions over all steps of 100 tours.
"""

from __future__ import annotations

import numpy as np
from gpu_ant_system import ITERATIONS, SETTING, colony
from harness import Table, parser_for
from kernel_clock import iterations

from pymoo_gpuaco import load_tsp

NAME, ANTS = "pr1002", 100
SHARES = (0.85, 0.9, 0.95, 0.99)  # shares of visited cities at which choices are compared
COUNTS = (*range(1, 17), 24, 32, 48, 64, 128, 256, 512, 1024, 2048)
SIZES = (4, 8, 16)
DRAWS = 4000


def add_choices(
    table: Table,
    weights: np.ndarray,
    distances: np.ndarray,
    here: np.ndarray,
    is_open: np.ndarray,
    share: float,
) -> None:
    """Compare the exact rule and tournaments, from cities ``here`` (m,) to open ones (m, n)."""
    rng = np.random.default_rng(0)
    exact: list[tuple[float, float]] = []
    by_size: dict[int, list[tuple[float, float]]] = {size: [] for size in SIZES}
    for i, row in zip(here, is_open, strict=True):
        cities = np.flatnonzero(row)
        w, d = weights[i, cities], distances[i, cities]
        heaviest = int(w.argmax())
        exact.append((w[heaviest] / w.sum(), w @ d / w.sum()))
        for size in SIZES:
            drawn = rng.integers(0, len(cities), (DRAWS, size))
            p = w[drawn] / w[drawn].sum(axis=1, keepdims=True)
            by_size[size].append((p[drawn == heaviest].sum() / DRAWS, (p * d[drawn]).sum() / DRAWS))
    chance, edge = np.mean(exact, axis=0)
    for size in SIZES:
        theirs, long = np.mean(by_size[size], axis=0)
        table.add(100 * share, size, 100 * chance, 100 * theirs, edge, long)


def main() -> None:
    arguments = parser_for(__doc__).parse_args()
    where = f"{NAME} after {ITERATIONS} iterations"
    trials = Table(
        "gpu_as_trials",
        f"Stochastic trials until the next city is found, {where}",
        "trials | steps that need exactly that number, %:3 | steps that need no more, %:2",
        SETTING | {"tours": ANTS},
        ["Expected values for the given tours: the number of trials of a step is geometric."],
    )
    choices = Table(
        "gpu_as_tournament",
        f"What a tournament chooses beside the exact rule, {where}",
        "visited, %:0 | tournament size | heaviest open city, exact, %:1 | heaviest open city, tournament, %:1 | "
        "mean edge, exact:1 | mean edge, tournament:1",
        SETTING | {"situations": ANTS},
        [f"Both rules in the same situations; expected values, for tournaments the mean of {DRAWS} draws."],
    )
    problem = load_tsp(arguments.folder / f"{NAME}.tsp")
    algorithm = colony(problem, "hybrid")
    for _ in iterations(algorithm, ITERATIONS, seed=1):
        pass
    n = problem.n_cities
    tau = algorithm.engine.export_state()["tau"].astype(float)
    weights = tau * np.maximum(problem.D + np.eye(n), 0.5) ** -2.0
    np.fill_diagonal(weights, 0.0)
    algorithm.engine.construct(99)
    tours = algorithm.engine.tours(range(ANTS))
    chances, is_open = [], np.ones((ANTS, n), bool)
    shares = {round(share * n): share for share in SHARES}
    for step in range(1, n):
        here = tours[:, step - 1]
        is_open[np.arange(ANTS), here] = False
        rows = weights[here]
        chances.append((rows * is_open).sum(axis=1) / rows.sum(axis=1))
        if step in shares:
            add_choices(choices, weights, problem.D, here, is_open, shares[step])
    p = np.concatenate(chances)
    for count in COUNTS:
        exactly, no_more = np.mean(p * (1 - p) ** (count - 1)), 1 - np.mean((1 - p) ** count)
        trials.add(count, 100 * exactly, 100 * no_more)
    trials.write()
    choices.write()


if __name__ == "__main__":
    main()
