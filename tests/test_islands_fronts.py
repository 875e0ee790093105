"""Islands of GPU2PPLS: what they exchange, and that theirs is one front."""

import _thread
import json
import os
import signal

import numpy as np
import pytest
from pymoo.optimize import minimize

from pymoo_gpuaco import GPU2PPLS, GPUMemetic, Islands, MultiObjectiveTSP, checkpoint
from pymoo_gpuaco.cli import main
from pymoo_gpuaco.fronts.instance import front_instance
from pymoo_gpuaco.fronts.parts import Part
from pymoo_gpuaco.islands import front_island
from pymoo_gpuaco.islands.front_archipelago import FrontArchipelago
from pymoo_gpuaco.islands.front_island import FrontIsland
from pymoo_gpuaco.islands.leader import Rules
from tests.algorithm_cases import BACKEND, run_to_end
from tests.islands_cases import keys_of, wait_until

pytest.importorskip("distributed")


@pytest.fixture
def client(two_workers):
    """Two workers that are well."""
    wait_until(lambda: len(two_workers.client.nthreads()) == 2)
    return two_workers.client


def problem_of(n=25, k=2):
    return MultiObjectiveTSP(list(np.random.default_rng(0).random((k, n, 2))))


def lock_step(**arguments):
    return Islands(
        GPU2PPLS(backend=BACKEND), **{"n_islands": 2, "deterministic": True, "exchange_every": 2, **arguments}
    )


def begun(n_gen=5, seed=1, n=60, **arguments):
    return lock_step(**arguments).setup(problem_of(n), termination=("n_gen", n_gen), seed=seed)


def assert_same_front(first, second):
    assert np.array_equal(first.result().F, second.result().F)
    assert np.array_equal(first.result().X, second.result().X)
    assert first.evaluator.n_eval == second.evaluator.n_eval


def undominated(F):
    worse = (F[None] <= F[:, None]).all(axis=2) & (F[None] < F[:, None]).any(axis=2)
    return not worse.any()


@pytest.mark.parametrize("termination", [("n_gen", 6), ("time", 1.5)], ids=lambda told: told[0])
def test_the_result_is_one_front_of_all_that_islands_report(client, termination, capsys):
    problem = problem_of(k=3)
    islands = Islands(GPU2PPLS(backend=BACKEND), client=client, exchange_every=0.1)
    result = minimize(problem, islands, termination, seed=1, verbose=True)
    engine = result.algorithm.engine
    assert (problem.tour_lengths(result.X) == result.F).all()
    assert undominated(result.F)
    assert (np.diff(result.F[:, 0]) >= 0).all()
    assert engine.n_islands == 2
    assert all(value > 0 for value in engine.values)
    assert "island 1" in capsys.readouterr().out
    assert result.algorithm.evaluator.n_eval >= len(result.F)


def test_lock_step_gives_the_same_front_for_the_same_seed_also_from_a_file(client, two_workers, tmp_path):
    first, second, other = (run_to_end(begun(client=client, seed=seed)) for seed in (1, 1, 2))
    assert_same_front(first, second)
    assert not np.array_equal(first.result().F, other.result().F)
    stopped = begun(client=client)
    stopped.next()
    stopped.next()
    checkpoint.save(stopped, tmp_path / "run")
    stopped.finalize()
    resumed = checkpoint.load(tmp_path / "run", allow_pickle=True)
    with keys_of(two_workers):
        assert_same_front(run_to_end(resumed), first)


@pytest.mark.skipif(os.name != "posix", reason="kills a process")
def test_a_worker_that_is_killed_changes_no_front_in_lock_step(client):
    undisturbed = run_to_end(begun(client=client))
    algorithm = begun(client=client)
    algorithm.next()
    algorithm.next()
    address = algorithm.engine.members[0].worker
    os.kill(client.run(os.getpid, workers=[address])[address], signal.SIGKILL)
    assert_same_front(run_to_end(algorithm), undisturbed)


@pytest.mark.parametrize(("topology", "expected"), [("all", True), ("ring", True), ("none", False)])
def test_islands_are_sent_what_is_new_to_the_front_of_the_others(client, topology, expected):
    algorithm = begun(client=client, topology=topology)
    algorithm.next()
    algorithm.next()
    engine, sent = algorithm.engine, []
    send = engine._rounds.send
    engine._rounds.send = lambda member, task: sent.append(task) or send(member, task)
    before = {row.tobytes() for row in engine.archive.points}
    algorithm.next()
    algorithm.finalize()
    told = [{row.tobytes() for row in engine.instance.lengths(task["mates"])} for task in sent]
    assert any(told) == expected
    assert all(one <= before for one in told)
    assert not (told[0] & told[1])  # what one is sent comes from the other
    assert {task["parts"] for task in sent} == {2 if topology == "all" else 1}


def test_few_cities_have_their_exact_front_when_all_tours_have_been_looked_at(client):
    problem = problem_of(n=7)
    result = minimize(problem, Islands(GPU2PPLS(backend=BACKEND), client=client), seed=1)
    alone = minimize(problem, GPU2PPLS(backend=BACKEND), seed=1)
    assert np.array_equal(result.F, alone.F)


def test_tours_from_outside_reach_all_islands(client):
    problem = problem_of()
    given = np.array(
        [minimize(part, GPUMemetic(backend="cpu"), ("n_gen", 2), seed=1).X for part in problem.parts]
    )
    algorithm = begun(n_gen=2, n=25, client=client, sampling=given)
    algorithm.next()
    assert [len(member.unsent) for member in algorithm.engine.members] == [2, 2]
    result = run_to_end(algorithm).result()
    best = problem.tour_lengths(given)
    assert result.F[0, 0] <= best[0, 0]
    assert result.F[-1, 1] <= best[1, 1]


