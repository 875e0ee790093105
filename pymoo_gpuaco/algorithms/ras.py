"""Rank-based Ant System."""

from __future__ import annotations

from dataclasses import dataclass

from pymoo.core.variable import get

from pymoo_gpuaco import checks
from pymoo_gpuaco.algorithms.arguments import Count, Number
from pymoo_gpuaco.algorithms.depositing import DepositingColony
from pymoo_gpuaco.colony.trails import TrailUpdate


@dataclass(kw_only=True, eq=False, repr=False)
class GPURAS(DepositingColony):
    """Rank-based Ant System (Bullnheimer, Hartl, Strauss 1999): the shorter an ant's tour, the more it deposits.

    The best w - 1 ants of an iteration deposit, the r-th with the weight w - r, and the best tour so far with the
    weight w. Defaults are those of Dorigo and Stuetzle (2004), Table 3.1: one ant a city, alpha 1, beta 2, rho 0.1,
    w = 6, no candidate lists and no local search.

    Parameters
    ----------
    ranks : w, weight of the best tour so far, and one more than the ants that deposit, in [2, 1048576].

    All arguments of ``AntColony``, ``EngineAlgorithm`` and ``TourAlgorithm`` besides.

    Sources: B. Bullnheimer, R. F. Hartl, C. Strauss, "A new rank based version of the Ant System", Central European
    Journal for Operations Research and Economics 7 (1999); M. Dorigo, T. Stuetzle, "Ant Colony Optimization", MIT Press
    2004, section 3.3.3.
    """

    rho: Number = 0.1
    ranks: Count = 6

    def _check(self) -> None:
        super()._check()
        checks.integer("ranks", get(self.ranks), 2, 1 << 20)

    def _first_trail(self, n: int) -> float:
        # tau_0 = 0.5 w (w - 1) / (rho C_g), Table 3.1, Dorigo and Stuetzle 2004
        w = int(get(self.ranks))
        return 0.5 * w * (w - 1) / float(get(self.rho))

    def _deposits(self) -> TrailUpdate:
        # section 3.3.3, Dorigo and Stuetzle 2004: (w - r) / C_r by the ants of rank r = 1 .. w-1, w / C by the best
        w = int(get(self.ranks))
        best = (self._best_tour, w * self._amount(self._best_length))
        ranks = range(1, min(w, self.engine.n_ants + 1))
        return self._trail_update(deposits=(best,), ranked=tuple(self._unit * (w - rank) for rank in ranks))
