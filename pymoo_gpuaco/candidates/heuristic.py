"""Heuristic values of a user: an instance of distances 1 / eta, by which ants weigh edges."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pymoo_gpuaco.candidates.listed import ListedInstance
from pymoo_gpuaco.problems.metrics import Metric

# Positive values may differ by this factor: with beta = 20 its power fits a double.
_LARGEST_RATIO = 1e15
_SMALL, _LARGE = 2.0**-20, 2.0**20  # range of the largest value in which eta has its own unit


def heuristic_matrix(eta: ArrayLike) -> NDArray[np.float64]:
    """Return checked heuristic values (n, n) in double; the diagonal, which no ant reads, is 0.

    Raises TypeError for other types, and ValueError unless values are finite and >= 0, each row has a positive one, and
    positive ones differ by a factor of at most 1e15.
    """
    try:
        values = np.array(eta, np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"heuristic must be an (n, n) array or a function, got {eta!r}") from None
    if values.ndim != 2 or len(values) != values.shape[1] or len(values) < 2:
        raise ValueError(f"heuristic must be an (n, n) array, got {eta!r} of shape {values.shape}")
    np.fill_diagonal(values, 0.0)
    if not (np.isfinite(values) & (values >= 0.0)).all():
        i, j = np.argwhere(~(np.isfinite(values) & (values >= 0.0)))[0]
        raise ValueError(f"heuristic must be finite and >= 0, got {values[i, j]} at [{i}, {j}]")
    if not (positive := values > 0.0).any(axis=1).all():
        row = int((~positive.any(axis=1)).argmax())
        raise ValueError(f"heuristic must have a positive value in every row, got zeros in row {row}")
    if values.max() > _LARGEST_RATIO * values[positive].min():
        raise ValueError(
            f"heuristic must have positive values that differ by a factor of at most {_LARGEST_RATIO:g}, "
            f"got {values[positive].min():g} and {values.max():g}"
        )
    return values


@dataclass(frozen=True, eq=False)
class HeuristicInstance(ListedInstance):
    """An instance whose distances are 1 / eta in single precision, infinite for eta = 0, with the lists of another.

    `neighbour_distances` are in the order of these lists.
    """

    @cached_property
    def least_distance(self) -> float:
        """The least distance: none is replaced."""
        return float(self._least_of_rows.min())

    @cached_property
    def nearest(self) -> NDArray[np.float64]:
        """Least finite distance (n,) to a candidate, or to any city if there is none."""
        least = self.neighbour_distances.min(axis=1)
        return np.where(np.isfinite(least), least, self._least_of_rows)

    @cached_property
    def farthest(self) -> NDArray[np.float64]:
        """Largest finite distance (n,) to a candidate, or the least to any city if there is none."""
        finite = np.isfinite(self.neighbour_distances)
        return np.where(finite, self.neighbour_distances, self.nearest[:, None]).max(axis=1)

    @cached_property
    def _least_of_rows(self) -> NDArray[np.float64]:
        others = ~np.eye(self.n, dtype=bool)
        return self.matrix.min(axis=1, where=others, initial=np.inf)


def with_heuristic(instance: ListedInstance, eta: ArrayLike) -> HeuristicInstance:
    """Return an instance of the distances 1 / eta (n, n) with the lists of ``instance``. Raises ValueError."""
    values, n = heuristic_matrix(eta), instance.n
    if len(values) != n:
        raise ValueError(f"heuristic must have shape ({n}, {n}), got {values.shape}")
    largest = float(values.max())
    if not _SMALL <= largest <= _LARGE:  # powers in single precision neither over- nor underflow
        values = np.ldexp(values, -math.frexp(largest)[1])
    with np.errstate(divide="ignore"):
        matrix = np.divide(1.0, values).astype(np.float32).astype(np.float64)
    np.fill_diagonal(matrix, 0.0)
    own: dict[str, Any] = {field.name: getattr(instance, field.name) for field in fields(ListedInstance)}
    own |= {"metric": int(Metric.EXPLICIT), "coords": np.zeros((0, 3)), "matrix": matrix, "integral": False}
    near = np.take_along_axis(matrix, instance.neighbours.astype(np.intp), axis=1)
    # no list that another function could take for the nearest
    return HeuristicInstance(**{**own, "listed": "heuristic", "neighbour_distances": near})
