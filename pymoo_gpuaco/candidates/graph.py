"""An instance with its candidate lists, as compiled functions take it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pymoo_gpuaco.candidates.listed import ListedInstance
from pymoo_gpuaco.problems.metrics import DOUBLED, WITH_DUMMY, Metric

# GEO costs three cosines and an arc cosine; up to this many cities a table of 8 n^2 bytes is cheaper.
GEO_TABLE_LIMIT = 4000


class Graph(NamedTuple):
    """Arrays of one instance; letters: n cities, k candidates a city."""

    metric: int  # and more, see ``problems.metrics``
    coords: np.ndarray  # (n, 3) float64, or (0, 3) for a matrix
    matrix: np.ndarray  # (n, n) float64, or (0, 0) for coordinates
    neighbours: np.ndarray  # (n, k) int32, ascending by distance
    neighbour_distances: np.ndarray  # (n, k) float64
    partner: np.ndarray  # (n,) int32, other end of the edge that must stay, or -1; (0,) where there are none
    far: float  # length of an edge that no tour may use


def with_fewer_neighbours(graph: Graph, most: int) -> Graph:
    """Return the graph with lists of at most so many neighbours."""
    return graph._replace(
        neighbours=np.ascontiguousarray(graph.neighbours[:, :most]),
        neighbour_distances=np.ascontiguousarray(graph.neighbour_distances[:, :most]),
    )


def make_graph(instance: ListedInstance, table: bool = True) -> Graph:
    """Arrays in the one layout that the compiled functions take, so that they compile once.

    ``table``: whether GEO distances, which take long, may be worked out beforehand.
    """
    metric, matrix, coords = int(instance.metric), instance.matrix, instance.coords
    form, partner = instance.form, instance.partner
    if table and metric == Metric.GEO and instance.n <= GEO_TABLE_LIMIT:
        everyone = np.arange(instance.n)
        matrix = instance.distance(everyone[:, None], everyone[None, :])
        coords = np.empty((0, 3))
        metric = int(Metric.EXPLICIT)
    elif form is not None and (form.doubled or form.has_dummy):
        metric = DOUBLED if form.doubled else WITH_DUMMY + metric
    return Graph(
        metric,
        np.ascontiguousarray(coords, dtype=np.float64),
        np.ascontiguousarray(matrix, dtype=np.float64),
        np.ascontiguousarray(instance.neighbours, dtype=np.int32),
        np.ascontiguousarray(instance.neighbour_distances, dtype=np.float64),
        np.empty(0, np.int32) if partner is None else np.ascontiguousarray(partner, dtype=np.int32),
        0.0 if form is None else float(form.far),
    )
