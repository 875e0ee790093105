"""Candidate lists of each kind: the few edges of each city that a search considers."""

from __future__ import annotations

import math
from dataclasses import fields, replace
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from pymoo_gpuaco.candidates.ascent import Ascent, ascend
from pymoo_gpuaco.candidates.complete import LinkTree, heaviest_between, make_link_tree
from pymoo_gpuaco.candidates.listed import Candidates, ListedInstance
from pymoo_gpuaco.candidates.nearest import chained_nearest, chained_nearest_by_matrix, nearest_both_ways
from pymoo_gpuaco.candidates.one_tree import OneTree, find_one_tree
from pymoo_gpuaco.candidates.points import Copies, with_equal_rows
from pymoo_gpuaco.candidates.quadrant import has_quadrants
from pymoo_gpuaco.candidates.sparse import SparseGraph
from pymoo_gpuaco.problems.instance import Instance
from pymoo_gpuaco.problems.matrix import blocks
from pymoo_gpuaco.problems.metrics import Metric
from pymoo_gpuaco.runtime.compiled import Float64_1d, Float64_2d, Int32_1d, Int32_2d, Int64_1d, compiled
from pymoo_gpuaco.runtime.stop import Stop
from pymoo_gpuaco.runtime.threads import parallel_for, thread_count

Kind = Literal["auto", "nearest", "quadrant", "alpha"]
# Lists of doubled instances: maximum rounds, 1-trees of each, and the share of unchanged entries that ends the rounds.
_MOST_ROUNDS, _TREES_PER_ROUND, _EQUAL_SHARE = 5, 30, 0.7
# If a larger share of the edges of a shortest assignment is missing in the lists by least costs, its prices replace
# these. It is for flow shops and for whole costs below 20; the other kinds of Cirasella et al. miss fewer.
_MISSING = 0.25
# Factor on the prices of an assignment. Many edges have reduced cost 0; with a factor below 1 their lengths order them.
_PRICE_FACTOR = 0.99
_MOST_CANDIDATES = 1024  # maximum ``candidate_list_size``
_ALPHA_BASE = 10  # minimum candidates per city from which those of least alpha are chosen

MOST_FOR_ALPHA = 200_000
"""Maximum cities for candidates by alpha-nearness."""

MOST_ASSIGNED = 1_000
"""Maximum cities of an assignment: for a flow shop SciPy takes 0.6 s of a processor, without a look at the clock."""

# Tolerance of reduced costs relative to the largest number, a thousand times the rounding errors.
_ROUNDING = 1e-12

# Maximum rounds of shorter paths. No tested instance needed more than 65, and the bound holds after any number.
_PATH_ROUNDS = 200


def _most_as_near(matrix: NDArray[np.float64], k: int) -> int:
    """Return the maximum number of other cities at most as far from a city as its k-th nearest."""
    most = 0
    for rows in blocks(len(matrix)):
        block = matrix[rows].copy()
        block[np.arange(len(block)), np.arange(len(matrix))[rows]] = np.inf
        most = max(most, int((block <= np.partition(block, k - 1)[:, k - 1 : k]).sum(axis=1).max()))
    return most


def with_lists(
    instance: Instance,
    k: int,
    kind: str = "nearest",
    *,
    with_ties: bool = False,
    stop: Stop | None = None,
) -> ListedInstance:
    """Attach `k` candidates per city (k >= 1; at most n - 1 are listed) to an instance.

    kind : "nearest"; "quadrant": in the plane some of the nearest in every direction (`quadrant_lists`), elsewhere
        the nearest; or "alpha": those of least alpha (`alpha_lists`), for symmetric instances of up to
        `MOST_FOR_ALPHA` cities.
    with_ties : extends lists by a matrix to all cities as near as the k-th, up to 1024.
    stop : ends the improvement of lists "alpha" and of asymmetric instances early. Without it they are reproducible.
    """
    if with_ties and k < instance.n - 1 and instance.metric == Metric.EXPLICIT:
        k = max(k, min(_most_as_near(instance.matrix, k), _MOST_CANDIDATES))
    penalties, bound = None, 0.0
    if kind == "alpha":
        check_alpha(instance.symmetric, instance.n)
        found = by_alpha(with_lists(instance, k, "quadrant"), k, stop=stop)[1].in_order()
    else:
        if not has_quadrants(instance.metric, instance.coords):
            kind = "nearest"
        k = min(k, instance.n - 1)
        if instance.form is not None and instance.form.doubled:
            found, penalties, bound = _of_twins(instance, k, stop)
        else:
            found = _listed(instance, kind, k)
    return attached(instance, found, kind, penalties, bound)


