"""Tours, their AB-cycles and entropy by the definition, for the tests of genetic edge assembly."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np

from pymoo_gpuaco.memetic import ab_cycles, block2, child
from pymoo_gpuaco.memetic.eax import EvolvingTours, evolve
from pymoo_gpuaco.memetic.entropy import count_edges
from pymoo_gpuaco.memetic.offspring import make_stage
from pymoo_gpuaco.runtime.philox import STREAM_EVOLUTION
from tests.compiled_callees import new_stream
from tests.instances import listed_instance
from tests.tour_cases import edges_of, random_tours, two_opt


def graph_of(problem, k=8):
    return listed_instance(problem, min(k, problem.n_cities - 1)).graph


def stream_of(seed):
    return new_stream(seed, 0, STREAM_EVOLUTION)


def positions_of(tour):
    position = np.empty_like(tour)
    position[tour] = np.arange(len(tour))
    return position


def find(a, b, seed=1, workspace=None):
    """The AB-cycles of two tours as lists of cities, and the arrays that hold them."""
    c = workspace or ab_cycles.make_cycles(len(a))
    found = ab_cycles.find_cycles(a, positions_of(a), b, positions_of(b), stream_of(seed), c)
    return [c.cities[c.first[i] : c.first[i + 1]].tolist() for i in range(found)], c


def make_regions(n):
    """The regions of one pair of tours."""
    return ab_cycles.PairRegions(*(array[0] for array in ab_cycles.make_regions(n, 1)))


def make_block(n):
    """The contacts of one pair of tours, and a block."""
    contacts = (array[0] for array in block2.make_contacts(n, 1))
    return block2.Block(*contacts, *block2.make_block_search(n))


def part(position, c, found, shift=0):
    """The cycles by region: one, unless there are cities for two."""
    parted = make_regions(len(position))
    ab_cycles.assign_regions(position, c, found, shift, parted)
    return parted


def good_tours(problem, count, seed=0):
    return np.array([two_opt(problem, tour) for tour in random_tours(problem.n_cities, count, seed)])


def entropy_of(tours):
    """As the definition has it."""
    counts = Counter(edge for tour in tours for edge in edges_of(tour))
    share = np.array(list(counts.values())) / len(tours)
    return float(-(share * np.log(share)).sum())


def children_of(problem, a, b, seed=1, k=8, most=None, scale=1.0):
    """Gain, edges out and edges in of the child of every AB-cycle alone, and of some pairs of them."""
    graph, n = graph_of(problem, k), problem.n_cities
    cycles, c = find(a, b, seed)
    w = child.make_child(n, most or n)
    position, order = positions_of(a), a.copy()
    sets = [(i,) for i in range(len(cycles))] + list(itertools.combinations(range(min(6, len(cycles))), 2))
    for chosen in sets:
        ids = np.array(chosen, np.int64)
        gain = child.breed(graph, scale, graph.neighbours, order, position, c, ids, len(ids), w)
        assert np.array_equal(order, a)  # nothing of A is touched
        assert np.array_equal(position, positions_of(a))
        assert np.all(w.row == -1)
        yield gain, w


def evolved(problem, tours, key=1, k=8, **options):
    graph = graph_of(problem, k)
    return evolve(graph, tours, graph.neighbours, key, **options)


def assert_counted(population):
    """Lengths and edges are what counting from the start gives."""
    tours = population._renumbered.tours[population._rows]
    fresh = count_edges(tours)
    held = population._table.counts > 0
    found = dict(zip(population._table.edges[held], population._table.counts[held], strict=True))
    held = fresh.counts > 0
    assert found == dict(zip(fresh.edges[held], fresh.counts[held], strict=True))
    for tour, position in zip(tours, population._positions[population._rows], strict=True):
        assert np.array_equal(position[tour], np.arange(len(tour)))


def generation(population, key, children, blocks):
    """A generation by one key, and its gain in whole units."""
    before = population.lengths.sum()
    made = population.generations([key], children, blocks, make_stage(population.lengths.min()))
    assert made == 1
    return before - population.lengths.sum()


def generations(problem, tours, count, children, blocks):
    """A population after some generations, each of which leaves tours, lengths and counts of edges true."""
    graph = graph_of(problem)
    population = EvolvingTours(graph, tours, graph.neighbours)
    assert np.array_equal(population.lengths, problem.tour_lengths(tours))
    for key in range(count):
        before = population.lengths.copy()
        gain = generation(population, key, children, blocks)
        assert np.array_equal(population.lengths, problem.tour_lengths(population.tours))
        assert np.all(population.lengths <= before)
        assert gain == (before - population.lengths).sum()
        assert np.array_equal(
            np.sort(population.tours, axis=1), np.tile(np.arange(tours.shape[1]), (len(tours), 1))
        )
        assert_counted(population)
    return population
