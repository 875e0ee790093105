"""When rounds of a run get node penalties: by how many rounds there have been, and by a clock that is put forward."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from pymoo_gpuaco.memetic.penalties import PenalisedCandidates, Penalties
from pymoo_gpuaco.runtime.stop import Stop

FOUND = PenalisedCandidates(np.zeros((3, 2), np.int32))


class Case:
    """Penalties of n cities; what is found is always the same."""

    def __init__(self, n: int, candidates: str = "auto") -> None:
        self.asked: list[int | None] = []
        self.penalties = Penalties(SimpleNamespace(n=n, symmetric=True), candidates, self.find)

    def find(self, iterations: int | None) -> PenalisedCandidates:
        self.asked.append(iterations)
        return FOUND


@pytest.mark.parametrize(
    ("n", "candidates", "rounds"),
    [
        (1000, "auto", 0),
        (49_999, "auto", 0),
        (50_000, "auto", 166),  # one for 300 cities
        (100_000, "auto", 333),
        (100_001, "auto", -1),
        (60_000, "alpha", 0),
        (60_000, "nearest", -1),
    ],
)
def test_many_cities_are_searched_for_some_rounds_before(n, candidates, rounds):
    penalties = Case(n, candidates).penalties
    assert penalties.planned == penalties.until == rounds
    assert penalties.wanted == (rounds >= 0)
    assert penalties.are_due(None) == (rounds == 0)


@pytest.mark.parametrize(("n", "seconds"), [(10_000, 0.55), (20_000, 0.9), (49_999, 0.9)])
def test_a_run_must_last_for_a_while_yet(n, seconds, clock):
    """.2 s, and 35 us for each of up to 20,000 cities."""
    case = Case(n)
    assert not case.penalties.are_due(clock.now + seconds - 0.01)
    case.penalties.begin(clock.now + seconds - 0.01)
    assert case.penalties._found is None
    assert case.penalties.are_due(clock.now + seconds + 0.01)
    assert Case(n, "alpha").penalties.are_due(clock.now - 1.0)  # reading them computes them


def test_they_are_looked_for_once_with_as_many_trees_as_there_is_time_for(clock):
    case = Case(10_000)
    for seconds in (1.0, 60.0):
        case.penalties.begin(clock.now + seconds)
    assert case.penalties.wait(Stop())
    assert case.penalties.lists is FOUND
    assert case.asked == [30]  # .15 of a second at .5 us a city and tree
    for n, candidates, trees in ((40_000, "auto", 25), (40_000, "alpha", None)):
        case = Case(n, candidates)
        assert case.penalties.wait(Stop())  # which begins it
        assert case.asked == [trees]
    unwanted = Case(40_000, "nearest")
    unwanted.penalties.begin(None)
    assert unwanted.penalties._found is None
