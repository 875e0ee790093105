"""All tours of a few cities."""

from __future__ import annotations

from itertools import permutations

import numpy as np
from numpy.typing import NDArray

MOST_FOR_EVERY_TOUR = 9  # 20,160 tours, or twice as many where edges have a direction


def every_tour(n: int, directed: bool) -> NDArray[np.int32]:
    """All tours (.., n) of n >= 3 cities from city 0: (n - 1)! if directed, else half of them, each one way round."""
    rest = [order for order in permutations(range(1, n)) if directed or order[0] < order[-1]]
    tours = np.zeros((len(rest), n), np.int32)
    tours[:, 1:] = rest
    return tours
