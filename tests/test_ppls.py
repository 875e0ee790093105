"""GPU2PPLS: exact fronts of few cities, runs from files, limits, units of lengths, custom objectives, interrupts."""

from __future__ import annotations

import _thread
import copy
import pickle
import re
from contextlib import nullcontext

import numpy as np
import pytest
from pymoo.core.termination import TerminateIfAny
from pymoo.optimize import minimize
from pymoo.termination import get_termination

from pymoo_gpuaco import (
    GPU2PPLS,
    TSP,
    ColonyTermination,
    FrontTermination,
    MultiObjectiveTSP,
    checkpoint,
)
from pymoo_gpuaco.algorithms.display import ColonyOutput
from pymoo_gpuaco.pareto import search
from tests.engine_cases import BACKENDS
from tests.front_cases import beaten, dominated, engine_of, exact_front, problem_of
from tests.instances import front_instance


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_same_seed_gives_the_same_front(backend):
    fronts = [minimize(problem_of(30), GPU2PPLS(backend=backend), ("n_gen", 12), seed=1) for _ in range(2)]
    assert np.array_equal(fronts[0].F, fronts[1].F)
    assert np.array_equal(fronts[0].X, fronts[1].X)


@pytest.mark.parametrize(("n", "k"), [(3, 2), (4, 3), (5, 2), (8, 2), (8, 3), (7, 6)])
def test_few_cities_have_their_exact_front_after_one_generation(n, k):
    problem = problem_of(n, k, seed=n)
    result = minimize(problem, GPU2PPLS(), ("n_gen", 1), seed=1)
    assert np.array_equal(result.F, exact_front(problem))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(("k", "n_gen"), [(2, 40), (3, 30)])
def test_what_is_searched_for_is_the_exact_front(k, n_gen, backend):
    problem = problem_of(10, k, seed=3)
    result = minimize(problem, GPU2PPLS(backend=backend), ("n_gen", n_gen), seed=1)
    assert np.array_equal(result.F, exact_front(problem))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(("k", "metric"), [(2, "EUC_2D"), (4, "EUC_2D"), (2, "EXACT"), (3, "EXACT")])
def test_of_any_objectives_and_metric_each_length_is_that_of_its_tour(k, metric, backend):
    problem = problem_of(14, k, metric=metric)
    result = minimize(problem, GPU2PPLS(20, backend=backend), ("n_gen", 10), seed=1)
    assert len(result.F) > 20
    assert (np.sort(result.X, axis=1) == np.arange(14)).all()
    assert (problem.tour_lengths(result.X) == result.F).all()
    assert not dominated(result.F).any()
    assert len(np.unique(result.F, axis=0)) == len(result.F)
    assert (np.diff(result.F[:, 0]) >= 0).all()


def test_nothing_that_a_generation_hands_out_is_lost():
    problem = problem_of(25)
    algorithm = GPU2PPLS()
    algorithm.setup(problem, termination=("n_gen", 12), seed=1)
    seen = []
    while algorithm.has_next():
        infills = algorithm.ask()
        assert len(infills) <= 100
        assert all(one.F is None or len(one.F) == 0 for one in infills)
        algorithm.evaluator.eval(problem, infills)
        seen.append(infills.get("F"))
        message = algorithm.tell(
            infills=infills
        )  # the front, as of pymoo's algorithms; at the end the result
        assert np.array_equal(
            (message if algorithm.has_next() else message.opt).get("F"), algorithm.opt.get("F")
        )
    front = algorithm.result().F
    everything = np.concatenate(seen)
    assert not beaten(front, everything).any()
    known = {tuple(row) for row in front}
    assert all(tuple(row) in known for row in everything[~beaten(everything, front)])
    assert algorithm.evaluator.n_eval == algorithm.engine.n_tours > len(everything)


@pytest.mark.parametrize("few", [9, 100])  # of more cities it does what pays
def test_the_number_of_threads_changes_nothing(monkeypatch, few):
    monkeypatch.setattr("pymoo_gpuaco.pareto.search._FEW_CITIES", few)
    fronts = []
    for threads in ("1", "3"):
        monkeypatch.setenv("PYMOO_GPUACO_THREADS", threads)
        fronts.append(minimize(problem_of(30), GPU2PPLS(12), ("n_gen", 14), seed=1))
    assert np.array_equal(fronts[0].F, fronts[1].F)
    assert np.array_equal(fronts[0].X, fronts[1].X)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    ("n", "k", "first", "last", "few"), [(26, 2, 8, 14, 100), (26, 2, 8, 14, 9), (11, 3, 8, 9, 100)]
)
def test_a_run_goes_on_from_a_file_as_if_nothing_had_been(
    n, k, first, last, few, backend, tmp_path, monkeypatch
):
    monkeypatch.setattr("pymoo_gpuaco.pareto.search._FEW_CITIES", few)
    problem = problem_of(n, k)
    whole = minimize(problem, GPU2PPLS(12, backend=backend), ("n_gen", last), seed=1)
    begun = GPU2PPLS(12, backend=backend)
    begun.setup(problem, termination=("n_gen", last), seed=1)
    for _ in range(first):
        begun.next()
    checkpoint.save(begun, tmp_path / "run")
    for other in (checkpoint.load(tmp_path / "run"), pickle.loads(pickle.dumps(begun)), copy.deepcopy(begun)):
        while other.has_next():
            other.next()
        assert np.array_equal(other.result().F, whole.F)
        assert np.array_equal(other.result().X, whole.X)


