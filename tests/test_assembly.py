"""Edge assembly: its parts against slow references, and what it must keep to on any instance."""

from __future__ import annotations

import time
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pymoo_gpuaco.candidates.graph import make_graph
from pymoo_gpuaco.candidates.lists import listed_instance
from pymoo_gpuaco.exchange import assemble, assembly, merge
from pymoo_gpuaco.host.philox import STREAM_ASSEMBLY, new_stream
from pymoo_gpuaco.host.stop import Stop
from pymoo_gpuaco.problems import TSP
from tests.engine_cases import INSTANCES, cloud
from tests.test_exchange import edges_of

SYMMETRIC = {name: p for name, p in INSTANCES.items() if p.symmetric}


def graph_of(problem, k=8):
    return make_graph(listed_instance(problem, k), table=False)


def random_tours(n, count, seed=0):
    rng = np.random.default_rng(seed)
    return np.array([rng.permutation(n) for _ in range(count)], np.int32)


def two_opt(problem, tour):
    """A tour that no exchange of two edges shortens, found slowly."""
    n, D = len(tour), problem.D
    tour, better = list(tour), True
    while better:
        better = False
        for i in range(n - 1):
            for j in range(i + 2, n - (i == 0)):
                a, b, c, d = tour[i], tour[i + 1], tour[j], tour[(j + 1) % n]
                if D[a, b] + D[c, d] > D[a, c] + D[b, d] + 1e-9:
                    tour[i + 1 : j + 1] = tour[i + 1 : j + 1][::-1]
                    better = True
    return np.array(tour, np.int32)


def cycles_of(tour, other, seed=1):
    """AB-cycles as lists of cities."""
    n = len(tour)
    room = assembly.make_room(n)
    room.order[:] = tour
    room.beside[tour, 0], room.beside[tour, 1] = np.roll(tour, 1), np.roll(tour, -1)
    room.place[other] = np.arange(n)
    assembly._find_difference(other, room)
    found = assembly._find_cycles(new_stream(np.uint64(seed), 0, STREAM_ASSEMBLY), room)
    return [room.cycles[room.first[c] : room.first[c + 1]].tolist() for c in range(found)]


def edges_by_turns(cycle):
    """Edges of A and of B of an AB-cycle."""
    pairs = [frozenset(pair) for pair in zip(cycle, cycle[1:] + cycle[:1], strict=True)]
    return pairs[::2], pairs[1::2]


class TestCycles:
    @pytest.mark.parametrize("n", [3, 4, 5, 6, 9, 40, 300])
    @pytest.mark.parametrize("seed", range(4))
    def test_they_alternate_and_have_every_edge_of_the_difference_once(self, n, seed):
        tour, other = random_tours(n, 2, seed)
        mine, theirs = edges_of(tour), edges_of(other)
        ours, news = Counter(), Counter()
        for cycle in cycles_of(tour, other):
            assert len(cycle) % 2 == 0
            a, b = edges_by_turns(cycle)
            ours.update(a)
            news.update(b)
        assert ours == Counter(mine - theirs)
        assert news == Counter(theirs - mine)

    def test_equal_tours_have_none(self):
        tour = random_tours(30, 1)[0]
        assert cycles_of(tour, np.roll(tour, 7)[::-1].copy()) == []

    def test_two_reversals_far_apart_are_two_cycles(self):
        tour = np.arange(40, dtype=np.int32)
        other = tour.copy()
        other[3:7], other[20:30] = other[3:7][::-1].copy(), other[20:30][::-1].copy()
        cycles = sorted(sorted(cycle) for cycle in cycles_of(tour, other))
        assert cycles == [[2, 3, 6, 7], [19, 20, 29, 30]]

    def test_chance_parts_the_difference_in_different_ways(self):
        tour, other = random_tours(60, 2)
        ways = {frozenset(frozenset(cycle) for cycle in cycles_of(tour, other, seed)) for seed in range(5)}
        assert len(ways) > 1


