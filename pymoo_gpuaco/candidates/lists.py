"""Candidate lists by kind: which few edges of each city a search looks at."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray
from pymoo.core.problem import Problem

from pymoo_gpuaco import checks
from pymoo_gpuaco.candidates.alpha import alpha_lists, check_alpha
from pymoo_gpuaco.candidates.ascent import Ascent, ascend
from pymoo_gpuaco.candidates.listed import ListedInstance
from pymoo_gpuaco.candidates.nearest import nearest_by_coordinates, nearest_by_matrix
from pymoo_gpuaco.candidates.quadrant import has_quadrants, quadrant_lists
from pymoo_gpuaco.problems.instance import Instance, as_instance
from pymoo_gpuaco.problems.metrics import Metric

Kind = Literal["auto", "nearest", "quadrant", "alpha"]
_ALPHA_BASE = 10  # candidates a city, at least, from which those of least alpha are taken


class Candidates(NamedTuple):
    """k candidates of each of n cities; each row is sorted by (distance, id) and never holds the city itself."""

    ids: NDArray[np.int32]  # (n, k)
    distances: NDArray[np.float64]  # (n, k)


def listed_instance(problem: Problem, k: int, kind: str = "nearest") -> ListedInstance:
    """Turn a pymoo problem into an instance with lists, see `problems.instance.as_instance` and `with_lists`."""
    return with_lists(as_instance(problem), k, kind)


def with_lists(instance: Instance, k: int, kind: str = "nearest") -> ListedInstance:
    """Attach `k` candidates a city (k >= 1; at most n - 1 are listed) to an instance.

    kind : "nearest"; "quadrant": in the plane some of the nearest in every direction (`quadrant_lists`), elsewhere
        the nearest; or "alpha": those of least alpha (`alpha_lists`), for symmetric instances of up to
        `alpha.MOST_FOR_ALPHA` cities.

    Raises TypeError or ValueError where `k` or `kind` do not fit.
    """
    k = checks.integer("k", k, 1)
    checks.choice("kind", kind, ("nearest", "quadrant", "alpha"))
    if kind == "alpha":
        check_alpha(instance.symmetric, instance.n)
        found = by_alpha(with_lists(instance, k, "quadrant"), k)[1]
    else:
        if not has_quadrants(instance.metric, instance.coords):
            kind = "nearest"
        found = _listed(instance, kind, min(k, instance.n - 1))
    return ListedInstance(
        instance.metric,
        instance.coords,
        instance.matrix,
        instance.symmetric,
        instance.integral,
        found.ids,
        found.distances,
        kind,
        demands=instance.demands,
        form=instance.form,
    )


def lists(instance: ListedInstance, kind: Kind, k: int) -> Candidates:
    """Return `k` candidates a city (k >= 1; at most n - 1 are listed), the instance's own where they are these.

    kind : "nearest" the cities at least distance (by row where the matrix is asymmetric); "quadrant" see
        `quadrant.quadrant_lists`; "alpha" those of least `alpha.alpha_values` among twice as many, at least 10 a city,
        after an ascent of the default length (`ascent.ascend`); "auto" is "quadrant". Without a plane (a matrix, GEO,
        three dimensions) quadrants have no meaning, and for an asymmetric matrix neither has alpha: the nearest are
        listed.

    Raises ValueError or TypeError naming the parameter.
    """
    checks.choice("kind", kind, get_args(Kind))
    k = min(checks.integer("k", k, 1), instance.n - 1)
    if kind == "alpha" and instance.symmetric:
        return by_alpha(instance, k)[1]
    if kind in ("auto", "quadrant") and instance.listed == "quadrant" and k == instance.k:
        return Candidates(instance.neighbours, instance.neighbour_distances)
    if kind != "nearest" and has_quadrants(instance.metric, instance.coords):
        return _listed(instance, "quadrant", k)
    if k <= instance.k and instance.listed == "nearest":
        near = instance.neighbours[:, :k], instance.neighbour_distances[:, :k]
        return Candidates(np.ascontiguousarray(near[0]), np.ascontiguousarray(near[1]))
    return _listed(instance, "nearest", k)


def _listed(instance: Instance, kind: str, k: int) -> Candidates:
    """Find `k` <= n - 1 candidates a city, by quadrant (in the plane) or the nearest.

    Fewer where each city has a twin, which is no candidate. Cities do not list the dummy, which lies near all: it lists
    those that lie farthest from their neighbours.
    """
    form = instance.form
    if form is not None and form.doubled:
        return _of_twins(instance, k)
    if form is not None and form.has_dummy:
        found = _listed(
            replace(instance, coords=instance.real_coords, form=None), kind, min(k, instance.n - 2)
        )
        k = found.ids.shape[1]
        lonely = np.sort(np.argsort(-found.distances.sum(axis=1), kind="stable")[:k]).astype(np.int32)
        return Candidates(np.vstack([found.ids, lonely]), np.vstack([found.distances, np.zeros(k)]))
    if kind == "quadrant":
        return Candidates(*quadrant_lists(instance.metric, instance.coords, k))
    if instance.metric == Metric.EXPLICIT:
        return Candidates(*nearest_by_matrix(instance.matrix, k))
    return Candidates(*nearest_by_coordinates(Metric(instance.metric), instance.coords, k))


def _of_twins(instance: Instance, k: int) -> Candidates:
    """List of a city that is left those that are entered, and the other way round; see `Form.doubled`."""
    assert instance.form is not None
    matrix, units = instance.matrix, len(instance.matrix)
    k = min(k, units - 1)
    ids, distances = np.empty((2 * units, k), np.int32), np.empty((2 * units, k))
    for side, directed in ((1, matrix), (0, matrix.T)):
        near, lengths = nearest_by_matrix(directed, k)
        ids[side::2], distances[side::2] = 2 * near + (1 - side), np.minimum(lengths, instance.form.far)
    return Candidates(ids, distances)


def by_alpha(instance: ListedInstance, k: int, iterations: int | None = None) -> tuple[Ascent, Candidates]:
    """Return the ascent of `iterations`, see `ascent.ascend`, and the lists "alpha" that come from it."""
    base = lists(instance, "quadrant", max(2 * k, _ALPHA_BASE))
    ascent = ascend(instance, base.ids, iterations=iterations, bound=False)
    k = min(k, base.ids.shape[1])
    return ascent, Candidates(*alpha_lists(ascent, k).by_distance())
