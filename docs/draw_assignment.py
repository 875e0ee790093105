"""Draw docs/images/rank_one_update.svg, the update of all changes by a swap, and docs/images/hospital.svg, a layout."""

from __future__ import annotations

from pathlib import Path

import matplotlib
import matplotlib.patches
import numpy as np
from matplotlib.figure import Figure

from pymoo_gpuaco import GPUMMASQAP, QAP, solve

IMAGES = Path(__file__).resolve().parent / "images"
STYLE = {"svg.hashsalt": "pymoo_gpuaco", "svg.fonttype": "none"}
WARDS = [
    "entrance",
    "emergency",
    "x-ray",
    "surgery",
    "intensive care",
    "ward A",
    "ward B",
    "laboratory",
    "pharmacy",
]
WARDS += ["kitchen", "laundry", "office"]
# patients and staff a day, both directions
TRIPS = {
    (0, 1): 40, (0, 5): 25, (0, 6): 25, (0, 11): 30, (1, 2): 35, (1, 3): 12, (1, 7): 30, (2, 3): 10, (2, 5): 8,
    (3, 4): 15, (4, 5): 8, (4, 6): 8, (4, 7): 20, (5, 7): 18, (6, 7): 18, (5, 8): 12, (6, 8): 12, (4, 8): 10,
    (5, 9): 12, (6, 9): 12, (3, 10): 8, (5, 10): 6, (6, 10): 6, (9, 10): 3, (8, 11): 4,
}  # fmt: skip


def hospital() -> tuple[np.ndarray, np.ndarray]:
    """Return trips between wards (12, 12), and rooms in three rows (12, 2)."""
    trips = np.zeros((len(WARDS), len(WARDS)))
    for (a, b), count in TRIPS.items():
        trips[a, b] = trips[b, a] = count
    return trips, np.array([(x, y) for y in range(3) for x in range(4)], float)


def draw_hospital(path: Path) -> None:
    """Draw the wards in their order and in the best layout."""
    trips, rooms = hospital()
    walk = np.abs(rooms[:, None] - rooms).sum(axis=2)
    problem = QAP(trips, 20 * walk, positions=rooms)
    best = solve(problem, seconds=5, algorithm=GPUMMASQAP(backend="cpu"))
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(8.4, 3.4), layout="constrained")
        for axes, placement in zip(
            figure.subplots(1, 2), (np.arange(len(WARDS)), best.placement), strict=True
        ):
            for (a, b), count in TRIPS.items():
                ends = rooms[placement[[a, b]]] + [[0.0, 0.05], [0.0, 0.05]]
                axes.plot(
                    *ends.T,
                    color="#4c78a8",
                    linewidth=count / 7,
                    alpha=0.35,
                    solid_capstyle="round",
                    zorder=1,
                )
            for ward, name in enumerate(WARDS):
                x, y = rooms[placement[ward]]
                axes.text(x, y, name.replace(" ", "\n"), ha="center", va="center", fontsize=7, zorder=2,
                          bbox={"boxstyle": "round", "facecolor": "white", "edgecolor": "#e45756"})  # fmt: skip
            cost = problem.costs(placement[None])[0] / 2000
            axes.set_title(
                f"{'best layout' if placement is best.placement else 'as listed'}: {cost:.1f} km a day",
                fontsize=9,
            )
            axes.set(xlim=(-0.6, 3.6), ylim=(2.6, -0.6))
            axes.set_axis_off()
        figure.savefig(path, metadata={"Date": None})


def draw_update(path: Path) -> None:
    """Draw which parts of the matrices change when two items are swapped."""
    n, u, v = 9, 2, 6
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(8.4, 3.1), layout="constrained")
        titles = ("C += x yᵀ", "change of every swap (r, s)", "swaps of u and v")
        for k, (axes, title) in enumerate(zip(figure.subplots(1, 3), titles, strict=True)):
            colours = np.full((n, n), "#9ecae9", dtype=object)
            if k:
                colours[np.triu_indices(n)] = "white"
                rows, columns = np.indices((n, n))
                of = (rows == u) | (rows == v) | (columns == u) | (columns == v)
                colours[of & (rows > columns)] = "#e45756" if k == 2 else "#f5c1c0"
                if k == 2:
                    colours[~of & (rows > columns)] = "#f2f2f2"
            for (r, s), colour in np.ndenumerate(colours):
                if colour != "white":
                    axes.add_patch(matplotlib.patches.Rectangle((s, r), 0.92, 0.92, color=colour))
            words = (
                "item i, location l:\nx[i] y[l]",
                "one product:\n−(x[r] − x[s]) (y[p[r]] − y[p[s]])",
                "read from four entries of C",
            )
            axes.text(n / 2, n + 0.6, words[k], ha="center", va="top", fontsize=8)
            for item, letter in ((u, "u"), (v, "v")) if k else ():
                axes.text(-0.5, item + 0.5, letter, ha="center", va="center", fontsize=9)
            axes.set_title(title, fontsize=9)
            axes.set(xlim=(-1, n), ylim=(n + 2, 0), aspect="equal")
            axes.set_axis_off()
        figure.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    draw_hospital(IMAGES / "hospital.svg")
    draw_update(IMAGES / "rank_one_update.svg")
    print(f"written: {IMAGES}/hospital.svg, rank_one_update.svg")
