"""Genetic edge assembly: counts of edges, blocks of AB-cycles and the choice among children against slow references."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pymoo_gpuaco.memetic import ab_cycles, child, entropy, offspring, stretches
from pymoo_gpuaco.memetic import block2 as block
from pymoo_gpuaco.problems import TSP
from tests.eax_cases import (
    children_of,
    entropy_of,
    find,
    good_tours,
    graph_of,
    make_block,
    part,
    positions_of,
    stream_of,
)
from tests.engine_cases import cloud
from tests.test_assembly import edges_by_turns
from tests.tour_cases import edges_of, random_tours


class TestEntropy:
    @given(st.integers(3, 30), st.integers(1, 7), st.integers(0, 1000), st.booleans())
    @settings(max_examples=40, deadline=None)
    def test_edges_are_counted(self, n, m, seed, same):
        tours = random_tours(n, m, seed)
        if same:
            tours[:] = tours[0]
        table = entropy.count_edges(tours)
        counts = Counter(edge for tour in tours for edge in edges_of(tour))
        for u, v in itertools.combinations(range(n), 2):
            assert (
                entropy.frequency(table, u, v) == entropy.frequency(table, v, u) == counts[frozenset((u, v))]
            )

    @pytest.mark.parametrize("seed", range(4))
    def test_what_a_child_costs_is_the_difference_of_two_counts(self, seed):
        problem = cloud(80, seed)
        tours = good_tours(problem, 5, seed)
        table = entropy.count_edges(tours)
        for gain, w in children_of(problem, tours[0], tours[1], seed):
            if gain == child.REFUSED:
                continue
            after = tours.copy()
            stretches.lay_out(after[0], positions_of(tours[0]), w.removed, w.added, w.counts[0], w.stretches)
            lost = offspring._entropy_lost(table, w.removed, w.added, w.counts[0])
            assert lost == pytest.approx(entropy_of(tours) - entropy_of(after), abs=1e-9)


class TestBlocks:
    @staticmethod
    def all_meetings(a, cycles):
        """Where two cycles meet, and which: at a city of both, or at the ends of a stretch of A that none changes."""
        through, changed = {}, set()
        for number, cycle in enumerate(cycles):
            for city in cycle:
                through.setdefault(city, []).append(number)
            changed |= set(edges_by_turns(cycle)[0])
        met = [({city}, set(ids)) for city, ids in through.items() if len(set(ids)) == 2]
        tour = a.tolist()
        for at, city in enumerate(tour):
            to = at
            while city in through and frozenset((tour[to], tour[(to + 1) % len(tour)])) not in changed:
                to = (to + 1) % len(tour)
                if tour[to] in through:
                    pair = {*through[city], *through[tour[to]]}
                    met += [({city, tour[to]}, pair)] if len(pair) == 2 else []
                    break
        return met

    @staticmethod
    def meetings(met, chosen):
        """Places where a child's edges of A and of B meet: a cycle that is chosen, and one that is not."""
        return sum(len(pair & chosen) == 1 for _, pair in met)

    @staticmethod
    def parents(seed, n=200):
        """Random tours, which share hardly an edge, or tours that share most."""
        a, b = random_tours(n, 2, seed)
        if seed % 2:
            rng, b = np.random.default_rng(seed), a.copy()
            for cut in rng.integers(n - 9, size=12):
                b[cut : cut + 9] = rng.permutation(b[cut : cut + 9])
        return a, b

    @staticmethod
    def meet(cycle, cycles, met, order):
        """Add those that a cycle meets, one that comes or goes, to those met before."""
        for city in cycles[cycle]:
            for pair in (pair - {cycle} for cities, pair in met if city in cities and cycle in pair):
                order += pair - set(order)

    @pytest.mark.parametrize("seed", range(6))
    def test_blocks_are_those_of_a_tabu_search_that_counts_all_meetings_again(self, seed):
        a, b = self.parents(seed)
        cycles, c = find(a, b, seed)
        found, w, fewer = len(cycles), make_block(200), 0
        met = self.all_meetings(a, cycles)
        parted = part(positions_of(a), c, found)
        block.find_contacts(a, positions_of(a), c, found, parted, w)
        sizes = [len(cycle) for cycle in cycles]
        assert w.centres[:found].tolist() == sorted(range(found), key=lambda i: -sizes[i])
        for centre in range(min(found, 12)):
            stream, chosen, order = stream_of(seed + centre), {centre}, [centre]
            self.meet(centre, cycles, met, order)
            for other in order[1:]:
                if sizes[other] < sizes[centre] and int(block.next_word(stream)) & 1:
                    chosen.add(other)
                    self.meet(other, cycles, met, order)
            best, tabu, turn, last = (self.meetings(met, chosen), sorted(chosen)), {}, 0, 0
            while turn - last < 20:
                turn += 1
                begin = int(block.next_below(stream, len(order))) + 1
                moves = []
                for i in np.roll(order, -begin).tolist():
                    touches = any(i in pair and (pair - {i}) & chosen for _, pair in met)
                    if i == centre or not (i in chosen or touches):
                        continue
                    count = self.meetings(met, chosen ^ {i})
                    if tabu.get(i, 0) <= turn or count < best[0]:
                        moves.append((count, i))
                if not moves:
                    continue
                count, i = min(moves, key=lambda move: move[0])
                chosen = chosen ^ {i}
                self.meet(i, cycles, met, order)
                tabu[i] = turn + 2 + int(block.next_below(stream, 10))
                if count < best[0]:
                    best, last = (count, sorted(chosen)), turn
            size = block.choose_block(centre, c, parted.of, stream_of(seed + centre), w)
            assert sorted(w.chosen[:size].tolist()) == best[1]
            assert centre in best[1]
            assert not w.is_reached.any()
            fewer += best[0] < self.meetings(met, {centre})
        assert fewer > 0 or seed % 2 == 0  # nearly all is one cycle there
        block.reset_contacts(positions_of(a), c, found, w)
        assert np.all(w.through == -1)
        assert not w.used.any()


