"""What pymoo promises about every algorithm: results, ask and tell, callbacks, copies, seeds, runners."""

import copy
import multiprocessing
import subprocess
import sys
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from pymoo.algorithms.hyperparameters import HyperparameterProblem, SingleObjectiveSingleRun
from pymoo.core.callback import Callback
from pymoo.core.evaluator import Evaluator
from pymoo.core.mixed import MixedVariableGA
from pymoo.core.parameters import flatten, get_params, hierarchical, set_params
from pymoo.core.population import Population
from pymoo.core.variable import Integer, Real
from pymoo.operators.sampling.rnd import PermutationRandomSampling
from pymoo.optimize import minimize
from pymoo.parallelization import StarmapParallelization
from pymoo.problems.single.traveling_salesman import TravelingSalesman
from pymoo.problems.static import StaticProblem
from pymoo.util.archive import SingleObjectiveArchive

from pymoo_gpuaco import GPUACS, GPUAS, GPUEAS, GPUMMAS, GPURAS, TSP, GPU2OptIHC, load_tsp
from pymoo_gpuaco.algorithms.told import canonical
from tests.algorithm_cases import (
    BACKEND,
    M,
    Tour,
    assert_same,
    cities,
    every_algorithm,
    every_colony,
    is_canonical,
    length,
    run_to_end,
    shorten_climbs,
    small,
    snapshot,
)


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    shorten_climbs(monkeypatch)


# ---- what a run gives back ------------------------------------------------------------------------------------------


@every_algorithm
def test_result_has_pymoo_shapes_and_the_length_of_its_tour(cls):
    problem = cities(14)
    res = minimize(problem, small(cls), ("n_gen", 4), seed=1)
    assert res.X.shape == (14,)
    assert is_canonical(res.X)
    assert res.F.shape == (1,)
    assert res.F[0] == length(problem, res.X) == problem.evaluate(res.X)[0]
    assert (res.G.shape, res.H.shape, res.CV.shape) == ((0,), (0,), (1,))
    assert res.CV[0] == 0.0
    assert len(res.opt) == len(res.pop) == 1
    assert np.array_equal(res.opt[0].X, res.X)
    assert res.pop[0].F[0] == length(problem, res.pop[0].X)
    assert res.history == []
    assert res.archive is None
    assert res.problem is problem
    assert isinstance(res.algorithm, cls)
    assert res.algorithm.n_gen == 5  # one past the last, as with every pymoo algorithm
    assert 0.0 <= res.exec_time < 600.0


@every_algorithm
def test_before_set_up_there_is_nothing_to_finalize(cls):
    cls(backend="cpu").finalize()


def test_a_start_tour_has_the_same_length_before_and_after_it_is_turned():
    rng = np.random.default_rng(5)
    problem = TSP(rng.random((1500, 2)), metric="EXACT")
    for tour in (rng.permutation(1500) for _ in range(20)):
        begun = minimize(problem, GPUAS(n_ants=1, sampling=tour[None], backend="cpu"), ("n_gen", 1), seed=1)
        assert begun.F[0] == problem.tour_length(tour)


@every_algorithm
def test_pcb442_takes_a_few_generations(cls):
    problem = load_tsp("pcb442")
    res = minimize(problem, small(cls), ("n_gen", 2), seed=1)
    assert is_canonical(res.X)
    assert res.F[0] == problem.tour_length(res.X) >= 50778  # its optimum


@every_colony
def test_elites_are_the_population_shortest_first(cls):
    problem = cities(14)
    res = minimize(problem, small(cls, n_elites=3, local_search=False), ("n_gen", 3), seed=1)
    assert len(res.pop) == 3
    F = res.pop.get("F")[:, 0]
    assert np.array_equal(F, np.sort(F))
    assert [length(problem, x) for x in res.pop.get("X")] == list(F)
    assert res.algorithm.evaluator.n_eval == 3 * M
    assert len(minimize(problem, small(cls, n_elites=M + 9), ("n_gen", 1), seed=1).pop) == M


@every_algorithm
def test_optimum_never_gets_worse_and_is_the_best_ever_told(cls):
    problem = cities(
        150 if cls is GPU2OptIHC else 30
    )  # of few cities every batch of climbs finds the best tour
    best, seen = [], []

    def watch(algorithm):
        best.append(float(algorithm.opt[0].F[0]))
        seen.append(float(algorithm.pop.get("F").min()))

    extra = {} if cls is GPU2OptIHC else {"local_search": False}
    minimize(problem, small(cls, **extra), ("n_gen", 25), seed=2, callback=watch)
    assert best == list(np.minimum.accumulate(seen))
    assert len(set(seen)) > 1  # generations differ, or nothing was shown


