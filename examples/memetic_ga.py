"""pymoo's genetic algorithm with greedy first tours and local search on every offspring."""

from pymoo.algorithms.soo.nonconvex.ga import GA
from pymoo.operators.crossover.ox import OrderCrossover
from pymoo.operators.mutation.inversion import InversionMutation
from pymoo.optimize import minimize

from pymoo_gpuaco import load_tsp
from pymoo_gpuaco.operators import LocalSearchRepair, NearestNeighbourSampling

problem = load_tsp("att532")
algorithm = GA(
    pop_size=20,
    sampling=NearestNeighbourSampling(),
    crossover=OrderCrossover(),
    mutation=InversionMutation(),
    repair=LocalSearchRepair(),
    eliminate_duplicates=False,
)
result = minimize(problem, algorithm, ("n_gen", 15), seed=1, verbose=True)
print(f"best tour {result.F[0]:.0f}, best known {problem.best_known:.0f}")
