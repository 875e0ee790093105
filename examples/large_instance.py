"""20,000 cities from coordinates alone: no n x n array is made."""

import numpy as np
from pymoo.optimize import minimize

from pymoo_gpuaco import GPUMMAS, TSP

n = 20_000
cities = np.random.default_rng(1).random((n, 2)) * 1e6
problem = TSP(cities, "EUC_2D", name="random-20000")

# few ants, each with local search; from 10,000 cities on only candidate edges have trails
colony = GPUMMAS(n_ants=4, candidate_list_size=16, local_search="2opt+oropt")
result = minimize(problem, colony, ("n_gen", 4), seed=1, verbose=True)

trails = result.algorithm.engine.export_state()["tau"]
print(f"best tour {result.F[0]:.0f}; {trails.size} trails in {trails.nbytes / 2**20:.1f} MiB")
