"""The six ant systems with equally many tours: best gap over tours, and where their trails lie in the end."""

from matplotlib.figure import Figure
from pymoo.optimize import minimize

from pymoo_gpuaco import GPUACS, GPUAS, GPUBWAS, GPUEAS, GPUMMAS, GPURAS, Recorder, load_tsp
from pymoo_gpuaco.visualization import plot_convergence, plot_pheromone

problem = load_tsp("kroA100")
figure = Figure(figsize=(12, 5), layout="constrained")
grid = figure.add_gridspec(2, 5)
convergence = figure.add_subplot(grid[:, :2])
panels = [figure.add_subplot(grid[row, column]) for row in (0, 1) for column in (2, 3, 4)]

for number, system in enumerate((GPUAS, GPUEAS, GPURAS, GPUBWAS, GPUMMAS, GPUACS)):
    # the same ants and lists and no local search: only the rules of the papers differ
    colony = system(n_ants=25, candidate_list_size=20, local_search=False)
    recorder = Recorder()
    result = minimize(problem, colony, ("n_eval", 5000), seed=1, callback=recorder)
    gap = 100.0 * (result.F[0] / problem.best_known - 1.0)
    print(f"{system.__name__:8} {result.algorithm.evaluator.n_eval} tours, gap {gap:.2f} %")

    plot_convergence(recorder, ax=convergence, over="tours")
    convergence.lines[-1].set(label=system.__name__, color=f"C{number}")
    plot_pheromone(result.algorithm, ax=panels[number])
    strong = (result.algorithm.trails() > 0.5 * result.algorithm.trails().max()).sum() / problem.n_cities
    panels[number].set_title(f"{system.__name__}: {strong:.1f} strong trails a city", fontsize=9)

convergence.set(xscale="log", xlabel="tours built")
convergence.legend()
figure.savefig("six_colonies.png", dpi=100)
