"""Ctrl-C between any two lines of the search and of the algorithms: no tour is lost, and the run goes on to its end."""

from __future__ import annotations

import ast
import copy
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import numpy as np
import pytest
from pymoo.core.evaluator import Evaluator

import pymoo_gpuaco
from pymoo_gpuaco import (
    GPU2PPLS,
    GPUACS,
    GPUAS,
    GPUBWAS,
    GPUMMAS,
    TSP,
    GPU2OptIHC,
    GPUMemetic,
    MultiObjectiveTSP,
    OpenPath,
    algorithms,
    memetic,
    pareto,
)
from pymoo_gpuaco.backends import cpu
from pymoo_gpuaco.backends.cpu.search_device import CpuWindows
from pymoo_gpuaco.candidates.lists import listed_instance
from pymoo_gpuaco.memetic import parameters
from pymoo_gpuaco.memetic.parameters import MemeticParameters
from pymoo_gpuaco.memetic.search import MemeticSearch
from tests.algorithm_cases import shorten_climbs
from tests.fuzz import SEED, TIMES

pytestmark = pytest.mark.filterwarnings("ignore:the problem's objective")
FOLDERS = tuple(str(Path(package.__file__).parent) for package in (memetic, algorithms, pareto, cpu))
DRAWS = 2 * TIMES  # of each kind of run


class Strike:
    """Traces the lines that this thread comes to in the folders, and interrupts before line ``at``, counted from 1."""

    def __init__(self, at: int = 0) -> None:
        self.at, self.count = at, 0
        self.times: dict[tuple[str, int], list[int]] = defaultdict(list)  # numbers, by place
        self.where = ""

    @contextmanager
    def watching(self) -> Iterator[None]:
        before = sys.gettrace()
        sys.settrace(self._call)
        try:
            yield
        finally:
            sys.settrace(before)

    def _call(self, frame: FrameType, event: str, argument: Any) -> Any:
        return self._line if frame.f_code.co_filename.startswith(FOLDERS) else None

    def _line(self, frame: FrameType, event: str, argument: Any) -> Any:
        if event == "line":
            self.count += 1
            place = frame.f_code.co_filename, frame.f_lineno
            self.times[place].append(self.count)
            if self.count == self.at:
                self.where = f"interrupted before {place[0]}:{place[1]}, line {self.at} of the run"
                raise KeyboardInterrupt
        return self._line

    def drawn(self) -> Iterator[int]:
        """Numbers of lines: a place is drawn, then one of the times that the run has come to it."""
        rng = np.random.default_rng(SEED)
        places = list(self.times.values())
        order = rng.permutation(len(places))
        for number in range(DRAWS):
            numbers = places[order[number % len(places)]]
            yield numbers[int(rng.integers(len(numbers)))]


class Noted(Evaluator):
    """An evaluator that notes the least F that it has given."""

    def __init__(self) -> None:
        super().__init__()
        self.least = np.inf

    def eval(self, problem: Any, pop: Any, *arguments: Any, **options: Any) -> Any:
        evaluated = super().eval(problem, pop, *arguments, **options)
        self.least = min(self.least, float(pop.get("F").min()))
        return evaluated


class Tolls(TSP):
    """Tours cost more than their length."""

    def _evaluate(self, x: Any, out: Any, *_: Any, **__: Any) -> None:
        super()._evaluate(x, out)
        out["F"] = out["F"] + 100.0 * (np.abs(np.diff(x, axis=1)) > 20).sum(axis=1)[:, None]


class Kind(NamedTuple):
    """A kind of run."""

    algorithm: Callable[[], Any]
    problem: Callable[[], Any]
    n_gen: int = 4
    whole_up_to: int = parameters.WHOLE_UP_TO


def cities(n: int) -> np.ndarray:
    return np.random.default_rng(n).random((n, 2)) * 100.0


def matrix(n: int) -> np.ndarray:
    return np.random.default_rng(n).integers(1, 1000, (n, n)).astype(float)


def given(n: int) -> np.ndarray:
    return np.array([np.random.default_rng(s).permutation(n) for s in range(3)])


