"""Cities in objects of other packages, known by what they can do: pandas, networkx and tsplib95 are not imported."""

from __future__ import annotations

from typing import Any

import numpy as np

from pymoo_gpuaco.problems.cells import number_of
from pymoo_gpuaco.problems.columns import Columns, columns_of
from pymoo_gpuaco.problems.labels import columns_by_rows, matching
from pymoo_gpuaco.problems.no_road import refuse_rounded

__all__ = ["by_its_labels", "frame_columns", "graph_columns", "is_frame", "is_graph", "is_tsplib95"]


def is_frame(source: Any) -> bool:
    """Whether it is a table as pandas and polars have them."""
    return hasattr(source, "columns") and hasattr(source, "to_numpy")


def is_graph(source: Any) -> bool:
    """Whether it is a graph as networkx has them."""
    return all(hasattr(source, name) for name in ("nodes", "edges", "is_directed"))


def is_tsplib95(source: Any) -> bool:
    """Whether it is a problem of tsplib95."""
    return hasattr(source, "render") and hasattr(source, "get_weight")


def frame_columns(frame: Any, metric: str | None = None, matrix: bool | None = None) -> Columns:
    """Return what the columns of a DataFrame are, as `columns_of` does; an index of labels gives names.

    Titles that only count, as packages write them where nobody gave any, are none.
    """
    titles, index = list(frame.columns), _index_of(frame)
    same = matching(index, titles)
    untitled = titles in (list(range(len(titles))), [f"column_{c}" for c in range(len(titles))])
    given = None if untitled and same in (None, sorted(same or ())) else titles
    columns = columns_of(given, frame.to_numpy().tolist(), metric, matrix, index=index)
    labelled = any(number_of(label) is None for label in index)
    if labelled and (columns.names is None or columns.matrix is not None):
        return Columns(index, columns.coords, columns.matrix, columns.metric)
    return columns


def by_its_labels(matrix: Any) -> Any:
    """Return a matrix as it is, the values of a DataFrame with the columns in the order of the rows, by their labels.

    Raises ValueError where rows and columns of a square frame have different labels.
    """
    if not is_frame(matrix):
        return matrix
    titles, index = list(matrix.columns), _index_of(matrix)
    values = matrix.to_numpy()
    if len(titles) != len(index):
        return values
    order = columns_by_rows([index], titles)
    return values if order == sorted(order) else values[:, order]


def _index_of(frame: Any) -> list[Any]:
    """Return the labels of a frame's rows, which those of pandas have."""
    return list(getattr(frame, "index", ()))


def graph_columns(graph: Any) -> Columns:
    """Return a graph's matrix, from the `weight` of its edges; of parallel edges the shortest. Loops do not count.

    An edge that it lacks is infinite: no tour may use it. Where no edge carries anything all weigh 1. Raises ValueError
    for an edge that lacks its weight in another graph.
    """
    nodes = list(graph.nodes)
    plain = not any(data for _, _, data in graph.edges(data=True))
    number = {node: city for city, node in enumerate(nodes)}
    matrix = np.full((len(nodes), len(nodes)), np.inf)
    for start, end, data in graph.edges(data=True):
        weight = 1.0 if plain else number_of(data.get("weight"))
        if weight is None:
            has = ", ".join(repr(name) for name in data) or "nothing"
            raise ValueError(
                f"the edge from {start!r} to {end!r} has no number as its weight, got {data.get('weight')!r}; "
                f"it has {has}"
            )
        i, j = number[start], number[end]
        matrix[i, j] = min(matrix[i, j], weight)
        if not graph.is_directed():
            matrix[j, i] = matrix[i, j]
    np.fill_diagonal(matrix, 0.0)
    weights = [data["weight"] for _, _, data in graph.edges(data=True) if not plain]
    refuse_rounded("weights of edges", np.array(weights, np.float64), weights)
    return Columns(nodes, None, matrix, None)
