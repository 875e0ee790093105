"""Compare six ant systems at equal numbers of tours: ``colony_study.py [seeds] [tours]``."""

import csv
import sys

import numpy as np
from matplotlib.figure import Figure
from pymoo.core.callback import Callback
from scipy.stats import friedmanchisquare, rankdata, wilcoxon

from pymoo_gpuaco import GPUACS, GPUAS, GPUBWAS, GPUEAS, GPUMMAS, GPURAS, load_tsp, summary
from pymoo_gpuaco.visualization import plot_pheromone

n_seeds, n_tours = (int(given) for given in [*sys.argv[1:], "10", "5000"][:2])
instances = ("berlin52", "kroA100", "kroB100")
systems = (GPUAS, GPUEAS, GPURAS, GPUBWAS, GPUMMAS, GPUACS)
names = [system.__name__ for system in systems]


class Convergence(Callback):
    """Best length after each generation, one list for each run."""

    def __init__(self):
        super().__init__()
        self.runs = []

    def notify(self, algorithm):
        if algorithm.n_iter == 1:
            self.runs.append([])
        self.runs[-1].append((algorithm.evaluator.n_eval, algorithm.opt[0].F[0]))


rows, gaps, curves, colonies = [], {}, {}, {}
for instance in instances:
    problem = load_tsp(instance)
    for system in systems:
        # equal ants and candidate lists, no local search: only the rules of the papers differ
        colony = system(n_ants=25, candidate_list_size=20, local_search=False)
        convergence = Convergence()
        runs = summary(problem, colony, ("n_eval", n_tours), seeds=n_seeds, callback=convergence)
        columns = runs.as_dict()
        for row in zip(*columns.values(), strict=True):
            rows.append(
                {"instance": instance, "algorithm": system.__name__, **dict(zip(columns, row, strict=True))}
            )
        gaps[instance, system.__name__] = runs.gaps
        curves[instance, system.__name__] = np.array(convergence.runs)
        colonies[instance, system.__name__] = runs.best.algorithm
        print(f"{instance:9} {system.__name__:8} median gap {np.median(runs.gaps):.2f} %")

with open("colony_study.csv", "w", newline="", encoding="utf-8") as file:
    writer = csv.DictWriter(file, rows[0])
    writer.writeheader()
    writer.writerows(rows)

# Friedman's test over (instance, seed), then Wilcoxon's against the best mean rank, corrected by Holm.
table = np.array([np.concatenate([gaps[instance, name] for instance in instances]) for name in names]).T
ranks = rankdata(table, axis=1).mean(axis=0)
p_value = friedmanchisquare(*table.T).pvalue
best = int(ranks.argmin())
others = [k for k in range(len(names)) if k != best]
raw = np.array([wilcoxon(table[:, k], table[:, best], zero_method="zsplit").pvalue for k in others])
order = raw.argsort()
holm = np.empty(len(raw))
holm[order] = np.minimum(1.0, np.maximum.accumulate(raw[order] * np.arange(len(raw), 0, -1)))
corrected = dict(zip(others, holm, strict=True))
print(f"\nFriedman p = {p_value:.2g}, {len(table)} blocks of instance and seed")
print("system    mean rank  p against the best (Wilcoxon, Holm)")
for k in ranks.argsort():
    print(f"{names[k]:8}  {ranks[k]:9.2f}  " + ("-" if k == best else f"{corrected[k]:.2g}"))

figure = Figure(figsize=(9, 8), layout="constrained")
above, below = figure.subfigures(2, 1, squeeze=False, height_ratios=(3, 4)).flat
axes, bars = above.subplots(1, 2, width_ratios=(2, 1))
panels = below.subplots(2, 3).flat
known = load_tsp("kroA100").best_known
for k, name in enumerate(names):
    tours = curves["kroA100", name][0, :, 0]
    gap = 100.0 * (curves["kroA100", name][:, :, 1] / known - 1.0)
    low, middle, high = np.percentile(gap, (25, 50, 75), axis=0)
    axes.plot(tours, middle, label=name, color=f"C{k}")
    axes.fill_between(tours, low, high, color=f"C{k}", alpha=0.2, linewidth=0)
axes.set(xscale="log", yscale="symlog", xlabel="tours built", ylabel="gap, %", ylim=0)
axes.set_title(f"kroA100: median and quartiles of {n_seeds} seeds")
axes.legend()
bars.barh(names, ranks, color=[f"C{k}" for k in range(len(names))], alpha=0.5)
bars.invert_yaxis()
bars.set(xlabel="mean rank", title=f"Friedman p = {p_value:.1g}")
for k, rank in enumerate(ranks):
    text = "best" if k == best else f"p = {corrected[k]:.1g}"
    bars.text(0.1, k, f"{rank:.2f}, {text}", va="center")
for panel, name in zip(panels, names, strict=True):
    colony = colonies["kroA100", name]
    plot_pheromone(colony, ax=panel)
    trails = colony.trails()
    strong = (trails > 0.1 * trails.max()).sum() / len(trails)
    panel.set_title(f"{name}: {strong:.1f} strong trails", fontsize=10)
figure.savefig("colony_study.png", dpi=100)
