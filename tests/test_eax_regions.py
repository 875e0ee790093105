"""Genetic edge assembly of long tours: a child takes what is chosen in each region of its parent."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from pymoo_gpuaco.memetic import ab_cycles, child, entropy, offspring
from pymoo_gpuaco.memetic.eax import evolve
from pymoo_gpuaco.problems import TSP
from tests.eax_cases import (
    evolved,
    find,
    generations,
    good_tours,
    graph_of,
    make_regions,
    positions_of,
    stream_of,
)
from tests.engine_cases import cloud
from tests.instances import listed_instance
from tests.test_eax_choosing import choose, family_of
from tests.tour_cases import edges_of, random_tours


@pytest.fixture
def small(monkeypatch):
    """Regions of 25 cities."""
    monkeypatch.setattr(ab_cycles, "REGION", 25)


class TestParts:
    @pytest.mark.parametrize("shift", [0, 1, 17, 99])
    def test_a_cycle_belongs_where_its_first_edge_lies(self, small, shift):
        a, b = random_tours(100, 2, shift)
        cycles, c = find(a, b)
        parted, position = make_regions(100), positions_of(a)
        ab_cycles.assign_regions(position, c, len(cycles), shift, parted)
        expected = []
        for u, v, *_ in cycles:
            at = next(p for p in range(100) if {a[p], a[(p + 1) % 100]} == {u, v})
            expected.append((at + shift) % 100 // 25)
        assert parted.of[: len(cycles)].tolist() == expected
        assert parted.first.tolist() == [sum(of < r for of in expected) for r in range(5)]
        by_hand = sorted(range(len(cycles)), key=lambda cycle: expected[cycle])
        assert parted.cycles[: len(cycles)].tolist() == by_hand
        out, backwards = np.zeros(100, np.int64), np.arange(len(cycles))[::-1].copy()
        ab_cycles.sort_by_region(backwards, len(cycles), parted, out)
        by_hand = sorted(backwards.tolist(), key=lambda cycle: expected[cycle])
        assert out[: len(cycles)].tolist() == by_hand


class TestChoosing:
    @pytest.mark.parametrize("seed", range(4))
    def test_the_best_of_each_region_go_together(self, small, seed):
        """Child by child: among the cycles of each region, the one that gains most for the entropy it costs."""
        problem = cloud(200, seed)
        graph, tours = graph_of(problem), good_tours(problem, 4, seed)
        positions, most = np.array([positions_of(tour) for tour in tours]), 5
        table, c = entropy.count_edges(tours), ab_cycles.make_cycles(200)
        stream, w, parted = stream_of(seed), child.make_child(200, 200), make_regions(200)
        found = ab_cycles.find_cycles(tours[0], positions[0], tours[1], positions[1], stream, c)
        ab_cycles.assign_regions(positions[0], c, found, offspring.next_below(stream, 200), parted)
        best, looked_at = {}, 0
        for r in range(8):
            worths = {}
            cycles = parted.cycles[parted.first[r] : parted.first[r + 1]]
            for cycle in [i for i in cycles if child.cycle_gain(graph, 1.0, c, i) > 0][:most]:
                ends = tours[0], positions[0], c, np.array([cycle]), 1
                gain = child.breed(graph, 1.0, graph.neighbours, *ends, w)
                looked_at += 1
                if gain > 0:
                    worths[cycle] = (
                        gain / max(offspring._entropy_lost(table, w.removed, w.added, w.counts[0]), 1e-8),
                        gain,
                    )
            if worths:
                best[r] = max(worths, key=lambda cycle: worths[cycle][0])
        chosen = offspring.make_chosen(2, 200)
        family = family_of(graph, tours, len(tours), chosen, np.zeros(1, np.uint8))
        streams = np.array([stream_of(seed)] * (2 + 2 * 8))
        one_by_one = choose(family, np.array([0, 1]), streams, most).regions
        assert chosen.children[0] == looked_at
        picked = {r: one_by_one.chosen[0, one_by_one.first[0, r]] for r in best}
        assert picked == best
        alone = one_by_one.gain[0]
        assert (alone > 0).sum() == len(best) >= 3
        # of all ways to take some of them together, none that gains all that they gain alone is larger
        assert chosen.gain[0] >= alone.max()
        sets = [s for size in range(1, len(best) + 1) for s in itertools.combinations(best.values(), size)]
        united = {
            s: child.breed(graph, 1.0, graph.neighbours, tours[0], positions[0], c, np.array(s), len(s), w)
            for s in sets
        }
        assert chosen.gain[0] in united.values()
        if united[tuple(best.values())] >= alone.sum():
            assert chosen.gain[0] == united[tuple(best.values())]

    @pytest.mark.parametrize(("most", "gain"), [(60, 4), (4, 2)])
    def test_choices_that_fall_apart_together_are_dropped_unless_they_gain(self, small, most, gain):
        """A ring of 60 and two stretches of it that overlap: to reverse either gains, both leave two subtours.

        The first region's gains 2, the other's 4. Subtours are joined best by undoing the first, if the buffer
        allows it; else the first stays alone.
        """
        D = np.full((60, 60), 40.0)
        ring = np.arange(60)
        D[ring, (ring + 1) % 60] = D[(ring + 1) % 60, ring] = 10.0
        np.fill_diagonal(D, 0.0)
        c, parted, w = ab_cycles.make_cycles(60), make_regions(60), child.make_child(60, most)
        tour = ring.astype(np.int32)

        def unite(first, second):
            """The gain of two cycles together, of which the edges that come are 9 and 8 long."""
            now = D.copy()
            for cycle, length in ((first, 9.0), (second, 8.0)):
                for u, v in (cycle[1:3], cycle[3::-3]):
                    now[u, v] = now[v, u] = length
            problem = TSP(matrix=now)
            graph = listed_instance(problem, 59).graph
            c.cities[:8], c.first[:3] = [*first, *second], [0, 4, 8]
            ab_cycles.assign_regions(tour, c, 2, 0, parted)
            assert parted.of[:2].tolist() == [0, 1]
            for r in range(2):
                parted.chosen[r], parted.n_chosen[r], one = r, 1, np.array([r])
                parted.gain[r] = child.breed(graph, 1.0, graph.neighbours, tour, tour.copy(), c, one, 1, w)
            assert parted.gain.tolist() == [2, 4]
            found = offspring._combine_regions(graph, 1.0, graph.neighbours, tour, tour.copy(), c, parted, w)
            out, into = (edges[: w.counts[0]].T for edges in (w.removed, w.added))
            assert found == now[tuple(out)].sum() - now[tuple(into)].sum()
            return found

        assert unite((4, 5, 21, 20), (30, 31, 46, 45)) == 2 + 4  # side by side
        assert unite((4, 5, 21, 20), (30, 31, 13, 12)) == gain
        parted.gain[:] = 0
        graph = listed_instance(TSP(matrix=D), 59).graph
        assert offspring._combine_regions(graph, 1.0, graph.neighbours, tour, tour.copy(), c, parted, w) == 0

    @pytest.mark.parametrize("blocks", [False, True])
    def test_tasks_for_each_region_choose_like_tasks_for_each_pair(self, small, blocks):
        """Four pairs of eight regions."""
        problem = cloud(200, 1)
        tours, ring = good_tours(problem, 4, 1), np.array([2, 0, 3, 1])
        graph, found = graph_of(problem), []
        for divided in (False, True):
            chosen = offspring.make_chosen(4, 200)
            family = family_of(graph, tours, 4, chosen, np.zeros(1, np.uint8))
            streams = np.array([stream_of(i) for i in range(4 + 4 * 8)])
            differences = choose(family, ring, streams, 5, blocks, divided)
            assert np.all(differences.contacts.through == -1)
            assert not differences.contacts.used.any()
            found.append((chosen.gain, chosen.children, chosen.changes, family.tours, family.positions))
        for by_pair, by_region in zip(*found, strict=True):
            assert np.array_equal(by_pair, by_region)
        assert np.all(found[0][0] > 0)

    def test_a_stop_between_two_tasks_of_a_pair_leaves_no_trace(self, small):
        """The tasks after the differences find the flag up; later children are those of new arrays."""
        problem = cloud(200, 3)
        tours, ring, found = good_tours(problem, 4, 3), np.arange(4), []
        differences, workspace = offspring.make_differences(200, 4), offspring.make_workspace(200, 200)
        for stopped in (True, False):
            chosen, stop = offspring.make_chosen(4, 200), np.zeros(1, np.uint8)
            family = family_of(graph_of(problem), tours, 4, chosen, stop)
            if stopped:
                for i in range(4):
                    offspring._find_difference(
                        family, ring, i, differences, i, workspace, np.array([stream_of(9 + i)] * 4), True
                    )
                assert differences.contacts.used.any()
            streams = np.array([stream_of(i) for i in range(4 + 4 * 8)])
            if not stopped:
                differences = offspring.make_differences(200, 4)
            choose(family, ring, streams, 30, True, differences=differences)
            found.append((chosen.gain, family.tours))
        assert np.array_equal(found[0][0], found[1][0])
        assert np.array_equal(found[0][1], found[1][1])
        assert found[0][0].max() > 0


class TestGenerations:
    @pytest.mark.parametrize("good", [False, True])
    @pytest.mark.parametrize("blocks", [False, True])
    def test_lengths_edges_and_positions_stay_true(self, small, good, blocks):
        problem = cloud(200, 3)
        tours = good_tours(problem, 7, 1) if good else random_tours(200, 7)
        assert generations(problem, tours, 5, 6, blocks).replaced > 0

    def test_the_key_decides_and_the_number_of_threads_does_not(self, small, monkeypatch):
        problem = cloud(300, 4)
        tours, results = random_tours(300, 12), {}
        for count in ("1", "2", "7"):  # with seven, regions are tasks of their own
            monkeypatch.setenv("PYMOO_GPUACO_THREADS", count)
            results[count] = evolved(problem, tours, 2**63, generations=8)
        for count in ("2", "7"):
            assert np.array_equal(results["1"].tours, results[count].tours)
            assert results["1"][1:5] == results[count][1:5]
        assert not np.array_equal(results["1"].tours, evolved(problem, tours, 3, generations=8).tours)

    def test_fixed_edges_never_leave(self, small):
        """Tours of 150 cities with 30 edges that are long, and must stay."""
        fixed = [(2 * i, 2 * i + 1) for i in range(30)]
        partner = np.full(150, -1, np.int32)
        partner[:60] = np.arange(60) ^ 1
        graph = graph_of(cloud(150, 2))._replace(partner=partner)
        rng, tours = np.random.default_rng(1), []
        for _ in range(8):
            pairs = [edge[:: rng.choice([-1, 1])] for edge in fixed] + [(i,) for i in range(60, 150)]
            tours.append([city for i in rng.permutation(len(pairs)) for city in pairs[i]])
        found = evolve(graph, np.array(tours, np.int32), graph.neighbours, 3)
        assert found.replaced > 8
        for tour in found.tours:
            assert set(map(frozenset, fixed)) <= edges_of(tour)
