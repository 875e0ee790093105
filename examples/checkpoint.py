"""Stop a run, keep it in a file, and go on later as if it had never stopped."""

import pickle
from pathlib import Path

from pymoo.optimize import minimize
from pymoo.termination import get_termination

from pymoo_gpuaco import GPUMMAS, load_tsp

problem = load_tsp("att532")

# 10 generations, then a file
first = minimize(problem, GPUMMAS(n_ants=8), ("n_gen", 10), seed=1)
Path("colony.pickle").write_bytes(pickle.dumps(first.algorithm))

# later, perhaps in another process: up to generation 20
colony = pickle.loads(Path("colony.pickle").read_bytes())
colony.termination = get_termination("n_gen", 20)
resumed = minimize(problem, colony, copy_algorithm=False)

# the same 20 generations without a break
whole = minimize(problem, GPUMMAS(n_ants=8), ("n_gen", 20), seed=1)
print(f"resumed {resumed.F[0]:.0f}, uninterrupted {whole.F[0]:.0f}")
assert (resumed.X == whole.X).all()