def test_canonical_form_turns_and_where_direction_is_free_mirrors():
    tours = [[3, 1, 2, 0, 4], [4, 0, 2, 1, 3]]  # one cycle in both directions
    assert canonical(tours, True).tolist() == [[0, 2, 1, 3, 4], [0, 2, 1, 3, 4]]
    assert canonical(tours, False).tolist() == [[0, 4, 3, 1, 2], [0, 2, 1, 3, 4]]


@every_algorithm
def test_n_eval_counts_every_tour_built(cls):
    counts = []
    algorithm = small(cls).setup(cities(14), termination=("n_gen", 4), seed=1)
    built = []
    if cls is GPU2OptIHC:
        climb = algorithm.engine.climb
        algorithm.engine.climb = lambda key: built.append(climb(key)) or built[-1]
    else:
        built = [M] * 4
    while algorithm.has_next():
        algorithm.next()
        counts.append(algorithm.evaluator.n_eval)
    assert counts == list(np.cumsum([max(1, b) for b in built]))
    assert len(counts) == 4


@every_algorithm
def test_return_least_infeasible_changes_nothing_without_constraints(cls):
    runs = [
        minimize(cities(12), small(cls, return_least_infeasible=flag), ("n_gen", 2), seed=1).X
        for flag in (False, True)
    ]
    assert np.array_equal(*runs)


@every_algorithm
def test_plain_run_gives_no_warnings(cls):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        minimize(cities(14), small(cls), ("n_gen", 2), seed=1, save_history=True)


