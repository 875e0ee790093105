"""Edge assembly: its parts against slow references, and what it must keep to on any instance."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pymoo_gpuaco.memetic import assembly
from pymoo_gpuaco.memetic.assembly import assemble as assemble_by
from pymoo_gpuaco.memetic.units import whole_units
from pymoo_gpuaco.problems import TSP
from pymoo_gpuaco.runtime.philox import STREAM_ASSEMBLY
from tests.compiled_callees import new_stream
from tests.engine_cases import INSTANCES, cloud
from tests.instances import listed_instance
from tests.tour_cases import edges_of, random_tours, two_opt

SYMMETRIC = {name: p for name, p in INSTANCES.items() if p.symmetric}


def graph_of(problem, k=8):
    return listed_instance(problem, k).graph


def assemble(graph, tours, key, stop=None, scale=1.0):
    return assemble_by(graph, tours, key, stop, scale=scale)


def edges_by_turns(cycle):
    """Edges of A and of B of an AB-cycle."""
    pairs = [frozenset(pair) for pair in zip(cycle, cycle[1:] + cycle[:1], strict=True)]
    return pairs[::2], pairs[1::2]


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
        workspace, order, new_edges = assembly.make_workspace(120), np.empty(120, np.int32), set()
        for a in range(6):
            for b in range(6):
                before = problem.tour_length(tours[a])
                stream = new_stream(3, 6 * a + b, STREAM_ASSEMBLY)
                gain = assembly.recombine(
                    graph, 1.0, tours[a], tours[b], order, stream, workspace, np.zeros(1, np.uint8)
                )
                assert problem.tour_length(order) == before - gain
                assert np.array_equal(np.sort(order), np.arange(120))
                assert np.array_equal(workspace.position[order], np.arange(120))
                new_edges |= edges_of(order) - edges_of(tours[a]) - edges_of(tours[b])
        assert new_edges  # that neither has: subtours were joined by them

    def test_what_gains_by_rounding_to_whole_units_alone_is_left(self):
        """With one unit for all, edges of .6 are 1 and those of .45 are 0: out 2 (.6 + .2), in 2 (.45 + .45)."""
        D = np.full((8, 8), 5.0)
        for i in range(8):
            D[i, (i + 1) % 8] = D[(i + 1) % 8, i] = 0.2
        D[2, 3] = D[3, 2] = 0.6
        D[3, 6] = D[6, 3] = D[2, 5] = D[5, 2] = 0.45
        np.fill_diagonal(D, 0.0)
        problem = TSP(matrix=D)
        tour = np.arange(8, dtype=np.int32)
        other = np.array([0, 1, 2, 5, 4, 3, 6, 7], np.int32)
        graph, tours = graph_of(problem, 7), np.array([tour, other])
        assert problem.tour_length(tour) < problem.tour_length(other)
        for scale in (1.0, 2.0**20):
            assert edges_of(assemble(graph, tours, 1, scale=scale)[0]) == edges_of(tour)

    @pytest.mark.parametrize("name", SYMMETRIC)
    def test_tours_stay_tours_and_none_gets_longer(self, name):
        problem = SYMMETRIC[name]
        tours = random_tours(problem.n_cities, 7, 1)
        given = tours.copy()
        instance = listed_instance(problem, min(8, problem.n_cities - 1))
        assembled = assemble(instance.graph, tours, 5, scale=whole_units(instance))
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


@pytest.mark.parametrize("least_gain", [0.0, 0.25, 0.5, 1.0])
def test_it_ends_with_a_generation_that_gains_little_of_what_another_has_gained(least_gain, monkeypatch):
    problem = cloud(300, 4)
    graph, tours = graph_of(problem), random_tours(300, 9)
    totals = [problem.tour_lengths(tours).sum()]
    for most in range(1, assembly.MOST_GENERATIONS + 1):
        with monkeypatch.context() as patch:
            patch.setattr(assembly, "MOST_GENERATIONS", most)
            totals.append(problem.tour_lengths(assemble_by(graph, tours, 1, scale=1.0)).sum())
    gains = -np.diff(totals)
    little = gains <= least_gain * np.maximum.accumulate(gains)
    last = int(little.argmax()) if little.any() else len(gains) - 1
    assembled = assemble_by(graph, tours, 1, scale=1.0, least_gain=least_gain)
    assert problem.tour_lengths(assembled).sum() == totals[last + 1]
    assert last == 0 or gains[: last + 1].all()


def test_nothing_is_taken_over_once_the_flag_is_up():
    tour, other = random_tours(60, 2)
    workspace, stream = assembly.make_workspace(60), new_stream(1, 0, STREAM_ASSEMBLY)
    stop, order, graph = np.ones(1, np.uint8), np.empty(60, np.int32), graph_of(cloud(60))
    assert assembly.recombine(graph, 1.0, tour, other, order, stream, workspace, stop) == 0.0
    assert np.array_equal(order, tour)
    stop[0] = 0
    assert assembly.recombine(graph, 1.0, tour, other, order, stream, workspace, stop) > 0.0
