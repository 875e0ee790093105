"""Arrays of an exported state, as the engines on CUDA take them back."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.backends.state import State


def fitting(state: State, name: str, shape: tuple[int, ...], kind: type) -> NDArray:
    """Return an array of a state, contiguous and of this type. Raises ValueError for another shape."""
    array = np.asarray(state[name])
    if array.shape != shape:
        raise ValueError(
            f"state['{name}'] must have shape {shape}, got {array.shape}: "
            "it belongs to another instance, number of ants or climbers, or memory"
        )
    return np.ascontiguousarray(array, kind)