class TestSubtours:
    """On 0, 1, .., 11: stretches 0-2, 3-5, 6-8 and 9-11 are joined anew."""

    @staticmethod
    def applied(cycle):
        room = assembly.make_room(12)
        tour = np.arange(12, dtype=np.int32)
        room.order[:] = room.place[:] = tour
        room.cycles[: len(cycle)] = cycle
        stretches = assembly._cut(room, 0, len(cycle))
        subtours = assembly._find_subtours(room, 0, len(cycle), stretches)
        return stretches, sorted(room.size[:subtours].tolist()), room.cuts[:stretches].tolist()

    def test_a_reversal_is_one_tour(self):
        assert self.applied([2, 3, 6, 5]) == (2, [12], [2, 5])  # out 2-3 and 5-6, in 3-6 and 5-2

    def test_two_edges_joined_the_other_way_are_two(self):
        assert self.applied([2, 3, 5, 6]) == (2, [3, 9], [2, 5])  # 3-5 is closed

    def test_every_stretch_alone(self):
        assert self.applied([3, 2, 0, 11, 9, 8, 6, 5]) == (4, [3, 3, 3, 3], [2, 5, 8, 11])

    def test_a_city_alone_between_two_cuts_has_both_its_ends_free(self):
        # out 2-3, 3-4 and 7-8, in 3-7, 3-8 and 2-4: city 3 moves between 7 and 8
        assert self.applied([2, 3, 7, 8, 3, 4]) == (3, [12], [2, 3, 7])