def test_plain_run_gives_no_warnings_from_import_on():
    code = (
        "import numpy as np\n"
        "from pymoo.optimize import minimize\n"
        "from pymoo_gpuaco import GPUMMAS, TSP\n"
        "res = minimize(TSP(np.eye(9, 2) * 5, 'EUC_2D'), GPUMMAS(backend='cpu'), ('n_gen', 2), seed=1)\n"
        "print(len(res.X))\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr, done.returncode) == ("9\n", "", 0)


@every_algorithm
def test_archive_collects_what_was_handed_out(cls):
    problem = cities(14)
    archive = SingleObjectiveArchive(max_size=5)
    algorithm = small(cls).setup(problem, termination=("n_gen", 4), seed=1, archive=archive)
    run_to_end(algorithm)
    kept = algorithm.result().archive
    assert len(archive) == 0
    assert 1 <= len(kept) <= 5
    assert set(kept.get("F")[:, 0]) == {algorithm.opt[0].F[0]}
    # another problem: nothing of the first may be left
    other = cities(9, seed=8)
    run_to_end(algorithm.setup(other))
    assert {len(x) for x in algorithm.archive.get("X")} == {9}


@every_algorithm
def test_custom_evaluator_sees_what_is_handed_out_and_keeps_the_count(cls):
    class Counting(Evaluator):
        handed_out = 0

        def _eval(self, problem, pop, evaluate_values_of, **kwargs):
            self.handed_out += len(pop)
            assert kwargs["algorithm"].problem is problem
            super()._eval(problem, pop, evaluate_values_of, **kwargs)

    for form in ("constructor", "minimize"):
        evaluator, called = Counting(callback=lambda pop: called.append(len(pop))), []  # noqa: B023
        inside, outside = (
            ({"evaluator": evaluator}, {}) if form == "constructor" else ({}, {"evaluator": evaluator})
        )
        res = minimize(cities(14), small(cls, **inside), ("n_gen", 3), seed=1, **outside)
        used = res.algorithm.evaluator
        assert used.handed_out == 3
        assert called == [1, 1, 1]
        assert used.n_eval >= 3 if cls is GPU2OptIHC else used.n_eval == 3 * M
        if form == "minimize":
            assert used is evaluator


@every_algorithm
def test_evaluator_that_never_skips_changes_neither_count_nor_result(cls):
    plain = minimize(cities(14), small(cls), ("n_gen", 3), seed=1)
    res = minimize(
        cities(14), small(cls), ("n_gen", 3), seed=1, evaluator=Evaluator(skip_already_evaluated=False)
    )
    assert np.array_equal(plain.X, res.X)
    assert plain.algorithm.evaluator.n_eval == res.algorithm.evaluator.n_eval


@every_colony
def test_evaluator_shared_by_two_interleaved_runs_counts_the_tours_of_both(cls):
    problem, evaluator = cities(14), Evaluator()
    runs = [small(cls).setup(problem, seed=seed, evaluator=evaluator) for seed in (1, 2)]
    asked = [algorithm.ask() for algorithm in runs]
    for algorithm, pop in zip(runs, asked, strict=True):
        evaluator.eval(problem, pop)
        algorithm.tell(infills=pop)
    assert evaluator.n_eval == 2 * M


@every_algorithm
def test_data_of_the_user_becomes_res_data(cls):
    algorithm = small(cls)
    algorithm.data["note"] = 7
    res = minimize(cities(9), algorithm, ("n_gen", 2), seed=1)
    assert res.data["note"] == 7
    assert res.data is res.algorithm.data


# ---- problems -------------------------------------------------------------------------------------------------------


@every_algorithm
def test_pymoo_travelling_salesman_is_solved_and_left_alone(cls):
    problem = TravelingSalesman(np.random.default_rng(3).random((12, 2)))
    before = {key: copy.deepcopy(value) for key, value in vars(problem).items()}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        res = minimize(problem, small(cls), ("n_gen", 3), seed=1)
    assert res.F[0] == pytest.approx(length(problem, res.X), rel=1e-12)
    assert vars(problem).keys() == before.keys()
    assert np.array_equal(problem.D, before["D"])


@every_algorithm
def test_objective_of_the_user_counts_and_its_difference_is_told_once(cls):
    D = cities(10).D
    with pytest.warns(UserWarning, match="objective") as told:
        res = minimize(Tour(D, toll=1000.0), small(cls), ("n_gen", 4), seed=1)
    assert len([w for w in told if "objective" in str(w.message)]) == 1
    assert res.F[0] == length(Tour(D), res.X) + 1000.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        minimize(Tour(D), small(cls), ("n_gen", 2), seed=1)


@every_colony
def test_objective_decides_between_elites_not_the_distance(cls):
    problem = cities(12)

    class Longest(Tour):
        def _evaluate(self, x, out, *args, **kwargs):
            super()._evaluate(x, out)
            out["F"] = 5000.0 - out["F"]

    algorithm = small(cls, n_elites=M, local_search=False)
    algorithm.setup(Longest(problem.D), termination=("n_gen", 1), seed=1)
    with pytest.warns(UserWarning, match="objective"):
        algorithm.next()
    lengths = [length(problem, x) for x in algorithm.pop.get("X")]
    assert length(problem, algorithm.opt[0].X) == max(lengths) > min(lengths)


@every_algorithm
def test_negative_objective_runs(cls):
    with pytest.warns(UserWarning, match="objective"):
        res = minimize(Tour(cities(9).D, toll=-1e6), small(cls), ("n_gen", 3), seed=1)
    assert res.F[0] < 0
    assert is_canonical(res.X)


@every_colony
def test_asymmetric_matrix_keeps_its_direction(cls):
    # the one-way ring 0 > 1 > .. > 8 > 0 costs 1 an edge, everything else 10
    n = 9
    D = np.full((n, n), 10.0)
    D[np.arange(n), (np.arange(n) + 1) % n] = 1.0
    res = minimize(TSP(matrix=D), small(cls), ("n_gen", 40), seed=1)
    assert res.X.tolist() == list(range(n))
    assert res.F[0] == n


@every_algorithm
@pytest.mark.parametrize("n", [3, 4, 5])
def test_smallest_problems_are_solved(cls, n):
    problem = TSP(np.array([[0, 0], [100, 100], [0, 100], [100, 0], [50, 0]][:n]), "EXACT")
    extra = {} if cls is GPU2OptIHC else {"candidate_list_size": None if cls is GPUAS else 32}
    res = minimize(problem, small(cls, **extra), ("n_gen", 8), seed=1)
    # three corners of the square, or its sides: the fifth city lies on one
    assert res.F[0] == pytest.approx(200 + 100 * np.sqrt(2) if n == 3 else 400)
    assert is_canonical(res.X)


@every_algorithm
@pytest.mark.parametrize(
    ("problem", "best"),
    [
        (TSP(np.zeros((7, 2)), "EUC_2D"), 0.0),
        (TSP(matrix=np.zeros((6, 6))), 0.0),
        (TSP(matrix=np.full((8, 8), 3.0)), 24.0),
        (TSP(np.repeat([[0, 0], [0, 50], [50, 50], [50, 0]], 5, axis=0), "EUC_2D"), 200.0),
    ],
    ids=["one place", "zero matrix", "equal distances", "five cities a place"],
)
def test_coincident_cities_and_equal_distances(cls, problem, best):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        res = minimize(problem, small(cls), ("n_gen", 12), seed=1)
    assert is_canonical(res.X)
    assert res.F[0] == length(problem, res.X)
    if best != 200.0 or cls not in (GPUAS, GPUEAS, GPURAS, GPU2OptIHC):  # no other moves to finish it
        assert res.F[0] == best


@every_algorithm
def test_elementwise_runner_of_threads_evaluates(cls):
    with ThreadPoolExecutor(2) as pool:
        runner = StarmapParallelization(lambda f, rows: pool.map(lambda row: f(*row), rows))
        problem = Tour(cities(9).D, elementwise_runner=runner)
        res = minimize(problem, small(cls), ("n_gen", 2), seed=1)
    assert res.F[0] == length(problem, res.X)


def test_elementwise_runner_of_forked_processes_evaluates():
    with multiprocessing.get_context("fork").Pool(2) as pool:
        problem = Tour(cities(9).D, elementwise_runner=StarmapParallelization(pool.starmap))
        res = minimize(problem, small(GPUMMAS, n_elites=3), ("n_gen", 2), seed=1)
    assert res.F[0] == length(problem, res.X)


def test_elementwise_runner_of_joblib_evaluates():
    pytest.importorskip("joblib")
    from pymoo.parallelization import JoblibParallelization

    problem = Tour(cities(9).D, elementwise_runner=JoblibParallelization(n_jobs=2))
    res = minimize(problem, small(GPUMMAS, n_elites=3), ("n_gen", 2), seed=1)
    assert res.F[0] == length(problem, res.X)


# ---- ask and tell ---------------------------------------------------------------------------------------------------


@every_algorithm
@pytest.mark.parametrize("keyword", [False, True], ids=["tell(pop)", "tell(infills=pop)"])
def test_ask_and_tell_equals_minimize(cls, keyword):
    problem = cities(14)
    algorithm = small(cls).setup(problem, termination=("n_gen", 4), seed=3)
    while algorithm.has_next():
        pop = algorithm.ask()
        assert pop.get("F").size == 0  # handed out without F
        algorithm.evaluator.eval(problem, pop)
        _ = algorithm.tell(infills=pop) if keyword else algorithm.tell(pop)
    res = minimize(problem, small(cls), ("n_gen", 4), seed=3)
    assert_same(snapshot(algorithm), snapshot(res.algorithm))


@every_algorithm
def test_told_values_of_the_user_are_learned_and_counted(cls):
    problem = cities(14)
    algorithm = small(cls).setup(problem, termination=("n_gen", 3), seed=3)
    counts = []

    def documented_loop():
        while algorithm.has_next():
            pop = algorithm.ask()
            F = np.full((len(pop), 1), 7.0 + algorithm.n_gen)  # 8, 9, 10: the first stays best
            Evaluator().eval(StaticProblem(problem, F=F), pop)
            algorithm.tell(infills=pop)
            counts.append(algorithm.evaluator.n_eval)

    with pytest.warns(UserWarning, match="objective"):
        documented_loop()
    assert algorithm.opt[0].F[0] == algorithm.result().F[0] == 8.0
    if cls is not GPU2OptIHC:
        # what is told is not the length, so tours are handed out before and after the local search, where there is one
        each = M if algorithm.local_search is False else 2 * M
        assert counts == [M, M + each, M + 2 * each]
        assert algorithm._best_length == 8.0
    else:
        assert counts == sorted(set(counts))  # every generation counts


@every_colony
def test_told_fewer_and_reordered_individuals_are_learned(cls):
    problem = cities(14)
    algorithm = small(cls, n_elites=4, local_search=False).setup(problem, termination=("n_gen", 9), seed=3)
    pop = algorithm.ask()
    algorithm.evaluator.eval(problem, pop)
    shortest = pop[0]
    algorithm.tell(pop[[3, 0, 1]])
    assert algorithm.opt[0] is shortest
    assert np.array_equal(canonical(algorithm._best_tour[None], True)[0], shortest.X)
    assert len(algorithm.pop) == 3
    pop = algorithm.ask()
    algorithm.evaluator.eval(problem, pop)
    algorithm.tell(infills=pop[[2]])
    assert len(algorithm.pop) == 1
    assert algorithm.evaluator.n_eval == 2 * M


@every_algorithm
def test_told_altered_tour_is_taken_as_the_user_made_it(cls):
    problem = cities(14)
    algorithm = small(cls).setup(problem, termination=("n_gen", 9), seed=3)
    algorithm.ask()
    mine = np.roll(np.arange(14), 5)  # not in canonical form
    pop = Population.new("X", mine[None])
    algorithm.evaluator.eval(problem, pop)
    algorithm.tell(infills=pop)
    assert np.array_equal(algorithm.opt[0].X, mine)
    assert algorithm.opt[0].F[0] == length(problem, mine)
    if cls is not GPU2OptIHC:
        assert np.array_equal(algorithm._best_tour, mine)
    algorithm.next()
    assert algorithm.opt[0].F[0] <= length(problem, mine)


def _without_F(pop):
    pop.set("F", None)


def _nan(pop):
    pop.set("F", np.full((len(pop), 1), np.nan))


def _infinite(pop):
    pop.set("F", np.full((len(pop), 1), -np.inf))


def _two_values(pop):
    pop.set("F", np.ones((len(pop), 2)))


def _not_a_tour(pop):
    pop[0].X = np.zeros(14, dtype=int)
    pop.set("F", np.ones((len(pop), 1)))


def _too_short(pop):
    pop[0].X = np.arange(5)
    pop.set("F", np.ones((len(pop), 1)))


@every_algorithm
@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda pop: None, "must be evaluated"),
        (_without_F, "must be evaluated"),
        (_nan, "finite, got nan"),
        (_infinite, "finite, got -inf"),
        (_two_values, "one value"),
        (_not_a_tour, "infills: row 0"),
        (_too_short, "infills"),
    ],
    ids=["no F", "F is None", "NaN", "infinite", "two values", "no permutation", "wrong length"],
)
@pytest.mark.parametrize("generation", [1, 2])
def test_tell_refuses_what_it_cannot_learn_from_and_the_run_goes_on(cls, spoil, words, generation):
    problem = cities(14)
    algorithm = small(cls).setup(problem, termination=("n_gen", 3), seed=3)
    if generation == 2:
        algorithm.next()
    pop = algorithm.ask()
    good = copy.deepcopy(pop)
    spoil(pop)
    with pytest.raises(ValueError, match=words):
        algorithm.tell(infills=pop)
    algorithm.evaluator.eval(problem, good)
    algorithm.tell(infills=good)
    run_to_end(algorithm)
    assert_same(snapshot(algorithm), snapshot(minimize(problem, small(cls), ("n_gen", 3), seed=3).algorithm))


