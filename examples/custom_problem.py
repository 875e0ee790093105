"""A pymoo problem of your own: travel times through one-way streets."""

import numpy as np
from pymoo.core.problem import ElementwiseProblem
from pymoo.optimize import minimize

from pymoo_gpuaco import GPUMemetic


class Courier(ElementwiseProblem):
    """Minutes of a round trip. The search needs the (n, n) array ``D``, row = from."""

    def __init__(self, minutes):
        n = len(minutes)
        super().__init__(n_var=n, n_obj=1, xl=0, xu=n - 1, vtype=int)
        self.D = minutes

    def _evaluate(self, x, out, *args, **kwargs):
        out["F"] = self.D[x, np.roll(x, -1)].sum()


rng = np.random.default_rng(1)
stops = rng.random((60, 2))
straight = 20.0 * np.linalg.norm(stops[:, None] - stops[None], axis=2)
# there and back take different times
minutes = straight + rng.exponential(4.0, straight.shape)

result = minimize(Courier(minutes), GPUMemetic(), ("n_gen", 50), seed=1)
print(f"round trip of {result.F[0]:.1f} minutes, starting {result.X[:8]}")
