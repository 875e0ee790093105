"""The shortest assignment, its prices, and the candidate lists of asymmetric instances that come from them."""

import pickle
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

from pymoo_gpuaco import TSP, GPUMemetic
from pymoo_gpuaco.algorithms import tour
from pymoo_gpuaco.candidates import lists
from pymoo_gpuaco.candidates.ascent import ascend
from pymoo_gpuaco.candidates.bound import prove_lower_bound
from pymoo_gpuaco.candidates.lists import shortest_assignment, with_lists
from pymoo_gpuaco.problems.pymoo_problems import as_instance
from pymoo_gpuaco.problems.symmetric import symmetric_form
from pymoo_gpuaco.runtime.stop import SetUpStop, Stop
from tests.instances import listed_instance

FAR = 1e6


def without_loops(matrix, far=FAR):
    """Costs as an assignment has them: no city its own successor, nothing longer than ``far``."""
    costs = np.minimum(matrix, far)
    np.fill_diagonal(costs, 1e12)
    return costs


def shortest(costs):
    """The length of a shortest assignment, by scipy."""
    return costs[linear_sum_assignment(costs)].sum()


@st.composite
def matrices(draw):
    """Few costs or many, whole or not, some infinite."""
    n = draw(st.integers(2, 30))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    matrix = rng.integers(0, draw(st.sampled_from([1, 2, 10, 10**6])), (n, n)).astype(float)
    if draw(st.booleans()):
        matrix = 0.1 * matrix + rng.random((n, 1))
    matrix[rng.random((n, n)) < draw(st.sampled_from([0.0, 0.1, 0.8]))] = np.inf
    return matrix


@given(matrices())
@settings(max_examples=150, deadline=None)
def test_prices_prove_that_an_assignment_is_shortest(matrix):
    n, costs = len(matrix), without_loops(matrix)
    found = shortest_assignment(matrix, FAR)
    assert sorted(found.successor) == list(range(n))
    assert (found.successor != np.arange(n)).all()
    length = costs[np.arange(n), found.successor].sum()
    assert length - 1e-8 * FAR <= found.bound <= length + 1e-9
    reduced = costs - found.to_leave[:, None] - found.to_enter
    assert reduced.min() >= -1e-8 * FAR
    assert np.abs(reduced[np.arange(n), found.successor]).max() <= 1e-8 * FAR
    assert found.to_leave.mean() == pytest.approx(found.to_enter.mean(), abs=1e-8 * FAR)


def flow_shop(jobs, machines=20):
    """Return how much later a job must begin that comes after another and never waits between machines."""
    times = np.random.default_rng(3).integers(0, 1001, (jobs, machines)).astype(float)
    done = np.cumsum(times, axis=1)
    later = np.array([(row - (done - times)).max(axis=1) for row in done])
    np.fill_diagonal(later, 0.0)
    return later


def twins(matrix, k=10):
    """The symmetric form of a matrix, with its lists."""
    form = symmetric_form(as_instance(TSP(matrix=matrix)))
    assert form is not None
    return with_lists(form.instance, k)