def test_a_state_of_another_kind_is_refused():
    engine = engine_of(problem_of(20))
    engine.search(0)
    state = engine.export_state()
    with pytest.raises(ValueError, match=r"state\['archive_tours'\]: row 0 is not a permutation"):
        engine.import_state({**state, "archive_tours": np.zeros_like(state["archive_tours"])})
    empty = {name: state[name][:0] for name in state if name.startswith("archive_") and state[name].ndim == 2}
    empty |= {name: state[name][:0] for name in ("archive_explored", "archive_present")}
    with pytest.raises(ValueError, match="must have a tour of the front if sums were solved"):
        engine.import_state({**state, **empty})
    assert len(engine.archive.front)


@pytest.mark.parametrize(
    ("first", "then", "message"),
    [
        (None, [[1, 2], [2, 1]], "ref_dirs must not be given, as in the run that the state is of"),
        ([[1, 2], [2, 1]], None, "ref_dirs must be given, as in the run that the state is of"),
        ([[1, 2], [2, 1]], [[1, 2], [1, 1]], None),
    ],
)
def test_a_run_goes_on_with_ref_dirs_only_where_it_began_with_some(first, then, message):
    problem = problem_of(20)
    begun, other = engine_of(problem, ref_dirs=first), engine_of(problem, ref_dirs=then)
    for key in range(2):
        begun.search(key)
    with pytest.raises(ValueError, match=message) if message else nullcontext():
        other.import_state(begun.export_state())
    if message is None:
        n_sums = other.n_sums
        other.search(2)
        assert other.n_sums == n_sums + 1  # the direction that the first run did not have


def test_the_front_has_at_most_archive_size_tours_and_what_went_is_reported(caplog):
    with caplog.at_level("INFO", logger="pymoo_gpuaco"):
        result = minimize(problem_of(40), GPU2PPLS(archive_size=20), ("n_gen", 12), seed=1)
    assert len(result.F) == 20
    assert not dominated(result.F).any()
    assert "archive_size=20" in caplog.text


def test_directions_count_by_their_shares_whatever_their_sum():
    large, small = (
        minimize(problem_of(20), GPU2PPLS(ref_dirs=given), ("n_gen", 3), seed=1)
        for given in ([[1, 3], [4, 0]], [[1e-6, 3e-6], [1e308, 0]])
    )
    assert np.array_equal(large.F, small.F)
    assert np.array_equal(large.algorithm.engine._parameters.directions, [[0.25, 0.75], [1, 0]])


@pytest.mark.parametrize(
    "termination",
    [None, ("n_eval", 2000), ("moo",), FrontTermination(stagnation=3), FrontTermination(n_max_gen=3)],
)
def test_runs_end_by_pymoos_terminations_and_by_themselves(termination):
    problem = problem_of(9)
    if termination == ("moo",):
        termination = get_termination("moo", n_max_gen=20)
    result = minimize(problem, GPU2PPLS(), termination, seed=1)
    assert np.array_equal(result.F, exact_front(problem))


@pytest.mark.parametrize("sampling", [None, np.arange(9)[None]])
def test_few_cities_end_when_every_tour_has_been_looked_at(sampling):
    problem = problem_of(9)
    result = minimize(problem, GPU2PPLS(sampling=sampling), FrontTermination(), seed=1)
    assert result.algorithm.termination.reason == "proof: every tour has been explored"
    assert result.algorithm.n_gen <= 2 + (sampling is not None)
    assert np.array_equal(result.F, exact_front(problem))


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"n_weights": 1}, ValueError, "n_weights must be an integer in [2, 100000], got 1"),
        ({"n_weights": 100_001}, ValueError, "n_weights must be an integer in [2, 100000], got 100001"),
        ({"n_weights": 2.5}, TypeError, "n_weights must be an integer in [2, 100000], got 2.5"),
        (
            {"n_weights": 9, "ref_dirs": [[1, 2], [2, 1]]},
            ValueError,
            "ref_dirs both define the weighted sums",
        ),
        ({"archive_size": 3}, ValueError, "archive_size must be an integer >= 4, got 3"),
        (
            {"candidate_list_size": 0},
            ValueError,
            "candidate_list_size must be an integer in [1, 1024], got 0",
        ),
        ({"ref_dirs": [[1, 2, 3]]}, ValueError, "ref_dirs must have shape (d, k)"),
        (
            {"ref_dirs": [[1, 2], [0, 0]]},
            ValueError,
            "ref_dirs must not have a row of zeros, got zeros in row 1",
        ),
        ({"ref_dirs": [[1, 2], [-1, 2]]}, ValueError, "ref_dirs"),
        ({"backend": "gpu"}, ValueError, "backend must be one of"),
        ({"pop_size": 9}, TypeError, "GPU2PPLS has no argument 'pop_size'"),
    ],
)
def test_what_is_no_argument_is_refused(given, error, message):
    with pytest.raises(error, match=re.escape(message)):
        GPU2PPLS(**given)


