"""What every engine whose ants change good tours must do: its roles, on every kind of device."""

from __future__ import annotations

import copy
import math
import time

import numpy as np
import pytest
from pymoo.core.termination import NoTermination

from pymoo_gpuaco import GPUMMAS
from pymoo_gpuaco.algorithms.told import canonical
from pymoo_gpuaco.backends import (
    Accepts,
    ColonyEngine,
    Improver,
    SearchEngine,
    Stateful,
    Stoppable,
    Trails,
)
from pymoo_gpuaco.backends.cpu.focused import CpuWindows
from pymoo_gpuaco.candidates.exact import MOST_CITIES
from pymoo_gpuaco.candidates.lists import listed_instance
from pymoo_gpuaco.colony.parameters import ColonyParameters
from pymoo_gpuaco.colony.trails import TrailUpdate
from pymoo_gpuaco.problems import TSP
from pymoo_gpuaco.search.focused import FocusedSearch
from pymoo_gpuaco.search.parameters import FocusedParameters
from pymoo_gpuaco.search.state import trails_on
from tests.engine_cases import BACKENDS, INSTANCES, cloud, focused
from tests.test_doors import BAD_ROWS
from tests.test_engines import assert_permutations
from tests.windows_cases import folder

__all__ = ["folder"]  # a fixture