@every_algorithm
def test_tell_refuses_nothing_at_all(cls):
    algorithm = small(cls).setup(cities(9), seed=3)
    with pytest.raises(ValueError, match="ask"):
        algorithm.tell(infills=Population.new("X", np.arange(9)[None], "F", np.ones((1, 1))))
    algorithm.ask()
    with pytest.raises(ValueError, match="got none"):
        algorithm.tell(infills=None)
    with pytest.raises(ValueError, match="got none"):
        algorithm.tell(infills=Population.empty())
    with pytest.raises(TypeError, match="Population"):
        algorithm.tell(infills=np.arange(9)[None])


@every_algorithm
def test_ask_twice_before_tell_builds_twice_and_counts_both(cls):
    problem = cities(14)
    algorithm = small(cls).setup(problem, termination=("n_gen", 3), seed=3)
    for _ in range(3):
        before = algorithm.evaluator.n_eval
        algorithm.ask()
        key = getattr(algorithm, "_run_key", None)
        pop = algorithm.ask()
        assert getattr(algorithm, "_run_key", None) == key  # the run has begun once
        algorithm.evaluator.eval(problem, pop)
        algorithm.tell(infills=pop)
        built = algorithm.evaluator.n_eval - before
        assert built >= 2 if cls is GPU2OptIHC else built == 2 * M
    assert not algorithm.has_next()
    assert algorithm.opt[0].F[0] == length(problem, algorithm.opt[0].X)


