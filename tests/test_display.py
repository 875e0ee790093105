"""Output under verbose and progress, from every place where pymoo lets one ask for it."""

import pickle

import numpy as np
import pytest
from pymoo.optimize import minimize
from pymoo.util.display.single import SingleObjectiveOutput

from pymoo_gpuaco import GPUMMAS, TSP, ColonyOutput, GPUMemetic
from pymoo_gpuaco.algorithms.display import speed
from tests.algorithm_cases import SIZES, M, cities, every_base, run_to_end, shorten_climbs, small

# where no best length is known, the gap is that to the proven lower bound
HEADER = ["n_gen", "tours", "best", "gap at most %", "iteration", "tours/s"]


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    shorten_climbs(monkeypatch)


def rows(text):
    """Printed rows as lists of cells, without the header's lines."""
    lines = [line for line in text.splitlines() if "|" in line]
    return [[cell.strip() for cell in line.split("|")] for line in lines]


@every_base
@pytest.mark.parametrize("place", ["constructor", "minimize", "setup"])
def test_verbose_prints_a_header_and_a_row_for_each_generation(cls, place, capsys):
    problem = cities(9)
    minimize(problem, small(cls), ("n_gen", 1), seed=1, verbose=True)  # may say that it compiles
    capsys.readouterr()
    if place == "constructor":
        res = minimize(problem, small(cls, verbose=True), ("n_gen", 3), seed=1)
    elif place == "minimize":
        res = minimize(problem, small(cls), ("n_gen", 3), seed=1, verbose=True)
    else:
        algorithm = small(cls).setup(problem, termination=("n_gen", 3), seed=1, verbose=True)
        run_to_end(algorithm)
        res = algorithm.result()
    out = capsys.readouterr().out
    header, *printed = rows(out)
    assert out.startswith(f"{cls.__name__}")  # what runs
    assert header == ([*HEADER[:-1], "trials/s"] if cls is GPUMemetic else HEADER)
    assert [row[0] for row in printed] == ["1", "2", "3"]
    if cls not in SIZES:
        assert [row[1] for row in printed] == [str(M), str(2 * M), str(3 * M)]
    assert float(printed[-1][2]) == res.F[0]


def test_focused_ants_tell_trials_a_second(capsys, monkeypatch):
    monkeypatch.setenv("PYMOO_GPUACO_THREADS", "2")
    res = minimize(cities(30), GPUMemetic(backend="cpu"), ("n_gen", 3), seed=1, verbose=True)
    header, *printed = rows(capsys.readouterr().out)
    assert header == [*HEADER[:-1], "trials/s"]
    assert all(int(row[-1]) > 0 for row in printed)
    # two tours, and 128 trials on both together in a generation
    assert res.algorithm.engine.n_trials == 3 * 128
    name, rate = speed(res.algorithm, 5, 2.0)
    assert (name, rate) == ("trials/s", 3 * 64.0)


@every_base
def test_nothing_is_printed_unasked(cls, capsys):
    minimize(cities(9), small(cls), ("n_gen", 2), seed=1)
    minimize(cities(9), small(cls, verbose=True), ("n_gen", 2), seed=1, verbose=False)
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "")


@every_base
def test_one_output_serves_two_runs_with_a_header_each(cls, capsys):
    output = SingleObjectiveOutput()
    for _ in range(2):
        minimize(cities(9), small(cls), ("n_gen", 1), seed=1, verbose=True, output=output)
    algorithm = small(cls, output=output)
    for _ in range(2):
        run_to_end(algorithm.setup(cities(9), termination=("n_gen", 1), verbose=True))
    assert [row[0] for row in rows(capsys.readouterr().out)] == ["n_gen", "1"] * 4


@every_base
def test_progress_bar_runs_to_its_end_and_copies_do_without_it(cls):
    kept = []
    res = minimize(
        cities(9),
        small(cls),
        ("n_gen", 3),
        seed=1,
        progress=True,
        save_history=True,
        callback=_Dump(kept),
    )
    assert res.algorithm.display.progress._max == 1.0
    resumed = pickle.loads(kept[0])
    assert resumed.display.progress is None
    resumed.n_gen += 1  # what pymoo does after the callback
    assert np.array_equal(run_to_end(resumed).opt[0].X, res.X)


class _Dump:
    def __init__(self, kept):
        self.kept = kept

    def __call__(self, algorithm):
        algorithm.callback = _nothing
        self.kept.append(pickle.dumps(algorithm))
        algorithm.callback = self


def _nothing(algorithm):
    pass


class _Seen:
    """An algorithm as an output sees it."""

    def __init__(self, best, iteration, known, problem=None, bound=None):
        self.bound_in_time = lambda longest: bound
        self.n_gen = 4
        self.start_time = 0.0
        self.evaluator = type("E", (), {"n_eval": 120})()
        self.problem = problem or type("P", (), {"best_known": known})()
        self.opt = type("O", (), {"get": lambda self, key: np.array([[best]])})()
        self.pop = type("O", (), {"get": lambda self, key: np.array([[iteration], [iteration + 1]])})()


def test_without_a_best_length_the_gap_is_to_the_lower_bound():
    output = ColonyOutput()
    output.update(_Seen(110.0, 112.5, None, bound=88.0))
    assert output.gap.name == "gap at most %"
    assert output.text().split("|")[3].strip() == "25.000"  # 110 / 88 = 1.25


def test_no_run_is_held_up_for_a_bound():
    """Of 1600 cities by a matrix it takes 5e-7 s for each of 2,560,000 pairs: 1.3 s, above the limit of 1.2 s."""
    algorithm = small(GPUMMAS)
    algorithm.setup(TSP(matrix=np.ones((1600, 1600)) - np.eye(1600)), termination=("n_gen", 1), seed=1)
    algorithm.next()
    output = ColonyOutput()
    output.update(algorithm)
    assert output.text().split("|")[3].strip() == "-"
    assert output.gap.name == "gap at most %"
