"""Solve a shipped instance and draw the best tour."""

from pymoo.optimize import minimize

from pymoo_gpuaco import GPUMemetic, load_tsp
from pymoo_gpuaco.visualization import plot_tour

problem = load_tsp("pcb442")  # drilling a circuit board: 442 holes
result = minimize(problem, GPUMemetic(), ("n_gen", 30), seed=1, verbose=True)

length = float(result.F[0])
print(f"best tour {length:.0f}, best known {problem.best_known:.0f}")
print("it starts", *result.X[:10])
plot_tour(problem, result.X, title=f"pcb442: {length:.0f}").savefig("first_tour.png")
