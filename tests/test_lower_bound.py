"""The proven lower bound, as users meet it: of an algorithm, and in the gap column."""

from __future__ import annotations

import itertools
import threading

import numpy as np
import pytest
from pymoo.optimize import minimize

from pymoo_gpuaco import GPUAS, TSP, GPUMemetic
from pymoo_gpuaco.candidates.bound import is_proven, prove_lower_bound
from pymoo_gpuaco.candidates.exact import shortest_tour
from pymoo_gpuaco.runtime.stop import Stop
from pymoo_gpuaco.runtime.threads import parallel_for
from tests.false_clock import FalseClock
from tests.instances import listed_instance
from tests.interrupts import is_interrupted, needs_timer


def _shortest(matrix: np.ndarray) -> float:
    tours = ((0, *rest) for rest in itertools.permutations(range(1, len(matrix))))
    return min(sum(matrix[a, b] for a, b in zip(t, (*t[1:], 0), strict=True)) for t in tours)


def test_a_ring_is_proven_to_be_optimal(capsys: pytest.CaptureFixture[str]) -> None:
    """Cities on a circle: the ring around it is the best tour, and a 1-tree of the same length."""
    angle = 2 * np.pi * np.arange(20) / 20
    problem = TSP(1000 * np.column_stack([np.cos(angle), np.sin(angle)]), metric="EXACT")
    result = minimize(problem, GPUMemetic(backend="cpu"), ("n_gen", 5), seed=1, verbose=True)
    assert result.algorithm.lower_bound == pytest.approx(result.F[0], rel=1e-9)
    printed = capsys.readouterr().out
    assert "gap at most %" in printed
    assert "0.000" in printed


@pytest.mark.parametrize("n", [2, 3, 4, 5, 7, 8])
@pytest.mark.parametrize("symmetric", [True, False])
def test_dynamic_programming_finds_the_shortest_of_all_tours(n: int, symmetric: bool) -> None:
    matrix = np.random.default_rng(n).integers(1, 30, (n, n)).astype(float)
    matrix = matrix + matrix.T if symmetric else matrix
    tour = shortest_tour(matrix)
    assert sorted(tour) == list(range(n))
    assert tour[0] == 0
    assert matrix[tour, np.roll(tour, -1)].sum() == _shortest(matrix)


def _lonely_ring(n: int, seed: int) -> tuple[TSP, float]:
    """One edge from each city is much shorter than all others, and the fixed one not shortest: the tour is known."""
    rng = np.random.default_rng(seed)
    matrix, ring = rng.integers(300, 900, (n, n)).astype(float), rng.permutation(n)
    matrix[ring, np.roll(ring, -1)] = rng.integers(1, 60, n)
    return TSP(matrix=matrix), float(matrix[ring, np.roll(ring, -1)].sum())


@pytest.mark.parametrize("n", [13, 17, 29])
def test_no_bound_is_rounded_up_over_the_shortest_tour(n: int) -> None:
    """Edges that must stay count as very short ones, and what that adds up to is taken off again: exactly."""
    for seed in range(12):
        problem, shortest = _lonely_ring(n, seed)
        bound = prove_lower_bound(listed_instance(problem, 5))
        assert bound is not None
        assert 0.9 * shortest < bound <= shortest


TENTHS = [0.1, 0.2, 0.3, 0.4, 0.7]  # the sums of these depend on their order: 0.1 + 0.2 > 0.3


@pytest.mark.parametrize(("n", "fixed"), [(7, []), (14, [(i, i + 1) for i in range(5, 13)])])
def test_no_bound_of_rounded_sums_is_above_the_shortest_tour(n: int, fixed: list[tuple[int, int]]) -> None:
    """Of 14 cities, the chain 5 .. 13 leaves the permutations of six units."""
    rows = np.array(list(itertools.permutations(range(1, 6 if fixed else 7))))
    tours = np.hstack([np.zeros((len(rows), 1), int), rows])
    if fixed:
        tours = np.array(
            [np.insert(tour, np.flatnonzero(tour == 5)[0] + 1, np.arange(6, n)) for tour in tours]
        )
    for seed in range(20 if fixed else 60):
        matrix = np.random.default_rng(seed).choice(TENTHS, (n, n))
        problem = TSP(matrix=matrix, fixed_edges=fixed)
        lengths, bound = problem.tour_lengths(tours), prove_lower_bound(listed_instance(problem, 5))
        assert bound is not None
        assert lengths.min() * (1 - 1e-13) < bound <= lengths.min()
        best = tours[lengths.argmin()]
        assert is_proven(problem.instance, best, bound)
        longer = tours[np.argmax(lengths > lengths.min() + 0.01)]
        assert not is_proven(problem.instance, longer, bound)


