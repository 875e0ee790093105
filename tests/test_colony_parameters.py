"""Values of a colony's parameters for a number of cities or ants."""

import pytest

from pymoo_gpuaco.colony.parameters import ColonyParameters


@pytest.mark.parametrize(
    ("selection", "switch", "left"),
    [("hybrid", None, 150), ("acceptance_tournament", None, 10), ("hybrid", 0.5, 500), ("hybrid", 1, 0)],
)
def test_where_a_rule_changes(selection, switch, left):
    parameters = ColonyParameters(candidate_list_size=None, selection=selection, switch=switch)
    assert parameters.switch_left(1000) == left


@pytest.mark.parametrize(("n", "size"), [(198, 4), (1002, 4), (1003, 8), (2392, 8), (3038, 16)])
def test_the_size_of_a_tournament_is_that_of_the_paper(n, size):
    assert ColonyParameters().resolved_tournament_size(n) == size
    assert ColonyParameters(tournament_size=3).resolved_tournament_size(n) == 3


@pytest.mark.parametrize(
    ("n_ants", "period", "xi"),
    [(1, 1, 0.1), (24, 1, 0.1), (48, 1, 0.05), (48, 2, 0.1), (240, 1, 0.01), (240, 5, 0.05)],
)
def test_many_ants_evaporate_less_each(n_ants, period, xi):
    parameters = ColonyParameters(xi=None, local_update_period=period)
    assert parameters.resolved_xi(n_ants) == pytest.approx(xi)
    assert ColonyParameters(xi=0.3, local_update_period=period).resolved_xi(n_ants) == 0.3
