"""Interface of a colony written by a user: its trails as a matrix, and errors for names that hide parameters."""

from dataclasses import dataclass

import numpy as np
import pytest
from pymoo.optimize import minimize

from pymoo_gpuaco import GPUACS, GPUMMAS, GPUMemetic
from pymoo_gpuaco.algorithms.arguments import Word
from tests.engine_cases import cloud


@pytest.mark.parametrize(
    "colony",
    [
        GPUMMAS(n_ants=4, pheromone="dense"),
        GPUMMAS(n_ants=4, candidate_list_size=8, pheromone="candidate"),
        GPUACS(n_ants=4, candidate_list_size=8, variant="selective"),
    ],
    ids=["dense", "candidate", "selective"],
)
def test_trails_are_a_matrix_and_those_of_candidate_edges_are_in_it(colony):
    algorithm = minimize(cloud(30), colony, ("n_gen", 5), seed=1).algorithm
    matrix, of_candidates = algorithm.trails(), algorithm.trails("candidates")
    neighbours = algorithm.instance.neighbours
    assert matrix.shape == (30, 30)
    assert (np.diag(matrix) == 0.0).all()
    assert np.array_equal(np.take_along_axis(matrix, neighbours.astype(int), axis=1), of_candidates)
    matrix[:] = -1.0  # a copy: the colony keeps its own
    assert (algorithm.trails() >= 0.0).all()


@pytest.mark.parametrize("n", [5, 8, 9])
def test_trails_of_every_edge_are_those_the_ants_read_also_with_a_ring_of_n(n):
    """A ring of n trails a city has the shape of a dense memory."""
    colony = GPUACS(n_ants=3, candidate_list_size=3, variant="selective", trails_per_node=n, backend="cpu")
    algorithm = minimize(cloud(n), colony, ("n_gen", 5), seed=1).algorithm
    edges = np.array([(i, j) for i in range(n) for j in range(n) if i != j])
    expected = np.zeros((n, n), np.float32)
    expected[edges[:, 0], edges[:, 1]] = algorithm.engine.trails_of(edges)
    np.testing.assert_array_equal(algorithm.trails(), expected)
    neighbours = algorithm.instance.neighbours.astype(int)
    along = np.take_along_axis(expected, neighbours, axis=1)
    np.testing.assert_array_equal(algorithm.trails("candidates"), along)


def test_the_tour_that_deposited_last_has_the_strongest_trails():
    algorithm = minimize(cloud(30), GPUMMAS(n_ants=8, deposit="global_best"), ("n_gen", 60), seed=1).algorithm
    matrix, tour = algorithm.trails(), algorithm.opt[0].X
    assert np.array_equal(matrix, matrix.T)
    along = matrix[tour, np.roll(tour, -1)]
    assert along.min() > np.median(matrix)


def test_trails_are_refused_before_setup_and_for_other_edges():
    with pytest.raises(ValueError, match="call setup"):
        GPUMMAS().trails()
    with pytest.raises(ValueError, match="edges must be"):
        GPUMMAS().trails("some")


def test_a_method_with_the_name_of_a_parameter_is_an_error_at_once():
    with pytest.raises(
        TypeError, match=r"Mine\.deposit is a method with the name of the parameter 'deposit'"
    ):

        class Mine(GPUMMAS):
            def deposit(self):
                return self.opt

    with pytest.raises(TypeError, match="'population_size' of GPUMemetic"):

        class Other(GPUMemetic):
            @property
            def population_size(self):
                return 8


def test_another_default_of_a_parameter_is_none():
    @dataclass(kw_only=True, eq=False, repr=False)
    class Mine(GPUMMAS):
        deposit: Word = "global_best"

        def deposit_on(self):
            """A method of its own."""

    assert Mine().deposit == "global_best"
