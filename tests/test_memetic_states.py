"""An exported memetic run continues: with the same engine bit by bit, with another kind from its tours."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from pymoo.core.termination import NoTermination

from pymoo_gpuaco import GPUMemetic
from tests.engine_cases import BACKENDS, assert_refuses_spoilt, cloud, memetic
from tests.memetic_cases import (
    best_of,
    same_generation,
    same_state,
    short,
    tours_of,
)

__all__ = ["short"]  # a fixture


@pytest.mark.parametrize("backend", BACKENDS)
class TestStates:
    @pytest.mark.parametrize("problem", [cloud(60, 2), cloud(60, 2, "EXACT")], ids=["whole", "fractions"])
    @pytest.mark.parametrize("generations", [0, 1, 3])
    def test_an_imported_state_continues_bit_by_bit(self, generations, problem, backend):
        original, copy, fresh = (memetic(problem, backend) for _ in range(3))
        copy.search(99)  # one that has been somewhere else, and one that has not
        for key in range(generations):
            original.search(key)
        for engine in (copy, fresh):
            engine.import_state(original.export_state())
            assert same_state(original, engine)
        for key in (50, 51):
            original.search(key)
            for engine in (copy, fresh):
                engine.search(key)
                assert np.array_equal(engine.lengths, original.lengths)
                assert same_state(original, engine)

    def test_another_run_goes_on_where_the_last_one_ended(self, backend):
        problem = cloud(60, 2)
        engine, another = (memetic(problem, backend) for _ in range(2))
        for key in range(5):
            engine.expect(key / 5)
            engine.search(key)
        assert engine._schedule.last
        another.import_state(engine.export_state())
        for key in range(5):
            another.expect(key / 5)  # 0 at first
            another.search(key)
        assert another.export_state()["best_length"] <= engine.export_state()["best_length"]

    @pytest.mark.parametrize(
        ("name", "spoil"),
        [("tours", 10**6), ("tours", 3), ("best", 3)],
    )
    def test_a_spoilt_state_changes_nothing(self, name, spoil, backend):
        engine = memetic(cloud(14), backend)
        engine.search(1)
        state = engine.export_state()
        assert_refuses_spoilt(engine, name, spoil, counts=state["counts"] + 1)
        for array in ("tours", "best"):
            lacking = {key: value for key, value in state.items() if key != array}
            with pytest.raises(ValueError, match=f"no array '{array}'"):
                engine.import_state(lacking)
        assert all(np.array_equal(state[key], array) for key, array in engine.export_state().items())


class TestAcrossEngines:
    """A state exported by one engine continues with the other, see ``memetic.state``."""

    @staticmethod
    def walked(problem, backend, generations=3):
        engine = memetic(problem, backend)
        for key in range(generations):
            engine.search(key)
        return engine

    @pytest.mark.gpu
    @pytest.mark.parametrize("problem", [cloud(60, 2), cloud(60, 2, "EXACT")], ids=["whole", "fractions"])
    @pytest.mark.parametrize(("one", "other"), [("cpu", "cuda"), ("cuda", "cpu")])
    def test_a_run_goes_on_with_the_other_engine_and_comes_back(self, one, other, problem):
        first = self.walked(problem, one)
        state = first.export_state()
        best = problem.tour_length(state["best"][0])
        second, twin = memetic(problem, other), memetic(problem, other)
        second.search(99)  # one that has been somewhere else, and one that has not
        for engine in (second, twin):
            engine.import_state(state)
        assert same_state(second, twin)
        assert np.array_equal(second.export_state()["best"], state["best"])
        for key in (50, 51):
            assert same_generation(second, twin, key)
            assert best_of(second) <= best * (1 + 1e-12)
            assert second.lengths == pytest.approx(problem.tour_lengths(tours_of(second)), rel=1e-12)
        there = second.export_state()
        assert problem.tour_length(there["best"][0]) <= best * (1 + 1e-12)
        back = memetic(problem, one)
        back.import_state(there)
        back.search(60)
        assert problem.tour_length(back.export_state()["best"][0]) <= problem.tour_length(
            there["best"][0]
        ) * (1 + 1e-12)

    @pytest.mark.gpu
    @pytest.mark.parametrize(("one", "other"), [("cpu", "cuda"), ("cuda", "cpu")])
    def test_annealing_goes_on_at_the_same_share_of_the_same_cycle(self, one, other):
        problem = cloud(60, 2)
        first, second = self.walked(problem, one, 0), memetic(problem, other)
        ours, theirs = first._schedule, second._schedule
        planned = second.device.plan.first_cycle
        ours.first, ours.cycle, ours.done, ours.rounds = 20 * planned, 2, 50 * planned, 70 * planned + 1
        second.import_state(first.export_state())
        assert (theirs.first, theirs.cycle) == (planned, 2)
        # 50 of 80 rounds are 5 of 8, and a part of a round is not done; of those since the start it counts as one
        assert (theirs.done, theirs.rounds) == (5 * planned // 2, 7 * planned // 2 + 1)
        assert theirs.last is False
        ours.started, ours.reported, ours.share, ours.last = 0.125, 0.25, 0.75, True
        second.import_state(first.export_state())
        assert (theirs.started, theirs.reported, theirs.share, theirs.last) == (0.125, 0.25, 0.75, True)

    @pytest.mark.gpu
    def test_a_copy_of_a_run_goes_on_with_an_engine_of_another_kind(self, monkeypatch):
        monkeypatch.setenv("PYMOO_GPUACO_THREADS", "3")
        problem = cloud(60, 2)
        algorithm = GPUMemetic(backend="cpu").setup(problem, termination=("n_gen", 6), seed=1)
        for _ in range(3):
            algorithm.next()
        other = copy.deepcopy(algorithm)
        other.backend = "cuda"
        while other.has_next():
            other.next()
        assert other.engine.kind == "cuda"
        # as many tours as suit it, not the CPU's
        assert other.engine.n_tours == memetic(problem, "cuda", None).n_tours
        assert other.opt[0].F[0] <= algorithm.opt[0].F[0]
        again = copy.deepcopy(other)
        again.backend = "cpu"
        again.termination = NoTermination()
        again.next()
        assert again.engine.kind == "cpu"
        assert again.engine.n_tours == algorithm.engine.n_tours
        assert again.opt[0].F[0] <= other.opt[0].F[0]


@pytest.mark.parametrize(
    ("name", "wrong", "words"),
    [
        ("engine", np.array([128]), "engine"),
        ("engine", np.array([[99, 112, 117]]), "engine"),
        ("schedule", np.array([0, 0, 0, 0, 0, 0, 0]), "schedule"),
        ("schedule", np.array([1, 0, 0, 0, 2, 0, 0]), "schedule"),
        ("schedule", np.array([1, 2, 0, 0, 0, 0, 3]), "schedule"),
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
def test_invalid_states_are_refused(name, wrong, words):
    engine = memetic(cloud(30), "cpu")
    engine.search(1)
    before = engine.export_state()
    with pytest.raises(ValueError, match=words):
        engine.import_state({**before, "tours": before["tours"][::-1], name: wrong})
    assert all(np.array_equal(array, before[key]) for key, array in engine.export_state().items())


def test_a_kind_of_device_is_known_by_its_name_and_others_go_on_from_its_tours():
    problem = cloud(30)
    engine, fresh = memetic(problem, "cpu"), memetic(problem, "cpu")
    for key in range(3):
        engine.search(key)
    state = engine.export_state()
    assert bytes(state["engine"].astype(np.uint8)) == b"cpu"
    of_another = {
        name: array.copy() for name, array in state.items() if name not in ("pace", "counts", "dirty")
    }
    of_another["engine"] = np.frombuffer(b"abacus", np.uint8).astype(np.int32)
    first = state["schedule"][0]
    of_another["schedule"][[0, 2, 3]] = 2 * first, 8, 9  # 8 of its rounds are done, 9 since the start
    fresh.import_state(of_another)
    there = fresh.export_state()
    assert bytes(there["engine"].astype(np.uint8)) == b"cpu"
    # the best comes first, as there may be space for few
    assert np.array_equal(
        there["tours"], np.concatenate([state["best"], state["tours"]])[: len(there["tours"])]
    )
    assert there["dirty"].all()
    assert there["counts"].tolist() == [0]
    assert there["pace"].tolist() == [0, 0, 0]
    assert there["schedule"][[0, 2, 3]].tolist() == [first, 4, 5]  # whose cycles have half as many
    fresh.search(9)
    assert best_of(fresh) <= best_of(engine)
