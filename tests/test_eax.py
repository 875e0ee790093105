"""Genetic edge assembly, its parts: AB-cycles, stretches and children against slow references."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from pymoo_gpuaco.memetic import ab_cycles, child, stretches
from pymoo_gpuaco.problems import TSP
from tests.eax_cases import children_of, find, good_tours, graph_of, positions_of
from tests.engine_cases import cloud
from tests.test_assembly import edges_by_turns
from tests.tour_cases import edges_of, random_tours


class TestCycles:
    @pytest.mark.parametrize("n", [3, 4, 5, 6, 9, 40, 300])
    @pytest.mark.parametrize("seed", range(3))
    def test_they_alternate_and_have_every_edge_of_the_difference_once(self, n, seed):
        a, b = random_tours(n, 2, seed)
        ours, theirs = Counter(), Counter()
        for cycle in find(a, b, seed)[0]:
            assert len(cycle) % 2 == 0
            out, into = edges_by_turns(cycle)
            ours.update(out)
            theirs.update(into)
        assert ours == Counter(edges_of(a) - edges_of(b))
        assert theirs == Counter(edges_of(b) - edges_of(a))

    def test_nothing_is_left_behind(self):
        a, b, d = random_tours(200, 3)
        _, workspace = find(a, b)
        assert not workspace.unused.any()
        assert np.all(workspace.left_at == -1)
        assert find(d, b, workspace=workspace)[0] == find(d, b)[0]  # the workspace is as good as new


class TestStretches:
    """On 0, 1, .., 11: stretches 0-2, 3-5, 6-8 and 9-11 are joined again."""

    @pytest.mark.parametrize("n", [3, 4, 7, 60])
    @pytest.mark.parametrize("seed", range(4))
    def test_any_tour_is_laid_out_from_any_other(self, n, seed):
        a, b = random_tours(n, 2, seed)
        out, into = edges_of(a) - edges_of(b), edges_of(b) - edges_of(a)
        removed, added = (np.array([sorted(e) for e in s], np.int32).reshape(-1, 2) for s in (out, into))
        order, position = a.copy(), positions_of(a)
        stretches.lay_out(order, position, removed, added, len(out), stretches.make_stretches(n, n))
        assert edges_of(order) == edges_of(b)
        assert np.array_equal(position[order], np.arange(n))


class TestChildren:
    @pytest.mark.parametrize("seed", range(6))
    @pytest.mark.parametrize("good", [False, True])
    def test_each_is_a_tour_and_its_gain_is_exact(self, seed, good):
        problem = cloud(90, seed)
        a, b = good_tours(problem, 2, seed) if good else random_tours(90, 2, seed)
        made, of_neither = 0, 0
        for gain, w in children_of(problem, a, b, seed):
            if gain == child.REFUSED:
                continue
            made += 1
            count = w.counts[0]
            assert count == w.counts[1]
            out, into = (set(map(frozenset, e[:count].tolist())) for e in (w.removed, w.added))
            assert len(out) == len(into) == count
            assert out <= edges_of(a)
            assert not into & edges_of(a)
            of_neither += len(into - edges_of(b))
            order, position = a.copy(), positions_of(a)
            stretches.lay_out(order, position, w.removed, w.added, count, w.stretches)
            assert np.array_equal(np.sort(order), np.arange(90))
            assert edges_of(order) == edges_of(a) - out | into
            assert problem.tour_length(a) - problem.tour_length(order) == gain
        assert made > 3
        assert good or of_neither > 0  # subtours were joined

    @pytest.mark.parametrize(
        ("n", "size", "k", "seed", "reach"),
        [(14, 3, k, seed, 14) for k in (2, 5) for seed in range(12)]
        + [(1999, 999, 5, 1, 1999)]
        + [(200, 90, 8, seed, reach) for seed in range(4) for reach in (2, 10, 44, 45)],
    )
    def test_the_smallest_subtour_is_joined_by_the_best_exchange_of_its_cities(self, n, size, k, seed, reach):
        """0 .. n-1 falls apart after ``size`` cities: any candidate of them outside, either neighbour of both.

        They are all cities of a short tour, and those near the ends of its stretches of a long one.
        """
        problem = cloud(n, seed)
        graph, tour, last = graph_of(problem, k), np.arange(n, dtype=np.int32), size - 1
        c, w = ab_cycles.make_cycles(n), child.make_child(n, 14)
        assert w.reach == n
        w = w._replace(reach=reach)
        c.cities[:4], c.first[1] = [size, last, 0, n - 1], 4
        beside = {city: {(city - 1) % n, (city + 1) % n} for city in range(n)}
        beside.update({last: {last - 1, 0}, 0: {1, last}, size: {n - 1, size + 1}, n - 1: {n - 2, size}})
        D = problem.D
        gains = [
            D[u, a] + D[v, b] - D[u, v] - D[a, b]
            for u in sorted({*range(min(reach, size)), *range(max(size - reach, 0), size)})
            for v in graph.neighbours[u].tolist()
            if v >= size
            for a in beside[u]
            for b in beside[v]
        ]
        chosen = np.zeros(1, np.int64)
        gain = child.breed(graph, 1.0, graph.neighbours, tour, tour.copy(), c, chosen, 1, w)
        if gains:
            falls_apart = D[last, size] + D[n - 1, 0] - D[last, 0] - D[n - 1, size]
            assert gain == falls_apart + max(gains)
        else:
            assert gain == child.REFUSED

    def test_an_edge_that_comes_back_is_no_change(self):
        """A square ring of 4 + 4 cities falls apart into its halves; the best way to join them is as they were."""
        x = [0, 1, 2, 3, 3, 2, 1, 0]
        problem = TSP(np.column_stack([np.array(x) * 10, [0] * 4 + [10] * 4]))
        graph, tour = graph_of(problem, 7), np.arange(8, dtype=np.int32)
        c, w = ab_cycles.make_cycles(8), child.make_child(8, 8)
        c.cities[:4], c.first[1] = [1, 2, 5, 6], 4  # out 1-2 and 5-6, in 2-5 and 6-1
        gain = child.breed(graph, 1.0, graph.neighbours, tour, tour.copy(), c, np.zeros(1, np.int64), 1, w)
        assert gain == 0
        assert w.counts[0] == w.counts[1]
        order, position = tour.copy(), tour.copy()
        stretches.lay_out(order, position, w.removed, w.added, w.counts[0], w.stretches)
        assert problem.tour_length(order) == problem.tour_length(tour) == 80

    def test_refused_where_no_candidate_lies_outside_or_too_much_changes(self):
        far = np.array([[0, 0], [0, 1], [1, 0], [900, 0], [900, 1], [901, 0]])
        problem = TSP(far)
        graph, tour = graph_of(problem, 2), np.array([0, 1, 2, 3, 4, 5], np.int32)
        c, w = ab_cycles.make_cycles(6), child.make_child(6, 6)
        c.cities[:4], c.first[1] = [3, 2, 0, 5], 4  # two triangles
        one = np.zeros(1, np.int64)
        assert child.breed(graph, 1.0, graph.neighbours, tour, tour.copy(), c, one, 1, w) == child.REFUSED
        assert np.all(w.row == -1)
        more = graph_of(problem, 5).neighbours
        assert child.breed(graph, 1.0, more, tour, tour.copy(), c, one, 1, w) > 0
        for most in (1, 5):  # space for one edge; for two, but not for those of the joint
            w = child.make_child(6, most)
            assert child.breed(graph, 1.0, more, tour, tour.copy(), c, one, 1, w) == child.REFUSED
        # a reversal, 0 1 3 2 4 5: in whole units 1 and 1 go, 900 and 899 come
        c.cities[:4] = [1, 2, 4, 3]
        for most, refused in ((1, True), (2, False)):
            w = child.make_child(6, most)
            gain = child.breed(graph, 1.0, more, tour, tour.copy(), c, one, 1, w)
            assert gain == (child.REFUSED if refused else 1 + 1 - 900 - 899)


def test_a_walk_has_room_for_every_edge_of_two_tours_that_share_none():
    """The ring and the star of five cities: a walk that closes with its tenth edge alone has met eleven cities."""
    ring, star = np.arange(5, dtype=np.int32), np.array([0, 2, 4, 1, 3], np.int32)
    met = set()
    for seed in range(60):
        c = ab_cycles.make_cycles(5)
        c.path[:] = -1
        find(ring, star, seed, workspace=c)
        met.add(int((c.path >= 0).sum()))
    assert max(met) == len(c.path) == 11
