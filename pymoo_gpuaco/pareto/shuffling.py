"""Tours some cities of which stand in any order: where a search begins that is to end elsewhere than the last one."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def shuffled(tours: NDArray[np.int32], many: int, draw: np.random.Generator) -> NDArray[np.int32]:
    """Copies of tours (m, n), in each of which ``many`` cities in a row, or all n, have been put in an order drawn."""
    m, n = tours.shape
    places = (draw.integers(0, n, (m, 1)) + np.arange(min(many, n))) % n
    new = tours.copy()
    np.put_along_axis(new, places, draw.permuted(np.take_along_axis(tours, places, axis=1), axis=1), axis=1)
    return new