def attached(
    instance: Instance,
    found: Candidates,
    kind: str,
    penalties: NDArray[np.float64] | None = None,
    bound: float = 0.0,
) -> ListedInstance:
    """Attach candidates of a kind to an instance, see `ListedInstance`."""
    own: dict[str, Any] = {own.name: getattr(instance, own.name) for own in fields(Instance)}
    own |= {"neighbours": found.ids, "neighbour_distances": found.distances}
    return ListedInstance(**own, listed=kind, penalties=penalties, bound=bound)


def lists(instance: ListedInstance, kind: Kind, k: int) -> Candidates:
    """Return `k` candidates per city (k >= 1; at most n - 1 are listed), those of the instance if they match.

    kind : "nearest": the cities at least distance (by row of an asymmetric matrix); "quadrant": see
        `quadrant.quadrant_lists`; "alpha": those of least `alpha_values` among twice as many, at least 10 per
        city, after an ascent of the default length (`ascent.ascend`); "auto": "quadrant". Quadrants are not defined
        outside the plane (a matrix, GEO, three dimensions), nor alpha for an asymmetric matrix: the nearest are listed.
    """
    k = min(k, instance.n - 1)
    if kind == "alpha" and instance.symmetric:
        return by_alpha(instance, k)[1].in_order()
    kind = "quadrant" if kind != "nearest" and has_quadrants(instance.metric, instance.coords) else "nearest"
    if kind == instance.listed and (k == instance.k or (k < instance.k and kind == "nearest")):
        near = instance.neighbours[:, :k], instance.neighbour_distances[:, :k]
        return Candidates(np.ascontiguousarray(near[0]), np.ascontiguousarray(near[1]))
    return _listed(instance, kind, k)


def near_cities(instance: ListedInstance, length: int) -> NDArray[np.int32]:
    """Return (n, length) ids: the city itself, then the nearest, ascending; short rows are padded with the city."""
    result = np.repeat(np.arange(instance.n, dtype=np.int32)[:, None], length, axis=1)
    if length > 1:
        near = lists(instance, "nearest", length - 1).ids
        result[:, 1 : 1 + near.shape[1]] = near
    return result


def _listed(instance: Instance, kind: str, k: int) -> Candidates:
    """Find `k` <= n - 1 candidates per city, by quadrant (in the plane) or the nearest.

    A doubled instance has fewer, since the twin of a city is no candidate. The dummy is at distance 0 from all cities
    and in no other list; its own list has the cities that are farthest from their neighbours.
    """
    form = instance.form
    if form is not None and form.doubled:
        return _of_twins(instance, k)[0]
    if form is not None and form.has_dummy:
        found = _listed(
            replace(instance, coords=instance.real_coords, form=None), kind, min(k, instance.n - 2)
        )
        k = found.ids.shape[1]
        lonely = np.sort(np.argsort(-found.distances.sum(axis=1), kind="stable")[:k]).astype(np.int32)
        return Candidates(np.vstack([found.ids, lonely]), np.vstack([found.distances, np.zeros(k)]))
    if instance.metric == Metric.EXPLICIT:
        return chained_nearest_by_matrix(instance.matrix, k)
    return chained_nearest(instance.metric, instance.coords, k, None if kind == "quadrant" else 0)


