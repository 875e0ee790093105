"""A custom objective: three edges in ten cost a toll, which the distances do not contain."""

import numpy as np
from pymoo.core.problem import Problem
from pymoo.optimize import minimize

from pymoo_gpuaco import GPUMMAS


class Tolls(Problem):
    """Distance plus tolls. Ants see the distances ``D`` only; the evaluation adds the tolls."""

    def __init__(self, n=100, toll=0.3, seed=1):
        rng = np.random.default_rng(seed)
        places = rng.random((n, 2))
        super().__init__(n_var=n, n_obj=1, xl=0, xu=n - 1, vtype=int)
        self.D = np.linalg.norm(places[:, None] - places[None], axis=2)
        tolled = np.triu(rng.random((n, n)) < 0.3, 1)
        self._cost = self.D + toll * (tolled | tolled.T)

    def _evaluate(self, x, out, *args, **kwargs):
        out["F"] = self._cost[x, np.roll(x, -1, axis=1)].sum(axis=1)[:, None]


problem = Tolls()
# every tour is evaluated; a warning names the custom objective
found = minimize(problem, GPUMMAS(), ("n_gen", 100), seed=1)
# only the shortest tour of each generation is evaluated
only_best = minimize(problem, GPUMMAS(n_elites=1), ("n_gen", 100), seed=1)
print(f"cost {found.F[0]:.2f}; with one evaluation a generation {only_best.F[0]:.2f}")