def test_what_it_cannot_search_is_refused():
    with pytest.raises(ValueError, match="archive_size must be an integer >= 12, got 11"):
        minimize(problem_of(9, 6), GPU2PPLS(archive_size=11), ("n_gen", 1))
    with pytest.raises(ValueError, match="ref_dirs must have 2 columns, one per objective, got 3"):
        minimize(problem_of(20), GPU2PPLS(ref_dirs=np.eye(3)), ("n_gen", 1))
    with pytest.raises(ValueError, match="1 objective"):
        minimize(TSP(np.random.default_rng(0).random((12, 2))), GPU2PPLS(), ("n_gen", 1))


def test_a_front_that_was_looked_at_after_an_interrupt_is_there_after_the_next_generation_too(monkeypatch):
    """Of up to 9 cities the first generation looks at every tour: the second adds nothing, and pymoo begins again."""
    problem = problem_of(8)
    algorithm = GPU2PPLS(backend="cpu").setup(problem, termination=("n_gen", 5), seed=1)
    engine = algorithm.engine
    search_whole = engine.search

    def struck(key: int) -> None:
        search_whole(key)
        monkeypatch.undo()
        raise KeyboardInterrupt

    monkeypatch.setattr(engine, "search", struck)
    with pytest.raises(KeyboardInterrupt):
        algorithm.next()
    front = algorithm.result().F
    assert len(front) > 3
    algorithm.next()
    assert np.array_equal(algorithm.result().F, front)
    assert np.array_equal(algorithm.opt.get("F"), front)


def test_an_objective_that_is_no_length_is_reported_and_evaluated():
    class Priced(MultiObjectiveTSP):
        def _evaluate(self, x, out, *args, **kwargs):
            super()._evaluate(x, out)
            out["F"] = out["F"] + 5.0

    parts = problem_of(20).parts
    with pytest.warns(UserWarning, match="are not the tour's lengths"):
        result = minimize(Priced(parts), GPU2PPLS(), ("n_gen", 6), seed=1)
    assert (problem_of(20).tour_lengths(result.X) + 5.0 == result.F).all()


def test_under_other_objectives_the_front_is_what_no_other_dominates():
    class Flat(MultiObjectiveTSP):
        def _evaluate(self, x, out, *args, **kwargs):
            super()._evaluate(x, out)
            out["F"][:, 1] = 7.0

    with pytest.warns(UserWarning, match="are not the tour's lengths"):
        result = minimize(Flat(problem_of(20).parts), GPU2PPLS(), ("n_gen", 3), seed=1)
    same = minimize(problem_of(20), GPU2PPLS(), ("n_gen", 3), seed=1)
    assert result.F.tolist() == [[same.F[0, 0], 7.0]]


def test_another_objective_of_any_tour_is_reported():
    class Surcharged(MultiObjectiveTSP):
        def _evaluate(self, x, out, *args, **kwargs):
            super()._evaluate(x, out)
            out["F"][x[:, 1] == 2] += 1e5

    tours = np.array([np.arange(20), [0, 2, 1, *range(3, 20)]])
    problem = Surcharged(problem_of(20).parts)
    with pytest.warns(UserWarning, match="are not the tour's lengths"):
        result = minimize(problem, GPU2PPLS(sampling=tours), ("n_gen", 1), seed=1)
    assert result.X.tolist() == tours[:1].tolist()  # the other one is longer by both


def matrices(n: int, scale: float) -> list[np.ndarray]:
    """Two symmetric matrices of costs between .002 and 2 of a unit."""
    costs = np.random.default_rng(1).integers(1, 1000, (2, n, n)) / 1000
    return list((costs + costs.transpose(0, 2, 1)) * scale)