# ---- callbacks ------------------------------------------------------------------------------------------------------


@every_algorithm
@pytest.mark.parametrize("place", ["constructor", "minimize", "setup"])
@pytest.mark.parametrize("form", ["function", "notify", "update"])
def test_callback_is_called_once_a_generation_with_all_it_needs(cls, place, form):
    seen = []

    def watch(algorithm):
        seen.append(algorithm.n_gen)
        assert algorithm.opt[0].F[0] <= algorithm.pop[0].F[0]
        assert np.array_equal(algorithm.off[0].X, algorithm.pop[0].X)
        assert algorithm.evaluator.n_eval >= algorithm.n_gen

    class Notified(Callback):
        def notify(self, algorithm):
            watch(algorithm)

    class Updated(Callback):
        def _update(self, algorithm):
            watch(algorithm)

    callback = {"function": lambda: watch, "notify": Notified, "update": Updated}[form]()
    problem = cities(9)
    if place == "constructor":
        minimize(problem, small(cls, callback=callback), ("n_gen", 3), seed=1)
    elif place == "minimize":
        minimize(problem, small(cls), ("n_gen", 3), seed=1, callback=callback)
    else:
        small(cls).setup(problem, termination=("n_gen", 3), seed=1, callback=callback).run()
    assert seen == [1, 2, 3]