CPU: dict[str, Any] = {"backend": "cpu"}
FEW_ANTS: dict[str, Any] = {"n_ants": 8, **CPU}
KINDS = {
    "default": Kind(lambda: GPUMemetic(**CPU), lambda: TSP(cities(200)), 4),
    "many that evolve": Kind(lambda: GPUMemetic(population_size=9, **CPU), lambda: TSP(cities(60)), 8),
    "windows of a tour": Kind(lambda: GPUMemetic(**CPU), lambda: TSP(cities(400)), 6, whole_up_to=8),
    "few cities": Kind(lambda: GPUMemetic(**CPU), lambda: TSP(cities(9))),
    "GPUMMAS": Kind(lambda: GPUMMAS(restart_after=1, **FEW_ANTS), lambda: TSP(cities(60))),
    "GPUAS": Kind(lambda: GPUAS(**FEW_ANTS), lambda: TSP(cities(60))),
    "GPUBWAS": Kind(lambda: GPUBWAS(**FEW_ANTS), lambda: TSP(cities(60))),
    "GPUACS": Kind(lambda: GPUACS(**FEW_ANTS), lambda: TSP(cities(60))),
    "GPU2OptIHC": Kind(lambda: GPU2OptIHC(**CPU), lambda: TSP(cities(60))),
    "a path": Kind(lambda: GPUMemetic(**CPU), lambda: OpenPath(cities(80), start=3)),
    "fixed edges": Kind(lambda: GPUMemetic(**CPU), lambda: TSP(cities(80), fixed_edges=[(0, 9), (5, 40)])),
    "asymmetric": Kind(lambda: GPUMemetic(**CPU), lambda: TSP(matrix=matrix(50))),
    "another objective": Kind(lambda: GPUMMAS(**CPU), lambda: Tolls(cities(40))),
    "another objective of GPUAS": Kind(lambda: GPUAS(**FEW_ANTS), lambda: Tolls(cities(40))),
    "given tours": Kind(lambda: GPUMemetic(sampling=given(80), **CPU), lambda: TSP(cities(80))),
    "given tours of climbers": Kind(lambda: GPU2OptIHC(sampling=given(60), **CPU), lambda: TSP(cities(60))),
    "given tours of another objective": Kind(
        lambda: GPUACS(sampling=given(40), **FEW_ANTS), lambda: Tolls(cities(40))
    ),
}


def set_up(algorithm: Any, kind: Kind) -> Any:
    return algorithm.setup(kind.problem(), termination=("n_gen", kind.n_gen), seed=1, evaluator=Noted())


def watched_run(kind: Kind, strike: Strike) -> Any:
    """An algorithm that has been set up and run, to its end unless an interrupt came."""
    algorithm = kind.algorithm()
    try:
        with strike.watching():
            set_up(algorithm, kind).run()
    except KeyboardInterrupt:
        assert strike.where
    return algorithm


def assert_sound(algorithm: Any) -> None:
    """The best tour is one, of exactly its length, and no worse than any that was handed out."""
    result, least = algorithm.result(), algorithm.evaluator.least
    if result.X is None:
        assert least == np.inf
        return
    assert result.F[0] <= least
    problem = algorithm.problem
    assert np.array_equal(np.sort(result.X), np.arange(problem.n_var))
    assert problem.evaluate(result.X[None], return_values_of=["F"])[0, 0] == result.F[0]


def assert_lengths(engine: Any, problem: Any) -> None:
    """What an engine holds are tours of the lengths that it says."""
    if isinstance(getattr(engine, "symmetric_search", engine), MemeticSearch):
        tours, lengths = engine.best_tours(99)
        assert np.array_equal(np.sort(tours, axis=1), np.tile(np.arange(problem.n_var), (len(tours), 1)))
        assert np.array_equal(problem.tour_lengths(tours), lengths)


def interrupt_once(kind: Kind, at: int, copied: bool) -> None:
    """Interrupt a run before its line ``at``; it, or a copy of what it has come to, goes on to its end."""
    strike = Strike(at)
    try:
        algorithm = watched_run(kind, strike)
        assert strike.where
        if algorithm.problem is None:  # in set-up, which begins anew
            set_up(algorithm, kind)
        assert_sound(algorithm)
        kept = algorithm.result().F
        if copied:
            algorithm = copy.deepcopy(algorithm)
        for _ in range(2 * kind.n_gen):
            assert_lengths(algorithm.engine, algorithm.problem)
            if not algorithm.has_next():
                break
            algorithm.next()
            assert_sound(algorithm)
            assert kept is None or algorithm.result().F[0] <= kept[0]
        assert not algorithm.has_next()
    except BaseException as error:
        error.add_note(strike.where)
        raise


@pytest.mark.parametrize("kind", KINDS.values(), ids=list(KINDS))
def test_an_interrupt_between_two_lines_loses_no_tour_and_the_run_goes_on(kind, monkeypatch):
    shorten_climbs(monkeypatch)
    monkeypatch.setattr(parameters, "WHOLE_UP_TO", kind.whole_up_to)
    whole, watched = watched_run(kind, Strike()), Strike()  # what a process does once is done
    watched_run(kind, watched)
    for number, at in enumerate(watched.drawn()):
        interrupt_once(kind, at, copied=number % 3 == 2)
    again = watched_run(kind, Strike())
    assert np.array_equal(again.result().X, whole.result().X)


class Search(NamedTuple):
    """A memetic search of n_tours; one alone is searched in windows."""

    n_tours: int
    whole_up_to: int = 160

    def made(self) -> MemeticSearch:
        few = MemeticParameters(
            population_size=self.n_tours, whole_up_to=self.whole_up_to, window=64, trials=512, first_cycle=1.0
        )
        return MemeticSearch(CpuWindows(listed_instance(TSP(cities(160)), 8), few))


SEARCHES = {"two tours": Search(2), "nine tours": Search(9), "windows": Search(1, 8)}