def _of_twins(
    instance: Instance, k: int, stop: Stop | None = None
) -> tuple[Candidates, NDArray[np.float64] | None, float]:
    """List cities to enter for each city to leave, and vice versa; see `Form.doubled`.

    Listed edges are short compared with the other edges at both ends. Sorted by length alone, a city that is cheap
    to enter would fill all lists, though a tour enters it once. The usual cost of an end is first its least cost,
    or its price in the shortest assignment if the lists by least costs miss that. Then it is the node penalty of an
    ascent, until the lists change little or ``stop`` has ended.

    Returns the lists, the initial node penalties (n,) of further ascents if they came from an assignment, and the lower
    bound of `_with_assignment`.
    """
    to_leave, to_enter = _least_costs(instance.matrix)
    copies = with_equal_rows(instance.matrix, np.flatnonzero(to_leave == 0.0))
    found = _cheap_for_both(instance, k, to_leave, to_enter, copies)
    if found.ids.shape[1] == 1:
        return found, None, 0.0
    penalties, bound = _with_assignment(instance, found.ids.shape[1], stop)
    if penalties is not None:
        found = _cheap_for_both(instance, k, -penalties[1::2], -penalties[0::2], copies)
    for _ in range(_MOST_ROUNDS):
        if stop is not None and stop.ended():
            break
        listed = attached(instance, found, "nearest", penalties)
        pi = ascend(listed, *found, iterations=_TREES_PER_ROUND, bound=False, stop=stop).pi
        before, found = found.ids, _cheap_for_both(instance, k, -pi[1::2], -pi[0::2], copies)
        same = (found.ids[:, :, None] == before[:, None, :]).any(axis=2).mean()
        if same >= _EQUAL_SHARE:
            break
    return found, penalties, bound


class Assignment(NamedTuple):
    """A successor of each of n cities with the least sum of lengths, and prices of the ends of edges.

    A tour is an assignment too. Reduced costs, of an edge minus the prices of its ends, are 0 for the edges of the
    assignment and >= 0 for all others, up to rounding.
    """

    successor: NDArray[np.int64]  # (n,) of each city, never itself
    to_leave: NDArray[np.float64]  # (n,) prices
    to_enter: NDArray[np.float64]  # (n,) prices, with the same mean as those of leaving
    bound: float  # lower bound of assignments and tours


def shortest_assignment(
    matrix: NDArray[np.float64], far: float, stop: Stop | None = None
) -> Assignment | None:
    """Return a shortest assignment, reproducibly; None if ``stop`` ends the search.

    SciPy finds the assignment. The prices are lengths of shortest paths between its edges.

    matrix : (n, n), row = from, no negative entries; n >= 2. The diagonal is ignored, and entries above ``far``,
        including infinite ones, count as ``far``.
    """
    from scipy.optimize import linear_sum_assignment

    n = len(matrix)
    costs = np.minimum(matrix, far)
    np.fill_diagonal(costs, np.inf)
    if stop is not None and stop.ended():
        return None
    successor = linear_sum_assignment(costs)[1]
    assigned = costs[np.arange(n), successor]
    rounding = _ROUNDING * float(np.abs(assigned).max())
    to_enter, lower = np.zeros(n), np.full(n, np.inf)
    for _ in range(min(n, _PATH_ROUNDS)):
        if not np.any(lower > rounding):
            break
        if stop is not None and stop.ended():
            return None
        to_leave = assigned - to_enter[successor]
        cheapest = np.minimum(to_enter, (costs - to_leave[:, None]).min(axis=0))
        lower, to_enter = to_enter - cheapest, cheapest
    least = (costs - to_enter).min(axis=1)
    largest = max(float(np.abs(part).max()) for part in (assigned, least, to_enter))
    bound = max(0.0, math.fsum([*least.tolist(), *to_enter.tolist()]) - n * _ROUNDING * largest)
    to_leave = assigned - to_enter[successor]
    shift = 0.5 * float(to_enter.mean() - to_leave.mean())
    return Assignment(successor, to_leave + shift, to_enter - shift, bound)


def _with_assignment(
    instance: Instance, k: int, stop: Stop | None
) -> tuple[NDArray[np.float64] | None, float]:
    """Return node penalties (n,) by the prices of a shortest assignment, and its lower bound of all tours.

    Above `MOST_ASSIGNED` cities, price a sample and extend its prices to all; this gives no bound. The penalties are
    None if lists of k by least costs have most edges of the assignment, and if ``stop`` ends the search.
    """
    assert instance.form is not None
    matrix, far, n = instance.matrix, instance.form.far, len(instance.matrix)
    m = min(n, MOST_ASSIGNED)
    sample = np.arange(m) * n // m
    part = np.minimum(matrix[np.ix_(sample, sample)], far)
    found = shortest_assignment(part, far, stop)
    if found is None:
        return None, 0.0
    bound = found.bound if m == n else 0.0
    if _missing(part, found.successor, k) <= _MISSING:
        return None, bound
    to_leave, to_enter = np.empty(n), np.full(n, np.inf)
    for rows in blocks(n):
        costs = np.minimum(matrix[rows], far)
        costs[np.arange(len(costs)), np.arange(n)[rows]] = np.inf
        to_leave[rows] = (costs[:, sample] - found.to_enter).min(axis=1)
        to_enter = np.minimum(to_enter, (costs - to_leave[rows, None]).min(axis=0))
    penalties = np.empty(2 * n)
    penalties[0::2], penalties[1::2] = -_PRICE_FACTOR * to_enter, -_PRICE_FACTOR * to_leave
    return penalties, bound


