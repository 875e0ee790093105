"""Save a run to a file, resume it, and get the tours of an uninterrupted run."""

from pymoo.optimize import minimize
from pymoo.termination import get_termination

from pymoo_gpuaco import GPUMMAS, checkpoint, load_tsp

problem = load_tsp("att532")

# 10 generations, then a file
first = minimize(problem, GPUMMAS(n_ants=8), ("n_gen", 10), seed=1)
checkpoint.save(first.algorithm, "colony.run")

# later, perhaps in another process: up to generation 20
colony = checkpoint.load("colony.run")
colony.termination = get_termination("n_gen", 20)
resumed = minimize(problem, colony, copy_algorithm=False)

# the same 20 generations without a break
whole = minimize(problem, GPUMMAS(n_ants=8), ("n_gen", 20), seed=1)
print(f"resumed {resumed.F[0]:.0f}, uninterrupted {whole.F[0]:.0f}")
assert (resumed.X == whole.X).all()
