"""Compare six ant systems, published parameters beside defaults: ``colony_study.py [--quick] [FOLDER]``.

FOLDER holds the files of TSPLIB that the package does not; instances without a file are left out. Without local search,
with equal numbers of tours and in equal time. --quick takes two minutes on two cores and makes no test of significance.
"""

import argparse
import csv
import math
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from pymoo.core.callback import Callback
from scipy.stats import friedmanchisquare, rankdata, studentized_range

from pymoo_gpuaco import GPUACS, GPUAS, GPUBWAS, GPUEAS, GPUMMAS, GPURAS, load_tsp, summary
from pymoo_gpuaco.visualization import plot_pheromone

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("folder", type=Path, nargs="?", default=Path(), help="folder of TSPLIB files")
parser.add_argument("--quick", action="store_true", help="3 instances, 3 seeds, short runs")
parser.add_argument("--seeds", type=int, help="runs of each colony, default 10, quick 3")
parser.add_argument("--tours", type=int, help="of a run, default 20000, quick 3000")
parser.add_argument("--seconds", type=float, help="of a run in equal time, default 1, quick 0.3")
given = parser.parse_args()
quick = ["berlin52", "kroA100", "kroB100"]
names = quick if given.quick else [*quick, "st70", "eil76", "bier127", "ch150", "kroA200", "gil262", "a280"]
n_seeds = given.seeds or (3 if given.quick else 10)
budgets = {
    "tours": ("n_eval", given.tours or (3000 if given.quick else 20_000)),
    "time": ("time", given.seconds or (0.3 if given.quick else 1.0)),
}
systems = (GPUAS, GPUEAS, GPURAS, GPUBWAS, GPUMMAS, GPUACS)
labels = [system.__name__ for system in systems]


def colony(system, kind):
    """Return a colony without local search, whose mutations (BWAS) follow the length of the run."""
    if kind == "published":
        return system.published()
    length = {"mutation_iterations": None} if system is GPUBWAS else {}
    return system(local_search=False, **length)


class Convergence(Callback):
    """Best length after each generation, one list for each run."""

    def __init__(self):
        super().__init__()
        self.runs = []

    def notify(self, algorithm):
        if algorithm.n_iter == 1:
            self.runs.append([])
        self.runs[-1].append((algorithm.evaluator.n_eval, algorithm.opt[0].F[0]))


problems = {}
for name in names:
    file = given.folder / f"{name}.tsp"
    try:
        problems[name] = load_tsp(file if file.is_file() else name)
    except (OSError, ValueError) as error:
        print(f"without {name}: {str(error).splitlines()[0]}")

rows, medians, curves, colonies = [], {}, {}, {}
for kind in ("published", "default"):
    for budget, termination in budgets.items():
        for name, problem in problems.items():
            for system in systems:
                convergence = Convergence()
                runs = summary(
                    problem, colony(system, kind), termination, seeds=n_seeds, callback=convergence
                )
                columns = runs.as_dict()
                for row in zip(*columns.values(), strict=True):
                    which = {
                        "parameters": kind,
                        "budget": budget,
                        "instance": name,
                        "algorithm": system.__name__,
                    }
                    rows.append({**which, **dict(zip(columns, row, strict=True))})
                key = kind, budget, name, system.__name__
                medians[key] = float(np.median(runs.gaps))
                curves[key], colonies[key] = convergence.runs, runs.best.algorithm
                print(
                    f"{kind:9} equal {budget:5} {name:8} {system.__name__:8} median gap {medians[key]:.2f} %"
                )

with open("colony_study.csv", "w", newline="", encoding="utf-8") as file:
    writer = csv.DictWriter(file, rows[0])
    writer.writeheader()
    writer.writerows(rows)

# Ranks of the median gaps; an instance is a block. Friedman's test, then Nemenyi's against the best mean rank.
ranks = {}
for kind in ("published", "default"):
    for budget in budgets:
        table = np.array([[medians[kind, budget, name, label] for label in labels] for name in problems])
        ranks[kind, budget] = mean_ranks = rankdata(table.round(6), axis=1).mean(axis=0)
        print(f"\n{kind} parameters, equal {budget}: {budgets[budget][1]}, {len(table)} instances")
        print(
            "system    median gap, %  mean rank" + ("" if given.quick else "  p against the best (Nemenyi)")
        )
        distance = (mean_ranks - mean_ranks.min()) * math.sqrt(
            12 * len(table) / (len(labels) * (len(labels) + 1))
        )
        p_values = studentized_range.sf(distance, len(labels), np.inf)
        for k in mean_ranks.argsort():
            tested = "" if given.quick else f"  {p_values[k]:.2g}"
            print(f"{labels[k]:8}  {np.median(table[:, k]):13.2f}  {mean_ranks[k]:9.2f}{tested}")
        if not given.quick:
            print(f"Friedman p = {friedmanchisquare(*table.T).pvalue:.2g}")
for budget in budgets:
    better = sum(
        medians["published", budget, name, label] < medians["default", budget, name, label]
        for name in problems
        for label in labels
    )
    print(
        f"\nequal {budget}: published parameters gave the shorter median in {better} of {len(problems) * 6} cases"
    )

figure = Figure(figsize=(9, 8), layout="constrained")
above, below = figure.subfigures(2, 1, squeeze=False, height_ratios=(3, 4)).flat
axes, bars = above.subplots(1, 2, width_ratios=(2, 1))
panels = below.subplots(2, 3).flat
known = problems["kroA100"].best_known
for k, label in enumerate(labels):
    for kind, style in (("published", "-"), ("default", ":")):
        runs = np.array(curves[kind, "tours", "kroA100", label])
        middle = 100.0 * (np.median(runs[:, :, 1], axis=0) / known - 1.0)
        axes.plot(runs[0, :, 0], middle, style, label=label if style == "-" else None, color=f"C{k}")
axes.set(xscale="log", yscale="symlog", xlabel="tours built", ylabel="gap, %", ylim=0)
axes.set_title(f"kroA100: medians of {n_seeds} seeds, published (lines) and default (dots)", fontsize=9)
axes.legend()
places = np.arange(len(labels))
for kind, shift, shade in (("published", -0.2, 0.7), ("default", 0.2, 0.3)):
    colours = [f"C{k}" for k in range(len(labels))]
    bars.barh(places + shift, ranks[kind, "tours"], 0.4, color=colours, alpha=shade)
bars.set_yticks(places, labels)
bars.invert_yaxis()
bars.set(xlabel="mean rank, default below", title="equal tours")
for panel, label in zip(panels, labels, strict=True):
    drawn = colonies["published", "tours", "kroA100", label]
    plot_pheromone(drawn, ax=panel)
    trails = drawn.trails()
    strong = (trails > 0.1 * trails.max()).sum() / len(trails)
    panel.set_title(f"{label}: {strong:.1f} strong trails", fontsize=10)
figure.savefig("colony_study.png", dpi=100)