def archipelago(topology="all", n_islands=2):
    """What leads a run, with some tours, and without any worker."""
    leader = FrontArchipelago(
        front_instance(problem_of(), 3), b"", Rules(1.0, topology, False), n_islands, size=100
    )
    leader.accept(np.array([np.random.default_rng(seed).permutation(25) for seed in range(40)]))
    return leader


@pytest.mark.parametrize(("topology", "is_sent"), [("all", True), ("ring", False), ("none", False)])
def test_an_island_that_begins_again_is_sent_the_front_of_all(topology, is_sent):
    leader = archipelago(topology)
    task = {"mates": np.empty((0, 25), np.int32)}
    mates = leader.members[1].begun_again(task)["mates"]
    assert np.array_equal(mates, leader.front()[0] if is_sent else task["mates"])


def test_an_island_that_begins_again_gets_a_front_that_fills_several_messages(monkeypatch):
    leader = archipelago()
    front = leader.front()[0]
    assert len(front) > 3
    monkeypatch.setattr(front_island, "MOST_CITIES", 3 * 25)
    member, mates = leader.members[1], []
    task = member.begun_again({"mates": front[:1]})
    while len(task["mates"]):
        mates.append(task["mates"])
        task = {}
        leader._load(member, task)
    assert [len(rows) for rows in mates[:-1]] == [3] * (len(mates) - 1)
    assert np.array_equal(np.concatenate(mates), front)


def test_an_interrupt_leaves_no_report_half_taken_in(monkeypatch):
    leader = archipelago()
    update_front = leader.archive._update_front
    unsent = len(leader.members[1].unsent)

    def interrupted(first):
        _thread.interrupt_main()
        update_front(first)

    monkeypatch.setattr(leader.archive, "_update_front", interrupted)
    leader.members[0].tours = leader.instance.starts  # greedy tours, which join the front of random ones
    with pytest.raises(KeyboardInterrupt):
        leader._offer({"island": 0})
    lengths = leader.instance.lengths(leader.archive.tours[leader.archive.front])
    assert np.array_equal(lengths, leader.archive.points)
    assert set(map(bytes, leader.instance.lengths(leader.instance.starts))) <= set(
        map(bytes, leader.archive.points)
    )
    assert len(leader.members[1].unsent) == unsent + 2


def test_a_state_is_of_as_many_islands():
    state = archipelago().export_state()
    other = archipelago(n_islands=3)
    with pytest.raises(ValueError, match="rounds"):
        other.import_state(state)
    same = archipelago()
    same.archive.add(np.arange(25)[None], np.array([[1.0, 1.0]]))
    same.import_state(state)
    assert np.array_equal(same.archive.points, archipelago().archive.points)
    assert [len(member.unsent) for member in same.members] == [40, 40]


def test_the_command_line_takes_a_cluster_and_goes_on(client, two_workers, tmp_path, capsys):
    common = ["--generations", "2", "--scheduler", client.scheduler.address, "--picture", "", "--json"]
    state = str(tmp_path / "state")
    with keys_of(two_workers):
        assert main(["solve", "random:20+random:20:2", *common, "--save", state]) == 0
        told = capsys.readouterr()
        assert main(["solve", "--resume", state, *common]) == 0
    first, second = json.loads(told.out), json.loads(capsys.readouterr().out)
    before, after = (np.array([tour["lengths"] for tour in one["front"]]) for one in (first, second))
    assert all((after <= point).all(axis=1).any() for point in before)  # nothing is lost


def test_an_island_tells_each_member_once_and_no_more_at_a_time_than_a_message_brings(monkeypatch):
    problem = problem_of()
    monkeypatch.setattr(front_island, "MOST_CITIES", 30 * problem.n_cities)
    island = FrontIsland(GPU2PPLS(backend="cpu"), problem, None, 0)
    engine = island.colony.engine
    for key in range(12):
        engine.search(key)
    assert len(engine.archive.front) > 40
    told = [island._tours_to_tell(None) for _ in range(9)]
    assert [len(rows) for rows in told[:2]] == [30, min(30, len(engine.archive.front) - 30)]
    lengths = engine.instance.lengths(np.concatenate(told))
    assert np.array_equal(np.unique(lengths, axis=0), engine.archive.points)
    assert len(lengths) == len(engine.archive.points)


def test_parts_are_about_equal_and_leave_nothing_out():
    rows = np.random.default_rng(0).random((3000, 2))
    parts = np.array([Part(number, 3).has(rows) for number in range(3)])
    assert (parts.sum(axis=0) == 1).all()
    # the mean of a binomial of 1/3 and five standard deviations
    assert (abs(parts.sum(axis=1) - 1000) < 5 * np.sqrt(3000 * 2 / 9)).all()
    assert np.array_equal(Part(1, 3).has(rows[::-1]), parts[1, ::-1])


def test_a_search_of_a_part_leaves_the_others_tours_alone():
    problem = problem_of()
    algorithm = GPU2PPLS(backend="cpu").setup(problem, termination=("n_gen", 12), seed=1)
    engine = algorithm.engine
    engine.divide(0, 2)
    run_to_end(algorithm)
    archive = engine.archive
    looked = archive.looked[: archive.count] > 0
    assert looked.any()
    assert not (looked & ~Part(0, 2).has(archive.lengths[: archive.count])).any()


def test_islands_of_a_front_and_of_tours_are_different_classes():
    class Mine(Islands):
        pass

    for make, colony in ((Mine, GPU2PPLS()), (type(Islands(GPU2PPLS())), GPUMemetic())):
        with pytest.raises(TypeError, match="colony must be an algorithm for"):
            make(colony)