class Uncopied(TSP):
    """A problem that cannot be copied until it is told otherwise."""

    fails = True

    def __deepcopy__(self, memo):
        if self.fails:
            raise MemoryError("no copy")
        return super().__deepcopy__(memo)


@every_algorithm
def test_a_copy_for_the_history_that_fails_leaves_callback_and_display(cls, monkeypatch):
    shorten_climbs(monkeypatch)
    problem, called = Uncopied(np.random.default_rng(1).random((9, 2)) * 100), []
    algorithm = small(cls)
    algorithm.setup(problem, termination=("n_gen", 3), seed=1, callback=called.append, save_history=True)
    with pytest.raises(MemoryError, match="no copy"):
        algorithm.run()
    assert algorithm.history == []
    assert algorithm.display is not None
    problem.fails = False
    algorithm.setup(problem, termination=("n_gen", 3), seed=1)
    algorithm.run()
    assert len(called) == len(algorithm.history) == 3


@every_algorithm
def test_callback_of_none_is_no_callback(cls):
    minimize(cities(9), small(cls), ("n_gen", 1), callback=None, evaluator=None, output=None, display=None)


@every_algorithm
def test_keyboard_interrupt_leaves_the_best_tour_within_reach(cls):
    problem = cities(14)

    def interrupt(algorithm):
        if algorithm.n_gen == 3:
            raise KeyboardInterrupt

    algorithm = small(cls).setup(problem, termination=("n_gen", 9), seed=1, callback=interrupt)
    with pytest.raises(KeyboardInterrupt):
        algorithm.run()
    res = algorithm.result()
    assert res.F[0] == length(problem, res.X) == algorithm.opt[0].F[0]
    three = minimize(problem, small(cls), ("n_gen", 3), seed=1)
    assert np.array_equal(res.X, three.X)


@every_algorithm
def test_loop_that_the_user_breaks_out_of(cls):
    problem = cities(14)
    algorithm = small(cls).setup(problem, termination=("n_gen", 50), seed=1)
    while algorithm.has_next():
        algorithm.next()
        if algorithm.n_gen > 2:
            break
    res = algorithm.result()
    assert np.array_equal(res.X, minimize(problem, small(cls), ("n_gen", 2), seed=1).X)
    algorithm.finalize()
    algorithm.next()  # and goes on, if told to
    assert algorithm.n_gen == 4


# ---- history and copies ---------------------------------------------------------------------------------------------


@every_algorithm
def test_history_holds_the_state_of_each_generation(cls):
    problem = cities(14)
    plain = minimize(problem, small(cls), ("n_gen", 4), seed=1)
    res = minimize(problem, small(cls), ("n_gen", 4), seed=1, save_history=True)
    assert_same(snapshot(plain.algorithm), snapshot(res.algorithm))
    assert [entry.n_gen for entry in res.history] == [1, 2, 3, 4]
    for generation, entry in enumerate(res.history, start=1):
        short = minimize(problem, small(cls), ("n_gen", generation), seed=1).algorithm
        short.n_gen -= 1  # pymoo copies before it counts on
        assert_same(snapshot(entry), snapshot(short))


@every_algorithm
def test_deep_copy_continues_equal_to_the_original(cls):
    algorithm = small(cls).setup(cities(14), termination=("n_gen", 6), seed=1)
    for _ in range(3):
        algorithm.next()
    twin = copy.deepcopy(algorithm)
    assert_same(snapshot(run_to_end(twin)), snapshot(run_to_end(algorithm)))
    assert twin.engine is not algorithm.engine


@every_algorithm
def test_copy_does_not_disturb_the_original(cls):
    algorithm = small(cls).setup(cities(14), termination=("n_gen", 5), seed=1)
    algorithm.next()
    run_to_end(copy.deepcopy(algorithm))
    run_to_end(algorithm)
    assert_same(
        snapshot(algorithm), snapshot(minimize(cities(14), small(cls), ("n_gen", 5), seed=1).algorithm)
    )


@every_algorithm
def test_minimize_leaves_the_given_object_unused(cls):
    algorithm = small(cls)
    minimize(cities(9), algorithm, ("n_gen", 2), seed=1)
    assert algorithm.problem is None
    assert algorithm.pop is None
    assert algorithm.opt is None
    assert algorithm.evaluator.n_eval == 0