def life(engine: MemeticSearch, accepts_first: bool) -> list[Callable[[], object]]:
    """Calls that a search gets among others: it searches, accepts their tours, and recombines with them."""
    n = engine.instance.n

    def immigrate() -> None:
        tours = given(n)
        engine.immigrate(tours, np.arange(1.0, 1.0 + len(tours)))

    def accept() -> None:
        engine.accept(given(n)[:1], [1.0])

    calls: list[Callable[[], object]] = [lambda: setattr(engine, "exchanges", True)]
    calls += [accept] if accepts_first else []
    for key in range(8):
        calls += [lambda key=key: engine.expect(key / 8.0), lambda key=key: engine.search(key)]
        calls += [immigrate, accept]
    return [*calls, lambda: engine.improve(given(n), 3)]


def interrupt_a_search(searched: Search, accepts_first: bool, at: int) -> None:
    """Interrupt a call before line ``at`` of all; it is made again, and the others follow."""
    problem, engine, strike = TSP(cities(160)), searched.made(), Strike(at)
    try:
        for call in life(engine, accepts_first):
            best = engine.rescued()[1] if len(engine.lengths) else np.inf
            try:
                with strike.watching():
                    call()
            except KeyboardInterrupt:
                assert engine.rescued()[1] <= best
                assert_lengths(engine, problem)
                restored = searched.made()
                restored.import_state(engine.export_state())
                assert np.array_equal(restored.lengths, engine.lengths)
                call()
            assert_lengths(engine, problem)
            tour, length = engine.rescued()
            assert problem.tour_length(tour) == length
        assert strike.where
    except BaseException as error:
        error.add_note(strike.where)
        raise


@pytest.mark.parametrize("accepts_first", [False, True])
@pytest.mark.parametrize("searched", SEARCHES.values(), ids=list(SEARCHES))
def test_a_call_of_a_search_among_others_is_whole_or_undone(searched, accepts_first):
    watched, whole = Strike(), searched.made()
    with watched.watching():
        for call in life(whole, accepts_first):
            call()
    for at in watched.drawn():
        interrupt_a_search(searched, accepts_first, at)


class NotedFront(Evaluator):
    """An evaluator that notes what it has given."""

    def __init__(self) -> None:
        super().__init__()
        self.given = np.empty((0, 2))

    def eval(self, problem: Any, pop: Any, *arguments: Any, **options: Any) -> Any:
        evaluated = super().eval(problem, pop, *arguments, **options)
        self.given = np.concatenate([self.given, pop.get("F")])
        return evaluated


def assert_front(algorithm: Any) -> None:
    """Each tour of the front is one, of exactly its lengths, and whatever was handed out is on it or dominated."""
    result, n = algorithm.result(), algorithm.problem.n_var
    if result.X is None:
        assert not len(algorithm.evaluator.given)
        return
    assert np.array_equal(np.sort(result.X, axis=1), np.tile(np.arange(n), (len(result.X), 1)))
    assert np.array_equal(algorithm.problem.tour_lengths(result.X), result.F)
    for lengths in algorithm.evaluator.given:
        assert (lengths >= result.F).all(axis=1).any()


def front_run(strike: Strike, n: int, sampling: Any) -> Any:
    algorithm = GPU2PPLS(sampling=sampling, **CPU)
    two = MultiObjectiveTSP([TSP(cities(n)), TSP(np.random.default_rng(2).random((n, 2)))])
    how = {"termination": ("n_gen", 3), "seed": 1, "evaluator": NotedFront()}
    try:
        with strike.watching():
            algorithm.setup(two, **how)
            algorithm.run()
    except KeyboardInterrupt:
        assert strike.where
        if algorithm.problem is None:
            algorithm.setup(two, **how)
    return algorithm


def interrupt_a_front(at: int, n: int, sampling: Any, copied: bool) -> None:
    """Interrupt a search for a front before its line ``at``; it, or a copy, goes on to its end."""
    strike = Strike(at)
    try:
        algorithm = front_run(strike, n, sampling)
        assert strike.where
        assert_front(algorithm)
        if copied:
            algorithm = copy.deepcopy(algorithm)
        for _ in range(6):
            if not algorithm.has_next():
                break
            algorithm.next()
            assert_front(algorithm)
        assert not algorithm.has_next()
    except BaseException as error:
        error.add_note(strike.where)
        raise


@pytest.mark.parametrize(
    ("n", "sampling"), [(8, None), (30, None), (30, given(30))], ids=["every tour", "30", "given"]
)
def test_an_interrupt_between_two_lines_keeps_the_front(n, sampling):
    whole, watched = front_run(Strike(), n, sampling), Strike()
    front_run(watched, n, sampling)
    for number, at in enumerate(watched.drawn()):
        interrupt_a_front(at, n, sampling, copied=number % 3 == 2)
    assert np.array_equal(front_run(Strike(), n, sampling).result().F, whole.result().F)


def test_no_rows_are_compared_by_numpy():
    """`numpy.unique` with an axis makes a TypeError of an interrupt that strikes while it compares rows."""
    package = Path(pymoo_gpuaco.__file__).parent
    calls = [
        (path.relative_to(package), node.lineno)
        for path in sorted(package.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "unique"
        if any(keyword.arg == "axis" for keyword in node.keywords)
    ]
    assert calls == []