@pytest.mark.parametrize("scale", [1e-130, 1e17, 1e29])
def test_the_unit_of_lengths_changes_no_front(scale):
    """From 2^53 on every number is whole, but not every sum of them."""
    usual = minimize(MultiObjectiveTSP(matrices(10, 1.0)), GPU2PPLS(backend="cpu"), ("n_gen", 30), seed=1)
    problem = MultiObjectiveTSP(matrices(10, scale))
    result = minimize(problem, GPU2PPLS(backend="cpu"), ("n_gen", 30), seed=1)
    assert np.array_equal(problem.tour_lengths(result.X), result.F)
    assert result.F.shape == usual.F.shape
    assert np.allclose(result.F, usual.F * scale, rtol=1e-9, atol=0.0)


def test_lengths_whose_products_vanish_are_refused():
    problem = MultiObjectiveTSP(matrices(10, 1e-200), names=["hours", "euros"])
    with pytest.raises(ValueError, match="lengths by 'hours' must be 0 or at least 1e-140, got"):
        minimize(problem, GPU2PPLS(), ("n_gen", 1))


@pytest.mark.parametrize(("longest", "exact"), [(2.0**49, True), (2.0**50, False)])
def test_lengths_are_whole_numbers_as_long_as_double_precision_holds_them(longest, exact):
    matrix = np.full((8, 8), 3.0)
    matrix[2, 5] = matrix[5, 2] = longest
    instance = front_instance(MultiObjectiveTSP([TSP(matrix=matrix), TSP(np.eye(8, 2), "EUC_2D")]), 5)
    assert instance.integral == exact
    assert instance.unit[1] == 1.0
    assert (instance.unit[0] == 1.0) == exact


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_limit_of_time_ends_a_generation_and_keeps_the_front(backend):
    problem = problem_of(60)
    result = minimize(problem, GPU2PPLS(backend=backend), ("time", 0.5), seed=1)
    assert (problem.tour_lengths(result.X) == result.F).all()
    assert not dominated(result.F).any()


def _to_the_end(algorithm: GPU2PPLS) -> None:
    while algorithm.has_next():
        algorithm.next()


def test_an_interrupt_keeps_the_front(monkeypatch):
    problem = problem_of(30)
    algorithm = GPU2PPLS(4)
    algorithm.setup(problem, termination=("n_gen", 50), seed=1)
    engine = algorithm.engine
    look, calls = engine._device.explore, []

    def interrupted(*args):
        calls.append(engine.archive.points.copy())
        if len(calls) == 3:
            _thread.interrupt_main()
        return look(*args)

    monkeypatch.setattr(engine._device, "explore", interrupted)
    with pytest.raises(KeyboardInterrupt):
        _to_the_end(algorithm)
    result = algorithm.result()
    # members are there, or better ones
    assert (result.F[None] <= calls[-1][:, None]).all(axis=2).any(axis=1).all()
    assert (problem.tour_lengths(result.X) == result.F).all()
    assert not dominated(result.F).any()
    algorithm.next()
    assert not beaten(algorithm.opt.get("F"), result.F).any()


@pytest.mark.parametrize("work", ["explore", "corners"])
def test_what_is_cut_short_is_not_noted_as_done(work, monkeypatch):
    engine = engine_of(problem_of(20))
    device, cut = engine._device, []
    owner, name = (search, "assemble_pairs") if work == "corners" else (device, work)
    whole = getattr(owner, name)

    def cut_short(*given, **named):
        cut.append(work)
        device.stop.flag[0] = 1
        return whole(*given, **named)

    def done() -> int:
        """Amount of work that is noted."""
        return int((engine.archive.explored > 0).sum()) if work == "explore" else len(engine._assembled)

    with monkeypatch.context() as patch:
        patch.setattr(owner, name, cut_short)
        key = 0
        while not cut:
            before, key = done(), key + 1
            engine.search(key)
    assert done() == before
    while done() == before:  # it is done now
        key += 1
        engine.search(key)
        assert key < 60


@pytest.mark.parametrize("k", [2, 3, 6])
def test_the_display_is_of_any_number_of_objectives(k, capsys):
    minimize(problem_of(12, k), GPU2PPLS(), ("n_gen", 2), seed=1, verbose=True)
    *_, last = capsys.readouterr().out.strip().splitlines()
    shown = [cell.strip() for cell in last.split("|")]
    assert (shown[3] == "-") == (k == 6)  # a hypervolume that would take long
    assert (shown[4] == "-") == (k > 2)


def test_what_is_of_one_length_is_refused_or_left_out_of_a_run():
    single_objective = TerminateIfAny(get_termination("n_gen", 2), ColonyTermination(proven=True))
    with pytest.raises(TypeError, match="ColonyTermination is for one objective"):
        GPU2PPLS(backend="cpu").setup(problem_of(20), termination=single_objective, seed=1)
    shown = minimize(
        problem_of(20), GPU2PPLS(backend="cpu"), ("n_gen", 2), verbose=True, output=ColonyOutput()
    )
    assert shown.algorithm.bound_in_time() is None