def assigned_within(listed):
    """Length of the shortest assignment over listed edges."""
    costs = np.full_like(listed.matrix, 1e12)
    n = len(costs)
    for city, row in enumerate(listed.neighbours):
        for other in row:
            i, j = (city, other) if city % 2 else (other, city)  # an odd one is left
            costs[i // 2, j // 2] = listed.matrix[i // 2, j // 2]
    costs[np.arange(n), np.arange(n)] = 1e12
    return shortest(costs)


def test_lists_hold_an_assignment_as_short_as_any_where_least_costs_tell_little():
    matrix = flow_shop(150)
    listed = twins(matrix)
    assert listed.penalties is not None
    assert assigned_within(listed) <= 1.001 * shortest(without_loops(matrix))


def test_an_assignment_is_given_up_where_time_is_over():
    matrix, stop = flow_shop(200), Stop()
    stop.until = time.monotonic() - 1.0
    assert shortest_assignment(matrix, FAR, stop) is None
    stop.until, stop.flag[0] = time.monotonic() + 1e4, 0
    found = shortest_assignment(matrix, FAR, stop)
    assert found.bound == shortest_assignment(matrix, FAR).bound > 0.0


class Looks(Stop):
    """A stop that ends after a number of looks at the clock."""

    def __init__(self, looks):
        super().__init__()
        self.left = looks

    def passed(self):
        self.left -= 1
        return self.left < 0


def test_lists_are_what_they_are_by_then_once_time_is_over():
    """The looks of a set-up are few; wherever time is over, lists are lists."""
    matrix = flow_shop(150)
    form = symmetric_form(as_instance(TSP(matrix=matrix))).instance
    whole, never = with_lists(form, 10), Looks(10**9)
    same = with_lists(form, 10, stop=never)
    np.testing.assert_array_equal(same.neighbours, whole.neighbours)
    np.testing.assert_array_equal(same.penalties, whole.penalties)
    looks = 10**9 - never.left
    without, met = 0, set()
    for end in range(looks):
        stop = Looks(end)
        listed = with_lists(form, 10, stop=stop)
        assert stop.left >= -12  # what begins afterwards ends at its first look
        without += listed.penalties is None
        met.add(listed.neighbours.tobytes())
        cities = np.arange(300)[:, None]
        assert ((listed.neighbours ^ cities) & 1 == 1).all()  # one that is entered for one that is left
        assert (listed.neighbours >> 1 != cities >> 1).all()
        np.testing.assert_array_equal(
            listed.neighbour_distances, form.distance(np.broadcast_to(cities, (300, 10)), listed.neighbours)
        )
    assert 0 < without < looks  # given up, and found in time
    assert len(met) > 2


@pytest.mark.parametrize("candidates", ["auto", "alpha"])
def test_a_run_whose_time_is_over_in_set_up_ends_with_a_right_tour(candidates, monkeypatch):
    """No assignment is looked for any more, which of 5,000 cities takes seconds."""
    stops = []

    class Over(SetUpStop):
        def __init__(self, seconds):
            super().__init__(seconds)
            stops.append(seconds)

        def passed(self):
            return True

    problem = TSP(matrix=flow_shop(120))
    usual = GPUMemetic(backend="cpu", candidates=candidates).setup(problem, termination=("n_gen", 1), seed=1)
    assert usual.engine.symmetric_search.instance.penalties is not None
    monkeypatch.setattr(tour, "SetUpStop", Over)
    algorithm = GPUMemetic(backend="cpu", candidates=candidates)
    algorithm.setup(problem, termination=("time", 1000.0), seed=1)
    assert stops
    assert all(300.0 < seconds <= 1000.0 / 3.0 for seconds in stops)
    assert algorithm.engine.symmetric_search.instance.penalties is None
    algorithm.next()
    result = algorithm.result()
    assert result.F[0] == problem.tour_length(result.X)
    # what is put away goes on with better lists
    monkeypatch.undo()
    later = pickle.loads(pickle.dumps(algorithm))
    later.next()
    assert later.engine.symmetric_search.instance.penalties is not None
    assert later.opt[0].F[0] <= result.F[0]


def test_no_clock_is_looked_at_where_time_is_no_limit():
    algorithm = GPUMemetic(backend="cpu").setup(TSP(matrix=flow_shop(20)), termination=("n_gen", 1), seed=1)
    assert algorithm._set_up_stop().end is None


def test_compiling_takes_nothing_of_the_time_of_set_up(monkeypatch, clock):
    compiled = [3.0]
    monkeypatch.setattr("pymoo_gpuaco.runtime.compiling.so_far", lambda: compiled[0])
    stop = SetUpStop(2.0)
    clock.step(11.5)
    compiled[0] += 10.0
    assert not stop.ended()
    clock.step(0.5)
    assert stop.ended()


def test_a_proof_without_an_assignment_is_that_of_trees(monkeypatch):
    problem = listed_instance(TSP(matrix=flow_shop(60)), 8)
    proven = prove_lower_bound(problem)
    assert proven >= shortest(without_loops(flow_shop(60))) - 1e-6
    monkeypatch.setattr(lists, "MOST_ASSIGNED", 59)
    assert 0.9 * proven <= prove_lower_bound(problem) <= proven


def test_prices_of_a_sample_give_lists_nearly_as_good(monkeypatch):
    matrix = flow_shop(150)
    least = shortest(without_loops(matrix))
    without = twins(matrix)
    monkeypatch.setattr(lists, "MOST_ASSIGNED", 50)
    sampled = twins(matrix)
    assert not np.array_equal(sampled.penalties, without.penalties)
    assert assigned_within(sampled) <= 1.02 * least
    monkeypatch.setattr(lists, "_MISSING", 1.0)  # by least costs alone
    assert twins(matrix).penalties is None
    assert assigned_within(twins(matrix)) >= assigned_within(sampled)


def test_no_bound_is_below_the_shortest_assignment():
    """Files on a disk, whose tours differ by whole turns: an ascent of 1-trees ends a little below."""
    start, end, track = np.random.default_rng(2).integers(0, 1000, (3, 40))
    turn = (start - end[:, None]) % 1000
    seek = np.abs(track[:, None] - track) // 10
    matrix = turn + 1000.0 * np.ceil(np.maximum(0, seek - turn) / 1000)
    instance = listed_instance(TSP(matrix=matrix), 10)
    proven = prove_lower_bound(instance)
    assert proven == shortest(without_loops(matrix))
    listed = twins(matrix)
    assert ascend(listed, listed.neighbours, listed.neighbour_distances).bound < proven
    assert (instance.tour_length(np.arange(40)) - proven) % 1000 == 0