def _missing(matrix: NDArray[np.float64], successor: NDArray[np.int64], k: int) -> float:
    """Return the share of the edges of an assignment that are in neither list of k by least costs of their ends."""
    to_leave, to_enter = _least_costs(matrix)
    by_row, by_column = matrix - to_enter, (matrix - to_leave[:, None])[:, successor]
    np.fill_diagonal(by_row, np.inf)
    by_column[successor, np.arange(len(matrix))] = np.inf  # from a city to itself
    city = np.arange(len(matrix))
    before = (by_row < by_row[city, successor][:, None]).sum(axis=1)
    beside = (by_column < by_column[city, city]).sum(axis=0)
    return float(((before >= k) & (beside >= k)).mean())


def _cheap_for_both(
    instance: Instance,
    k: int,
    to_leave: NDArray[np.float64],
    to_enter: NDArray[np.float64],
    copies: Copies,
) -> Candidates:
    """List edges by their length minus the usual costs to leave one end and to enter the other, both (n,)."""
    assert instance.form is not None
    matrix, units = instance.matrix, len(instance.matrix)
    k = min(k, units - 1)
    ids, distances = np.empty((2 * units, k), np.int32), np.empty((2 * units, k))
    cities = copies.cities
    both = nearest_both_ways(
        matrix,
        cities,
        cities,
        np.arange(len(cities), dtype=np.int32),
        min(k, len(cities) - 1),
        np.ascontiguousarray(to_leave[cities]),
        np.ascontiguousarray(to_enter[cities]),
    )
    # a tour enters a group of copies at its first city and leaves it at the last one
    entered, left = copies.chained(both[0].ids, k), copies.backward.chained(both[1].ids, k)
    for side, near, directed in ((1, entered, matrix), (0, left, matrix.T)):
        ids[side::2] = 2 * near + (1 - side)
        distances[side::2] = np.minimum(np.take_along_axis(directed, near, axis=1), instance.form.far)
    return Candidates(ids, distances)


