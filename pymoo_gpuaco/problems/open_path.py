"""Paths instead of round trips."""

from __future__ import annotations

import copy
from typing import Any

from numpy.typing import ArrayLike

from pymoo_gpuaco import checks
from pymoo_gpuaco.problems.metrics import Metric
from pymoo_gpuaco.problems.tsp import TSP

__all__ = ["OpenPath", "constrained"]


class OpenPath(TSP):
    """The shortest path that visits every city once and does not return.

    A solution is the path itself: X is a permutation of the n cities, X[0] the first and X[-1] the last one, and F its
    length. If `start` or `end` is given, a path with another one violates the constraint G, see `TSP`.

    Parameters
    ----------
    coords : (n, 2) or (n, 3) coordinates as `TSP` takes them, n >= 3; or a `TSP` with its cities, distances, names and
        edges. From coordinates no matrix is made.
    metric : as `TSP` takes it, for coordinates.
    matrix : (n, n) distances as `TSP` takes them, row = from.
    start : city to begin at, a position in [0, n - 1] or the text of a name or id, or None: any city.
    end : city to end at, likewise; not the start.
    fixed_edges, forbidden_edges, precedence : as `TSP` takes them, besides those of a given `TSP`; precedence counts
        along the path.
    others : keyword arguments of `TSP`, such as `name` or `names`; not with a given `TSP`.

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
        fixed_edges: ArrayLike | None = None,
        forbidden_edges: ArrayLike | None = None,
        precedence: ArrayLike | None = None,
        **others: Any,
    ) -> None:
        self._refuse_unknown(others, checks.parameters(OpenPath.__init__) + checks.parameters(TSP.__init__))
        if isinstance(coords, TSP):
            for what, given in {"metric": metric, "matrix": matrix, **others}.items():
                if given is not None:
                    raise ValueError(f"a TSP has its {what}: leave it out")
            self.__dict__.update(coords.__dict__)
            self.best_known = self.optimal_tour = self.home = None
        else:
            super().__init__(coords, metric, matrix=matrix, **others)
        self._constrain(fixed_edges, forbidden_edges, precedence, start, end)

    @property
    def distances_in_words(self) -> str:
        """Description of the distances and of the path."""
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
    """Return a problem with additional ends and edges; an equal start and end make a round trip from that city.

    Cities are positions, or names or ids as text. Raises ValueError or TypeError as `TSP` and `OpenPath` do.
    """
    begin = problem.start if start is None else problem.city(start, "start")
    last = problem.end if end is None else problem.city(end, "end")
    edges = {"fixed_edges": fixed_edges, "forbidden_edges": forbidden_edges, "precedence": precedence}
    has_edges = any(given is not None for given in edges.values())
    is_round_trip = begin is not None and begin == last and problem.closed and not one_way
    if not is_round_trip and (one_way or not problem.closed or begin is not None or last is not None):
        return OpenPath(problem, start=begin, end=last, **edges)
    if is_round_trip or has_edges:
        problem = copy.copy(problem)
        if has_edges:
            problem.best_known = problem.optimal_tour = None
        problem._constrain(**edges, start=begin if is_round_trip else None)
    return problem
