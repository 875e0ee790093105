"""The quadratic assignment problem as a vectorised pymoo Problem."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pymoo_gpuaco import checks
from pymoo_gpuaco.problems.tsp import CitiesProblem

MOST_EXACT = 1e15  # of an entry


class Assignment(NamedTuple):
    """Result of `solve` for a `QAP`: ``placement, cost = solve(problem)``.

    placement : (items,) the location of every item.
    cost : its cost; with ``maximise`` the value, which is maximal.
    """

    placement: NDArray[np.int64]
    cost: float

    @property
    def col_ind(self) -> NDArray[np.int64]:
        """The placement, by the name of ``scipy.optimize.quadratic_assignment``."""
        return self.placement

    @property
    def fun(self) -> float:
        """The cost, by the name of ``scipy.optimize.quadratic_assignment``."""
        return self.cost


class QAP(CitiesProblem):
    """A quadratic assignment problem: place items at locations, one item a location, at the least cost

        sum_ij flow[i, j] distance[p[i], p[j]] + sum_i linear[i, p[i]],   p[i]: location of item i

    Matrices may be asymmetric and negative, and diagonals count. With more locations than items the others stay free.
    The variables of the problem are a permutation of all locations: those of the items come first, then free ones.

    Parameters
    ----------
    flow : (m, m) finite numbers, at most 1e15 in magnitude: what moves from item i to item j.
    distance : (n, n) from location to location, in the same range; n >= m.
    linear : (m, n) cost of item i at location l. None: 0.
    maximise : True: F is the negative of the sum, which is maximised.
    best_known : best known value of the sum, for gaps and as a target.
    name : a title for messages; stored as `label`.
    positions : (n, 2) of the locations, for pictures.

    Sums of whole numbers are exact below 2^53. Raises TypeError or ValueError that names the parameter.

    Attributes
    ----------
    flow, distance, linear : float64 arrays as above. n_items, n_locations : m and n. best_known : in units of F.
    """

    if TYPE_CHECKING:  # result of `solve`, by which type checkers choose its overload

        def _solved_as(self) -> Assignment: ...

    def __init__(
        self,
        flow: ArrayLike,
        distance: ArrayLike,
        linear: ArrayLike | None = None,
        maximise: bool = False,
        *,
        best_known: float | None = None,
        name: str | None = None,
        positions: ArrayLike | None = None,
    ) -> None:
        self.flow, self.distance = _square("flow", flow), _square("distance", distance)
        self.n_items, self.n_locations = m, n = len(self.flow), len(self.distance)
        if m > n:
            raise ValueError(
                f"flow has {m} items for {n} locations: every item needs its own, so add locations"
            )
        self.linear = np.zeros((m, n)) if linear is None else _numbers("linear", linear)
        if self.linear.shape != (m, n):
            raise ValueError(
                f"linear must have shape ({m}, {n}), items by locations, got {self.linear.shape}"
            )
        self.maximise = checks.flag("maximise", maximise)
        self.positions = None if positions is None else checks.finite("positions", positions).astype(float)
        if self.positions is not None and self.positions.shape != (n, 2):
            raise ValueError(f"positions must have shape ({n}, 2), got {self.positions.shape}")
        self._sign = -1.0 if maximise else 1.0
        self.best_known = None if best_known is None else self._sign * checks.real("best_known", best_known)
        self.label = name
        super().__init__(n, n_obj=1)

    @classmethod
    def from_graphs(cls, one: Any, other: Any, **given: Any) -> QAP:
        """Return the problem of matching the nodes of two graphs: as many common edges as possible.

        A graph is an adjacency matrix, or has a method `to_numpy_array` or is one of networkx, whose edges count by
        their weights. ``other`` has at least as many nodes as ``one``. The value is the sum of the products of matched
        entries; each edge of an undirected graph counts twice. ``given``: arguments of `QAP`.
        """
        return cls(_adjacency("one", one), _adjacency("other", other), **{"maximise": True, **given})

    def costs(self, placements: ArrayLike) -> NDArray[np.float64]:
        """Return the sums (e,) of placements (e, m), the locations of the items, or of rows (e, n) of variables."""
        items = np.arange(self.n_items)
        rows = np.asarray(placements)[:, : self.n_items]
        return np.array(
            [(self.flow * self.distance[np.ix_(p, p)]).sum() + self.linear[items, p].sum() for p in rows]
        )

    def solution(self, X: NDArray[Any]) -> Assignment:
        """Return the placement of a row (n,) of variables, and its cost."""
        placement = np.array(X[: self.n_items], np.int64)
        return Assignment(placement, float(self.costs(placement[None])[0]))

    def _evaluate(self, X: NDArray[Any], out: dict[str, Any], *args: Any, **kwargs: Any) -> None:
        out["F"] = self._sign * self.costs(X)[:, None]

    def _calc_pareto_front(self, *args: Any, **kwargs: Any) -> Any:
        return None if self.best_known is None else np.array([[self.best_known]])

    def __repr__(self) -> str:
        """Describe the problem in words."""
        label = "" if self.label is None else f" {self.label}"
        known = "" if self.best_known is None else f", best known {self._sign * self.best_known:.10g}"
        where = "" if self.n_items == self.n_locations else f" for {self.n_locations} locations"
        return f"QAP{label}: {self.n_items} items{where}{', maximise' if self.maximise else ''}{known}"

    __str__ = __repr__

    @property
    def matrices(self) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Flow, distance and linear costs (n, n) to minimise, filled up with items that cost nothing."""
        free = self.n_locations - self.n_items
        flow = self._sign * np.pad(self.flow, (0, free))
        return flow, self.distance, self._sign * np.pad(self.linear, ((0, free), (0, 0)))


def _numbers(name: str, given: Any) -> NDArray[np.float64]:
    array = checks.finite(name, checks.unmasked(name, given)).astype(np.float64)
    if array.ndim != 2:
        raise ValueError(f"{name} must be a matrix, got shape {array.shape}")
    if array.size and np.abs(array).max() > MOST_EXACT:
        raise ValueError(
            f"{name} must be in [-{MOST_EXACT:g}, {MOST_EXACT:g}], got {array[np.abs(array) > MOST_EXACT][0]:g}"
        )
    return array


def _square(name: str, given: Any) -> NDArray[np.float64]:
    array = _numbers(name, given)
    if array.shape[0] != array.shape[1] or not len(array):
        raise ValueError(f"{name} must be a square matrix, got shape {array.shape}")
    return array


def _adjacency(name: str, graph: Any) -> Any:
    """Return the adjacency matrix of a graph."""
    if not hasattr(graph, "nodes"):
        return graph
    nodes = {node: k for k, node in enumerate(graph.nodes)}
    matrix = np.zeros((len(nodes), len(nodes)))
    for a, b, data in graph.edges(data=True):
        weight = data.get("weight", 1.0)
        matrix[nodes[a], nodes[b]] += weight
        if not graph.is_directed() and a != b:
            matrix[nodes[b], nodes[a]] += weight
    return matrix