# ---- a used object --------------------------------------------------------------------------------------------------


@every_algorithm
def test_setup_of_a_used_object_starts_anew(cls):
    algorithm = small(cls).setup(cities(9, seed=8), termination=("n_gen", 3), seed=4)
    run_to_end(algorithm)
    fresh = minimize(cities(14), small(cls), ("n_gen", 5), seed=1).algorithm
    run_to_end(algorithm.setup(cities(14), termination=("n_gen", 5), seed=1))
    assert_same(snapshot(algorithm), snapshot(fresh))
    assert algorithm.result().X.shape == (14,)


@every_algorithm
def test_setup_again_keeps_what_it_was_told_before(cls):
    algorithm = small(cls).setup(cities(14), termination=("n_gen", 3), seed=4)
    first = snapshot(run_to_end(algorithm))
    assert_same(first, snapshot(run_to_end(algorithm.setup(cities(14)))))


@every_algorithm
def test_minimize_with_a_finished_object_gives_its_result_again(cls):
    problem = cities(9)
    algorithm = small(cls).setup(problem, termination=("n_gen", 3), seed=4)
    run_to_end(algorithm)
    res = minimize(problem, algorithm, copy_algorithm=False)
    assert res.algorithm is algorithm
    assert np.array_equal(res.X, algorithm.opt[0].X)
    assert np.array_equal(minimize(problem, algorithm).X, res.X)  # and so does its copy


@every_algorithm
def test_setup_that_raises_leaves_the_object_as_it_was(cls):
    problem = cities(14)
    algorithm = small(cls)
    before = dict(vars(algorithm))
    for wrong in ({"n_elites": 0}, {"seed": -1}, {"sampling": 5}):
        with pytest.raises((TypeError, ValueError)):
            algorithm.setup(problem, **wrong)
        assert vars(algorithm) == before
    algorithm.setup(problem, termination=("n_gen", 4), seed=1)
    algorithm.next()
    with pytest.raises(ValueError, match="n_elites"):
        algorithm.setup(cities(9), n_elites=0, seed=9)
    run_to_end(algorithm)  # the run that was under way
    assert_same(snapshot(algorithm), snapshot(minimize(problem, small(cls), ("n_gen", 4), seed=1).algorithm))


# ---- seeds and threads ----------------------------------------------------------------------------------------------


@every_algorithm
def test_same_seed_same_run_and_other_seeds_others(cls):
    def run(seed):
        return snapshot(minimize(cities(30), small(cls), ("n_gen", 2), seed=seed).algorithm)

    assert_same(run(1), run(1))
    assert_same(run(1), run(np.int64(1)))
    assert_same(run(7), run(np.random.default_rng(7)))
    assert_same(run(2**40), run(2**40))
    key = "engine tours"
    different = {run(seed)[key].tobytes() for seed in (1, 2, 2**40, None, None)}
    assert len(different) == 5


@every_algorithm
@pytest.mark.parametrize("threads", [2, 5])
def test_same_result_for_any_number_of_threads(cls, threads, monkeypatch):
    monkeypatch.setenv("PYMOO_GPUACO_THREADS", "1")
    one = minimize(cities(40), small(cls), ("n_gen", 3), seed=1).algorithm
    monkeypatch.setenv("PYMOO_GPUACO_THREADS", str(threads))
    many = minimize(cities(40), small(cls), ("n_gen", 3), seed=1).algorithm
    assert_same(snapshot(one), snapshot(many))


@every_algorithm
def test_global_random_state_of_the_user_is_not_touched(cls):
    np.random.seed(5)  # noqa: NPY002
    expected = np.random.random(3)  # noqa: NPY002
    np.random.seed(5)  # noqa: NPY002
    minimize(cities(12), small(cls, sampling=PermutationRandomSampling()), ("n_gen", 2), seed=1)
    assert np.array_equal(np.random.random(3), expected)  # noqa: NPY002


def _solve(cls):
    return minimize(load_tsp("gr17"), small(cls), ("n_gen", 3), seed=1).F[0]


@pytest.mark.skipif(BACKEND != "cpu", reason="CUDA does not survive a fork; the engine says so")
@every_algorithm
def test_forked_pool_runs_after_its_parent_did(cls):
    expected = _solve(cls)
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert pool.map_async(_solve, [cls] * 3).get(timeout=60) == [expected] * 3


