"""Islands of GPU2PPLS: what they exchange, and that theirs is one front."""

import _thread
import json

import numpy as np
import pytest
from pymoo.optimize import minimize

from pymoo_gpuaco import GPU2PPLS, Islands, MultiObjectiveTSP, checkpoint
from pymoo_gpuaco.cli import main
from pymoo_gpuaco.islands import island as island_module
from pymoo_gpuaco.islands.archipelago import FrontArchipelago
from pymoo_gpuaco.islands.island import Migrants, Report
from pymoo_gpuaco.pareto.instance import front_instance
from pymoo_gpuaco.pareto.archive import Part
from tests.algorithm_cases import BACKEND, run_to_end
from tests.islands_cases import keys_of, reproducible


def problem_of(n=25, k=2):
    return MultiObjectiveTSP(list(np.random.default_rng(0).random((k, n, 2))))


def begun(n_gen=5, seed=1, n=60, **arguments):
    islands = reproducible(GPU2PPLS(backend=BACKEND), **{"exchange_every": 2, **arguments})
    return islands.setup(problem_of(n), termination=("n_gen", n_gen), seed=seed)


def assert_same_front(first, second):
    assert np.array_equal(first.result().F, second.result().F)
    assert np.array_equal(first.result().X, second.result().X)
    assert first.evaluator.n_eval == second.evaluator.n_eval


def undominated(F):
    worse = (F[None] <= F[:, None]).all(axis=2) & (F[None] < F[:, None]).any(axis=2)
    return not worse.any()


@pytest.mark.parametrize("termination", [("n_gen", 6), ("time", 1.5)], ids=lambda given: given[0])
def test_the_result_is_one_front_of_all_that_islands_report(client, termination):
    problem = problem_of(k=3)
    islands = Islands(GPU2PPLS(backend=BACKEND), client=client, exchange_every=0.1)
    result = minimize(problem, islands, termination, seed=1)
    engine = result.algorithm.engine
    assert (problem.tour_lengths(result.X) == result.F).all()
    assert undominated(result.F)
    assert (np.diff(result.F[:, 0]) >= 0).all()
    assert engine.n_islands == 2
    assert max(engine.values) > 0
    assert result.algorithm.evaluator.n_eval >= len(result.F)


def test_the_same_seed_gives_the_same_front_also_from_a_file(client, two_workers, tmp_path):
    first, second, other = (run_to_end(begun(client=client, seed=seed)) for seed in (1, 1, 2))
    assert_same_front(first, second)
    assert not np.array_equal(first.result().F, other.result().F)
    interrupted = begun(client=client)
    interrupted.next()
    interrupted.next()
    checkpoint.save(interrupted, tmp_path / "run")
    interrupted.finalize()
    resumed = checkpoint.load(tmp_path / "run")
    resumed.client = client
    with keys_of(two_workers):
        assert_same_front(run_to_end(resumed), first)


@pytest.mark.parametrize(("topology", "expected"), [("all", True), ("ring", True), ("none", False)])
def test_islands_are_sent_what_is_new_to_the_front_of_the_others(client, topology, expected):
    algorithm = begun(client=client, topology=topology)
    algorithm.next()
    algorithm.next()
    engine, sent = algorithm.engine, []
    ask = engine._ask
    engine._ask = lambda member, order: (sent.append(order), ask(member, order))
    before = {row.tobytes() for row in engine.archive.points}
    algorithm.next()
    algorithm.finalize()
    given = [{row.tobytes() for row in order.migrants.values} for order in sent]
    assert any(given) == expected
    assert all(one <= before for one in given)
    assert not (given[0] & given[1])  # what one is sent comes from the other
    assert {order.parts for order in sent} == {2 if topology == "all" else 1}


def archipelago(topology="all", n_islands=2):
    """The client loop of a run with some tours, and without any worker."""
    engine = FrontArchipelago(
        front_instance(problem_of(), 3), b"", 1, (1.0, topology, False), n_islands, size=100
    )
    engine.accept(np.array([np.random.default_rng(seed).permutation(25) for seed in range(40)]))
    return engine


def test_a_front_is_sent_in_as_many_messages_as_it_needs(monkeypatch):
    engine = archipelago()
    monkeypatch.setattr(island_module, "MOST_CITIES", 3 * 25)
    member, sent = engine.members[1], []
    member.inbox = engine._best()
    while len(member.inbox.tours):
        sent.append(engine._order(member).migrants.tours)
    assert len(sent) > 1
    assert [len(rows) for rows in sent[:-1]] == [3] * (len(sent) - 1)
    assert np.array_equal(np.concatenate(sent), engine.front()[0])


def test_an_interrupt_leaves_no_report_half_taken_in(monkeypatch):
    engine = archipelago()
    update_front = engine.archive._update_front
    waiting = len(engine.members[1].inbox.tours)

    def interrupted(first):
        _thread.interrupt_main()
        update_front(first)

    monkeypatch.setattr(engine.archive, "_update_front", interrupted)
    starts = engine.instance.starts  # greedy tours, which join the front of random ones
    emigrants = Migrants(starts, engine.instance.lengths(starts))
    report = Report(None, 2.0, emigrants, False, True, True, 2, 0.1, 0, None)
    with pytest.raises(KeyboardInterrupt):
        engine._receive(engine.members[0], report)
    lengths = engine.instance.lengths(engine.archive.tours[engine.archive.front])
    assert np.array_equal(lengths, engine.archive.points)
    assert set(map(bytes, engine.instance.lengths(starts))) <= set(map(bytes, engine.archive.points))
    assert len(engine.members[1].inbox.tours) == waiting + 2


def test_a_state_is_of_as_many_islands():
    state = archipelago().export_state()
    other = archipelago(n_islands=3)
    before = other.archive.points
    with pytest.raises(ValueError, match="tours"):
        other.import_state(state)
    assert np.array_equal(other.archive.points, before)
    same = archipelago()
    same.archive.add(np.arange(25)[None], np.array([[1.0, 1.0]]))
    same.import_state(state)
    assert np.array_equal(same.archive.points, archipelago().archive.points)


def test_the_command_line_takes_a_cluster_and_goes_on(client, two_workers, tmp_path, capsys):
    common = ["--generations", "2", "--scheduler", client.scheduler.address, "--picture", "", "--json"]
    state = str(tmp_path / "state")
    with keys_of(two_workers):
        assert main(["solve", "random:20+random:20:2", *common, "--save", state]) == 0
        printed = capsys.readouterr()
        assert main(["solve", "--resume", state, *common]) == 0
    first, second = json.loads(printed.out), json.loads(capsys.readouterr().out)
    before, after = (np.array([tour["lengths"] for tour in one["front"]]) for one in (first, second))
    assert all((after <= point).all(axis=1).any() for point in before)  # nothing is lost


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
    explored = archive.explored[: archive.count] > 0
    assert explored.any()
    assert not (explored & ~Part(0, 2).has(archive.lengths[: archive.count])).any()
