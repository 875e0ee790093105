"""Draw the figures of the Ant System page into docs/images: ``python docs/draw_ant_system.py``.

selection_rules.svg    how each rule draws the next city, on one row of weights
trials.svg             trials until the next city is found, from benchmarks/results/gpu_as_trials.json
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

ROOT = Path(__file__).resolve().parents[1]
TRIALS = ROOT / "benchmarks" / "results" / "gpu_as_trials.json"

WEIGHTS = (5.0, 2.0, 7.0, 1.5, 4.0, 1.0, 3.0, 2.5)
VISITED = (0, 2, 6)
OPEN = tuple(j for j in range(len(WEIGHTS)) if j not in VISITED)
INVITED = (3, 5, 7)  # of a tournament
OPEN_COLOUR, VISITED_COLOUR, DRAWN_COLOUR = "#4c78a8", "#d0d0d0", "#e45756"


def row_of_boxes(axes: Any, cities: tuple[int, ...], widths: list[float], spins: list[float]) -> None:
    """Cities side by side, each as wide as it weighs, and the points that were drawn."""
    left = 0.0
    for city, width in zip(cities, widths, strict=True):
        colour = VISITED_COLOUR if city in VISITED else OPEN_COLOUR
        axes.barh(0.0, width, left=left, height=0.6, color=colour, edgecolor="white")
        axes.text(left + width / 2, 0.0, str(city), ha="center", va="center", fontsize=8)
        left += width
    for number, spin in enumerate(spins):
        last = number == len(spins) - 1
        axes.annotate(
            str(number + 1) if len(spins) > 1 else "",
            (spin * left, 0.32),
            (spin * left, 0.95),
            ha="center",
            fontsize=8,
            arrowprops={"arrowstyle": "->", "color": DRAWN_COLOUR if last else "#888888"},
        )


def draw_rules(path: Path) -> None:
    """Five panels, one row of weights."""
    figure, panels = plt.subplots(5, 1, figsize=(7.0, 6.2), layout="constrained")
    titles = (
        "roulette: visited cities weigh 0, one draw",
        "compressed: a list of the open cities, one draw",
        "stochastic trial: sums over all cities, made once; a visited city is drawn again",
        "acceptance: a city and a height at random until the height is below the weight",
        "tournament: a few open cities at random, one draw among them",
    )
    everyone = tuple(range(len(WEIGHTS)))
    row_of_boxes(panels[0], everyone, [0.12 if j in VISITED else WEIGHTS[j] for j in everyone], [0.42])
    row_of_boxes(panels[1], OPEN, [WEIGHTS[j] for j in OPEN], [0.42])
    row_of_boxes(panels[2], everyone, list(WEIGHTS), [0.1, 0.45, 0.66])
    axes = panels[3]
    axes.bar(
        everyone,
        WEIGHTS,
        width=0.9,
        color=[VISITED_COLOUR if j in VISITED else OPEN_COLOUR for j in everyone],
    )
    axes.hlines(max(WEIGHTS), -0.5, len(WEIGHTS) - 0.5, colors="#888888", linestyles="dotted", linewidth=1)
    for number, (city, height) in enumerate(((2, 3.0), (5, 4.5), (7, 5.5), (4, 2.2))):
        last = number == 3
        axes.plot(city, height, marker="o", color=DRAWN_COLOUR if last else "#888888")
        axes.text(city + 0.14, height, str(number + 1), fontsize=8, va="center")
    for city in everyone:
        axes.text(city, 0.15, str(city), ha="center", fontsize=8)
    row_of_boxes(panels[4], INVITED, [WEIGHTS[j] for j in INVITED], [0.75])
    for panel, title in zip(panels, titles, strict=True):
        panel.set_title(title, fontsize=9, loc="left")
        panel.axis("off")
        if panel is not panels[3]:
            panel.set_ylim(-0.35, 1.2)
            panel.set_xlim(0.0, sum(WEIGHTS))
    save(figure, path)


def draw_trials(path: Path, result: dict[str, Any]) -> None:
    """Fig. 8, paper 000: how many steps need so many trials, and how many no more."""
    counts, exactly, upto = zip(*result["rows"], strict=True)
    figure, axes = plt.subplots(figsize=(7.0, 3.2), layout="constrained")
    few = [n for n, count in enumerate(counts) if count <= 32]
    axes.bar([counts[n] for n in few], [exactly[n] for n in few], color=OPEN_COLOUR, label="exactly so many")
    axes.plot(counts, upto, color=DRAWN_COLOUR, marker=".", label="no more")
    axes.axvline(8, color="#888888", linestyle="dotted", linewidth=1)
    axes.set_xscale("log", base=2)
    axes.set_xticks((1, 2, 4, 8, 16, 32, 128, 512, 2048))
    axes.xaxis.set_major_formatter(matplotlib.ticker.ScalarFormatter())
    axes.set_xlabel("trials")
    axes.set_ylabel("steps, %")
    axes.set_ylim(0.0, 100.0)
    axes.legend(loc="center right")
    save(figure, path)


def save(figure: Any, path: Path) -> None:
    """Write text as text and no date, so that the same data give the same file."""
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "pymoo_gpuaco"}):
        figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def main() -> None:
    """Draw both."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--folder", type=Path, default=ROOT / "docs" / "images")
    folder = parser.parse_args().folder
    draw_rules(folder / "selection_rules.svg")
    draw_trials(folder / "trials.svg", json.loads(TRIALS.read_text(encoding="utf-8")))


if __name__ == "__main__":
    main()
