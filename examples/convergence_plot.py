"""Two colonies on one picture: the best gap by generation."""

from matplotlib.figure import Figure
from pymoo.optimize import minimize

from pymoo_gpuaco import GPUACS, GPUMMAS, Recorder, load_tsp
from pymoo_gpuaco.visualization import plot_convergence

problem = load_tsp("pcb442")
figure = Figure(figsize=(6, 4), layout="constrained")
ax = figure.add_subplot()

for colony in (GPUMMAS(n_ants=8), GPUACS(n_ants=8)):
    recorder = Recorder()
    minimize(problem, colony, ("n_gen", 40), seed=1, callback=recorder)
    plot_convergence(recorder, ax=ax)
    ax.lines[-1].set(label=type(colony).__name__, color=f"C{len(ax.lines)}")

ax.legend()
figure.savefig("convergence.png", dpi=100)