class TestTakingOver:
    def test_each_tour_gets_what_the_other_one_does_better(self):
        """A ring of 60 cities; each tour has it wrong in a place of its own."""
        angle = np.arange(60) * 2 * np.pi / 60
        problem = TSP(np.column_stack([np.cos(angle), np.sin(angle)]) * 1e4)
        ring = np.arange(60, dtype=np.int32)
        one, other = ring.copy(), ring.copy()
        one[10:14], other[40:45] = one[10:14][::-1].copy(), other[40:45][::-1].copy()
        for tour in assemble(graph_of(problem), np.array([one, other]), 1):
            assert edges_of(tour) == edges_of(ring)

    def test_gains_are_exact_and_what_falls_apart_is_joined_again(self):
        problem = cloud(120, 3)
        graph = graph_of(problem)
        tours = np.array([two_opt(problem, tour) for tour in random_tours(120, 6, 5)])
        room, new_edges = assembly.make_room(120), set()
        for a in range(6):
            for b in range(6):
                before = problem.tour_length(tours[a])
                stream = new_stream(np.uint64(3), 6 * a + b, STREAM_ASSEMBLY)
                gain = assembly._take_over(graph, tours[a], tours[b], stream, room, np.zeros(1, np.uint8))
                assert problem.tour_length(room.order) == before - gain
                assert np.array_equal(np.sort(room.order), np.arange(120))
                assert np.array_equal(room.place[room.order], np.arange(120))
                new_edges |= edges_of(room.order) - edges_of(tours[a]) - edges_of(tours[b])
        assert new_edges  # that neither has: subtours were joined by them

    @pytest.mark.parametrize(
        ("cycle", "gain"), [([2, 3, 4, 5], 0.0), ([2, 3, 5, 4], 0.0), ([2, 3, 6, 5], 16.0)]
    )
    def test_edges_that_others_have_taken_or_put_in_are_left(self, cycle, gain):
        """On 0, 1, .., 11 with 2-3, 3-4, 4-5 and 5-6 of length 9, all others 1; what gains nothing leaves no trace."""
        D = np.ones((12, 12)) - np.eye(12)
        for i in (2, 3, 4, 5):
            D[i, i + 1] = D[i + 1, i] = 9.0
        room, tour = assembly.make_room(12), np.arange(12, dtype=np.int32)
        room.order[:] = room.place[:] = tour
        room.beside[:, 0], room.beside[:, 1] = np.roll(tour, 1), np.roll(tour, -1)
        room.cycles[:4] = cycle
        if cycle == [2, 3, 5, 4]:  # 3-5 and 4-2 come for 2-3 and 5-4; but 2-3 is gone
            room.order[:] = room.place[:] = [1, 0, *range(3, 12), 2]
            room.place[room.order] = tour
        before = room.order.copy(), room.beside.copy()
        assert assembly._try_cycle(graph_of(TSP(matrix=D), 11), room, 0, 4) == gain
        assert (np.array_equal(room.order, before[0]) and np.array_equal(room.beside, before[1])) == (
            gain == 0.0
        )

    @pytest.mark.parametrize("unit", [2.0**-30, 1.0, 2.0**30])
    @pytest.mark.parametrize(
        ("cycle", "out", "into", "taken"),
        [
            ([2, 3, 6, 5], (0.3, 0.4), (0.1, 0.6), False),
            ([2, 3, 6, 5], (0.3 + 1e-6, 0.4), (0.1, 0.6), True),
            # leaves 3-5 alone, which is best joined as it was; all other edges are too long
            ([2, 3, 5, 6], (0.1, 0.4), (0.2, 0.1), False),
        ],
    )
    def test_what_is_only_rounding_is_no_gain(self, cycle, out, into, taken, unit):
        """In tenths the first and the last gain 0, in doubles 3e-17."""
        tour = np.arange(12, dtype=np.int32)
        D = 10.0 * (1 - np.eye(12))
        D[tour, tour - 1] = D[tour - 1, tour] = 1.0
        for i, length in enumerate((out[0], into[0], out[1], into[1])):
            D[cycle[i - 3], cycle[i]] = D[cycle[i], cycle[i - 3]] = length
        room = assembly.make_room(12)
        room.order[:] = room.place[:] = tour
        room.beside[:, 0], room.beside[:, 1] = np.roll(tour, 1), np.roll(tour, -1)
        room.cycles[:4] = cycle
        gain = assembly._try_cycle(graph_of(TSP(matrix=D * unit), 11), room, 0, 4)
        assert (gain > 0.0) == taken != np.array_equal(room.order, tour)

    @pytest.mark.parametrize("seed", range(20))
    def test_the_smallest_subtour_is_joined_by_the_best_exchange_of_two_edges(self, seed):
        problem = cloud(14, seed)
        D, room, tour = problem.D, assembly.make_room(14), np.arange(14, dtype=np.int32)
        room.order[:] = room.place[:] = tour
        room.beside[:, 0], room.beside[:, 1] = np.roll(tour, 1), np.roll(tour, -1)
        cycle = [3, 2, 0, 13, 9, 8, 6, 5]  # leaves 0-2, 3-5, 6-8 and 9-13 alone
        room.cycles[: len(cycle)] = cycle
        stretches = assembly._cut(room, 0, len(cycle))
        subtours = assembly._find_subtours(room, 0, len(cycle), stretches)
        touched = assembly._exchange(room, 0, len(cycle))
        beside = room.beside.copy()
        inside = {city for city in range(14) if room.subtour[assembly._stretch(room, stretches, city)] == 0}
        assert len(inside) == 3  # the first of the smallest
        graph = graph_of(problem, 5)
        gains = [
            D[u, a] + D[v, b] - D[u, v] - D[a, b]
            for u in inside
            for v in set(graph.neighbours[u].tolist()) - inside
            for a in beside[u]
            for b in beside[v]
        ]
        gain = assembly._join_smallest(graph, room, stretches, subtours, touched)
        assert gain == max(gains)
        before, after = (
            sum(D[city, other] for city in range(14) for other in pair[city]) / 2
            for pair in (beside, room.beside)
        )
        assert after == before - gain
        seen, city, previous = set(), next(iter(inside)), -1
        while city not in seen:
            seen.add(city)
            onward = next(c for c in room.beside[city] if c != previous)
            previous, city = city, int(onward)
        assert inside < seen < set(range(14))

    def test_it_does_more_than_merging_components(self):
        problem = cloud(400, 8)
        instance = listed_instance(problem, 8)
        tours = np.array([two_opt(problem, tour) for tour in random_tours(400, 6, 2)])
        merged = tours[problem.tour_lengths(tours).argmin()]
        for tour in tours:
            merged, _ = merge(merged, tour, instance.distance)
        assembled = assemble(make_graph(instance), tours, 1)
        assert problem.tour_lengths(assembled).min() < 0.98 * problem.tour_length(merged)

    @pytest.mark.parametrize("name", SYMMETRIC)
    def test_tours_stay_tours_and_none_gets_longer(self, name):
        problem = SYMMETRIC[name]
        tours = random_tours(problem.n_cities, 7, 1)
        given = tours.copy()
        assembled = assemble(graph_of(problem, min(8, problem.n_cities - 1)), tours, 5)
        assert np.array_equal(tours, given)
        assert assembled.dtype == np.int32
        before, after = problem.tour_lengths(tours), problem.tour_lengths(assembled)
        assert np.all(after <= before * (1 + 1e-12))
        for tour in assembled:
            assert np.array_equal(np.sort(tour), np.arange(problem.n_cities))
        if len(np.unique(before)) > 1:
            assert after.sum() < before.sum()

    @given(st.integers(3, 40), st.integers(1, 5), st.integers(0, 2**64 - 1), st.booleans())
    @settings(max_examples=60, deadline=None)
    def test_any_tours_on_a_lattice(self, n, m, key, same):
        problem = TSP(np.column_stack([np.arange(n) % 6, np.arange(n) // 6]), "EUC_2D")
        tours = random_tours(n, m, key % 1000)
        if same:
            tours[:] = tours[0]
        assembled = assemble(graph_of(problem, 4), tours, key)
        assert np.array_equal(np.sort(assembled, axis=1), np.tile(np.arange(n), (m, 1)))
        assert np.all(problem.tour_lengths(assembled) <= problem.tour_lengths(tours))
        if same:
            assert np.array_equal(assembled, tours)


def test_the_key_decides_and_the_number_of_threads_does_not(monkeypatch):
    problem = cloud(300, 4)
    graph, tours = graph_of(problem), random_tours(300, 9)
    results = {}
    for threads in ("1", "2", "7"):
        monkeypatch.setenv("PYMOO_GPUACO_THREADS", threads)
        results[threads] = assemble(graph, tours, 2**63)
    assert np.array_equal(results["1"], results["2"])
    assert np.array_equal(results["1"], results["7"])
    assert not np.array_equal(results["1"], assemble(graph, tours, 3))


@pytest.mark.parametrize(("place", "city"), [(0, 60), (59, -1), (3, None)])
def test_what_is_no_tour_is_refused(place, city):
    tours = random_tours(60, 3)
    tours[1, place] = tours[1, 4] if city is None else city
    with pytest.raises(ValueError, match=r"tours: row 1 is not a permutation of 0\.\.59"):
        assemble(graph_of(cloud(60)), tours, 1)


def test_nothing_is_taken_over_once_the_flag_is_up():
    tour, other = random_tours(60, 2)
    room, stream = assembly.make_room(60), new_stream(np.uint64(1), 0, STREAM_ASSEMBLY)
    stop = np.ones(1, np.uint8)
    assert assembly._take_over(graph_of(cloud(60)), tour, other, stream, room, stop) == 0.0
    assert np.array_equal(room.order, tour)
    stop[0] = 0
    assert assembly._take_over(graph_of(cloud(60)), tour, other, stream, room, stop) > 0.0


def test_it_ends_when_time_is_over():
    problem = cloud(2000, 4)
    graph, tours, over = graph_of(problem), random_tours(2000, 4), Stop()
    over.until = time.monotonic() - 1.0
    assembled = assemble(graph, tours, 1, over)
    assert np.array_equal(np.sort(assembled, axis=1), np.tile(np.arange(2000), (4, 1)))
    in_time = assemble(graph, tours, 1)
    assert problem.tour_lengths(in_time).sum() < problem.tour_lengths(assembled).sum()
