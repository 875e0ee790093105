"""Islands of focused ants whose tours meet, on a cluster of two processes."""

import os
import signal

import numpy as np
import pytest
from pymoo.optimize import minimize

from pymoo_gpuaco import GPUMemetic, Islands, checkpoint
from pymoo_gpuaco.search.meeting import Meeting
from pymoo_gpuaco.search.parameters import FEWEST_TO_EVOLVE
from tests.algorithm_cases import BACKEND, cities, is_canonical, run_to_end
from tests.islands_cases import keys_of, wait_until

CITIES, ROUNDS = 150, 12


@pytest.fixture
def client(two_workers):
    wait_until(lambda: len(two_workers.client.nthreads()) == 2)
    return two_workers.client


def memetic(client, **arguments):
    ants = None if BACKEND == "cuda" else FEWEST_TO_EVOLVE
    colony = GPUMemetic(n_ants=ants, backend=BACKEND)
    return Islands(
        colony, **{"n_islands": 2, "client": client, "deterministic": True, "exchange_every": 1, **arguments}
    )


def begun(islands, termination=("n_gen", ROUNDS), seed=1):
    return islands.setup(cities(CITIES), termination=termination, seed=seed)


def orders(algorithm):
    """Run to the end; the orders of all rounds, each with the islands' members when it was sent."""
    send, sent = algorithm.engine._rounds.send, []
    members = algorithm.engine.members

    def note(member, task):
        known = [None if one.tours is None else {tour.tobytes() for tour in one.tours} for one in members]
        sent.append((member.number, member.meeting, task, known))
        send(member, task)

    algorithm.engine._rounds.send = note
    run_to_end(algorithm)
    return sent


def outcome(algorithm):
    state = algorithm.engine.export_state()
    return [state[name] for name in ("tours", "values", "rounds", "best")]


def test_all_tours_of_each_island_are_sent_to_the_other_when_annealing_is_over(client):
    algorithm = begun(memetic(client))
    sent = orders(algorithm)
    assert [one.meeting for one in algorithm.engine.members] == [Meeting.OVER] * 2
    assert all(not task["migrants"] for _, _, task, _ in sent)  # no tour comes in any other way
    for meeting in (Meeting.FIRST_STAGE, Meeting.SECOND_STAGE):
        met = [(number, task["mates"], known) for number, due, task, known in sent if due == meeting]
        assert [number for number, _, _ in met] == [0, 1]
        for number, mates, known in met:
            assert len(mates) >= 2
            assert {tour.tobytes() for tour in mates} == known[1 - number]
    met = [
        len(task["mates"])
        for _, due, task, _ in sent
        if due not in (Meeting.FIRST_STAGE, Meeting.SECOND_STAGE)
    ]
    assert set(met) == {0}
    assert float(algorithm.opt[0].F[0]) <= min(algorithm.engine.values)


def test_without_a_topology_each_island_evolves_alone(client):
    algorithm = begun(memetic(client, topology="none"))
    assert all(len(task["mates"]) == 0 and not task["shares"] for _, _, task, _ in orders(algorithm))
    assert [one.meeting for one in algorithm.engine.members] == [Meeting.OVER] * 2


def test_lock_step_gives_the_same_also_from_a_file_and_where_a_worker_is_killed_at_a_meeting(
    two_workers, client, tmp_path
):
    whole = run_to_end(begun(memetic(client)))
    again, kept = begun(memetic(client)), []
    while again.has_next():
        again.next()
        due = again.engine.members[0].meeting
        if due in (Meeting.FIRST_STAGE, Meeting.SECOND_STAGE):
            checkpoint.save(again, tmp_path / str(due))
            kept.append(due)
            if due == Meeting.FIRST_STAGE and os.name == "posix":
                rounds, member = again.engine._rounds, again.engine.members[0]
                pid = rounds.cluster.client.run(os.getpid, workers=[member.worker])[member.worker]
                os.kill(pid, signal.SIGKILL)
    assert kept == [Meeting.FIRST_STAGE, Meeting.SECOND_STAGE]
    for one, other in zip(outcome(whole), outcome(again), strict=True):
        assert np.array_equal(one, other)
    wait_until(lambda: len(client.nthreads()) == 2)
    for due in kept:
        resumed = checkpoint.load(tmp_path / str(due), allow_pickle=True)
        with keys_of(two_workers):
            run_to_end(resumed)
        for one, other in zip(outcome(whole), outcome(resumed), strict=True):
            assert np.array_equal(one, other)


@pytest.mark.parametrize("termination", [("n_gen", 40), ("time", 2.0)], ids=lambda told: told[0])
def test_rounds_that_are_taken_as_they_come_meet_too(client, termination):
    problem = cities(CITIES)
    islands = memetic(client, deterministic=False, exchange_every=0.05)
    algorithm = minimize(problem, islands, termination, seed=1).algorithm
    assert is_canonical(algorithm.opt[0].X)
    assert algorithm.opt[0].F[0] == problem.tour_length(algorithm.opt[0].X) <= min(algorithm.engine.values)
    if termination[0] == "time":  # progress is known from the start
        assert [one.meeting for one in algorithm.engine.members] == [Meeting.OVER] * 2
        assert all(len(one.tours) >= 2 for one in algorithm.engine.members)
