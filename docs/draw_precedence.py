"""Draw docs/images/precedence.svg: a tour of pick-ups and deliveries, with and without precedence."""

from __future__ import annotations

from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from pymoo.optimize import minimize

from pymoo_gpuaco import TSP, GPUMemetic

IMAGE = Path(__file__).resolve().parent / "images" / "precedence.svg"
ORDERS = 7


def draw(path: Path) -> None:
    """Draw both tours of one depot and some orders, each an arrow from pick-up to delivery."""
    rng = np.random.default_rng(8)
    places = np.vstack([[0.5, 0.5], rng.random((2 * ORDERS, 2))])
    pairs = [(1 + 2 * order, 2 + 2 * order) for order in range(ORDERS)]
    with matplotlib.rc_context({"svg.hashsalt": "pymoo_gpuaco", "svg.fonttype": "none"}):
        figure = Figure(figsize=(7.2, 3.7), layout="constrained")
        for axes, precedence in zip(figure.subplots(1, 2), (None, pairs), strict=True):
            problem = TSP(places, start=0, precedence=precedence)
            res = minimize(problem, GPUMemetic(backend="cpu"), ("n_gen", 20), seed=1)
            tour = problem.from_home(res.X)
            x, y = places[np.append(tour, tour[0])].T
            axes.plot(x, y, "-", color="#4c78a8", zorder=1)
            broken = TSP(places, start=0, precedence=pairs).violations(tour[None])[0]
            for number, (pick_up, delivery) in enumerate(pairs):
                axes.plot(*places[pick_up], "o", color="#e45756", markersize=12, zorder=2)
                axes.plot(*places[delivery], "s", color="#54a24b", markersize=11, zorder=2)
                for place in (pick_up, delivery):
                    letter = "ABCDEFG"[number]
                    axes.text(*places[place], letter, color="white", ha="center", va="center", fontsize=8)
            axes.plot(*places[0], "*", color="black", markersize=15, zorder=3)
            for k in range(len(tour)):
                middle = (places[tour[k]] + places[tour[(k + 1) % len(tour)]]) / 2
                step = places[tour[(k + 1) % len(tour)]] - places[tour[k]]
                axes.annotate(
                    "",
                    middle + 0.02 * step / np.hypot(*step),
                    middle,
                    arrowprops={"arrowstyle": "->", "color": "#4c78a8"},
                )
            title = "with precedence" if precedence else "without precedence"
            axes.set(title=f"{title}: length {res.F[0]:.2f}, {broken} of {ORDERS} orders broken")
            axes.title.set_fontsize(9)
            axes.set_aspect("equal")
            axes.set_axis_off()
        figure.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    draw(IMAGE)
    print(f"written: {IMAGE}")
