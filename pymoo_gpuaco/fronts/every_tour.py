"""All tours of a few cities."""

from __future__ import annotations

from itertools import permutations

import numpy as np
from numpy.typing import NDArray

MOST_FOR_EVERY_TOUR = 9  # 20,160 tours


def every_tour(n: int) -> NDArray[np.int32]:
    """The (n - 1)! / 2 tours (.., n) of n >= 3 cities, each one way round, from city 0."""
    rest = [order for order in permutations(range(1, n)) if order[0] < order[-1]]
    tours = np.zeros((len(rest), n), np.int32)
    tours[:, 1:] = rest
    return tours