def family_of(graph, tours, parents, chosen, stop):
    m, table = len(tours), entropy.count_edges(tours)
    positions = np.array([positions_of(tour) for tour in tours])
    both = (np.concatenate([of, np.zeros_like(of)]) for of in (tours, positions))
    lengths = np.zeros(m, np.int64)
    return offspring.PopulationArrays(
        graph, 1.0, graph.neighbours, *both, np.arange(m), lengths, parents, table, chosen, stop
    )


def choose(family, ring, streams, most, blocks=False, divided=True, first=0, differences=None):
    """Make the children of pairs ``first`` on by one thread, and return the differences."""
    n, m = family.tours.shape[1], len(ring)
    batch = offspring.make_generation_batch(ring[None], streams[None], offspring.make_stage(0))
    batch.progress[0, :16] = first  # as if another thread had made the earlier ones
    differences = differences or offspring.make_differences(n, m if divided else 1)
    workspace = offspring.make_workspace(n, n)
    offspring.make_generations(family, differences, workspace, batch, most, blocks)
    return differences


class TestChoosing:
    @pytest.mark.parametrize("seed", range(5))
    @pytest.mark.parametrize("blocks", [False, True])
    def test_the_child_is_the_one_that_gains_most_for_the_entropy_it_costs(self, seed, blocks):
        problem = cloud(80, seed)
        graph, tours = graph_of(problem), good_tours(problem, 4, seed)
        positions = np.array([positions_of(tour) for tour in tours])
        most = 12 if blocks else 2
        chosen = offspring.make_chosen(4, 80)
        ring, stop = np.array([2, 1, 3, 0]), np.zeros(1, np.uint8)
        streams = np.array([stream_of(seed), stream_of(seed + 100), stream_of(0), stream_of(0)])
        family = family_of(graph, tours, len(tours), chosen, stop)
        choose(family, ring, streams, most, blocks, divided=False, first=1)
        assert chosen.changes[0] == 0
        # again, child by child: of tours[1] and tours[3]
        stream, c = stream_of(seed + 100), ab_cycles.make_cycles(80)
        found = ab_cycles.find_cycles(tours[1], positions[1], tours[3], positions[3], stream, c)
        w, b, best = child.make_child(80, 80), make_block(80), (0.0, 0, set())
        parted = part(positions[1], c, found)
        block.find_contacts(tours[1], positions[1], c, found, parted, b)
        promising = [i for i in range(found) if child.cycle_gain(graph, 1.0, c, i) > 0]
        assert 0 < len(promising) < found
        numbers = b.centres[:found] if blocks else promising
        for number in numbers[:most]:
            b.chosen[0], count = number, 1
            if blocks:
                count = block.choose_block(number, c, parted.of, stream, b)
            ends = tours[1], positions[1], c, b.chosen, count
            gain = child.breed(graph, 1.0, graph.neighbours, *ends, w)
            if gain > 0:
                after = tours.copy()
                stretches.lay_out(after[1], positions[1].copy(), w.removed, w.added, w.counts[0], w.stretches)
                worth = gain / max(entropy_of(tours) - entropy_of(after), 1e-8)
                if worth > best[0] * (1 + 1e-9):
                    best = worth, gain, edges_of(after[1])
        assert chosen.children[1] == min(most, len(numbers))
        assert chosen.gain[1] == best[1] > 0
        out, into = (
            set(map(frozenset, e[1, : chosen.changes[1]].tolist())) for e in (chosen.removed, chosen.added)
        )
        assert edges_of(tours[1]) - out | into == best[2]
        assert edges_of(family.tours[1 + len(tours)]) == best[2]
        assert np.array_equal(family.positions[1 + len(tours)], positions_of(family.tours[1 + len(tours)]))
        assert np.array_equal(family.tours[: len(tours)], tours)  # other threads may read them

    @pytest.mark.parametrize(("parents", "stopped", "have"), [(3, 0, [0, 2]), (1, 0, [0]), (3, 1, [])])
    def test_migrants_have_no_children_and_a_stopped_generation_has_none(self, parents, stopped, have):
        problem = cloud(80, 1)
        graph, tours = graph_of(problem), good_tours(problem, 4, 1)
        chosen, stop = offspring.make_chosen(3, 80), np.array([stopped], np.uint8)
        streams = np.array([stream_of(i) for i in range(3)])
        family = family_of(graph, tours, parents, chosen, stop)
        ring = np.array([0, 3, 2])  # of which 3 is a migrant
        choose(family, ring, streams, 9, divided=False)
        assert np.flatnonzero(chosen.children).tolist() == have
        assert np.flatnonzero(chosen.changes).tolist() == have

    def test_a_child_that_gains_a_unit_is_chosen_whatever_variety_it_costs(self):
        D = 10.0 * (1 - np.eye(12))
        D[2, 5] = D[5, 2] = 11.0
        good = np.arange(12, dtype=np.int32)
        bad = np.array([0, 1, 2, 5, 4, 3, *range(6, 12)], np.int32)
        chosen = self.of_the_last_pair(TSP(matrix=D), np.array([bad, good]), 1)
        assert chosen.gain.tolist() == [0, 1]  # the population's entropy would fall from 2 log 2 to 0

    @staticmethod
    def of_the_last_pair(problem, tours, seed):
        """Choices for the first tour and the last."""
        m, chosen = len(tours), offspring.make_chosen(*tours.shape)
        streams = np.array([stream_of(seed + i) for i in range(m)])
        family = family_of(graph_of(problem), tours, m, chosen, np.zeros(1, np.uint8))
        ring = np.arange(m)[::-1].copy()
        choose(family, ring, streams, 12, divided=False, first=m - 1)
        return chosen