@every_algorithm
def test_two_threads_run_at_the_same_time_as_they_would_alone(cls):
    alone = [snapshot(minimize(cities(40), small(cls), ("n_gen", 4), seed=s).algorithm) for s in (1, 2)]
    together, start = {}, threading.Barrier(2)

    def run(seed):
        start.wait()
        together[seed] = snapshot(minimize(cities(40), small(cls), ("n_gen", 4), seed=seed).algorithm)

    threads = [threading.Thread(target=run, args=(seed,)) for seed in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert_same(alone[0], together[1])
    assert_same(alone[1], together[2])


def test_interleaved_algorithms_do_not_mix():
    problem = cities(14)
    runs = [small(cls).setup(problem, termination=("n_gen", 4), seed=1) for cls in (GPUMMAS, GPUACS, GPUMMAS)]
    while runs[0].has_next():
        for algorithm in runs:
            algorithm.next()
    assert_same(snapshot(runs[0]), snapshot(runs[2]))
    assert_same(snapshot(runs[1]), snapshot(minimize(problem, small(GPUACS), ("n_gen", 4), seed=1).algorithm))


# ---- arguments: misspelt ones, and pymoo's tuning -------------------------------------------------------------------


@every_algorithm
def test_misspelt_argument_raises_everywhere_and_the_known_ones_are_named(cls):
    own = "n_climbers" if cls is GPU2OptIHC else "n_ants"
    for call in (
        lambda: small(cls, n_antz=3),
        lambda: small(cls).setup(cities(9), n_antz=3),
        lambda: minimize(cities(9), small(cls), ("n_gen", 1), n_antz=3),
    ):
        with pytest.raises(TypeError, match="n_antz") as error:
            call()
        assert cls.__name__ in str(error.value)
        for known in (own, "sampling", "termination", "seed", "save_history"):
            assert known in str(error.value)


@every_algorithm
def test_arguments_given_to_minimize_are_checked_and_take_effect(cls):
    own = "n_climbers" if cls is GPU2OptIHC else "n_ants"
    with pytest.raises(ValueError, match=rf"{own} must be an integer in \[1, 1048576\], got -3"):
        minimize(cities(9), small(cls), ("n_gen", 1), **{own: -3})
    res = minimize(cities(9), small(cls), ("n_gen", 1), **{own: 3})
    assert getattr(res.algorithm.engine, own) == 3


@every_colony
def test_hyperparameters_are_found_set_and_used(cls):
    algorithm = cls(
        n_ants=Integer(5, bounds=(2, 20)),
        rho=Real(0.3, bounds=(0.01, 0.9)),
        beta=Real(2.0, bounds=(0.0, 5.0)),
        backend=BACKEND,
    )
    found = []
    search = threading.Thread(target=lambda: found.append(flatten(get_params(algorithm))), daemon=True)
    search.start()
    search.join(timeout=20)
    assert set(found[0]) == {"n_ants", "rho", "beta"}
    set_params(algorithm, hierarchical({"n_ants": 9, "rho": 0.5, "beta": 3.0}))
    problem = cities(12)
    tuned = minimize(problem, algorithm, ("n_gen", 3), seed=1)
    assert tuned.algorithm.evaluator.n_eval == 27
    direct = minimize(problem, cls(n_ants=9, rho=0.5, beta=3.0, backend=BACKEND), ("n_gen", 3), seed=1)
    assert_same(snapshot(tuned.algorithm), snapshot(direct.algorithm))
    set_params(algorithm, {"rho": 1.5})
    with pytest.raises(ValueError, match=r"rho must be in \(0, 1\], got 1.5"):
        minimize(problem, algorithm, ("n_gen", 1), seed=1)


def test_pymoo_tunes_a_colony():
    problem = cities(12)
    algorithm = small(GPUAS, rho=Real(0.5, bounds=(0.1, 0.9)), beta=Real(2.0, bounds=(0.5, 5.0)))
    tuning = HyperparameterProblem(
        algorithm, SingleObjectiveSingleRun(problem, termination=("n_gen", 2), seed=1)
    )
    res = minimize(tuning, MixedVariableGA(pop_size=4), ("n_gen", 2), seed=1)
    best = hierarchical(res.X)
    assert set(best) == {"rho", "beta"}
    assert res.F[0] == minimize(problem, small(GPUAS, **best), ("n_gen", 2), seed=1).F[0]
    assert algorithm.rho.value == 0.5  # the user's object is not the one that was tuned


def test_climbers_are_a_hyperparameter_too():
    algorithm = GPU2OptIHC(n_climbers=Integer(5, bounds=(2, 20)), backend=BACKEND)
    set_params(algorithm, hierarchical({"n_climbers": 3}))
    assert minimize(cities(9), algorithm, ("n_gen", 1), seed=1).algorithm.engine.n_climbers == 3