def _least_costs(matrix: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the minimum of each row (n,), the least cost to leave a city, and of each column of the rest (n,).

    The rest is the matrix minus the row minima. Forbidden edges are ignored; a city with only these has cost 0.
    """
    n = len(matrix)
    to_leave, to_enter = np.empty(n), np.full(n, np.inf)
    for rows in blocks(n):
        block = matrix[rows].copy()
        block[np.arange(len(block)), np.arange(n)[rows]] = np.inf
        least = block.min(axis=1)
        to_leave[rows] = np.where(np.isinf(least), 0.0, least)
        to_enter = np.minimum(to_enter, (block - to_leave[rows, None]).min(axis=0))
    return to_leave, np.where(np.isinf(to_enter), 0.0, to_enter)


def by_alpha(
    instance: ListedInstance,
    k: int,
    iterations: int | None = None,
    stop: Stop | None = None,
    base: Candidates | None = None,
) -> tuple[Ascent, Candidates]:
    """Return the ascent of `iterations` or until `stop`, see `ascent.ascend`, and lists by alpha from it.

    base : lists of which they are a part; None: by quadrant.
    """
    base = lists(instance, "quadrant", max(2 * k, _ALPHA_BASE)) if base is None else base
    ascent = ascend(instance, *base, iterations=iterations, bound=False, stop=stop)
    return ascent, alpha_lists(ascent, min(k, base.ids.shape[1]))


def check_alpha(symmetric: bool, n: int) -> None:
    """Raise ValueError if candidates by alpha-nearness are not defined or would take too long."""
    if not symmetric:
        raise ValueError("candidates='alpha' requires a symmetric instance; use candidates='nearest'")
    if n > MOST_FOR_ALPHA:
        raise ValueError(
            f"candidates='alpha' allows at most {MOST_FOR_ALPHA} cities, got {n}; use candidates='quadrant'"
        )


def alpha_values(graph: SparseGraph, pi: NDArray[np.float64], tree: OneTree) -> NDArray[np.float64]:
    """Return the alpha (m,) of every edge under penalties `pi` (n,), in O(m log n).

    It is the increase of the minimum 1-tree if an edge must be in it. After an ascent, five edges of least alpha
    contain the optimal tour about as well as ten or more of the shortest edges (Helsgaun, "An effective implementation
    of the Lin-Kernighan traveling salesman heuristic", European Journal of Operational Research 126, 2000).

    ``tree`` : workspace for the 1-tree of the graph.

    Alpha is the weight of the edge minus that of the heaviest edge it replaces: on the path between its ends in the
    spanning tree, or the second edge of the special leaf (Helsgaun 2000, section 4.1).
    """
    find_one_tree(pi, tree)
    weight = graph.length + (pi[graph.u] + pi[graph.v])
    links = make_link_tree(graph.u[tree.tree], graph.v[tree.tree], weight[tree.tree])
    alphas = np.empty(len(weight))
    leaf, second = int(tree.extra[0]), weight[tree.extra[1]]
    parallel_for(
        lambda _, *part: _alphas(graph, weight, links, leaf, second, alphas, *part),
        len(weight),
        thread_count(),
    )
    return alphas


@compiled
def _alphas(
    graph: SparseGraph,
    weight: Float64_1d,
    links: LinkTree,
    leaf: int,
    second: float,
    alphas: Float64_1d,
    first: int,
    last: int,
) -> None:
    """Write alpha of edges first .. last-1; ``second`` is the weight of the leaf's second edge."""
    for e in range(first, last):
        u, v = graph.u[e], graph.v[e]
        replaced = second if leaf in (u, v) else links.weight[heaviest_between(links, u, v)]
        alphas[e] = max(0.0, weight[e] - replaced)  # the leaf's first edge is lighter than its second


def alpha_lists(ascent: Ascent, k: int) -> Candidates:
    """Return the `k` edges of least alpha of each city, sorted by (alpha, distance, id), after an ascent.

    k : at most the minimum number of edges of a city in that graph.
    """
    graph = ascent.graph
    n, m = graph.n, len(graph.u)
    ends = np.concatenate([graph.u, graph.v])
    incident = csr_array((np.ones(2 * m, bool), (ends, np.tile(np.arange(m), 2))), shape=(n, m))
    alphas = alpha_values(graph, ascent.pi, ascent.tree)
    alphas[graph.stays] = np.inf  # fixed edges are no candidates
    lists, least = Candidates(np.empty((n, k), np.int32), np.empty((n, k))), np.empty((n, k))
    edges = incident.indptr.astype(np.int64), incident.indices.astype(np.int32)
    parallel_for(
        lambda _, *part: _least_of_city(graph, *edges, alphas, *lists, least, *part), n, thread_count()
    )
    return lists


@compiled
def _least_of_city(
    graph: SparseGraph,
    first: Int64_1d,
    edge: Int32_1d,
    alphas: Float64_1d,
    ids: Int32_2d,
    distances: Float64_2d,
    least: Float64_2d,
    low: int,
    high: int,
) -> None:
    """Write the first edges of cities low .. high-1 by (alpha, distance, id), and their alphas to ``least``."""
    k = ids.shape[1]
    for i in range(low, high):
        for s in range(first[i + 1] - first[i]):
            e = edge[first[i] + s]
            j = graph.v[e] if graph.u[e] == i else graph.u[e]
            a, d = alphas[e], graph.length[e]
            t = min(s, k)
            while t > 0:
                b, c = least[i, t - 1], distances[i, t - 1]
                if b < a or (b == a and (c < d or (c == d and ids[i, t - 1] < j))):
                    break
                if t < k:
                    ids[i, t], distances[i, t], least[i, t] = ids[i, t - 1], c, b
                t -= 1
            if t < k:
                ids[i, t], distances[i, t], least[i, t] = j, d, a
