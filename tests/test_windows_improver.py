"""Window search as the local search of others: of ants that build whole tours, and of given tours."""

from __future__ import annotations

import time

import numpy as np
import pytest
from pymoo.optimize import minimize

from pymoo_gpuaco import ALL_ALGORITHMS, GPUACS, LocalSearch
from pymoo_gpuaco.backends import Improver, make_improver
from pymoo_gpuaco.backends.cpu import improver as cpu_improver
from tests.algorithm_cases import COLONIES
from tests.cpu_window_cases import SmallWindows
from tests.engine_cases import BACKENDS, INSTANCES, asymmetric, cloud, colony
from tests.instances import listed_instance


@pytest.fixture(autouse=True)
def few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """An emulated device takes as long for tours that no caller asked for."""
    from pymoo_gpuaco.backends.cuda import local_search as batch_improver

    monkeypatch.setattr(batch_improver, "_TOURS_AT_ONCE", 3)


SYMMETRIC = [name for name, problem in INSTANCES.items() if problem.symmetric]


def random_tours(n, m, seed=0):
    return np.array([np.random.default_rng(seed + i).permutation(n) for i in range(m)])


def improver(problem, backend, kicks=0.5, candidates="auto", moves="windows") -> Improver:
    search = LocalSearch(moves, kicks=kicks)
    return make_improver(listed_instance(problem, 10), search, backend, candidates=candidates)


@pytest.mark.parametrize("backend", BACKENDS)
class TestImprover:
    @pytest.mark.parametrize("name", SYMMETRIC)
    def test_tours_stay_tours_with_exact_lengths_and_none_gets_longer(self, name, backend):
        problem = INSTANCES[name]
        n = problem.n_cities
        start = random_tours(n, 3)
        plain = improver(problem, backend, 0.0, moves="2opt+oropt").improve(start, 5)[1]
        tours, lengths = improver(problem, backend).improve(start, 5)
        assert np.array_equal(np.sort(tours, axis=1), np.tile(np.arange(n), (3, 1)))
        assert lengths == pytest.approx(problem.tour_lengths(tours), rel=1e-12)
        # it begins with the local optima of 2-opt and Or-opt, and takes no step up
        assert np.all(lengths <= plain * (1 + 1e-12))

    def test_a_row_depends_on_itself_the_key_and_its_number(self, backend):
        problem, start = cloud(90, 4), random_tours(90, 5)
        engine = improver(problem, backend)
        tours, lengths = engine.improve(start, 7)
        again = improver(problem, backend)
        for few in (5, 3, 1, 0):
            fewer, their = again.improve(start[:few].reshape(few, 90), 7)
            assert np.array_equal(fewer, tours[:few])
            assert np.array_equal(their, lengths[:few])
        assert not np.array_equal(again.improve(start, 8)[0], tours)
        larger = cloud(300, 4)  # where there is more than one end to come to
        same = improver(larger, backend, 0.1).improve(random_tours(300, 1)[[0, 0, 0]], 7)[0]
        assert len({tour.tobytes() for tour in same}) > 1

    def test_a_colony_improves_its_ants_as_an_improver_would(self, backend):
        # the same ants without a search, improved by hand with the key of their construction
        problem, search = cloud(80, 6), LocalSearch("windows", kicks=0.5)
        bare, searching = colony(problem, backend), colony(problem, backend, local_search=search)
        bare.construct(9)
        lengths = searching.construct(9)
        expected = make_improver(listed_instance(problem, 32), search, backend).improve(
            bare.tours(range(6)), 9
        )
        assert np.array_equal(searching.tours(range(6)), expected[0])
        assert np.array_equal(lengths, expected[1])

    def test_kicks_are_what_is_asked_for(self, backend):
        problem, start = cloud(400, 7), random_tours(400, 3)
        none, some, more = (
            improver(problem, backend, k).improve(start, 1)[1].mean() for k in (0.0, 0.1, 1.0)
        )
        assert more < some < none

    @pytest.mark.parametrize("candidates", ["nearest", "quadrant", "alpha"])
    def test_it_looks_at_the_candidates_that_are_asked_for(self, candidates, backend):
        problem, start = cloud(120, 11), random_tours(120, 3)
        tours, lengths = improver(problem, backend, 0.1, candidates).improve(start, 2)
        other = improver(problem, backend, 0.1, "nearest").improve(start, 2)[0]
        assert np.array_equal(lengths, problem.tour_lengths(tours))
        assert np.array_equal(tours, other) == (candidates == "nearest")

    @pytest.mark.parametrize("name", [name for name in COLONIES if name != "GPUFACO"])
    def test_every_colony_runs_with_it(self, name, backend):
        problem = cloud(40, 8)

        def run():
            algorithm = ALL_ALGORITHMS[name](
                4, local_search="windows", candidate_list_size=8, backend=backend
            )
            return minimize(problem, algorithm, ("n_gen", 2), seed=1)

        one, two = run(), run()
        assert np.array_equal(one.X, two.X)
        assert one.F[0] == problem.tour_length(one.X)


class TestOnTheCpu:
    def test_threads_each_search_windows_of_a_tour_of_their_own(self, monkeypatch):
        """None of them may wait for another one, all of which are at work."""
        monkeypatch.setattr(
            cpu_improver, "MemeticParameters", lambda **_: SmallWindows(whole_up_to=8, window=64)
        )
        problem, start = cloud(300, 1), random_tours(300, 4)
        found = []
        for threads in ("1", "2"):
            monkeypatch.setenv("PYMOO_GPUACO_THREADS", threads)
            found.append(improver(problem, "cpu").improve(start, 4)[0])
        assert np.array_equal(*found)
        assert np.array_equal(np.sort(found[0]), np.tile(np.arange(300), (4, 1)))

    def test_an_engine_that_has_no_time_still_hands_out_tours(self):
        problem = cloud(300, 3)
        engine = colony(problem, "cpu", local_search=LocalSearch("windows", kicks=1000.0))
        engine.stop_at(time.monotonic() - 1.0)
        lengths = engine.construct(1)
        assert np.array_equal(lengths, problem.tour_lengths(engine.tours(range(6))))


class TestOfArguments:
    def test_asymmetric_problems_are_refused_when_the_run_is_set_up(self):
        with pytest.raises(ValueError, match=r"local_search='windows'.*symmetric"):
            minimize(asymmetric(12), GPUACS(local_search="windows", backend="cpu"), ("n_gen", 1))
