"""Order and directions of strokes of a pen, cuts or seams, with short travel between them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pymoo_gpuaco import checks
from pymoo_gpuaco.problems.tsp import TSP, OpenPath
from pymoo_gpuaco.solving import solve

__all__ = ["Strokes", "solve_strokes"]


class Strokes(NamedTuple):
    """Result of `solve_strokes`.

    Attributes
    ----------
    order : (m,) the strokes in drawing order.
    reversed : (m,) in the same order, True if a stroke is drawn from its second end to its first.
    path : (m, 2, d) in the same order, first and last point of each stroke.
    travel : length of travel between strokes, including the travel from and to home.
    """

    order: NDArray[np.int64]
    reversed: NDArray[np.bool_]
    path: NDArray[np.float64]
    travel: float


def solve_strokes(
    strokes: Any,
    seconds: float | None = None,
    *,
    home: ArrayLike | None = None,
    returns: bool = True,
    **arguments: Any,
) -> Strokes:
    """Find an order of strokes, and a direction of each, with short travel between them.

    strokes : (m, 2, 2) or (m, 2, 3), both ends of each; or m polylines (p, 2) or (p, 3), of which the ends count.
    home : (d,) start position of the pen. None: the pen begins and ends at any stroke.
    returns : True if the pen returns to `home`; only with `home`.
    seconds, arguments : as in `solve`.

    Raises ValueError or TypeError for other shapes, and like `solve`.
    """
    for word in ("start", "end"):
        if word in arguments:
            raise TypeError(
                f"solve_strokes has no argument {word!r}: home= is the position where the pen begins"
            )
    lines = [checks.unmasked("strokes", getattr(line, "coords", line)) for line in strokes]
    if all(line.ndim == 2 and len(line) for line in lines):
        strokes = [line[[0, -1]] for line in lines]
    ends = checks.finite("strokes", strokes).astype(np.float64)
    if ends.ndim != 3 or ends.shape[1] != 2 or ends.shape[2] not in (2, 3) or not len(ends):
        raise ValueError(
            f"strokes must have shape (m, 2, 2) or (m, 2, 3), or be polylines (p, 2) or (p, 3), got {ends.shape}"
        )
    checks.flag("returns", returns)
    m, points = len(ends), ends.reshape(-1, ends.shape[2])
    start = None
    if home is not None:
        place = checks.finite("home", checks.unmasked("home", home)).astype(np.float64)
        if place.shape != points.shape[1:]:
            raise ValueError(
                f"home must have shape {points.shape[1:]}, like ends of strokes, got {place.shape}"
            )
        points, start = np.vstack([points, place]), 2 * m
    problem = TSP(points, "EXACT", fixed_edges=np.arange(2 * m).reshape(m, 2))
    if start is None:
        tour, length = solve(OpenPath(problem), seconds, **arguments)
    else:
        tour, length = solve(problem, seconds, start=start, end=start if returns else None, **arguments)
        tour = tour[1:]
    path = points[tour].reshape(m, 2, -1)
    drawn = np.sqrt(((path[:, 1] - path[:, 0]) ** 2).sum(axis=1)).sum()
    order = tour[::2].astype(np.int64) // 2
    return Strokes(order, tour[::2] % 2 == 1, path, max(0.0, float(length - drawn)))