def cloud_of(n: int, axes: int = 2) -> TSP:
    return TSP(np.random.default_rng(n).random((n, axes)))


def test_a_proof_ends_when_its_time_is_over(clock: FalseClock) -> None:
    instance, over, long = listed_instance(cloud_of(30), 5), Stop(), Stop()
    over.until, long.until = clock.now, clock.now + 1.0
    assert prove_lower_bound(instance, over) is None
    assert prove_lower_bound(instance, long) == prove_lower_bound(instance) > 0.0


@pytest.mark.parametrize(
    ("termination", "longest", "begins"),
    [
        (("time", 999.0), np.inf, False),  # it takes 200 s, and five times that must be left
        (("time", 1100.0), np.inf, True),
        (("time", 1100.0), 150.0, False),
        (("n_gen", 5), np.inf, True),
        (("n_gen", 5), 150.0, False),
    ],
)
def test_a_proof_makes_no_run_late(
    termination: tuple[str, float],
    longest: float,
    begins: bool,
    clock: FalseClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given = []

    def prove(instance: object, stop: Stop) -> float:
        given.append(stop.until)
        return 7.0

    monkeypatch.setattr("pymoo_gpuaco.algorithms.tour.prove_lower_bound", prove)
    monkeypatch.setattr("pymoo_gpuaco.algorithms.tour.seconds_to_prove", lambda instance: 200.0)
    algorithm = GPUMemetic(backend="cpu").setup(cloud_of(30), termination=termination, seed=1)
    algorithm.ask()
    assert algorithm.bound_in_time(longest) == (7.0 if begins else None)
    assert len(given) == begins
    if begins:
        assert given == [clock.now + 1100.0 if termination[0] == "time" else None]
    assert algorithm.lower_bound == 7.0  # reading it waits
    assert algorithm.bound_in_time(0.0) == 7.0


def test_a_proof_that_was_given_up_is_not_the_last_word(monkeypatch: pytest.MonkeyPatch) -> None:
    algorithm = GPUMemetic(backend="cpu").setup(cloud_of(30), termination=("time", 1100.0), seed=1)
    algorithm.ask()
    monkeypatch.setattr("pymoo_gpuaco.algorithms.permutation.seconds_left", lambda *_: 1e-9)
    monkeypatch.setattr("pymoo_gpuaco.algorithms.tour.seconds_to_prove", lambda instance: 0.0)
    assert algorithm.bound_in_time() is None
    assert algorithm.lower_bound > 0.0


@needs_timer
@pytest.mark.parametrize("asked", ["bound_in_time", "lower_bound"])
def test_an_interrupt_is_heard_while_a_proof_waits_for_a_compiler(
    asked: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A compiler knows no flag: here it is at work in the pool's threads until the interrupt has been heard."""
    algorithm = GPUAS(backend="cpu").setup(cloud_of(30), termination=("n_gen", 5), seed=1)
    heard, stops, waited_for = threading.Event(), [], []

    def prove(instance: object, stop: Stop) -> float:
        stops.append(stop)
        parallel_for(lambda *_: waited_for.append(heard.wait(20.0)), 2, 2)
        return 7.0

    monkeypatch.setattr("pymoo_gpuaco.algorithms.tour.prove_lower_bound", prove)
    is_interrupted(
        0.1, lambda: algorithm.bound_in_time() if asked == "bound_in_time" else algorithm.lower_bound
    )
    assert not waited_for
    heard.set()
    assert stops[0].is_set()  # which ends the proof
    monkeypatch.undo()
    assert 0.0 < algorithm.lower_bound < 7.0