NAMES = [name for name, p in INSTANCES.items() if p.symmetric and p.n_cities > MOST_CITIES]


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Generations, and improving, of a few rounds: an emulated device takes seconds for each."""
    from pymoo_gpuaco.backends.cuda import focused as engine
    from pymoo_gpuaco.backends.cuda.windows import plan, windows

    monkeypatch.setattr(engine, "ROUNDS", 4)
    monkeypatch.setattr(engine, "ROUNDS_AT_ONCE", 2)
    monkeypatch.setattr(engine, "FIRST_CYCLE", 6)
    monkeypatch.setattr(engine, "FIRST_CYCLE_OF_ONE", 6)
    monkeypatch.setattr(plan, "MOST_TOURS", 2)
    monkeypatch.setattr(windows, "_IMPROVEMENT", windows._IMPROVEMENT[::12])


def at_hand(engine):
    """The tours that an engine works on."""
    with engine.device.working():
        return engine.device.read()


def best_of(engine):
    """Length of the best tour of a run."""
    return engine.best_tours()[1][0]


def same_generation(one, two, key) -> bool:
    """Whether a generation gives two engines the same tours."""
    one.search(key)
    two.search(key)
    return np.array_equal(one.lengths, two.lengths) and np.array_equal(
        one.best_tours(3)[0], two.best_tours(3)[0]
    )


def before_and_after_a_generation(backend):
    """A problem, two equal engines, as made and after a generation of both, and five tours to improve."""
    problem = cloud(60, 1)
    engine, other = (focused(problem, backend) for _ in range(2))
    start = np.array([np.random.default_rng(s).permutation(60) for s in range(5)])
    yield problem, engine, other, start
    engine.search(1)
    other.search(1)
    yield problem, engine, other, start


def same_state(one, two) -> bool:
    one, two = one.export_state(), two.export_state()
    return one.keys() == two.keys() and all(np.array_equal(one[name], two[name]) for name in one)


@pytest.mark.parametrize("backend", BACKENDS)
class TestFocused:
    @pytest.mark.parametrize("name", NAMES)
    def test_tours_are_permutations_and_lengths_exact(self, name, backend):
        problem = INSTANCES[name]
        engine = focused(problem, backend)
        exactly = {"rel": 0.0, "abs": 0.0} if problem.integral else {"rel": 1e-12}
        before = engine.first_tour()[1] * (1 + 1e-12)
        for key in (0, 7, 2**64 - 1):
            engine.search(key)
            tours, lengths = at_hand(engine), engine.lengths
            assert_permutations(tours, problem.n_cities)
            assert lengths == pytest.approx(problem.tour_lengths(tours), **exactly)
            best, its = engine.best_tours()
            assert_permutations(best, problem.n_cities)
            assert its == pytest.approx(problem.tour_lengths(best), **exactly)
            assert its[0] <= min(before, lengths.min())
            before = its[0]

    def test_the_best_tours_come_by_length(self, backend):
        problem = cloud(90, 3)
        engine = focused(problem, backend, n_ants=3)
        for key in range(3):
            engine.search(key)
            tours, lengths = at_hand(engine), engine.lengths
            best = engine.best_tours()[0][0]
            others = [
                row for row in np.argsort(lengths, kind="stable") if not np.array_equal(tours[row], best)
            ]
            for most in range(1, len(tours) + 3):
                found, their = engine.best_tours(most)
                rows = others[: most - 1]
                assert np.array_equal(found, np.concatenate([best[None], tours[rows]]))
                assert np.array_equal(their, [problem.tour_length(best), *lengths[rows]])

    def test_roles_and_kind(self, backend):
        engine = focused(cloud(14), backend)
        roles = (
            SearchEngine,
            Improver,
            Trails,
            Stateful,
            Accepts,
            Stoppable,
        )
        for role in roles:
            assert isinstance(engine, role)
        assert not isinstance(engine, ColonyEngine)
        assert engine.kind == backend
        assert engine.n_ants >= 1
        engine.search(1)
        assert engine.n_searched >= 1

    def test_trials_are_counted(self, backend):
        engine = focused(cloud(60, 3), backend)
        counts = [engine.n_trials]
        for key in range(3):
            engine.search(key)
            counts.append(engine.n_trials)
        assert counts[0] == 0
        assert counts == sorted(set(counts))  # more in every generation

    def test_before_a_run_the_first_tour_is_the_best(self, backend):
        problem = cloud(40, 2)
        engine = focused(problem, backend)
        tour, length = engine.first_tour()
        assert_permutations(tour[None], 40)
        assert length == problem.tour_length(tour)
        assert engine.lengths.shape == (0,)
        (best,), (its,) = engine.best_tours(3)
        assert np.array_equal(best, tour)
        assert its == length
        tour[:] = 0  # a copy
        assert np.array_equal(engine.first_tour()[0], best)

    def test_the_key_decides_everything(self, backend):
        problem = cloud(300, 9)
        one, two, other = (focused(problem, backend) for _ in range(3))
        for key in (3, 2**63 + 5):
            assert same_generation(one, two, key)
            assert same_state(one, two)
            other.search(key + 1)
            assert not same_state(one, other)

    @pytest.mark.parametrize("problem", [cloud(60, 2), cloud(60, 2, "EXACT")], ids=["whole", "fractions"])
    @pytest.mark.parametrize("generations", [0, 1, 3])
    def test_an_imported_state_continues_bit_by_bit(self, generations, problem, backend):
        original, copy, fresh = (focused(problem, backend) for _ in range(3))
        copy.search(99)  # one that has been somewhere else, and one that has not
        for key in range(generations):
            original.search(key)
            best = original.best_tours()[0][0]
            original.update_trails(TrailUpdate(0.1, ((best, 0.5),), tau_min=0.01, tau_max=2.0))
        for engine in (copy, fresh):
            engine.import_state(original.export_state())
            assert same_state(original, engine)
        for key in (50, 51):
            original.search(key)
            for engine in (copy, fresh):
                engine.search(key)
                assert np.array_equal(engine.lengths, original.lengths)
                assert same_state(original, engine)

    def test_a_long_run_finds_the_optimum_of_a_circle(self, backend):
        angle = np.random.default_rng(3).permutation(60) * 2 * np.pi / 60
        problem = TSP(np.column_stack([np.cos(angle), np.sin(angle)]) * 1e4, metric="EUC_2D")
        best = problem.tour_length(np.argsort(angle))
        engine = focused(problem, backend)
        for key in range(4):
            engine.search(key)
        assert best_of(engine) == best

    def test_unknown_progress_is_no_end(self, backend):
        problem = cloud(60, 2)
        told, untold, ending = (focused(problem, backend) for _ in range(3))
        told.expect(math.nan)
        ending.expect(1.0)
        for key in range(3):
            assert same_generation(told, untold, key)
        assert same_state(told, untold)
        assert math.isnan(told._schedule.progress)
        assert ending._schedule.progress == 1.0

    def test_another_run_goes_on_where_the_last_one_ended(self, backend):
        problem = cloud(60, 2)
        engine, another = (focused(problem, backend) for _ in range(2))
        for key in range(5):
            engine.expect(key / 5)
            engine.search(key)
        assert engine._schedule.last
        another.import_state(engine.export_state())
        for key in range(5):
            another.expect(key / 5)  # 0 at first
            another.search(key)
        assert another.export_state()["best_length"] <= engine.export_state()["best_length"]

    def test_the_best_tour_is_kept_while_tours_are_warm(self, backend):
        problem = cloud(80, 4)
        engine = focused(problem, backend)
        least = np.inf
        for key in range(5):
            engine.search(key)
            least = min(least, engine.lengths.min())
            assert problem.tour_length(engine.export_state()["best"][0]) <= least

    def test_accepted_tours_are_merged(self, backend):
        problem = cloud(70, 2)
        better = focused(problem, "cpu")
        for key in range(20):
            better.search(key)
        good, (length,) = better.best_tours()
        for begun in (False, True):
            engine = focused(problem, backend)
            if begun:
                engine.search(1)
            before, longest = at_hand(engine), engine.lengths.argmax() if begun else 0
            engine.accept(np.concatenate([np.arange(70)[None], good]), [9e9, length])
            best = engine.export_state()["best"][0]
            assert problem.tour_length(best) <= length
            # it takes the place of the longest tour; where there are none, that of all
            before[longest if begun else slice(None)] = best
            assert np.array_equal(at_hand(engine), before)
            assert np.array_equal(engine.lengths, problem.tour_lengths(before))
            engine.accept(np.empty((0, 70), np.int32), [])
            assert np.array_equal(engine.export_state()["best"][0], best)
            engine.search(2)
            assert problem.tour_length(engine.export_state()["best"][0]) <= length

    def test_improving_leaves_the_colony_alone(self, backend):
        for problem, engine, other, start in before_and_after_a_generation(backend):
            tours, lengths = engine.improve(start, 5)
            assert np.array_equal(lengths, problem.tour_lengths(tours))
            assert np.all(lengths < problem.tour_lengths(start))
            for few in (3, 1, 0):
                fewer, their = engine.improve(start[:few].reshape(few, 60), 5)
                assert np.array_equal(fewer, tours[:few])
                assert np.array_equal(their, lengths[:few])
            assert same_state(engine, other)
        assert same_generation(engine, other, 2)
        assert same_state(engine, other)

    def test_trail_update_by_hand(self, backend):
        # evaporation from 1.0 to 0.5, and tour edges + 0.25, cut to 0.7
        n = 13
        problem = TSP(np.column_stack([np.arange(n), np.zeros(n)]), "EUC_2D")
        engine = focused(problem, backend, k=12)
        tour = np.arange(n)
        engine.update_trails(TrailUpdate(0.5, ((tour, 0.25),), tau_min=0.1, tau_max=0.7))
        tau = engine.export_state()["tau"]
        assert set(np.unique(np.round(tau, 4))) == {np.float32(0.5), np.float32(0.7)}
        assert 22 <= (tau > 0.6).sum() <= 2 * n  # both directions of each edge that is a candidate
        assert engine.branching_factor(0.05) == pytest.approx((tau > 0.6).sum() / n)

    def test_without_time_there_are_first_tours_and_no_round(self, backend):
        problem = cloud(100, 3)
        engine = focused(problem, backend)
        engine.stop_at(time.monotonic() - 1.0)
        engine.search(1)
        tours = at_hand(engine)
        assert np.array_equal(tours[0], engine.first_tour()[0])
        assert np.array_equal(engine.lengths, problem.tour_lengths(tours))
        assert best_of(engine) == engine.lengths.min()
        assert engine.n_searched == 1
        assert engine.n_trials == 0
        before = engine.export_state()
        engine.search(2)
        assert all(np.array_equal(before[name], array) for name, array in engine.export_state().items())
        engine.stop_at(None)
        engine.search(2)
        assert engine.n_searched > 1
        assert engine.rescued() is None

    def test_time_enough_changes_nothing(self, backend):
        engine, other = (focused(cloud(60), backend) for _ in range(2))
        engine.stop_at(time.monotonic() + 1e4)
        for key in range(2):
            assert same_generation(engine, other, key)
        assert same_state(engine, other)

    @pytest.mark.parametrize("row", BAD_ROWS.values(), ids=BAD_ROWS)
    def test_what_is_no_tour_is_refused(self, row, backend):
        engine = focused(cloud(14), backend)
        before = engine.export_state()
        for door in (lambda: engine.improve(row[None], 1), lambda: engine.accept(row[None], [1.0])):
            with pytest.raises(ValueError, match="tours"):
                door()
        assert all(np.array_equal(before[name], array) for name, array in engine.export_state().items())

    @pytest.mark.parametrize(
        ("name", "spoil"),
        [("tau", np.nan), ("tau", -1.0), ("rest", np.nan), ("tours", 10**6), ("tours", 3), ("best", 3)],
    )
    def test_a_spoilt_state_changes_nothing(self, name, spoil, backend):
        engine = focused(cloud(14), backend)
        engine.search(1)
        state = engine.export_state()
        spoilt = state[name].astype(np.int64 if state[name].dtype.kind == "i" else np.float64)
        spoilt.flat[0], spoilt.flat[-1] = spoil, spoil
        with pytest.raises(ValueError, match=name):
            engine.import_state({**state, "tau": state["tau"] + 1.0, name: spoilt})
        for array in ("tau", "tours", "best"):
            lacking = {key: value for key, value in state.items() if key != array}
            with pytest.raises(ValueError, match=f"no array '{array}'"):
                engine.import_state(lacking)
        assert all(np.array_equal(state[key], array) for key, array in engine.export_state().items())

    def test_a_state_of_another_instance_is_refused(self, backend):
        with pytest.raises(ValueError, match="state"):
            focused(cloud(31), backend).import_state(focused(cloud(30), backend).export_state())


@pytest.mark.gpu
def test_fewer_cities_than_a_window_needs_are_refused():
    from pymoo_gpuaco.backends.cuda.focused import CudaWindows

    with pytest.raises(ValueError, match="at least 8 cities, got 7"):
        CudaWindows(listed_instance(cloud(7), 6), ColonyParameters(construction="focused"), 0)


@pytest.mark.gpu
@pytest.mark.parametrize("times", [1, 2])
def test_an_interrupt_in_a_generation_leaves_the_best_tour(times, monkeypatch):
    """Once, and once more while what has been launched is waited for."""
    problem = cloud(300, 1)
    engine = focused(problem, "cuda")
    engine.search(1)
    device, strikes = engine.device.device, iter(range(times))
    wait = device.wait

    def strike(early=False):
        if next(strikes, None) is not None:
            raise KeyboardInterrupt
        wait(early)

    monkeypatch.setattr(device, "wait", strike)
    before = engine.export_state()
    with pytest.raises(KeyboardInterrupt):
        engine.search(2)
    tour, length = engine.rescued()
    assert problem.tour_length(tour) == length
    after = engine.export_state()
    for name in ("best", "best_length", "schedule", "progress", "pace"):
        assert np.array_equal(before[name], after[name])
    if times == 1:  # rounds that have ended count
        assert np.array_equal(engine.lengths, problem.tour_lengths(at_hand(engine)))
    engine.search(3)
    assert engine.rescued() is None
    assert np.array_equal(engine.lengths, problem.tour_lengths(at_hand(engine)))


class TestAcrossEngines:
    """A state that one engine has put away goes on with the other, see ``search.state``."""

    @staticmethod
    def walked(problem, backend, generations=3):
        engine = focused(problem, backend)
        for key in range(generations):
            engine.search(key)
            best = engine.best_tours()[0][0]
            engine.update_trails(TrailUpdate(0.1, ((best, 0.5),), tau_min=0.01, tau_max=2.0))
        return engine

    @pytest.mark.gpu
    @pytest.mark.parametrize("problem", [cloud(60, 2), cloud(60, 2, "EXACT")], ids=["whole", "fractions"])
    @pytest.mark.parametrize(("one", "other"), [("cpu", "cuda"), ("cuda", "cpu")])
    def test_a_run_goes_on_with_the_other_engine_and_comes_back(self, one, other, problem):
        first = self.walked(problem, one)
        state = first.export_state()
        best = problem.tour_length(state["best"][0])
        second, twin = focused(problem, other), focused(problem, other)
        second.search(99)  # one that has been somewhere else, and one that has not
        for engine in (second, twin):
            engine.import_state(state)
        assert same_state(second, twin)
        assert np.array_equal(second.export_state()["best"], state["best"])
        for key in (50, 51):
            assert same_generation(second, twin, key)
            assert best_of(second) <= best * (1 + 1e-12)
            assert second.lengths == pytest.approx(problem.tour_lengths(at_hand(second)), rel=1e-12)
        there = second.export_state()
        assert problem.tour_length(there["best"][0]) <= best * (1 + 1e-12)
        back = focused(problem, one)
        back.import_state(there)
        back.search(60)
        assert problem.tour_length(back.export_state()["best"][0]) <= problem.tour_length(
            there["best"][0]
        ) * (1 + 1e-12)

    @pytest.mark.gpu
    @pytest.mark.parametrize(("one", "other"), [("cpu", "cuda"), ("cuda", "cpu")])
    def test_trails_stay_on_their_edges(self, one, other):
        problem = cloud(60, 2)
        state = self.walked(problem, one).export_state()
        engine = focused(problem, other)
        engine.import_state(state)
        there = engine.export_state()
        given = {
            (i, int(j)): t for i in range(60) for j, t in zip(state["ids"][i], state["tau"][i], strict=True)
        }
        for i in range(60):
            for j, trail in zip(there["ids"][i], there["tau"][i], strict=True):
                expected = given.get((i, int(j)), given.get((int(j), i), state["rest"][0]))
                assert trail == expected
        assert {0.729, 2.0} == {round(float(t), 6) for t in there["tau"].ravel()}  # 0.9^3, and tau_max
        assert there["rest"] == state["rest"]

    @pytest.mark.gpu
    @pytest.mark.parametrize(("one", "other"), [("cpu", "cuda"), ("cuda", "cpu")])
    def test_annealing_goes_on_at_the_same_share_of_the_same_cycle(self, one, other):
        problem = cloud(60, 2)
        first, second = self.walked(problem, one, 0), focused(problem, other)
        ours, theirs = first._schedule, second._schedule
        planned = second.device.plan.first_cycle
        ours.first, ours.cycle, ours.done, ours.rounds = 20 * planned, 2, 50 * planned, 70 * planned + 1
        second.import_state(first.export_state())
        assert (theirs.first, theirs.cycle) == (planned, 2)
        assert (theirs.done, theirs.rounds) == (2, 4)  # 50 of 80 are 2 of 4; 3.5, and any round at all counts
        assert theirs.last is False
        ours.started, ours.reported, ours.share, ours.last = 0.125, 0.25, 0.75, True
        second.import_state(first.export_state())
        assert (theirs.started, theirs.reported, theirs.share, theirs.last) == (0.125, 0.25, 0.75, True)

    @pytest.mark.gpu
    @pytest.mark.parametrize(("one", "other"), [("cpu", "cuda"), ("cuda", "cpu")])
    def test_pace_and_what_only_one_kind_reads_begin_anew(self, one, other):
        problem = cloud(60, 2)
        first, second, fresh = (
            self.walked(problem, one, 2),
            self.walked(problem, other, 3),
            focused(problem, other),
        )
        first._schedule.step, first._annealed, first._hot = 0.25, 2, True
        second._schedule.step, second._annealed, second._hot = 0.5, 3, True
        second.import_state(first.export_state())
        there = second.export_state()
        assert there["pace"].tolist() == [0, 0, 0]
        assert second._schedule.step == 0.0
        own = fresh.export_state()
        for name in {"dirty", "counts"} & own.keys():
            assert np.array_equal(there[name], own[name])

    @pytest.mark.gpu
    def test_a_copy_of_a_run_goes_on_with_an_engine_of_another_kind(self, monkeypatch):
        monkeypatch.setenv("PYMOO_GPUACO_THREADS", "3")
        problem = cloud(60, 2)
        algorithm = GPUMMAS(backend="cpu").setup(problem, termination=("n_gen", 6), seed=1)
        for _ in range(3):
            algorithm.next()
        other = copy.deepcopy(algorithm)
        other.backend = "cuda"
        while other.has_next():
            other.next()
        assert other.engine.kind == "cuda"
        # as many windows as suit it, not the CPU's three tours
        assert other.engine.n_ants == focused(problem, "cuda", None).n_ants != 3
        assert other.opt[0].F[0] <= algorithm.opt[0].F[0]
        again = copy.deepcopy(other)
        again.backend = "cpu"
        again.termination = NoTermination()
        again.next()
        assert again.engine.kind == "cpu"
        assert again.engine.n_ants == algorithm.engine.n_ants == 3
        assert again.opt[0].F[0] <= other.opt[0].F[0]


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_run_begins_from_a_given_tour(backend):
    problem = cloud(90, 5)
    engine = focused(problem, "cpu")
    for key in range(30):
        engine.search(key)
    good = canonical(engine.best_tours()[0], True)
    algorithm = GPUMMAS(sampling=good, backend=backend).setup(problem, termination=("n_gen", 2), seed=1)
    algorithm.next()
    state = algorithm.engine.export_state()
    for tour in (*state["tours"], state["best"][0]):  # no part of the greedy tour is better
        assert np.array_equal(canonical(tour[None], True), good)
    algorithm.next()
    assert algorithm.opt[0].F[0] <= problem.tour_length(good[0])


def test_trails_move_to_other_candidates_by_hand():
    # cities 0 .. 3; the trail of an edge that a city lists counts, else what the other city has of it, else the rest
    ids = np.array([[1], [2], [3], [0]], np.int32)
    tau = np.array([[1.0], [2.0], [3.0], [4.0]], np.float32)
    candidates = np.array([[1, 2], [0, 2], [0, 3], [0, 1]], np.int32)
    moved = trails_on(candidates, ids, tau, np.float32(9.0))
    assert moved.tolist() == [[1.0, 9.0], [1.0, 2.0], [9.0, 3.0], [4.0, 9.0]]
    assert trails_on(ids, ids, tau, np.float32(9.0)) is tau


@pytest.mark.parametrize(
    ("name", "wrong", "words"),
    [
        ("engine", np.array([128]), "engine"),
        ("engine", np.array([[99, 112, 117]]), "engine"),
        ("ids", np.zeros((5, 8), np.int32), "ids"),
        ("ids", np.full((30, 7), 30, np.int32), "ids"),
        ("ids", np.zeros(30, np.int32), "ids"),
        ("schedule", np.array([0, 0, 0, 0, 0, 0]), "schedule"),
        ("schedule", np.array([1, 0, 0, 0, 2, 0]), "schedule"),
        ("schedule", np.array([1, 0, 0]), "schedule"),
        ("progress", np.array([0.0, np.nan, 0.0, 0.0, 1.0]), "progress"),
        ("progress", np.array([-1.0, 0.5, 0.5, 0.0, 1.0]), "progress"),
        ("progress", np.array([0.0, 0.5, 0.5, 0.0, 1.5]), "progress"),
        ("best_length", np.array([-1.0]), "best_length"),
        ("pace", np.zeros(2), "pace"),
        ("pace", np.array([0, 0, 4]), "pace"),
        ("pace", np.array([0.1, 1.0, 0.0]), "pace"),
        ("pace", np.array([-0.1, 1.0, 0.0]), "pace"),
        ("counts", np.array([1, 2]), "counts"),
        ("counts", np.array([-1]), "counts"),
        ("dirty", np.full(30, 2), "dirty"),
    ],
)
def test_what_no_engine_puts_away_is_refused(name, wrong, words):
    engine = focused(cloud(30), "cpu")
    engine.search(1)
    before = engine.export_state()
    with pytest.raises(ValueError, match=words):
        engine.import_state({**before, "tau": before["tau"] + 1.0, name: wrong})
    assert all(np.array_equal(array, before[key]) for key, array in engine.export_state().items())


def test_a_kind_of_device_is_known_by_its_name_and_others_go_on_from_its_tours():
    problem = cloud(30)
    engine, fresh = focused(problem, "cpu"), focused(problem, "cpu")
    for key in range(3):
        engine.search(key)
    state = engine.export_state()
    assert bytes(state["engine"].astype(np.uint8)) == b"cpu"
    of_another = {name: array for name, array in state.items() if name not in ("pace", "counts", "dirty")}
    of_another["engine"] = np.frombuffer(b"abacus", np.uint8).astype(np.int32)
    fresh.import_state(of_another)
    there = fresh.export_state()
    assert bytes(there["engine"].astype(np.uint8)) == b"cpu"
    # the best comes first, as there may be room for few
    assert np.array_equal(
        there["tours"], np.concatenate([state["best"], state["tours"]])[: len(there["tours"])]
    )
    assert there["dirty"].all()
    assert there["counts"].tolist() == [0]
    assert there["pace"].tolist() == [0, 0, 0]
    fresh.search(9)
    assert best_of(fresh) <= best_of(engine)


@pytest.mark.parametrize("backend", BACKENDS)
class TestStopping:
    def test_improving_ends_where_there_is_no_time(self, backend):
        for problem, engine, other, start in before_and_after_a_generation(backend):
            engine.stop_at(time.monotonic() - 1.0)
            tours, lengths = engine.improve(start, 5)
            assert_permutations(tours, 60)
            assert np.array_equal(lengths, problem.tour_lengths(tours))
            engine.stop_at(time.monotonic() + 1e4)
            assert np.array_equal(engine.improve(start, 5)[0], other.improve(start, 5)[0])
            assert not np.array_equal(engine.improve(start, 5)[0], tours)
            engine.stop_at(None)
            assert same_state(engine, other)


@pytest.mark.parametrize("whole_up_to", [8, 1000])
def test_an_interrupt_on_the_cpu_leaves_the_best_tour_and_the_run_as_it_was(whole_up_to, monkeypatch):
    problem = cloud(400, 3)

    def made():
        parameters = FocusedParameters(whole_up_to=whole_up_to, window=64, trials=64)
        instance = listed_instance(problem, 8)
        engine = FocusedSearch(CpuWindows(instance, ColonyParameters(n_ants=2), parameters))
        engine.reset_trails(1.0)
        return engine

    engine, other = made(), made()
    for key in range(16):
        assert same_generation(engine, other, key)
    search = engine.device.search
    whole, part = search.search_tours, search.round

    def interrupted(work):
        def strike(*arguments):
            work(*arguments)
            raise KeyboardInterrupt

        return strike

    monkeypatch.setattr(search, "search_tours", interrupted(whole))
    monkeypatch.setattr(search, "round", interrupted(part))
    with pytest.raises(KeyboardInterrupt):
        engine.search(16)
    tour, length = engine.rescued()
    assert problem.tour_length(tour) == length
    assert same_state(engine, other)
    assert np.array_equal(engine.lengths, other.lengths)
    monkeypatch.undo()
    for key in (17, 18):
        assert same_generation(engine, other, key)
        assert engine.rescued() is None
    assert same_state(engine, other)
