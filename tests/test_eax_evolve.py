"""Genetic edge assembly, the whole: what populations must keep to on any instance."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pymoo_gpuaco.memetic import eax as module
from pymoo_gpuaco.memetic import offspring
from pymoo_gpuaco.memetic.eax import EvolvingTours, evolve
from pymoo_gpuaco.memetic.offspring import IDLE, make_stage
from pymoo_gpuaco.memetic.partition_crossover import merge
from pymoo_gpuaco.memetic.units import whole_units
from pymoo_gpuaco.problems import TSP
from pymoo_gpuaco.runtime import stop
from tests.eax_cases import assert_counted, entropy_of, evolved, generation, good_tours, graph_of
from tests.engine_cases import cloud
from tests.instances import listed_instance
from tests.tour_cases import edges_of, random_tours


@st.composite
def populations(draw):
    """A problem, whole units a unit of its distances, and tours; some are others, begun elsewhere or backwards."""
    n, m = draw(st.integers(3, 30)), draw(st.integers(1, 9))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    if draw(st.booleans()):  # many edges are equally long, some of no length
        matrix = rng.integers(0, draw(st.integers(1, 50)), (n, n))
        problem, scale = TSP(matrix=np.triu(matrix, 1) + np.triu(matrix, 1).T), 1.0
    else:
        problem, scale = TSP(rng.random((n, 2))), 2.0**20
    tours = random_tours(n, m, rng.integers(2**32))
    for i in range(1, m):
        if draw(st.booleans()):
            other = tours[rng.integers(i)]
            tours[i] = np.roll(other[:: rng.choice([-1, 1])], rng.integers(n))
    return problem, scale, tours


class TestGenerations:
    def test_the_table_of_edges_grows_when_it_is_full(self, monkeypatch):
        """As often as children bring edges that no tour had."""
        problem = cloud(100, 3)
        graph = graph_of(problem)
        population = EvolvingTours(graph, random_tours(100, 9), graph.neighbours)
        table = population._table
        full = int(np.count_nonzero(table.edges < 0)) - table.edges.size // 4
        assert full > 0
        table.used[0] += full  # as if these edges had come and gone
        calls = []
        monkeypatch.setattr(module, "larger", lambda t, f=module.larger: calls.append(1) or f(t))
        generation(population, 1, 30, False)
        assert calls
        assert_counted(population)


class TestLongDistances:
    @pytest.mark.parametrize("factor", [1e10, 1e17, 1e25])
    def test_a_factor_changes_nothing(self, factor):
        """Whole numbers as they are, all of them: those of 1e17 and more are beyond whole numbers of 64 bits."""
        problem = cloud(60, 2)
        tours, longer = good_tours(problem, 12), TSP(matrix=problem.D * factor)
        scale = whole_units(listed_instance(longer, 8))
        graph = graph_of(longer)
        found = evolve(graph, tours, graph.neighbours, 1, scale=scale).tours
        assert np.all(longer.tour_lengths(found) <= longer.tour_lengths(tours))
        assert longer.tour_lengths(found).min() < longer.tour_lengths(tours).min()

    def test_edges_too_long_for_whole_numbers_come_into_no_tour(self):
        rng = np.random.default_rng(5)
        forbidden = np.triu(rng.random((60, 60)) < 0.5, 1)
        problem = cloud(60, 2)
        matrix = np.where(forbidden | forbidden.T, 1e30, problem.D)
        np.fill_diagonal(matrix, 0.0)
        closed = TSP(matrix=matrix)
        graph, tours = graph_of(closed), good_tours(closed, 12)
        assert closed.tour_lengths(tours).max() < 1e9
        found = evolve(graph, tours, graph.neighbours, 1).tours
        assert np.all(closed.tour_lengths(found) <= closed.tour_lengths(tours))


class TestMigrants:
    def test_they_have_no_children_and_give_their_edges(self):
        problem = cloud(60, 2)
        graph, tours = graph_of(problem), random_tours(60, 8)
        migrants = good_tours(problem, 2, seed=3)
        population = EvolvingTours(graph, np.concatenate([tours, migrants]), graph.neighbours, parents=8)
        for key in range(5):
            generation(population, key, 30, False)
        assert np.array_equal(population.tours[8:], migrants)
        assert population.replaced > 8
        assert_counted(population)
        found = evolve(graph, tours, graph.neighbours, 1, migrants=migrants)
        assert found.tours.shape == tours.shape
        lengths = problem.tour_lengths(found.tours)
        assert np.all(lengths <= problem.tour_lengths(tours))
        assert lengths.min() <= problem.tour_lengths(migrants).min() < problem.tour_lengths(tours).min()


class TestEvolving:
    def test_it_finds_what_good_tours_have_between_them(self):
        """Twenty tours that no exchange of two edges shortens, some 5 % too long; the optimum is known."""
        problem = cloud(100, 8)
        tours = good_tours(problem, 20, 2)
        merged = tours[problem.tour_lengths(tours).argmin()]
        for tour in tours:
            merged, _ = merge(merged, tour, lambda i, j: problem.D[i, j])
        found = evolved(problem, tours)
        assert problem.tour_lengths(found.tours).min() < 0.99 * problem.tour_length(merged)
        assert found.generations > found.second_from > 0
        assert found.replaced > 20
        assert found.children > found.replaced
        assert entropy_of(found.tours) < entropy_of(tours)

    @given(populations(), st.integers(0, 2**64 - 1), st.booleans(), st.integers(0, 3))
    @settings(max_examples=60, deadline=None)
    def test_with_any_migrants(self, drawn, key, blocks, n_migrants):
        """Generation by generation, lengths in whole units added up again; then all of it, with migrants."""
        problem, scale, tours = drawn
        graph, m = graph_of(problem), len(tours)
        in_units = np.floor(problem.D * scale + 0.5).astype(np.int64)
        before = lengths = in_units[tours, np.roll(tours, -1, axis=1)].sum(axis=1)
        population = EvolvingTours(graph, tours, graph.neighbours, scale)
        for number in range(3):
            gain = generation(population, key ^ number, 30, blocks)
            assert_counted(population)
            after = in_units[population.tours, np.roll(population.tours, -1, axis=1)].sum(axis=1)
            assert np.array_equal(population.lengths, after)
            assert (after <= lengths).all()
            assert gain == (lengths - after).sum()
            lengths = after
        own, migrants = (
            (tours[: m - n_migrants], tours[m - n_migrants :]) if m > n_migrants else (tours, None)
        )
        found, again = (evolved(problem, own, key, scale=scale, migrants=migrants) for _ in range(2))
        after = in_units[found.tours, np.roll(found.tours, -1, axis=1)].sum(axis=1)
        assert np.array_equal(np.sort(found.tours, axis=1), np.sort(own, axis=1))
        assert (after <= before[: len(own)]).all()
        assert np.array_equal(found.tours, again.tours)
        assert found[1:] == again[1:]
        if (
            len({frozenset(edges_of(tour)) for tour in tours}) == 1
        ):  # wherever they begin, whichever way they go
            assert np.array_equal(found.tours, own)
            assert found.replaced == 0
            # the first stage ends at once, the second after ``IDLE`` generations without a gain
            assert found.generations == (1 + IDLE if m > 1 else 0)

    @pytest.mark.parametrize("at_once", [1, 3])
    def test_the_generations_of_a_call_do_not_matter(self, at_once, monkeypatch):
        problem = cloud(200, 4)
        tours = random_tours(200, 10)
        found = evolved(problem, tours)
        monkeypatch.setattr(module, "MOST_AT_ONCE", at_once)
        again = evolved(problem, tours)
        assert np.array_equal(found.tours, again.tours)
        assert found[1:] == again[1:]

    def test_fewer_children_and_generations(self):
        problem = cloud(200, 4)
        tours = random_tours(200, 10)
        assert np.array_equal(evolved(problem, tours, generations=0).tours, tours)
        one = evolved(problem, tours, generations=1)
        assert (one.generations, one.second_from) == (1, 1)
        assert one.children <= 30 * 10
        assert evolved(problem, tours, generations=1, children=2).children <= 2 * 10


class TestEnding:
    def test_it_ends_at_once_when_time_is_over(self):
        tours = random_tours(2000, 4)
        found = evolved(cloud(2000, 4), tours, stop=stop.Stop(time.monotonic() - 1.0))
        assert np.array_equal(found.tours, tours)
        assert found.generations == 0

    def test_a_generation_that_is_cut_short_leaves_everything_true(self, monkeypatch):
        problem = cloud(1000, 4)
        graph = graph_of(problem)
        monkeypatch.setenv("PYMOO_GPUACO_THREADS", "2")
        population = EvolvingTours(graph, random_tours(1000, 40), graph.neighbours)

        def with_few_tasks_left(family, differences, workspace, batch, *others):
            """The last 32 pairs, as if other threads had made no children of the first eight."""
            batch.progress[0, :16] += 8 * (batch.progress[0, 0] == 0)
            make_generations(family, differences, workspace, batch, *others)

        make_generations = module.make_generations
        with monkeypatch.context() as patch:
            patch.setattr(module, "make_generations", with_few_tasks_left)
            generation(population, 1, 30, False)
        assert 0 < population.replaced <= 32
        assert not population._chosen.changes[:8].any()
        assert np.array_equal(population.lengths, problem.tour_lengths(population.tours))
        assert_counted(population)
        taken = population.replaced
        population._stop.interrupt()
        generation(population, 2, 30, False)  # the flag is up
        assert population.replaced == taken

    def test_the_first_stage_ends_when_few_parents_are_replaced(self):
        problem = cloud(100, 8)
        graph, tours = graph_of(problem), good_tours(problem, 20, 2)
        parts = [evolve(graph, tours, graph.neighbours, 3, generations=1)]
        while not parts[-1].rest.blocks:
            parts.append(parts[-1].rest.proceed(generations=1))
        assert all(part.replaced > 5 for part in parts[:-1])  # of twenty
        assert parts[-1].replaced <= 5
        assert len(parts) > 5

    @pytest.mark.parametrize(("improving", "generations"), [(0, 50), (900, 1000)])
    def test_a_stage_waits_for_1500_children_a_tour_and_a_tenth_of_its_generations(
        self, improving, generations
    ):
        """Thirty children are fifty generations; after 900 that shorten the best tour a tenth of them is more."""
        stage = make_stage(5000)
        while not stage[offspring.ENDED]:  # in every generation some tour gets shorter
            shortest = 5000 - min(improving, stage[offspring.GENERATIONS] + 1)
            offspring._advance(stage, shortest, 1, 30)
        assert stage[offspring.GENERATIONS] == generations
