"""Elitist Ant System."""

from __future__ import annotations

from dataclasses import dataclass

from pymoo.core.variable import get

from pymoo_gpuaco import checks
from pymoo_gpuaco.algorithms.arguments import Number
from pymoo_gpuaco.algorithms.depositing import DepositingColony
from pymoo_gpuaco.colony.trails import TrailUpdate


@dataclass(kw_only=True, eq=False, repr=False)
class GPUEAS(DepositingColony):
    """Elitist Ant System (Dorigo, Maniezzo, Colorni 1996): the best tour so far deposits as ``elitist_weight`` ants.

    Every ant deposits 1 / its length besides. Defaults are those of Dorigo and Stuetzle (2004), Table 3.1: one ant a
    city, alpha 1, beta 2, rho 0.5, no candidate lists and no local search.

    Parameters
    ----------
    elitist_weight : e, what the best tour so far counts as, in ants, in [0, 1000000]. None: as many as cities.

    All arguments of ``AntColony``, ``EngineAlgorithm`` and ``TourAlgorithm`` besides.

    Sources: M. Dorigo, V. Maniezzo, A. Colorni, "Ant System", IEEE Transactions on Systems, Man, and Cybernetics B 26
    (1996); M. Dorigo, T. Stuetzle, "Ant Colony Optimization", MIT Press 2004, section 3.3.2.
    """

    rho: Number = 0.5
    elitist_weight: Number | None = None

    def _check(self) -> None:
        super()._check()
        weight = get(self.elitist_weight)
        if weight is not None:
            checks.real("elitist_weight", weight, 0.0, 1e6)

    @property
    def _weight(self) -> float:
        weight = get(self.elitist_weight)
        return float(self.instance.n if weight is None else weight)  # e = n, Table 3.1

    def _first_trail(self, n: int) -> float:
        # tau_0 = (e + m) / (rho C_g), Table 3.1, Dorigo and Stuetzle 2004
        return (self._weight + self.engine.n_ants) / float(get(self.rho))

    def _deposits(self) -> TrailUpdate:
        # section 3.3.2, Dorigo and Stuetzle 2004: tau <- (1 - rho) tau, then 1 / C_k by every ant and e / C by the best
        best = (self._best_tour, self._weight * self._amount(self._best_length))
        return self._trail_update(deposits=(best,), colony_amount=self._unit)
