"""Paths instead of round trips."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pymoo_gpuaco import checks
from pymoo_gpuaco.problems.cells import find_city
from pymoo_gpuaco.problems.metrics import Metric
from pymoo_gpuaco.problems.tsp import TSP

__all__ = ["OpenPath", "constrained"]


class OpenPath(TSP):
    """The shortest path that visits every city once and does not come back.

    A solution is the path itself: X is a permutation of the n cities, X[0] the first and X[-1] the last one, and F its
    length. Where `start` or `end` is given, a path with another one breaks the constraint G, see `TSP`.

    Parameters
    ----------
    coords : (n, 2) or (n, 3) coordinates as `TSP` takes them, or a `TSP`, whose cities, distances, names, fixed and
        forbidden edges are taken; n >= 3. From coordinates no matrix is made.
    metric : as `TSP` takes it, for coordinates.
    matrix : (n, n) distances as `TSP` takes them, row = from.
    start : city to begin at, a position in [0, n - 1] or the text of a name or id, or None: wherever that is shortest.
    end : city to end at, likewise; not the start.
    others : keyword arguments of `TSP`, such as `name`, `names`, `fixed_edges` or `precedence`, which counts along the
        path.

    Raises ValueError or TypeError as `TSP` does, and for a `start` or `end` that is no city.
    """

    closed = False

    def __init__(
        self,
        coords: ArrayLike | TSP | None = None,
        metric: str | Metric | None = None,
        *,
        matrix: ArrayLike | None = None,
        start: int | str | None = None,
        end: int | str | None = None,
        **others: Any,
    ) -> None:
        self._refuse_unknown(others, checks.parameters(OpenPath.__init__) + checks.parameters(TSP.__init__))
        original = coords if isinstance(coords, TSP) else None
        if isinstance(coords, TSP):
            if metric is not None or matrix is not None:
                raise ValueError("a TSP has its distances: leave out metric and matrix")
            others = {**_arguments_of(coords), **others}
        else:
            others.update(coords=coords, metric=metric, matrix=matrix)
        n = len(np.asarray(others["coords"] if others["matrix"] is None else others["matrix"]))
        self.start, self.end = (
            None if city is None else find_city(city, n, others.get("names"), others.get("ids"), what)
            for city, what in ((start, "start"), (end, "end"))
        )
        if self.start is not None and self.start == self.end:
            raise ValueError(
                f"end must be another city than start, got {end} for both; a round trip is a TSP"
            )
        super().__init__(**others)
        if original is not None:
            self.read_as, self._tabulated = original.read_as, original._tabulated

    @property
    def distances_in_words(self) -> str:
        """Distances, and that a path is wanted, in words."""
        return f"{super().distances_in_words}, along a path (one-way, no return)"


def constrained(
    problem: TSP,
    start: int | str | None = None,
    end: int | str | None = None,
    fixed_edges: Any = None,
    forbidden_edges: Any = None,
    one_way: bool = False,
    precedence: Any = None,
) -> TSP:
    """Return a problem with these ends and edges besides its own; the same start and end make a round trip from there.

    Cities are positions, or texts of names or ids. Raises ValueError or TypeError as `TSP` and `OpenPath` do.
    """
    read_as, home = problem.read_as, problem.home
    begin = problem.start if start is None else problem.city(start, "start")
    last = problem.end if end is None else problem.city(end, "end")
    is_round_trip = begin is not None and begin == last and problem.closed and not one_way
    is_path = one_way or not problem.closed or (not is_round_trip and (begin is not None or last is not None))
    pairs = np.concatenate([problem.precedence, problem.edges("precedence", precedence)])
    if fixed_edges is not None or forbidden_edges is not None or precedence is not None:
        arguments = _arguments_of(problem)
        fixed = problem.edges("fixed_edges", fixed_edges)
        arguments["fixed_edges"] = np.concatenate([problem.fixed_edges, fixed])
        arguments["precedence"] = None if is_path else pairs  # a path counts from its own start
        arguments["forbidden_edges"] = problem.edges("forbidden_edges", forbidden_edges)
        problem = TSP(**arguments, start=begin if is_round_trip else home)
    if is_path:
        problem = OpenPath(problem, start=begin, end=last, precedence=pairs)
    elif is_round_trip or home is not None:
        problem = copy.copy(problem)
        problem.home = home if begin is None else begin
        if problem.constraints is not None:
            problem.constraints.check(problem.n_cities)
    problem.read_as = read_as
    return problem


def _arguments_of(problem: TSP) -> dict[str, Any]:
    """Return arguments that make the same cities once more."""
    own: dict[str, Any] = {
        "name": problem.label,
        "names": problem.names,
        "ids": problem.ids,
        "fixed_edges": problem.fixed_edges,
        "precedence": problem.precedence,
        "matrix": problem.matrix,
        "coords": None,
        "metric": None,
    }
    if problem.matrix is not None:
        own["positions"] = problem.positions
    else:
        assert problem.coords is not None
        flat = problem.positions is not None and not problem.coords[:, 2].any()
        on_the_globe = problem.metric in (Metric.GEO, Metric.HAVERSINE)
        own["coords"] = problem.positions if flat or on_the_globe else problem.coords
        own["metric"] = problem.metric
    return own
