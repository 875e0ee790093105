"""Three algorithms on one picture: the best gap by seconds of search."""

from matplotlib.figure import Figure
from pymoo.optimize import minimize

from pymoo_gpuaco import GPUACS, GPUMMAS, GPUMemetic, Recorder, load_tsp
from pymoo_gpuaco.visualization import plot_convergence

problem = load_tsp("pcb442")
algorithms = {
    "GPUMemetic(), the default": GPUMemetic(),
    "GPUMMAS()": GPUMMAS(),
    "GPUACS()": GPUACS(),
}
figure = Figure(figsize=(6, 4), layout="constrained")
ax = figure.add_subplot()

for number, (label, algorithm) in enumerate(algorithms.items()):
    recorder = Recorder()
    minimize(problem, algorithm, ("time", 3), seed=1, callback=recorder)
    plot_convergence(recorder, ax=ax, over="seconds")
    ax.lines[-1].set(label=label, color=f"C{number}")

ax.set(xscale="log", xlabel="seconds of search")
# logarithmic above 0.1 %, so that small gaps are visible
ax.set_yscale("symlog", linthresh=0.1)
ax.set_ylim(bottom=0)
ax.yaxis.set_major_formatter("{x:g}")
ax.xaxis.set_major_formatter("{x:g}")
ax.legend()
figure.savefig("convergence.png", dpi=100)
